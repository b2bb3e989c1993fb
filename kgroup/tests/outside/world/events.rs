//! Events of a world.

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
    /// Alarms of a node, one behind the other.
    Wake {
        node: NodeId,
        life: u32,
        times: u64,
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
