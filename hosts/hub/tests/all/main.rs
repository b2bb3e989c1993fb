//! Tests of the hub's host.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod file;
mod house;
mod kasa;
mod process;
mod store;
mod support;
