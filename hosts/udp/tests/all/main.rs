//! All tests of the crate in one program, which is quicker to build than many.

mod clocks;
mod elections;
mod host;
mod hostile;
mod sections;
