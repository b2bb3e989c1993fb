//! All tests of the crate in one program, which is quicker to build than many.

mod building;
mod command;
mod demo;
mod namespaces;
mod promises;
