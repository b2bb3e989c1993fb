//! Where the timeline scheduler puts a routine, seen by when it is finished.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, NodeId, Span, Time};
use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Routine, RoutineId, Step};

/// A home whose devices do at once what they are told.
struct Home {
    hub: Driver<Hub<u8>>,
    rng: ChaCha8Rng,
    now: Time,
    committed: BTreeMap<RoutineId, Time>,
}

impl Home {
    fn new(devices: u64) -> Self {
        let mut home = Self {
            hub: Driver::new(Hub::new(Config::default()).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(0),
            now: Time::ZERO,
            committed: BTreeMap::new(),
        };
        for device in (0..devices).map(NodeId) {
            let state = Some(0);
            home.command(Command::Device { device, state });
        }
        home
    }

    /// Submits commands to devices, each for so many seconds.
    fn submit(&mut self, needs: &[(u64, u64)]) {
        let steps = needs.iter().map(|&(device, seconds)| Step {
            hold: Span::secs(seconds),
            ..Step::new(NodeId(device), 1)
        });
        let steps = steps.collect();
        self.command(Command::Submit(Routine { steps }));
    }

    fn run(&mut self) {
        while let Some(due) = self.hub.deadline() {
            self.now = due;
            let mut events = Vec::new();
            self.hub.expire(due, &mut self.rng, |it| events.push(it));
            self.hear(events);
        }
    }

    fn command(&mut self, command: Command<u8>) {
        let mut events = Vec::new();
        let input = Input::Command(command);
        let taken = self
            .hub
            .step(self.now, &mut self.rng, input, |it| events.push(it));
        taken.unwrap();
        self.hear(events);
    }

    fn hear(&mut self, events: Vec<Effect<Hub<u8>>>) {
        for event in events {
            match event {
                Effect::Event(Event::Issue { device, token, .. }) => {
                    let outcome = Outcome::Done;
                    self.command(Command::Outcome {
                        device,
                        token,
                        outcome,
                    });
                }
                Effect::Event(Event::Committed(routine)) => {
                    self.committed.insert(routine, self.now);
                }
                Effect::Event(_) | Effect::Send { .. } => {}
            }
        }
    }
}

#[test]
fn a_routine_that_must_be_stretched_still_goes_into_gaps() {
    let mut home = Home::new(4);
    home.submit(&[(0, 1_000)]);
    // Needs device 2 much later.
    home.submit(&[(1, 2_000), (2, 1)]);
    // Waits for device 0 for many times as long as its commands take.
    home.submit(&[(3, 1), (0, 1), (2, 1)]);
    home.run();
    let third = home.committed[&RoutineId(3)];
    assert_eq!(third, Time::ZERO + Span::secs(1_002));
}

#[test]
fn a_gap_is_taken_only_if_nobody_else_is_late_by_it() {
    let mut home = Home::new(2);
    home.submit(&[(0, 100), (1, 10)]);
    // It would fit, and take longer than until the first one needs the device.
    home.submit(&[(1, 101)]);
    home.submit(&[(1, 50)]);
    home.run();
    let ends = [1, 2, 3].map(|it| home.committed[&RoutineId(it)]);
    assert_eq!(
        ends,
        [110, 211, 50].map(|it| Time::ZERO + Span::secs(it)),
        "the first one is not delayed, the short one goes before it, the long one behind"
    );
}
