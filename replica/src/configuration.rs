//! The members of a group, and how many of them decide.

use alloc::vec::Vec;

use selvedge_core::quorum::{Electorate, Quorum};
use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN, varint_len};
use selvedge_core::{Member, NodeId, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::encoding::encoded_len;

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Voter {
    /// The node, in a life that has its memory: the present one, or, where it stores facts, any
    /// since the memory began. Named in another life it does not vote. Life 0 names a
    /// [founder](crate::Replica::founder), in any life.
    pub member: Member,
    /// True if it only votes. A witness keeps ballot and version, and neither updates nor state. It
    /// never leads.
    pub is_witness: bool,
}

impl Voter {
    /// A member that votes and holds the state.
    #[must_use]
    pub const fn new(member: Member) -> Self {
        Self {
            member,
            is_witness: false,
        }
    }

    /// A member that only votes.
    #[must_use]
    pub const fn witness(member: Member) -> Self {
        Self {
            member,
            is_witness: true,
        }
    }
}

/// The time for which members that acknowledge a leader promise no other leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Lease {
    /// The length, by each member's own clock, which goes on while its host sleeps: from 1 ms.
    pub span: Span,
    /// The most by which two clocks may run apart, in parts per million: at most 500,000. The
    /// leader takes the lease to be shorter by this share.
    pub drift: u32,
}

impl Lease {
    /// The time for which the leader relies on it.
    #[must_use]
    pub const fn relied_on(self) -> Span {
        let lost = self.span.0 as u128 * self.drift as u128 / MILLION;
        Span(self.span.0.saturating_sub(lost as u64))
    }
}

const MILLION: u128 = 1_000_000;

/// A link in the chain of configurations: the members of a group from one version on, and the
/// settings in which they must agree. It is replicated as the state is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Configuration {
    /// The link's place: each next one is higher by 1. The first is 1 unless the group has
    /// [begun later](crate::Replica::born). A group sets it itself.
    pub number: u64,
    /// The members, the most preferred leader first. 1 to 32, each node once.
    #[serde(with = "selvedge_core::wire::items")]
    pub voters: Vec<Voter>,
    /// Members of which a quorum is needed as well, to every decision; none by default.
    #[serde(with = "selvedge_core::wire::items")]
    pub also: Vec<Voter>,
    /// The number of members that decide; any two quorums share a member.
    pub quorum: QuorumRule,
    /// With a lease the leader answers reads without a round; `None`, the default, is off.
    pub lease: Option<Lease>,
    /// The longest frame in bytes, header and sender included: from 127. Default 1,400. The updates
    /// that are in flight at once fit into one frame.
    pub frame_budget: u16,
    /// The number of proposers of which the last number is remembered: from 1. Default 64. When
    /// there are more, the group forgets the proposer that was idle for longest.
    pub proposers: u16,
}

/// The number of members that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum QuorumRule {
    /// More than half.
    Majority,
    /// At least this many, which must be more than half.
    AtLeast(u8),
}

impl QuorumRule {
    const fn quorum(self) -> Quorum {
        match self {
            Self::Majority => Quorum::Majority,
            Self::AtLeast(least) => Quorum::AtLeast(least as usize),
        }
    }
}

impl Configuration {
    /// The highest number that a configuration can have. A group that changed each second would take 8
    /// years.
    pub const NUMBER_MAX: u64 = (1 << 28) - 1;

    /// The first configuration of a group, with the defaults.
    #[must_use]
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Self {
        Self {
            number: 1,
            voters: voters.into_iter().collect(),
            also: Vec::new(),
            quorum: QuorumRule::Majority,
            lease: None,
            frame_budget: 1_400,
            proposers: 64,
        }
    }

    /// A first configuration of members that all hold the state.
    #[must_use]
    pub fn of(members: impl IntoIterator<Item = Member>) -> Self {
        Self::new(members.into_iter().map(Voter::new))
    }

    /// The placeholder at a node that knows of no configuration.
    pub(crate) fn none() -> Self {
        Self {
            number: 0,
            ..Self::new([])
        }
    }

    /// All members, each once: first `voters` in their order, then the others.
    pub fn members(&self) -> impl Iterator<Item = Voter> + '_ {
        let others = self.also.iter().filter(|it| !self.voters.contains(it));
        self.voters.iter().chain(others).copied()
    }

    /// The member with this id.
    #[must_use]
    pub fn voter(&self, id: NodeId) -> Option<Voter> {
        self.members().find(|it| it.member.id == id)
    }

    /// The members whose votes decide, as an electorate.
    #[must_use]
    pub(crate) fn electorate(&self) -> Electorate<NodeId> {
        let ids =
            |voters: &[Voter]| -> Vec<NodeId> { voters.iter().map(|it| it.member.id).collect() };
        let mut electorate = Electorate::new(self.quorum.quorum(), ids(&self.voters));
        if !self.also.is_empty() {
            electorate.begin_change(ids(&self.also));
        }
        electorate
    }

    /// The length of the longest frame without its list: header, sender, number of the
    /// configuration, and a PROMISE with the length of its list.
    pub(crate) fn fixed_len(&self) -> usize {
        let ids = self.members().map(|it| varint_len(it.member.id.0));
        Self::fixed_len_with(ids.max().unwrap_or(ID_MAX_LEN))
    }

    const fn fixed_len_with(id: usize) -> usize {
        let ballot = varint_len(BALLOT_MAX) + id;
        let sender = id + varint_len(u32::MAX as u64);
        let versions = 2 * varint_len(VERSION_MAX);
        HEADER_LEN + sender + varint_len(NUMBER_MAX) + 1 + 2 * ballot + versions + 3
    }

    /// The most bytes that an update may have, for any members and any proposer: the room left in a
    /// frame beside the longest header, sender, ballot and number of a proposal. Members with short
    /// ids have room for a few more.
    #[must_use]
    pub fn update_room(&self) -> usize {
        // A kind, the proposer, its number, the first of its waiting numbers, and the version it
        // began at.
        let proposal = 1 + MEMBER_MAX_LEN + 3 * varint_len(u64::MAX);
        let budget = usize::from(self.frame_budget);
        budget.saturating_sub(Self::fixed_len_with(ID_MAX_LEN) + proposal)
    }

    /// Checks that this configuration can work.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), ConfigError> {
        let lease = self.lease.unwrap_or(Lease {
            span: LEASE_MIN,
            drift: 0,
        });
        settings::check(&[
            Setting::number("number", self.number, 1, NUMBER_MAX),
            Setting::number("voters", self.voters.len() as u64, 1, VOTERS_MAX),
            Setting::number("also", self.also.len() as u64, 0, VOTERS_MAX),
            Setting::number("proposers", self.proposers.into(), 1, u16::MAX.into()),
            Setting::time("lease", lease.span, LEASE_MIN, Span(u64::MAX)),
            Setting::number("drift", lease.drift.into(), 0, 500_000).counts("ppm"),
            Setting::number(
                "frame_budget",
                self.frame_budget.into(),
                FRAME_MIN,
                u16::MAX.into(),
            )
            .counts("bytes"),
        ])?;
        for voters in [&self.voters, &self.also] {
            for (nth, voter) in voters.iter().enumerate() {
                let id = voter.member.id;
                if voters.iter().skip(nth + 1).any(|it| it.member.id == id) {
                    return Err(ConfigError::Twice(id));
                }
                if self.voter(id) != Some(*voter) {
                    return Err(ConfigError::Differs(id));
                }
            }
            let count = voters.len();
            let quorum = self.quorum.quorum();
            if count > 0 && (quorum.needed(count).is_none() || !quorum.intersects(count)) {
                return Err(ConfigError::Quorum {
                    voters: count,
                    rule: self.quorum,
                });
            }
            if count > 0 && voters.iter().all(|it| it.is_witness) {
                return Err(ConfigError::Witnesses);
            }
        }
        // An entry has a kind in front.
        let len = 1 + encoded_len(self) + self.fixed_len();
        if len > self.frame_budget.into() {
            return Err(ConfigError::TooLong {
                len,
                budget: self.frame_budget,
            });
        }
        Ok(())
    }
}

/// See [`Configuration::NUMBER_MAX`].
pub(crate) const NUMBER_MAX: u64 = Configuration::NUMBER_MAX;

/// The highest number of a ballot.
pub(crate) const BALLOT_MAX: u64 = (1 << 35) - 1;

/// The highest version. A group that decided a million updates a second would take 17 years.
pub(crate) const VERSION_MAX: u64 = (1 << 49) - 1;

/// The most members of a group.
const VOTERS_MAX: u64 = 32;

/// The longest id, in bytes.
const ID_MAX_LEN: usize = varint_len(u64::MAX);

/// The shortest lease.
const LEASE_MIN: Span = Span::millis(1);

/// The shortest frame budget: an IEEE 802.15.4 radio frame.
const FRAME_MIN: u64 = 127;

/// A rule that a configuration breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A node is named twice.
    #[error("node {0} is named twice among the voters: name it once")]
    Twice(NodeId),
    /// A node stands in both lists, and differs.
    #[error("node {0} is another voter in `also`: give it one life and one part in both lists")]
    Differs(NodeId),
    /// Two quorums could decide apart.
    #[error("{rule:?} is no quorum of {voters} voters: any two quorums must share a voter")]
    Quorum {
        /// The number of voters.
        voters: usize,
        /// The rule.
        rule: QuorumRule,
    },
    /// A founder is not named as one.
    #[error("it does not name node {0} in life 0: a first configuration names its founders so")]
    NoFounder(NodeId),
    /// No voter holds the state.
    #[error("all voters are witnesses: at least one must hold the state")]
    Witnesses,
    /// It does not fit into a frame.
    #[error(
        "it takes {len} bytes in a frame of {budget}: name fewer voters, or raise frame_budget"
    )]
    TooLong {
        /// The bytes that it takes.
        len: usize,
        /// The bytes of the longest frame.
        budget: u16,
    },
}
