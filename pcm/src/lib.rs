//! Functions on nodes that mostly sleep, agreed on at two levels. "An Energy-efficient FaaS Edge
//! Computing platform over IoT Nodes: Focus on Consensus Algorithm" (PCM), sans-IO and without std.
//!
//! So far this crate has what the gateways hold together: the [`Tables`]. The machines of gateways,
//! followers and clients come next.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod client;
mod clustering;
mod duty;

pub mod follower;
mod followers;
pub mod gateway;
mod limits;
mod message;
mod poll;
mod tables;
mod task;
mod tasks;
mod topology;
mod units;

pub use duty::DutyCycle;
pub use followers::Attachment;
pub use limits::Limits;
pub use message::{KIND, Message, Refusal, Run};
pub use tables::{Outcome, Tables, Update};
pub use task::{Answer, Assignment, Bytes, Digest, Function, Library, Returned, TaskId};
pub use tasks::Open;
pub use topology::Hops;
