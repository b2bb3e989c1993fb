//! The demo of the `selvedge` command, and how its output survives a reader that stalls.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod demo;
pub mod output;
