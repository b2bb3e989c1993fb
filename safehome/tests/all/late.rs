//! Commands that act after their outcomes were reported as unknown (erratum H22).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, if_it_is, maybe, set};
use selvedge_core::{Driver, NodeId, Span, Time};
use selvedge_safehome::{
    AbortReason, Command, Config, Damage, Event, Flaw, Hub, LONGEST_LATENESS, Outcome, Published,
    Reject, Saved, SkipReason, Timer, UndoStatus, Visibility,
};

const LAMP: NodeId = NodeId(0);
const LATENESS: Span = Span::secs(20);

/// A home whose first device may obey 20 s after its timeout, and has just received a command
/// without an answer.
fn home(rules: &[Published]) -> Home {
    let mut home = Home::under(rules, Config::default(), 3);
    let (device, lateness) = (LAMP, LATENESS);
    home.notify(Command::SetLateness { device, lateness })
        .unwrap();
    home.is_mute[0] = true;
    home
}

/// Lets it act 17 s after its sender has given up, as a real device did.
fn acts(home: &mut Home) {
    home.pass(at(5_000 + 17_000));
    home.states[0] = 1;
}

#[test]
fn a_command_that_acts_late_is_undone_all_the_same() {
    for (rules, expected) in [(&[][..], 0), (&[Published::UnknownIsOver], 1)] {
        let mut home = home(rules);
        home.submit(vec![set(0, 1)]);
        home.pass(at(5_000));
        home.is_mute[0] = false;
        if !rules.is_empty() {
            // It is restored at once, to no purpose.
            home.lands(0, Outcome::Done);
        }
        acts(&mut home);
        home.rest();
        assert_eq!(home.states[0], expected);
    }
}

/// The routine ends at once; its device waits.
#[test]
fn nothing_is_sent_while_a_command_may_still_act() {
    let mut home = home(&[]);
    let routine = home.submit(vec![set(1, 1), set(0, 1)]);
    home.pass(at(6_000));
    let aborted = home.events.iter().find_map(|(_, event)| match event {
        Event::Aborted { why, undo, .. } => Some((*why, undo.clone())),
        _ => None,
    });
    let undo = vec![(LAMP, UndoStatus::Pending), (NodeId(1), UndoStatus::Begun)];
    assert_eq!(
        aborted,
        Some((AbortReason::Step(1, SkipReason::Unknown), undo))
    );
    assert_eq!(home.states[1], 0);
    let next = home.submit(vec![set(2, 5), set(0, 2)]);
    home.is_mute[0] = false;
    acts(&mut home);
    assert_eq!(home.issued(0), [(1, true)]);
    assert!(!home.hub.machine().is_quiet());
    assert_eq!(home.hub.machine().state(LAMP), None);
    home.rest();
    assert_eq!(home.issued(0), [(1, true), (0, false), (2, true)]);
    assert!(home.committed(next).unwrap() > at(25_000));
    assert!(home.committed(routine).is_none());
    assert!(home.when(&Event::Restored(LAMP)).is_some());
}

/// The device's state does not count as known: not for a condition, and not because of its own
/// report.
#[test]
fn what_a_device_says_meanwhile_does_not_count() {
    let mut home = home(&[]);
    home.submit(vec![maybe(0, 1)]);
    home.pass(at(6_000));
    home.is_mute[0] = false;
    let reads = home.submit(vec![if_it_is(set(1, 7), 0, 0)]);
    // It reports its old state, then the commanded one, and then the old one again.
    for state in [0, 1, 0] {
        home.by_hand(0, state);
        assert_eq!(home.hub.machine().state(LAMP), None);
        assert!(home.committed(reads).is_none());
    }
    acts(&mut home);
    home.rest();
    assert_eq!(home.states, [0, 7, 0]);
    assert_eq!(home.order().len(), 2, "no hand was there");
}

fn last_token(home: &Home) -> u64 {
    let token = |(_, event): &(Time, Event<u8>)| match event {
        Event::Issue { token, .. } => Some(*token),
        _ => None,
    };
    home.events.iter().rev().find_map(token).unwrap()
}

/// A rollback of the first device is done without an answer in time.
fn restored_late(undo_attempts: u8) -> Home {
    let config = Config::default().with_undo_attempts(undo_attempts);
    let mut home = Home::new(config, 3);
    let (device, lateness) = (LAMP, LATENESS);
    home.notify(Command::SetLateness { device, lateness })
        .unwrap();
    let routine = home.submit(vec![set(0, 1), set(1, 1), set(1, 2)]);
    home.pass(at(75));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(routine)).unwrap();
    // Its next attempt is due by then.
    home.pass(at(7_000));
    home.is_mute[0] = false;
    home.states[0] = 0;
    let (token, outcome) = (last_token(&home), Outcome::Done);
    let notified = Command::Acted {
        device,
        token,
        outcome,
    };
    home.notify(notified).unwrap();
    home
}

/// A device that has obeyed is not stuck.
#[test]
fn a_late_outcome_says_that_a_device_obeys() {
    let mut home = restored_late(1);
    assert!(home.when(&Event::Stuck(LAMP)).is_some());
    home.submit(vec![if_it_is(set(2, 7), 0, 0)]);
    home.rest();
    assert_eq!(home.states, [0, 0, 7]);
}

/// No command of a routine is done between the two rollbacks, which would be a new beginning, too.
#[test]
fn attempts_count_from_a_rollback_that_was_done_late() {
    let mut home = restored_late(2);
    assert!(home.when(&Event::Restored(LAMP)).is_some());
    home.is_mute[0] = true;
    home.submit(vec![set(0, 1)]);
    home.wait(Config::default().timeout + LATENESS + Span::secs(1));
    home.lands(0, Outcome::Refused);
    assert!(home.when(&Event::Stuck(LAMP)).is_none());
    home.is_mute[0] = false;
    home.rest();
    assert_eq!(home.states[0], 0);
}

/// A device that a person has changed may obey again; a report of the commanded state is no such
/// change.
#[test]
fn attempts_count_from_a_hand_that_moves_a_device_meanwhile() {
    for (state, is_stuck) in [(0, true), (9, false)] {
        let config = Config::default().with_undo_attempts(3);
        let mut home = Home::new(config, 2);
        let (device, lateness) = (LAMP, LATENESS);
        home.notify(Command::SetLateness { device, lateness })
            .unwrap();
        let routine = home.submit(vec![set(0, 1), set(1, 1), set(1, 2)]);
        home.pass(at(75));
        home.is_mute[0] = true;
        home.notify(Command::Cancel(routine)).unwrap();
        home.wait(Span::millis(500));
        home.lands(0, Outcome::Refused);
        // The second one is sent after a second, and its outcome is unknown after 5 s.
        home.wait(Span::secs(7));
        home.by_hand(0, state);
        home.wait(LATENESS);
        assert_eq!(home.issued(0)[1..], [(0, false); 3]);
        home.lands(0, Outcome::Refused);
        let notified = home.when(&Event::Stuck(LAMP));
        assert_eq!(notified.is_some(), is_stuck, "it says {state}");
    }
}

/// An acknowledgement may come late as well.
#[test]
fn a_certain_outcome_ends_the_wait() {
    for outcome in [Outcome::Done, Outcome::Refused] {
        let mut home = home(&[]);
        home.submit(vec![set(0, 1)]);
        home.pass(at(10_000));
        home.is_mute[0] = false;
        let (device, token) = (LAMP, 1);
        let notified = |outcome| Command::Acted {
            device,
            token,
            outcome,
        };
        let unknown = Reject::UnknownToken { device, token };
        assert_eq!(home.notify(notified(Outcome::Unknown)), Err(unknown));
        home.states[0] = u8::from(outcome == Outcome::Done);
        home.notify(notified(outcome)).unwrap();
        assert_eq!(home.notify(notified(outcome)), Err(unknown));
        assert_eq!(home.issued(0), [(1, true), (0, false)]);
        home.pass(at(11_000));
        assert!(home.hub.machine().is_quiet());
        assert_eq!(home.states[0], 0);
        assert_eq!(home.hub.timers().count(), 0);
    }
}

fn restarted(home: &mut Home) {
    restarted_with(home, Config::default());
}

fn restarted_with(home: &mut Home, config: Config) {
    let saved = home.hub.machine().save();
    let text = serde_json::to_string(&saved).unwrap();
    let saved: Saved<u8> = serde_json::from_str(&text).unwrap();
    home.hub = Driver::new(Hub::restore(config, saved).unwrap());
    home.notify(Command::Resume).unwrap();
}

/// A weak hub restores nothing that could be overtaken, and goes on at once.
#[test]
fn a_weak_hub_that_comes_back_does_not_wait() {
    let config = Config::default().with_visibility(Visibility::Weak);
    let mut home = Home::new(config, 1);
    let (device, lateness) = (LAMP, LONGEST_LATENESS);
    home.notify(Command::SetLateness { device, lateness })
        .unwrap();
    home.is_mute[0] = true;
    home.submit(vec![set(0, 1)]);
    home.pass(at(1_000));
    restarted_with(&mut home, config);
    home.is_mute[0] = false;
    home.gives_up(0);
    let token = 1;
    assert_eq!(home.when(&Event::Ask { device, token }), Some(at(1_000)));
    let next = home.submit(vec![set(0, 2)]);
    let state = 1;
    home.notify(Command::Answered {
        device,
        token,
        state,
    })
    .unwrap();
    home.pass(at(2_000));
    assert_eq!(home.committed(next), Some(at(1_050)));
    assert!(home.hub.machine().is_quiet());
}

/// A restarted hub asks when the answer is certain, and waits as long as before for commands that
/// it had given up.
#[test]
fn a_hub_that_comes_back_waits_too() {
    let asked = |home: &Home| {
        let is_asked = |it: &&(Time, Event<u8>)| matches!(it.1, Event::Ask { .. });
        home.events.iter().find(is_asked).map(|it| it.0)
    };
    let mut home = self::home(&[]);
    home.submit(vec![set(0, 1), set(1, 1)]);
    home.pass(at(1_000));
    restarted(&mut home);
    home.is_mute[0] = false;
    home.gives_up(0);
    // It may have been sent just before the hub stopped, time out after 5 s and act 20 s later.
    home.pass(at(25_999));
    assert_eq!(asked(&home), None);
    home.states[0] = 1;
    home.pass(at(26_000));
    assert_eq!(asked(&home), Some(at(26_000)));
    let (device, token, state) = (LAMP, 1, 1);
    home.notify(Command::Answered {
        device,
        token,
        state,
    })
    .unwrap();
    home.rest();
    assert_eq!(home.states, [1, 1, 0]);

    let mut home = self::home(&[]);
    home.submit(vec![set(0, 1)]);
    home.pass(at(15_000));
    restarted(&mut home);
    home.is_mute[0] = false;
    home.pass(at(34_999));
    assert_eq!(home.issued(0), [(1, true)]);
    home.rest();
    assert_eq!(home.issued(0), [(1, true), (0, false)]);
}

/// A device can be removed when no command can reach it any more.
#[test]
fn a_device_goes_when_nothing_can_act_on_it() {
    let mut home = home(&[]);
    home.submit(vec![set(0, 1)]);
    home.pass(at(6_000));
    home.flip(0);
    assert_eq!(
        home.notify(Command::RemoveDevice(LAMP)),
        Err(Reject::DeviceInUse(LAMP))
    );
    home.rest();
    home.notify(Command::RemoveDevice(LAMP)).unwrap();
    assert!(home.when(&Event::GivenUp(LAMP)).is_some());
}

#[test]
fn what_is_too_late_is_refused() {
    let mut home = home(&[]);
    let mut set = |device, lateness| home.notify(Command::SetLateness { device, lateness });
    assert_eq!(set(LAMP, LONGEST_LATENESS), Ok(()));
    let lateness = LONGEST_LATENESS + Span(1);
    let device = LAMP;
    assert_eq!(
        set(LAMP, lateness),
        Err(Reject::Lateness { device, lateness })
    );
    let stranger = NodeId(9);
    assert_eq!(
        set(stranger, Span::ZERO),
        Err(Reject::UnknownDevice(stranger))
    );
}

/// Checks that a stored late command is validated.
#[test]
fn a_stored_late_command_agrees_with_its_device() {
    let mut home = home(&[]);
    home.submit(vec![maybe(0, 1), set(1, 1)]);
    home.pass(at(6_000));
    assert!(home.hub.timers().any(|it| it.0 == Timer::Late(LAMP)));
    let saved = serde_json::to_value(home.hub.machine().save()).unwrap();
    let refused = |path: &[&str], value: serde_json::Value| {
        let mut saved = saved.clone();
        let mut place = &mut saved["devices"][0][1];
        for key in path {
            place = &mut place[*key];
        }
        *place = value;
        let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
        Hub::restore(Config::default(), saved).err()
    };
    let device = LAMP;
    let flaw = Flaw::Late;
    let late = Some(Damage::Device { device, flaw });
    assert_eq!(refused(&["late", "token"], 1.into()), None);
    assert_eq!(refused(&["late", "token"], 0.into()), late);
    assert_eq!(refused(&["late", "token"], 99.into()), late);
    assert_eq!(refused(&["late", "span"], 0.into()), late);
    assert_eq!(refused(&["lateness"], u64::MAX.into()), late);
    assert_eq!(refused(&["actual"], 1.into()), late);
}
