//! Rollbacks that are refused, overtaken by manual changes, or no longer needed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, if_it_is, long, maybe, set};
use selvedge_core::{Driver, NodeId, Span, Time};
use selvedge_safehome::{
    AbortReason, Catalogue, Command, Config, Event, Hub, Outcome, Routine, RoutineId, SkipReason,
    Step, Timer, UndoStatus,
};

const A: NodeId = NodeId(0);

fn config(undo_attempts: u8) -> Config {
    Config::default().with_undo_attempts(undo_attempts)
}

/// A home whose first device was brought into state 1 by a routine that is undone, so that a
/// rollback is due.
fn undone(undo_attempts: u8) -> Home {
    let mut home = Home::new(config(undo_attempts), 3);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(Time::ZERO + Span::secs(1));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(routine)).unwrap();
    assert_eq!(home.issued(0), [(1, true), (0, false)]);
    home
}

/// The same, when the device has refused to be restored.
fn stuck() -> Home {
    let mut home = undone(1);
    home.lands(0, Outcome::Refused);
    assert!(is_stuck(&home));
    home.is_mute[0] = false;
    home
}

fn is_stuck(home: &Home) -> bool {
    home.events.iter().any(|it| it.1 == Event::Stuck(A))
}

#[test]
fn a_device_is_restored_though_a_hand_changes_it_meanwhile() {
    let mut home = undone(5);
    home.lands(0, Outcome::Refused);
    home.is_mute[0] = false;
    home.by_hand(0, 7);
    assert_eq!(home.issued(0).len(), 2, "it is tried again later");
    home.rest();
    assert_eq!(home.states[0], 0);
    assert_eq!(home.order(), []);
    // It is reported once, and when it is true.
    let restored = |it: &&(Time, Event<u8>)| it.1 == Event::Restored(A);
    assert_eq!(home.events.iter().filter(restored).count(), 1);
}

/// A device that a person has changed may obey again, so it is given up later.
#[test]
fn attempts_count_from_the_last_change_by_hand() {
    let mut home = undone(2);
    home.lands(0, Outcome::Refused);
    home.by_hand(0, 7);
    home.pass(home.now + Span::secs(1));
    home.lands(0, Outcome::Refused);
    assert!(!is_stuck(&home));
    home.pass(home.now + Span::secs(1));
    home.lands(0, Outcome::Refused);
    assert!(is_stuck(&home));
    assert!(home.hub.machine().is_quiet());
}

/// And from the last rollback that was done.
#[test]
fn attempts_count_from_the_last_rollback_that_was_done() {
    let mut home = undone(2);
    for _ in 0..3 {
        home.lands(0, Outcome::Refused);
        home.pass(home.now + Span::secs(1));
        home.lands(0, Outcome::Done);
        assert!(home.hub.machine().is_quiet());
        home.is_mute[0] = false;
        home.is_mute[1] = true;
        home.submit(vec![set(0, 1), set(1, 1)]);
        home.pass(home.now + Span::millis(100));
        home.is_mute[0] = true;
        home.lands(1, Outcome::Refused);
    }
    assert!(!is_stuck(&home));
}

/// Also when no routine's command was done since: a command with an unknown outcome is rolled back,
/// too.
#[test]
fn attempts_count_from_the_last_rollback_though_no_command_was_done_since() {
    let mut home = undone(2);
    home.lands(0, Outcome::Refused);
    home.pass(home.now + Span::secs(1));
    home.lands(0, Outcome::Done);
    home.submit(vec![maybe(0, 1)]);
    home.lands(0, Outcome::Unknown);
    assert_eq!(home.issued(0).last(), Some(&(0, false)));
    home.lands(0, Outcome::Refused);
    assert!(!is_stuck(&home));
}

/// It is in its state, though its report shows that no rollback brought it there.
#[test]
fn attempts_count_from_the_last_time_that_it_was_in_its_state() {
    let mut home = undone(2);
    home.by_hand(0, 0);
    home.lands(0, Outcome::Refused);
    assert!(home.when(&Event::Restored(A)).is_some());
    let next = home.submit(vec![set(0, 1), set(1, 1)]);
    home.lands(0, Outcome::Done);
    home.notify(Command::Cancel(next)).unwrap();
    home.wait(Span::millis(60));
    home.lands(0, Outcome::Refused);
    assert!(!is_stuck(&home));
}

/// A device that was off and on may obey again.
#[test]
fn attempts_count_from_the_last_restart() {
    let mut home = undone(2);
    home.lands(0, Outcome::Refused);
    home.flip(0);
    home.flip(0);
    home.lands(0, Outcome::Refused);
    assert!(!is_stuck(&home));
    home.pass(home.now + Span::secs(1));
    home.lands(0, Outcome::Refused);
    assert!(is_stuck(&home));
}

/// A device that was stuck and has obeyed a routine since is tried as often as any other.
#[test]
fn attempts_count_from_the_last_command_that_was_done() {
    let mut home = undone(2);
    home.lands(0, Outcome::Refused);
    home.pass(home.now + Span::secs(1));
    home.lands(0, Outcome::Refused);
    assert!(is_stuck(&home));
    home.is_mute[0] = false;
    let last = home.submit(vec![set(0, 5), long(1, 1, Span::secs(100))]);
    home.pass(home.now + Span::secs(1));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(last)).unwrap();
    home.lands(0, Outcome::Refused);
    home.is_mute[0] = false;
    home.rest();
    assert_eq!(home.states[0], 0);
    let stuck = |it: &&(Time, Event<u8>)| it.1 == Event::Stuck(A);
    assert_eq!(home.events.iter().filter(stuck).count(), 1);
}

/// A condition will see the state of the rollback, if the device obeys. Until that is known the
/// condition waits.
#[test]
fn a_condition_is_not_read_beside_a_rollback_that_is_due() {
    for outcome in [Outcome::Done, Outcome::Refused] {
        let mut home = undone(2);
        home.lands(0, Outcome::Refused);
        let asks = home.submit(vec![if_it_is(maybe(2, 1), A.0, 0)]);
        home.pass(home.now + Span::millis(500));
        assert_eq!(home.issued(2), []);
        assert_eq!(home.committed(asks), None);
        home.pass(home.now + Span::millis(500));
        home.lands(0, outcome);
        home.rest();
        let (step, why) = (0, SkipReason::StateUnknown(A));
        let routine = asks;
        let skipped = Event::Skipped { routine, step, why };
        let is_skipped = home.events.iter().any(|it| it.1 == skipped);
        assert_eq!(is_skipped, outcome == Outcome::Refused);
        assert_eq!(home.issued(2).len(), usize::from(outcome == Outcome::Done));
        assert!(home.committed(asks).is_some());
    }
}

/// Nothing is tried while the device is down, so nothing counts.
#[test]
fn a_device_that_is_down_gets_stuck_on_nothing() {
    let mut home = undone(1);
    home.flip(0);
    home.lands(0, Outcome::Unknown);
    assert!(!is_stuck(&home));
    home.is_mute[0] = false;
    home.flip(0);
    home.rest();
    assert_eq!(home.states[0], 0);
}

/// The events after which a stuck device is expected to obey again.
#[test]
fn a_stuck_device_is_restored_when_it_moves_again() {
    type Moves = fn(&mut Home);
    let by_restart: Moves = |home| {
        home.flip(0);
        home.flip(0);
    };
    let by_hand: Moves = |home| home.by_hand(0, 7);
    for moves in [by_restart, by_hand] {
        let mut home = stuck();
        home.rest();
        assert_eq!(home.states[0], 1);
        moves(&mut home);
        home.rest();
        assert_eq!(home.states[0], 0);
    }
    // A command that it obeys ends that; later rollbacks are done again.
    let mut home = stuck();
    let last = home.submit(vec![set(0, 5), long(1, 1, Span::secs(1))]);
    home.pass(home.now + Span::millis(500));
    home.notify(Command::Cancel(last)).unwrap();
    home.rest();
    assert_eq!(home.states[0], 0);
}

/// Its state differs from the one of the order, so a condition sees nothing.
#[test]
fn a_condition_does_not_see_the_state_of_a_stuck_device() {
    for value in [0, 1] {
        let mut home = stuck();
        let routine = home.submit(vec![if_it_is(maybe(2, 1), A.0, value)]);
        let (step, why) = (0, SkipReason::StateUnknown(A));
        let skipped = Event::Skipped { routine, step, why };
        assert!(home.events.iter().any(|it| it.1 == skipped));
    }
}

/// A device that goes takes its timer with it.
#[test]
fn nothing_is_tried_again_at_a_device_that_is_gone() {
    let mut home = undone(5);
    home.lands(0, Outcome::Refused);
    home.by_hand(0, 0);
    let is_retry = |home: &Home| home.hub.timers().any(|it| it.0 == Timer::Retry(A));
    assert!(is_retry(&home));
    home.notify(Command::RemoveDevice(A)).unwrap();
    assert!(!is_retry(&home));
}

/// Two routines have changed a device one after the other, the second one to this state. It is
/// undone, and the device does not answer any more.
fn second_undone(attempts: u8, state: u8) -> (Home, RoutineId) {
    let mut home = Home::new(config(attempts), 3);
    let first = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(Time::ZERO + Span::secs(1));
    let second = home.submit(vec![set(0, state), long(2, 1, Span::secs(100))]);
    home.pass(Time::ZERO + Span::secs(2));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(second)).unwrap();
    (home, first)
}

/// A rollback was in flight when the hub stopped, and was not done; in the meantime another state
/// must be restored.
#[test]
fn a_rollback_that_is_asked_for_is_not_issued_as_it_was() {
    let (mut home, first) = second_undone(5, 2);
    assert_eq!(home.issued(0).last(), Some(&(1, false)));
    home.notify(Command::Cancel(first)).unwrap();
    let (config, saved) = (config(5), home.hub.machine().save());
    home.hub = Driver::new(Hub::restore(config, saved).unwrap());
    home.notify(Command::Resume).unwrap();
    let asked = home.events.iter().rev().find_map(|(_, event)| match event {
        Event::Ask { device: A, token } => Some(*token),
        _ => None,
    });
    let (device, token, state) = (A, asked.unwrap(), 2);
    home.gives_up(0);
    let answer = Command::Answered {
        device,
        token,
        state,
    };
    home.notify(answer).unwrap();
    assert_eq!(home.issued(0).last(), Some(&(0, false)));
}

/// The handler of a command belongs to the state into which it brought the device.
#[test]
fn a_later_command_has_its_own_undo_handler_or_none() {
    for (undo, expected) in [(Some(8), 8), (None, 0)] {
        let mut home = Home::new(config(5), 2);
        home.flip(1);
        let handled = |value, undo| Step {
            undo,
            ..set(0, value)
        };
        home.submit(vec![handled(1, Some(9)), handled(2, undo), set(1, 1)]);
        home.rest();
        assert_eq!(home.states[0], expected);
    }
}

/// The report of an abort matches the devices.
#[test]
fn an_abort_tells_what_becomes_of_each_device() {
    let mut home = Home::new(config(5), 4);
    let routine = home.submit(vec![
        set(0, 1),
        set(1, 1),
        set(2, 1),
        long(3, 1, Span::secs(100)),
    ]);
    home.pass(Time::ZERO + Span::secs(1));
    home.flip(1);
    home.by_hand(2, 7);
    home.notify(Command::Cancel(routine)).unwrap();
    let undo = vec![
        (NodeId(3), UndoStatus::Begun),
        (NodeId(2), UndoStatus::NotNeeded),
        (NodeId(1), UndoStatus::Pending),
        (NodeId(0), UndoStatus::Begun),
    ];
    let why = AbortReason::Cancelled;
    let aborted = Event::Aborted { routine, why, undo };
    assert!(home.events.iter().any(|it| it.1 == aborted));
    home.rest();
    home.flip(1);
    home.rest();
    assert_eq!(home.states, [0, 0, 7, 0]);
}

/// A rollback is done, and another state is wanted by then: nothing is restored yet.
#[test]
fn a_device_is_restored_when_it_is_in_the_state_that_is_wanted() {
    let (mut home, first) = second_undone(5, 2);
    home.notify(Command::Cancel(first)).unwrap();
    let restored = |home: &Home| home.events.iter().any(|it| it.1 == Event::Restored(A));
    home.lands(0, Outcome::Done);
    assert_eq!(home.states[0], 1);
    assert!(!restored(&home));
    home.lands(0, Outcome::Done);
    assert_eq!(home.states[0], 0);
    assert!(restored(&home));
}

/// A routine that waits for a rollback need not wait for a device that is down.
#[test]
fn a_failure_is_told_at_once_to_who_waits() {
    let mut home = undone(5);
    home.lands(0, Outcome::Refused);
    let waits = home.submit(vec![set(0, 5)]);
    home.flip(0);
    let (routine, why) = (waits, AbortReason::Step(0, SkipReason::Down(A)));
    let aborting = Event::Aborting { routine, why };
    assert!(home.events.iter().any(|it| it.1 == aborting));
}

/// The results of restoring the first device.
fn ends(home: &Home) -> Vec<Event<u8>> {
    let is_end = |event: &&Event<u8>| matches!(event, Event::Restored(A) | Event::Stuck(A));
    let events = home.events.iter().map(|it| &it.1);
    events.filter(is_end).cloned().collect()
}

/// A host that received "begun" for a rollback receives its result, also when the device comes into
/// that state by hand.
#[test]
fn a_device_that_a_hand_restores_is_told() {
    let mut home = undone(5);
    home.lands(0, Outcome::Refused);
    home.by_hand(0, 0);
    home.rest();
    assert_eq!(ends(&home), [Event::Restored(A)]);
}

/// The same when another routine is undone as well, so that the device is right as it is.
#[test]
fn a_device_that_turns_out_to_be_right_is_told() {
    let (mut home, first) = second_undone(5, 0);
    home.lands(0, Outcome::Refused);
    home.notify(Command::Cancel(first)).unwrap();
    home.rest();
    assert_eq!(ends(&home), [Event::Restored(A)]);
}

/// The same when the hub was stopped meanwhile and finds the device so.
#[test]
fn a_device_that_is_found_right_is_told() {
    let (mut home, first) = second_undone(5, 2);
    home.notify(Command::Cancel(first)).unwrap();
    let saved = home.hub.machine().save();
    home.hub = Driver::new(Hub::restore(config(5), saved).unwrap());
    home.notify(Command::Resume).unwrap();
    let asked = home.events.iter().find_map(|(_, event)| match event {
        Event::Ask { device: A, token } => Some(*token),
        _ => None,
    });
    home.gives_up(0);
    let (device, token, state) = (A, asked.unwrap(), 0);
    let answer = Command::Answered {
        device,
        token,
        state,
    };
    home.notify(answer).unwrap();
    assert_eq!(ends(&home), [Event::Restored(A)]);
}

fn undone_at_last(home: &Home) -> Vec<(NodeId, UndoStatus)> {
    let aborted = home.events.iter().rev().find_map(|(_, event)| match event {
        Event::Aborted { undo, .. } => Some(undo.clone()),
        _ => None,
    });
    aborted.unwrap()
}

/// A device that refuses to be restored is in a wrong state, and the abort of a routine then
/// reports so.
#[test]
fn what_is_stuck_is_not_said_to_need_nothing() {
    let (mut home, first) = second_undone(5, 2);
    for _ in 0..5 {
        home.lands(0, Outcome::Refused);
        home.wait(Span::secs(1));
    }
    assert!(is_stuck(&home));
    home.notify(Command::Cancel(first)).unwrap();
    assert_eq!(home.states[0], 2);
    assert!(undone_at_last(&home).contains(&(A, UndoStatus::Stuck)));
    // When it moves again it is restored, which is reported though it was stuck.
    home.is_mute[0] = false;
    home.flip(0);
    home.flip(0);
    home.rest();
    assert_eq!(home.states[0], 0);
    assert_eq!(ends(&home), [Event::Stuck(A), Event::Restored(A)]);
}

/// A device is right again if the state that it would not leave is wanted again; then it counts as
/// any other.
#[test]
fn what_was_stuck_and_is_right_by_now_needs_nothing() {
    let (mut home, first) = second_undone(1, 0);
    home.lands(0, Outcome::Refused);
    assert!(is_stuck(&home));
    home.notify(Command::Cancel(first)).unwrap();
    assert!(undone_at_last(&home).contains(&(A, UndoStatus::NotNeeded)));
    home.is_mute[0] = false;
    home.rest();
    let reads = home.submit(vec![if_it_is(set(2, 5), A.0, 0)]);
    home.rest();
    assert!(home.committed(reads).is_some());
    assert_eq!(home.states, [0, 0, 5]);
}

/// `GivenUp` is the last event about a removed device.
#[test]
fn what_is_pending_ends_with_its_device() {
    let mut home = undone(5);
    home.flip(0);
    home.lands(0, Outcome::Unknown);
    home.rest();
    home.notify(Command::RemoveDevice(A)).unwrap();
    assert!(home.when(&Event::GivenUp(A)).is_some());
    assert_eq!(ends(&home), []);
}

/// Two routines on a device with an unknown state: neither can be undone.
#[test]
fn a_routine_that_wrote_over_what_nobody_knew_is_not_said_to_need_nothing() {
    let mut home = Home::new(config(5), 3);
    home.notify(Command::RemoveDevice(A)).unwrap();
    let (device, state) = (A, None);
    home.notify(Command::AddDevice { device, state }).unwrap();
    let first = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(Time::ZERO + Span::secs(1));
    let second = home.submit(vec![set(0, 2), long(2, 1, Span::secs(100))]);
    home.pass(Time::ZERO + Span::secs(2));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(second)).unwrap();
    home.lands(0, Outcome::Unknown);
    home.notify(Command::Cancel(first)).unwrap();
    assert!(undone_at_last(&home).contains(&(A, UndoStatus::Impossible)));
    home.rest();
    assert!(home.when(&Event::GivenUp(A)).is_some(), "what had begun");
}

/// The reason names the device that keeps a condition from being evaluated, and not the commanded
/// one.
#[test]
fn a_reason_names_the_device_that_is_down() {
    let mut names = Catalogue::new();
    let window = names.id_or_new("window");
    let heater = names.id_or_new("heater");
    let steps = vec![if_it_is(set(heater.0, 1), window.0, 0)];
    for down in [window, heater] {
        let mut home = Home::new(config(5), 2);
        home.flip(usize::from(down == heater));
        home.submit(steps.clone());
        let why = home.events.iter().find_map(|(_, event)| match event {
            Event::Aborted { why, .. } => Some(*why),
            _ => None,
        });
        let steps = steps.clone();
        let reported = why.unwrap().explain(&Routine { steps }, &names);
        let shown = names.shown(down);
        assert!(reported.contains(&shown), "{reported}, and {shown} is down");
        let other = names.shown(if down == window { heater } else { window });
        assert!(
            !reported.contains(&other),
            "{reported}, and {shown} is down"
        );
    }
}
