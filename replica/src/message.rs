//! All messages of the protocol.

use alloc::boxed::Box;

use selvedge_core::Member;
use selvedge_core::wire::{self, List};
use serde::{Deserialize, Serialize};

use crate::configuration::{BALLOT_MAX, NUMBER_MAX, VERSION_MAX};
use crate::encoding::encoded_len;
use crate::{Ballot, Configuration, Entries, Proposal, Version};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 7;

/// A message between replicas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<U> {
    /// The number of the configuration that the sender is in.
    pub configuration: u64,
    /// Its content.
    pub body: Body<U>,
}

/// The content of a message. Ballots belong to the configuration that stands beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Body<U> {
    /// Asks for a promise. A member whose leader is present promises nothing (pre-vote and phase 1
    /// in one). Answered by [`Body::Promise`] or [`Body::Refuse`].
    Prepare {
        /// The ballot to promise.
        ballot: Ballot,
        /// The last version that the sender knows to be committed.
        committed: Version,
        /// The ballot under which the sender accepted last.
        accepted: Ballot,
        /// The last version that the sender holds.
        end: Version,
        /// The ballot of the leader that asked the sender to stand; 0 for none.
        handed_over: Ballot,
    },
    /// The sender promises to accept under no lower ballot.
    Promise {
        /// The ballot that is promised.
        ballot: Ballot,
        /// The last version that the sender knows to be committed.
        committed: Version,
        /// The ballot under which the sender accepted last.
        accepted: Ballot,
        /// The last version that the sender holds.
        end: Version,
        /// All entries that the sender holds behind `committed`, if they end later than the
        /// receiver's; empty at a witness.
        tail: Entries<U>,
    },
    /// The sender does not promise, or does not accept.
    Refuse {
        /// The refused ballot.
        ballot: Ballot,
        /// The ballot that the sender has promised.
        promised: Ballot,
        /// The ballot of the leader that the sender takes for present; 0 for none.
        leader: Ballot,
    },
    /// The leader asks to accept the entries behind a version. Without entries it reports the last
    /// commit, and that the sender leads. Answered by [`Body::Accepted`], [`Body::Missing`] or
    /// [`Body::Refuse`].
    Accept {
        /// The leader's ballot.
        ballot: Ballot,
        /// The version that the entries follow.
        after: Version,
        /// The last version that the leader knows to be committed.
        commit: Version,
        /// Counts the leader's rounds: a member that acknowledges it has followed since it was sent.
        round: u64,
        /// The entries.
        entries: Entries<U>,
    },
    /// The sender holds all entries of the leader, up to a version.
    Accepted {
        /// The leader's ballot.
        ballot: Ballot,
        /// That version.
        end: Version,
        /// The last version that the sender knows to be committed.
        committed: Version,
        /// The latest of the leader's rounds that came with it.
        round: u64,
    },
    /// The sender lacks entries or the state. Of any configuration. Answered by [`Body::Learn`],
    /// [`Body::Page`], or, where it lacks nothing, by the leader's [`Body::Accept`].
    Missing {
        /// The last version that the sender knows to be committed.
        committed: Version,
        /// The form in which the sender can use the answer.
        wants: Wants,
    },
    /// Committed entries. Of any configuration.
    Learn {
        /// The version that they follow.
        after: Version,
        /// The entries, as many as fit.
        entries: Entries<U>,
    },
    /// Asks for the next page of a state. Of any configuration. Answered by [`Body::Page`].
    Fetch {
        /// The state of which the sender has pages.
        snapshot: SnapshotId,
        /// The first byte of the page.
        offset: u32,
    },
    /// A page of a state. Of any configuration.
    Page {
        /// The state to which the page belongs.
        snapshot: SnapshotId,
        /// The first byte of the page.
        offset: u32,
        /// The bytes, as many as fit.
        bytes: List<u8, 16>,
    },
    /// Proposals, in their proposer's order.
    Propose {
        /// The proposals, as many as fit.
        proposals: List<Proposal<U>, 1>,
    },
    /// Asks for the version at which to read. Answered by [`Body::ReadAt`].
    Read {
        /// The sender's number of the question.
        number: u64,
    },
    /// A state of this version or a later one holds every entry that was committed before the
    /// question.
    ReadAt {
        /// The life of the receiver that asked: a message reaches a node in any of its lives.
        life: u32,
        /// The number of the question.
        number: u64,
        /// The version.
        version: Version,
    },
    /// The leader asks the receiver to stand.
    Stand {
        /// The leader's ballot.
        ballot: Ballot,
    },
    /// The latest configuration that the sender knows.
    Current {
        /// The configuration.
        configuration: Box<Configuration>,
        /// True if a quorum of it has installed the state: the former members may forget.
        is_active: bool,
    },
    /// The sender is a node of the configuration, and remembers nothing of its former life: it asks
    /// to be named again.
    Rejoin {
        /// The life in which its memory began: its present one where it stores nothing.
        life: u32,
    },
}

/// The form in which a node that lacks something can use the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Wants {
    /// Entries, or a later state: the node holds a state.
    Entries,
    /// The whole state: the node holds none.
    State,
    /// Everything but the application's state: the node is a witness that holds no state.
    Bare,
}

/// The encoding of a state to which a page belongs: pages of two encodings never make one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct SnapshotId {
    /// The version of the state.
    pub version: Version,
    /// True if it is a witness's part, without the application's state.
    pub is_bare: bool,
    /// The length of the encoding in bytes.
    pub total: u32,
}

impl<U> Body<U> {
    /// Returns true if it is about committed entries, and means the same in any configuration.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Learn { .. }
                | Self::Fetch { .. }
                | Self::Page { .. }
                | Self::Current { .. }
        )
    }
}

impl<U> Message<U> {
    /// Returns true if its numbers are within the range that a group reaches: frames have room for
    /// these.
    pub(crate) fn is_within_range(&self) -> bool {
        let is_ballot = |it: &Ballot| it.number <= BALLOT_MAX;
        let is_version = |it: Version| it <= VERSION_MAX;
        let body = match &self.body {
            Body::Prepare {
                ballot,
                committed,
                accepted,
                end,
                handed_over,
            } => {
                let ballots = [ballot, accepted, handed_over];
                ballots.into_iter().all(is_ballot) && is_version(*committed) && is_version(*end)
            }
            Body::Promise {
                ballot,
                committed,
                accepted,
                end,
                ..
            } => {
                let ballots = [ballot, accepted];
                ballots.into_iter().all(is_ballot) && is_version(*committed) && is_version(*end)
            }
            Body::Refuse {
                ballot,
                promised,
                leader,
            } => [ballot, promised, leader].into_iter().all(is_ballot),
            Body::Accept {
                ballot,
                after,
                commit,
                ..
            } => is_ballot(ballot) && is_version(*after) && is_version(*commit),
            Body::Accepted {
                ballot,
                end,
                committed,
                ..
            } => is_ballot(ballot) && is_version(*end) && is_version(*committed),
            Body::Stand { ballot } => is_ballot(ballot),
            Body::Missing { committed, .. } => is_version(*committed),
            Body::Learn { after, .. } => is_version(*after),
            Body::Fetch { snapshot, .. } | Body::Page { snapshot, .. } => {
                is_version(snapshot.version)
            }
            Body::ReadAt { version, .. } => is_version(*version),
            Body::Propose { .. }
            | Body::Read { .. }
            | Body::Current { .. }
            | Body::Rejoin { .. } => true,
        };
        body && self.configuration <= NUMBER_MAX
    }
}

impl<U: Serialize> wire::Message for Message<U> {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        encoded_len(self)
    }
}

impl<U: Serialize> Message<U> {
    /// The length of the frame in which `from` sends it.
    #[must_use]
    pub fn frame_len(&self, from: Member) -> usize {
        wire::frame_len(from, self)
    }
}
