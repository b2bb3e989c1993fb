//! Sealing of a node's datagrams, and later starts of the node itself.

use selvedge_core::{NodeId, Time};
use selvedge_host::parts;
use selvedge_seal::{Epoch, Seal};

use crate::notice::Later;

/// The sealing of a host, and the starts of this node.
pub(crate) struct Sealing {
    pub(crate) datagrams: parts::Sealing,
    /// The start of this node, by the host's clock.
    started: Time,
    /// The microseconds since 1970.
    since_1970: fn() -> u64,
    /// A start of this node that was ahead of the system's clock at its first notice.
    ahead: Option<Epoch>,
}

impl Sealing {
    /// The sealing of the node `me`, which starts now, in this epoch by its clock.
    pub(crate) fn new(
        seal: Seal,
        me: NodeId,
        (epoch, started): (Epoch, Time),
        since_1970: fn() -> u64,
        members: usize,
    ) -> Self {
        Self {
            datagrams: parts::Sealing::new(seal, me, epoch, members),
            started,
            since_1970,
            ahead: None,
        }
    }

    /// Handles other nodes' refusal of this node because of a later start. If that was a former
    /// life, and the system's clock has passed it, this node takes a new epoch, so that it is
    /// accepted again. Returns that epoch, which [`set`](Self::set) puts in force.
    pub(crate) fn overtake(&mut self, later: Epoch, now: Time) -> Option<Epoch> {
        let since_start = now.since(self.started);
        match Later::of(later, (self.since_1970)(), since_start, self.ahead) {
            Later::Twin => return None,
            Later::Ahead => {
                self.ahead = Some(later);
                return None;
            }
            Later::Former => {}
        }
        // Without random numbers the epoch stays, and the next notice tries again.
        let former = Some(self.datagrams.epoch());
        Epoch::at((self.since_1970)(), former).ok()
    }

    /// Seals in this epoch from now on.
    pub(crate) fn set(&mut self, epoch: Epoch) {
        self.datagrams.set_epoch(epoch);
        self.ahead = None;
    }
}
