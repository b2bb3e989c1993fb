//! Checks of a stored state: a hub must be able to reach it.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use crate::config::Visibility;
use crate::failure::KEPT;
use crate::lineage::{Device, Entry, Owner};
use crate::run::{Run, Stage};
use crate::{Damage, Flaw, Hub, LONGEST_KEY, LONGEST_LATENESS, Placed, RoutineId, Step, Value};

/// Routines, commands and steps are numbered from 1; no hub reaches this number.
const LAST_NUMBER: u64 = 1 << 63;

impl<V: Value> Hub<V> {
    /// Checks that a hub can reach this state: the invariants that hold after each step.
    ///
    /// # Errors
    /// The first defect.
    #[cfg(feature = "check")]
    pub fn check(&self) -> Result<(), Damage> {
        self.audit()
    }

    pub(crate) fn audit(&self) -> Result<(), Damage> {
        for number in [self.last.0, self.token, *self.number] {
            if number >= LAST_NUMBER {
                return Err(Damage::Number(number));
            }
        }
        for (&routine, run) in self.runs.iter() {
            let sound = self.sound_run(routine, run);
            sound.map_err(|flaw| Damage::Routine { routine, flaw })?;
        }
        for (&device, it) in self.devices.iter() {
            let sound = self.sound_device(device, it);
            sound.map_err(|flaw| Damage::Device { device, flaw })?;
        }
        let flights = self.devices.iter().filter_map(|(&device, it)| {
            let flight = it.flight.as_ref()?;
            Some((flight.token, device))
        });
        let mut flights: Vec<(u64, NodeId)> = flights.collect();
        flights.sort_unstable();
        for pair in flights.windows(2) {
            if let &[(first, _), (second, device)] = pair
                && first == second
            {
                let flaw = Flaw::Command;
                return Err(Damage::Device { device, flaw });
            }
        }
        let is_strict = matches!(
            self.config.visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        );
        let mut active = self.runs.iter().filter(|(_, run)| run.is_active()).skip(1);
        if let (true, Some((&routine, _))) = (is_strict, active.next()) {
            let flaw = Flaw::Beside;
            return Err(Damage::Routine { routine, flaw });
        }
        self.sound_orders()?;
        // Invariant 4, over all routines: no routine comes before itself, by way of any others.
        self.one_order().map(drop).map_err(Damage::Order)
    }

    fn sound_run(&self, id: RoutineId, run: &Run<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        must(id.0 > 0 && id <= self.last, Flaw::Misplaced)?;
        // The commands of a committed routine are not needed.
        let is_committed = run.stage == Stage::Committed;
        must(run.routine.steps.is_empty() == is_committed, Flaw::Step)?;
        let in_no_time = |it: &Step<V>| it.timeout == Some(Span::ZERO);
        must(!run.routine.steps.iter().any(in_no_time), Flaw::NoTime)?;
        let key = run.terms.key().unwrap_or_default();
        must(key.len() <= LONGEST_KEY, Flaw::Key)?;
        let is_known = |it: &NodeId| self.devices.contains(it);
        must(run.devices.iter().all(is_known), Flaw::UnknownDevice)?;
        let is_over = usize::from(run.at) == run.routine.steps.len();
        must(is_over || run.step().is_some(), Flaw::Step)?;
        must(is_over == is_committed, Flaw::Stage)?;
        let is_asked = run.step().is_some_and(|it| it.condition.is_some());
        must(!run.tested || is_asked, Flaw::Stage)?;
        let mut places = run.devices.iter();
        match run.stage {
            Stage::Waiting => {
                let is_new = run.at == 0 && !run.tested && run.busy.is_none();
                must(is_new && !self.is_weak(), Flaw::Stage)?;
                return Ok(());
            }
            Stage::Queued => {
                let is_new = run.at == 0 && !run.tested && run.busy.is_none();
                // Otherwise no later step would admit it.
                return must(is_new && self.held_by(id).is_some(), Flaw::Stage);
            }
            Stage::Committed => {
                // Otherwise no later step would remove it.
                let is_left = places.any(|at| self.place_of(id, *at).is_some());
                return must(is_left && run.busy.is_none(), Flaw::Stage);
            }
            Stage::Placed => must(run.busy.is_none(), Flaw::Stage)?,
            Stage::Running => {}
            // It is undone as soon as it has no command in flight.
            Stage::Aborting(_) => must(run.busy.is_some(), Flaw::Stage)?,
        }
        if let Some(at) = run.busy {
            must(run.step().is_some_and(|it| it.device == at), Flaw::Command)?;
            let device = self.devices.get(&at).ok_or(Flaw::UnknownDevice)?;
            let ours = device.flight.as_ref().and_then(|it| it.routine);
            let is_held = device.held == Some(id) && run.stage == Stage::Running;
            must(ours == Some(id) || is_held, Flaw::Command)?;
        }
        let lacks = |at: &NodeId| {
            let is_next = run.step().is_some_and(|step| step.device == *at);
            let is_needed = if self.is_weak() {
                is_next
            } else {
                run.still_needs(*at)
            };
            is_needed && self.place_of(id, *at).is_none()
        };
        must(!places.any(lacks), Flaw::NoPlace)
    }

    fn sound_device(&self, id: NodeId, device: &Device<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        // All entries that have touched it come before all that have not; among routines, the ones
        // that released it come first, and one uses it.
        let entries = || device.lineage.iter();
        must(entries().map(|it| !it.touched).is_sorted(), Flaw::Mixed)?;
        let routines = || entries().filter(|it| it.routine().is_some());
        must(routines().map(|it| !it.released).is_sorted(), Flaw::Mixed)?;
        let uses = |it: &&Entry<V>| it.touched && !it.released;
        must(routines().filter(uses).count() <= 1, Flaw::Mixed)?;
        let is_event = |it: &&Entry<V>| matches!(it.owner, Owner::Failed | Owner::Restarted);
        must(entries().filter(is_event).count() <= KEPT, Flaw::Failures)?;
        let is_hand = |it: &Entry<V>| it.owner == Owner::Hand;
        let mut pairs = entries().zip(entries().skip(1));
        let is_joined = !pairs.any(|(first, second)| is_hand(first) && is_hand(second));
        must(is_joined, Flaw::Hands)?;
        let is_partitioned = self.config.visibility == Visibility::PartitionedStrict;
        let waits = routines().filter(|it| !it.released).count();
        must(!is_partitioned || waits <= 1, Flaw::Beside)?;
        let mut owners: Vec<RoutineId> = entries().filter_map(Entry::routine).collect();
        owners.sort_unstable();
        must(
            !owners.windows(2).any(|it| it.first() == it.last()),
            Flaw::TwoPlaces,
        )?;
        for entry in &device.lineage {
            self.sound_entry(id, entry)?;
        }
        let is_in_use = |routine| {
            let entry = device.entry(routine);
            device.head() == Some(routine) && entry.is_some_and(|it| it.touched)
        };
        if let Some(late) = &device.late {
            let is_given = late.token > 0 && late.token <= self.token;
            let is_timed = late.span > Span::ZERO && late.span <= LONGEST_LATENESS;
            must(is_given && is_timed, Flaw::Late)?;
            let rests = device.flight.is_none() && device.held.is_none();
            must(rests && device.actual.is_none(), Flaw::Late)?;
        }
        must(device.lateness <= LONGEST_LATENESS, Flaw::Late)?;
        if let Some(flight) = &device.flight {
            must(
                flight.token > 0 && flight.token <= self.token,
                Flaw::Command,
            )?;
            must(device.held.is_none(), Flaw::Command)?;
            match flight.routine {
                None => must(!self.is_weak(), Flaw::Command)?,
                Some(routine) => {
                    let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
                    let is_its = run.step().is_some_and(|it| it.value == flight.value);
                    must(is_its && run.busy == Some(id), Flaw::Command)?;
                    must(is_in_use(routine), Flaw::Command)?;
                }
            }
        }
        if let Some(routine) = device.held {
            let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
            let is_long = run.step().is_some_and(|it| it.hold > Span::ZERO);
            must(is_long && run.busy == Some(id), Flaw::Command)?;
            must(is_in_use(routine), Flaw::Command)?;
        }
        Ok(())
    }

    fn sound_entry(&self, at: NodeId, entry: &Entry<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        let is_plain = entry.undo.is_none() && !entry.doubtful && !entry.leased && !entry.revoked;
        let has_happened = entry.touched && entry.released && is_plain;
        let routine = match entry.owner {
            Owner::Hand => return must(has_happened && entry.wrote.is_some(), Flaw::Place),
            Owner::Failed | Owner::Restarted => {
                return must(has_happened && entry.wrote.is_none(), Flaw::Place);
            }
            Owner::Routine(routine) => routine,
        };
        let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
        must(run.devices.contains(&at), Flaw::Stranger)?;
        must(!run.is_placeless(), Flaw::Stranger)?;
        must(entry.touched || entry.wrote.is_none(), Flaw::Place)?;
        let has_written = entry.wrote.is_some() || entry.doubtful;
        must(has_written || entry.undo.is_none(), Flaw::Place)?;
        must(entry.touched || !entry.doubtful, Flaw::Place)?;
        must(entry.touched || !entry.released, Flaw::Place)?;
        must(entry.leased || !entry.revoked, Flaw::Place)?;
        let is_eventual = self.config.visibility == Visibility::Eventual;
        let may_lease = is_eventual && entry.length > Span::ZERO;
        must(may_lease || !entry.leased, Flaw::Place)?;
        if run.stage == Stage::Committed {
            return must(entry.released, Flaw::Place);
        }
        if self.is_weak() {
            let is_next = run.step().is_some_and(|step| step.device == at);
            return must(is_next && !entry.released, Flaw::Place);
        }
        let may_release = is_eventual && !run.still_needs(at);
        must(!entry.released || may_release, Flaw::Place)?;
        must(entry.touched || run.still_needs(at), Flaw::Place)
    }

    /// Checks the committed routines that stand for several: each routine is listed once, and all
    /// entries are about known routines and devices.
    fn sound_orders(&self) -> Result<(), Damage> {
        let mut all = Vec::new();
        for (&routine, run) in self.runs.iter() {
            let flaw = Flaw::Joined;
            let wrong = Damage::Routine { routine, flaw };
            if run.order.is_empty() {
                all.push(routine);
                continue;
            }
            if run.stage != Stage::Committed || !run.order.contains(&Placed::Routine(routine)) {
                return Err(wrong);
            }
            for placed in &run.order {
                let is_known = match placed {
                    Placed::Routine(id) => {
                        all.push(*id);
                        id.0 > 0 && *id <= self.last
                    }
                    Placed::Failed(at) | Placed::Restarted(at) => run.devices.contains(at),
                    Placed::Set { device, state } => {
                        state.is_some() && run.devices.contains(device)
                    }
                };
                if !is_known {
                    return Err(wrong);
                }
            }
        }
        all.sort_unstable();
        for pair in all.windows(2) {
            if let &[first, routine] = pair
                && first == routine
            {
                let flaw = Flaw::Joined;
                return Err(Damage::Routine { routine, flaw });
            }
        }
        Ok(())
    }
}
