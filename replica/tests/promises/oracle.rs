//! The rules that a history must obey. The oracle sees only effects that hosts carry out, in the
//! order of real time.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::Member;
use selvedge_replica::State;
use serde::{Deserialize, Serialize};

/// A state that remembers each update that it ever took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Log {
    pub(crate) ids: Vec<u64>,
    pub(crate) pad: Vec<u8>,
}

/// An update: the first field distinguishes it from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Op {
    pub(crate) id: u64,
    pub(crate) pad: Vec<u8>,
}

impl State for Log {
    type Update = Op;
    type Outcome = (u64, u64);

    fn apply(&mut self, op: &Op) -> (u64, u64) {
        self.ids.push(op.id);
        if let Some(at) = (op.id as usize).checked_rem(self.pad.len()) {
            self.pad[at] ^= op.id as u8;
        }
        (op.id, self.ids.len() as u64)
    }
}

/// The end of a proposal at the member that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Applied,
    Overtaken,
    Forgotten,
    Abandoned,
}

#[derive(Debug)]
struct Asked {
    id: u64,
    /// The highest version seen before it was asked.
    floor: u64,
    ended: Option<End>,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// The updates in their order, as far as any state showed it.
    log: Vec<u64>,
    length_at: BTreeMap<u64, usize>,
    pad_at: BTreeMap<usize, u64>,
    /// Versions and the updates that they applied.
    applied: BTreeMap<u64, (Member, u64)>,
    version_of: BTreeMap<(Member, u64), u64>,
    asked: BTreeMap<(Member, u64), Asked>,
    reads: BTreeMap<(Member, u64), (u64, bool)>,
    /// The highest version that any host has seen.
    seen: u64,
    never: BTreeSet<u64>,
    configured: BTreeMap<u64, u64>,
    pub(crate) reads_done: u64,
    pub(crate) ends: [u64; 4],
    /// True if peers lie: then no agreement is checked.
    pub(crate) is_off: bool,
}

fn digest(pad: &[u8]) -> u64 {
    pad.iter().fold(7, |sum, &it| {
        sum.wrapping_mul(31).wrapping_add(u64::from(it))
    })
}

impl Oracle {
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn log_len(&self) -> usize {
        self.log.len()
    }

    /// A proposal is about to be made; one that is relayed again was asked at first.
    pub(crate) fn ask(&mut self, by: Member, number: u64, id: u64) {
        if self.is_off {
            return;
        }
        let floor = self.seen;
        let asked = self.asked.entry((by, number)).or_insert(Asked {
            id,
            floor,
            ended: None,
        });
        assert_eq!(asked.id, id, "the harness gave a number twice");
    }

    /// It was refused.
    pub(crate) fn unask(&mut self, by: Member, number: u64) {
        if self.is_off {
            return;
        }
        self.asked.remove(&(by, number));
    }

    pub(crate) fn read(&mut self, by: Member, read: u64) {
        if self.is_off {
            return;
        }
        let before = self.reads.insert((by, read), (self.seen, false));
        assert_eq!(before, None);
    }

    /// Checks a state that its host may show to its users.
    pub(crate) fn state(&mut self, at: Member, version: u64, state: &Log) {
        if self.is_off {
            return;
        }
        let ids = &state.ids;
        let common = ids.len().min(self.log.len());
        assert_eq!(
            ids[..common],
            self.log[..common],
            "{at:?} holds other updates at {version}"
        );
        let known: BTreeSet<u64> = self.log[common..].iter().copied().collect();
        assert!(ids.len() == common || known.is_empty());
        let mut all: BTreeSet<u64> = self.log[..common].iter().copied().collect();
        for &id in &ids[common..] {
            assert!(all.insert(id), "{id} is applied twice");
            assert!(!self.never.contains(&id), "{id} was to be applied never");
            self.log.push(id);
        }
        let length = *self.length_at.entry(version).or_insert(ids.len());
        assert_eq!(length, ids.len(), "two states of {version} at {at:?}");
        if let Some((&before, &len)) = self.length_at.range(..version).next_back() {
            assert!(len <= length && length as u64 - len as u64 <= version - before);
        }
        if let Some((&behind, &len)) = self.length_at.range(version + 1..).next() {
            assert!(len >= length && len as u64 - length as u64 <= behind - version);
        }
        let pad = digest(&state.pad);
        assert_eq!(*self.pad_at.entry(ids.len()).or_insert(pad), pad);
        self.seen = self.seen.max(version);
    }

    /// Checks an update that a member reports as applied.
    pub(crate) fn applied(
        &mut self,
        at: Member,
        version: u64,
        by: Member,
        number: u64,
        outcome: (u64, u64),
    ) {
        if self.is_off {
            return;
        }
        let what = self.applied.entry(version).or_insert((by, number));
        assert_eq!(*what, (by, number), "two updates at version {version}");
        let was = self.version_of.entry((by, number)).or_insert(version);
        assert_eq!(*was, version, "{by:?} {number} is applied at two versions");
        let asked = self.asked.get(&(by, number)).expect("nobody asked for it");
        assert_eq!(outcome.0, asked.id, "another update under the same number");
        assert!(
            version > asked.floor,
            "{by:?} {number} at {version} is not above {}, seen before it was asked",
            asked.floor
        );
        if let Some(&id) = self.log.get(outcome.1 as usize - 1) {
            assert_eq!(id, outcome.0, "another place at {at:?}");
        }
        // In the proposer's order.
        if let Some((_, &before)) = self.version_of.range((by, 0)..(by, number)).next_back() {
            assert!(before < version, "{by:?} {number} out of order");
        }
        let later = (by, number + 1)..=(by, u64::MAX);
        if let Some((_, &behind)) = self.version_of.range(later).next() {
            assert!(behind > version, "{by:?} {number} out of order");
        }
        self.seen = self.seen.max(version);
        if by == at {
            self.end(at, by, number, End::Applied);
        }
    }

    /// A proposal ended at `at`.
    pub(crate) fn end(&mut self, at: Member, by: Member, number: u64, end: End) {
        if self.is_off {
            return;
        }
        self.ends[end as usize] += 1;
        if at != by {
            return;
        }
        let asked = self.asked.get_mut(&(by, number)).expect("asked");
        assert_eq!(asked.ended, None, "{by:?} {number} ends again: {end:?}");
        asked.ended = Some(end);
    }

    /// Checks that a proposal is forgotten, as a member with this state reports.
    pub(crate) fn forgotten(&mut self, by: Member, number: u64, state: &Log) {
        if self.is_off {
            return;
        }
        let id = self.asked.get(&(by, number)).expect("asked").id;
        if !state.ids.contains(&id) {
            assert!(!self.log.contains(&id), "{by:?} {number} is applied later");
            self.never.insert(id);
        }
    }

    pub(crate) fn readable(&mut self, at: Member, read: u64, least: u64, version: u64) {
        if self.is_off {
            return;
        }
        let (floor, done) = self.reads.get_mut(&(at, read)).expect("nobody asked");
        assert!(!*done, "{at:?} {read} is answered twice");
        *done = true;
        assert!(version >= least);
        assert!(
            version >= *floor,
            "a stale read at {at:?}: {version}, and {floor} was seen before it was asked"
        );
        self.reads_done += 1;
    }

    pub(crate) fn unreadable(&mut self, at: Member, read: u64) {
        if self.is_off {
            return;
        }
        let (_, done) = self.reads.get_mut(&(at, read)).expect("nobody asked");
        assert!(!*done, "{at:?} {read} is answered twice");
        *done = true;
    }

    pub(crate) fn configured(&mut self, number: u64, version: u64) {
        if self.is_off {
            return;
        }
        // A member that received the state whole reports its version.
        let was = self.configured.entry(number).or_insert(version);
        *was = version.min(*was);
        if let Some((_, &before)) = self.configured.range(..number).next_back() {
            assert!(before < version, "{number} begins before the one before");
        }
        self.seen = self.seen.max(version);
    }

    /// The commands that this life has not answered.
    pub(crate) fn open(&self, of: Member) -> Vec<String> {
        let proposals = self
            .asked
            .range((of, 0)..=(of, u64::MAX))
            .filter(|(_, it)| it.ended.is_none())
            .map(|((_, number), _)| format!("{of:?} proposal {number}"));
        let reads = self
            .reads
            .range((of, 0)..=(of, u64::MAX))
            .filter(|(_, it)| !it.1)
            .map(|((_, number), _)| format!("{of:?} read {number}"));
        proposals.chain(reads).collect()
    }

    /// Checks that every reported update is in the final order.
    pub(crate) fn nothing_lost(&self) {
        if self.is_off {
            return;
        }
        for ((by, number), asked) in &self.asked {
            let known = self.version_of.get(&(*by, *number));
            let holds = self.log.contains(&asked.id);
            assert!(
                known.is_none() || holds,
                "{by:?} {number} was applied, and is lost"
            );
            if asked.ended == Some(End::Overtaken) {
                assert!(holds, "{by:?} {number} is said to be applied");
            }
        }
    }
}
