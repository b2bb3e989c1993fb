//! Modules, and calls of their exports within limits.
//!
//! # What a module may import
//!
//! Functions of `selvedge`; and others for which the call has a [`Stub`](crate::Stub). All numbers are `i32`; pointers and lengths are in
//! bytes, in the memory that the module exports.
//!
//! | import | what it does |
//! |---|---|
//! | `argument_count() -> i32` | how many arguments there are |
//! | `argument_len(nth) -> i32` | how many bytes the argument has, from 0; -1 where there is none |
//! | `argument_read(nth, ptr)` | writes the argument's bytes to `ptr`: numbers in little-endian |
//! | `result_write(ptr, len)` | these bytes are the result; the last call counts |
//! | `log(ptr, len)` | these bytes go to the follower's log, as far as it has room |
//!
//! # What an export may look like
//!
//! | export | arguments | result |
//! |---|---|---|
//! | without parameters | read by imports | what `result_write` wrote last; else the number that it returns, as [`Argument`](crate::Argument)'s text; else nothing |
//! | with parameters | numbers as such, of the same type; bytes as pointer and length | the same |
//! | of wasm-bindgen: with one `i32` in front, and without results | the same | the bytes to which that pointer leads |
//!
//! Bytes lie where the module's export `alloc` or `malloc`, `(i32) -> i32`, says; else where
//! `__wbindgen_malloc`, `(i32, i32) -> i32`, says; else in pages that are added at the end.
//!
//! What a module exports as `_initialize` without parameters and results is called before, after its
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
