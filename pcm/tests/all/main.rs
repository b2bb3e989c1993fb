//! All tests as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::cast_possible_truncation,
    reason = "a test that cannot go on fails"
)]

mod alone;
mod clients;
mod costs;
#[cfg(feature = "check")]
mod errata;
mod followers;
mod gateways;
mod links;
mod lives;
mod managers;
#[cfg(feature = "check")]
mod model;
mod node;
mod peers;
#[cfg(feature = "check")]
mod props;
mod receiving;
mod sample;
mod seats;
mod settings;
mod tables;
mod tasks;
mod units;
mod voters;
mod whole;
mod wire;
mod world;
