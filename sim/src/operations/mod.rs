//! Lists of operations on a small mesh, for fuzzers and property tests.
//!
//! A [`Mesh`] is a few machines with their drivers, a clock, and the messages in flight. An
//! [`Operation`] is one event in it, so a list of them reads as a story: `[Enter(0), DeliverAll,
//! Crash(1)]`. A [`Watch`] knows the protocol: it makes the machine of a node that restarts, and
//! checks the promises after every step.
//!
//! | part | role |
//! |---|---|
//! | [`Mesh`] | delivery, loss, duplicates, time, crashes, restarts, pauses, deltas; a refusal that changed something, a refused tick and a message to itself break the run |
//! | your [`Watch`] | machines, promises, counts |
//! | your test | the list: typed, by `arbitrary` (feature `arbitrary`), or from bytes in a format of its own |
//!
//! Each life of a node has a clock of its own, which begins at zero: a machine that compares its
//! time with the time of another node, or of its previous life, breaks its promises here.
//!
//! [`run`] plays a whole list, and [`shrink`] makes a list that breaks a promise short. A protocol with
//! a format of its own plays operation by operation ([`Mesh::play`]). [`Broken`] is the story: the last
//! operations, with the seats and messages that they hit, and which message went from which node to
//! which. A machine or a watch that panics breaks a promise, and has a story like any other.
//!
//! # Fuzz a machine of your own
//!
//! `sim/examples/own_operations.rs` is a program to copy: a lock with a defect, its watch, and the
//! list that finds the defect.

#[cfg(feature = "arbitrary")]
mod arbitrary;
mod mesh;
mod operation;
mod runner;
mod seat;
mod story;
mod watch;

#[cfg(feature = "arbitrary")]
pub use arbitrary::list;
pub use mesh::Mesh;
pub use operation::Operation;
pub use runner::{Broken, run, shrink};
pub use seat::{Letter, Seat};
pub use watch::{Step, Watch};
