//! Tests of the parts, and of whole groups of processes.

mod parts;
mod processes;
mod running;
