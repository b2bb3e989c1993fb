//! The simulator keeps its promises.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests fail as tests do, and look at one outcome at a time"
)]

mod faults;
mod histories;
mod links;
mod machines;
mod membership;
mod routing;
mod running;
mod scale;
mod storage;
mod trace;
