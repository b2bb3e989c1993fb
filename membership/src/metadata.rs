//! Rules that decide which claim about a member's metadata counts.
//!
//! A member makes one claim in each of its revisions, so metadata belongs to the revision of its
//! claim. Two things break that: a suspicion or a failure that is sent as news has a revision and
//! no metadata, and a node that restarts under a number that it had makes another claim in a
//! revision that is taken.

use core::cmp::Ordering;

use selvedge_core::{Context, Member};

use crate::message::{Claim, Metadata};
use crate::{Event, Membership, Phase};

impl Claim {
    /// The metadata, if the claim states any. The empty metadata of a suspect or failed member
    /// states none: an update leaves it out because nearly all nodes know it.
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
    /// Takes in a claim in a later revision than ours, which makes our metadata out of date.
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

    /// Takes in a claim in the revision that we have. The larger metadata wins, so that all lists
    /// end with the same, in any order of arrival. It is passed on: the sender of the smaller one
    /// does not know of it, and if that is the member itself, it has to learn that others have
    /// wrong metadata.
    pub(crate) fn compare_metadata(
        &mut self,
        slot: usize,
        member: Member,
        claim: &Claim,
        cx: &mut Context<'_, Self>,
    ) {
        let (Some(stated), Some(known)) = (claim.stated_metadata(), self.list.metadata(slot))
        else {
            // The claim states none, or we have none.
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
            cx.event(Event::MetadataChanged(member));
        }
    }

    /// Compares our metadata with a record of us in our present revision. If it differs, a life
    /// before us had our number, and others may hold the metadata of that life: a later revision
    /// overrides it.
    pub(crate) fn on_own_metadata(&mut self, metadata: &Metadata) {
        if self.own_metadata() != Some(metadata) {
            self.counters.refutations += 1;
            self.raise_revision(None);
        }
    }

    /// Replaces our own. Nodes that have the former one, if only from a request to be let in, need
    /// a new revision.
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
