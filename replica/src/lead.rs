//! The memory of a leader.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Time, Untracked};

use crate::{Ballot, Configuration, Proposal, Version};

/// The leader's view of another member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Follower {
    /// The member as the configuration names it.
    pub(crate) member: Member,
    pub(crate) is_witness: bool,
    /// The last of the leader's versions that it holds; `None` until it has accepted under this
    /// ballot.
    pub(crate) matched: Option<Version>,
    /// The last version that was sent to it.
    pub(crate) sent: Version,
    /// The last version that it knows to be committed.
    pub(crate) committed: Version,
    /// The last commit that was reported to it.
    pub(crate) notified: Version,
    /// The latest round that it acknowledged.
    pub(crate) round: u64,
}

/// A read that waits for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) by: Member,
    pub(crate) number: u64,
    pub(crate) version: Version,
    pub(crate) round: u64,
}

/// The lease of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Held {
    /// The round that was sent when the timer was armed; 0 for none.
    pub(crate) round: u64,
    /// True if a quorum has acknowledged that round, and the timer has not ticked.
    pub(crate) is_held: bool,
    /// The end of the lease. In a model checker's time it never passes before the timer ticks; a
    /// host that slept may ask before its timers tick.
    pub(crate) until: Untracked<Time>,
    /// True if this ballot was handed over, so that others may promise in spite of the lease.
    pub(crate) is_void: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leadership<U> {
    pub(crate) ballot: Ballot,
    /// True if this member led with a lower ballot before, and stood again at once when that was
    /// refused. It does not do so twice in a row.
    pub(crate) is_raised: bool,
    /// The last version that was adopted. Reads wait until it is committed.
    pub(crate) start: Version,
    pub(crate) followers: Vec<Follower>,
    /// Counts the rounds that are sent.
    pub(crate) round: u64,
    /// True if reads wait for a round that is not sent yet.
    pub(crate) wants_round: bool,
    pub(crate) questions: Vec<Question>,
    pub(crate) lease: Held,
    /// Proposals that have no place yet among the entries in flight.
    pub(crate) backlog: VecDeque<Proposal<U>>,
    /// The next configuration, while it has no place yet.
    pub(crate) change: Option<Configuration>,
    pub(crate) resends: bool,
    pub(crate) reports_commit: bool,
}

impl<U> Leadership<U> {
    pub(crate) fn new(
        ballot: Ballot,
        me: NodeId,
        configuration: &Configuration,
        start: Version,
    ) -> Self {
        let others = configuration.members().filter(|it| it.member.id != me);
        let followers = others.map(|it| Follower {
            member: it.member,
            is_witness: it.is_witness,
            matched: None,
            sent: 0,
            committed: 0,
            notified: 0,
            round: 0,
        });
        Self {
            ballot,
            is_raised: false,
            start,
            followers: followers.collect(),
            round: 1,
            wants_round: false,
            questions: Vec::new(),
            lease: Held::default(),
            backlog: VecDeque::new(),
            change: None,
            resends: false,
            reports_commit: false,
        }
    }

    pub(crate) fn matches(&self, id: NodeId, version: Version) -> bool {
        let follower = self.followers.iter().find(|it| it.member.id == id);
        follower.is_some_and(|it| it.matched >= Some(version))
    }

    /// Returns true if a round that was sent still needs acknowledgements.
    pub(crate) fn waits_for_round(&self) -> bool {
        // A lease is held as soon as its round has answered a read, or a quorum has accepted.
        let first = self.questions.first();
        first.is_some_and(|it| it.round <= self.round)
    }

    pub(crate) fn acknowledged(&self, id: NodeId, round: u64) -> bool {
        let follower = self.followers.iter().find(|it| it.member.id == id);
        follower.is_some_and(|it| it.round >= round)
    }
}
