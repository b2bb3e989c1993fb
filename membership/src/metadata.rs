//! Which word about a member's metadata counts.
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
    /// What is told about the metadata. Without a byte, the claims of a suspect and of a failed
    /// member tell nothing: as news they leave out what nearly all know.
    pub(crate) fn told(&self) -> Option<&Metadata> {
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
        match claim.told() {
            Some(metadata) => self.replace_metadata(slot, member, metadata.clone(), cx),
            None => self.list.outdate_metadata(slot),
        }
    }

    /// A claim in the revision that we hold. Of two words the larger one wins, so that all lists
    /// end with the same, in whatever order they hear them. It is passed on: the node that told the
    /// smaller one does not know of it, and where that was the member itself, it hears that it is
    /// told wrongly.
    pub(crate) fn compare_metadata(
        &mut self,
        slot: usize,
        member: Member,
        claim: &Claim,
        cx: &mut Context<'_, Self>,
    ) {
        let (Some(told), Some(known)) = (claim.told(), self.list.metadata(slot)) else {
            return;
        };
        if self.list.is_outdated(slot) {
            self.replace_metadata(slot, member, told.clone(), cx);
            return;
        }
        match told.cmp(known) {
            Ordering::Less => self.add_news(member.id),
            Ordering::Equal => {}
            Ordering::Greater => {
                self.replace_metadata(slot, member, told.clone(), cx);
                self.add_news(member.id);
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

    /// Someone takes this for our word in our present revision. If it is not, a life before us had
    /// our number, and others may hold what that one said: a later revision is above it.
    pub(crate) fn hear_own_metadata(&mut self, metadata: &Metadata) {
        let own = self.own_slot().and_then(|slot| self.list.metadata(slot));
        if own != Some(metadata) {
            self.counters.refutations += 1;
            self.raise_revision(None);
        }
    }

    /// Replaces our own. Nodes that were told of the former one, if only by a request to be let in,
    /// have to hear of a new revision.
    pub(crate) fn replace_own_metadata(&mut self, metadata: Metadata) {
        let Some(slot) = self.own_slot() else {
            return;
        };
        self.list.set_metadata(slot, metadata);
        if matches!(self.phase, Phase::Joining | Phase::Joined) {
            self.raise_revision(None);
        }
    }
}
