//! What a task needs to seal and open datagrams.

use selvedge_core::{NodeId, Time};

use selvedge_seal::{Epoch, Keyring, Opener, Seal, Sealer, Unopened, since_1970};

use crate::Traffic;
use crate::notice::Later;

/// What seals and opens, and what is being sealed and opened.
pub(crate) struct Sealing {
    me: NodeId,
    keyring: Keyring,
    group: String,
    epoch: Epoch,
    /// When this node started, by the host's clock.
    started: Time,
    /// A start of this node that was ahead of the system's clock when it was heard of.
    ahead: Option<Epoch>,
    pub(crate) sealer: Sealer,
    opener: Opener,
    pub(crate) datagram: Vec<u8>,
    pub(crate) opened: Vec<u8>,
}

impl Sealing {
    /// Senders beyond the members that a list holds: nodes come and go.
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

    /// Others refuse this node because of a later start of it. Where that was a former life, and
    /// the system's clock has passed it, this node takes an epoch of now, so that it is heard
    /// again. Whether it did.
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
        // Without random numbers it stays as it is, and tries again at the next notice.
        let Ok(epoch) = Epoch::now() else {
            return false;
        };
        self.sealer = Sealer::new(&self.keyring, &self.group, self.me, epoch);
        (self.epoch, self.ahead) = (epoch, None);
        true
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
