//! Tests of the package, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a test that cannot go on fails"
)]

mod abi;
mod argument;
mod binary;
mod call;
mod corpus;
mod engine;
mod functions;
mod fuzz;
mod hostile;
mod limits;
mod outcome;
mod parts;
mod runs;
mod slices;
mod stubs;
mod support;
