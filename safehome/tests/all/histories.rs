//! Random histories of a home: routines that meet, devices that fail, refuse, answer late or not at
//! all, cancels. The order that the hub tells must explain the end.
//!
//! With `SELVEDGE_HISTORIES` set to a number so many are run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::env;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Clause, Command, Comparison, Condition, Config, Event, Hub, Outcome, Placed, Priority, Reject,
    Routine, RoutineId, Scheduler, SkipReason, Step, Visibility,
};
use selvedge_sim::histories;

const MODELS: [(Visibility, Scheduler); 7] = [
    (Visibility::Eventual, Scheduler::Timeline),
    (Visibility::Eventual, Scheduler::JustInTime),
    (Visibility::Eventual, Scheduler::FirstCome),
    (Visibility::PartitionedStrict, Scheduler::Timeline),
    (Visibility::GlobalStrict, Scheduler::Timeline),
    (Visibility::StrongGlobalStrict, Scheduler::Timeline),
    (Visibility::Weak, Scheduler::Timeline),
];

#[derive(Default, Debug)]
struct Counts {
    committed: u64,
    aborted: u64,
    skipped: u64,
    incongruent: u64,
    restored: u64,
    unexplained: u64,
    stuck: u64,
}

/// A device as it is.
struct Thing {
    state: u8,
    is_up: bool,
    life: u32,
    flight: Option<(u64, u8, Time, Fate)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Done,
    Refused,
    /// It is done, and nobody hears of it.
    Mute,
    /// It is not done, and nobody hears of it.
    Lost,
}

struct Home {
    rng: ChaCha8Rng,
    hub: Driver<Hub<u8>>,
    now: Time,
    things: Vec<Thing>,
    routines: BTreeMap<RoutineId, Routine<u8>>,
    skipped: Vec<(RoutineId, u16, SkipReason)>,
    order: Vec<RoutineId>,
    open: usize,
    pending: Option<Routine<u8>>,
    faults: bool,
    counts: Counts,
    is_weak: bool,
    trace: Vec<String>,
}

impl Home {
    fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound
    }

    fn input(&mut self, input: Input<Hub<u8>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        self.trace.push(format!("{:?} {input:?}", self.now));
        let outcome = self
            .hub
            .step(self.now, &mut self.rng, input, |it| effects.push(it));
        self.carry_out(effects);
        outcome
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<u8>>>) {
        for effect in effects {
            let Effect::Event(event) = effect;
            self.trace.push(format!("    {event:?}"));
            match event {
                Event::Accepted(id) => {
                    let routine = self.pending.take().unwrap();
                    self.routines.insert(id, routine);
                    self.open += 1;
                }
                Event::Issue {
                    device,
                    token,
                    value,
                    ..
                } => {
                    let fate = match self.below(100) {
                        _ if !self.faults => Fate::Done,
                        0..80 => Fate::Done,
                        80..88 => Fate::Refused,
                        88..94 => Fate::Mute,
                        _ => Fate::Lost,
                    };
                    let after = Span::millis(1 + u64::from(self.below(300)));
                    let when = self.now + after;
                    let thing = &mut self.things[device.0 as usize];
                    assert!(thing.flight.is_none(), "two commands on {device}");
                    let fate = if thing.is_up { fate } else { Fate::Lost };
                    thing.flight = Some((token, value, when, fate));
                }
                Event::Committed(_) => {
                    self.counts.committed += 1;
                    self.open -= 1;
                }
                Event::Aborted { .. } => {
                    self.counts.aborted += 1;
                    self.open -= 1;
                }
                Event::Skipped { routine, step, why } => {
                    self.counts.skipped += 1;
                    self.skipped.push((routine, step, why));
                }
                Event::Ordered(Placed::Routine(id)) => self.order.push(id),
                Event::Incongruent { .. } => self.counts.incongruent += 1,
                Event::Restored(_) => self.counts.restored += 1,
                Event::Stuck(_) | Event::GivenUp(_) => self.counts.stuck += 1,
                Event::Ordered(_)
                | Event::Started(_)
                | Event::Aborting { .. }
                | Event::Ask { .. } => {}
                other => panic!("unknown to the home: {other:?}"),
            }
        }
    }

    /// Lets time pass until then.
    fn pass(&mut self, until: Time) {
        loop {
            let landing = self
                .things
                .iter()
                .filter_map(|it| it.flight.map(|it| it.2))
                .min();
            let due = self.hub.deadline();
            let next = landing.into_iter().chain(due).min();
            let Some(next) = next.filter(|&it| it <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if landing.is_some_and(|it| it <= next) {
                self.land();
                continue;
            }
            let mut effects = Vec::new();
            self.trace.push(format!("{:?} tick", self.now));
            self.hub
                .expire(self.now, &mut self.rng, |it| effects.push(it));
            // What is overdue is over for the hub.
            self.carry_out_late(effects);
        }
        self.now = self.now.max(until);
    }

    fn carry_out_late(&mut self, effects: Vec<Effect<Hub<u8>>>) {
        // A timeout gives a device free whose command got no answer.
        for thing in &mut self.things {
            if let Some((_, _, when, Fate::Mute | Fate::Lost)) = thing.flight
                && when == Time(u64::MAX)
            {
                thing.flight = None;
            }
        }
        self.carry_out(effects);
    }

    fn land(&mut self) {
        let now = self.now;
        for nth in 0..self.things.len() {
            let thing = &mut self.things[nth];
            let Some((token, value, when, fate)) = thing.flight else {
                continue;
            };
            if when > now {
                continue;
            }
            if matches!(fate, Fate::Done | Fate::Mute) {
                thing.state = value;
            }
            let outcome = match fate {
                Fate::Done => Outcome::Done,
                Fate::Refused => Outcome::Refused,
                Fate::Mute | Fate::Lost => {
                    // The hub finds out by itself.
                    thing.flight = Some((token, value, Time(u64::MAX), fate));
                    continue;
                }
            };
            thing.flight = None;
            let command = Command::Outcome {
                device: NodeId(nth as u64),
                token,
                outcome,
            };
            self.input(Input::Command(command)).unwrap();
        }
    }

    fn routine(&mut self, conditions: bool) -> Routine<u8> {
        let steps = 1 + self.below(4);
        let things = self.things.len() as u32;
        let step = |home: &mut Self| {
            let device = NodeId(home.below(things).into());
            let mut step = Step::new(device, home.below(200) as u8);
            if home.below(4) == 0 {
                step.priority = Priority::BestEffort;
            }
            if home.below(4) == 0 {
                step.hold = Span::millis(home.below(3_000).into());
            }
            if conditions && home.below(5) == 0 {
                let mut ask = || {
                    Clause::Is(Condition {
                        device: NodeId(home.below(things).into()),
                        comparison: Comparison::Less,
                        value: home.below(200) as u8,
                    })
                };
                let (first, second) = (ask(), ask());
                step.condition = Some(match home.below(3) {
                    0 => first,
                    1 => Clause::All(vec![first, second]),
                    _ => Clause::Any(vec![first, Clause::Not(Box::new(second))]),
                });
            }
            step
        };
        Routine {
            steps: (0..steps).map(|_| step(self)).collect(),
        }
    }

    fn flip(&mut self, nth: usize) {
        let thing = &mut self.things[nth];
        thing.is_up = !thing.is_up;
        let member = Member::new(nth as u64, thing.life);
        let delta = if thing.is_up {
            Delta::Refuted(member)
        } else {
            if let Some((_, _, when, fate)) = &mut thing.flight
                && *when != Time(u64::MAX)
            {
                *fate = Fate::Lost;
            }
            Delta::Failed(member)
        };
        self.input(Input::Membership(delta)).unwrap();
    }
}

fn run(seed: u64) -> Counts {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (visibility, scheduler) = MODELS[rng.next_u32() as usize % MODELS.len()];
    let config = Config::default()
        .with_visibility(visibility)
        .with_scheduler(scheduler)
        .with_pre_leases(!rng.next_u32().is_multiple_of(8))
        .with_post_leases(!rng.next_u32().is_multiple_of(8))
        .with_timeout(Span::secs(1))
        .with_patience(Span::secs(10));
    let things = 2 + (rng.next_u32() % 5) as usize;
    let mut home = Home {
        hub: Driver::new(Hub::new(config).unwrap()),
        now: Time::ZERO,
        things: (0..things)
            .map(|_| Thing {
                state: 255,
                is_up: true,
                life: 0,
                flight: None,
            })
            .collect(),
        routines: BTreeMap::new(),
        skipped: Vec::new(),
        order: Vec::new(),
        open: 0,
        pending: None,
        faults: rng.next_u32().is_multiple_of(2),
        counts: Counts::default(),
        is_weak: visibility == Visibility::Weak,
        trace: Vec::new(),
        rng,
    };
    for nth in 0..things {
        let device = NodeId(nth as u64);
        let state = Some(255);
        home.input(Input::Command(Command::Device { device, state }))
            .unwrap();
    }
    let conditions = home.below(2) == 0;
    for _ in 0..3 + home.below(40) {
        let wait = Span::millis(home.below(800).into());
        home.pass(home.now + wait);
        match home.below(20) {
            0..14 => {
                let routine = home.routine(conditions);
                home.pending = Some(routine.clone());
                home.input(Input::Command(Command::Submit(routine)))
                    .unwrap();
            }
            14..17 if home.faults => {
                let nth = home.below(things as u32) as usize;
                home.flip(nth);
            }
            17 => {
                let last = home.routines.len() as u32 + 1;
                let id = RoutineId(home.below(last).into());
                match home.input(Input::Command(Command::Cancel(id))) {
                    Ok(()) | Err(Reject::UnknownRoutine(_)) => {}
                    Err(other) => panic!("a cancel was refused: {other}"),
                }
            }
            _ => {}
        }
    }
    home.faults = false;
    for nth in 0..things {
        if !home.things[nth].is_up {
            home.flip(nth);
        }
    }
    home.pass(home.now + Span::secs(3_600));
    let end: Vec<u8> = home.things.iter().map(|it| it.state).collect();
    let fail = |why: &str, home: &Home| -> ! {
        for line in &home.trace {
            println!("{line}");
        }
        println!("{:#?}", home.routines);
        panic!(
            "seed {seed}, {visibility:?} {scheduler:?}: {why}: {:#?}",
            home.hub.machine()
        );
    };
    if home.open > 0 || !home.hub.machine().is_quiet() {
        fail("routines are unfinished", &home);
    }
    if home.is_weak {
        return home.counts;
    }
    if home.order.len() as u64 != home.counts.committed {
        fail("not all that are committed are ordered", &home);
    }
    let mut serial = vec![255; things];
    for id in &home.order {
        for (nth, step) in home.routines[id].steps.iter().enumerate() {
            let skip = home
                .skipped
                .iter()
                .find(|it| it.0 == *id && usize::from(it.1) == nth)
                .map(|it| it.2);
            if let Some(condition) = &step.condition {
                let state = |device: NodeId| Some(&serial[device.0 as usize]);
                let holds = condition.holds(&state) == Some(true);
                let expected = skip != Some(SkipReason::Condition);
                let failed = matches!(
                    skip,
                    Some(SkipReason::Down(_) | SkipReason::StateUnknown(_))
                );
                if holds != expected && !failed {
                    fail(&format!("{id:?} saw what it should not, step {nth}"), &home);
                }
            }
            if skip.is_none() {
                serial[step.device.0 as usize] = step.value;
            }
        }
    }
    if home.counts.stuck == 0 && serial != end {
        fail(
            &format!("{end:?} is not {serial:?} after {:?}", home.order),
            &home,
        );
    }
    home.counts
}

#[test]
fn the_order_explains_the_end() {
    let many = env::var("SELVEDGE_HISTORIES").map_or(2_000, |text| {
        text.parse().expect("SELVEDGE_HISTORIES: expected a number")
    });
    let mut all = Counts::default();
    let ran = histories(0..many, |seed| {
        let counts = run(seed);
        all.committed += counts.committed;
        all.aborted += counts.aborted;
        all.skipped += counts.skipped;
        all.incongruent += counts.incongruent;
        all.restored += counts.restored;
        all.stuck += counts.stuck;
        all.unexplained += counts.unexplained;
    });
    println!("{ran} histories: {all:#?}");
}
