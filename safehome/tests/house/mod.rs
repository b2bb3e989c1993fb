//! A hub with devices that do what they are told 100 ms later.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Command, Config, Event, Hub, Outcome, Published, Routine, RoutineId, Step,
};

/// How long a command takes.
pub(crate) const TAKES: Span = Span::millis(100);

pub(crate) struct House {
    hub: Driver<Hub<u8>>,
    rng: ChaCha8Rng,
    pub(crate) now: Time,
    /// When a command is done.
    due: Vec<(Time, NodeId, u64)>,
    pub(crate) told: Vec<(Time, Event<u8>)>,
}

impl House {
    /// So many devices in state 0.
    pub(crate) fn new(devices: u64, config: Config, rules: &[Published]) -> Self {
        let mut house = Self {
            hub: Driver::new(Hub::published(config, rules).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            due: Vec::new(),
            told: Vec::new(),
        };
        for device in (0..devices).map(NodeId) {
            let state = Some(0);
            house.command(Command::Device { device, state });
        }
        house
    }

    pub(crate) fn hub(&self) -> &Hub<u8> {
        self.hub.machine()
    }

    fn step(&mut self, input: Input<Hub<u8>>) {
        let mut effects = Vec::new();
        let (now, rng) = (self.now, &mut self.rng);
        let outcome = self.hub.step(now, rng, input, |it| effects.push(it));
        outcome.unwrap();
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<u8>>>) {
        for effect in effects {
            let Effect::Event(event) = effect;
            if let Event::Issue { device, token, .. } = event {
                self.due.push((self.now + TAKES, device, token));
            }
            self.told.push((self.now, event));
        }
    }

    pub(crate) fn command(&mut self, command: Command<u8>) {
        self.step(Input::Command(command));
    }

    pub(crate) fn submit(&mut self, steps: &[Step<u8>]) -> RoutineId {
        let steps = steps.to_vec();
        self.command(Command::Submit(Routine { steps }));
        let accepted = self.told.iter().rev().find_map(|(_, event)| match event {
            Event::Accepted(id) => Some(*id),
            _ => None,
        });
        accepted.unwrap()
    }

    pub(crate) fn fails(&mut self, device: u64) {
        self.step(Input::Membership(Delta::Failed(Member::new(device, 0))));
    }

    pub(crate) fn restarts(&mut self, device: u64) {
        self.step(Input::Membership(Delta::Refuted(Member::new(device, 0))));
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let landing = self.due.iter().map(|it| it.0).min();
            let tick = self.hub.deadline();
            let Some(next) = landing
                .into_iter()
                .chain(tick)
                .min()
                .filter(|it| *it <= end)
            else {
                break;
            };
            self.now = next;
            if let Some(at) = self.due.iter().position(|it| it.0 <= next) {
                let (_, device, token) = self.due.remove(at);
                self.command(Command::Outcome {
                    device,
                    token,
                    outcome: Outcome::Done,
                });
                continue;
            }
            let mut effects = Vec::new();
            self.hub.expire(next, &mut self.rng, |it| effects.push(it));
            self.carry_out(effects);
        }
        self.now = end;
    }

    /// When something was told.
    pub(crate) fn when(&self, what: impl Fn(&Event<u8>) -> bool) -> Option<Time> {
        let first = self.told.iter().find(|(_, event)| what(event));
        first.map(|(at, _)| *at)
    }

    pub(crate) fn is_committed(&self, id: RoutineId) -> bool {
        self.when(|it| *it == Event::Committed(id)).is_some()
    }
}

/// A command.
pub(crate) fn set(device: u64, value: u8) -> Step<u8> {
    Step::new(NodeId(device), value)
}

/// A command that needs its device for so long.
pub(crate) fn hold(device: u64, value: u8, millis: u64) -> Step<u8> {
    Step {
        hold: Span::millis(millis) - TAKES,
        ..set(device, value)
    }
}
