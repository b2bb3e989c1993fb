//! The places of nodes, and the messages between them.

use selvedge_core::{Driver, Machine, Member, NodeId, Time};

/// The place of a node.
#[derive(Debug)]
pub struct Seat<M: Machine> {
    pub(super) driver: Option<Driver<M>>,
    pub(super) me: Member,
    pub(super) first: Member,
    pub(super) now: Time,
    pub(super) is_paused: bool,
}

impl<M: Machine> Seat<M> {
    /// A node in its first life.
    pub(super) fn new(me: Member, machine: M) -> Self {
        Self {
            driver: Some(Driver::new(machine)),
            me,
            first: me,
            now: Time::ZERO,
            is_paused: false,
        }
    }

    /// The driver, if the node is up.
    #[must_use]
    pub const fn driver(&self) -> Option<&Driver<M>> {
        self.driver.as_ref()
    }

    /// The machine, if the node is up.
    #[must_use]
    pub fn machine(&self) -> Option<&M> {
        self.driver.as_ref().map(Driver::machine)
    }

    /// The life that the node is in, or was in last.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The node's first life under its id.
    #[must_use]
    pub const fn first(&self) -> Member {
        self.first
    }

    /// The time by its own clock, which is zero when a life begins.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Returns true if the node does nothing until it is resumed.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns true if the node runs, paused or not.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.driver.is_some()
    }
}

/// A message in flight. It is for a node, in any of its lives.
#[derive(Clone, Debug)]
pub struct Letter<M: Machine> {
    /// The life that sent it.
    pub from: Member,
    /// The node that it is for.
    pub to: NodeId,
    /// The message itself.
    pub message: M::Message,
    /// True if it was sent to all.
    pub is_multicast: bool,
}
