//! Sealing and opening of datagrams.

use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Exhausted, Keyring, Opener, Seal, Sealer, Unopened, since_1970};

/// The sealer and the opener of a node, with their buffers.
#[derive(Debug)]
pub struct Sealing {
    me: NodeId,
    keyring: Keyring,
    group: String,
    epoch: Epoch,
    sealer: Sealer,
    opener: Opener,
    datagram: Vec<u8>,
    opened: Vec<u8>,
}

impl Sealing {
    /// The number of senders that are remembered beyond the expected ones: nodes come and go.
    const SPARE: usize = 64;

    /// The sealing of the node `me`, which began in this epoch and expects datagrams of
    /// `others` nodes.
    #[must_use]
    pub fn new(seal: Seal, me: NodeId, epoch: Epoch, others: usize) -> Self {
        let sealer = Sealer::new(&seal.keyring, &seal.group, me, epoch);
        let limit = others.saturating_add(Self::SPARE);
        let mut opener = Opener::new(seal.keyring.clone(), seal.group.clone(), limit);
        opener.set_rate(seal.rate);
        Self {
            me,
            keyring: seal.keyring,
            group: seal.group,
            epoch,
            sealer,
            opener,
            datagram: Vec::new(),
            opened: Vec::new(),
        }
    }

    /// The datagram of a frame of this kind.
    ///
    /// # Errors
    /// After 2^64 datagrams. Silence is safe then, and a nonce that is used twice is not.
    pub fn seal(&mut self, kind: u8, frame: &[u8]) -> Result<&[u8], Exhausted> {
        self.sealer.seal(kind, frame, &mut self.datagram)?;
        Ok(&self.datagram)
    }

    /// The frame in a datagram, and the node that sealed it. The system's clock is read each time,
    /// because it may be set meanwhile.
    ///
    /// # Errors
    /// When the datagram is dropped.
    pub fn open(
        &mut self,
        kind: u8,
        datagram: &[u8],
        now: Time,
    ) -> Result<(NodeId, &[u8]), Unopened> {
        self.opener.set_clock(now, since_1970());
        let sender = self.opener.open(kind, datagram, now, &mut self.opened)?;
        Ok((sender, &self.opened))
    }

    /// The epoch of this node.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Seals in a later epoch from now on.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        self.sealer = Sealer::new(&self.keyring, &self.group, self.me, epoch);
        self.epoch = epoch;
    }

    /// Seals with the first key of another ring from now on, and opens with all of them.
    pub fn rotate(&mut self, keyring: Keyring) {
        self.sealer.rotate(&keyring);
        self.opener.rotate(keyring.clone());
        self.keyring = keyring;
    }

    /// The latest epoch of a node, as far as its datagrams were opened.
    #[must_use]
    pub fn latest(&self, sender: NodeId) -> Option<Epoch> {
        self.opener.epoch(sender)
    }
}
