//! A host for PCM over MQTT: gateways, followers that sleep, and clients, each a process; and
//! functions, which are exports of WebAssembly modules.
//!
//! [`selvedge_pcm`] has the protocol and its promises. This crate runs its machines on clocks,
//! brokers and disks.
//!
//! # Routes of messages
//!
//! Each gateway has a broker: inside its process, or a separate one. [`topic`] lists the topics,
//! [`frame`] describes the payloads. Everything except the status is published with quality of
//! service 1, and nothing is retained except the list of gateways.
//!
//! - A gateway reads its inbox at its own broker. Other gateways connect to that broker as clients,
//!   and publish there.
//! - A follower's mailbox is the session that the broker of its gateway keeps for it. The follower
//!   is connected while it is awake; asleep means disconnected. When it attaches to a gateway in a
//!   new life, or from another gateway, the session is emptied first, and the gateway sends it the
//!   current state again.
//! - A follower's message to another follower goes through its gateway, which knows where the
//!   mailbox is.
//! - A client is connected to one gateway at a time.
//!
//! No message takes effect late: gateways and clients keep no sessions, messages for a broker that
//! is down are dropped, and each message in a follower's mailbox names the attempt and the lives
//! that it is for.
//!
//! # Trust
//!
//! Any client that may publish at a broker may send any message in the name of any node, and fill
//! the broker's memory. So the brokers belong in a separate network, or behind names and passwords
//! ([`Access`], [`users`]) and TLS (feature `tls`). A payload that is no frame, too long, or from a
//! node that the machine does not expect is counted ([`Counters`]), and has no other effect.
//!
//! # Persistence
//!
//! A gateway stores facts before it sends anything that depends on them, many in one write. So an
//! accepted task survives `kill -9` of any process at any time, and of all at once. Messages in
//! mailboxes do not survive the broker inside a gateway: followers attach again, and are notified
//! again.
//!
//! # Functions
//!
//! A [`Function`](selvedge_pcm::Function) is a [`Call`]: a module, one of its exports, and the
//! arguments. An [`Engine`] keeps modules, and runs calls within [`Limits`]; it does so in
//! [slices](Run::step) of fuel, so that a host with one thread handles messages meanwhile.
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
//! let function = call.to_function()?; // A client of PCM submits this.
//! assert_eq!(Call::from_function(&function)?, call); // A follower of PCM runs this.
//! let ran = engine.run(&call);
//! assert_eq!(ran.outcome, Outcome::Value(b"42".to_vec()));
//! assert!(ran.fuel < 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Promises of a call
//!
//! | promise | assumption |
//! |---|---|
//! | a call has the same outcome and takes the same fuel, wherever and in which slices it runs | the same [`Limits`] except [`Limits::modules`], and the same version of this crate; exception: [`Failure::Host`], when a host lacks memory |
//! | a run ends | the host steps it; its fuel is finite |
//! | the time of a slice is bounded by its fuel | |
//! | a module takes no more memory than [`Limits::memory`] and a constant, for any requests | |
//! | an invalid module, call or argument is a typed error; nothing panics | |
//! | the native stack does not grow with the work of a module | |
//!
//! *Not* promised:
//!
//! - That a module is honest: it sees its arguments and nothing else, and returns any value.
//! - That compiling takes little time: only [`Limits::module`] bounds it.

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
