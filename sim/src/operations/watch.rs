//! What knows the protocol.

use selvedge_core::{Delta, Driver, Effect, Machine, Member, Time};

use super::{Letter, Seat};

/// One step of one node that is over.
#[derive(Debug)]
pub struct Step<'a, M: Machine> {
    /// The seat of the node.
    pub at: usize,
    /// The life that took the step.
    pub me: Member,
    /// When, by its own clock.
    pub now: Time,
    /// All nodes after it.
    pub seats: &'a [Seat<M>],
    /// The node's driver after it.
    pub driver: &'a Driver<M>,
    /// What it wants, in order.
    pub effects: &'a [Effect<M>],
    /// Why it refused its input, if it did.
    pub refusal: Option<&'a M::Reject>,
}

impl<'a, M: Machine> Step<'a, M> {
    /// The machine after it.
    #[must_use]
    pub fn machine(&self) -> &'a M {
        self.driver.machine()
    }
}

/// Knows the protocol of a [`Mesh`](super::Mesh): its machines, and what they promise.
///
/// An error is a broken promise in words; it ends the run.
pub trait Watch<M: Machine> {
    /// Called after each step, before its messages are in flight.
    ///
    /// # Errors
    /// When a promise is broken.
    fn after(&mut self, step: &Step<'_, M>) -> Result<(), String>;

    /// The next life of a node whose life so far is `before`; `None` if it has to stay down.
    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, M)>;

    /// Called before each step with what is to be compared with.
    fn before(&mut self, _seat: usize, _driver: &Driver<M>) {}

    /// Called when a node that was up has crashed.
    fn crashed(&mut self, _seat: usize, _me: Member, _machine: &M) {}

    /// Called when a node has begun a life.
    fn restarted(&mut self, _seat: usize, _seats: &[Seat<M>]) {}

    /// Which life a node is in after a step. As before it, unless the machine may choose.
    fn member(&self, before: Member, _machine: &M) -> Member {
        before
    }

    /// Whether a node is ever told of another one by [`Introduce`](super::Operation::Introduce) and
    /// [`Announce`](super::Operation::Announce).
    fn may_know(&self, _seat: usize, _about: usize) -> bool {
        true
    }

    /// What others are told about a life that is over.
    fn over(&self, member: Member) -> Delta {
        Delta::Confirmed(member)
    }

    /// Whether this message may be lost.
    fn may_lose(&self, _letter: &Letter<M>) -> bool {
        true
    }
}
