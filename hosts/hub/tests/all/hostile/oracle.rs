//! The promises of a hub, compared with its stored data and with the actions of its devices.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_hub::house::{End, KEPT, PreviewView, Record, Undone};
use selvedge_safehome::RoutineId;

use super::sheet::{Faults, NAMES};
use super::world::{World, number};

/// Returns true if an end agrees with the earlier one. A pending restoration may have happened meanwhile.
fn goes_on(old: &Option<(u64, End)>, new: &Option<(u64, End)>) -> bool {
    let (
        Some((at, End::Aborted { why, undo })),
        Some((
            then,
            End::Aborted {
                why: still,
                undo: now,
            },
        )),
    ) = (old, new)
    else {
        return old == new;
    };
    let is_open = |it: Undone| matches!(it, Undone::Begun | Undone::Pending);
    let mut pairs = undo.iter().zip(now);
    (at, why, undo.len()) == (then, still, now.len())
        && pairs.all(|(old, new)| old.0 == new.0 && (is_open(old.1) || old.1 == new.1))
}

impl World {
    /// The preview of a run must match the effects when the run is submitted.
    pub(super) fn compare(
        &mut self,
        id: RoutineId,
        preview: &PreviewView,
        open: &BTreeSet<RoutineId>,
    ) {
        let records = self.house.records();
        let record = records.get(id).unwrap();
        let is_at_once = preview.waits.is_none();
        assert!(
            record.started.is_some() == is_at_once || record.ended.is_some(),
            "{preview:?} {record:?} {:?}",
            self.house.run_view(id, record)
        );
        if !self.sheet.triggers.is_empty() {
            return; // Others may have been submitted with it.
        }
        let mut given_up = BTreeSet::new();
        for it in open {
            let record = records.get(*it).unwrap();
            let ended = record.ended.as_ref();
            let why = match ended {
                Some((_, End::Aborted { why, .. })) => Some(why),
                Some((_, End::Committed)) => None,
                None => record.aborting.as_ref(),
            };
            // Another run may be undone because of news that came with this run.
            if why.is_some_and(|it| it.contains(&format!("routine {id} "))) {
                given_up.insert(it.0);
            }
        }
        let taken = preview.preempted.iter().map(|it| it.run);
        let notified: BTreeSet<u64> = preview.superseded.iter().copied().chain(taken).collect();
        assert_eq!(notified, given_up, "{id}: {preview:?}");
        self.tally.previews += 1;
        self.tally.given_up += notified.len();
        self.tally.cut_short += preview.cut_short.len();
        self.tally.at_once += usize::from(is_at_once);
    }

    /// Compares a run as it is stored with its earlier record: reported facts stay.
    pub(super) fn note(&mut self, id: RoutineId, record: &Record) {
        if let Some(old) = self.history.get(&id) {
            assert_eq!(
                (&old.name, &old.routine, old.came),
                (&record.name, &record.routine, record.came)
            );
            assert!(
                old.ended.is_none() || goes_on(&old.ended, &record.ended),
                "{id}: {old:?} {record:?}"
            );
            assert!(
                old.place.is_none() || old.place == record.place,
                "{id}: {old:?} {record:?}"
            );
            assert!(old.started.is_none() || old.started == record.started);
            assert!(record.skipped.starts_with(&old.skipped));
        }
        if let Some((_, End::Aborted { undo, .. })) = &record.ended {
            assert_eq!(record.place, None);
            let lost = undo
                .iter()
                .filter(|it| matches!(it.1, Undone::Stuck | Undone::Impossible));
            let lost: Vec<_> = lost.filter_map(|it| self.catalogue.id(&it.0)).collect();
            self.loose.extend(lost);
        }
        self.history.insert(id, record.clone());
    }

    /// Records and hub agree, and each answered run is there.
    pub(super) fn agree(&self) {
        let hub: BTreeSet<_> = self.house.hub().unfinished().map(|it| it.0).collect();
        let records = self.house.records();
        let open = records.latest().filter(|it| it.1.ended.is_none());
        assert_eq!(hub, open.map(|it| it.0).collect());
        for &id in &self.answered {
            let record = records.get(id);
            let later = || self.history.range(id..).filter(|it| it.1.is_over()).count();
            assert!(record.is_some() || later() > KEPT, "run {id} is lost");
            assert!(
                record.is_none() || record == self.history.get(&id),
                "{record:?}"
            );
        }
        let over = self.history.values().filter(|it| it.is_over()).count();
        let kept = records.latest().filter(|it| it.1.is_over()).count();
        assert_eq!(kept, over.min(KEPT));
        assert_eq!(self.memory.runs.len(), records.latest().count());
    }

    /// No more faults. All runs end, and the end is as reported.
    pub(super) fn end(&mut self) {
        let faults = self.faults;
        self.faults = Faults {
            limits: faults.limits,
            ..Faults::default()
        };
        for id in self.things.keys().copied().collect::<Vec<_>>() {
            self.turn(id, true);
        }
        if self.sheet.triggers.is_empty() {
            self.rest();
            let open = self.history.iter().find(|it| !it.1.is_over());
            assert!(open.is_none(), "{open:?}");
        }
        self.sheet.triggers.clear();
        for name in NAMES {
            let late = self.sheet.ended.remove(name).unwrap_or_default();
            self.sheet.devices.entry(name).or_insert(late);
        }
        if !faults.is_kind() || faults.triggers {
            self.kill();
        }
        self.rest();
        for id in self.things.keys().copied().collect::<Vec<_>>() {
            self.poll(id);
        }
        self.rest();
        assert!(self.house.hub().is_quiet(), "{:?}", self.house.hub());
        self.agree();
        for (id, record) in &self.history {
            assert!(record.is_over(), "{id}: {record:?}");
            let Some((_, End::Aborted { why, .. })) = &record.ended else {
                self.tally.committed += 1;
                continue;
            };
            self.tally.aborted += 1;
            let usual = [
                "condition did not hold",
                "longer than it was lent",
                "takes its place",
                "more urgent",
            ];
            let is_usual = usual.iter().any(|it| why.contains(it));
            assert!(
                !faults.is_kind() || is_usual,
                "{id} for no reason: {record:?}"
            );
        }
        assert!(self.answered.iter().all(|it| self.history.contains_key(it)));
        self.explain();
        for (id, thing) in &self.things {
            assert_eq!(
                self.house.hub().state(*id),
                Some(&number(thing.state)),
                "{id}"
            );
        }
    }

    /// The runs one by one, in the reported order, lead to the final states of the devices.
    pub(super) fn explain(&mut self) {
        let runs = self.history.values();
        let mut order: Vec<_> = runs.filter_map(|it| Some((it.place?, it))).collect();
        order.sort_by_key(|it| it.0);
        assert!(
            order.windows(2).all(|it| it[0].0 < it[1].0),
            "two runs have one place"
        );
        let mut states: BTreeMap<_, _> = self.things.keys().map(|it| (*it, number(0))).collect();
        for (_, record) in order {
            for (nth, step) in (0..).zip(&record.routine.steps) {
                let skipped = record.skipped.iter().find(|it| it.0 == nth);
                if let Some(condition) = &step.condition
                    && self.loose.is_empty()
                    && skipped.is_none_or(|it| it.1.contains("condition"))
                {
                    let holds = condition.holds(&|it| states.get(&it));
                    assert_eq!(holds, Some(skipped.is_none()), "step {nth} of {record:?}");
                    self.tally.conditions += 1;
                }
                if skipped.is_none() {
                    states.insert(step.device, step.value.clone());
                }
            }
        }
        for (id, thing) in self.things.iter().filter(|it| !self.loose.contains(it.0)) {
            assert_eq!(
                number(thing.state),
                states[id],
                "device {id} of {:#?}",
                self.history
            );
            self.tally.exact += 1;
        }
    }
}
