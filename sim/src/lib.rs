//! Runs many machines together, in four ways.
//!
//! | | explores | time | for |
//! |---|---|---|---|
//! | [`check`] | everything that can happen to a few nodes | any order of events | promises that always hold, and how published rules break them |
//! | [`network`] | one course of events for many nodes, from a seed | virtual, to the microsecond | how often, how fast, how many messages |
//! | [`histories`](mod@histories) | random histories of a few nodes whose hosts store, sleep, and have clocks of their own | virtual, to the microsecond | promises of a page, against an oracle that was written from the page |
//! | [`operations`] | lists of operations on a few nodes, from a fuzzer or a property test | virtual | a promise that breaks, as a short story |
//!
//! All run the machine that runs in production: a [`selvedge_core::Machine`] behind its host's
//! interface, with no code written for simulation. None of them contains code of a protocol.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | the same seed and calls give the same run, byte for byte, in every build and on every platform | the machines keep the contract's rules |
//! | a property that "holds" holds in every order of messages, losses, crashes and timers within the stated bounds | 128-bit fingerprints of states do not collide; a machine's `Hash` covers all data that its decisions use, and none of that is in `Untracked` |
//! | a search that was cut short is no pass, and names the bound that stopped it | |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `arbitrary` | [`operations::list`]: operations from bytes, for fuzz targets and property tests |
//! | `stateright` (on by default) | the second engine of [`check`], and its Explorer |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
pub mod check;
mod counts;
mod facts;
pub mod histories;
pub mod network;
pub mod operations;
mod panics;

pub use bytes::Bytes;
pub use histories::histories;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
