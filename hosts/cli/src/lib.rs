//! The demo of the `selvedge` command, and an output that never waits for its reader.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod demo;
pub mod output;
