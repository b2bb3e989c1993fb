//! Events of a world, in the order of their times.

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_core::durable::Mark;
use selvedge_core::{Delta, Member, NodeId};
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Command, Message, Site};
use selvedge_routine::State;

pub(crate) enum Ev {
    Deliver {
        from: Member,
        to: NodeId,
        sent: u64,
        message: Message,
    },
    Wake {
        node: NodeId,
        life: u32,
    },
    Stored {
        node: NodeId,
        life: u32,
        mark: Mark,
    },
    Member {
        node: NodeId,
        life: u32,
        delta: Delta,
    },
    Execute {
        node: NodeId,
        life: u32,
        ticket: Ticket,
        value: State,
        until: u64,
    },
    Host {
        node: NodeId,
        life: u32,
        command: Command,
    },
    Step(usize),
    Start {
        node: NodeId,
        file: Option<Arc<Site>>,
    },
    Heal(BTreeSet<(NodeId, NodeId)>),
    Epoch,
    Poll,
}

pub(super) struct Due {
    pub(super) at: u64,
    pub(super) order: u64,
    pub(super) ev: Ev,
}
impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
