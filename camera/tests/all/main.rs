//! All tests of the crate in one program, which is quicker to build than many.

extern crate alloc;

mod contract;
mod entry;
mod errata;
mod estimate;
mod gate;
mod gate_model;
mod histories;
mod history;
mod model;
mod orders;
mod props;
mod sections;
mod slow;
mod traces;
mod trees;
mod wire;
