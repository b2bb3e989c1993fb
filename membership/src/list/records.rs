//! The records that this node sends about the members on its list.

use super::MemberList;
use super::entry::{Entry, Standing};
use crate::message::{Age, Claim, Metadata, Record};

impl MemberList {
    /// The record of a member as an update: the metadata of a suspect or failed member is known to
    /// nearly all nodes, and left out. `now` is for the age of the dead; without it they have none.
    /// `None` for a member that has not answered yet.
    pub(crate) fn record(&self, slot: usize, now: Option<u16>) -> Option<Record> {
        self.record_with(slot, now, Metadata::default)
    }

    /// The record of a member for nodes that may never have met it.
    pub(crate) fn full_record(&self, slot: usize, now: Option<u16>) -> Option<Record> {
        let is_current = self.entry(slot).is_some_and(|entry| !entry.is_outdated());
        let known = self.metadata(slot).filter(|_| is_current);
        self.record_with(slot, now, || known.cloned().unwrap_or_default())
    }

    fn record_with(
        &self,
        slot: usize,
        now: Option<u16>,
        of_doubtful: impl Fn() -> Metadata,
    ) -> Option<Record> {
        let entry = self.entry(slot)?;
        let age = Age(now.map_or(0, |now| entry.age(now)));
        let claim = match entry.standing() {
            Standing::Unmet => return None,
            Standing::Alive | Standing::Doubted | Standing::Hearsay => {
                debug_assert!(!entry.is_outdated(), "a live member said its metadata");
                Claim::Alive(self.metadata(slot)?.clone())
            }
            Standing::Suspect => Claim::Suspect(of_doubtful()),
            Standing::Failed => Claim::Failed(of_doubtful(), age),
            Standing::Left => Claim::Left(age),
        };
        Some(Record {
            member: entry.member(),
            revision: entry.revision(),
            claim,
        })
    }

    /// Sets the metadata of a member in the revision that we have. O(length).
    pub(crate) fn set_metadata(&mut self, slot: usize, metadata: Metadata) {
        self.toggle_digest(slot);
        self.replace_metadata(slot, metadata);
        self.note(slot, |entry| entry.set_outdated(false));
        self.toggle_digest(slot);
    }

    /// Marks the member's metadata as out of date: its present revision came without metadata.
    /// Empty metadata means that none is known, so it needs no mark.
    pub(crate) fn outdate_metadata(&mut self, slot: usize) {
        let metadata = self.metadata(slot);
        let is_empty = metadata.is_none_or(|metadata| metadata.0.is_empty());
        self.note(slot, |entry| entry.set_outdated(!is_empty));
    }

    /// Returns true if the member's metadata is from an earlier revision than the one we have.
    pub(crate) fn is_outdated(&self, slot: usize) -> bool {
        self.entry(slot).is_some_and(Entry::is_outdated)
    }
}
