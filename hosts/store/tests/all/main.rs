//! Tests of stored data, on files and on disks that fail.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and so do its helpers"
)]

mod crash;
mod damage;
mod disk;
mod folder;
mod full;
mod log;
