//! The protocol's part in a mesh.

use selvedge_core::{Delta, Driver, Effect, Machine, Member, Time};

use super::{Letter, Seat};

/// A finished step of one node.
#[derive(Debug)]
pub struct Step<'a, M: Machine> {
    /// The seat of the node.
    pub at: usize,
    /// The life that took the step.
    pub me: Member,
    /// The time of the step, by the node's own clock.
    pub now: Time,
    /// All nodes after the step.
    pub seats: &'a [Seat<M>],
    /// The node's driver after the step.
    pub driver: &'a Driver<M>,
    /// The effects of the step, in order.
    pub effects: &'a [Effect<M>],
    /// The reason for a refusal, if the input was refused.
    pub refusal: Option<&'a M::Reject>,
}

impl<'a, M: Machine> Step<'a, M> {
    /// The machine after the step.
    #[must_use]
    pub fn machine(&self) -> &'a M {
        self.driver.machine()
    }
}

/// The machines and promises of the protocol in a [`Mesh`](super::Mesh).
///
/// An error is a broken promise, in words; it ends the run.
pub trait Watch<M: Machine> {
    /// Called after each step, before its messages are in flight.
    ///
    /// # Errors
    /// When a promise is broken.
    fn after(&mut self, step: &Step<'_, M>) -> Result<(), String>;

    /// The next life of a node whose last life was `before`; `None` if the node has to stay down.
    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, M)>;

    /// Called before each step, so that `after` can compare.
    fn before(&mut self, _seat: usize, _driver: &Driver<M>) {}

    /// Called when a node that was up has crashed.
    fn crashed(&mut self, _seat: usize, _me: Member, _machine: &M) {}

    /// Called when a node has begun a life.
    fn restarted(&mut self, _seat: usize, _seats: &[Seat<M>]) {}

    /// The life that a node is in after a step. Unchanged by default; to override for a machine
    /// that chooses its own incarnation.
    fn member(&self, before: Member, _machine: &M) -> Member {
        before
    }

    /// Returns true if a node may learn of another one by
    /// [`Introduce`](super::Operation::Introduce) and
    /// [`Announce`](super::Operation::Announce). Default: always.
    fn may_know(&self, _seat: usize, _about: usize) -> bool {
        true
    }

    /// The delta by which others learn that a life has ended. Default: [`Delta::Confirmed`].
    fn over(&self, member: Member) -> Delta {
        Delta::Confirmed(member)
    }

    /// Returns true if this message may be lost. Default: always.
    fn may_lose(&self, _letter: &Letter<M>) -> bool {
        true
    }
}
