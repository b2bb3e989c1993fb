//! All small homes: some order of the routines explains the end, found by trying all without a look
//! at the reported one.
//!
//! Three routines with two commands each on three devices: 6 ways to choose the two devices of each
//! (6^3 = 216), 3 lengths of each command (3^6 = 729), and 2 moments at which the second and the
//! third routine come (2^2 = 4) make 629,856 homes. `SELVEDGE_HISTORIES` is the number of homes to
//! run, or a range of seeds; as many seeds as homes, or more, are all homes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{DELAY, Home, MODELS, planned};
use selvedge_core::{Span, Time};
use selvedge_safehome::{Config, Placed, RoutineId, Scheduler, Step, Visibility};
use selvedge_sim::histories::seeds;

const HOMES: u64 = 629_856;
/// The number of homes that a test runs by default.
const FEW: u64 = 6_000;
/// The distance from the home of one seed to the next: without a factor in common with the number of
/// homes (2^5 * 3^9), so each home has a seed below that number.
const STRIDE: u64 = 389_273;
const LENGTHS: [u64; 3] = [100, 300, 1_000];
const PAIRS: [(u64, u64); 6] = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];

/// Digits of a number to mixed bases.
struct Digits(usize);

impl Digits {
    fn next(&mut self, base: usize) -> usize {
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }
}

/// Returns true if these routines one by one, in some order, leave the devices in these states.
/// `None` is a device that is down.
fn is_explained(routines: &[&[Step<u8>]], end: &[Option<u8>], serial: &[u8]) -> bool {
    if routines.is_empty() {
        return end
            .iter()
            .zip(serial)
            .all(|(it, state)| it.is_none_or(|it| it == *state));
    }
    (0..routines.len()).any(|first| {
        let mut serial = serial.to_vec();
        for step in routines[first] {
            serial[step.device.0 as usize] = step.value;
        }
        let mut left = routines.to_vec();
        left.remove(first);
        is_explained(&left, end, &serial)
    })
}

/// Checks the end of a home whose routines have these ids.
fn judge(home: &Home, routines: &[(RoutineId, Vec<Step<u8>>)]) -> bool {
    let is_done = |it: &&(RoutineId, Vec<Step<u8>>)| home.committed(it.0).is_some();
    let done = routines.iter().filter(is_done);
    let done: Vec<&[Step<u8>]> = done.map(|it| it.1.as_slice()).collect();
    let end = home.states.iter().zip(&home.is_up);
    let end: Vec<Option<u8>> = end.map(|(it, is_up)| is_up.then_some(*it)).collect();
    let mut notified = vec![0; end.len()];
    for placed in home.order() {
        if let Placed::Routine(id) = placed {
            let routine = routines.iter().find(|it| it.0 == id).unwrap();
            for step in &routine.1 {
                notified[step.device.0 as usize] = step.value;
            }
        }
    }
    let mut pairs = end.iter().zip(&notified);
    let told_explains = pairs.all(|(it, notified)| it.is_none_or(|it| it == *notified));
    let first = vec![0; end.len()];
    is_explained(&done, &end, &first)
        && (told_explains || home.hub.machine().config().visibility == Visibility::Weak)
}

/// Runs the home with this number; returns true if it is explained.
fn three_by_three(number: usize, config: Config) -> bool {
    let mut digits = Digits(number);
    let mut home = Home::new(config, 3);
    let mut routines = Vec::new();
    for nth in 0..3_u8 {
        let pair = PAIRS[digits.next(PAIRS.len())];
        let [first, second] = [(); 2].map(|()| LENGTHS[digits.next(LENGTHS.len())]);
        if nth > 0 && digits.next(2) == 1 {
            // While the one before it does its first command, or waits.
            home.wait(Span::millis(150));
        }
        let steps = vec![
            planned(pair.0, 2 * nth + 1, first),
            planned(pair.1, 2 * nth + 2, second),
        ];
        routines.push((home.submit(steps.clone()), steps));
    }
    assert_eq!(digits.0, 0, "{number} is no home");
    home.rest();
    for (id, _) in &routines {
        let is_done = home.committed(*id).is_some();
        assert!(
            is_done,
            "home {number}: {id:?} is not done: {:#?}",
            home.events
        );
    }
    judge(&home, &routines)
}

fn strong(scheduler: Scheduler, visibility: Visibility) -> Config {
    Config::default()
        .with_visibility(visibility)
        .with_scheduler(scheduler)
}

/// The homes of the seeds, spread over all homes.
fn numbers() -> impl Iterator<Item = usize> {
    let home = |seed: u64| seed % HOMES * STRIDE % HOMES;
    (seeds(FEW).map(home).take(HOMES as usize)).map(|number| number as usize)
}

fn all_are_explained(config: Config) {
    let mut count = 0;
    for number in numbers() {
        assert!(
            three_by_three(number, config),
            "home {number} under {config:?}"
        );
        count += 1;
    }
    println!("{count} of {HOMES} homes");
}

#[test]
fn all_small_homes_are_explained_first_come_first_served() {
    all_are_explained(strong(Scheduler::FirstCome, Visibility::Eventual));
}

#[test]
fn all_small_homes_are_explained_just_in_time() {
    // Leases last for the whole need: no routine is aborted.
    let config = strong(Scheduler::JustInTime, Visibility::Eventual).with_leniency(u16::MAX);
    all_are_explained(config);
}

#[test]
fn all_small_homes_are_explained_with_a_timeline() {
    let config = strong(Scheduler::Timeline, Visibility::Eventual).with_leniency(u16::MAX);
    all_are_explained(config);
}

#[test]
fn all_small_homes_are_explained_under_strict_visibility() {
    all_are_explained(strong(Scheduler::Timeline, Visibility::PartitionedStrict));
}

/// This shows that the search can find that no order explains the end.
#[test]
fn many_small_weak_homes_are_not_explained() {
    let config = strong(Scheduler::Timeline, Visibility::Weak);
    let all = numbers().count();
    let explained = numbers().filter(|it| three_by_three(*it, config)).count();
    println!(
        "{} of {all} weak homes are explained by no order",
        all - explained
    );
    assert!(explained < all);
}

/// The times of all events in this home, and one time between each two.
fn moments(steps: &[Vec<Step<u8>>; 2], late: bool, config: Config) -> Vec<Time> {
    let mut home = Home::new(config, 2);
    let mut moments = Vec::new();
    for (nth, steps) in steps.iter().enumerate() {
        if nth == 1 && late {
            home.wait(DELAY + DELAY);
        }
        home.submit(steps.clone());
        moments.push(home.now);
    }
    while let Some(next) = home.next() {
        moments.push(next);
        home.pass(next);
    }
    moments.sort_unstable();
    moments.dedup();
    let between = moments.windows(2).map(|it| Time(it[0].0.midpoint(it[1].0)));
    let mut all: Vec<Time> = moments.iter().copied().chain(between).collect();
    all.sort_unstable();
    all
}

/// Two routines with two commands each on two devices, one of which fails at every moment, and stays
/// down or is back at every later one: under every model but the weak one some order explains the
/// end.
#[test]
fn a_failure_at_any_moment_is_explained() {
    let mut homes = 0;
    for visibility in MODELS.into_iter().filter(|it| *it != Visibility::Weak) {
        for scheduler in [
            Scheduler::FirstCome,
            Scheduler::JustInTime,
            Scheduler::Timeline,
        ] {
            if visibility != Visibility::Eventual && scheduler != Scheduler::Timeline {
                continue;
            }
            let config = strong(scheduler, visibility).with_timeout(Span::millis(400));
            for choice in 0..4 * 4 * 2 * 2 {
                homes += failures(choice, config);
            }
        }
    }
    println!("{homes} homes with a failure");
    assert!(homes > 10_000);
}

fn failures(choice: usize, config: Config) -> u64 {
    let mut digits = Digits(choice);
    let mut routine = |nth: u8| {
        let devices = digits.next(4) as u64;
        vec![
            planned(devices & 1, 2 * nth + 1, 300),
            planned(devices >> 1, 2 * nth + 2, 100),
        ]
    };
    let both = [routine(0), routine(1)];
    let (late, device) = (digits.next(2) == 1, digits.next(2));
    let moments = moments(&both, late, config);
    let mut homes = 0;
    for (nth, &fails) in moments.iter().enumerate() {
        let later = moments.iter().skip(nth + 1).map(|it| Some(*it));
        for back in later.chain([None]) {
            homes += 1;
            let mut home = Home::new(config, 2);
            let mut routines = Vec::new();
            let mut happens = vec![(Time::ZERO, Some(0)), (fails, None)];
            let second = if late {
                Time::ZERO + DELAY + DELAY
            } else {
                Time::ZERO
            };
            happens.push((second, Some(1)));
            happens.extend(back.map(|it| (it, None)));
            happens.sort_by_key(|it| it.0);
            for (when, what) in happens {
                home.pass(when);
                match what {
                    Some(nth) => {
                        let steps: &Vec<Step<u8>> = &both[nth];
                        routines.push((home.submit(steps.clone()), steps.clone()));
                    }
                    None => home.flip(device),
                }
            }
            home.rest();
            if back.is_none() {
                // A pending rollback is done when the device is up again.
                home.flip(device);
                home.rest();
            }
            assert!(
                judge(&home, &routines),
                "choice {choice}, {fails:?} to {back:?}, {config:?}: {:#?}",
                home.events
            );
        }
    }
    homes
}
