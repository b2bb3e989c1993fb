//! All tests of the crate in one program, which is quicker to build than many.

extern crate alloc;

mod answers;
mod closed_loop;
mod differ;
mod entry;
mod errata;
mod estimate;
mod histories;
mod measuring;
mod mesh;
mod model;
mod props;
mod sleep;
mod traces;
mod wire;
