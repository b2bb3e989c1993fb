//! A hub, its devices, and a host that may stop at any moment.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{
    Choose, Delta, Driver, Effect, Incarnation, Input, Member, NodeId, Ratio, Span, Time, Weights,
};

use super::bytes::{Bytes, FEW, Settings};
use super::oracle::{FIRST, Link, Verdict, Witness};
use super::{Storage, Summary};
use crate::lineage::Entry;
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::{
    Command, Event, Hub, Outcome, Placed, Published, Reject, RoutineId, Scheduler, Timer,
    Visibility, Why,
};

/// So many steps after the last fault all is over.
const ROUNDS: usize = 5_000;

/// A device as it is.
struct Thing {
    state: u8,
    is_up: bool,
    life: u32,
    flight: Option<Flying>,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
}

/// A command that a device has got.
#[derive(Clone, Copy)]
struct Flying {
    token: u64,
    value: u8,
    /// Whose, unless it is a rollback.
    whose: Option<(RoutineId, u16)>,
    /// It takes no effect any more, and nobody hears of it.
    is_over: bool,
}

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

pub(super) struct World<'a> {
    bytes: Bytes<'a>,
    settings: Settings,
    rules: Rules,
    storage: Storage,
    hub: Driver<Hub<u8>>,
    now: Time,
    things: Vec<Thing>,
    witness: Witness,
    open: usize,
    /// How often a command took effect.
    effects: BTreeMap<(RoutineId, u16), usize>,
    /// Those that had been done when they were asked for.
    found: BTreeSet<(RoutineId, u16)>,
    by_hand: BTreeSet<usize>,
    /// An undo handler may have changed a device.
    handled: bool,
    unordered: u64,
    is_calm: bool,
    /// What happened, if somebody wants to read it.
    pub(super) story: Option<Vec<String>>,
    pub(super) summary: Summary,
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

impl<'a> World<'a> {
    pub(super) fn new(
        mut bytes: Bytes<'a>,
        rules: &[Published],
        storage: Storage,
    ) -> Result<Self, String> {
        let settings = bytes.settings();
        let rules = Rules::published(rules);
        let thing = |_| Thing {
            state: FIRST,
            is_up: true,
            life: 0,
            flight: None,
            asked: None,
        };
        let devices = settings.devices;
        let mut world = Self {
            bytes,
            rules,
            storage,
            hub: Driver::new(Hub::unchecked(settings.config, rules)),
            now: Time::ZERO,
            things: (0..devices).map(thing).collect(),
            witness: Witness {
                chains: (0..devices).map(|_| Vec::new()).collect(),
                ..Witness::default()
            },
            open: 0,
            effects: BTreeMap::new(),
            found: BTreeSet::new(),
            by_hand: BTreeSet::new(),
            handled: false,
            unordered: 0,
            is_calm: true,
            story: None,
            summary: Summary {
                is_weak: settings.config.visibility == Visibility::Weak,
                ..Summary::default()
            },
            settings,
        };
        for nth in 0..devices {
            let device = NodeId(nth as u64);
            let state = Some(FIRST);
            world.must(Input::Command(Command::Device { device, state }))?;
        }
        world.is_calm = false;
        Ok(world)
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        while !self.bytes.is_empty() {
            self.summary.operations += 1;
            let nth = self.summary.operations;
            self.operate()
                .map_err(|broken| format!("operation {nth}: {broken}"))?;
        }
        self.is_calm = true;
        self.finish()
            .map_err(|broken| format!("after the last fault: {broken}"))?;
        self.judge()
    }

    fn operate(&mut self) -> Result<(), String> {
        let what = self.bytes.take() % 20;
        let nth = self.bytes.pick(self.things.len());
        let what = match what {
            10 | 11 | 15..19 if self.settings.is_obedient => 4,
            12 | 13 if self.settings.is_obedient => 14,
            other => other,
        };
        match what {
            0..4 => self.submit(),
            4..10 => self.land(nth, Outcome::Done),
            10 => self.land(nth, Outcome::Refused),
            11 => self.goes_over(nth),
            12 | 13 => self.pass_to_deadline(),
            14 => {
                let step = Span::millis(10 * u64::from(self.bytes.take()));
                self.pass(self.now + step)
            }
            15 | 16 => self.flip(nth),
            17 => {
                let last = self.hub.machine().last.0 + 1;
                let id = RoutineId(u64::from(self.bytes.take()) % last);
                match self.tell(Input::Command(Command::Cancel(id)))? {
                    Ok(()) | Err(Reject::UnknownRoutine(_)) => Ok(()),
                    Err(other) => Err(format!("a cancel was refused: {other}")),
                }
            }
            18 => self.change(nth),
            _ => self.restart(0),
        }
    }

    fn submit(&mut self) -> Result<(), String> {
        let nth = self.witness.routines.len();
        if nth >= self.settings.routines {
            return Ok(());
        }
        let routine = self.bytes.routine(&self.settings, nth);
        let next = RoutineId(self.hub.machine().last.0 + 1);
        // If it is lost it has this number all the same, and nobody hears of it.
        self.witness.routines.insert(next, routine.clone());
        self.must(Input::Command(Command::Submit(routine)))
    }

    /// The device does its command, or refuses it, and says so; or answers.
    fn land(&mut self, nth: usize, outcome: Outcome) -> Result<(), String> {
        let Some(thing) = self.things.get(nth).filter(|it| it.is_up) else {
            return Ok(());
        };
        let flight = thing.flight.filter(|it| !it.is_over);
        if thing.asked.is_some() && (flight.is_none() || self.bytes.pick(2) == 0) {
            return self.answer(nth);
        }
        let Some(flight) = flight else {
            return Ok(());
        };
        if outcome == Outcome::Done {
            self.takes_effect(nth)?;
        }
        if let Some(thing) = self.things.get_mut(nth) {
            (thing.flight, thing.asked) = (None, None);
        }
        let device = NodeId(nth as u64);
        let token = flight.token;
        let command = Command::Outcome {
            device,
            token,
            outcome,
        };
        self.must(Input::Command(command))
    }

    /// The device says in which state it is, or the host that it cannot be asked. Its command is
    /// over by then.
    fn answer(&mut self, nth: usize) -> Result<(), String> {
        self.resolve(nth)?;
        let device = NodeId(nth as u64);
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let Some(token) = thing.asked.take() else {
            return Ok(());
        };
        let state = thing.state;
        if !self.settings.answers {
            let outcome = Outcome::Unknown;
            self.summary.unknown += 1;
            return self.must(Input::Command(Command::Outcome {
                device,
                token,
                outcome,
            }));
        }
        let hub = self.hub.machine();
        let flight = hub.devices.get(&device).and_then(|it| it.flight.as_ref());
        let is_found = flight.is_some_and(|it| it.value == state);
        let whose = flight.and_then(|it| it.routine);
        let step = whose.and_then(|id| Some((id, hub.runs.get(&id)?.at)));
        if is_found {
            self.found.extend(step);
            self.summary.found += 1;
        } else {
            self.summary.not_found += 1;
        }
        self.must(Input::Command(Command::Answered {
            device,
            token,
            state,
        }))
    }

    /// Whether the device's command is done is decided; nobody hears of it.
    fn goes_over(&mut self, nth: usize) -> Result<(), String> {
        if self.bytes.pick(2) == 0 {
            self.takes_effect(nth)?;
        }
        if let Some(flight) = self.things.get_mut(nth).and_then(|it| it.flight.as_mut()) {
            flight.is_over = true;
        }
        Ok(())
    }

    fn resolve(&mut self, nth: usize) -> Result<(), String> {
        let flight = self.things.get(nth).and_then(|it| it.flight);
        if flight.is_some_and(|it| !it.is_over) && self.bytes.pick(2) == 0 {
            self.takes_effect(nth)?;
        }
        if let Some(thing) = self.things.get_mut(nth) {
            thing.flight = None;
        }
        Ok(())
    }

    fn takes_effect(&mut self, nth: usize) -> Result<(), String> {
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let Some(flight) = thing.flight.as_mut().filter(|it| !it.is_over) else {
            return Ok(());
        };
        thing.state = flight.value;
        let Some(whose) = flight.whose else {
            return Ok(());
        };
        let often = self.effects.entry(whose).or_default();
        *often += 1;
        if *often > 1 && !self.by_hand.contains(&nth) {
            return Err(format!(
                "command {} of {:?} was done twice",
                whose.1, whose.0
            ));
        }
        Ok(())
    }

    fn pass_to_deadline(&mut self) -> Result<(), String> {
        match self.hub.deadline() {
            Some(due) => self.pass(due),
            None => Ok(()),
        }
    }

    /// Time passes; what is due then ticks.
    fn pass(&mut self, until: Time) -> Result<(), String> {
        let due = self.hub.deadline().unwrap_or(until).min(until);
        self.now = self.now.max(due);
        let now = self.now;
        let over: Vec<NodeId> = self
            .hub
            .timers()
            .filter_map(|(timer, at)| match timer {
                Timer::Timeout(device) if at <= now => Some(device),
                Timer::Timeout(_)
                | Timer::Hold(_)
                | Timer::Retry(_)
                | Timer::Lease(_)
                | Timer::Patience(_) => None,
            })
            .collect();
        for device in over {
            // What is not known by now will not happen any more.
            let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
            self.resolve(nth)?;
            if let Some(thing) = self.things.get_mut(nth) {
                thing.asked = None;
            }
            self.summary.unknown += 1;
        }
        self.step(None)?.map_err(|it| format!("{it}"))
    }

    /// A device fails, is back, or restarts before anybody notices.
    fn flip(&mut self, nth: usize) -> Result<(), String> {
        let kind = self.bytes.take();
        if self.witness.chains.iter().map(Vec::len).sum::<usize>() >= self.settings.links
            && !self.is_calm
        {
            return Ok(());
        }
        self.goes_over(nth)?;
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let unnoticed = thing.is_up && kind % 4 == 2;
        thing.is_up = unnoticed || !thing.is_up;
        if unnoticed || thing.is_up && kind % 4 == 1 {
            thing.life += 1;
        }
        self.tell_status(nth)
    }

    /// What the membership service knows of a device.
    fn tell_status(&mut self, nth: usize) -> Result<(), String> {
        let Some(thing) = self.things.get(nth) else {
            return Ok(());
        };
        let member = Member::new(nth as u64, thing.life);
        let delta = if thing.is_up {
            Delta::Joined(member)
        } else {
            Delta::Failed(member)
        };
        self.must(Input::Membership(delta))
    }

    /// Whether the hub takes a device to be up, and in which life.
    fn believed(&self, id: NodeId) -> (bool, Option<Incarnation>) {
        let device = self.hub.machine().devices.get(&id);
        device.map_or((false, None), |it| (it.is_up, it.life))
    }

    /// What the hub has learned of a device with this step.
    fn learned(&mut self, id: NodeId, before: (bool, Option<Incarnation>)) {
        let after = self.believed(id);
        let links: &[Link] = match (before.0, after.0) {
            (true, false) => &[Link::Failed],
            (false, true) => &[Link::Restarted],
            (true, true) if before.1.is_some() && before.1 != after.1 => {
                &[Link::Failed, Link::Restarted]
            }
            (true, true) | (false, false) => &[],
        };
        self.summary.failures += links.len() as u64;
        let nth = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let Some(chain) = self.witness.chains.get_mut(nth) {
            chain.extend_from_slice(links);
        }
    }

    /// A hand changes a device, and the device says so.
    fn change(&mut self, nth: usize) -> Result<(), String> {
        let state = 100 + self.bytes.take() % 8;
        let known = self.witness.chains.iter().map(Vec::len).sum::<usize>();
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        if !thing.is_up || known >= self.settings.links {
            return Ok(());
        }
        thing.state = state;
        self.by_hand.insert(nth);
        self.summary.by_hand += 1;
        if let Some(chain) = self.witness.chains.get_mut(nth) {
            chain.push(Link::Set(state));
        }
        let device = NodeId(nth as u64);
        let command = Command::Observed { device, state };
        // What a device says by itself it says again to a host that was away.
        let calm = core::mem::replace(&mut self.is_calm, true);
        let told = self.must(Input::Command(command));
        self.is_calm = calm;
        told
    }

    fn must(&mut self, input: Input<Hub<u8>>) -> Result<(), String> {
        let told = self.tell(input.clone())?;
        told.map_err(|refused| format!("{input:?} was refused: {refused}"))
    }

    fn tell(&mut self, input: Input<Hub<u8>>) -> Told {
        self.step(Some(input))
    }

    /// A step of the host: with an input, or when a timer is due.
    fn step(&mut self, input: Option<Input<Hub<u8>>>) -> Told {
        let stop = self.stop();
        if stop == Stop::BeforeSaving {
            self.summary.lost_inputs += 1;
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

    fn step_and_stop(&mut self, input: Option<Input<Hub<u8>>>, stop: Stop) -> Told {
        let mut events = Vec::new();
        let now = self.now;
        if let Some(story) = &mut self.story {
            story.push(format!("{now:?} {input:?}"));
        }
        let carry_out = |effect| match effect {
            Effect::Event(event) => events.push(event),
            Effect::Send { .. } | Effect::Multicast { .. } => {}
        };
        let about = match &input {
            Some(Input::Membership(delta)) => Some(delta.member().id),
            Some(Input::Message { .. } | Input::Command(_) | Input::Tick(_)) | None => None,
        };
        let about = about.map(|id| (id, self.believed(id)));
        let told = match input {
            Some(input) => self.hub.step(now, &mut Nothing, input, carry_out),
            None => {
                self.hub.expire(now, &mut Nothing, carry_out);
                Ok(())
            }
        };
        if let Some((id, before)) = about {
            self.learned(id, before);
        }
        self.watch()?;
        for event in events {
            if let Some(story) = &mut self.story {
                story.push(format!("    {event:?}"));
            }
            self.carry_out(event, stop)?;
        }
        Ok(told)
    }

    /// What holds after every step.
    fn watch(&self) -> Result<(), String> {
        let hub = self.hub.machine();
        hub.check().map_err(|flaw| format!("{flaw}"))?;
        if self.hub.refused_ticks() > 0 {
            return Err(format!("{} ticks were refused", self.hub.refused_ticks()));
        }
        let is_planned = self.settings.config.visibility == Visibility::Eventual
            && self.settings.config.scheduler != Scheduler::JustInTime;
        for (id, device) in hub.devices.iter() {
            // Invariant 1: no two are planned at one time.
            let planned = || device.lineage.iter().filter(|it| !it.touched);
            let mut pairs = planned().zip(planned().skip(1));
            if is_planned && pairs.any(|(first, second)| first.end() > second.start) {
                return Err(format!("two routines are planned on {id} at one time"));
            }
            let has_timer = |timer| self.hub.timers().any(|(it, _)| it == timer);
            let lacks = device.flight.is_some() && !has_timer(Timer::Timeout(*id))
                || device.held.is_some() && !has_timer(Timer::Hold(*id))
                || device.rests && !has_timer(Timer::Retry(*id));
            if lacks {
                return Err(format!("nobody wakes {id}"));
            }
            let lease = device.lineage.iter().find(|it| it.is_lease());
            let is_over = |it: &Entry<u8>| {
                let run = it.routine().and_then(|id| hub.runs.get(&id));
                it.revoked || run.is_some_and(|run| matches!(run.stage, Stage::Aborting(_)))
            };
            if lease.is_some_and(|it| !is_over(it)) && !has_timer(Timer::Lease(*id)) {
                return Err(format!("the lease of {id} has no end"));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, event: Event<u8>, stop: Stop) -> Result<(), String> {
        match event {
            Event::Accepted(_) => self.open += 1,
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
                    return Ok(());
                }
                let runs = &self.hub.machine().runs;
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
                    is_over: !thing.is_up,
                });
            }
            Event::Ask { device, token } => {
                let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
                if let Some(thing) = self.things.get_mut(nth) {
                    thing.asked = Some(token);
                }
            }
            Event::Committed(id) => {
                self.summary.committed += 1;
                self.witness.committed.push(id);
                self.over()?;
            }
            Event::Aborted { routine, why, .. } => {
                self.summary.aborted += 1;
                self.summary.leases_over += u64::from(matches!(why, Why::LeaseOver(_)));
                let steps = self.witness.routines.get(&routine);
                let mut steps = steps.iter().flat_map(|it| &it.steps);
                self.handled |= steps.any(|it| it.undo.is_some());
                self.over()?;
            }
            Event::Skipped { routine, step, why } => {
                self.summary.skipped += 1;
                self.witness.skipped.insert((routine, step), why);
            }
            Event::Ordered(placed) => self.witness.order.push(placed),
            Event::Restored(_) => self.summary.restored += 1,
            Event::Started(_)
            | Event::Aborting { .. }
            | Event::Stuck(_)
            | Event::Incongruent { .. } => {}
        }
        Ok(())
    }

    fn over(&mut self) -> Result<(), String> {
        let left = self.open.checked_sub(1);
        self.open = left.ok_or("more routines finished than were accepted")?;
        Ok(())
    }

    /// The host stopped and is there again.
    fn restart(&mut self, depth: u8) -> Result<(), String> {
        if let Some(story) = &mut self.story {
            story.push(String::from("the hub restarts"));
        }
        self.summary.restarts += 1;
        self.unordered += self.hub.machine().counters().unordered;
        let saved = self.hub.machine().save();
        let stored = (self.storage)(saved.clone())?;
        let restored = Hub::restored(self.settings.config, self.rules, stored);
        let hub = restored.map_err(|error| format!("what was saved is refused: {error}"))?;
        if hub.save() != saved {
            return Err(format!("{:?} came back as {hub:?}", self.hub.machine()));
        }
        self.hub = Driver::new(hub);
        // Another clock.
        self.now = Time::ZERO;
        for thing in &mut self.things {
            thing.asked = None;
        }
        let stop = if depth < 2 { self.stop() } else { Stop::Never };
        if stop == Stop::BeforeSaving {
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

    /// Nothing goes wrong any more, and all that was begun comes to its end.
    fn finish(&mut self) -> Result<(), String> {
        for nth in 0..self.things.len() {
            if self.things.get(nth).is_some_and(|it| !it.is_up) {
                self.flip(nth)?;
            }
        }
        for _ in 0..ROUNDS {
            let busy = |it: &Thing| it.asked.is_some() || it.flight.is_some_and(|it| !it.is_over);
            let stuck = self.hub.machine().devices.iter().find(|it| it.1.is_stuck);
            let stuck = stuck.and_then(|it| usize::try_from(it.0.0).ok());
            if let Some(nth) = self.things.iter().position(busy) {
                self.land(nth, Outcome::Done)?;
            } else if self.hub.deadline().is_some() {
                self.pass_to_deadline()?;
            } else if let Some(nth) = stuck {
                // Somebody switches it off and on.
                for _ in 0..2 {
                    if let Some(thing) = self.things.get_mut(nth) {
                        thing.is_up = !thing.is_up;
                    }
                    self.tell_status(nth)?;
                }
            } else {
                return Ok(());
            }
        }
        Err(format!(
            "it does not come to rest: {:?}",
            self.hub.machine()
        ))
    }

    fn judge(&mut self) -> Result<(), String> {
        let hub = self.hub.machine();
        if self.open > 0 || !hub.is_quiet() {
            return Err(format!("{} routines are unfinished: {hub:?}", self.open));
        }
        self.unordered += hub.counters().unordered;
        self.witness.end = self.things.iter().map(|it| it.state).collect();
        for (nth, thing) in self.things.iter().enumerate() {
            let known = hub.state(NodeId(nth as u64));
            if known.is_some_and(|it| *it != thing.state) {
                return Err(format!("device {nth} is taken to be in {known:?}"));
            }
        }
        for &id in &self.witness.committed {
            let routine = self.witness.routines.get(&id);
            let steps = routine.iter().flat_map(|it| &it.steps).count();
            for nth in 0..u16::try_from(steps).unwrap_or_default() {
                let step = (id, nth);
                let is_done = self.effects.contains_key(&step) || self.found.contains(&step);
                if !is_done && !self.witness.skipped.contains_key(&step) {
                    return Err(format!("command {nth} of {id:?} was never done"));
                }
            }
        }
        let links = self.witness.chains.iter().map(Vec::len).sum::<usize>();
        let is_small = self.witness.committed.len() <= FEW && links <= 2 * FEW;
        let is_tried = !self.handled && is_small;
        let verdict = is_tried.then(|| self.witness.try_all());
        if verdict.is_some_and(|it| it != Verdict::TooMany) {
            self.summary.tried += 1;
        }
        if self.summary.is_weak {
            self.summary.unexplained += u64::from(verdict == Some(Verdict::Unexplained));
            return Ok(());
        }
        let is_routine = |it: &&Placed<u8>| matches!(it, Placed::Routine(_));
        let told = self.witness.order.iter().filter(is_routine).count();
        if told != self.witness.committed.len() {
            return Err(format!("{told} of the committed routines have their place"));
        }
        if self.unordered == 0 {
            self.witness.follow_told()?;
        }
        if verdict == Some(Verdict::Unexplained) {
            let (end, chains) = (&self.witness.end, &self.witness.chains);
            return Err(format!("no order at all leads to {end:?}; {chains:?}"));
        }
        Ok(())
    }
}
