//! All tests as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::cast_possible_truncation,
    reason = "a test that cannot go on fails"
)]

mod building;
mod changing_sites;
mod device_leader;
mod devices;
mod devices_model;
mod durable;
mod epochs;
mod left_behind;
mod model;
mod node;
mod props;
mod routine_leader;
mod routines;
mod sessions;
mod settings;
mod site;
mod sleeping;
mod times;
mod whole;
mod wire;
