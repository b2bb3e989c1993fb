//! The settings, with units, ranges and the origin of the values.

use selvedge_core::Span;
use selvedge_core::quorum::Quorum;
use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::wire::Room;
use thiserror::Error;

/// The settings of one node for one section. Checked once, by [`Camera::new`](crate::Camera::new).
///
/// Nodes must agree on the meaning of [`max_lives`](Self::max_lives) only; they may differ in everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// An upper bound of the number of lives of nodes that are present, in all, from the beginning
    /// of a request to its end: from 1. A restart with memory lost is one more life, and the former
    /// life still counts for the requests that it has seen. With [`keep`](Self::keep) a request
    /// ends when none of its permissions is kept any more. A node that enters has the OK of more
    /// than half of `max_lives` (thesis, section 4.4: N.upper; erratum C10). No default: a bound that
    /// is too low breaks mutual exclusion; a bound that is too high only refuses more. It can be
    /// raised or lowered while running, by [`Command::SetMaxLives`](crate::Command::SetMaxLives).
    pub max_lives: u32,
    /// The time after which a request is sent again to the nodes that have not answered: longer
    /// than the usual round trip, above zero. Default 500 ms.
    pub resend: Span,
    /// The time after which the request is also sent again to the nodes that answered that this
    /// node has to wait: from `resend`. If at most 4 nodes are awaited, they are asked every
    /// `resend`, because this node is then among the next to enter. Default 2 s.
    pub resend_limit: Span,
    /// The largest number of copies that are sent of a message that was lost before, from 1. A
    /// request that was not answered is sent again once, then twice, and so on, doubling; so is an
    /// OK that is requested again. Over many hops with much loss, a question and its answer hardly
    /// ever both arrive when each is sent once. Default 8: among 256 nodes with 20% loss on a hop,
    /// 64 requesters then wait a 25th of the time that they wait with 1, and send a quarter of the
    /// messages. If answers are slower than `resend`, copies add up.
    pub copies: u8,
    /// The time after which an OK that was not released is sent again. If a RELEASE was lost, the
    /// answer reports that the request is over. Zero switches this off; then an OK whose RELEASE
    /// was lost stays until that node sends a new request, or ends. Default 30 s.
    pub refresh: Span,
    /// The time after its declared failure at which a node that may be inside is passed over. Only
    /// one request has to wait for that: once that node has entered, the others know.
    ///
    /// `None`, the default, is for ever: after a holder that went silent no node enters until it is
    /// certain that the holder is dead, which takes a restart or an operator's word. With a time, a
    /// holder that is slower than that, and not dead, is inside together with its successor. The
    /// holder is notified as soon as it can be reached ([`Event::Fenced`](crate::Event::Fenced)),
    /// and a resource that checks tokens refuses it. Choose a time only with such a resource.
    pub takeover: Option<Span>,
    /// The amount by which the number of a token may exceed the number of its request: from 0. If
    /// it has to exceed it by more, the request is issued again, which costs another round. A
    /// holder that dies inside makes the numbers leap by this amount. Default 64.
    pub slack: u32,
    /// True if permissions are kept after an exit until another node wants to enter, so that a node
    /// that enters again and again sends nothing (Roucairol and Carvalho). On the slow path none
    /// are kept. Default false.
    ///
    /// While a permission is kept, the request that got it is not over, even when this node is
    /// outside, and [`max_lives`](Self::max_lives) has to bound all lives that are present meanwhile. A
    /// node that is cut off keeps its permissions while no message of the others arrives, and does
    /// not learn of their restarts either. It then enters with permissions of lives that have
    /// ended, and another node enters with permissions of the lives after them. If nodes may
    /// restart, a host reads [`Camera::kept`](crate::Camera::kept) and gives the command
    /// [`GiveBack`](crate::Command::GiveBack) in good time, above all when no message from any node
    /// arrives any more. Where none is kept any more, because all others asked, they still wait for
    /// this node when it dies ([`Camera::has_request`](crate::Camera::has_request)), so the host gives
    /// the command then, too. The machine of the crate `selvedge` does so, by a timer.
    pub keep: bool,
    /// True if a node enters as soon as it has the OK of a quorum and of all rivals, without
    /// waiting for the others: safety rests on more than half of `max_lives`, not on all. All are
    /// asked, but once the quorum is complete, the nodes that are not rivals are not asked again.
    /// An entry then takes as long as a usual answer, and not as long as the last. Default false,
    /// as in the thesis.
    pub eager: bool,
    /// True if RELEASE is multicast, as in the thesis; false if it is sent to each node on the
    /// list, and down the slow path's tree. If a multicast reaches neighbours only, set this to
    /// false. Other nodes that were asked learn of the exit after `refresh`. Default true.
    pub multicast: bool,
    /// True if a request that too few known nodes can answer goes on through the whole mesh, from
    /// neighbour to neighbour (thesis, section 4.4), instead of ending. Default true.
    pub slow_path: bool,
    /// The number of levels below its children that a node of the slow path's tree knows. This many
    /// nodes of the tree may fail one below the other, and the others need not be asked again (f of
    /// the thesis, section 4.4): 0 to 7. Default 1.
    pub failures: u8,
    /// The number of trees of other nodes' requests in which this node takes part at once: from 1.
    /// It declines further trees, so if more requests than this wait on the slow path, the next
    /// requests are refused ([`Refusal::TooFew`](crate::Refusal::TooFew)). Default 16.
    pub tree_limit: u16,
    /// The number of times that a child in a tree is asked without an answer before the tree is
    /// built again without it, if the membership service does not report its end: 0 for no limit.
    /// A child that was taken over from a failed node may be on no list here, so 0 is for meshes
    /// where membership reports every end to every node, including the end of a life before a
    /// restart, and no node forgets it ([`peer_limit`](Self::peer_limit)). Elsewhere such a child,
    /// when it dies, holds the request up for ever. Default 8.
    pub tree_patience: u8,
    /// The longest frame in bytes, header and sender included: from 127. Default 1,400.
    pub frame_budget: u16,
    /// The number of nodes that can be remembered, dead nodes included: from 1. Each takes some 80
    /// bytes while a request is open, and 72 more while this node waits. Default 4,096.
    ///
    /// Give at least the number of nodes. A new node takes the place of a node that has ended, or
    /// else of a node that is not on the list, if nothing of that node is open here. After that, a
    /// mention of the forgotten node is news, so its end has to be reported again
    /// ([`Camera::waits_for`](crate::Camera::waits_for)). If no node can be forgotten, a new node
    /// that asks gets no OK from here, and does not wait for it. A request of this node that would
    /// have to wait for more nodes than can be remembered is refused
    /// ([`Refusal::NoRoom`](crate::Refusal::NoRoom)).
    pub peer_limit: u32,
}

/// The largest `failures`.
pub(crate) const FAILURES_MAX: u8 = 7;

/// The largest number of levels of a tree in a message.
pub(crate) const DEPTH_MAX: u8 = FAILURES_MAX + 1;

/// The shortest frame budget: an IEEE 802.15.4 radio frame.
pub(crate) const FRAME_MIN: u16 = 127;

impl Config {
    /// The defaults for `devices` devices, of which at most `restarts` lose their memory and come
    /// back from the beginning of a request to its end: [`max_lives`](Self::max_lives) is the sum. Room for
    /// restarts lowers the number of devices that may be away: see [`survives`](Self::survives).
    ///
    /// ```
    /// use selvedge_camera::Config;
    ///
    /// // Devices, restarts while a request is open, and devices that may be away.
    /// for (devices, restarts, away) in
    ///     [(3, 0, 1), (3, 1, 0), (4, 1, 1), (5, 0, 2), (5, 1, 1), (5, 3, 0), (7, 1, 2)]
    /// {
    ///     let config = Config::for_devices(devices, restarts);
    ///     assert_eq!(config.survives(devices), Some(away));
    /// }
    /// ```
    #[must_use]
    pub const fn for_devices(devices: u32, restarts: u32) -> Self {
        Self::new(devices.saturating_add(restarts))
    }

    /// The number of `devices` devices that may be away while the others still enter:
    /// devices - (max_lives / 2 + 1), with the half rounded down, because the OKs of more than half of
    /// [`max_lives`](Self::max_lives) are needed. `None`: even all of them are too few, and no node ever
    /// enters.
    #[must_use]
    pub const fn survives(&self, devices: u32) -> Option<u32> {
        let Some(needed) = Quorum::Majority.needed(self.max_lives as usize) else {
            return None;
        };
        devices.checked_sub(needed as u32)
    }

    /// The defaults, for at most `max_lives` lives from the beginning of a request to its end.
    ///
    /// ```
    /// let config = selvedge_camera::Config::new(49);
    /// assert!(config.check().is_ok());
    /// ```
    #[must_use]
    pub const fn new(max_lives: u32) -> Self {
        Self {
            max_lives,
            resend: Span::millis(500),
            resend_limit: Span::secs(2),
            copies: 8,
            refresh: Span::secs(30),
            takeover: None,
            slack: 64,
            keep: false,
            eager: false,
            multicast: true,
            slow_path: true,
            failures: 1,
            tree_limit: 16,
            tree_patience: 8,
            frame_budget: 1_400,
            peer_limit: 4_096,
        }
    }

    /// Settings for frames of IEEE 802.15.4: 127 bytes, and slower answers.
    #[must_use]
    pub const fn radio(max_lives: u32) -> Self {
        Self {
            resend: Span::secs(2),
            resend_limit: Span::secs(8),
            copies: 4,
            frame_budget: FRAME_MIN,
            peer_limit: 256,
            tree_limit: 4,
            ..Self::new(max_lives)
        }
    }

    selvedge_core::with_settings! {
        with_max_lives max_lives: u32,
        with_resend resend: Span,
        with_resend_limit resend_limit: Span,
        with_copies copies: u8,
        with_refresh refresh: Span,
        with_takeover takeover: Option<Span>,
        with_slack slack: u32,
        with_keep keep: bool,
        with_eager eager: bool,
        with_multicast multicast: bool,
        with_slow_path slow_path: bool,
        with_failures failures: u8,
        with_tree_limit tree_limit: u16,
        with_tree_patience tree_patience: u8,
        with_frame_budget frame_budget: u16,
        with_peer_limit peer_limit: u32,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        const MICRO: Span = Span::micros(1);
        const FOR_EVER: Span = Span(u64::MAX);
        let settings = [
            Setting::number("max_lives", self.max_lives as u64, 1, u64::MAX),
            Setting::time("resend", self.resend, MICRO, FOR_EVER),
            Setting::number("failures", self.failures as u64, 0, FAILURES_MAX as u64),
            Setting::number("tree_limit", self.tree_limit as u64, 1, u64::MAX),
            Setting::number("copies", self.copies as u64, 1, u64::MAX),
            Setting::number(
                "frame_budget",
                self.frame_budget as u64,
                FRAME_MIN as u64,
                u64::MAX,
            )
            .counts("bytes"),
            Setting::number("peer_limit", self.peer_limit as u64, 1, u64::MAX),
        ];
        if let Err(outside) = settings::check(&settings) {
            return Err(ConfigError::Range(outside));
        }
        if self.resend_limit.0 < self.resend.0 {
            return Err(ConfigError::ResendLimit {
                resend: self.resend,
                limit: self.resend_limit,
            });
        }
        Ok(())
    }

    /// The number of copies to send after `copies` were lost. Always 0, for one copy, if the
    /// setting is one: then nothing is counted.
    pub(crate) fn more_copies(&self, copies: u8) -> u8 {
        if self.copies == 1 {
            return 0;
        }
        copies.saturating_mul(2).clamp(1, self.copies)
    }

    /// The bytes that the list in a message may take, where the message without its list takes
    /// `fixed`.
    pub(crate) const fn list_room(&self, fixed: usize) -> Room {
        Room::new(self.frame_budget, fixed)
    }
}

/// The setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// The nodes that answered that this node has to wait would be asked more often than the
    /// others.
    #[error("resend_limit is {limit:?} and resend {resend:?}: set resend_limit to at least resend")]
    ResendLimit {
        /// The value of `resend`.
        resend: Span,
        /// The value of `resend_limit`.
        limit: Span,
    },
}
