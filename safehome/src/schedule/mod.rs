//! Where a new routine goes in the order of the devices that it needs (section 5).

mod order;
mod timeline;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Context, NodeId, Span, Time};

use crate::config::{Scheduler, Visibility};
use crate::lineage::Entry;
use crate::machine::Work;
use crate::run::{Run, Stage};
use crate::schedule::order::Sides;
use crate::{Hub, RoutineId, Timer, Value};

/// No command is planned to begin later than this after its routine.
const LATEST: Span = Span(u64::MAX / 2);

/// A place in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: NodeId,
    /// In front of the entry with this number.
    pub(crate) at: usize,
    pub(crate) start: Time,
    pub(crate) length: Span,
    /// It is in front of somebody who has started.
    pub(crate) leased: bool,
}

/// When a routine needs a device, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) device: NodeId,
    pub(crate) from: Span,
    pub(crate) until: Span,
}

impl<V: Value> Hub<V> {
    /// A new routine gets its place, or waits for one.
    pub(crate) fn admit(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        match (self.config.visibility, self.config.scheduler) {
            (Visibility::Weak, _) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.stage = Stage::Placed;
                }
                self.look(Work::Routine(id));
            }
            (Visibility::Eventual, Scheduler::FirstCome) => {
                let places = self.behind_all(&self.needs(id), cx.now());
                self.put(id, &places);
            }
            (Visibility::Eventual, Scheduler::Timeline) => {
                let places = self.timeline(id, cx.now());
                self.put(id, &places);
            }
            (Visibility::Eventual, Scheduler::JustInTime) => {
                cx.arm(Timer::Patience(id), self.config.patience);
                self.look(Work::Queue);
            }
            (
                Visibility::GlobalStrict
                | Visibility::StrongGlobalStrict
                | Visibility::PartitionedStrict,
                _,
            ) => self.look(Work::Queue),
        }
    }

    /// Somebody who waits starts, if there is a place.
    ///
    /// Takes O(n log n), with n the devices that those who wait need together, and what it takes to
    /// place those whose devices are free.
    pub(crate) fn start_waiting(&mut self, cx: &mut Context<'_, Self>) {
        let is_one_by_one = matches!(
            self.config.visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        );
        if is_one_by_one && self.runs.values().any(Run::is_active) {
            return;
        }
        let waits = |(_, run): &(&RoutineId, &Run<V>)| run.stage == Stage::Waiting;
        let waiting: Vec<RoutineId> = self.runs.iter().filter(waits).map(|it| *it.0).collect();
        // Nobody overtakes one of these where it waits: never among strict ones, and under JiT once
        // it has waited for too long (erratum H18).
        let mut passed_by: BTreeSet<NodeId> = BTreeSet::new();
        for id in waiting {
            let Some(run) = self.runs.get(&id) else {
                continue;
            };
            let is_after = run.devices.iter().any(|it| passed_by.contains(it));
            let places = match self.config.visibility {
                Visibility::GlobalStrict | Visibility::StrongGlobalStrict => {
                    Some(self.behind_all(&self.needs(id), cx.now()))
                }
                Visibility::PartitionedStrict => {
                    let is_free = !is_after && run.devices.iter().all(|it| self.is_idle(*it));
                    is_free.then(|| self.behind_all(&self.needs(id), cx.now()))
                }
                Visibility::Eventual if !is_after => self.just_in_time(id, run, cx.now()),
                Visibility::Eventual | Visibility::Weak => None,
            };
            let is_late = run.late && !self.rules.late_is_merely_first();
            let is_patient = self.config.scheduler == Scheduler::JustInTime
                && self.config.visibility == Visibility::Eventual;
            match places {
                Some(places) => {
                    cx.disarm(Timer::Patience(id));
                    self.put(id, &places);
                    if is_one_by_one {
                        return;
                    }
                }
                None if is_late || !is_patient => passed_by.extend(&run.devices),
                None => {}
            }
        }
    }

    /// Whether no unfinished routine has a place on it.
    fn is_idle(&self, device: NodeId) -> bool {
        self.devices
            .get(&device)
            .is_some_and(|it| it.head().is_none())
    }

    /// Places where the routine can start at once, perhaps before some that have not touched a
    /// common device; `None` if there are none.
    fn just_in_time(&self, id: RoutineId, run: &Run<V>, now: Time) -> Option<Vec<Place>> {
        let is_taken = |id: &NodeId| {
            let device = self.devices.get(id);
            let mut entries = device.into_iter().flat_map(|it| &it.lineage);
            entries.any(|it| it.touched && !it.released)
        };
        // Most of those who wait are not looked at any further.
        if run.devices.iter().any(is_taken) {
            return None;
        }
        let needs = self.needs(id);
        let mut sides = Sides::new(self, &needs);
        let mut places = Vec::with_capacity(needs.len());
        for (number, need) in needs.iter().enumerate() {
            let device = self.devices.get(&need.device)?;
            let room = sides.room(number)?;
            let at = device.first_free();
            if room.first != at || room.last < at {
                return None;
            }
            let mut place = need.place(at, now);
            place.leased = sides.leases(device, at);
            places.push(place);
            if !sides.choose(number, device, at) {
                return None;
            }
        }
        Some(places)
    }

    /// The places behind all others.
    fn behind_all(&self, needs: &[Need], now: Time) -> Vec<Place> {
        let behind = |need: &Need| {
            let device = self.devices.get(&need.device)?;
            let free = device.lineage.iter().map(Entry::end).max();
            let mut place = need.place(device.lineage.len(), now);
            place.start = place.start.max(free.unwrap_or_default());
            Some(place)
        };
        needs.iter().filter_map(behind).collect()
    }

    /// When the routine needs which device, by estimates; one entry a device, from the first to the
    /// last command (erratum H14).
    pub(crate) fn needs(&self, id: RoutineId) -> Vec<Need> {
        let Some(run) = self.runs.get(&id) else {
            return Vec::new();
        };
        let mut needs: Vec<Need> = Vec::with_capacity(run.devices.len());
        let mut clock = Span::ZERO;
        for step in &run.routine.steps {
            let until = clock + self.config.short + step.hold;
            for device in step.devices() {
                match needs.iter_mut().find(|it| it.device == device) {
                    Some(need) => need.until = need.until.max(until),
                    None => needs.push(Need {
                        device,
                        from: clock,
                        until,
                    }),
                }
            }
            // Whatever comes after an endless command needs time, too.
            clock = until.min(LATEST);
        }
        needs
    }

    /// The routine takes its places.
    fn put(&mut self, id: RoutineId, places: &[Place]) {
        for place in places {
            let mut entry = Entry::new(id, place.start, place.length);
            entry.leased = place.leased;
            if let Some(device) = self.devices.get_mut(&place.device) {
                let at = place.at.min(device.lineage.len());
                device.lineage.insert(at, entry);
            }
        }
        if let Some(run) = self.runs.get_mut(&id) {
            run.stage = Stage::Placed;
        }
        self.look(Work::Routine(id));
    }

    /// A weak routine waits for a device while it needs it, and no longer.
    pub(crate) fn queue_up(&mut self, id: RoutineId, at: NodeId) {
        if let Some(device) = self.devices.get_mut(&at)
            && device.position(id).is_none()
        {
            let entry = Entry::new(id, Time::ZERO, Span::ZERO);
            device.lineage.push(entry);
        }
    }

    /// A weak routine no longer needs a device.
    pub(crate) fn leave(&mut self, id: RoutineId, at: NodeId, _: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&at) else {
            return;
        };
        if let Some(place) = device.position(id) {
            device.lineage.remove(place);
        }
        device.base = device.actual.clone();
        self.look(Work::Device(at));
    }
}

impl Need {
    fn place(self, at: usize, now: Time) -> Place {
        Place {
            device: self.device,
            at,
            start: now + self.from,
            length: self.until - self.from,
            leased: false,
        }
    }
}
