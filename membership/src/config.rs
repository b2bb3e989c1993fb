//! The settings, with their units, ranges and sources.

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::wire::Room;
use selvedge_core::{Ratio, Span};
use thiserror::Error;

use crate::message::{BODY_MAX_LEN, BROADCAST_MAX_LEN, PAYLOAD_MAX_LEN, RECORD_MAX_LEN};

/// The settings of one node. Checked once, by [`Membership::new`](crate::Membership::new) and by
/// [`Command::SetConfig`](crate::Command::SetConfig).
///
/// Times are in microseconds ([`Span`]) or in protocol periods, as each field states. Nodes of one
/// mesh may differ in everything but should share `period`, `suspicion` and `frame_budget`.
/// `metadata_limit` and `broadcast_len` of every node must be at least the length of the metadata
/// and broadcasts of any node: a node refuses every frame with longer ones. Raise the limits on all
/// nodes first.
///
/// ```
/// use selvedge_core::Span;
/// use selvedge_membership::Config;
///
/// let config = Config::default().with_period(Span::secs(2)).with_relays(1);
/// assert_eq!(config.relays, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// The protocol period: one probe is sent in each. Above `probe_timeout`. Default 1 s
    /// (thesis, section 4.1.1: 20 units).
    pub period: Span,
    /// Each period is longer by a random time below this, so that nodes do not fall into step.
    /// At most `period`. Default 100 ms; zero switches it off.
    pub jitter: Span,
    /// The wait for the direct acknowledgement before relays are asked: above the longest usual
    /// round trip, below `period`. Default 300 ms.
    pub probe_timeout: Span,
    /// The number of relays that are asked to probe a silent target: 0 to 16. Default 3 (thesis).
    pub relays: u8,
    /// The choice of probe targets. Default [`Selection::BoundedMix`] with every 8th in turn.
    pub selection: Selection,
    /// If true, a probe is left out when a message of its target arrived in the period that just
    /// ended and there is no news to pass on: the probe would carry no information. A failure is
    /// detected later by a period at most. Default true; the thesis probes always.
    pub suppress_probes: bool,
    /// The exponent m of the weight 1/r^m: 0 (uniform, which is SWIM) to 8. Default 3 (thesis).
    pub exponent: u8,
    /// The distance, in the host's unit, at and below which all members weigh the same: from 1.
    /// With hop counts 1; with centimetres the shortest distance that matters. Default 1.
    pub unit_distance: u32,
    /// The distance of a member for which the host has set none: from 1. Default 1.
    pub default_distance: u32,
    /// Members at this distance or nearer are 1-hop neighbours and receive UNLUCKY reports. Default
    /// 1.
    pub neighbour_distance: u32,
    /// If set, distances are measured: r is the smoothed round trip of this node's own probes.
    /// Members up to this one weigh the same and are neighbours; if none is that near, the nearest
    /// is one. A member keeps the default distance until its first answer, and a distance that the
    /// host sets until it is forgotten or this node leaves; such members are neighbours by
    /// `neighbour_distance`. From 1 us to `period`. Default `None`: the host sets the distances. For
    /// IP networks take [`ROUND_TRIP_UNIT`](Self::ROUND_TRIP_UNIT).
    pub round_trip_unit: Option<Span>,
    /// The time in which a suspect may refute. Default 3 ceil(ln(N + 1)) periods.
    pub suspicion: SuspicionLength,
    /// The number of failed probes in a row after which a suspicion is sent to others: 1 (at once,
    /// as in SWIM) or 2 (the default). The suspect's time runs from the first failed probe in both
    /// cases.
    pub publish_after: u8,
    /// An update is sent this number times ceil(ln(N + 1)): 1 to 32. Default 3.
    pub retransmit_factor: u8,
    /// Active feedback (thesis, 3.2.1); `None` switches it off.
    pub active: Option<ActiveFeedback>,
    /// Passive feedback (thesis, 3.2.2); `None` switches it off.
    pub passive: Option<PassiveFeedback>,
    /// The largest extension of this node's own timeouts when this node is the slow one: the factor
    /// is 1 to 1 + this. 0 switches it off. Default 2.
    pub stretch_limit: u8,
    /// The number of probes in a row with another digest after which two nodes compare their lists;
    /// a single one is enough where this node's digest has not changed for four times as many
    /// periods. 0 switches comparing off. Default 4.
    pub sync_after: u8,
    /// The number of periods between two probes of a seed or a dead member, for ever; 0 switches
    /// these probes off. A node that knows no other node sends one every period. Default 5.
    pub reconnect_every: u16,
    /// The number of periods in which a leaving node says good-bye: from 1. Default 4.
    pub farewell_periods: u16,
    /// The longest frame in bytes, header and sender included: from 96. Default 1,400.
    pub frame_budget: u16,
    /// The longest metadata in bytes: up to the room in a frame, which is 80 bytes less than
    /// `frame_budget`, and up to 16,383. Each change of a member's metadata, each refutation and each
    /// join sends it `retransmit_factor` times ceil(ln(N + 1)) times from each node. Default 600: the
    /// UDP host has 512 of them for the application. A frame has room for two such records, or for
    /// one beside the longest broadcast and five others.
    pub metadata_limit: u16,
    /// The number of nodes that may be remembered, dead ones included. The dead give way to live
    /// members. Set it to the largest number of members at one time, plus the number that leave
    /// within `tombstone_periods`: 2 to 2^24. Default 4,096.
    pub member_limit: u32,
    /// The number of claims about others that are believed from one node in a period. A new member,
    /// a change of metadata, a suspicion and a failure cost 1 each, unless the member was suspected
    /// or failed before. The claim that a live member has left costs half of this, at least 1; that
    /// a failed member has left, 1. A member's claims about itself are believed beyond that, and so
    /// is the list that a joiner fetches. A later life of a live member is never believed from
    /// another node; the member is asked. With 0 all nodes are believed in everything. Default 8.
    pub hearsay_limit: u16,
    /// The number of updates that may wait to be passed on: from 1. Default 256.
    pub gossip_limit: u16,
    /// The longest application broadcast in bytes: up to the room in a frame, which is 76 bytes
    /// less than `frame_budget`, and up to 16,383. Default 512.
    pub broadcast_len: u16,
    /// The number of broadcasts that may wait to be passed on; eight times as many are remembered,
    /// so that each is delivered once. Default 32.
    pub broadcast_limit: u16,
    /// The number of dead members that are remembered: from 1, below `member_limit`. Members that
    /// failed are forgotten before members that left. Set it above the number of members that leave
    /// within `tombstone_periods`, or one of them may come back from an old list. A node that
    /// forgets a dead member before its time probes the members that other nodes report, for
    /// `tombstone_periods`: up to eight messages for each newcomer. Default 256.
    pub tombstone_limit: u16,
    /// The number of periods for which a dead member is remembered: longer than the longest
    /// suspicion, at most 32,767; 0 is for ever. Must outlast the time in which the slowest node
    /// removes a dead member by itself. Default 2,000.
    pub tombstone_periods: u16,
    /// The upper limit of the counts of suspicions and missed probes of a member: 0 to 255. Default
    /// 255.
    pub health_limit: u8,
}

/// The choice of probe targets; the weights are 1/r^m in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Selection {
    /// Only by weight: the thesis' rule. No bound on the time between two probes of one member.
    Plain,
    /// The thesis' bag: draw by weight, subtract the smallest weight from the drawn member, refill
    /// when all weights are used up. Its bound is of little use in practice: thousands of periods.
    TimeBounded,
    /// A mix: one probe in `every` goes through the list in turn, the others are drawn by weight.
    /// Every pinger probes every member within N times `every` periods. `every` is from 1 (round
    /// robin).
    BoundedMix {
        /// The number of probes, of which one is taken in turn.
        every: u16,
    },
}

/// The time in which a suspect may refute, in periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SuspicionLength {
    /// This number of periods, from 1 (thesis, section 4.1.1: 8).
    Fixed(u16),
    /// This number times ceil(ln(N + 1)) periods, 1 to 1,023, with N the number of live members.
    PerLog(u16),
}

impl SuspicionLength {
    /// The number of periods, with `live` members.
    pub(crate) fn periods(self, live: usize) -> u16 {
        match self {
            Self::Fixed(periods) => periods,
            Self::PerLog(factor) => factor * ceil_ln(live + 1),
        }
    }
}

/// ceil(ln(n)) of a number from 1.
pub(crate) fn ceil_ln(n: usize) -> u16 {
    // The largest integers with a logarithm of at most 0, 1, 2, ..
    const STEPS: [usize; 15] = [
        1, 2, 7, 20, 54, 148, 403, 1_096, 2_980, 8_103, 22_026, 59_874, 162_754, 442_413, 1_202_604,
    ];
    STEPS.partition_point(|&step| step < n) as u16
}

/// Active feedback: a node that is seldom probed reports that to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ActiveFeedback {
    /// The weight alpha of a new interval in the average is 1 in `smoothing`: from 1. Default 8
    /// (thesis: 0.125).
    pub smoothing: u8,
    /// ACTIVE_TIMEOUT in periods: 1 to 16,384. Default 4 (thesis: 80 units of 20).
    pub timeout: u16,
}

/// Passive feedback: in some periods the probe goes to a member that was silent for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PassiveFeedback {
    /// p_passive, the probability of a check in a period. Default 1 in 10 (thesis).
    pub chance: Ratio,
    /// PASSIVE_TIMEOUT in periods: 1 to 32,767. Default 20 (thesis: 400 units of 20).
    pub timeout: u16,
}

impl ActiveFeedback {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            smoothing: 8,
            timeout: 4,
        }
    }
}

impl Default for ActiveFeedback {
    fn default() -> Self {
        Self::new()
    }
}

impl PassiveFeedback {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            chance: Ratio::new(1, 10),
            timeout: 20,
        }
    }
}

impl Default for PassiveFeedback {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults, for IP networks: a period of one second, frames of 1,400 bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            period: Span::secs(1),
            jitter: Span::millis(100),
            probe_timeout: Span::millis(300),
            relays: 3,
            selection: Selection::BoundedMix { every: 8 },
            suppress_probes: true,
            exponent: 3,
            unit_distance: 1,
            default_distance: 1,
            neighbour_distance: 1,
            round_trip_unit: None,
            suspicion: SuspicionLength::PerLog(3),
            publish_after: 2,
            retransmit_factor: 3,
            active: Some(ActiveFeedback::new()),
            passive: Some(PassiveFeedback::new()),
            stretch_limit: 2,
            sync_after: 4,
            reconnect_every: 5,
            farewell_periods: 4,
            frame_budget: 1_400,
            metadata_limit: 600,
            member_limit: 4_096,
            hearsay_limit: 8,
            gossip_limit: 256,
            broadcast_len: 512,
            broadcast_limit: 32,
            tombstone_limit: 256,
            tombstone_periods: 2_000,
            health_limit: 255,
        }
    }

    /// A unit of measured distances that suits IP networks: 5 ms. All members of one site weigh the
    /// same, also on a busy machine or a wireless network.
    pub const ROUND_TRIP_UNIT: Span = Span::millis(5);

    /// For 802.15.4 radios: frames of 127 bytes, short metadata and broadcasts, small tables.
    #[must_use]
    pub fn radio() -> Self {
        Self {
            frame_budget: 127,
            metadata_limit: 16,
            broadcast_len: 48,
            broadcast_limit: 8,
            member_limit: 512,
            gossip_limit: 64,
            ..Self::default()
        }
    }

    /// The thesis' setting (section 4.1.1) with 1 unit = 1 ms: period 20 plus 0 to 2, suspicion
    /// 160, three relays, plain choice with m = 3, both feedbacks, suspicions sent at once, no
    /// stretching, and all nodes believed. The thesis has no rules for joining, syncing and
    /// reconnecting; these settings are this crate's own.
    #[must_use]
    pub fn thesis() -> Self {
        Self {
            period: Span::millis(20),
            jitter: Span::millis(2),
            probe_timeout: Span::millis(8),
            selection: Selection::Plain,
            suppress_probes: false,
            suspicion: SuspicionLength::Fixed(8),
            publish_after: 1,
            stretch_limit: 0,
            hearsay_limit: 0,
            ..Self::default()
        }
    }

    selvedge_core::with_settings! {
        with_period period: Span,
        with_jitter jitter: Span,
        with_probe_timeout probe_timeout: Span,
        with_relays relays: u8,
        with_selection selection: Selection,
        with_suppress_probes suppress_probes: bool,
        with_exponent exponent: u8,
        with_unit_distance unit_distance: u32,
        with_default_distance default_distance: u32,
        with_neighbour_distance neighbour_distance: u32,
        with_round_trip_unit round_trip_unit: Option<Span>,
        with_suspicion suspicion: SuspicionLength,
        with_publish_after publish_after: u8,
        with_retransmit_factor retransmit_factor: u8,
        with_active active: Option<ActiveFeedback>,
        with_passive passive: Option<PassiveFeedback>,
        with_stretch_limit stretch_limit: u8,
        with_sync_after sync_after: u8,
        with_reconnect_every reconnect_every: u16,
        with_farewell_periods farewell_periods: u16,
        with_frame_budget frame_budget: u16,
        with_metadata_limit metadata_limit: u16,
        with_member_limit member_limit: u32,
        with_hearsay_limit hearsay_limit: u16,
        with_gossip_limit gossip_limit: u16,
        with_broadcast_len broadcast_len: u16,
        with_broadcast_limit broadcast_limit: u16,
        with_tombstone_limit tombstone_limit: u16,
        with_tombstone_periods tombstone_periods: u16,
        with_health_limit health_limit: u8,
    }

    /// Checks that a node works with these settings.
    ///
    /// # Errors
    /// The first setting that does not work, alone or beside another.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.probe_timeout == Span::ZERO || self.probe_timeout >= self.period {
            return Err(ConfigError::ProbeTimeout {
                probe_timeout: self.probe_timeout,
                period: self.period,
            });
        }
        settings::check(&self.ranges())?;
        self.check_tombstones()
    }

    /// The numbers that have a range of their own.
    fn ranges(&self) -> [Setting; 21] {
        const MOST_16: u64 = u16::MAX as u64;
        const MOST_32: u64 = u32::MAX as u64;
        let (suspicion, longest) = match self.suspicion {
            SuspicionLength::Fixed(periods) => (periods, u16::MAX),
            // ceil(ln) is below 64.
            SuspicionLength::PerLog(factor) => (factor, u16::MAX / 64),
        };
        let every = match self.selection {
            Selection::BoundedMix { every } => every,
            Selection::Plain | Selection::TimeBounded => 1,
        };
        let (smoothing, active) = self
            .active
            .map_or((1, 1), |active| (active.smoothing, active.timeout));
        let unit = self.round_trip_unit.unwrap_or(Span(1));
        let passive = self.passive.map_or(1, |passive| passive.timeout);
        let metadata = self.longest_behind(RECORD_MAX_LEN);
        let broadcast = self.longest_behind(BROADCAST_MAX_LEN);
        let number =
            |name, value: u32, least, most| Setting::number(name, value.into(), least, most);
        [
            Setting::time("jitter", self.jitter, Span::ZERO, self.period),
            number("relays", self.relays.into(), 0, 16),
            number("exponent", self.exponent.into(), 0, 8),
            number("unit_distance", self.unit_distance, 1, MOST_32),
            number("default_distance", self.default_distance, 1, MOST_32),
            Setting::time("round_trip_unit", unit, Span(1), self.period),
            number("suspicion", suspicion.into(), 1, longest.into()),
            number("selection.every", every.into(), 1, MOST_16),
            number("active.smoothing", smoothing.into(), 1, u8::MAX.into()),
            number("active.timeout", active.into(), 1, 1 << 14),
            number("passive.timeout", passive.into(), 1, (1 << 15) - 1),
            number("publish_after", self.publish_after.into(), 1, 2),
            number("retransmit_factor", self.retransmit_factor.into(), 1, 32),
            number("farewell_periods", self.farewell_periods.into(), 1, MOST_16),
            number("frame_budget", self.frame_budget.into(), 96, MOST_16).counts("bytes"),
            number("metadata_limit", self.metadata_limit.into(), 0, metadata).counts("bytes"),
            number("broadcast_len", self.broadcast_len.into(), 0, broadcast).counts("bytes"),
            number("member_limit", self.member_limit, 2, 1 << 24),
            number("gossip_limit", self.gossip_limit.into(), 1, MOST_16),
            number("tombstone_limit", self.tombstone_limit.into(), 1, MOST_16),
            // Ages are compared around the wrap of the count of periods.
            number(
                "tombstone_periods",
                self.tombstone_periods.into(),
                0,
                (1 << 15) - 1,
            ),
        ]
    }

    /// Checks that the limits of the dead agree with the others.
    fn check_tombstones(&self) -> Result<(), ConfigError> {
        if u32::from(self.tombstone_limit) >= self.member_limit {
            return Err(ConfigError::TombstoneLimit {
                tombstone_limit: self.tombstone_limit,
                member_limit: self.member_limit,
            });
        }
        let suspicion = self.suspicion.periods(self.member_limit as usize);
        if self.tombstone_periods > 0 && self.tombstone_periods <= suspicion {
            return Err(ConfigError::TombstonePeriods {
                tombstone_periods: self.tombstone_periods,
                suspicion,
            });
        }
        Ok(())
    }

    /// The room in a frame for the variable part of one record or one broadcast, given the length
    /// of its longest fixed part.
    fn longest_behind(&self, fixed: usize) -> u64 {
        // The longest body and both list lengths.
        let room = Room::new(self.frame_budget, BODY_MAX_LEN + 4 + fixed);
        PAYLOAD_MAX_LEN.min(room.left() as u64)
    }
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The direct probe must end inside its period.
    #[error(
        "probe_timeout is {probe_timeout:?} and period {period:?}: set probe_timeout above zero and below the period"
    )]
    ProbeTimeout {
        /// The refused value.
        probe_timeout: Span,
        /// The period, which must be longer.
        period: Span,
    },
    /// The dead alone would fill the list.
    #[error(
        "tombstone_limit is {tombstone_limit} and member_limit {member_limit}: set tombstone_limit below member_limit"
    )]
    TombstoneLimit {
        /// The refused value.
        tombstone_limit: u16,
        /// The limit, which must be higher.
        member_limit: u32,
    },
    /// A dead member would be forgotten while others still suspect it.
    #[error(
        "tombstone_periods is {tombstone_periods} and a suspicion lasts up to {suspicion} periods: set tombstone_periods above that, or to 0"
    )]
    TombstonePeriods {
        /// The refused value.
        tombstone_periods: u16,
        /// The length of a suspicion in a full list, in periods.
        suspicion: u16,
    },
    /// A number is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
}
