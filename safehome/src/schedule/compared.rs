//! Comparison of places by ranks with places by the plain rule.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};

use crate::run::{Run, Stage};
use crate::schedule::order::{Memory, Sides};
use crate::schedule::timeline::Search;
use crate::{
    Clause, Command, Comparison, Condition, Config, Event, Hub, Mode, Outcome, Priority, Routine,
    RoutineId, Scheduler, Step, Terms, Urgency,
};

/// A hub, and the commands that it has issued.
struct Home {
    driver: Driver<Hub<u8>>,
    rng: ChaCha8Rng,
    now: Time,
    issued: Vec<(NodeId, u64)>,
    devices: u64,
    /// The number of compared places, and the number of all.
    compared: (u32, u32),
    refused: u32,
}

impl Home {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let scheduler = if rng.below(2) == 0 {
            Scheduler::Timeline
        } else {
            Scheduler::JustInTime
        };
        let config = Config::default()
            .with_scheduler(scheduler)
            .with_pre_leases(rng.below(4) > 0)
            .with_post_leases(rng.below(4) > 0)
            .with_stretch(if rng.below(2) == 0 { 110 } else { 400 })
            .with_search_limit(if rng.below(4) == 0 { 5 } else { 256 })
            .with_patience(Span::secs(30));
        let mut home = Self {
            driver: Driver::new(Hub::new(config).unwrap()),
            devices: 2 + rng.below(9),
            rng,
            now: Time::ZERO,
            issued: Vec::new(),
            compared: (0, 0),
            refused: 0,
        };
        for device in 0..home.devices {
            let (device, state) = (NodeId(device), Some(0));
            home.step(Input::Command(Command::AddDevice { device, state }));
        }
        home
    }

    fn step(&mut self, input: Input<Hub<u8>>) {
        let issued = &mut self.issued;
        let taken = self.driver.step(self.now, &mut self.rng, input, |it| {
            if let Effect::Event(Event::Issue { device, token, .. }) = it {
                issued.push((device, token));
            }
        });
        // A refused input changes nothing.
        self.refused += u32::from(taken.is_err());
    }

    fn happen(&mut self) {
        let device = NodeId(self.rng.below(self.devices));
        match self.rng.below(20) {
            0..8 => self.submit(),
            8..15 if !self.issued.is_empty() => {
                let at = self.rng.below(self.issued.len() as u64);
                let (device, token) = self.issued.swap_remove(usize::try_from(at).unwrap());
                let outcome = match self.rng.below(8) {
                    0 => Outcome::Refused,
                    1 => Outcome::Unknown,
                    _ => Outcome::Done,
                };
                self.step(Input::Command(Command::Acted {
                    device,
                    token,
                    outcome,
                }));
            }
            15 => {
                let id = RoutineId(1 + self.rng.below(self.driver.machine().last.0 + 1));
                self.step(Input::Command(Command::Cancel(id)));
            }
            16 => {
                let state = 1 + u8::try_from(self.rng.below(3)).unwrap();
                self.step(Input::Command(Command::Observed { device, state }));
            }
            17 => {
                let member = Member::new(device.0, 0);
                let is_up = self.driver.machine().is_up(device);
                let delta = if is_up { Delta::Failed } else { Delta::Joined };
                self.step(Input::Membership(delta(member)));
            }
            18 if self.rng.below(8) == 0 => {
                let hub = self.driver.machine();
                let hub = Hub::restore(*hub.config(), hub.save()).unwrap();
                self.driver = Driver::new(hub);
                self.issued.clear();
                self.step(Input::Command(Command::Resume));
            }
            _ => {
                self.now = self.now + Span::secs(self.rng.below(60));
                let (issued, now) = (&mut self.issued, self.now);
                self.driver.expire(now, &mut self.rng, |it| {
                    if let Effect::Event(Event::Issue { device, token, .. }) = it {
                        issued.push((device, token));
                    }
                });
            }
        }
    }

    fn submit(&mut self) {
        let count = 1 + self.rng.below(5);
        let mut steps = Vec::new();
        for _ in 0..count {
            let device = NodeId(self.rng.below(self.devices));
            let mut step = Step::new(device, u8::try_from(self.rng.below(4)).unwrap());
            step.hold = Span::secs(self.rng.below(3) * self.rng.below(100));
            if self.rng.below(4) == 0 {
                step.priority = Priority::BestEffort;
            }
            if self.rng.below(12) == 0 {
                let device = NodeId(self.rng.below(self.devices));
                let mut clause = Clause::from(Condition {
                    device,
                    comparison: Comparison::Equal,
                    value: 1,
                });
                if self.rng.below(2) == 0 {
                    clause = clause.and(Clause::from(Condition {
                        device: NodeId(self.rng.below(self.devices)),
                        comparison: Comparison::Less,
                        value: 3,
                    }));
                }
                step.condition = Some(clause);
            }
            steps.push(step);
        }
        let (routine, terms) = (Routine { steps }, self.terms());
        self.step(Input::Command(Command::SubmitAs { routine, terms }));
    }

    /// Most have equal urgency and no key.
    fn terms(&mut self) -> Terms {
        let mut terms = match self.rng.below(10) {
            0 => Terms::of("restarts", Mode::Restart),
            1 => {
                let limit = NonZeroU16::MIN.saturating_add(2);
                Terms::of("queued", Mode::Queued { limit })
            }
            _ => Terms::default(),
        };
        if self.rng.below(6) == 0 {
            terms.urgency = Urgency(1 + u8::from(self.rng.below(2) == 0));
        }
        terms
    }

    /// The places that a routine would get next are the same by ranks and by the plain rule.
    fn compare(&mut self, seed: u64) {
        let mut hub = self.driver.machine().clone();
        let some = hub.runs.values().find(|it| !it.routine.steps.is_empty());
        let Some(routine) = some.map(|it| it.routine.clone()) else {
            return;
        };
        hub.last.0 += 1;
        let terms = self.terms();
        hub.runs.insert(hub.last, Run::new(routine, terms));
        let waiting = hub.runs.iter().filter(|it| it.1.stage == Stage::Waiting);
        for (&id, run) in waiting {
            let (mut needs, mut memory) = (Vec::new(), Memory::default());
            hub.find_needs(run, &mut needs);
            let mut both = [
                Sides::new(&hub, run, &needs, &mut memory),
                Sides::plain(&hub, run, &needs),
            ];
            let found = both.each_mut().map(|sides| {
                let (mut search, mut places) = (Search::default(), Vec::new());
                let found = hub.earliest(&needs, self.now, sides, &mut search, &mut places);
                (found, places)
            });
            let [ours, plain] = &found;
            assert_eq!(ours, plain, "seed {seed}, {id:?}");
            self.compared.0 += 1;
            self.compared.1 += u32::from(ours.0.0.is_ok());
            let mut both = [
                Sides::new(&hub, run, &needs, &mut memory),
                Sides::plain(&hub, run, &needs),
            ];
            let found = both.each_mut().map(|sides| {
                let mut places = Vec::new();
                let found = hub.in_front(&needs, self.now, sides, &mut places);
                found.map(|()| places)
            });
            let [ours, plain] = &found;
            assert_eq!(ours, plain, "seed {seed}, {id:?}");
        }
    }
}

#[test]
fn places_by_ranks_are_those_by_the_plain_rule() {
    let (mut compared, mut refused) = ((0, 0), 0);
    for seed in 0..150 {
        let mut home = Home::new(seed);
        for _ in 0..120 {
            home.happen();
            assert!(home.driver.machine().ranks_agree(), "seed {seed}");
            home.compare(seed);
        }
        compared.0 += home.compared.0;
        compared.1 += home.compared.1;
        refused += home.refused;
    }
    assert!(refused > 0, "some commands name routines that are finished");
    assert!(compared.0 > 10_000 && compared.1 > 5_000, "{compared:?}");
}
