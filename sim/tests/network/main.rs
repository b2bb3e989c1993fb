//! The simulator keeps its promises.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "tests look at one outcome at a time"
)]

mod faults;
mod histories;
mod links;
mod machines;
mod membership;
mod routing;
mod running;
mod scale;
mod trace;
