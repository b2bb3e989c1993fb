//! All tests of the crate in one program, which is quicker to build than many.

mod command;
mod ricart_agrawala;
