//! All tests of the crate in one program, which is quicker to build than many.

mod coordination;
mod frame;
mod mesh;
mod unheard;
