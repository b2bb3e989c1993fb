//! Runs many machines together.

extern crate alloc;

mod histories;

pub use histories::histories;
