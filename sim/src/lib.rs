//! Runs many machines together, in two ways.
//!
//! | | explores | time | for |
//! |---|---|---|---|
//! | [`check`] | everything that can happen to a few nodes | any order of events | promises that always hold, and how published rules break them |
//! | [`network`] | one course of events for many nodes, from a seed | virtual, to the microsecond | how often, how fast, how many messages |
//!
//! Both run the machine that runs in production: a [`selvedge_core::Machine`] behind its host's
//! interface, and nothing written for the occasion. Neither knows any protocol.

#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
pub mod check;
mod facts;
mod histories;
pub mod network;

pub use bytes::Bytes;
pub use histories::histories;
