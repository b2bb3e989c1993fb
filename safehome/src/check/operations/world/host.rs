//! The host: it sends inputs to the hub, carries out its events, stops at any moment and restarts.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, NodeId, Time};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation;

use super::super::super::patience::Impatient;
use super::{Flying, HUB, World};
use crate::run::Run;
use crate::{
    AbortReason, Command, DurableHub, Event, Reject, RoutineId, Scheduler, UndoStatus, Visibility,
};

/// The time at which the host stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Not now.
    Never,
    /// Before the step is saved: it has not happened.
    BeforeSaving,
    /// Before the events of the step are carried out.
    BeforeEvents,
    /// Before some of them are.
    AmongEvents,
}

type Notified = Result<Result<(), Reject>, String>;

impl World<'_> {
    pub(super) fn command(&mut self, command: Command<u8>) -> Result<(), String> {
        self.must(Operation::Command(HUB, command))
    }

    pub(super) fn learn(&mut self, delta: Delta) -> Result<(), String> {
        self.must(Operation::Learn(HUB, delta))
    }

    fn must(&mut self, operation: Operation<DurableHub<u8>>) -> Result<(), String> {
        let notified = self.step(operation.clone())?;
        notified.map_err(|refused| format!("{operation:?} was refused: {refused}"))
    }

    /// Carries out a step of the host: an input to the hub, or the passing of time.
    pub(super) fn step(&mut self, operation: Operation<DurableHub<u8>>) -> Notified {
        let stop = self.stop();
        if stop == Stop::BeforeSaving {
            self.summary.lost_inputs += 1;
            // The host does not learn whether it is refused.
            let _lost: Result<(), Reject> = self.feed(operation)?;
            self.restart(0)?;
            return Ok(Ok(()));
        }
        let notified = self.step_and_stop(operation, stop)?;
        if stop != Stop::Never && notified.is_ok() {
            self.restart(0)?;
        }
        Ok(notified)
    }

    fn stop(&mut self) -> Stop {
        if !self.settings.restarts || self.is_calm {
            return Stop::Never;
        }
        match self.bytes.take() % 4 {
            1 => Stop::BeforeSaving,
            2 => Stop::BeforeEvents,
            _ => Stop::AmongEvents,
        }
    }

    /// Lets the hub take a step. All its events wait until the step is stored.
    fn feed(&mut self, operation: Operation<DurableHub<u8>>) -> Notified {
        self.watch.refusal = None;
        // It draws nothing.
        let mut nothing = Bytes::new(&[]);
        self.mesh.play(operation, &mut nothing, &mut self.watch)?;
        Ok(self.watch.refusal.take().map_or(Ok(()), Err))
    }

    fn step_and_stop(&mut self, operation: Operation<DurableHub<u8>>, stop: Stop) -> Notified {
        let mut now = self.now();
        // Of several ticks at one time a later one may change the device.
        let mut is_one = true;
        if let Operation::Wait(span) = &operation {
            now = now + *span;
            is_one = false;
        }
        let about = if let Operation::Learn(_, delta) = &operation {
            let id = delta.member().id;
            Some((id, self.believed(id)))
        } else {
            None
        };
        if let Some(story) = &mut self.story {
            story.push(format!("{now:?} {operation:?}"));
        }
        let held = self.hub()?.held.clone();
        let late = self.late(now);
        let notified = self.feed(operation)?;
        if let Some((id, before)) = about {
            self.learned(id, before);
        }
        let events = self.save()?;
        if is_one {
            self.is_said_as_it_is(&events)?;
        }
        // One that the step admitted has waited since then, and not since the step before.
        let now = self.now();
        for id in held.iter() {
            self.waits.entry(*id).and_modify(|it| *it = now);
        }
        let hub = self.hub()?;
        if let Some(late) = late.iter().find(|it| it.is_overtaken(hub)) {
            return Err(format!("{late:?} waits for too long, and is overtaken"));
        }
        for event in events {
            if let Some(story) = &mut self.story {
                story.push(format!("    {event:?}"));
            }
            self.carry_out(event, stop)?;
        }
        Ok(notified)
    }

    /// Stores the step; then its events come out.
    fn save(&mut self) -> Result<Vec<Event<u8>>, String> {
        let machine = self.mesh.machine(HUB).ok_or("the hub is down")?;
        let events = self.watch.save(machine)?;
        self.unordered_since = machine.hub().counters().unordered;
        Ok(events)
    }

    /// Checks that a device that is reported as not undone is in the right state.
    fn is_said_as_it_is(&self, events: &[Event<u8>]) -> Result<(), String> {
        let notified = events.iter().map(|event| {
            let Event::Aborted { undo, .. } = event else {
                return [].as_slice();
            };
            undo
        });
        let notified: Vec<&(NodeId, UndoStatus)> = notified.flatten().collect();
        let hub = self.hub()?;
        for &&(device, _) in &notified {
            let mut of_device = notified.iter().filter(|it| it.0 == device);
            let is_left = of_device.all(|it| it.1 == UndoStatus::NotNeeded);
            let it = hub.devices.get(&device);
            let is_wrong = it.is_some_and(|it| {
                let desired = it.desired();
                desired.is_some() && it.actual.as_ref() != desired
            });
            if is_left && is_wrong {
                return Err(format!("{device} is not as it should be, and is left so"));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, event: Event<u8>, stop: Stop) -> Result<(), String> {
        match event {
            Event::Accepted(id) => {
                self.open += 1;
                self.waits.insert(id, self.now());
            }
            Event::Issue {
                device,
                token,
                value,
                routine,
            } => {
                let is_lost = match stop {
                    Stop::Never => false,
                    Stop::AmongEvents => self.bytes.pick(2) == 1,
                    Stop::BeforeSaving | Stop::BeforeEvents => true,
                };
                if is_lost {
                    self.summary.lost_commands += 1;
                } else {
                    self.send(device, token, value, routine)?;
                }
            }
            Event::Ask { device, token } => {
                let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
                if let Some(thing) = self.things.get_mut(nth) {
                    thing.asked = Some(token);
                }
            }
            Event::Committed(id) => {
                self.waits.remove(&id);
                self.summary.committed += 1;
                self.witness.committed.push(id);
                self.over()?;
            }
            Event::Aborted { routine, why, undo } => self.aborted(routine, why, &undo)?,
            Event::Skipped { routine, step, why } => {
                self.summary.skipped += 1;
                self.witness.skipped.insert((routine, step), why);
            }
            Event::Ordered(placed) => self.witness.order.push(placed),
            Event::Restored(device) => {
                self.begun.remove(&device);
                self.summary.restored += 1;
            }
            Event::Stuck(device) | Event::GivenUp(device) => {
                self.begun.remove(&device);
            }
            Event::Started(id) => {
                self.waits.remove(&id);
            }
            Event::CutShort { .. } => self.summary.cut_short += 1,
            Event::Aborting { .. } | Event::Incongruent { .. } => {}
        }
        Ok(())
    }

    /// Sends a command to a device that has none.
    fn send(
        &mut self,
        device: NodeId,
        token: u64,
        value: u8,
        routine: Option<RoutineId>,
    ) -> Result<(), String> {
        let runs = &self.hub()?.runs;
        let at = |id| runs.get(&id).map(|run: &Run<u8>| (id, run.at));
        let whose = routine.and_then(at);
        let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
        let Some(thing) = self.things.get_mut(nth) else {
            return Err(format!("a command went to {device}, which is not there"));
        };
        if thing.flight.is_some_and(|it| !it.is_over) {
            return Err(format!("{device} got a second command"));
        }
        thing.flight = Some(Flying {
            token,
            value,
            whose,
            is_done: false,
            is_over: !thing.is_up,
        });
        Ok(())
    }

    /// Handles the abort of a routine: for some devices a result of the rollback must follow.
    fn aborted(
        &mut self,
        routine: RoutineId,
        why: AbortReason,
        undo: &[(NodeId, UndoStatus)],
    ) -> Result<(), String> {
        self.waits.remove(&routine);
        let is_due =
            |it: &&(NodeId, UndoStatus)| matches!(it.1, UndoStatus::Begun | UndoStatus::Pending);
        self.begun.extend(undo.iter().filter(is_due).map(|it| it.0));
        self.summary.aborted += 1;
        self.summary.superseded += u64::from(matches!(why, AbortReason::Superseded(_)));
        self.summary.preempted += u64::from(matches!(why, AbortReason::Preempted { .. }));
        self.summary.leases_over += u64::from(matches!(why, AbortReason::LeaseExpired { .. }));
        let steps = self.witness.routines.get(&routine);
        let mut steps = steps.iter().flat_map(|it| &it.steps);
        self.handled |= steps.any(|it| it.undo.is_some());
        self.over()
    }

    /// The routines that have waited for too long, by the host's clock: for longer than patience,
    /// and have issued no command. One that is held back does not wait yet.
    fn late(&self, now: Time) -> Vec<Impatient> {
        let config = &self.settings.config;
        if config.visibility != Visibility::Eventual || config.scheduler != Scheduler::JustInTime {
            return Vec::new();
        }
        let Some(machine) = self.mesh.machine(HUB) else {
            return Vec::new();
        };
        let hub = machine.hub();
        let is_held = |id: RoutineId| hub.held.contains(&id);
        let is_late = |since: Time| now > since + config.patience;
        let late = self.waits.iter();
        let late = late.filter(|it| is_late(*it.1) && !is_held(*it.0));
        late.map(|it| Impatient::new(hub, *it.0)).collect()
    }

    pub(super) fn over(&mut self) -> Result<(), String> {
        let left = self.open.checked_sub(1);
        self.open = left.ok_or("more routines finished than were accepted")?;
        Ok(())
    }

    /// Stops and restarts the host.
    pub(super) fn restart(&mut self, depth: u8) -> Result<(), String> {
        if let Some(story) = &mut self.story {
            story.push(String::from("the hub restarts"));
        }
        self.summary.restarts += 1;
        self.unordered += core::mem::take(&mut self.unordered_since);
        self.watch.recover(self.storage)?;
        // It has a clock of its own.
        let mut nothing = Bytes::new(&[]);
        self.mesh
            .play(Operation::Restart(HUB), &mut nothing, &mut self.watch)?;
        self.waits.values_mut().for_each(|it| *it = Time::ZERO);
        for thing in &mut self.things {
            thing.asked = None;
        }
        let resume = Operation::Command(HUB, Command::Resume);
        let stop = if depth < 2 { self.stop() } else { Stop::Never };
        if stop == Stop::BeforeSaving {
            let _lost: Result<(), Reject> = self.feed(resume)?;
            return self.restart(depth + 1);
        }
        let notified = self.step_and_stop(resume, stop)?;
        notified.map_err(|refused| format!("resume was refused: {refused}"))?;
        if stop != Stop::Never {
            return self.restart(depth + 1);
        }
        let calm = core::mem::replace(&mut self.is_calm, true);
        for nth in 0..self.things.len() {
            self.report_status(nth)?;
        }
        self.is_calm = calm;
        Ok(())
    }
}
