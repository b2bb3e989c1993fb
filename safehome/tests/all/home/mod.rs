//! A hub with devices that do commands after a fixed time, for tests that set the times of events.

#![allow(dead_code, reason = "each test uses a part")]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Command, Comparison, Condition, Config, Event, Hub, Outcome, Placed, Published, Reject,
    Routine, RoutineId, Step, Visibility,
};

/// All models of the paper.
pub(crate) const MODELS: [Visibility; 5] = [
    Visibility::Weak,
    Visibility::GlobalStrict,
    Visibility::StrongGlobalStrict,
    Visibility::PartitionedStrict,
    Visibility::Eventual,
];

/// The time that a device takes for a command by default.
pub(crate) const DELAY: Span = Span::millis(50);

pub(crate) struct Home {
    pub(crate) hub: Driver<Hub<u8>>,
    pub(crate) now: Time,
    pub(crate) states: Vec<u8>,
    pub(crate) is_up: Vec<bool>,
    /// It does its commands, and never answers.
    pub(crate) is_mute: Vec<bool>,
    pub(crate) delay: Span,
    /// Follows this crate's rules, so after each step its state is one that a hub can reach.
    is_ours: bool,
    flights: Vec<Option<(u64, u8, Time)>>,
    pub(crate) events: Vec<(Time, Event<u8>)>,
}

impl Home {
    /// A home with this number of devices, from 0, each in state 0.
    pub(crate) fn new(config: Config, devices: usize) -> Self {
        Self::under(&[], config, devices)
    }

    /// A home that follows these published rules in place of this crate's.
    pub(crate) fn under(rules: &[Published], config: Config, devices: usize) -> Self {
        let mut home = Self {
            hub: Driver::new(Hub::published(config, rules).unwrap()),
            now: Time::ZERO,
            states: vec![0; devices],
            is_up: vec![true; devices],
            is_mute: vec![false; devices],
            delay: DELAY,
            is_ours: rules.is_empty(),
            flights: vec![None; devices],
            events: Vec::new(),
        };
        for nth in 0..devices {
            let device = NodeId(nth as u64);
            let state = Some(0);
            home.notify(Command::AddDevice { device, state }).unwrap();
        }
        home
    }

    pub(crate) fn notify(&mut self, command: Command<u8>) -> Result<(), Reject> {
        self.input(Input::Command(command))
    }

    fn input(&mut self, input: Input<Hub<u8>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let notified = self.hub.step_into(self.now, &mut rng, input, &mut effects);
        self.carry_out(effects);
        notified
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<u8>>>) {
        if self.is_ours {
            self.hub.machine().check().unwrap();
        }
        for effect in effects {
            let Effect::Event(event) = effect;
            if let Event::Issue {
                device,
                token,
                value,
                ..
            } = event
            {
                let nth = device.0 as usize;
                assert_eq!(self.flights[nth], None, "two commands on {device}");
                let lands = if self.is_up[nth] && !self.is_mute[nth] {
                    self.now + self.delay
                } else {
                    Time(u64::MAX)
                };
                self.flights[nth] = Some((token, value, lands));
            }
            self.events.push((self.now, event));
        }
    }

    pub(crate) fn submit(&mut self, steps: Vec<Step<u8>>) -> RoutineId {
        self.notify(Command::Submit(Routine { steps })).unwrap();
        let accepted = |(_, event): &(Time, Event<u8>)| match event {
            Event::Accepted(id) => Some(*id),
            _ => None,
        };
        self.events.iter().rev().find_map(accepted).unwrap()
    }

    /// Lets the device fail, or come back; its command in flight is lost.
    pub(crate) fn flip(&mut self, nth: usize) {
        self.is_up[nth] = !self.is_up[nth];
        if let Some((_, _, lands)) = &mut self.flights[nth] {
            *lands = Time(u64::MAX);
        }
        let member = Member::new(nth as u64, 0);
        let delta = if self.is_up[nth] {
            Delta::Refuted(member)
        } else {
            Delta::Failed(member)
        };
        self.input(Input::Membership(delta)).unwrap();
    }

    /// Reports this outcome of the device's command at once.
    pub(crate) fn lands(&mut self, nth: usize, outcome: Outcome) {
        let (token, value, _) = self.flights[nth].take().unwrap();
        if outcome == Outcome::Done {
            self.states[nth] = value;
        }
        let device = NodeId(nth as u64);
        let notified = Command::Acted {
            device,
            token,
            outcome,
        };
        self.notify(notified).unwrap();
    }

    /// Cancels the command in flight to the device, without a report.
    pub(crate) fn gives_up(&mut self, nth: usize) {
        self.flights[nth] = None;
    }

    /// Changes the device by hand, and reports that.
    pub(crate) fn by_hand(&mut self, nth: usize, state: u8) {
        self.states[nth] = state;
        let device = NodeId(nth as u64);
        self.notify(Command::Observed { device, state }).unwrap();
    }

    /// The commands issued to a device, with `true` for routines and `false` for rollbacks.
    pub(crate) fn issued(&self, nth: usize) -> Vec<(u8, bool)> {
        let of = |(_, event): &(Time, Event<u8>)| match event {
            Event::Issue {
                device,
                value,
                routine,
                ..
            } if device.0 == nth as u64 => Some((*value, routine.is_some())),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    /// Feeds a report of the membership service.
    pub(crate) fn receive(&mut self, delta: Delta) {
        self.input(Input::Membership(delta)).unwrap();
    }

    /// The time of the next event without an input.
    pub(crate) fn next(&self) -> Option<Time> {
        let lands = self.flights.iter().flatten().map(|it| it.2);
        let lands = lands.filter(|it| *it < Time(u64::MAX)).min();
        lands.into_iter().chain(self.hub.deadline()).min()
    }

    /// Lets time pass until then.
    pub(crate) fn pass(&mut self, until: Time) {
        while let Some(next) = self.next().filter(|it| *it <= until) {
            self.now = self.now.max(next);
            let now = self.now;
            let lands = |it: &Option<(u64, u8, Time)>| it.is_some_and(|it| it.2 <= now);
            if let Some(nth) = self.flights.iter().position(lands) {
                let (token, value, _) = self.flights[nth].take().unwrap();
                self.states[nth] = value;
                self.notify(Command::Acted {
                    device: NodeId(nth as u64),
                    token,
                    outcome: Outcome::Done,
                })
                .unwrap();
                continue;
            }
            let overdue = |(timer, at): (selvedge_safehome::Timer, Time)| match timer {
                selvedge_safehome::Timer::Timeout(device) if at <= now => Some(device.0 as usize),
                _ => None,
            };
            let overdue: Vec<usize> = self.hub.timers().filter_map(overdue).collect();
            for nth in overdue {
                self.flights[nth] = None;
            }
            let mut effects = Vec::new();
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            self.hub.expire_into(now, &mut rng, &mut effects);
            self.carry_out(effects);
        }
        self.now = self.now.max(until);
    }

    /// Lets this span pass.
    pub(crate) fn wait(&mut self, span: Span) {
        self.pass(self.now + span);
    }

    /// Lets time pass until nothing more happens.
    pub(crate) fn rest(&mut self) {
        self.wait(Span::secs(36_000));
        assert!(self.hub.machine().is_quiet(), "{:#?}", self.hub.machine());
    }

    /// The time of the first such event, if there was one.
    pub(crate) fn when(&self, event: &Event<u8>) -> Option<Time> {
        let is_it = |it: &&(Time, Event<u8>)| it.1 == *event;
        self.events.iter().find(is_it).map(|it| it.0)
    }

    /// The time at which a routine committed, if it did.
    pub(crate) fn committed(&self, id: RoutineId) -> Option<Time> {
        self.when(&Event::Committed(id))
    }

    /// The reported order.
    pub(crate) fn order(&self) -> Vec<Placed<u8>> {
        let placed = |(_, event): &(Time, Event<u8>)| match event {
            Event::Ordered(placed) => Some(placed.clone()),
            _ => None,
        };
        self.events.iter().filter_map(placed).collect()
    }
}

/// A step that is done only if a device is in this state.
pub(crate) fn if_it_is(step: Step<u8>, device: u64, value: u8) -> Step<u8> {
    let condition = Some(Condition {
        device: NodeId(device),
        comparison: Comparison::Equal,
        value,
    });
    let condition = condition.map(Into::into);
    Step { condition, ..step }
}

/// A time in milliseconds after the beginning.
pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Span::millis(millis)
}

pub(crate) fn set(device: u64, value: u8) -> Step<u8> {
    Step::new(NodeId(device), value)
}

pub(crate) fn maybe(device: u64, value: u8) -> Step<u8> {
    Step {
        priority: selvedge_safehome::Priority::BestEffort,
        ..set(device, value)
    }
}

pub(crate) fn long(device: u64, value: u8, hold: Span) -> Step<u8> {
    Step {
        hold,
        ..set(device, value)
    }
}

/// A command for which its device is planned to be needed for this long in all.
pub(crate) fn planned(device: u64, value: u8, millis: u64) -> Step<u8> {
    long(
        device,
        value,
        Span::millis(millis) - Config::default().short,
    )
}
