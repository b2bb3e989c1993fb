//! Sealing and opening of a task's datagrams.

use selvedge_core::{NodeId, Time};

use selvedge_seal::{Epoch, Keyring, Opener, Seal, Sealer, Unopened, since_1970};

use crate::Traffic;
use crate::notice::Later;

/// The sealer and the opener, with their buffers.
pub(crate) struct Sealing {
    me: NodeId,
    keyring: Keyring,
    group: String,
    epoch: Epoch,
    /// The start of this node, by the host's clock.
    started: Time,
    /// A start of this node that was ahead of the system's clock at its first notice.
    ahead: Option<Epoch>,
    pub(crate) sealer: Sealer,
    opener: Opener,
    pub(crate) datagram: Vec<u8>,
    pub(crate) opened: Vec<u8>,
}

impl Sealing {
    /// The number of senders beyond the members of a list: nodes come and go.
    const SPARE: usize = 64;

    pub(crate) fn new(seal: Seal, me: NodeId, start: (Epoch, Time), members: usize) -> Self {
        let (epoch, started) = start;
        let sealer = Sealer::new(&seal.keyring, &seal.group, me, epoch);
        let limit = members.saturating_add(Self::SPARE);
        let mut opener = Opener::new(seal.keyring.clone(), seal.group.clone(), limit);
        opener.set_rate(seal.rate);
        Self {
            me,
            keyring: seal.keyring,
            group: seal.group,
            epoch,
            started,
            ahead: None,
            sealer,
            opener,
            datagram: Vec::new(),
            opened: Vec::new(),
        }
    }

    /// Opens a datagram. The system's clock is read each time, because it may be set meanwhile.
    pub(crate) fn open(
        &mut self,
        kind: u8,
        datagram: &[u8],
        now: Time,
    ) -> Result<NodeId, Unopened> {
        self.opener.set_clock(now, since_1970());
        self.opener.open(kind, datagram, now, &mut self.opened)
    }

    /// Handles other nodes' refusal of this node because of a later start. If that was a former
    /// life, and the system's clock has passed it, this node takes a new epoch, so that it is
    /// accepted again. Returns true if it did.
    pub(crate) fn overtake(&mut self, later: Epoch, now: Time) -> bool {
        let since_start = now.since(self.started);
        match Later::of(later, since_1970(), since_start, self.ahead) {
            Later::Twin => return false,
            Later::Ahead => {
                self.ahead = Some(later);
                return false;
            }
            Later::Former => {}
        }
        // Without random numbers the epoch stays, and the next notice tries again.
        let Ok(epoch) = Epoch::now() else {
            return false;
        };
        self.sealer = Sealer::new(&self.keyring, &self.group, self.me, epoch);
        (self.epoch, self.ahead) = (epoch, None);
        true
    }

    /// The epoch of this start of this node.
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
