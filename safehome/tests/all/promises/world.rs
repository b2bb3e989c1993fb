//! The host of a hub: it passes reports of devices to the hub, and carries out its events.

mod happens;
mod reasons;

use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    AbortReason, Command, Config, Difference, Event, Hub, Outcome, Reject, RoutineId, Saved,
    Scheduler, Timer, Visibility,
};
use selvedge_sim::histories::{Choices, Trace};

use crate::promises::oracle::{Fate, Oracle, Stage};
use crate::promises::things::{Open, Report, Sent, Thing};

const MODELS: [Visibility; 6] = [
    Visibility::Eventual,
    Visibility::Eventual,
    Visibility::Eventual,
    Visibility::PartitionedStrict,
    Visibility::GlobalStrict,
    Visibility::StrongGlobalStrict,
];
const SCHEDULERS: [Scheduler; 3] = [
    Scheduler::FirstCome,
    Scheduler::JustInTime,
    Scheduler::Timeline,
];

selvedge_sim::counts! {
    pub(crate) struct Counts {
        committed,
        aborted,
        restored,
        stuck,
        restarts,
        /// Outcomes that came after their commands were given up.
        late,
        /// Commands that were refused after their device had reported their state.
        said_and_refused,
        /// Commands about which the hub asked, and that had not been done.
        not_found,
        superseded,
        preempted,
        cut,
        /// Routines that were refused because of other runs of their key.
        refused,
    }
}

/// The result of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notified {
    Taken,
    Refused(Reject),
    /// The host stopped before it stored the step.
    Lost,
}

/// When the host stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    BeforeStoring,
    /// After this number of events was carried out.
    Among(usize),
}

pub(crate) struct World {
    choices: Choices,
    pub(crate) counts: Counts,
    config: Config,
    /// The scheduler of restarted hubs.
    later: Scheduler,
    hub: Driver<Hub<u8>>,
    /// The last base, the differences since, and the state with both.
    base: Saved<u8>,
    differences: Vec<Difference<u8>>,
    last: Saved<u8>,
    now: Time,
    stop: Option<Stop>,
    things: Vec<Thing>,
    beginning: Vec<Option<u8>>,
    oracle: Oracle,
    trace: Trace,
    stops: bool,
    /// Routines come on terms.
    has_terms: bool,
}

impl World {
    pub(crate) fn new(mut choices: Choices) -> Self {
        let rng = &mut choices;
        let config = Config::default()
            .with_visibility(MODELS[rng.below(6) as usize])
            .with_scheduler(SCHEDULERS[rng.below(3) as usize])
            .with_pre_leases(rng.below(4) > 0)
            .with_post_leases(rng.below(4) > 0)
            .with_patience(Span::millis([100, 2_000, 60_000][rng.below(3) as usize]))
            .with_timeout(Span::millis([500, 5_000][rng.below(2) as usize]))
            .with_undo_attempts(1 + rng.below(3) as u8);
        let later = if rng.below(2) == 0 {
            config.scheduler
        } else {
            SCHEDULERS[rng.below(3) as usize]
        };
        let hub = Hub::new(config).unwrap();
        let base = hub.save();
        let stops = rng.below(2) == 0;
        let has_terms = rng.below(2) == 0;
        let mut world = Self {
            choices,
            counts: Counts::default(),
            config,
            later,
            hub: Driver::new(hub),
            last: base.clone(),
            base,
            differences: Vec::new(),
            now: Time::ZERO,
            stop: None,
            things: Vec::new(),
            beginning: Vec::new(),
            oracle: Oracle::default(),
            trace: Trace::new(),
            stops,
            has_terms,
        };
        world.trace.line(|| format!("{config:?}"));
        for nth in 0..2 + world.below(5) {
            world.comes(NodeId(nth));
        }
        world
    }

    fn comes(&mut self, device: NodeId) {
        let mut thing = Thing::new(device, self.below(4) as u8, self.below(6) > 0);
        let state = thing.is_known.then_some(thing.state);
        self.notify(Command::AddDevice { device, state }, |_| {});
        if self.below(3) == 0 {
            let lateness = Span::millis([200, 3_000, 60_000][self.below(3) as usize]);
            self.notify(Command::SetLateness { device, lateness }, |_| {});
            thing.lateness = lateness;
        }
        self.beginning.push(state);
        self.things.push(thing);
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    fn broken(&self, what: &str) -> ! {
        panic!("{what} at {:?}", self.now);
    }

    fn judge(&self, found: Result<(), String>) {
        if let Err(what) = found {
            self.broken(&what);
        }
    }

    /// Reports whether a device is up, after each restart of the hub.
    fn learns(&mut self, nth: usize) {
        let is_up = self.things[nth].is_up;
        let member = Member::new(nth as u64, 0);
        let delta = if is_up {
            Delta::Refuted(member)
        } else {
            Delta::Failed(member)
        };
        self.input(Input::Membership(delta), |it| {
            let thing = &mut it.things[nth];
            if is_up && !core::mem::replace(&mut thing.is_notified_up, is_up) {
                (thing.is_stuck, thing.refusals) = (false, 0);
            }
            thing.is_notified_up = is_up;
        });
    }

    /// Passes the next report of the device to the hub.
    pub(crate) fn reports(&mut self, nth: usize) {
        let device = self.things[nth].id;
        match self.things[nth].reports.front().copied() {
            None => {}
            Some(report @ (Report::State(state) | Report::Hand(state, _))) => {
                let is_new = self.hub.machine().state(device) != Some(&state);
                let hand = match report {
                    Report::Hand(_, urgency) => Some(urgency),
                    _ => None,
                };
                let command = match hand {
                    Some(urgency) => Command::ChangedByHand {
                        device,
                        state,
                        urgency,
                    },
                    None => Command::Observed { device, state },
                };
                // Repeated until the hub has received it.
                self.notify(command, |it| {
                    it.oracle.hand = hand.map(|urgency| (device, urgency));
                    let thing = &mut it.things[nth];
                    thing.reports.pop_front();
                    let is_its = |it: &mut Open| {
                        it.is_reported = it.value == state;
                        it.is_reported
                    };
                    let is_late = thing.doubt.is_some_and(|it| it.1 == state);
                    let is_echo = thing.open.as_mut().is_some_and(is_its) || is_late;
                    thing.is_stuck &= is_echo || !is_new;
                });
            }
            Some(Report::Outcome(token, outcome)) => {
                self.things[nth].reports.pop_front();
                self.lands(nth, token, outcome);
            }
        }
    }

    /// Passes all reports that precede an outcome; a command without lateness acts no more.
    fn says_all(&mut self, nth: usize, token: u64) {
        let thing = &mut self.things[nth];
        thing.loses_outcomes();
        if thing.lateness == Span::ZERO {
            thing.sent.retain(|it| it.token != token);
        }
        while !self.things[nth].reports.is_empty() {
            self.reports(nth);
        }
    }

    fn lands(&mut self, nth: usize, token: u64, outcome: Outcome) {
        let device = self.things[nth].id;
        let is_open = self.things[nth].open.is_some_and(|it| it.token == token);
        let is_late = self.things[nth].doubt.is_some_and(|it| it.0 == token);
        let command = Command::Acted {
            device,
            token,
            outcome,
        };
        let notified = self.notify(command, |it| {
            it.counts.late += u64::from(!is_open);
            let thing = &mut it.things[nth];
            if outcome != Outcome::Unknown {
                thing.sent.retain(|it| it.token != token);
                thing.doubt.take_if(|it| it.0 == token);
            }
            if is_open {
                it.resolves(nth, outcome);
            } else if outcome == Outcome::Done {
                (thing.is_stuck, thing.refusals) = (false, 0);
            }
        });
        if matches!(notified, Notified::Refused(_)) && (is_open || is_late) {
            self.broken("an outcome is refused");
        }
    }

    /// Decides the outcome of the open command.
    fn resolves(&mut self, nth: usize, outcome: Outcome) {
        let now = self.now;
        let thing = &mut self.things[nth];
        let open = if outcome == Outcome::Unknown {
            thing.is_doubted(now)
        } else {
            thing.open.take()
        };
        let Some(open) = open else {
            return;
        };
        if open.is_reported && outcome == Outcome::Refused {
            self.counts.said_and_refused += 1;
            thing.is_stuck = false;
        }
        let Some((id, at)) = open.whose else {
            thing.refusals += u32::from(outcome != Outcome::Done);
            return;
        };
        let record = self.oracle.records.get_mut(&id).unwrap();
        record.last = Some(outcome);
        if outcome == Outcome::Done {
            (thing.is_stuck, thing.refusals) = (false, 0);
            record.fates[at] = Fate::Done;
            let hold = record.routine.steps[at].hold;
            record.holds = (hold > Span::ZERO).then_some((thing.id, now + hold));
        }
    }

    /// Lets time pass; due timers tick.
    fn passes(&mut self, until: Time) {
        while let Some(due) = self.hub.deadline().filter(|it| *it <= until) {
            self.now = self.now.max(due);
            self.ticks();
        }
        self.now = self.now.max(until);
    }

    fn due(&self) -> Vec<Timer> {
        let due = self.hub.timers().filter(|it| it.1 <= self.now);
        due.map(|it| it.0).collect()
    }

    fn ticks(&mut self) {
        for timer in self.due() {
            let (Timer::Timeout(device) | Timer::Late(device)) = timer else {
                continue;
            };
            let nth = device.0 as usize;
            let thing = &self.things[nth];
            if matches!(timer, Timer::Late(_)) || thing.lateness == Span::ZERO {
                self.says_all(nth, thing.open.map_or(0, |it| it.token));
            }
        }
        let due = self.due();
        self.trace.line(|| format!("{:?} ticks {due:?}", self.now));
        let mut events = Vec::new();
        let collect = |Effect::Event(event): Effect<Hub<u8>>| events.push(event);
        self.hub.expire(self.now, &mut self.choices, collect);
        self.stored(events, |it| {
            for thing in &mut it.things {
                thing.expire(it.now);
            }
            for timer in due {
                if let Timer::Timeout(device) = timer {
                    it.resolves(device.0 as usize, Outcome::Unknown);
                }
            }
        });
    }

    fn notify(&mut self, command: Command<u8>, mark: impl FnOnce(&mut Self)) -> Notified {
        self.input(Input::Command(command), mark)
    }

    /// Takes a step; `mark` updates the oracle, if the step is not lost.
    fn input(&mut self, input: Input<Hub<u8>>, mark: impl FnOnce(&mut Self)) -> Notified {
        let mut events = Vec::new();
        let collect = |Effect::Event(event): Effect<Hub<u8>>| events.push(event);
        self.trace.line(|| format!("{:?} {input:?}", self.now));
        match self.hub.step(self.now, &mut self.choices, input, collect) {
            Ok(()) => self.stored(events, mark),
            Err(reject) => Notified::Refused(reject),
        }
    }

    /// The step is stored, and its events are carried out, if the host does not stop before.
    fn stored(&mut self, events: Vec<Event<u8>>, mark: impl FnOnce(&mut Self)) -> Notified {
        let stop = self.stop.take();
        if stop == Some(Stop::BeforeStoring) {
            self.restarts();
            return Notified::Lost;
        }
        let difference = self.hub.machine().difference(&mut self.last);
        self.differences.push(difference);
        mark(self);
        for (nth, event) in events.into_iter().enumerate() {
            let is_lost = matches!(stop, Some(Stop::Among(among)) if among <= nth);
            self.trace
                .line(|| format!("    {event:?}{}", if is_lost { ", lost" } else { "" }));
            self.carry_out(event, is_lost);
        }
        self.looks();
        if stop.is_some() {
            self.restarts();
        }
        Notified::Taken
    }

    /// Stops and restarts the host.
    fn restarts(&mut self) {
        self.stop = None;
        self.counts.restarts += 1;
        let mut saved = self.base.clone();
        for difference in self.differences.drain(..) {
            saved = saved.apply(difference).unwrap();
        }
        self.config.scheduler = self.later;
        self.trace.line(|| "the host comes back".into());
        let hub = Hub::restore(self.config, saved).unwrap();
        self.base = hub.save();
        self.last = self.base.clone();
        self.hub = Driver::new(hub);
        for thing in &mut self.things {
            let Some(open) = &mut thing.open else {
                continue;
            };
            (open.is_old, open.is_asked) = (true, false);
            let until = open.issued + (open.timeout + thing.lateness);
            for sent in thing.sent.iter_mut().filter(|it| it.until.is_none()) {
                sent.until = Some(until);
            }
        }
        if self.notify(Command::Resume, |_| {}) != Notified::Taken {
            self.broken("it does not come back");
        }
        for nth in 0..self.things.len() {
            self.learns(nth);
        }
    }

    fn carry_out(&mut self, event: Event<u8>, is_lost: bool) {
        let now = self.now;
        let found = match event {
            Event::Accepted(id) => self.oracle.stage(id, Stage::Accepted, Stage::Accepted),
            Event::Started(id) => self.oracle.stage(id, Stage::Accepted, Stage::Started),
            Event::Issue {
                device,
                token,
                value,
                routine,
            } => {
                let thing = &self.things[device.0 as usize];
                let order = (self.counts.restarts == 0).then_some(self.config.scheduler);
                let rules = (self.config.visibility, order);
                let found = self
                    .oracle
                    .issued(rules, thing, (token, value, routine), now);
                self.sends(device, token, value, routine, is_lost);
                found
            }
            Event::Ask { device, token } => {
                let open = self.things[device.0 as usize].open.as_mut();
                match open.filter(|it| it.token == token && it.is_old) {
                    Some(open) => {
                        open.is_asked = true;
                        Ok(())
                    }
                    None => Err("it asks for nothing".into()),
                }
            }
            Event::Skipped { routine, step, why } => {
                self.oracle.skipped(routine, step, why, &self.things)
            }
            Event::Committed(id) => {
                self.counts.committed += 1;
                self.oracle.committed(id, now)
            }
            Event::Aborting { routine, why } => {
                self.counts.superseded += u64::from(matches!(why, AbortReason::Superseded(_)));
                let is_taken = matches!(why, AbortReason::Preempted { .. });
                self.counts.preempted += u64::from(is_taken);
                self.oracle.aborting(routine, why, &self.things)
            }
            Event::Aborted { routine, why, undo } => {
                self.counts.aborted += 1;
                self.oracle.aborted(routine, why, &undo, &mut self.things)
            }
            Event::Restored(device) => {
                self.counts.restored += 1;
                self.things[device.0 as usize].ends(false);
                Ok(())
            }
            Event::Stuck(device) => {
                self.counts.stuck += 1;
                let thing = &mut self.things[device.0 as usize];
                let tried = thing.refusals >= self.config.undo_attempts.into();
                thing.ends(true);
                if tried {
                    Ok(())
                } else {
                    Err("it was not tried often enough".into())
                }
            }
            Event::GivenUp(device) => {
                let thing = &mut self.things[device.0 as usize];
                thing.ends(thing.is_stuck);
                if thing.is_known {
                    Err("its state was known".into())
                } else {
                    Ok(())
                }
            }
            Event::Ordered(placed) => {
                self.oracle.order.push(placed);
                Ok(())
            }
            Event::CutShort {
                routine,
                device,
                by,
            } => {
                self.counts.cut += 1;
                self.oracle.cut(routine, device, by)
            }
            Event::Incongruent { .. } => Ok(()),
            other => Err(format!("unknown to the home: {other:?}")),
        };
        self.judge(found);
    }

    fn sends(
        &mut self,
        device: NodeId,
        token: u64,
        value: u8,
        routine: Option<RoutineId>,
        is_lost: bool,
    ) {
        let record = |id: RoutineId| &self.oracle.records[&id];
        let whose = routine.map(|id| (id, record(id).at()));
        let own = whose.and_then(|(id, at)| record(id).routine.steps[at].timeout);
        let thing = &mut self.things[device.0 as usize];
        thing.open = Some(Open {
            token,
            value,
            whose,
            issued: self.now,
            timeout: own.unwrap_or(self.config.timeout),
            is_old: false,
            is_asked: false,
            is_reported: false,
        });
        if !is_lost {
            thing.sent.push(Sent {
                token,
                value,
                is_done: false,
                until: None,
            });
        }
    }

    /// Checks after every step that the hub does not believe a wrong state of a device.
    fn looks(&self) {
        for thing in &self.things {
            let is_received =
                thing.open.is_none() && thing.doubt.is_none() && thing.reports.is_empty();
            let known = self.hub.machine().state(thing.id);
            if is_received && known.is_some_and(|it| *it != thing.state) {
                self.broken("the hub takes a device to be in another state");
            }
        }
        let open = self.oracle.records.iter().filter(|it| !it.1.is_finished());
        let notified = self.hub.machine().unfinished().map(|it| it.0);
        if !notified.eq(open.map(|it| *it.0)) {
            self.broken("others are unfinished");
        }
        self.all_wait();
    }
}
