//! The host: it tells the hub, carries out what that wants, stops at any moment and comes back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::durable::Barrier;
use selvedge_core::{Choose, Driver, Effect, Input, NodeId, Ratio, Time, Weights};

use super::super::super::patience::Impatient;
use super::{Flying, World};
use crate::run::Run;
use crate::{
    AbortReason, Command, DurableEvent, DurableHub, Event, Hub, Reject, RoutineId, Scheduler,
    UndoStatus, Visibility,
};

/// When the host stops.
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

/// The host takes no step before the last one is stored.
pub(super) const fn lockstep() -> Barrier<Effect<DurableHub<u8>>> {
    Barrier::new(0)
}

/// Machines that draw nothing need nothing drawn.
struct Nothing;

impl Choose for Nothing {
    fn below(&mut self, _: u64) -> u64 {
        0
    }

    fn chance(&mut self, _: Ratio) -> bool {
        false
    }

    fn weighted(&mut self, _: &dyn Weights) -> Option<usize> {
        None
    }
}

type Told = Result<Result<(), Reject>, String>;

impl World<'_> {
    pub(super) fn must(&mut self, input: Input<DurableHub<u8>>) -> Result<(), String> {
        let told = self.tell(input.clone())?;
        told.map_err(|refused| format!("{input:?} was refused: {refused}"))
    }

    pub(super) fn tell(&mut self, input: Input<DurableHub<u8>>) -> Told {
        self.step(Some(input))
    }

    /// A step of the host: with an input, or when a timer is due.
    pub(super) fn step(&mut self, input: Option<Input<DurableHub<u8>>>) -> Told {
        let stop = self.stop();
        if stop == Stop::BeforeSaving {
            self.summary.lost_inputs += 1;
            // Whether it is refused is not heard.
            let _lost: Result<(), Reject> = self.feed(input)?;
            self.restart(0)?;
            return Ok(Ok(()));
        }
        let told = self.step_and_stop(input, stop)?;
        if stop != Stop::Never && told.is_ok() {
            self.restart(0)?;
        }
        Ok(told)
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

    /// The hub takes a step. All that it wants waits for the step to be stored.
    fn feed(&mut self, input: Option<Input<DurableHub<u8>>>) -> Told {
        let (now, barrier) = (self.now, &mut self.barrier);
        barrier.ready().map_err(|behind| format!("{behind}"))?;
        let mut out = Vec::new();
        let take = |effect| barrier.take(effect, |effect| out.push(effect));
        let told = match input {
            Some(input) => self.hub.step(now, &mut Nothing, input, take),
            None => {
                self.hub.expire(now, &mut Nothing, take);
                Ok(())
            }
        };
        match out.first() {
            Some(effect) => Err(format!("{effect:?} is out before its step is stored")),
            None => Ok(told),
        }
    }

    fn step_and_stop(&mut self, input: Option<Input<DurableHub<u8>>>, stop: Stop) -> Told {
        let now = self.now;
        if let Some(story) = &mut self.story {
            story.push(format!("{now:?} {input:?}"));
        }
        let about = match &input {
            Some(Input::Membership(delta)) => Some(delta.member().id),
            Some(Input::Message { .. } | Input::Command(_) | Input::Tick(_)) | None => None,
        };
        let about = about.map(|id| (id, self.believed(id)));
        // Of several ticks at a time a later one may make another device of it.
        let is_one = input.is_some();
        let late = self.late();
        let told = self.feed(input)?;
        if let Some((id, before)) = about {
            self.learned(id, before);
        }
        self.watch()?;
        let events = self.save()?;
        if is_one {
            self.is_said_as_it_is(&events)?;
        }
        if let Some(late) = late
            .iter()
            .find(|it| it.is_overtaken(self.hub.machine().hub()))
        {
            return Err(format!("{late:?} waits for too long, and is overtaken"));
        }
        for event in events {
            if let Some(story) = &mut self.story {
                story.push(format!("    {event:?}"));
            }
            self.carry_out(event, stop)?;
        }
        Ok(told)
    }

    /// The disk stores what the step changed; then its events come out.
    fn save(&mut self) -> Result<Vec<Event<u8>>, String> {
        let mut facts = Vec::new();
        let mark = self.barrier.write_facts(|fact| facts.push(fact.clone()));
        self.disk.store(facts, self.hub.machine())?;
        self.unordered_since = self.hub.machine().hub().counters().unordered;
        let mut events = Vec::new();
        if let Some(mark) = mark {
            self.barrier.stored(mark, |effect| match effect {
                Effect::Event(DurableEvent::Hub(event)) => events.push(event),
                Effect::Event(DurableEvent::Changed(_)) => {}
            });
        }
        Ok(events)
    }

    /// A device of which it is told that nothing is to be undone is as it should be.
    fn is_said_as_it_is(&self, events: &[Event<u8>]) -> Result<(), String> {
        let told = events.iter().map(|event| {
            let Event::Aborted { undo, .. } = event else {
                return [].as_slice();
            };
            undo
        });
        let told: Vec<&(NodeId, UndoStatus)> = told.flatten().collect();
        for &&(device, _) in &told {
            let mut of_device = told.iter().filter(|it| it.0 == device);
            let is_left = of_device.all(|it| it.1 == UndoStatus::NotNeeded);
            let it = self.hub.machine().hub().devices.get(&device);
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
                self.waits.insert(id, self.now);
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
            Event::Aborting { .. } | Event::Incongruent { .. } => {}
        }
        Ok(())
    }

    /// A command goes to a device that has none.
    fn send(
        &mut self,
        device: NodeId,
        token: u64,
        value: u8,
        routine: Option<RoutineId>,
    ) -> Result<(), String> {
        let runs = &self.hub.machine().hub().runs;
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

    /// A routine is undone: of some devices it must be told what comes of that.
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
        self.summary.leases_over += u64::from(matches!(why, AbortReason::LeaseOver(_)));
        let steps = self.witness.routines.get(&routine);
        let mut steps = steps.iter().flat_map(|it| &it.steps);
        self.handled |= steps.any(|it| it.undo.is_some());
        self.over()
    }

    /// The routines that have waited for too long, by the host's clock: for longer than patience,
    /// and have issued no command.
    fn late(&self) -> Vec<Impatient> {
        let config = &self.settings.config;
        if config.visibility != Visibility::Eventual || config.scheduler != Scheduler::JustInTime {
            return Vec::new();
        }
        let is_late = |since: Time| self.now > since + config.patience;
        let late = self.waits.iter().filter(|it| is_late(*it.1));
        late.map(|it| Impatient::new(self.hub.machine().hub(), *it.0))
            .collect()
    }

    pub(super) fn over(&mut self) -> Result<(), String> {
        let left = self.open.checked_sub(1);
        self.open = left.ok_or("more routines finished than were accepted")?;
        Ok(())
    }

    /// The host stopped and is there again.
    pub(super) fn restart(&mut self, depth: u8) -> Result<(), String> {
        if let Some(story) = &mut self.story {
            story.push(String::from("the hub restarts"));
        }
        self.summary.restarts += 1;
        self.unordered += core::mem::take(&mut self.unordered_since);
        self.barrier = lockstep();
        let stored = (self.storage)(self.disk.read()?)?;
        let restored = Hub::restored(self.settings.config, self.rules, stored);
        let hub = restored.map_err(|error| format!("what was saved is refused: {error}"))?;
        if hub.save() != *self.disk.stored() {
            return Err(format!("{:?} came back as {hub:?}", self.disk.stored()));
        }
        self.hub = Driver::new(DurableHub::new(hub));
        // Another clock.
        self.now = Time::ZERO;
        self.waits.values_mut().for_each(|it| *it = Time::ZERO);
        for thing in &mut self.things {
            thing.asked = None;
        }
        let stop = if depth < 2 { self.stop() } else { Stop::Never };
        if stop == Stop::BeforeSaving {
            let _lost: Result<(), Reject> = self.feed(Some(Input::Command(Command::Resume)))?;
            return self.restart(depth + 1);
        }
        let told = self.step_and_stop(Some(Input::Command(Command::Resume)), stop)?;
        told.map_err(|refused| format!("resume was refused: {refused}"))?;
        if stop != Stop::Never {
            return self.restart(depth + 1);
        }
        let calm = core::mem::replace(&mut self.is_calm, true);
        for nth in 0..self.things.len() {
            self.tell_status(nth)?;
        }
        self.is_calm = calm;
        Ok(())
    }
}
