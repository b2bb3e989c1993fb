//! The promises as properties, and the scenarios that check them.
//!
//! This crate's tests, `selvedge check`, and programs that compose these machines run one list,
//! [`scenarios`]. Real gateways, followers and clients explore every order of messages. A mailbox that
//! is emptied is modelled as lost messages, a follower that sleeps as late messages. Where the paper's
//! rule breaks a promise, two scenarios have one name: the first has this crate's rule, which must keep
//! the promise, the second has the published rule, which must break it.

mod errata;
mod gateways;
pub mod operations;
pub mod paper;
mod party;
mod property;
mod setup;
mod sound;
mod votes;
mod watch;

use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, holds};

pub use party::{Ask, Decided, Party};
pub use setup::{Memory, Offload, Promise, Setup, Sight};
pub use votes::verdict;
pub use watch::{Notified, Watch};

/// The scenarios: first those that must hold, then the pairs of this crate's rule and the paper's.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(gateways::quick());
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(gateways::deep().into_iter().map(Scenario::deep));
    all.extend(paper::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all.extend(paper::pairs());
    all
}
