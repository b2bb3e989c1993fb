//! A host for PCM over MQTT: gateways, followers that sleep, and clients, each a process; and functions,
//! which are exports of WebAssembly modules.
//!
//! [`selvedge_pcm`] has the protocol and what it promises. This crate has its machines run on clocks,
//! brokers and disks.
//!
//! # How messages travel
//!
//! Each gateway has a broker: inside of its process, or one that is there. [`topic`] lists the topics,
//! [`frame`] what a payload is. All is published with quality of service 1, but the status, and nothing is
//! retained but which gateways there are.
//!
//! - A gateway reads its inbox at its own broker. Other gateways come to that broker as clients, and publish
//!   there.
//! - A follower's mailbox is the session that the broker of its gateway keeps for it. The follower is
//!   connected while it is awake; asleep means disconnected. When it comes to a gateway in a new life, or from
//!   another gateway, it has the session emptied first, and is told anew what it has to know.
//! - What a follower tells another one goes through its gateway, which knows where the mailbox is.
//! - A client is connected to one gateway at a time.
//!
//! Nothing is carried out late: gateways and clients keep no sessions, what waits for a broker that is away is
//! dropped, and what lay in a follower's mailbox names the attempt and the lives that it is for.
//!
//! # What is trusted
//!
//! Whoever may publish at a broker may say anything in the name of any node, and fill the broker's memory. So
//! the brokers belong into a network of their own, or behind names and passwords ([`Access`],
//! [`users`]) and TLS (feature `tls`). What is no frame, too long, or from a node
//! that the machine does not expect is counted ([`Counters`]), and nothing else happens.
//!
//! # What survives
//!
//! A gateway stores facts before it says what rests on them, many in one write. So an accepted task survives
//! `kill -9` of any process at any time, and of all at once. What waits in mailboxes does not survive the
//! broker inside of a gateway: followers attach anew, and are told again.
//!
//! # Functions
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
//! ## What is promised of a call
//!
//! | promise | under which assumption |
//! |---|---|
//! | a call has the same outcome and takes the same fuel, wherever and in which slices it runs | the same [`Limits`] but for [`Limits::modules`], and the same version of this crate; but for [`Failure::Host`], of a host that lacks memory |
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
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

extern crate alloc;

pub mod call;
pub mod client;
mod clock;
mod counters;
pub mod executor;
pub mod find;
pub mod follower;
pub mod frame;
pub mod fuzz;
pub mod gateway;
mod link;
mod note;
pub mod notice;
#[cfg(feature = "page")]
pub mod page;
#[cfg(test)]
mod scratch;
mod shelf;
pub mod topic;
pub mod view;
pub mod wasm;
pub mod watch;

pub use call::{Argument, ArgumentError, Call, CallError, Does, ModuleId, Stub, text_of};
pub use clock::NoChance;
pub use counters::Counters;
pub use selvedge_mqtt::access::{Access, Address, AddressError};
#[cfg(feature = "tls")]
pub use selvedge_mqtt::tls;
pub use selvedge_mqtt::users;
pub use shelf::library;
pub use wasm::{
    CallMismatch, Engine, Failure, Limits, Module, ModuleError, Outcome, Ran, Run, Step, Trap,
};
