//! What a host stores: facts, and the base that they follow.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::Member;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::configuration::{BALLOT_MAX, NUMBER_MAX, VERSION_MAX};
use crate::origin::Origin;
use crate::sessions::Sessions;
use crate::{Ballot, Configuration, Entries, Entry, Reject, State, Version};

/// A state with what belongs to it, as of one version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Snapshot<S: State> {
    pub(crate) version: Version,
    pub(crate) configuration: Configuration,
    pub(crate) sessions: Sessions,
    /// None at a witness, and at a node that was never a member.
    pub(crate) state: Option<S>,
}

impl<S: State> Snapshot<S> {
    /// Whether it can be one: what a peer sends may be anything.
    pub(crate) fn is_sound(&self) -> bool {
        self.version <= VERSION_MAX
            && self.sessions.is_sound()
            && self.configuration.check().is_ok()
    }
}

/// What must survive a crash: an event that the host stores before it carries out the effects behind
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Fact<S: State> {
    /// The member promised this ballot.
    Promised(Ballot),
    /// The member accepted what follows this version under a ballot.
    Accepted {
        /// The ballot.
        ballot: Ballot,
        /// What it follows.
        after: Version,
        /// Up to where the member knew entries to be committed before.
        committed: Version,
        /// Up to where the leader knew them to be committed. So what is on its way behind it fits
        /// into a frame, in later lives as well.
        commit: Version,
        /// What is accepted.
        entries: Entries<S::Update>,
    },
    /// What the member had accepted is committed up to this version, with which the configuration
    /// ends. Other commits are learned again.
    Committed(Version),
    /// The member learned what was committed after this version.
    Learned {
        /// What it follows.
        after: Version,
        /// What is committed.
        entries: Entries<S::Update>,
    },
    /// The member received the state whole.
    Installed(Box<Snapshot<S>>),
    /// The node gave the state up: a later configuration holds it, in which it is no member, or a
    /// witness.
    Retired,
}

/// All that a member must not forget, as a base for the facts that come after it.
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

    /// Whether `me` can go on from it.
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

/// Why what was stored is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
    /// A fact that came before it was not folded.
    #[error("facts before this one are missing: fold all since the base, in their order")]
    Missing,
    /// What it says cannot be.
    #[error("it is nothing that this member stored: begin without it, in a new life")]
    Unsound,
    /// It is the memory of another node, or of a later life.
    #[error("it is the memory of {0}: give each node storage of its own")]
    NotOwn(Member),
}
