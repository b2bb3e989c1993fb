//! All tests of the crate in one program, which is quicker to build than many.

mod coordination;
mod coordination_faults;
mod frame;
mod keeping;
mod mesh;
mod returns;
mod unanswered;
