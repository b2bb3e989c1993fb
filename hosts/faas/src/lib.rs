//! Runs the functions that followers of [`selvedge_pcm`] agree on: exports of WebAssembly modules.
//!
//! A [`Function`](selvedge_pcm::Function) is a [`Call`]: which module, which of its exports, which
//! arguments. An [`Engine`] keeps modules, and runs calls within [`Limits`]; it does so in
//! [slices](Run::step) of fuel, so that a host with one thread hears messages meanwhile.
//!
//! ```
//! use selvedge_faas::{Argument, Call, Engine, Limits, ModuleId, Outcome};
//!
//! // (module (func (export "twice") (param i32) (result i32) local.get 0 i32.const 1 i32.shl))
//! let module = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\
//!     \x07\x09\x01\x05twice\0\0\x0a\x09\x01\x07\0\x20\0\x41\x01\x74\x0b";
//! let mut engine = Engine::new(Limits::new())?;
//! let id = engine.insert(module)?;
//!
//! let call = Call::new(id, "twice", ["21".parse()?])?;
//! let function = call.to_function()?; // What a client of PCM submits.
//! assert_eq!(Call::from_function(&function)?, call); // What a follower of PCM is told to run.
//! let ran = engine.run(&call);
//! assert_eq!(ran.outcome, Outcome::Value(b"42".to_vec()));
//! assert!(ran.fuel < 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | a call has the same outcome and takes the same fuel, wherever and in which slices it runs | the same [`Limits`] but for [`Limits::modules`], and the same version of this crate |
//! | a run ends | it is stepped; its fuel is finite |
//! | a slice takes time that its fuel bounds | |
//! | a module takes no more memory than [`Limits::memory`] and a constant, whatever it asks for | |
//! | a module, a call or an argument that makes no sense is a typed error; nothing panics | |
//! | the native stack does not grow with what a module does | |
//!
//! What is *not* promised:
//!
//! - That a module means well by its caller: it sees its arguments and nothing else, and returns
//!   what it likes.
//! - That compiling takes little time: it is bounded by [`Limits::module`] alone.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod call;
pub mod fuzz;
pub mod wasm;

pub use call::{Argument, ArgumentError, Call, CallError, ModuleId, text_of};
pub use wasm::{
    CallMismatch, Engine, Failure, Limits, Module, ModuleError, Outcome, Ran, Run, Step, Trap,
};
