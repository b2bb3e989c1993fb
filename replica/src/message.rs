//! What is sent; nothing else is.

use alloc::boxed::Box;

use selvedge_core::Member;
use selvedge_core::wire::{self, List};
use serde::{Deserialize, Serialize};

use crate::configuration::{BALLOT_MAX, NUMBER_MAX, VERSION_MAX};
use crate::encoding::encoded_len;
use crate::{Ballot, Configuration, Entries, Proposal, Version};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 7;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<U> {
    /// The number of the configuration that the sender is in.
    pub configuration: u64,
    /// What it says.
    pub body: Body<U>,
}

/// What a message says. Ballots are those of the configuration that stands beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Body<U> {
    /// Asks for a promise. A member whose leader is there promises nothing (pre-vote and phase 1 in
    /// one). Answered by [`Body::Promise`] or [`Body::Refuse`].
    Prepare {
        /// The ballot to promise.
        ballot: Ballot,
        /// Up to where the sender knows the entries to be committed.
        committed: Version,
        /// Under which ballot the sender accepted last.
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
        /// Up to where the sender knows the entries to be committed.
        committed: Version,
        /// Under which ballot the sender accepted last.
        accepted: Ballot,
        /// The last version that the sender holds.
        end: Version,
        /// All that the sender holds behind `committed`, if that is later than what the receiver
        /// holds; empty at a witness.
        tail: Entries<U>,
    },
    /// The sender does not promise, or does not accept.
    Refuse {
        /// Which ballot.
        ballot: Ballot,
        /// What the sender has promised.
        promised: Ballot,
        /// The ballot of the leader that is there, as the sender knows; 0 for none.
        leader: Ballot,
    },
    /// The leader asks to accept what follows a version. Without entries it tells what is
    /// committed, and that it leads. Answered by [`Body::Accepted`], [`Body::Lacking`] or
    /// [`Body::Refuse`].
    Accept {
        /// The leader's ballot.
        ballot: Ballot,
        /// What the entries follow.
        after: Version,
        /// Up to where the leader knows the entries to be committed.
        commit: Version,
        /// Counts the leader's rounds: a member that acknowledges it has followed since it was sent.
        round: u64,
        /// What follows.
        entries: Entries<U>,
    },
    /// The sender holds all that the leader has, up to a version.
    Accepted {
        /// The leader's ballot.
        ballot: Ballot,
        /// Up to where.
        end: Version,
        /// Up to where the sender knows the entries to be committed.
        committed: Version,
        /// The latest of the leader's rounds that came with it.
        round: u64,
    },
    /// The sender lacks entries or the state. Of any configuration. Answered by [`Body::Learn`],
    /// [`Body::Page`], or, where it lacks nothing, by the leader's [`Body::Accept`].
    Lacking {
        /// Up to where it has what is committed.
        committed: Version,
        /// What it has use for.
        wants: Wants,
    },
    /// Committed entries. Of any configuration.
    Learn {
        /// What they follow.
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
        /// As many as fit.
        proposals: List<Proposal<U>, 1>,
    },
    /// Asks up to where to read. Answered by [`Body::ReadAt`].
    Read {
        /// The sender's number of it.
        number: u64,
    },
    /// A state of this version or a later one holds all that was committed before the question.
    ReadAt {
        /// The life of the receiver that asked: a message reaches a node in whichever life it is.
        life: u32,
        /// Which question.
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
        /// Whether a quorum of it has installed the state: the former one may forget.
        is_active: bool,
    },
    /// The sender is a node of the configuration, and remembers nothing of its former life: it asks
    /// to be named anew.
    Rejoin {
        /// The life in which its memory began: its present one where it stores nothing.
        life: u32,
    },
}

/// What a node that lacks something has use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Wants {
    /// It holds a state: entries, or a later state.
    Entries,
    /// It holds no state: all of it.
    State,
    /// It is a witness that holds no state: what belongs to the state, without it.
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
    /// Whether it is about what is committed, and means the same in any configuration.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Lacking { .. }
                | Self::Learn { .. }
                | Self::Fetch { .. }
                | Self::Page { .. }
                | Self::Current { .. }
        )
    }
}

impl<U> Message<U> {
    /// Whether its numbers are such as a group comes to: frames have room for these.
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
            Body::Lacking { committed, .. } => is_version(*committed),
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
