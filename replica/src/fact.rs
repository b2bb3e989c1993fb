//! A member's stored memory: facts, and the base that they follow.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::Member;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::configuration::{BALLOT_MAX, NUMBER_MAX, VERSION_MAX};
use crate::origin::Origin;
use crate::sessions::Sessions;
use crate::{Ballot, Configuration, Entries, Entry, Reject, State, Version};

/// A state with the configuration and the record of proposers, as of one version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Snapshot<S: State> {
    pub(crate) version: Version,
    pub(crate) configuration: Configuration,
    pub(crate) sessions: Sessions,
    /// `None` at a witness, and at a node that was never a member.
    pub(crate) state: Option<S>,
}

impl<S: State> Snapshot<S> {
    /// Returns true if its parts fit together: a peer may send anything.
    pub(crate) fn is_sound(&self) -> bool {
        self.version <= VERSION_MAX
            && self.sessions.is_sound()
            && self.configuration.check().is_ok()
    }
}

/// A change of the memory that must survive a crash: an event that the host stores before it
/// carries out the effects behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Fact<S: State> {
    /// The member promised this ballot.
    Promised(Ballot),
    /// The member accepted entries behind a version under a ballot.
    Accepted {
        /// The ballot.
        ballot: Ballot,
        /// The version that the entries follow.
        after: Version,
        /// The last version that the member knew to be committed before.
        committed: Version,
        /// The last version that the leader knew to be committed. It bounds the entries in flight
        /// behind it, which fit into a frame in later lives as well.
        commit: Version,
        /// The accepted entries.
        entries: Entries<S::Update>,
    },
    /// The entries that the member had accepted are committed up to this version, with which the
    /// configuration ends. Other commits are learned again.
    Committed(Version),
    /// The member learned committed entries.
    Learned {
        /// The version that the entries follow.
        after: Version,
        /// The committed entries.
        entries: Entries<S::Update>,
    },
    /// The member received the state whole.
    Installed(Box<Snapshot<S>>),
    /// The node gave the state up: a later configuration holds it, in which the node is a witness
    /// or not a member.
    Retired,
}

/// A member's whole memory, as a base for the facts that come after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Stored<S: State> {
    pub(crate) origin: Origin,
    pub(crate) promised: Ballot,
    pub(crate) accepted: Ballot,
    pub(crate) snapshot: Snapshot<S>,
    pub(crate) tail: Vec<Entry<S::Update>>,
}

impl<S: State> Stored<S> {
    /// The node, in the life in which this memory began.
    #[must_use]
    pub const fn voter(&self) -> Member {
        self.origin.voter
    }

    /// The highest ballot that the member has promised in its [configuration](Self::configuration).
    #[must_use]
    pub const fn promised(&self) -> Ballot {
        self.promised
    }

    /// The ballot under which the member accepted last in its [configuration](Self::configuration).
    #[must_use]
    pub const fn accepted(&self) -> Ballot {
        self.accepted
    }

    /// The latest configuration that the member knows.
    #[must_use]
    pub const fn configuration(&self) -> &Configuration {
        &self.snapshot.configuration
    }

    /// Checks that `me` can go on from it.
    pub(crate) fn check(&self, me: Member) -> Result<(), Reject> {
        let voter = self.origin.voter;
        if voter.id != me.id || voter.supersedes(me) {
            return Err(Damage::NotOwn(voter).into());
        }
        let configuration = &self.snapshot.configuration;
        let knows_none = configuration.number == 0; // Of a node that knew of none.
        if !knows_none {
            configuration.check()?;
        }
        let is_ballot = |it: Ballot| it.number <= BALLOT_MAX;
        let is_sound = is_ballot(self.promised)
            && is_ballot(self.accepted)
            && self.accepted <= self.promised
            && self.snapshot.version <= VERSION_MAX
            && self.snapshot.sessions.is_sound()
            && Entry::are_of_one_configuration(&self.tail, configuration.number.saturating_add(1))
            && self.origin.mark <= NUMBER_MAX
            && (knows_none || self.origin.takes(configuration.number))
            && (!knows_none || *configuration == Configuration::none() && self.tail.is_empty());
        match is_sound {
            true => Ok(()),
            false => Err(Damage::Unsound.into()),
        }
    }
}

/// The reason for which stored memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
    /// A fact that came before it was not folded.
    #[error("facts before this one are missing: fold all since the base, in their order")]
    Missing,
    /// The memory contradicts itself, or the memory before it.
    #[error("it is not a memory that this member stored: begin without it, in a new life")]
    Unsound,
    /// It is the memory of another node, or of a later life.
    #[error("it is the memory of {0}: give each node storage of its own")]
    NotOwn(Member),
}
