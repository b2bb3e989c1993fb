//! Modules, and calls of their exports within limits.
//!
//! # Imports
//!
//! A module may import functions of `selvedge`, and other functions for which the call has a
//! [`Stub`](crate::Stub). All numbers are `i32`; pointers and lengths are in bytes, in the memory
//! that the module exports.
//!
//! | import | effect |
//! |---|---|
//! | `argument_count() -> i32` | returns the number of arguments |
//! | `argument_len(nth) -> i32` | returns the length in bytes of an argument, counted from 0; -1 if there is no such argument |
//! | `argument_read(nth, ptr)` | writes the argument's bytes to `ptr`: numbers in little-endian |
//! | `result_write(ptr, len)` | sets the result to these bytes; the last call counts |
//! | `log(ptr, len)` | appends these bytes to the follower's log, as far as it has room |
//!
//! # Exports
//!
//! | export | arguments | result |
//! |---|---|---|
//! | without parameters | read by imports | the bytes of the last `result_write`; else the returned number, as [`Argument`](crate::Argument)'s text; else nothing |
//! | with parameters | numbers as such, of the same type; bytes as pointer and length | the same |
//! | of wasm-bindgen: with one `i32` in front, and without results | the same | the bytes behind that pointer |
//!
//! The module's export `alloc` or `malloc`, `(i32) -> i32`, allocates the place of bytes; else
//! `__wbindgen_malloc`, `(i32, i32) -> i32`; else they are in pages that are added at the end.
//!
//! An export `_initialize` without parameters and results is called before the function, after the
//! start function.

mod binary;
mod engine;
mod imports;
mod limits;
mod machine;
mod meter;
mod module;
mod outcome;
mod run;
mod signature;

pub(crate) use binary::is_module;
pub use engine::Engine;
pub use limits::{Limits, MAX_CALLS, MAX_LOCALS, MAX_STACK};
pub use module::{Module, ModuleError};
pub use outcome::{Failure, Outcome, Ran, Trap};
pub use run::{Run, Step};
pub use signature::CallMismatch;
