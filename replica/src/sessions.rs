//! The record of applied proposals: each is applied once, in the order of its proposer.

use alloc::vec::Vec;

use selvedge_core::{Incarnation, Member, NodeId};
use serde::{Deserialize, Serialize};

use crate::Version;

/// The group's record of a proposer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Session {
    id: NodeId,
    incarnation: Incarnation,
    /// The number with which its present row began: all from here to the last one were applied.
    first: u64,
    /// The last number that was applied.
    last: u64,
    /// The version that applied it.
    used: Version,
}

/// The proposers with the last number of each, by id. Part of the replicated state, so it depends on
/// the entries alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) struct Sessions {
    /// In order of ids.
    known: Vec<Session>,
    /// No proposer that was forgotten was used after this version.
    forgotten: Version,
}

/// The status of a waiting proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may be applied yet.
    Open,
    /// It was applied.
    Applied,
    /// It is never applied from here on, and may have been.
    Over,
}

/// The effect of a proposal when it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is applied.
    New,
    /// It was applied before, its proposer's life has ended, or a proposal before it is missing.
    Old,
    /// Its proposer was forgotten: it is unknown if it was applied before.
    Forgotten,
}

impl Sessions {
    /// The last number that was applied of this life of a proposer, if it is known.
    pub(crate) fn last(&self, by: Member) -> Option<u64> {
        let known = self.place(by.id).ok().and_then(|at| self.known.get(at));
        let known = known.filter(|it| it.incarnation == by.incarnation);
        known.map(|it| it.last)
    }

    /// Returns true if the proposer that began at `since`, and is not known, may have been
    /// forgotten. Each applied proposal of a forgotten proposer was proposed before it was applied,
    /// so with an earlier `since`.
    pub(crate) fn is_forgotten(&self, since: Version) -> bool {
        since < self.forgotten
    }

    /// The fate of a proposal, as far as the state shows it.
    pub(crate) fn fate(&self, by: Member, number: u64, since: Version) -> Fate {
        let known = self.place(by.id).ok().and_then(|at| self.known.get(at));
        match known {
            Some(it) if it.incarnation == by.incarnation && number <= it.last => {
                // The rows before this one are forgotten.
                match number >= it.first {
                    true => Fate::Applied,
                    false => Fate::Over,
                }
            }
            _ if self.rules_out(by, since) => Fate::Over,
            _ => Fate::Open,
        }
    }

    /// Returns true if a proposal that is not applied yet never will be: its proposer was
    /// forgotten, or is in a later life.
    pub(crate) fn rules_out(&self, by: Member, since: Version) -> bool {
        let known = self.place(by.id).ok().and_then(|at| self.known.get(at));
        match known {
            Some(session) => session.incarnation.newer_than(by.incarnation),
            None => self.is_forgotten(since),
        }
    }

    /// Records a proposal that `version` decides. O(log n), and O(n) where a proposer is new.
    pub(crate) fn admit(
        &mut self,
        (by, number): (Member, u64),
        (first, since): (u64, Version),
        version: Version,
        limit: usize,
    ) -> Admission {
        let place = self.place(by.id);
        let session = Session {
            id: by.id,
            incarnation: by.incarnation,
            first: number,
            last: number,
            used: version,
        };
        match place {
            Ok(at) => {
                let Some(known) = self.known.get_mut(at) else {
                    return Admission::Old;
                };
                let is_next = known.last.checked_add(1) == Some(number);
                let follows = known.incarnation == by.incarnation && is_next;
                // The proposer is in a later life, or began a new row without the proposals that it
                // gave up.
                let is_later = match known.incarnation == by.incarnation {
                    true => number > known.last,
                    false => by.incarnation.newer_than(known.incarnation),
                };
                let begins = is_later && number == first;
                if !follows && !begins {
                    return Admission::Old;
                }
                let first = if begins { number } else { known.first };
                *known = Session { first, ..session };
                Admission::New
            }
            Err(_) if self.is_forgotten(since) => Admission::Forgotten,
            Err(_) if number != first => Admission::Old,
            Err(at) => {
                self.known.insert(at, session);
                self.forget_beyond(limit);
                Admission::New
            }
        }
    }

    /// Keeps the `limit` proposers that were used last.
    fn forget_beyond(&mut self, limit: usize) {
        let Some(excess) = self.known.len().checked_sub(limit).filter(|&it| it > 0) else {
            return;
        };
        let idle = match excess {
            1 => self.known.iter().map(|it| it.used).min(),
            // A configuration may remember far fewer than the one before.
            _ => {
                let mut used: Vec<Version> = self.known.iter().map(|it| it.used).collect();
                used.sort_unstable();
                used.get(excess - 1).copied()
            }
        };
        if let Some(idle) = idle {
            self.known.retain(|it| it.used > idle);
            self.forgotten = self.forgotten.max(idle);
        }
    }

    /// Returns true if it is in strict order of ids: it is searched by id.
    pub(crate) fn is_sound(&self) -> bool {
        self.known.is_sorted_by(|one, other| one.id < other.id)
    }

    fn place(&self, id: NodeId) -> Result<usize, usize> {
        self.known.binary_search_by_key(&id, |it| it.id)
    }
}
