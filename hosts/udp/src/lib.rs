//! A host for one node over UDP, on tokio: membership, locks of the mesh, its leader, and maps and
//! routines that k-groups hold.
//!
//! [`Host::start`] takes a [`Setup`] and returns a [`Handle`], which threads and tasks clone.
//! Through it they read what the node published last ([`Handle::members`], [`Handle::leader`]), ask
//! for things ([`Handle::lock`], [`Handle::elect`], [`Handle::map`], [`Handle::leave`]), and read events
//! ([`Handle::events`]).
//!
//! ```no_run
//! use selvedge::Election;
//! use selvedge_core::{NodeId, Span};
//! use selvedge_seal::{Seal, read_key_file};
//! use selvedge_udp::{Host, Seed, Setup};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let setup = Setup::new(NodeId(7), "0.0.0.0:7001".parse()?)
//!     .seeds([Seed::named("mesh.example:7001").await?])
//!     .seal(Seal::new(read_key_file("mesh.key".as_ref())?, "printers"))
//!     .locks(16)
//!     .election(Election::paced(Span::secs(1), 2, 1));
//! let node = Host::start(setup).await?;
//!
//! let mut events = node.events();
//! let guard = node.lock("printer".parse()?).await?;
//! println!("{} members, token {:?}", node.members().len(), guard.token());
//! drop(guard);
//! println!("{:?}", events.recv().await?);
//! node.leave().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | membership, locks, elections and k-groups keep the promises of their crates | as [`selvedge`] says |
//! | each command gets one outcome, also when the node stops meanwhile | |
//! | a reader that saw an event, or got an outcome, reads a state that reflects it | |
//! | an event is read, or counted as missed by the reader ([`RecvError::Lagged`](selvedge_core::shared::RecvError::Lagged)) | |
//! | memory is bounded, whatever arrives and however slow readers are | the limits of [`Setup`] and its settings |
//! | a datagram that is no frame of the mesh is dropped and counted ([`Traffic`]) | |
//! | the port is free when [`Handle::leave`] or [`Handle::kill`] returns | |
//!
//! # Without a runtime
//!
//! [`Host::blocking_start`] gives the node a thread of its own. Then the application needs no
//! runtime: what waits has a `blocking_` form, or goes through
//! [`block_on`](selvedge_core::shared::block_on).
//!
//! ```
//! use selvedge_core::NodeId;
//! use selvedge_udp::{Host, Setup};
//!
//! let alone = Setup::new(NodeId(7), "127.0.0.1:0".parse()?).locks(1);
//! let node = Host::blocking_start(alone)?;
//! let guard = node.blocking_lock("printer".parse()?)?;
//! assert_eq!(guard.token().number, 1);
//! drop(guard);
//! node.blocking_leave()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! One task owns the [`Driver`](selvedge_core::Driver), the socket, the [`Directory`] and the
//! generator. Handles reach it through [`selvedge_core::shared`].
//!
//! A node announces its addresses as its metadata ([`address`]), so that members learn of one
//! another's addresses together with their existence. A node that listens at `[::]` sends to both
//! families of addresses.
//!
//! The socket is a [`Transport`]: [`Udp`], or for tests [`Faulty`] around it.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod address;
mod clock;
mod coordination;
mod directory;
mod error;
mod event;
mod faulty;
mod gates;
mod handle;
mod host;
mod notice;
mod pending;
mod places;
mod publisher;
mod sealing;
mod seeds;
mod service;
mod setup;
mod task;
mod traffic;
mod transport;
mod udp;

pub use clock::{Clock, new_life};
pub use coordination::Map;
pub use directory::{Directory, MAX_NODE_ID};
pub use error::HostError;
pub use event::{MemberInfo, NodeEvent, NodeState, Observed, Twin};
pub use faulty::{FaultControl, FaultCounts, Faults, Faulty};
pub use gates::{Gate, Guard, NoEntry};
pub use handle::{Events, Handle, LockError};
pub use host::Host;
pub use seeds::Seed;
pub use service::{Error, Refused};
pub use setup::Setup;
pub use traffic::{Counter, Traffic, TrafficReport};
pub use transport::{Datagrams, Transport};
pub use udp::Udp;
