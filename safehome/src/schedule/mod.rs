//! Where a new routine goes in the order of the devices that it needs (section 5).

mod order;
mod timeline;

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId, Span, Time};

use crate::config::{Scheduler, Visibility};
use crate::lineage::Entry;
use crate::machine::Work;
use crate::run::{Run, Stage};
use crate::{Hub, RoutineId, Timer, Value};

/// A place in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: NodeId,
    /// In front of the entry with this number.
    pub(crate) at: usize,
    pub(crate) start: Time,
    pub(crate) length: Span,
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
                let places = self.behind_all(id, cx.now());
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
    pub(crate) fn start_waiting(&mut self, cx: &mut Context<'_, Self>) {
        let waits = |(_, run): &(&RoutineId, &Run<V>)| run.stage == Stage::Waiting;
        let waiting: Vec<RoutineId> = self.runs.iter().filter(waits).map(|it| *it.0).collect();
        let mut passed_by: Vec<NodeId> = Vec::new();
        for id in waiting {
            let Some(run) = self.runs.get(&id) else {
                continue;
            };
            let devices = run.devices.clone();
            let is_late = run.late && !self.rules.late_is_merely_first();
            let (is_late, patient) = (is_late, self.config.scheduler == Scheduler::JustInTime);
            let is_after = devices.iter().any(|it| passed_by.contains(it));
            let places = match self.config.visibility {
                Visibility::GlobalStrict | Visibility::StrongGlobalStrict => {
                    let is_free = !self.runs.values().any(Run::is_active);
                    is_free.then(|| self.behind_all(id, cx.now()))
                }
                Visibility::PartitionedStrict => {
                    let is_free = !is_after && devices.iter().all(|it| self.is_idle(*it));
                    is_free.then(|| self.behind_all(id, cx.now()))
                }
                Visibility::Eventual if !is_after => self.just_in_time(id, cx.now()),
                Visibility::Eventual | Visibility::Weak => None,
            };
            match places {
                Some(places) => {
                    cx.disarm(Timer::Patience(id));
                    self.put(id, &places);
                }
                // Nobody overtakes it where it waits: never among strict ones, and under JiT once
                // it has waited for too long (erratum H18).
                None if is_late || !patient || self.config.visibility != Visibility::Eventual => {
                    passed_by.extend(devices);
                }
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
    fn just_in_time(&self, id: RoutineId, now: Time) -> Option<Vec<Place>> {
        let needs = self.needs(id);
        let mut places = Vec::with_capacity(needs.len());
        for need in needs {
            let device = self.devices.get(&need.device)?;
            let is_taken = |it: &Entry<V>| it.touched && !it.released;
            if device.lineage.iter().any(is_taken) {
                return None;
            }
            let at = self.earliest(need.device)?;
            if at != device.first_free() {
                return None;
            }
            places.push(need.place(at, now));
        }
        self.is_serial(&places).then_some(places)
    }

    /// The places behind all others.
    pub(crate) fn behind_all(&self, id: RoutineId, now: Time) -> Vec<Place> {
        let behind = |need: Need| {
            let device = self.devices.get(&need.device)?;
            let free = device.lineage.iter().map(Entry::end).max();
            let mut place = need.place(device.lineage.len(), now);
            place.start = place.start.max(free.unwrap_or_default());
            Some(place)
        };
        self.needs(id).into_iter().filter_map(behind).collect()
    }

    /// The first place on a device that a new routine may take: behind all that have touched it,
    /// and behind those who must not be overtaken.
    pub(crate) fn earliest(&self, id: NodeId) -> Option<usize> {
        let device = self.devices.get(&id)?;
        let free = device.first_free();
        let stays = |entry: &Entry<V>| {
            let run = entry.routine().and_then(|it| self.runs.get(&it));
            run.is_some_and(|run| match run.stage {
                Stage::Waiting | Stage::Placed => run.late,
                Stage::Running => !self.config.pre_leases || run.late || run.waits_for(id),
                Stage::Aborting(_) | Stage::Committed => true,
            })
        };
        let last = device.lineage.iter().rposition(stays);
        Some(free.max(last.map_or(0, |at| at + 1)))
    }

    /// When the routine needs which device, by estimates; one entry a device, from the first to the
    /// last command (erratum H14).
    pub(crate) fn needs(&self, id: RoutineId) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        let Some(run) = self.runs.get(&id) else {
            return needs;
        };
        let mut clock = Span::ZERO;
        for step in &run.routine.steps {
            let until = clock + self.config.short + step.hold;
            for device in step.devices() {
                match needs.iter_mut().find(|it| it.device == device) {
                    Some(need) => need.until = until,
                    None => needs.push(Need {
                        device,
                        from: clock,
                        until,
                    }),
                }
            }
            clock = until;
        }
        needs
    }

    /// The routine takes its places.
    fn put(&mut self, id: RoutineId, places: &[Place]) {
        for place in places {
            let Some(device) = self.devices.get(&place.device) else {
                continue;
            };
            let behind = device.lineage.iter().skip(place.at);
            let has_started = |routine| {
                let run: Option<&Run<V>> = self.runs.get(&routine);
                run.is_some_and(|run| run.stage == Stage::Running)
            };
            let leased = behind.filter_map(Entry::routine).any(has_started);
            let mut entry = Entry::new(id, place.start, place.length);
            entry.leased = leased;
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
        }
    }
}
