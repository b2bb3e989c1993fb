//! The rules of maps: changes and reads as clients see them, each between its beginning and its
//! end, are explained by one order of changes.

use std::collections::BTreeMap;

use selvedge_core::Member;
use selvedge_groups::{
    GroupId,
    store::{Expected, Stored},
};

#[derive(Clone, Debug)]
pub(crate) enum What {
    Change {
        key: String,
        expected: Expected,
        puts: bool,
    },
    Get {
        key: String,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Changed(Stored),
    /// The version, and the change that wrote it.
    Found(Option<(u64, u64)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) map: GroupId,
    pub(crate) by: Member,
    pub(crate) what: What,
    pub(crate) start: u64,
    pub(crate) end: Option<(u64, Outcome)>,
}

/// A change that was done, and when.
#[derive(Clone, Debug)]
struct Done {
    key: String,
    /// True if it removed the entry; `None` if that is unknown.
    removes: Option<bool>,
    first: u64,
    last: u64,
}

struct Seen {
    key: String,
    entry: Option<u64>,
    from: u64,
    to: u64,
}

/// The removal of an entry that is not there changes nothing, and has the map's version.
struct Idle {
    version: u64,
    key: String,
    from: u64,
    to: u64,
}

/// The version of an entry, and the change that wrote it.
type Shown = Option<(u64, u64)>;

#[derive(Default)]
pub(crate) struct Maps {
    time: u64,
    next: u64,
    pub(crate) asked: BTreeMap<u64, Asked>,
    /// The events of watches: map, key, entry, time.
    watched: Vec<(GroupId, String, Shown, u64)>,
    last: BTreeMap<(GroupId, String), u64>,
    pub(crate) changed: u64,
    pub(crate) read: u64,
    /// Peers lie, and nothing is agreed.
    pub(crate) is_off: bool,
}

impl Maps {
    pub(crate) fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn shown_count(&self) -> u64 {
        self.watched.len() as u64
    }

    /// The last received version of an entry.
    pub(crate) fn last(&self, map: GroupId, key: &str) -> Option<u64> {
        self.last.get(&(map, key.to_owned())).copied()
    }

    pub(crate) fn ends(&mut self, me: Member, map: GroupId, op: u64, outcome: Outcome) {
        let now = self.tick();
        if self.is_off {
            return;
        }
        let asked = self.asked.get_mut(&op).expect("no node asked this");
        assert_eq!((asked.by, asked.map), (me, map), "another one asked {op}");
        assert!(
            asked.end.is_none(),
            "{op} is answered twice: {asked:?}, {outcome:?}"
        );
        asked.end = Some((now, outcome));
        let (key, version) = match (&asked.what, outcome) {
            (What::Change { key, .. }, Outcome::Changed(stored)) => {
                self.changed += u64::from(matches!(stored, Stored::Done { .. }));
                match stored {
                    Stored::Done { version } => (key, Some(version)),
                    Stored::Mismatch { found } => (key, found),
                    _ => return,
                }
            }
            (What::Get { key }, Outcome::Found(entry)) => {
                self.read += 1;
                (key, entry.map(|it| it.0))
            }
            (what, outcome) => panic!("{what:?} is answered {outcome:?}"),
        };
        if let Some(version) = version {
            let last = self.last.entry((map, key.clone())).or_default();
            *last = version.max(*last);
        }
    }

    pub(crate) fn shown(&mut self, map: GroupId, key: &str, entry: Option<(u64, u64)>) {
        let now = self.tick();
        self.watched.push((map, key.to_owned(), entry, now));
    }

    /// The requests of one life that have no answer.
    pub(crate) fn open(&self, of: Member) -> Vec<&Asked> {
        self.asked
            .values()
            .filter(|it| it.by == of && it.end.is_none())
            .collect()
    }

    /// Checks one map. `version` is the number of changes that the map itself counts, if that is
    /// known.
    pub(crate) fn check(&self, map: GroupId, version: Option<u64>) {
        if self.is_off {
            return;
        }
        let seen = self.seen(map);
        let (mut done, by_op, idle) = self.done(map, &seen.1, &seen.0);
        let seen = seen.0;
        for it in &idle {
            let last = done
                .range(..=it.version)
                .rev()
                .find(|of| of.1.key == it.key);
            let fits = last.is_none_or(|it| it.1.removes != Some(false))
                || self.is_open(map, &it.key, false, &by_op, it.to);
            assert!(
                fits,
                "{} is removed at {}, and is there",
                it.key, it.version
            );
            if let Some((_, at)) = done.range_mut(..=it.version).next_back() {
                at.last = at.last.min(it.to);
            }
            if let Some((_, next)) = done.range_mut(it.version + 1..).next() {
                next.first = next.first.max(it.from);
            }
        }
        self.in_the_order_asked(map, &by_op);
        self.as_expected(map, &done, &by_op);
        stand_for_open(&mut done, &seen);
        bound(&mut done, &seen);
        let versions: Vec<u64> = done.keys().copied().collect();
        let mut first = 0;
        for it in done.values_mut() {
            first = first.max(it.first);
            it.first = first;
        }
        let mut last = u64::MAX;
        for version in versions.iter().rev() {
            let it = done.get_mut(version).unwrap();
            last = last.min(it.last);
            it.last = last;
            assert!(
                it.first <= it.last,
                "{map:?} version {version} is no earlier than {} and no later than {}: {it:?}",
                it.first,
                it.last
            );
        }
        for it in seen.iter().filter(|it| it.entry.is_none()) {
            self.was_absent(map, &done, &by_op, it);
        }
        // Each change once, and none but these.
        let highest = versions.last().copied().unwrap_or(0);
        let open = self.changes(map).filter(|(op, it)| {
            let over =
                !matches!(it.end, Some((_, Outcome::Changed(it))) if !matches!(it, Stored::Over));
            over && !by_op.contains_key(op)
        });
        let open = open.count() as u64;
        let top = version.unwrap_or(highest);
        assert!(top >= highest, "{map:?} is at {top}, {highest} was seen");
        let unknown = top - versions.len() as u64;
        assert!(
            unknown <= open,
            "{map:?}: {unknown} changes of {top} are of no node, {open} are open"
        );
    }

    fn changes(&self, map: GroupId) -> impl Iterator<Item = (&u64, &Asked)> {
        self.asked
            .iter()
            .filter(move |it| it.1.map == map && matches!(it.1.what, What::Change { .. }))
    }

    /// All that was seen of a map, and the change that was seen at each version.
    fn seen(&self, map: GroupId) -> (Vec<Seen>, BTreeMap<u64, u64>) {
        let (mut seen, mut written) = (Vec::new(), BTreeMap::new());
        let mut take = |key: &str, entry: Option<(u64, u64)>, from, to| {
            if let Some((version, op)) = entry {
                let at = *written.entry(op).or_insert(version);
                assert_eq!(at, version, "change {op} is done twice");
                match &self.asked.get(&op).expect("no node wrote this").what {
                    What::Change { key: of, puts, .. } => {
                        assert!(of == key && *puts, "{op} is no change of {key}");
                    }
                    What::Get { .. } => panic!("{op} is a question"),
                }
            }
            seen.push(Seen {
                key: key.to_owned(),
                entry: entry.map(|it| it.0),
                from,
                to,
            });
        };
        for it in self.asked.values().filter(|it| it.map == map) {
            if let (What::Get { key }, Some((end, Outcome::Found(entry)))) = (&it.what, it.end) {
                take(key, entry, it.start, end);
            }
        }
        for (_, key, entry, when) in self.watched.iter().filter(|it| it.0 == map) {
            take(key, *entry, 0, *when);
        }
        for (_, it) in self.changes(map) {
            if let (What::Change { key, .. }, Some((to, Outcome::Changed(stored)))) =
                (&it.what, it.end)
                && let Stored::Mismatch { found } = stored
            {
                seen.push(Seen {
                    key: key.clone(),
                    entry: found,
                    from: it.start,
                    to,
                });
            }
        }
        (seen, written)
    }

    /// The changes that were done, by version, and the version of each.
    fn done(
        &self,
        map: GroupId,
        written: &BTreeMap<u64, u64>,
        seen: &[Seen],
    ) -> (BTreeMap<u64, Done>, BTreeMap<u64, u64>, Vec<Idle>) {
        let mut done: BTreeMap<u64, Done> = BTreeMap::new();
        let mut by_op = BTreeMap::new();
        let mut idle = Vec::new();
        let mut removals = Vec::new();
        for (&op, it) in self.changes(map) {
            let What::Change { key, puts, .. } = &it.what else {
                continue;
            };
            let Some((version, last)) = landed(op, it, written.get(&op).copied()) else {
                continue;
            };
            let change = Done {
                key: key.clone(),
                removes: Some(!puts),
                first: it.start,
                last,
            };
            if *puts {
                by_op.insert(op, version);
                let other = done.insert(version, change);
                assert!(
                    other.is_none(),
                    "two changes made version {version} of {map:?}"
                );
            } else {
                removals.push((version, op, change));
            }
        }
        stand_for_open(&mut done, seen);
        removals.sort_by_key(|it| it.0);
        while let Some(&(version, ..)) = removals.first() {
            let end = removals.partition_point(|it| it.0 == version);
            let mut here: Vec<_> = removals.drain(..end).collect();
            // A removal that was asked later than an answer with this version did not make it.
            let later = removals.iter().chain(&here).map(|it| it.2.last);
            let known = later.chain(done.range(version..).map(|it| it.1.last)).min();
            let rank = |op: u64, change: &Done, done: &BTreeMap<u64, Done>| {
                let rank = self.rank(map, op, change, done, version, written);
                let is_later = known.is_some_and(|it| it < change.first);
                if rank > 0 && is_later { 4 } else { rank }
            };
            // Of several changes at one version, one at most found an entry, and removed it.
            here.sort_by_cached_key(|it| rank(it.1, &it.2, &done));
            let taken = version == 0 || done.contains_key(&version);
            for (nth, (_, op, change)) in here.into_iter().enumerate() {
                let rank = rank(op, &change, &done);
                assert!(
                    rank > 0 || (nth == 0 && !taken),
                    "two changes made {version} of {map:?}"
                );
                if nth == 0 && !taken && rank < 4 {
                    by_op.insert(op, version);
                    done.insert(version, change);
                } else {
                    idle.push(Idle {
                        version,
                        key: change.key,
                        from: change.first,
                        to: change.last,
                    });
                }
            }
        }
        (done, by_op, idle)
    }

    /// A rank of how surely a removal found an entry: 0 if it did, 4 if it did not.
    fn rank(
        &self,
        map: GroupId,
        op: u64,
        change: &Done,
        done: &BTreeMap<u64, Done>,
        version: u64,
        written: &BTreeMap<u64, u64>,
    ) -> u8 {
        let What::Change { expected, .. } = self.asked[&op].what else {
            return 4;
        };
        let before = done
            .range(..version)
            .rev()
            .find(|it| it.1.key == change.key);
        let there = before.is_some_and(|it| it.1.removes == Some(false));
        let open = |puts| self.is_open(map, &change.key, puts, written, change.last);
        match expected {
            Expected::Version(_) => 0,
            Expected::Absent => 4,
            // A removal, or a change, without a known outcome may have been done.
            Expected::Any if there && !open(false) => 1,
            Expected::Any if there => 2,
            Expected::Any if open(true) => 3,
            Expected::Any => 4,
        }
    }

    fn in_the_order_asked(&self, map: GroupId, by_op: &BTreeMap<u64, u64>) {
        let mut last: BTreeMap<Member, u64> = BTreeMap::new();
        for (op, it) in self.changes(map) {
            if let Some(&version) = by_op.get(op) {
                let before = last.insert(it.by, version).unwrap_or(0);
                assert!(before < version, "{:?} is out of order: {op}", it.by);
            }
        }
    }

    fn as_expected(&self, map: GroupId, done: &BTreeMap<u64, Done>, by_op: &BTreeMap<u64, u64>) {
        for (op, it) in self.changes(map) {
            let What::Change { key, expected, .. } = &it.what else {
                continue;
            };
            if let Some((_, Outcome::Changed(Stored::Mismatch { found }))) = it.end {
                let differs = match expected {
                    Expected::Any => false,
                    Expected::Absent => found.is_some(),
                    Expected::Version(version) => found != Some(*version),
                };
                assert!(differs, "{op} expected {expected:?}, as it was");
            }
            let Some(&version) = by_op.get(op) else {
                continue;
            };
            let before = done.range(..version).rev().find(|it| it.1.key == *key);
            let fits = match expected {
                Expected::Any => true,
                Expected::Absent => {
                    before.is_none_or(|it| it.1.removes != Some(false))
                        || self.is_open(map, key, false, by_op, u64::MAX)
                }
                Expected::Version(it) => {
                    before.is_some_and(|before| before.0 == it && before.1.removes != Some(true))
                        // No client saw it: a change with an unknown outcome made it.
                        || !done.contains_key(it) && before.is_none_or(|before| before.0 < it)
                }
            };
            assert!(
                fits,
                "{op} at {version} of {map:?}: {expected:?}, after {before:?}"
            );
        }
    }

    /// Returns true if a change with an unknown outcome may have put an entry there, or removed it.
    fn is_open(
        &self,
        map: GroupId,
        key: &str,
        puts: bool,
        by_op: &BTreeMap<u64, u64>,
        until: u64,
    ) -> bool {
        self.changes(map).any(|(op, it)| {
            let open = matches!(it.end, None | Some((_, Outcome::Changed(Stored::Over))));
            let fits = matches!(&it.what, What::Change { key: of, puts: it, .. } if of == key && *it == puts);
            open && fits && it.start <= until && !by_op.contains_key(op)
        })
    }

    fn was_absent(
        &self,
        map: GroupId,
        done: &BTreeMap<u64, Done>,
        by_op: &BTreeMap<u64, u64>,
        seen: &Seen,
    ) {
        let mut absent_since = Some(0);
        for it in done.values().filter(|it| it.key == seen.key) {
            if absent_since.is_some_and(|since| since <= seen.to) && it.last >= seen.from {
                return;
            }
            absent_since = (it.removes != Some(false)).then_some(it.first);
        }
        let fits = absent_since.is_some_and(|since| since <= seen.to);
        assert!(
            fits || self.is_open(map, &seen.key, false, by_op, seen.to),
            "{map:?}: {} is not absent between {} and {}",
            seen.key,
            seen.from,
            seen.to
        );
    }
}

/// The version that a change made, and the latest time at which it was done.
fn landed(op: u64, it: &Asked, shown: Option<u64>) -> Option<(u64, u64)> {
    match it.end {
        Some((end, Outcome::Changed(Stored::Done { version }))) => {
            assert!(shown.is_none_or(|it| it == version), "{op} is done twice");
            Some((version, end))
        }
        Some((_, Outcome::Changed(Stored::Over))) | None => Some((shown?, u64::MAX)),
        Some((_, outcome)) => {
            assert!(
                shown.is_none(),
                "{op} is done, and its outcome is {outcome:?}"
            );
            None
        }
    }
}

/// Entries that were seen, but that no change is known to have written: an open change put them
/// there.
fn stand_for_open(done: &mut BTreeMap<u64, Done>, seen: &[Seen]) {
    for it in seen {
        let Some(version) = it.entry else { continue };
        done.entry(version).or_insert_with(|| Done {
            key: it.key.clone(),
            removes: Some(false),
            first: 0,
            last: u64::MAX,
        });
    }
}

/// Bounds from the observations: the latest time of each change, and the earliest of the next ones.
fn bound(done: &mut BTreeMap<u64, Done>, seen: &[Seen]) {
    for it in seen {
        let Some(version) = it.entry else { continue };
        let change = done.get_mut(&version).unwrap();
        assert_eq!(change.key, it.key, "version {version} is of two entries");
        change.last = change.last.min(it.to);
    }
    for it in seen {
        let Some(version) = it.entry else { continue };
        let behind = done.range_mut(version + 1..);
        if let Some((_, next)) = behind.into_iter().find(|next| next.1.key == it.key) {
            next.first = next.first.max(it.from);
        }
    }
}
