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

mod durable;
mod exchange;
mod hostile;
mod toy;
