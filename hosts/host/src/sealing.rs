//! Sealing and opening datagrams.

use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Exhausted, Opener, Seal, Sealer, Unopened, since_1970};

use crate::traffic::Counters;

/// The keys' users, and their buffers.
#[derive(Debug)]
pub(crate) struct Sealing {
    sealer: Sealer,
    opener: Opener,
    datagram: Vec<u8>,
    opened: Vec<u8>,
}

impl Sealing {
    /// Senders that hold a key beyond the peers: nodes are replaced.
    const SPARE: usize = 64;

    pub(crate) fn new(seal: Seal, me: NodeId, epoch: Epoch, peers: usize) -> Self {
        let sealer = Sealer::new(&seal.keyring, &seal.group, me, epoch);
        let senders = peers.saturating_add(Self::SPARE);
        let mut opener = Opener::new(seal.keyring, seal.group, senders);
        opener.set_rate(seal.rate);
        Self {
            sealer,
            opener,
            datagram: Vec::new(),
            opened: Vec::new(),
        }
    }

    pub(crate) fn seal(&mut self, kind: u8, frame: &[u8]) -> Result<&[u8], Exhausted> {
        self.sealer.seal(kind, frame, &mut self.datagram)?;
        Ok(&self.datagram)
    }

    /// The frame in a datagram, and the node that sealed it. The system's clock is read each time,
    /// because it may be set while the host runs.
    pub(crate) fn open(
        &mut self,
        kind: u8,
        datagram: &[u8],
        now: Time,
    ) -> Result<(NodeId, &[u8]), Unopened> {
        self.opener.set_clock(now, since_1970());
        let sender = self.opener.open(kind, datagram, now, &mut self.opened)?;
        Ok((sender, &self.opened))
    }
}

/// Counts a datagram that was not opened.
pub(crate) fn count(counters: &Counters, unopened: Unopened) {
    let counter = match unopened {
        Unopened::NotSealed => &counters.unsealed,
        Unopened::WrongKey => &counters.wrong_key,
        Unopened::OldEpoch(_) => &counters.old_epoch,
        Unopened::Replayed(_) | Unopened::TooLate(_) => &counters.replayed,
        Unopened::TooMany(_) => &counters.above_rate,
    };
    counter.add(1);
}
