//! The place of a new routine in the order of the devices that it needs (section 5).

#[cfg(test)]
mod compared;
mod keep;
mod order;
mod place;
#[cfg(any(test, feature = "check"))]
mod plain;
mod ranks;
mod reach;
mod timeline;
mod waiting;

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId, Span, Time, Untracked};

use crate::config::{Scheduler, Visibility};
use crate::lineage::{Device, Entry};
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::schedule::order::{Sides, Verdict};
use crate::schedule::place::{Draft, Need, Place};
use crate::work::Task;
use crate::{Config, Hub, RoutineId, Timer, Urgency, Value};

pub(crate) use crate::schedule::ranks::{Ranks, Slot};
pub(crate) use crate::schedule::waiting::Waiting;

/// No command is planned to begin later than this after its routine.
const LATEST: Span = Span(u64::MAX / 2);

/// The reason why a waiting routine cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unready {
    /// Others use this device, or are first there: no other obstacle matters until that changes.
    Taken(NodeId),
    /// No place agrees with one order.
    NoRoom,
}

impl<V: Value> Hub<V> {
    /// Gives a new routine its place, or lets it wait for one.
    pub(crate) fn admit(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        self.preempt(id, cx);
        self.find_place(id, cx);
    }

    /// Does the same as [`admit`](Self::admit), for a routine that has preempted others already.
    pub(crate) fn find_place(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        match (self.config.visibility, self.config.scheduler) {
            (Visibility::Weak, _) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.stage = Stage::Placed;
                }
                self.work.enqueue(Task::Routine(id));
            }
            (Visibility::Eventual, Scheduler::FirstCome) => {
                self.draft_with(|hub, draft| hub.draft_last(id, cx.now(), draft));
                self.put(id);
            }
            (Visibility::Eventual, Scheduler::Timeline) => {
                self.draft_with(|hub, draft| hub.timeline(id, cx.now(), draft));
                self.put(id);
            }
            (Visibility::Eventual, Scheduler::JustInTime) => {
                cx.arm(Timer::Patience(id), self.config.patience);
                self.wait_for_place(id);
            }
            (
                Visibility::GlobalStrict
                | Visibility::StrongGlobalStrict
                | Visibility::PartitionedStrict,
                _,
            ) => self.wait_for_place(id),
        }
    }

    fn wait_for_place(&mut self, id: RoutineId) {
        self.queue(id);
        self.work.enqueue(Task::Queue);
    }

    /// Lets a routine wait from now on, behind the routines that were submitted before.
    pub(crate) fn queue(&mut self, id: RoutineId) {
        let is_for_devices = !self.is_one_by_one();
        if let Some(run) = self.runs.get(&id) {
            let devices = run.devices.as_slice();
            let devices = if is_for_devices { devices } else { &[] };
            let stays_first = stays_first(&self.config, self.rules, run);
            self.waiting.join(id, devices, stays_first);
        }
    }

    /// Returns true if the waiting lists agree with the routines, and no sleeping routine could
    /// start: so the lists decide nothing that does not follow from the routines. Holds between
    /// steps.
    #[cfg(feature = "check")]
    pub(crate) fn waits_as_routines_say(&self) -> bool {
        let mut expected = Waiting::default();
        for (&id, run) in self.runs.iter().filter(|it| it.1.stage == Stage::Waiting) {
            let devices = run.devices.as_slice();
            let devices = if self.is_one_by_one() { &[] } else { devices };
            expected.join(id, devices, stays_first(&self.config, self.rules, run));
        }
        let is_idle = !self.is_one_by_one() || !self.runs.values().any(Run::is_active);
        self.waiting.is_same(&expected)
            && self.ranks_agree()
            && (!is_idle || self.all_wait_in_vain(Time::ZERO))
    }

    pub(crate) fn wait_no_longer(&mut self, id: RoutineId) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        self.waiting.leave(id, &run.devices);
        // Others may have waited behind it.
        for &at in &run.devices {
            self.waiting.wake(at);
        }
    }

    /// Notes that a routine has waited for [`Config::patience`].
    pub(crate) fn on_patience_over(&mut self, id: RoutineId) {
        let Some(run) = self.runs.get_mut(&id) else {
            // A stray tick.
            return;
        };
        run.late = true;
        let run = &*run;
        if run.stage == Stage::Placed {
            self.ranks_begin(id);
        } else if run.stage == Stage::Waiting && stays_first(&self.config, self.rules, run) {
            self.waiting.stays_first(id, &run.devices);
        }
        self.work.enqueue(Task::Queue);
    }

    /// Disarms the patience timer of a routine.
    pub(crate) fn stop_patience(&self, id: RoutineId, cx: &mut Context<'_, Self>) {
        if is_just_in_time(&self.config) {
            cx.disarm(Timer::Patience(id));
        }
    }

    pub(crate) const fn is_one_by_one(&self) -> bool {
        matches!(
            self.config.visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        )
    }

    /// Starts waiting routines, if there is a place for them.
    ///
    /// Examines the routines for which something may have changed since the last time: takes O(k
    /// (log n + q)) for each, with k the number of devices that it needs, n the number of waiting
    /// routines and q the most routines that wait for or have a place on one of them, plus the time
    /// to place each routine whose devices are free. If one routine runs at a time it takes O(n).
    pub(crate) fn start_waiting(&mut self, cx: &mut Context<'_, Self>) {
        let mut last = RoutineId(0);
        loop {
            let next = if self.is_one_by_one() {
                self.next_alone()
            } else {
                self.waiting.after(last)
            };
            let Some(id) = next else {
                break;
            };
            last = id;
            let found = self
                .is_ready(id)
                .and_then(|()| self.draft_with(|hub, draft| hub.draft_now(id, cx.now(), draft)));
            match found {
                Ok(()) => {
                    self.wait_no_longer(id);
                    self.put(id);
                    // Before others are examined: they would get the devices that it does not use
                    // yet, so routines that wait for one device would run in reverse.
                    self.advance(id, cx);
                }
                Err(Unready::Taken(at)) => self.waiting.sleep(id, at),
                Err(Unready::NoRoom) => {}
            }
        }
        debug_assert!(
            self.is_one_by_one() || self.all_wait_in_vain(cx.now()),
            "a routine sleeps that could start"
        );
    }

    /// The most urgent waiting routine, if one routine runs at a time, and of equally urgent ones
    /// the first; `None` while one runs.
    fn next_alone(&self) -> Option<RoutineId> {
        let (mut next, mut most) = (None, None);
        for (&id, run) in self.runs.iter() {
            match run.stage {
                Stage::Placed | Stage::Running | Stage::Aborting(_) => return None,
                Stage::Waiting if most < Some(run.urgency()) => {
                    (next, most) = (Some(id), Some(run.urgency()));
                }
                Stage::Waiting | Stage::Committed | Stage::Queued => {}
            }
        }
        next
    }

    fn all_wait_in_vain(&self, now: Time) -> bool {
        let mut runs = self.runs.iter();
        runs.all(|(&id, run)| run.stage != Stage::Waiting || self.can_start(id, now).is_err())
    }

    /// Checks that a waiting routine can start now.
    pub(crate) fn can_start(&self, id: RoutineId, now: Time) -> Result<(), Unready> {
        self.is_ready(id)?;
        self.draft_now(id, now, &mut Draft::default())
    }

    /// Checks that nothing on its devices keeps a waiting routine from starting. There may still be
    /// no place for it.
    fn is_ready(&self, id: RoutineId) -> Result<(), Unready> {
        let run = self.runs.get(&id).ok_or(Unready::NoRoom)?;
        match self.config.visibility {
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict => Ok(()),
            Visibility::PartitionedStrict => {
                self.are_free(run, |_, it| it.head().is_none())?;
                self.is_next(id, run)
            }
            Visibility::Eventual => self.may_start_at_once(id, run),
            Visibility::Weak => Err(Unready::NoRoom),
        }
    }

    /// The places of a routine that is ready, if there is room for it.
    fn draft_now(&self, id: RoutineId, now: Time, draft: &mut Draft) -> Result<(), Unready> {
        if self.config.visibility != Visibility::Eventual {
            self.draft_last(id, now, draft);
            return Ok(());
        }
        let run = self.runs.get(&id).ok_or(Unready::NoRoom)?;
        self.find_needs(run, &mut draft.needs);
        let mut sides = Sides::new(self, run, &draft.needs, &mut draft.memory);
        let found = self.in_front(&draft.needs, now, &mut sides, &mut draft.places);
        found.ok_or(Unready::NoRoom)
    }

    /// The places of a routine behind all others.
    fn draft_last(&self, id: RoutineId, now: Time, draft: &mut Draft) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        self.find_needs(run, &mut draft.needs);
        self.behind_all(now, draft);
    }

    /// Runs `draw` with the memory that is kept for it.
    fn draft_with<T>(&mut self, draw: impl FnOnce(&mut Self, &mut Draft) -> T) -> T {
        let mut draft = self.ranks.draft.take().unwrap_or_default();
        let drawn = draw(self, &mut draft);
        self.ranks.draft = Some(draft);
        drawn
    }

    /// Checks that no routine that must not be overtaken waits for one of its devices.
    fn is_next(&self, id: RoutineId, run: &Run<V>) -> Result<(), Unready> {
        let mut devices = run.devices.iter();
        let taken = devices.find(|&&at| !self.waiting.is_next(id, at));
        taken.map_or(Ok(()), |&at| Err(Unready::Taken(at)))
    }

    /// Checks that no earlier routine that sets the same devices still waits. Of two that wait for
    /// the same devices the first one starts first, unless the second one need not wait until they
    /// are restored.
    fn comes_after_its_like(&self, id: RoutineId, run: &Run<V>) -> Result<(), Unready> {
        let Some(&at) = run.devices.first().filter(|_| run.takes_over()) else {
            return Ok(());
        };
        let is_like = |it: RoutineId| {
            let other = self.runs.get(&it);
            other.is_some_and(|other| other.keeps_order_with(run))
        };
        let mut before = self.waiting.before(id, at);
        if before.any(is_like) {
            return Err(Unready::Taken(at));
        }
        Ok(())
    }

    /// Checks that all its devices are free in the sense of `is_free`.
    fn are_free(
        &self,
        run: &Run<V>,
        is_free: impl Fn(NodeId, &Device<V>) -> bool,
    ) -> Result<(), Unready> {
        let is_taken = |at: &&NodeId| !self.devices.get(at).is_some_and(|it| is_free(**at, it));
        let taken = run.devices.iter().find(is_taken);
        taken.map_or(Ok(()), |&at| Err(Unready::Taken(at)))
    }

    /// Checks that a routine may start at once, perhaps before others that have not touched a
    /// common device.
    fn may_start_at_once(&self, id: RoutineId, run: &Run<V>) -> Result<(), Unready> {
        // Most of the waiting routines are examined no further.
        self.are_free(run, |at, it| {
            it.is_free() || it.is_idle() && self.goes_straight(run, at)
        })?;
        self.is_next(id, run)?;
        self.comes_after_its_like(id, run)?;
        self.can_ask(run)?;
        for &at in &run.devices {
            let device = self.devices.get(&at).ok_or(Unready::NoRoom)?;
            let first = self.first_place(at, device, run, self.keeps_ranks());
            if first != device.first_free() {
                let entry = device.lineage.get(first.saturating_sub(1));
                let owner = entry.and_then(|it| self.runs.get(&it.routine()?));
                // It stays first until it gives the device back.
                let stays = owner.is_some_and(|it| {
                    it.late || it.keeps_order_with(run) || it.urgency() > run.urgency()
                });
                return Err(if stays {
                    Unready::Taken(at)
                } else {
                    Unready::NoRoom
                });
            }
        }
        Ok(())
    }

    /// Checks that the states that it asks for first are settled: all routines that have changed
    /// them are committed. Until then it cannot start, and others with the same question would get
    /// places before it.
    fn can_ask(&self, run: &Run<V>) -> Result<(), Unready> {
        let condition = run.step().and_then(|it| it.condition.as_ref());
        let is_open = |at: &NodeId| {
            let device = self.devices.get(at);
            device.is_some_and(|it| self.is_open_before(it, it.first_free()))
        };
        let taken = condition.and_then(|it| it.devices().find(is_open));
        taken.map_or(Ok(()), |at| Err(Unready::Taken(at)))
    }

    /// Places directly behind the routines that have touched the devices, if these places agree
    /// with one order.
    fn in_front(
        &self,
        needs: &[Need],
        now: Time,
        sides: &mut Sides<'_, V>,
        places: &mut Vec<Place>,
    ) -> Option<()> {
        places.clear();
        for (number, need) in needs.iter().enumerate() {
            let device = self.devices.get(&need.device)?;
            let at = device.first_free();
            if sides.first(number) != at || sides.judge(number, at) != Verdict::Fits {
                return None;
            }
            let mut place = need.place(at, now);
            place.leased = self.leases(device, at);
            places.push(place);
            if !sides.choose(number, at) {
                return None;
            }
        }
        Some(())
    }

    /// The places behind all others. The plans of routines that gave a device back are over.
    fn behind_all(&self, now: Time, draft: &mut Draft) {
        let behind = |need: &Need| {
            let device = self.devices.get(&need.device)?;
            let open = device.lineage.iter().filter(|it| !it.released);
            let free = open.map(Entry::end).max();
            let mut place = need.place(device.lineage.len(), now);
            place.start = place.start.max(free.unwrap_or_default());
            Some(place)
        };
        draft.places.clear();
        draft.places.extend(draft.needs.iter().filter_map(behind));
    }

    /// The time at which the routine needs each device, by estimates; one entry for each device,
    /// from the first to the last command (erratum H14).
    fn find_needs(&self, run: &Run<V>, needs: &mut Vec<Need>) {
        needs.clear();
        let mut clock = Span::ZERO;
        for step in &run.routine.steps {
            let until = clock + self.config.short + step.hold;
            let mut need = |device| match needs.iter_mut().find(|it| it.device == device) {
                Some(need) => need.until = need.until.max(until),
                None => needs.push(Need {
                    device,
                    from: clock,
                    until,
                }),
            };
            if let Some(condition) = &step.condition {
                condition.devices().for_each(&mut need);
            }
            need(step.device);
            // A command after an endless one needs time, too.
            clock = until.min(LATEST);
        }
    }

    /// Gives the routine the places that were found.
    fn put(&mut self, id: RoutineId) {
        let slot = self.new_slot(id);
        let draft = self.ranks.draft.take().unwrap_or_default();
        for place in &draft.places {
            let mut entry = Entry::new(id, place.start, place.length);
            entry.leased = place.leased;
            entry.slot = Untracked(slot);
            if let Some(device) = self.devices.get_mut(&place.device) {
                let at = place.at.min(device.lineage.len());
                device.lineage.insert(at, entry);
                device.link(place.device, at, &mut self.ranks);
                if device.head() == Some(id) && device.needs_rollback() {
                    // The routine that was first may have superseded another, so that the device
                    // was left as it was; for this one it is restored.
                    self.work.enqueue(Task::Device(place.device));
                }
            }
        }
        self.ranks.draft = Some(draft);
        if let Some(slot) = slot {
            self.ranks.rank(slot);
        }
        debug_assert!(
            !self.number.is_multiple_of(16) || self.ranks_agree(),
            "they follow from the orders of the devices"
        );
        if let Some(run) = self.runs.get_mut(&id) {
            run.stage = Stage::Placed;
        }
        self.work.enqueue(Task::Routine(id));
    }

    /// Lets a weak routine wait for a device while it needs it, and no longer.
    pub(crate) fn queue_up(&mut self, id: RoutineId, at: NodeId) {
        if let Some(device) = self.devices.get_mut(&at)
            && device.position(id).is_none()
        {
            let entry = Entry::new(id, Time::ZERO, Span::ZERO);
            device.lineage.push(entry);
        }
    }

    /// Removes a weak routine from a device that it no longer needs.
    pub(crate) fn leave(&mut self, id: RoutineId, at: NodeId, _: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&at) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        if let Some(place) = device.position(id) {
            device.lineage.remove(place);
        }
        device.base = device.actual.clone();
        self.work.enqueue(Task::Device(at));
    }
}

/// Returns true if a waiting routine must not be overtaken. Under `JustInTime` it must have waited
/// for too long (erratum H18), or be urgent: it preempts only once, so no later routine may get in
/// its way.
pub(crate) fn stays_first<V>(config: &Config, rules: Rules, run: &Run<V>) -> bool {
    let is_urgent = run.urgency() > Urgency::default();
    !is_just_in_time(config) || is_urgent || run.late && !rules.late_is_merely_first()
}

/// Returns true if waiting routines may be overtaken, and have a patience timer.
pub(crate) const fn is_just_in_time(config: &Config) -> bool {
    matches!(
        (config.visibility, config.scheduler),
        (Visibility::Eventual, Scheduler::JustInTime)
    )
}
