//! The settings of one member. Members may differ in all of them; what they have to agree in stands
//! in the [`Configuration`](crate::Configuration).
//! Settings here change how soon something happens, and nothing else: where a promise depends on a setting of
//! each node, nodes with different settings break it.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

/// The settings of one member. Checked once, when the machine is made.
///
/// ```
/// use selvedge_core::Span;
/// use selvedge_replica::Config;
///
/// let config = Config::new().with_resend(Span::millis(50)).with_window(1_000);
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// How long to wait for an answer before a message is sent again: above zero. It should be
    /// longer than the usual round trip; [`attempts`](Self::attempts) times as long it must be, or
    /// a state in pages never arrives. Default 200 ms.
    pub resend: Span,
    /// How long a leader may wait before it tells what is committed, if nothing else is to be sent
    /// that tells it: above zero. Default 50 ms.
    pub commit_delay: Span,
    /// How often a member asks its leader in vain before it takes the leader for lost, and says
    /// that the group is unavailable: from 1. Default 5.
    pub attempts: u8,
    /// How many committed entries are kept for members that lack them; a member that lacks more
    /// gets the state whole. Default 256.
    pub window: u32,
    /// How many own proposals wait at once, how many own reads, and how many of others the leader
    /// keeps: from 1 each. Default 256. Members that ask whether it is there come on top.
    pub pending: u32,
    /// The largest state in bytes that is received, with what the group remembers of proposers: at
    /// least 1. Default 1 MiB. A member that lacks a longer one never gets it:
    /// [`Counters::too_long`](crate::Counters::too_long) counts.
    pub state_limit: u32,
    /// Of how many nodes the life and the failure are remembered: from 64. Default 256. Members come
    /// before others; where the mesh has more nodes, one that became a member later may count as
    /// here until the membership service tells of it again.
    pub peers: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resend: Span::millis(200),
            commit_delay: Span::millis(50),
            attempts: 5,
            window: 256,
            pending: 256,
            state_limit: 1 << 20,
            peers: 256,
        }
    }

    selvedge_core::with_settings! {
        with_resend resend: Span,
        with_commit_delay commit_delay: Span,
        with_attempts attempts: u8,
        with_window window: u32,
        with_pending pending: u32,
        with_state_limit state_limit: u32,
        with_peers peers: u32,
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let most = u32::MAX as u64;
        settings::check(&[
            Setting::time("resend", self.resend, Span(1), Span(u64::MAX)),
            Setting::time("commit_delay", self.commit_delay, Span(1), Span(u64::MAX)),
            Setting::number("attempts", self.attempts as u64, 1, u8::MAX as u64),
            Setting::number("window", self.window as u64, 0, most).counts("entries"),
            Setting::number("pending", self.pending as u64, 1, most),
            Setting::number("state_limit", self.state_limit as u64, 1, most).counts("bytes"),
            Setting::number("peers", self.peers as u64, 64, most),
        ])
    }
}
