//! Rare cases that other tests do not reach.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, MODELS, at, if_it_is, long, maybe, set};
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Command, Comparison, Condition, Config, Event, Outcome, Placed, Reject, RoutineId, Scheduler,
    UndoStatus, Visibility,
};

fn under(visibility: Visibility) -> Config {
    Config::default().with_visibility(visibility)
}

/// Only unfinished routines, and each once, however often it is hidden.
#[test]
fn incongruence_is_told_once_a_routine() {
    for visibility in MODELS {
        let mut home = Home::new(under(visibility), 4);
        let first = home.submit(vec![set(0, 1), set(1, 1), long(2, 1, Span::secs(20))]);
        home.pass(at(1_000));
        let second = home.submit(vec![set(0, 2), set(1, 2), long(3, 2, Span::secs(5))]);
        home.pass(at(2_000));
        home.submit(vec![set(0, 3)]);
        home.pass(at(10_000));
        // The second one is done by now.
        home.submit(vec![set(1, 4)]);
        home.rest();
        let notified = home.events.iter().filter_map(|(_, event)| match event {
            Event::Incongruent {
                routine,
                device,
                by,
            } => Some((*routine, device.0, *by)),
            _ => None,
        });
        let notified: Vec<(RoutineId, u64, RoutineId)> = notified.collect();
        let third = RoutineId(3);
        let expected = [(first, 0, second), (second, 0, third)];
        let is_eventual = visibility == Visibility::Eventual;
        assert_eq!(notified, expected[..2 * usize::from(is_eventual)]);
    }
}

/// A device that the routine skipped, or could do without, may be down when it ends.
#[test]
fn partitioned_visibility_asks_at_the_end_for_what_was_changed_and_is_needed() {
    let wait = || long(2, 1, Span::secs(5));
    for (steps, is_done) in [
        (vec![set(0, 1), wait()], false),
        (vec![maybe(0, 1), wait()], true),
        (vec![if_it_is(set(0, 1), 1, 9), wait()], true),
    ] {
        let mut home = Home::new(under(Visibility::PartitionedStrict), 3);
        let routine = home.submit(steps);
        home.pass(at(1_000));
        home.flip(0);
        home.pass(at(60_000));
        assert_eq!(home.committed(routine).is_some(), is_done);
    }
}

/// A routine that has its answer can do without the device that gave it.
#[test]
fn a_routine_goes_on_when_a_device_fails_about_which_it_has_asked() {
    for (visibility, is_done) in [
        (Visibility::Eventual, true),
        (Visibility::PartitionedStrict, false),
    ] {
        let mut home = Home::new(under(visibility), 3);
        let wait = || long(2, 1, Span::secs(5));
        let (first, asks) = match visibility {
            Visibility::Eventual => (vec![long(1, 1, Span::secs(5))], set(1, 2)),
            _ => (vec![set(1, 1)], wait()),
        };
        home.submit(first);
        let routine = home.submit(vec![if_it_is(asks, 0, 0)]);
        home.pass(at(1_000));
        home.flip(0);
        home.rest();
        assert_eq!(home.committed(routine).is_some(), is_done);
    }
}

/// The state before is unknown, so the state in which the routine left the device counts from then
/// on.
#[test]
fn what_could_not_be_undone_is_the_state_before_the_next_one() {
    let mut home = Home::new(Config::default(), 3);
    let device = NodeId(0);
    home.notify(Command::RemoveDevice(device)).unwrap();
    let state = None;
    home.notify(Command::AddDevice { device, state }).unwrap();
    home.flip(1);
    home.submit(vec![set(0, 1), set(1, 1)]);
    home.rest();
    assert_eq!(home.states[0], 1);
    let undo = home.events.iter().find_map(|(_, event)| match event {
        Event::Aborted { undo, .. } => Some(undo.clone()),
        _ => None,
    });
    assert_eq!(undo, Some(vec![(device, UndoStatus::Impossible)]));
    home.submit(vec![set(0, 2), set(1, 2)]);
    home.rest();
    assert_eq!(home.states[0], 1, "the second one is undone");
    home.submit(vec![if_it_is(set(2, 3), 0, 1)]);
    home.rest();
    assert_eq!(home.states[2], 3);
}

/// A device fails often while an earlier routine is unfinished: memory does not grow, and failures
/// without a place in the order are counted.
#[test]
fn failures_take_no_room() {
    let mut home = Home::new(Config::default(), 3);
    home.submit(vec![set(0, 1), long(1, 1, Span::secs(3_600))]);
    home.pass(at(1_000));
    let mut flip_often = || {
        for _ in 0..100 {
            home.flip(0);
        }
        let hub = home.hub.machine();
        let size = serde_json::to_string(&hub.save()).unwrap().len();
        (size, hub.counters().unordered)
    };
    let (size, unordered) = flip_often();
    assert!(unordered > 0);
    assert_eq!(flip_often(), (size, unordered + 100));
    home.rest();
    let has_place = home.order().len() as u64 - 1;
    assert_eq!(has_place + unordered, 100);
}

/// A routine starts later if it would wait for too long between its commands.
#[test]
fn a_routine_is_not_stretched_beyond_what_the_settings_allow() {
    let starts = |stretch| {
        let config = Config::default().with_stretch(stretch);
        let mut home = Home::new(config, 3);
        home.submit(vec![long(1, 1, Span::secs(20))]);
        home.submit(vec![long(2, 1, Span::secs(15)), set(0, 1)]);
        let second = Span::secs(1);
        let routine = home.submit(vec![long(0, 2, second), long(1, 2, second)]);
        home.rest();
        assert!(home.committed(routine).is_some());
        let started = |it: &&(Time, Event<u8>)| it.1 == Event::Started(routine);
        home.events.iter().find(started).unwrap().0
    };
    assert_eq!(starts(2_000), at(0), "it has 44 s");
    assert!(starts(300) > at(15_000), "it has 6.6 s");
    // There is no such plan, so any will do.
    assert_eq!(starts(100), at(0));
}

/// Without leases no routine goes before a started one, or uses a device that it no longer
/// needs.
#[test]
fn leases_can_be_forbidden() {
    let first_to_change = |device: u64, config| {
        let mut home = Home::new(config, 3);
        // It has finished with the first device, and needs the last one later.
        home.submit(vec![set(0, 1), long(1, 1, Span::secs(10)), set(2, 1)]);
        home.pass(at(1_000));
        home.submit(vec![set(device, 2)]);
        home.pass(at(2_000));
        let states = home.states.clone();
        home.rest();
        states[device as usize]
    };
    for scheduler in [Scheduler::JustInTime, Scheduler::Timeline] {
        for (pre_leases, post_leases) in [(true, true), (true, false), (false, true)] {
            let config = Config::default()
                .with_scheduler(scheduler)
                .with_pre_leases(pre_leases)
                .with_post_leases(post_leases);
            let after = first_to_change(0, config);
            assert_eq!(after, if post_leases { 2 } else { 1 }, "{config:?}");
            let before = first_to_change(2, config);
            assert_eq!(before, if pre_leases { 2 } else { 0 }, "{config:?}");
        }
    }
}

/// Each outcome counts once, for the command that it is about.
#[test]
fn an_outcome_of_an_earlier_command_is_refused() {
    let mut home = Home::new(Config::default(), 2);
    home.is_mute[0] = true;
    home.submit(vec![maybe(0, 1), set(0, 2)]);
    let device = NodeId(0);
    let notified = |token, device| Command::Acted {
        device,
        token,
        outcome: Outcome::Done,
    };
    let unknown = |token| Err(Reject::UnknownToken { device, token });
    assert_eq!(
        home.notify(notified(2, device)),
        unknown(2),
        "none has it yet"
    );
    let other = NodeId(1);
    let at_other = Err(Reject::UnknownToken {
        device: other,
        token: 1,
    });
    assert_eq!(home.notify(notified(1, other)), at_other);
    let no_node = NodeId(9);
    let unknown_device = Err(Reject::UnknownDevice(no_node));
    assert_eq!(home.notify(notified(1, no_node)), unknown_device);
    // It is overdue, and the next one is in flight.
    home.pass(at(5_000));
    assert_eq!(home.hub.machine().counters().timeouts, 1);
    home.lands(0, Outcome::Done);
    assert_eq!(home.issued(0), [(1, true), (0, false), (2, true)]);
    let before = home.hub.machine().clone();
    for token in [1, 2] {
        assert_eq!(home.notify(notified(token, device)), unknown(token));
        let state = 1;
        let answer = Command::Answered {
            device,
            token,
            state,
        };
        assert_eq!(home.notify(answer), unknown(token));
    }
    assert_eq!(*home.hub.machine(), before);
}

/// A suspected device may be alive.
#[test]
fn a_suspicion_is_no_failure() {
    for visibility in MODELS {
        let mut home = Home::new(under(visibility), 2);
        let routine = home.submit(vec![long(0, 1, Span::secs(1)), set(0, 2)]);
        home.pass(at(500));
        home.receive(Delta::Suspected(Member::new(0, 0)));
        assert!(home.hub.machine().is_up(NodeId(0)));
        home.rest();
        assert!(home.committed(routine).is_some());
        let is_weak = visibility == Visibility::Weak;
        assert_eq!(home.order().len(), usize::from(!is_weak));
    }
}

/// Also after a failure: an earlier incarnation does not return.
#[test]
fn a_failed_life_is_not_revived_by_news_of_a_former_one() {
    let mut home = Home::new(Config::default(), 1);
    let is_up = |home: &Home| home.hub.machine().is_up(NodeId(0));
    home.receive(Delta::Failed(Member::new(0, 5)));
    home.receive(Delta::Joined(Member::new(0, 4)));
    assert!(!is_up(&home));
    home.receive(Delta::Refuted(Member::new(0, 5)));
    assert!(
        is_up(&home),
        "it was declared failed, and says that it is alive"
    );
    home.receive(Delta::Left(Member::new(0, 5)));
    home.receive(Delta::Joined(Member::new(0, 6)));
    assert!(is_up(&home));
}

#[test]
fn states_are_compared_by_their_order() {
    let holds = |comparison, state: u8| {
        let condition = Condition {
            device: NodeId(0),
            comparison,
            value: 5,
        };
        condition.holds(&state)
    };
    for (comparison, expected) in [
        (Comparison::Equal, [false, true, false]),
        (Comparison::NotEqual, [true, false, true]),
        (Comparison::Less, [true, false, false]),
        (Comparison::Greater, [false, false, true]),
    ] {
        assert_eq!([4, 5, 6].map(|it| holds(comparison, it)), expected);
    }
}

/// A routine is accepted, started, committed and ordered once, one after the other.
#[test]
fn a_routine_is_told_of_from_its_beginning_to_its_end() {
    for visibility in MODELS {
        let mut home = Home::new(under(visibility), 2);
        let id = home.submit(vec![set(0, 1), set(1, 1), set(0, 2)]);
        home.rest();
        let notified = home.events.iter().map(|it| it.1.clone());
        let is_about = |it: &Event<u8>| !matches!(it, Event::Issue { .. });
        let notified: Vec<Event<u8>> = notified.filter(is_about).collect();
        let mut expected = vec![
            Event::Accepted(id),
            Event::Started(id),
            Event::Committed(id),
            Event::Ordered(Placed::Routine(id)),
        ];
        if visibility == Visibility::Weak {
            expected.pop();
        }
        assert_eq!(notified, expected);
    }
}

/// Two routines set the same devices, and each skips the commands that the other one did: no device
/// has a state to lose, and the routine that waits for no other is reported first.
#[test]
fn what_was_passed_over_keeps_no_order() {
    let mut home = Home::new(Config::default(), 3);
    let before = home.submit(vec![set(0, 9), long(2, 9, Span::secs(20))]);
    home.flip(1);
    let first = home.submit(vec![maybe(1, 1), maybe(0, 1)]);
    home.pass(at(5_000));
    home.flip(1);
    home.flip(0);
    let second = home.submit(vec![maybe(1, 2), maybe(0, 2)]);
    home.pass(at(10_000));
    assert!(home.committed(first).is_some() && home.committed(second).is_some());
    home.flip(0);
    home.rest();
    let order = home.order().into_iter().filter_map(|it| match it {
        Placed::Routine(id) => Some(id),
        _ => None,
    });
    assert_eq!(order.collect::<Vec<_>>(), [second, before, first]);
    assert_eq!(home.states[..2], [1, 2]);
}
