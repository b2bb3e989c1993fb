//! What a task needs to seal and open datagrams.

use selvedge_core::{NodeId, Time};

use crate::seal::{Epoch, Opener, Seal, Sealer, Unopened, since_1970};

use super::Traffic;

/// What seals and opens, and what is being sealed and opened.
pub(crate) struct Sealing {
    epoch: Epoch,
    pub(crate) sealer: Sealer,
    opener: Opener,
    pub(crate) datagram: Vec<u8>,
    pub(crate) opened: Vec<u8>,
}

impl Sealing {
    /// Senders beyond the members that a list holds: nodes come and go.
    const SPARE: usize = 64;

    pub(crate) fn new(seal: Seal, me: NodeId, epoch: Epoch, members: usize) -> Self {
        let sealer = Sealer::new(&seal.keyring, &seal.group, me, epoch);
        let limit = members.saturating_add(Self::SPARE);
        let mut opener = Opener::new(seal.keyring, seal.group, limit);
        opener.set_rate(seal.rate);
        Self {
            epoch,
            sealer,
            opener,
            datagram: Vec::new(),
            opened: Vec::new(),
        }
    }

    /// Opens a datagram. The system's clock is read each time, for it may be set while we run.
    pub(crate) fn open(
        &mut self,
        kind: u8,
        datagram: &[u8],
        now: Time,
    ) -> Result<NodeId, Unopened> {
        self.opener.set_clock(now, since_1970());
        self.opener.open(kind, datagram, now, &mut self.opened)
    }

    /// This start of this node.
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The latest start of a node, as far as its datagrams were opened.
    pub(crate) fn latest(&self, sender: NodeId) -> Option<Epoch> {
        self.opener.epoch(sender)
    }
}

/// Counts a datagram that was not opened.
pub(crate) fn count(traffic: &Traffic, unopened: Unopened) {
    let counter = match unopened {
        Unopened::NotSealed => &traffic.unsealed,
        Unopened::WrongKey => &traffic.wrong_key,
        Unopened::OldEpoch(_) => &traffic.old_epoch,
        Unopened::Replayed(_) | Unopened::TooLate(_) => &traffic.replayed,
        Unopened::TooMany(_) => &traffic.above_rate,
    };
    counter.add(1);
}
