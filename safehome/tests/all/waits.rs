//! Waiting under just-in-time: its duration, and the order of the waiting routines.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, if_it_is, long, maybe, set};
use selvedge_core::{Driver, Span, Time};
use selvedge_safehome::{
    Command, Config, Event, Hub, Outcome, PlaceStage, RoutineId, Scheduler, Step, Timer, Visibility,
};

const A: u64 = 0;
const B: u64 = 1;
const C: u64 = 2;
const D: u64 = 3;

fn just_in_time() -> Config {
    Config::default().with_scheduler(Scheduler::JustInTime)
}

/// A routine holds B for 100 s; another one comes 1 s later, and then every 5 s one that uses A for
/// 9 s.
fn behind_a_stream(second: Vec<Step<u8>>) -> (Home, RoutineId) {
    let mut home = Home::new(just_in_time(), 4);
    home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
    home.pass(at(1_000));
    let waits = home.submit(second);
    for nth in 1..=60 {
        home.pass(at(5_000 * nth));
        home.submit(vec![long(A, 1, Span::secs(9))]);
    }
    (home, waits)
}

/// The first one is over after 100 s, and patience after 61; one of the stream may have A then.
const PATIENT: Time = Time(110_000_000);

#[test]
fn who_waits_for_a_condition_is_not_overtaken_for_ever() {
    let (home, waits) = behind_a_stream(vec![if_it_is(set(C, 1), A, 1)]);
    assert!(home.committed(waits).is_some_and(|at| at < PATIENT));
}

/// It has its place, and has touched nothing that it waits for.
#[test]
fn patience_lasts_until_the_first_command() {
    let steps = vec![if_it_is(set(C, 1), D, 9), if_it_is(set(C, 2), A, 1)];
    let (home, waits) = behind_a_stream(steps);
    assert!(home.committed(waits).is_some_and(|at| at < PATIENT));
}

/// The hub restarts half-way: patience begins again.
#[test]
fn patience_is_kept_over_a_restart() {
    let mut home = Home::new(just_in_time(), 4);
    home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
    home.pass(at(1_000));
    let skipped_first = vec![if_it_is(set(C, 1), D, 9), if_it_is(set(C, 2), A, 1)];
    let placed = home.submit(skipped_first);
    let waiting = home.submit(vec![if_it_is(set(C, 1), A, 1)]);
    let (config, saved) = (just_in_time(), home.hub.machine().save());
    home.hub = Driver::new(Hub::restore(config, saved).unwrap());
    home.notify(Command::Resume).unwrap();
    for id in [placed, waiting] {
        assert_eq!(patience(&home, id), Some(at(61_000)));
    }
}

fn patience(home: &Home, id: RoutineId) -> Option<Time> {
    let mut timers = home.hub.timers();
    timers.find(|it| it.0 == Timer::Patience(id)).map(|it| it.1)
}

/// A routine that has begun waits only for its own commands: others may go before it on devices
/// that it needs later.
#[test]
fn who_has_begun_is_overtaken_where_it_does_not_wait() {
    let mut home = Home::new(just_in_time(), 2);
    let first = home.submit(vec![long(A, 1, Span::secs(200)), set(B, 1)]);
    assert_eq!(patience(&home, first), None);
    home.pass(at(100_000));
    let second = home.submit(vec![set(B, 2)]);
    home.pass(at(101_000));
    assert!(home.committed(second).is_some());
    home.rest();
    assert_eq!(home.states[B as usize], 1);
}

/// No timer outlives its routine: one routine is cancelled while it waits, another finds nothing to
/// do, and the first device of a third is down.
#[test]
fn patience_ends_with_the_routine() {
    let mut home = Home::new(just_in_time(), 2);
    home.submit(vec![long(A, 1, Span::secs(100))]);
    let cancelled = home.submit(vec![set(A, 2)]);
    assert!(patience(&home, cancelled).is_some());
    home.notify(Command::Cancel(cancelled)).unwrap();
    let passed_over = home.submit(vec![if_it_is(set(B, 1), B, 9)]);
    assert!(home.committed(passed_over).is_some());
    home.flip(B as usize);
    let aborted = home.submit(vec![set(B, 1)]);
    for id in [cancelled, passed_over, aborted] {
        assert_eq!(home.hub.machine().unfinished().find(|it| it.0 == id), None);
        assert_eq!(patience(&home, id), None);
    }
}

/// Only under just-in-time does a routine lose patience, also after a restart.
#[test]
fn only_who_waits_just_in_time_loses_patience() {
    for (visibility, scheduler) in [
        (Visibility::GlobalStrict, Scheduler::JustInTime),
        (Visibility::PartitionedStrict, Scheduler::JustInTime),
        (Visibility::Eventual, Scheduler::Timeline),
        (Visibility::Eventual, Scheduler::FirstCome),
    ] {
        let config = Config::default()
            .with_visibility(visibility)
            .with_scheduler(scheduler);
        let mut home = Home::new(config, 1);
        home.submit(vec![long(A, 1, Span::secs(100))]);
        let waits = home.submit(vec![set(A, 2)]);
        assert_eq!(patience(&home, waits), None);
        let saved = home.hub.machine().save();
        home.hub = Driver::new(Hub::restore(config, saved).unwrap());
        home.notify(Command::Resume).unwrap();
        assert_eq!(patience(&home, waits), None);
    }
}

/// The order in which these states were brought about on a device.
fn states(home: &Home, nth: u64) -> Vec<u8> {
    let issued = home.issued(nth as usize);
    let by_routines = issued.iter().filter(|it| it.1);
    by_routines.map(|it| it.0).collect()
}

#[test]
fn a_lamp_ends_in_the_state_that_was_asked_for_last() {
    let mut home = Home::new(just_in_time(), 1);
    for nth in 1..=4_u8 {
        home.pass(at(10 * (u64::from(nth) - 1)));
        home.submit(vec![set(A, nth)]);
    }
    home.rest();
    assert_eq!(states(&home, A), [1, 2, 3, 4]);
}

/// They can start when the first one is committed, all at once.
#[test]
fn conditions_are_asked_in_the_order_of_submission() {
    let mut home = Home::new(just_in_time(), 3);
    home.submit(vec![set(A, 1), long(B, 1, Span::secs(10))]);
    home.pass(at(1_000));
    for nth in 1..=4 {
        home.submit(vec![if_it_is(set(C, nth), A, 1)]);
    }
    // A routine without a condition need not wait for that.
    home.submit(vec![set(C, 9)]);
    home.rest();
    assert_eq!(states(&home, C), [9, 1, 2, 3, 4]);
}

/// A device with a due rollback is free of routines, and no routine can start there.
#[test]
fn who_waits_for_a_rollback_does_not_run_in_reverse() {
    let mut home = Home::new(just_in_time(), 4);
    let first = home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
    home.pass(at(1_000));
    home.is_mute[A as usize] = true;
    home.notify(Command::Cancel(first)).unwrap();
    home.lands(A as usize, Outcome::Refused);
    home.is_mute[A as usize] = false;
    // It is tried again a second later.
    home.submit(vec![set(A, 2), set(B, 2)]);
    home.submit(vec![set(A, 3), set(C, 3)]);
    home.submit(vec![set(A, 4), set(D, 4)]);
    home.rest();
    assert_eq!(states(&home, A), [1, 2, 3, 4]);
}

/// No waiting routine is forgotten when the device comes into its state by other means.
#[test]
fn who_waits_for_a_rollback_starts_when_there_is_none() {
    type Ends = fn(&mut Home);
    let by_hand: Ends = |home| home.by_hand(A as usize, 0);
    let by_failure: Ends = |home| {
        home.flip(A as usize);
        home.flip(A as usize);
    };
    let by_itself: Ends = |home| home.wait(Span::secs(1));
    for ends in [by_hand, by_failure, by_itself] {
        let mut home = Home::new(just_in_time(), 2);
        let first = home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
        home.pass(at(1_000));
        home.is_mute[A as usize] = true;
        home.notify(Command::Cancel(first)).unwrap();
        home.lands(A as usize, Outcome::Refused);
        home.is_mute[A as usize] = false;
        let waits = home.submit(vec![maybe(A, 2)]);
        assert_eq!(home.when(&Event::Started(waits)), None);
        ends(&mut home);
        home.wait(Span::millis(200));
        assert!(home.committed(waits).is_some());
    }
}

/// The rollback may fail or be repeated, whatever the device reports before its outcome.
#[test]
fn who_asks_about_a_device_waits_for_the_outcome_of_its_rollback() {
    let mut home = Home::new(Config::default(), 3);
    let first = home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
    home.pass(at(1_000));
    home.is_mute[A as usize] = true;
    home.notify(Command::Cancel(first)).unwrap();
    home.by_hand(A as usize, 0);
    let asks = home.submit(vec![if_it_is(set(C, 7), A, 0)]);
    home.wait(Span::secs(1));
    assert_eq!(home.issued(C as usize), []);
    home.lands(A as usize, Outcome::Done);
    home.wait(Span::secs(1));
    assert_eq!(home.issued(C as usize), [(7, true)]);
    assert!(home.committed(asks).is_some());
}

/// One routine has B, another is next there, and the changes of the first one on A may still be
/// undone.
#[test]
fn places_on_a_device_are_in_their_order() {
    let mut home = Home::new(Config::default(), 4);
    let first = home.submit(vec![set(A, 1), long(B, 1, Span::secs(100))]);
    home.pass(at(1_000));
    let second = home.submit(vec![set(B, 2)]);
    let hub: &Hub<u8> = home.hub.machine();
    let places = |device| {
        let places = hub.lineage(selvedge_core::NodeId(device));
        places.map(|it| (it.routine, it.stage)).collect::<Vec<_>>()
    };
    assert_eq!(places(A), [(first, PlaceStage::Over)]);
    let at_b = [(first, PlaceStage::Begun), (second, PlaceStage::Planned)];
    assert_eq!(places(B), at_b);
    assert_eq!(places(C), []);
    assert_eq!(places(99), []);
    let planned: Vec<_> = hub.lineage(selvedge_core::NodeId(B)).collect();
    assert!(planned[0].start + planned[0].length <= planned[1].start);
    assert!(planned[0].length >= Span::secs(100));
    home.rest();
    assert_eq!(
        home.hub.machine().lineage(selvedge_core::NodeId(B)).count(),
        0
    );
}
