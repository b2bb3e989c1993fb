//! A member of the mesh for the programs of one host. They use it over HTTP on a loopback address or a unix
//! socket, in any language, and are no members themselves: see [`api`].
//!
//! | promise | under which assumptions |
//! |---|---|
//! | locks, leaderships, permits and listings keep the promises of [the recipes](selvedge_udp::recipes) | those of the recipes; a program heeds `is_held` and `lapsed`, or the resource checks tokens |
//! | what a program holds ends when it releases it, when its connection closes (on Linux also 20 s after its host vanished), or when it sends no request for its time to live | the agent runs; if it does not, after the same time to live, as its session ends |
//! | a map goes on while no more than `failures` of its nodes are away | nodes store their state; messages get through infinitely often |
//! | a request has an answer within its `wait` and 20 s | |
//! | at most 2,048 connections of each of TCP and the socket, of which 512 are of one process at the socket or of one other host, and 1,024 holds, of which one kind of recipe has at most 1,024 in all of the mesh; other requests wait or are refused | |
//! | with an audit, a line for each change, each refused client and the end of each hold, or a counted loss | the process is not killed; the host is not without power |
//! | an agent that leaves reports first that its holds lapse, and ends each when it is released or is certain no longer | the process is not killed before |
//!
//! An agent decides nothing by itself: it has one session of a map for each hold, and reports what the session
//! knows. So a program that holds a lock through an agent is as safe as one that embeds
//! [`selvedge_udp`].
//!
//! ```no_run
//! use selvedge_agent::config::{Distances, Settings};
//!
//! let settings = Settings::parse(
//!     r#"
//!     id = 1
//!     listen = "192.0.2.7:7001"
//!     join = ["192.0.2.8:7001"]
//!     key = "/etc/selvedge/mesh.key"
//!     state = "/var/lib/selvedge"
//!     founders = [1, 2, 3]
//!     distances = "measured"
//!     "#,
//! )?;
//! assert_eq!(settings.founders, [1, 2, 3]);
//! assert_eq!(settings.distances, Some(Distances::Measured));
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod api;
mod audit;
pub mod config;
mod failure;
pub mod growth;
mod held;
mod hold;
mod keeper;
mod lines;
mod log;
mod message;
mod peers;
pub mod reload;
pub mod run;
mod serve;

pub use failure::Failure;
