//! Which claim about a member's metadata counts.
//!
//! A member says one thing in each of its revisions, so metadata goes with the revision in which it
//! was said. Two things break that: a suspicion or a failure that travels as news brings a revision
//! and no metadata, and a node that restarts under a number that it had says something else in a
//! revision that is taken.

use core::cmp::Ordering;

use selvedge_core::{Context, Member};

use crate::message::{Claim, Metadata};
use crate::{Event, Membership, Phase};

impl Claim {
    /// The metadata, if the claim states any. Empty, the claim of a suspect or failed member states
    /// none: as an update it leaves out what nearly all know.
    pub(crate) fn stated_metadata(&self) -> Option<&Metadata> {
        match self {
            Self::Alive(metadata) => Some(metadata),
            Self::Suspect(metadata) | Self::Failed(metadata, _) => {
                Some(metadata).filter(|metadata| !metadata.0.is_empty())
            }
            Self::Left(_) => None,
        }
    }
}

impl Membership {
    /// A claim in a later revision than ours: what we hold is right no more.
    pub(crate) fn renew_metadata(
        &mut self,
        slot: usize,
        member: Member,
        claim: &Claim,
        cx: &mut Context<'_, Self>,
    ) {
        match claim.stated_metadata() {
            Some(metadata) => self.replace_metadata(slot, member, metadata.clone(), cx),
            None => self.list.outdate_metadata(slot),
        }
    }

    /// A claim in the revision that we hold. Of two the larger metadata wins, so that all lists end
    /// with the same, in whatever order they hear them. It is passed on: the sender of the smaller
    /// one does not know of it, and if that is the member itself, it hears that others have it
    /// wrongly.
    pub(crate) fn compare_metadata(
        &mut self,
        slot: usize,
        member: Member,
        claim: &Claim,
        cx: &mut Context<'_, Self>,
    ) {
        let (Some(stated), Some(known)) = (claim.stated_metadata(), self.list.metadata(slot))
        else {
            // Nothing is said about it.
            return;
        };
        if self.list.is_outdated(slot) {
            self.replace_metadata(slot, member, stated.clone(), cx);
            return;
        }
        match stated.cmp(known) {
            Ordering::Less => self.announce(member.id),
            Ordering::Equal => {}
            Ordering::Greater => {
                self.replace_metadata(slot, member, stated.clone(), cx);
                self.announce(member.id);
            }
        }
    }

    pub(crate) fn replace_metadata(
        &mut self,
        slot: usize,
        member: Member,
        metadata: Metadata,
        cx: &mut Context<'_, Self>,
    ) {
        let is_new = self.list.metadata(slot) != Some(&metadata);
        self.list.set_metadata(slot, metadata);
        if is_new {
            cx.event(Event::Metadata(member));
        }
    }

    /// A sender takes this for our word in our present revision. If it is not, a life before us had
    /// our number, and others may hold what that life said: a later revision is above it.
    pub(crate) fn on_own_metadata(&mut self, metadata: &Metadata) {
        if self.own_metadata() != Some(metadata) {
            self.counters.refutations += 1;
            self.raise_revision(None);
        }
    }

    /// Replaces our own. Nodes that have the former one, if only from a request to be let in, have
    /// to hear of a new revision.
    pub(crate) fn replace_own_metadata(&mut self, metadata: Metadata) {
        let Some(slot) = self.own_slot() else {
            debug_assert!(false, "this node is on its own list");
            return;
        };
        self.list.set_metadata(slot, metadata);
        if matches!(self.phase(), Phase::Joining | Phase::Joined) {
            self.raise_revision(None);
        }
    }
}
