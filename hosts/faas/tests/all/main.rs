//! Tests of the package, in one program.

extern crate alloc;

mod abi;
mod argument;
mod binary;
mod call;
mod engine;
mod hostile;
mod limits;
mod outcome;
mod runs;
mod slices;
mod support;
