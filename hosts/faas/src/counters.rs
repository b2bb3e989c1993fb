//! Counters of a host.

use serde::{Deserialize, Serialize};

use crate::frame::FrameError;

/// Counters of a host since its start. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Messages received and accepted.
    pub received: u64,
    /// Messages that were handed to a broker.
    pub sent: u64,
    /// Messages that were not sent, because a broker was down or too slow.
    pub unsent: u64,
    /// Topics that are not this host's.
    pub foreign_topics: u64,
    /// Payloads longer than a frame may be.
    pub long: u64,
    /// Frames of another version.
    pub versions: u64,
    /// Frames of another kind.
    pub kinds: u64,
    /// Frames that are damaged, or payloads that are no frames.
    pub malformed: u64,
    /// Messages that the machine refused: of former lives, or of a peer that does not follow the
    /// rules.
    pub refused: u64,
    /// Messages between followers that a gateway forwarded.
    pub relayed: u64,
    /// Payloads for followers that are not messages between followers, for an unknown receiver, or
    /// that could not be sent.
    pub not_relayed: u64,
    /// Tasks that ended, at a gateway; functions that ran, at a follower.
    pub ended: u64,
    /// The number of writes of facts to the disk.
    pub writes: u64,
    /// The time of these writes, in microseconds.
    pub write_us: u64,
    /// The number of times a broker was lost.
    pub lost_links: u64,
    /// Modules that a follower got from its gateway.
    pub fetched_modules: u64,
    /// Modules that a follower took from its disk.
    pub read_modules: u64,
    /// Modules on the disk that were damaged. They are requested again.
    pub damaged_modules: u64,
    /// Messages that brokers retained. They are ignored.
    pub retained: u64,
    /// Modules that a follower could not write to its disk.
    pub unwritten_modules: u64,
}

impl Counters {
    pub(crate) const fn count(&mut self, why: &FrameError) {
        match why {
            FrameError::Long(_) => self.long += 1,
            FrameError::Version(_) => self.versions += 1,
            FrameError::Kind(_) => self.kinds += 1,
            FrameError::Malformed => self.malformed += 1,
        }
    }
}
