//! Commands are issued one by one, and routines come to their end.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId, Span};

use crate::config::Visibility;
use crate::lineage::{Device, Entry, Flight, Owner};
use crate::machine::Work;
use crate::run::{Run, Stage};
use crate::{Event, Hub, Outcome, Placed, Priority, RoutineId, Skip, Timer, Value, Why};

/// What keeps a command from being issued now.
enum Turn {
    /// Nothing.
    Ours,
    /// Others come first, or the device is busy.
    Wait,
    /// The device is down.
    Down,
}

impl<V: Value> Hub<V> {
    pub(crate) fn is_weak(&self) -> bool {
        self.config.visibility == Visibility::Weak
    }

    /// Gives the device to whoever comes next; restores it before that if need be.
    pub(crate) fn serve(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        // Also under another scheduler than the one under which somebody began to wait.
        let is_eventual = self.config.visibility == Visibility::Eventual;
        let is_free = is_eventual && self.waiting.is_awaited(id) && device.is_free();
        if device.flight.is_none() && device.held.is_none() {
            self.pass_on(id, cx);
        }
        if is_free && self.waiting.wake(id) {
            self.look(Work::Queue);
        }
    }

    fn pass_on(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let is_weak = self.is_weak();
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        if !is_weak && device.is_announced {
            self.tell_the_end(id, cx);
        }
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        let waits = device.head().and_then(|it| self.runs.get(&it));
        let is_first = self.rules.free_rollback() && waits.is_some_and(|it| it.waits_here(id));
        let is_settled = device.late.is_none();
        if !is_weak && is_settled && device.is_up && device.needs_rollback() && !is_first {
            self.roll_back(id, cx);
            return;
        }
        if let Some(next) = device.head() {
            self.look(Work::Routine(next));
        }
    }

    /// Does of the routine what can be done now.
    pub(crate) fn advance(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        while let Some(run) = self.runs.get(&id) {
            if run.busy.is_some() || !matches!(run.stage, Stage::Placed | Stage::Running) {
                return;
            }
            let Some(step) = run.step() else {
                self.finish(id, cx);
                return;
            };
            let device = step.device;
            if !run.tested && step.condition.is_some() {
                match self.test(id, cx) {
                    Some(Ok(true)) => {
                        if let Some(run) = self.runs.get_mut(&id) {
                            run.tested = true;
                        }
                    }
                    Some(Ok(false)) => self.skip(id, Skip::Condition, cx),
                    Some(Err(why)) => self.fail(id, why, cx),
                    None => return,
                }
                continue;
            }
            if self.is_weak() {
                self.queue_up(id, device);
            }
            match self.turn(id, device) {
                Turn::Ours => {
                    self.issue(id, device, cx);
                    return;
                }
                Turn::Wait => return,
                Turn::Down => self.fail(id, Skip::Down(device), cx),
            }
        }
    }

    fn turn(&mut self, id: RoutineId, device: NodeId) -> Turn {
        let (is_weak, rules) = (self.is_weak(), self.rules);
        let Some(device) = self.devices.get_mut(&device) else {
            return Turn::Down;
        };
        if rules.releases_between()
            && let Some(place) = device.position(id)
            && device.lineage.get(place).is_some_and(|it| it.released)
        {
            // A second place for a second command.
            let mut entry = device.lineage.remove(place);
            entry.released = false;
            device.lineage.insert(device.first_free(), entry);
        }
        let device = &*device;
        if device.head() != Some(id) {
            return Turn::Wait;
        }
        if !device.is_up {
            return Turn::Down;
        }
        let is_sent = device.flight.is_some() || device.late.is_some();
        let is_busy = is_sent || device.held.is_some();
        if is_busy || !is_weak && device.needs_rollback() && !rules.free_rollback() {
            return Turn::Wait;
        }
        Turn::Ours
    }

    /// Whether the condition of the next command holds; `None` while others come first (erratum
    /// H13: all before us on that device must be finished, lest we see what is undone later).
    fn test(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) -> Option<Result<bool, Skip>> {
        let (is_weak, leniency) = (self.is_weak(), self.config.leniency);
        let condition = self.runs.get(&id)?.step()?.condition.clone()?;
        let device = self.devices.get(&condition.device)?;
        let unknown = Skip::StateUnknown(condition.device);
        if is_weak {
            let state = device.actual.as_ref().ok_or(unknown);
            return Some(state.map(|it| condition.holds(it)));
        }
        let at = device.position(id)?;
        if device.head() != Some(id) {
            return None;
        }
        if self.is_open_before(device, at) {
            return None;
        }
        if !device.is_up {
            return Some(Err(Skip::Down(condition.device)));
        }
        let is_sent = device.flight.is_some() || device.late.is_some();
        if is_sent || device.needs_rollback() {
            return None;
        }
        let known = device.state_at(at).filter(|_| !device.is_stuck);
        let state = known.ok_or(unknown);
        let outcome = state.map(|it| condition.holds(it));
        if let Some(device) = self.devices.get_mut(&condition.device)
            && let Some(entry) = device.entry_mut(id)
            && let Some(length) = entry.begin(leniency)
        {
            cx.arm(Timer::Lease(condition.device), length);
        }
        Some(outcome)
    }

    /// Whether somebody in front of this place may still be undone.
    pub(crate) fn is_open_before(&self, device: &Device<V>, at: usize) -> bool {
        let before = device.lineage.get(..at).unwrap_or_default();
        let is_open = |it: &Entry<V>| {
            let run = it.routine().and_then(|it| self.runs.get(&it));
            run.is_some_and(|run| run.stage != Stage::Committed)
        };
        before.iter().any(is_open) && !self.rules.reads_uncommitted()
    }

    /// Issues the routine's next command.
    fn issue(&mut self, id: RoutineId, at: NodeId, cx: &mut Context<'_, Self>) {
        let usual = self.config.timeout;
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(step) = run.routine.steps.get(usize::from(run.at)) else {
            return;
        };
        let (value, timeout) = (step.value.clone(), step.timeout.unwrap_or(usual));
        run.busy = Some(at);
        if run.stage == Stage::Placed {
            run.stage = Stage::Running;
            cx.disarm(Timer::Patience(id));
            cx.event(Event::Started(id));
        }
        self.token += 1;
        let token = self.token;
        let leniency = self.config.leniency;
        let Some(device) = self.devices.get_mut(&at) else {
            return;
        };
        device.flight = Some(Flight::new(token, value.clone(), Some(id)));
        if let Some(entry) = device.entry_mut(id) {
            if let Some(length) = entry.begin(leniency) {
                cx.arm(Timer::Lease(at), length);
            }
            entry.start = cx.now();
        }
        cx.event(Event::Issue {
            device: at,
            token,
            value,
            routine: Some(id),
        });
        cx.arm(Timer::Timeout(at), timeout);
    }

    /// How long to wait for the outcome of the command on its way to this device.
    pub(crate) fn timeout(&self, at: NodeId) -> Span {
        let flight = self.devices.get(&at).and_then(|it| it.flight.as_ref());
        let run = flight.and_then(|it| self.runs.get(&it.routine?));
        let own = run.and_then(Run::step).and_then(|step| step.timeout);
        own.unwrap_or(self.config.timeout)
    }

    /// What became of the command on its way to this device.
    pub(crate) fn outcome(&mut self, id: NodeId, outcome: Outcome, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        let Some(flight) = device.flight.take() else {
            return;
        };
        cx.disarm(Timer::Timeout(id));
        cx.disarm(Timer::Late(id));
        match outcome {
            Outcome::Done => device.actual = Some(flight.value.clone()),
            // It was not the command that brought the device there.
            Outcome::Refused if flight.is_said => self.observed(id, flight.value.clone(), cx),
            Outcome::Refused => {}
            Outcome::Unknown if self.rules.unknown_is_refused() => {}
            Outcome::Unknown => {
                device.actual = None;
                self.may_act_late(id, &flight, cx);
            }
        }
        self.look(Work::Device(id));
        let Some(routine) = flight.routine else {
            self.rolled_back(id, outcome, cx);
            return;
        };
        match outcome {
            Outcome::Done => self.wrote(routine, id, flight.value, cx),
            Outcome::Refused => {}
            Outcome::Unknown => self.doubt(routine, id),
        }
        let Some(run) = self.runs.get_mut(&routine) else {
            return;
        };
        run.busy = None;
        if matches!(run.stage, Stage::Aborting(_)) {
            self.undo(routine, cx);
            return;
        }
        let device = self.devices.get(&id);
        let holds = run.step().is_some_and(|step| step.hold > Span::ZERO);
        let goes_on = outcome == Outcome::Done && holds;
        // Who is done with it gives it back anyway.
        let is_needed = || goes_on || run.routine.needs(id, usize::from(run.at) + 1);
        let is_revoked = |it: &Entry<V>| it.revoked && is_needed();
        if device
            .and_then(|it| it.entry(routine))
            .is_some_and(is_revoked)
        {
            self.abort(routine, Why::LeaseOver(id), cx);
            return;
        }
        let hold = run.step().map_or(Span::ZERO, |step| step.hold);
        match outcome {
            Outcome::Done if hold > Span::ZERO => {
                run.busy = Some(id);
                if let Some(device) = self.devices.get_mut(&id) {
                    device.held = Some(routine);
                }
                cx.arm(Timer::Hold(id), hold);
                return;
            }
            Outcome::Done => self.step_done(routine, cx),
            Outcome::Refused => self.fail(routine, Skip::Refused, cx),
            Outcome::Unknown => self.fail(routine, Skip::Unknown, cx),
        }
        self.look(Work::Routine(routine));
    }

    /// A device is in the state into which a routine brought it.
    fn wrote(&mut self, id: RoutineId, at: NodeId, value: V, cx: &mut Context<'_, Self>) {
        let undo = self.runs.get(&id).and_then(|run| run.step()?.undo.clone());
        let Some(device) = self.devices.get_mut(&at) else {
            return;
        };
        device.attempts = 0;
        device.is_stuck = false;
        let Some(place) = device.position(id) else {
            return;
        };
        if let Some(entry) = device.lineage.get_mut(place) {
            entry.wrote = Some(value);
            entry.undo = undo;
        }
        // What was done by hand since we first touched it is overwritten.
        let mut behind = 0;
        device.lineage.retain(|entry| {
            behind += 1;
            behind <= place + 1 || entry.owner != Owner::Hand
        });
        let before = device.lineage.get(..place).unwrap_or_default();
        for other in before.iter().filter(|it| it.wrote.is_some()) {
            if let Some(routine) = other.routine()
                && let Some(run) = self.runs.get_mut(&routine)
                && run.stage != Stage::Committed
                && !run.hidden
            {
                run.hidden = true;
                cx.event(Event::Incongruent {
                    routine,
                    device: at,
                    by: id,
                });
            }
        }
    }

    /// Nobody knows whether a routine's command was done. If the routine is aborted now, it is undone
    /// as if it was (erratum H10); so it is later, where the state before cannot be restored at once.
    fn doubt(&mut self, id: RoutineId, at: NodeId) {
        if self.rules.unknown_is_refused() {
            return;
        }
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let Some(step) = run.step() else {
            return;
        };
        let is_aborting = matches!(run.stage, Stage::Aborting(_));
        let is_aborted = is_aborting || step.priority == Priority::Must;
        let Some(device) = self.devices.get_mut(&at) else {
            return;
        };
        let stays = device.desired().is_none();
        if let Some(entry) = device.entry_mut(id) {
            entry.doubtful |= stays;
            if (is_aborted || stays) && step.undo.is_some() {
                entry.undo.clone_from(&step.undo);
            }
        }
    }

    pub(crate) fn hold_over(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let held = self.devices.get_mut(&id).and_then(|it| it.held.take());
        let Some(routine) = held else {
            return;
        };
        if let Some(run) = self.runs.get_mut(&routine) {
            run.busy = None;
            self.step_done(routine, cx);
            self.look(Work::Routine(routine));
        }
        self.look(Work::Device(id));
    }

    /// The routine's command was not done.
    pub(crate) fn fail(&mut self, id: RoutineId, why: Skip, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let is_must = run.step().is_some_and(|it| it.priority == Priority::Must);
        if is_must && !self.is_weak() {
            self.abort(id, Why::Step(run.at, why), cx);
        } else {
            self.skip(id, why, cx);
        }
    }

    fn skip(&mut self, id: RoutineId, why: Skip, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        cx.event(Event::Skipped {
            routine: id,
            step: run.at,
            why,
        });
        if self.rules.skip_is_written()
            && why != Skip::Condition
            && let Some(step) = run.step()
            && let Some(device) = self.devices.get_mut(&step.device)
            && let Some(entry) = device.entry_mut(id)
        {
            entry.touched = true;
            entry.wrote = Some(step.value.clone());
            device.actual = device.desired().cloned();
        }
        self.step_done(id, cx);
    }

    /// The routine goes on to its next command, and lets go of what it no longer needs.
    fn step_done(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let releases = self.config.post_leases && self.config.visibility == Visibility::Eventual;
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(step) = run.step() else {
            return;
        };
        let needed: [Option<NodeId>; 2] = {
            let mut devices = step.devices();
            [devices.next(), devices.next()]
        };
        run.at += 1;
        run.tested = false;
        for at in needed.into_iter().flatten() {
            let Some(run) = self.runs.get(&id) else {
                return;
            };
            let is_weak = self.is_weak();
            if !is_weak && run.still_needs(at) {
                if self.rules.releases_between()
                    && let Some(device) = self.devices.get_mut(&at)
                    && let Some(entry) = device.entry_mut(id)
                {
                    entry.released = true;
                    self.waiting.wake(at);
                    self.look(Work::Device(at));
                }
                continue;
            }
            if is_weak {
                self.leave(id, at, cx);
            } else {
                self.let_go(id, at, releases, cx);
            }
        }
    }

    /// A device is no longer needed: it is free for the next one, if it may be. A place that was
    /// never touched is given up (erratum H9).
    fn let_go(&mut self, id: RoutineId, at: NodeId, releases: bool, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&at) else {
            return;
        };
        let Some(place) = device.position(id) else {
            return;
        };
        let Some(entry) = device.lineage.get_mut(place) else {
            return;
        };
        // A lease that has not begun ends nobody else's.
        if entry.is_lease() {
            cx.disarm(Timer::Lease(at));
        }
        if !entry.touched {
            device.lineage.remove(place);
        } else if releases || entry.leased {
            // A pre-lease goes back to whom it was taken from (section 4.1).
            entry.released = true;
        } else {
            return;
        }
        self.waiting.wake(at);
        self.look(Work::Device(at));
        self.look(Work::Queue);
    }

    /// All commands are done.
    fn finish(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        if self.config.visibility == Visibility::PartitionedStrict {
            // Rule 3* of section 3: what has failed meanwhile must be back.
            let is_down = |it: &&NodeId| !self.is_up(**it) && run.routine.must(**it);
            let touched = |it: &&NodeId| {
                let entry = self.devices.get(it).and_then(|it| it.entry(id));
                entry.is_some_and(|it| it.touched)
            };
            if let Some(&down) = run.devices.iter().filter(touched).find(is_down) {
                self.abort(id, Why::Device(down), cx);
                return;
            }
        }
        cx.event(Event::Committed(id));
        cx.disarm(Timer::Patience(id));
        let devices = run.devices.clone();
        if let Some(run) = self.runs.get_mut(&id) {
            run.stage = Stage::Committed;
        }
        for &at in &devices {
            if let Some(device) = self.devices.get_mut(&at) {
                if let Some(entry) = device.entry_mut(id) {
                    entry.released = true;
                }
                self.waiting.wake(at);
                self.look(Work::Device(at));
            }
        }
        #[cfg(feature = "check")]
        self.compact(id, &devices);
        if devices.iter().all(|at| self.place_of(id, *at).is_none()) {
            // It touched nothing, or is of a weak hub.
            self.runs.remove(&id);
            if !self.is_weak() {
                cx.event(Event::Ordered(Placed::Routine(id)));
            }
        } else {
            let has_place = |at: &NodeId| self.place_of(id, *at).is_some();
            let mut devices: Vec<NodeId> = devices.iter().copied().filter(has_place).collect();
            devices.sort_unstable();
            self.runs.insert(id, Run::committed(devices, Vec::new()));
        }
        self.settle(devices, cx);
        self.join_committed();
        self.look(Work::Queue);
    }

    /// Commits as section 4.3 says: the routine's place is removed, and all before it (errata H2
    /// to H4).
    #[cfg(feature = "check")]
    fn compact(&mut self, id: RoutineId, devices: &[NodeId]) {
        if !self.rules.compacts() {
            return;
        }
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        for &at in devices {
            let mut steps = run.routine.steps.iter().rev();
            let last = steps.find(|step| step.device == at);
            let Some(device) = self.devices.get_mut(&at) else {
                continue;
            };
            if let Some(place) = device.position(id) {
                let wrote = device.lineage.drain(..=place).last();
                let wrote = wrote.and_then(|it| it.wrote);
                device.base = wrote.or(device.base.take());
            } else if self.rules.commits_compacted() {
                device.base = last.map(|step| step.value.clone());
                device.actual = device.desired().cloned();
            }
        }
    }

    pub(crate) fn place_of(&self, id: RoutineId, at: NodeId) -> Option<usize> {
        self.devices.get(&at)?.position(id)
    }

    /// What comes first in the order of a device and is finished becomes its base: a committed
    /// routine only when it comes first everywhere, so nobody unfinished is before it (errata H2
    /// to H4).
    pub(crate) fn settle(&mut self, mut stack: Vec<NodeId>, cx: &mut Context<'_, Self>) {
        while let Some(at) = stack.pop() {
            let Some(device) = self.devices.get_mut(&at) else {
                continue;
            };
            let Some(first) = device.lineage.first() else {
                continue;
            };
            if let Some(happened) = first.happening(at) {
                let state = device.lineage.remove(0).wrote;
                if matches!(happened, Placed::Set { .. }) {
                    device.base = state;
                }
                cx.event(Event::Ordered(happened));
                stack.push(at);
                continue;
            }
            let Some(id) = first.routine() else {
                continue;
            };
            let Some(run) = self.runs.get(&id) else {
                continue;
            };
            let is_first = |at: &NodeId| self.place_of(id, *at).is_none_or(|place| place == 0);
            if run.stage != Stage::Committed || !run.devices.iter().all(is_first) {
                continue;
            }
            let Some(run) = self.runs.remove(&id) else {
                continue;
            };
            if run.order.is_empty() {
                cx.event(Event::Ordered(Placed::Routine(id)));
            }
            for placed in run.order {
                cx.event(Event::Ordered(placed));
            }
            for at in run.devices {
                if let Some(device) = self.devices.get_mut(&at)
                    && device.position(id) == Some(0)
                {
                    let entry = device.lineage.remove(0);
                    if entry.wrote.is_some() {
                        device.base = entry.wrote;
                    }
                    stack.push(at);
                }
            }
        }
    }
}
