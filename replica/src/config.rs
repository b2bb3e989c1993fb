//! The settings of one member. Members may differ in all of them; the settings in which they must
//! agree are in the [`Configuration`](crate::Configuration).
//! Settings here change only how soon something happens. A promise that depended on a setting of
//! each node would break where nodes have different settings.

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
    /// The time to wait for an answer before a message is sent again: above zero. It should be
    /// longer than the usual round trip. It must be longer than the round trip divided by
    /// [`attempts`](Self::attempts), or a state in pages never arrives. A member that gives way to
    /// another candidate waits for twice this time, times its place in the list of members. After
    /// its second ballot in a row that fails it waits 4 times as long, then 16 and at last 32 times,
    /// until a leader has led. Default 200 ms.
    pub resend: Span,
    /// The longest time for which a leader waits before it reports a commit to the others, if it
    /// has no other message to send: above zero. Default 50 ms.
    pub commit_delay: Span,
    /// The number of times that a member asks its leader without an answer before it takes the
    /// leader for lost, and reports that the group is unavailable: from 1. Default 5.
    pub attempts: u8,
    /// The number of committed entries that are kept for members that lack them; a member that
    /// lacks more receives the state whole. Default 256.
    pub window: u32,
    /// The most own proposals that wait at once, the most own reads, and the most of other members'
    /// that a leader keeps: from 1 each. Default 256. Members that ask if the leader is present
    /// come on top.
    pub pending: u32,
    /// The largest state in bytes that is received, with the group's record of proposers. At least
    /// one byte; default 1 MiB. A member that lacks a longer one never gets it:
    /// [`Counters::too_long`](crate::Counters::too_long) counts.
    pub state_limit: u32,
    /// The number of nodes of which the life and the failure are remembered: from 64. Default 256.
    /// Members come before others. Where the mesh has more nodes, a failed node that becomes a
    /// member later may count as present until the membership service reports it again.
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

    /// Checks that these settings can work.
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
