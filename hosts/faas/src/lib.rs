//! A host for PCM over MQTT: gateways, followers that sleep, and clients, each a process.
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
//! the brokers belong into a network of their own, or behind a name and a password
//! ([`Access`]); in the clear, as there is no TLS yet. What is no frame, too long, or from a node
//! that the machine does not expect is counted ([`Counters`]), and nothing else happens.
//!
//! # What survives
//!
//! A gateway stores facts before it says what rests on them, many in one write. So an accepted task survives
//! `kill -9` of any process at any time, and of all at once. What waits in mailboxes does not survive the
//! broker inside of a gateway: followers attach anew, and are told again.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

#[cfg(feature = "broker")]
mod broker;
pub mod client;
mod clock;
mod counters;
pub mod find;
pub mod follower;
pub mod frame;
pub mod fuzz;
pub mod gateway;
mod link;
#[cfg(all(feature = "broker", target_os = "linux"))]
mod nodelay;
pub mod notice;
pub mod run;
mod shelf;
pub mod topic;
pub mod watch;

pub use clock::NoChance;
pub use counters::Counters;
pub use link::{Access, Address, AddressError};
pub use shelf::library;
