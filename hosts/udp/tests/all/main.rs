//! All tests of the crate in one program, which is quicker to build than many.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and so do its helpers"
)]

mod bench;
mod blocking;
mod broken;
mod clocks;
mod datagrams;
mod devices;
mod elections;
mod facts;
mod faulty;
mod groups;
mod handle;
mod host;
mod hostile;
mod keys;
mod lock_settings;
mod network;
mod places;
mod power;
mod queries;
mod recipes;
mod round_trips;
mod sections;
mod sessions;
mod sites;
mod spared;
mod starts;
mod tags;
