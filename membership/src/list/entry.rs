//! One member on the list.

use selvedge_core::{Incarnation, Member, NodeId};

/// The standing of a member on our list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Alive,
    /// Our own probe failed once; no other node knows.
    Doubted,
    /// Failed on another list, and live on ours: we ask the member itself.
    Hearsay,
    /// Reported as live by other nodes, and perhaps a dead member with a tombstone that was dropped
    /// early: it is probed, and not announced before it answers.
    Unmet,
    Suspect,
    Failed,
    Left,
}

impl Standing {
    pub(crate) const fn is_live(self) -> bool {
        matches!(
            self,
            Self::Alive | Self::Doubted | Self::Hearsay | Self::Unmet | Self::Suspect
        )
    }

    /// Returns true if its suspicion timer is armed.
    pub(crate) const fn is_timed(self) -> bool {
        matches!(
            self,
            Self::Doubted | Self::Hearsay | Self::Unmet | Self::Suspect
        )
    }
}

/// An entry of a member: 24 bytes.
///
/// Standing, revision and life change through the list alone: digest, weights and tombstones depend
/// on them. All else may change through [`MemberList::note`](super::MemberList::note).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    id: NodeId,
    incarnation: Incarnation,
    revision: u32,
    /// The period of the last contact; of its end, once it is not live.
    stamp: u16,
    standing: Standing,
    suspicions: u8,
    missed: u8,
    is_neighbour: bool,
    /// True if the application was notified that this life is here.
    is_reported: bool,
    /// True if its metadata is from an earlier revision: news of a suspicion or a failure has none.
    /// The metadata is kept for the host, and sent to no other node.
    is_outdated: bool,
}

impl Entry {
    /// A member that is alive.
    pub(super) const fn new(member: Member, revision: u32, stamp: u16) -> Self {
        Self {
            id: member.id,
            incarnation: member.incarnation,
            revision,
            stamp,
            standing: Standing::Alive,
            suspicions: 0,
            missed: 0,
            is_neighbour: false,
            is_reported: false,
            is_outdated: false,
        }
    }

    /// Another standing, in this revision. `stamp` counts where the member ends or comes back.
    pub(super) const fn set_standing(&mut self, standing: Standing, revision: u32, stamp: u16) {
        if self.standing.is_live() != standing.is_live() {
            self.stamp = stamp;
        }
        self.standing = standing;
        self.revision = revision;
    }

    /// Begins another life of the same node. Only the distance is kept.
    pub(super) const fn begin_life(&mut self, incarnation: Incarnation, stamp: u16) {
        self.incarnation = incarnation;
        self.stamp = stamp;
        self.suspicions = 0;
        self.missed = 0;
        self.is_reported = false;
    }

    pub(super) const fn set_outdated(&mut self, is_outdated: bool) {
        self.is_outdated = is_outdated;
    }

    /// Notes a contact in this period.
    pub(crate) const fn note_contact(&mut self, period: u16) {
        self.stamp = period;
    }

    /// Keeps the age of the last contact at `most` periods.
    pub(crate) const fn limit_age(&mut self, period: u16, most: u16) {
        if self.age(period) > most {
            self.stamp = period.wrapping_sub(most);
        }
    }

    /// Notes that it missed a whole probe.
    pub(crate) fn note_missed(&mut self, limit: u8) {
        self.missed = self.missed.saturating_add(1).min(limit);
    }

    /// Notes that it is suspected, once more.
    pub(crate) fn note_suspicion(&mut self, limit: u8) {
        self.suspicions = self.suspicions.saturating_add(1).min(limit);
    }

    pub(crate) const fn set_neighbour(&mut self, is_neighbour: bool) {
        self.is_neighbour = is_neighbour;
    }

    /// Notes that the application was notified of this life.
    pub(crate) const fn set_reported(&mut self) {
        self.is_reported = true;
    }

    pub(crate) const fn member(&self) -> Member {
        Member {
            id: self.id,
            incarnation: self.incarnation,
        }
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) const fn revision(&self) -> u32 {
        self.revision
    }

    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    pub(crate) const fn is_live(&self) -> bool {
        self.standing.is_live()
    }

    /// The period of its end.
    pub(super) const fn stamp(&self) -> u16 {
        self.stamp
    }

    /// The number of periods since its last contact, or since its end.
    pub(crate) const fn age(&self, period: u16) -> u16 {
        period.wrapping_sub(self.stamp)
    }

    pub(crate) const fn suspicions(&self) -> u8 {
        self.suspicions
    }

    pub(crate) const fn missed(&self) -> u8 {
        self.missed
    }

    pub(crate) const fn is_neighbour(&self) -> bool {
        self.is_neighbour
    }

    pub(crate) const fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// Returns true if the member gave its metadata in an earlier revision than the one we have.
    /// Then it is suspected or over: a live member states both.
    pub(crate) const fn is_outdated(&self) -> bool {
        self.is_outdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }
}
