//! A host for one node over UDP, on tokio: membership, the sections that it may enter, and who
//! leads.
//!
//! One task a node owns the [`Driver`](selvedge_core::Driver), the socket, the [`Directory`] and
//! the generator; there are no locks. Whoever started it holds a [`Host`] and reads [`Seen`] events
//! from a channel. Any datagram may come: what is no frame is dropped and counted ([`Traffic`]).
//!
//! With [`Setup::exclusion`] the node takes part in mutual exclusion ([`mesh`](selvedge)), and
//! [`Host::section`] gives the application a gate through which its threads and tasks queue for a
//! section. With [`Setup::election`] it takes part in elections, and [`Host::elections`] says who
//! leads.
//!
//! A node announces its addresses as its metadata ([`address`]), so that members learn of one
//! another's addresses together with their existence. A node that listens at `[::]` speaks to both
//! families of addresses.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod address;
mod clock;
mod directory;

mod host;
mod leading;
mod locks;
mod notice;
mod places;
mod sealing;
mod seeds;
mod socket;
mod task;
mod traffic;
mod weather;

pub use clock::{Clock, new_life};
pub use directory::{Directory, MAX_NODE_ID};

pub use host::{Host, HostError, Known, Refused, Seen, Setup, Told};
pub use leading::{Changes, Elections};
pub use locks::{NoEntry, SectionGate, SectionGuard};
pub use notice::Twin;
pub use seeds::Seed;
pub use traffic::{Counter, Traffic, TrafficReport};
pub use weather::Weather;
