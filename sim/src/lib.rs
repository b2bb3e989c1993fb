//! Runs many machines together.

extern crate alloc;

pub mod check;
