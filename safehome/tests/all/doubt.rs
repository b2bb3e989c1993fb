//! Commands with unknown outcomes, on devices with unknown states before.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{DELAY, Home, maybe, set};
use selvedge_core::{NodeId, Span};
use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Placed, Reject, Step, UndoStatus};

const SHUTTER: NodeId = NodeId(0);

/// A home whose first device is in an unknown state.
fn home() -> Home {
    let mut home = Home::new(Config::default(), 2);
    home.notify(Command::RemoveDevice(SHUTTER)).unwrap();
    let state = None;
    let device = SHUTTER;
    home.notify(Command::AddDevice { device, state }).unwrap();
    home
}

fn undone(home: &Home) -> Vec<(NodeId, UndoStatus)> {
    let aborted = home.events.iter().find_map(|(_, event)| match event {
        Event::Aborted { undo, .. } => Some(undo.clone()),
        _ => None,
    });
    aborted.unwrap()
}

/// The device does its first command, and the outcome is lost.
fn without_an_answer(home: &mut Home, steps: Vec<Step<u8>>) {
    home.is_mute[0] = true;
    home.submit(steps);
    home.states[0] = 1;
    home.pass(home.now + Span::millis(4_999));
    home.is_mute[0] = false;
    home.rest();
}

/// A command without an answer counts as done (erratum H10), so its undo handler is due, whether or
/// not the state before is known.
#[test]
fn an_undo_handler_is_done_though_the_outcome_is_unknown() {
    for mut home in [home(), Home::new(Config::default(), 2)] {
        let step = Step {
            undo: Some(9),
            ..set(0, 1)
        };
        without_an_answer(&mut home, vec![step]);
        assert_eq!(undone(&home), [(SHUTTER, UndoStatus::Begun)]);
        assert_eq!(home.states[0], 9);
        let (device, state) = (SHUTTER, Some(9));
        assert_eq!(home.order(), [Placed::Set { device, state }]);
    }
}

/// A command that may fail needs no handler if the state before is restored. If that is unknown its
/// handler is due if the routine is aborted later.
#[test]
fn an_undo_handler_of_a_command_that_may_fail_waits_for_an_abort() {
    let step = Step {
        undo: Some(9),
        ..maybe(0, 1)
    };
    for (mut home, expected) in [(home(), 9), (Home::new(Config::default(), 2), 0)] {
        home.flip(1);
        without_an_answer(&mut home, vec![step.clone(), set(1, 1)]);
        assert_eq!(home.states[0], expected);
    }
    // Not if it is done.
    let mut home = home();
    without_an_answer(&mut home, vec![step.clone(), set(1, 1)]);
    assert_eq!(home.states, [1, 1]);
    // And not if another command was done since that has none.
    let mut home = self::home();
    home.flip(1);
    without_an_answer(&mut home, vec![step, set(0, 2), set(1, 1)]);
    assert_eq!(home.states[0], 2);
    assert_eq!(undone(&home), [(SHUTTER, UndoStatus::Impossible)]);
}

/// It is due as well if the routine is cancelled while the outcome is awaited.
#[test]
fn an_undo_handler_is_done_though_the_routine_was_cancelled() {
    for is_must in [true, false] {
        let mut home = Home::new(Config::default(), 2);
        let step = if is_must { set(0, 1) } else { maybe(0, 1) };
        home.is_mute[0] = true;
        let routine = home.submit(vec![Step {
            undo: Some(9),
            ..step
        }]);
        home.notify(Command::Cancel(routine)).unwrap();
        home.lands(0, Outcome::Unknown);
        home.is_mute[0] = false;
        // The device does not answer the commands that are in flight now either.
        home.lands(0, Outcome::Done);
        home.rest();
        assert_eq!(home.states[0], 9);
    }
}

/// A host that reads that nothing had to be undone may rely on it.
#[test]
fn what_may_have_changed_and_cannot_be_restored_is_told() {
    for (steps, is_up) in [
        (vec![set(0, 1)], true),
        (vec![maybe(0, 1), set(1, 1)], false),
    ] {
        let mut home = home();
        if !is_up {
            home.flip(1);
        }
        without_an_answer(&mut home, steps);
        assert_eq!(undone(&home), [(SHUTTER, UndoStatus::Impossible)]);
    }
    // A device that refuses keeps its state.
    let mut home = home();
    home.is_mute[0] = true;
    home.submit(vec![set(0, 1)]);
    let (device, token, outcome) = (SHUTTER, 1, Outcome::Refused);
    let notified = home.notify(Command::Acted {
        device,
        token,
        outcome,
    });
    assert_eq!(notified, Ok::<(), Reject>(()));
    assert_eq!(undone(&home), [(SHUTTER, UndoStatus::NotNeeded)]);
}

/// A doubt remains after a restart of the hub, too.
#[test]
fn a_doubt_is_saved() {
    let mut home = home();
    home.is_mute[0] = true;
    home.is_mute[1] = true;
    home.submit(vec![maybe(0, 1), set(1, 1)]);
    home.pass(home.now + Config::default().timeout + DELAY);
    let saved = home.hub.machine().save();
    let text = serde_json::to_string(&saved).unwrap();
    let saved = serde_json::from_str(&text).unwrap();
    let hub = Hub::<u8>::restore(Config::default(), saved).unwrap();
    home.hub = selvedge_core::Driver::new(hub);
    home.notify(Command::Resume).unwrap();
    home.rest();
    assert_eq!(undone(&home)[1], (SHUTTER, UndoStatus::Impossible));
}
