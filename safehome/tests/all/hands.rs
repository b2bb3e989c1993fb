//! Changes that a person makes by hand while routines run, and undo handlers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use home::{Home, MODELS, at, if_it_is, long, set};
use selvedge_core::{Choose, NodeId, Span};
use selvedge_safehome::{AbortReason, Command, Config, Event, Outcome, Placed, SkipReason, Step};
use selvedge_sim::histories;

/// A manual change comes after all routines that have touched the device; so this routine does not
/// see it.
#[test]
fn a_condition_does_not_see_what_comes_after_its_routine() {
    let mut home = Home::new(Config::default(), 3);
    let last = if_it_is(set(2, 1), 0, 1);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(1)), last]);
    home.pass(at(500));
    home.by_hand(0, 9);
    home.rest();
    assert_eq!(home.states, [9, 1, 1]);
    let state = Some(9);
    let device = NodeId(0);
    let by_hand = Placed::Set { device, state };
    assert_eq!(home.order(), [Placed::Routine(routine), by_hand]);
}

#[test]
fn a_change_by_hand_stays_when_the_routine_before_it_is_undone() {
    let mut home = Home::new(Config::default(), 2);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(1))]);
    home.pass(at(500));
    home.by_hand(0, 9);
    home.notify(Command::Cancel(routine)).unwrap();
    home.rest();
    assert_eq!(home.states, [9, 0]);
}

#[test]
fn a_routine_overwrites_what_a_hand_did_meanwhile() {
    let mut home = Home::new(Config::default(), 2);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(1)), set(0, 2)]);
    home.pass(at(500));
    home.by_hand(0, 9);
    home.rest();
    assert_eq!(home.states, [2, 1]);
    assert_eq!(home.order(), [Placed::Routine(routine)]);
}

/// An undo handler brings its device into its state, unless a person has changed it since.
#[test]
fn an_undo_handler_is_told_only_if_it_did_something() {
    for is_hidden in [false, true] {
        let mut home = Home::new(Config::default(), 3);
        let first = Step {
            undo: Some(7),
            ..set(0, 1)
        };
        let first = home.submit(vec![first, long(1, 1, Span::secs(5))]);
        home.pass(at(500));
        if is_hidden {
            home.submit(vec![set(0, 2), long(2, 2, Span::secs(5))]);
            home.pass(at(1_000));
        }
        home.notify(Command::Cancel(first)).unwrap();
        home.rest();
        let is_set = |it: &Placed<u8>| matches!(it, Placed::Set { .. });
        assert_eq!(home.order().iter().any(is_set), !is_hidden);
        assert_eq!(home.states[0], if is_hidden { 2 } else { 7 });
    }
}

/// While an earlier routine is unfinished nothing is final; so memory must not grow with each
/// routine that is undone between two manual changes.
#[test]
fn changes_by_hand_around_routines_that_are_undone_are_kept_once() {
    let mut home = Home::new(Config::default(), 3);
    let first = home.submit(vec![set(0, 1), long(1, 1, Span::secs(3_600))]);
    home.pass(at(500));
    for nth in 0..20 {
        let undone = home.submit(vec![set(0, 2), long(2, 1, Span::secs(10))]);
        home.wait(Span::millis(500));
        home.by_hand(0, 100 + nth);
        home.notify(Command::Cancel(undone)).unwrap();
        home.wait(Span::millis(500));
    }
    home.rest();
    assert_eq!(home.states, [119, 1, 0]);
    let state = Some(119);
    let device = NodeId(0);
    let by_hand = Placed::Set { device, state };
    assert_eq!(home.order(), [Placed::Routine(first), by_hand]);
}

/// A device reports the state of its last command. That is no manual change: the command is undone,
/// however often the device reports it.
#[test]
fn a_report_of_what_is_on_its_way_is_no_hand() {
    for reports in 1..3 {
        let mut home = Home::new(Config::default(), 2);
        home.is_mute[0] = true;
        let routine = home.submit(vec![set(0, 1)]);
        for _ in 0..reports {
            home.by_hand(0, 1);
        }
        home.pass(at(5_000));
        let why = AbortReason::Step(0, SkipReason::Unknown);
        assert!(home.when(&Event::Aborting { routine, why }).is_some());
        home.is_mute[0] = false;
        home.lands(0, Outcome::Done);
        home.rest();
        assert_eq!(home.states[0], 0);
        assert_eq!(home.order(), []);
    }
}

/// The same after a rollback, though by then another state must be restored.
#[test]
fn a_report_of_what_a_rollback_asked_for_is_no_hand() {
    let mut home = Home::new(Config::default(), 3);
    let hold = Span::secs(100);
    let first = home.submit(vec![set(0, 1), long(1, 1, hold)]);
    home.pass(at(500));
    let second = home.submit(vec![set(0, 2), long(2, 2, hold)]);
    home.pass(at(1_000));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(second)).unwrap();
    assert_eq!(home.issued(0).last(), Some(&(1, false)));
    // The rollback is done, a person undoes that, and the first report comes once more.
    home.by_hand(0, 1);
    home.by_hand(0, 7);
    home.by_hand(0, 1);
    home.is_mute[0] = false;
    home.lands(0, Outcome::Done);
    home.notify(Command::Cancel(first)).unwrap();
    home.rest();
    assert_eq!(home.states[0], 7);
}

/// The command is refused, so it did not bring the device into this state.
#[test]
fn a_hand_that_does_what_a_command_asks_for_counts_if_the_command_is_refused() {
    for is_changed_again in [false, true] {
        let mut home = Home::new(Config::default(), 1);
        home.is_mute[0] = true;
        home.submit(vec![set(0, 1)]);
        home.by_hand(0, 1);
        if is_changed_again {
            home.by_hand(0, 0);
        }
        home.lands(0, Outcome::Refused);
        home.rest();
        let state = u8::from(!is_changed_again);
        assert_eq!(home.states[0], state);
        assert_eq!(home.hub.machine().state(NodeId(0)), Some(&state));
        let (device, state) = (NodeId(0), Some(state));
        let by_hand = (!is_changed_again).then_some(Placed::Set { device, state });
        assert_eq!(home.order().pop(), by_hand);
    }
}

/// A device that reports its state again and again was not changed by hand.
#[test]
fn a_stuck_device_that_reports_its_state_is_left_as_it_is() {
    let mut home = Home::new(Config::default(), 2);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(at(500));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(routine)).unwrap();
    for _ in 0..Config::default().undo_attempts {
        home.lands(0, Outcome::Refused);
        home.wait(Config::default().undo_retry);
    }
    assert!(home.when(&Event::Stuck(NodeId(0))).is_some());
    let tried = home.issued(0);
    home.by_hand(0, 1);
    home.by_hand(0, 1);
    assert_eq!(home.issued(0), tried);
    home.by_hand(0, 2);
    assert_eq!(home.issued(0).len(), tried.len() + 1);
}

/// A report does not make a device more obedient.
#[test]
fn attempts_are_counted_though_the_device_reports_each_rollback() {
    let mut home = Home::new(Config::default(), 2);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(at(500));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(routine)).unwrap();
    for _ in 0..Config::default().undo_attempts {
        assert!(home.when(&Event::Stuck(NodeId(0))).is_none());
        home.by_hand(0, 0);
        home.wait(Config::default().timeout + Config::default().undo_retry);
    }
    assert!(home.when(&Event::Stuck(NodeId(0))).is_some());
}

/// Manual changes everywhere, routines that are undone with and without handlers, and devices that
/// fail: after each step the home checks that a hub can reach its state, so that it could be stored
/// and restored.
#[test]
fn hands_at_any_moment_leave_a_state_that_can_be_stored() {
    let mut undone = 0_u64;
    let homes = histories(0..500, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let config = Config::default()
            .with_visibility(MODELS[rng.below(5) as usize])
            .with_timeout(Span::millis(400));
        let mut home = Home::new(config, 3);
        let mut routines = Vec::new();
        for _ in 0..60 {
            match rng.below(8) {
                0..3 => home.by_hand(rng.below(3) as usize, rng.below(4) as u8),
                3..5 => {
                    let step = |_| Step {
                        undo: (rng.below(3) == 0).then_some(9),
                        ..long(
                            rng.below(3),
                            rng.below(4) as u8,
                            Span::millis(rng.below(1_000)),
                        )
                    };
                    routines.push(home.submit((0..3).map(step).collect()));
                }
                5 if !routines.is_empty() => {
                    let at = rng.below(routines.len() as u64) as usize;
                    // Most are over by then.
                    undone += u64::from(home.notify(Command::Cancel(routines[at])).is_ok());
                }
                6 => home.flip(rng.below(3) as usize),
                _ => home.wait(Span::millis(rng.below(500))),
            }
        }
        for device in 0..3 {
            if !home.is_up[device] {
                home.flip(device);
            }
        }
        home.rest();
    });
    println!("{undone} undone in {homes} homes");
    // A single one may have none.
    assert!(undone > homes || homes == 1);
}
