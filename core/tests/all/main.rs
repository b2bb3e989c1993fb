//! All tests of the crate in one program, which is quicker to build than many.

#[path = "../counting/allocator.rs"]
mod allocator;
mod driver;
mod nested;
mod shared;
mod wire;
