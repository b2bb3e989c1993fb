//! Runs many machines together.

extern crate alloc;

pub mod check;
mod histories;
pub mod network;

pub use histories::histories;
