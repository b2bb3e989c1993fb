//! Tests of the client with an agent of their own.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic, and watch the program from outside"
)]

mod calls;
mod errors;
mod events;
mod fake;
mod holds;
mod locks;
