//! Urgent routines, and the routines that make room for them.

use selvedge_core::{NodeId, Span};
use selvedge_safehome::{
    AbortReason, Catalogue, Clause, Command, Comparison, Condition, Config, Event, Mode, Outcome,
    Placed, RoutineId, Scheduler, Step, Terms, Urgency, Visibility, Wait, WaitCause,
};

use crate::home::{DELAY, Home, at, if_it_is, long, maybe, set};
use crate::runs::{configs, submit_as};

const URGENT: Urgency = Urgency(1);

fn urgent(home: &mut Home, steps: Vec<Step<u8>>) -> RoutineId {
    submit_as(home, steps, Terms::urgent(URGENT)).unwrap()
}

fn aborted(home: &Home, id: RoutineId) -> Option<AbortReason> {
    home.events.iter().find_map(|it| match it.1 {
        Event::Aborting { routine, why } if routine == id => Some(why),
        _ => None,
    })
}

fn began(home: &Home, id: RoutineId) -> Option<selvedge_core::Time> {
    home.when(&Event::Started(id))
}

/// Water runs in two places, more is about to, and "stop water" shuts all valves.
#[test]
fn what_is_urgent_begins_at_once_and_what_is_less_so_does_not_come_again() {
    for config in configs() {
        let mut home = Home::new(config, 3);
        let waters = [0, 1].map(|it| home.submit(vec![long(it, 1, Span::secs(3_600))]));
        let waits = home.submit(vec![long(0, 2, Span::secs(3_600)), set(2, 2)]);
        home.pass(at(10_000));
        let stop = urgent(&mut home, vec![set(0, 9), set(1, 9), set(2, 9)]);
        assert_eq!(began(&home, stop), Some(home.now), "{config:?}");
        home.rest();
        assert_eq!(home.states, [9, 9, 9], "{config:?}");
        assert_eq!(
            home.committed(stop),
            Some(at(10_000) + DELAY + DELAY + DELAY)
        );
        for water in [waters[0], waters[1], waits] {
            if home.committed(water).is_some_and(|it| it < at(10_000)) {
                continue;
            }
            let why = aborted(&home, water);
            assert_eq!(why.and_then(AbortReason::routine), Some(stop), "{config:?}");
        }
        // None was restored before: the valves went directly to their states.
        let is_back = |it: &&(u8, bool)| !it.1;
        let back = [0, 1].map(|it| home.issued(it).iter().filter(is_back).count());
        assert_eq!(back, [0, 0], "{config:?}");
    }
}

/// A command in flight is awaited, at most until its timeout.
#[test]
fn what_is_urgent_waits_for_a_command_on_its_way_and_for_nothing_else() {
    for config in configs() {
        let config = config.with_timeout(Span::secs(2));
        let mut home = Home::new(config, 2);
        home.is_mute[0] = true;
        let first = home.submit(vec![set(0, 1), long(1, 1, Span::secs(60))]);
        let stop = urgent(&mut home, vec![maybe(0, 9), set(1, 9)]);
        let hub = home.hub.machine();
        let wait = hub.wait(stop).unwrap();
        assert_eq!(wait.cause, WaitCause::Routine(first), "{config:?}");
        assert_eq!(wait.until, Some(at(2_000)), "{config:?}");
        home.pass(at(1_999));
        assert_eq!(began(&home, stop), None, "{config:?}");
        home.gives_up(0);
        home.is_mute[0] = false;
        home.pass(at(2_000));
        assert_eq!(began(&home, stop), Some(at(2_000)), "{config:?}");
        home.rest();
        assert_eq!(home.states[1], 9, "{config:?}");
    }
}

/// A routine of equal urgency waits. And a committed one stays.
#[test]
fn what_is_as_urgent_is_not_preempted_and_neither_is_what_is_committed() {
    for config in configs() {
        let mut home = Home::new(config, 1);
        let done = home.submit(vec![set(0, 1)]);
        home.wait(Span::secs(1));
        let first = urgent(&mut home, vec![long(0, 2, Span::secs(10))]);
        let second = urgent(&mut home, vec![set(0, 3)]);
        home.rest();
        for id in [done, first, second] {
            assert!(home.committed(id).is_some(), "{config:?}");
        }
        assert_eq!(home.states, [3]);
    }
}

/// Less urgent routines that come later get no place before it, wherever it waits.
#[test]
fn what_comes_later_and_is_less_urgent_goes_behind() {
    for config in configs().filter(|it| it.visibility != Visibility::Weak) {
        let mut home = Home::new(config, 3);
        urgent(&mut home, vec![long(1, 1, Span::secs(10))]);
        // It waits on device 1, and needs device 0 later.
        let second = urgent(&mut home, vec![set(1, 2), long(0, 2, Span::secs(1))]);
        let later = home.submit(vec![set(0, 3)]);
        home.rest();
        let order = (home.committed(second), home.committed(later));
        assert!(order.0 < order.1, "{config:?}: {order:?}");
        assert_eq!(home.states[0], 3);
    }
}

fn movie() -> Vec<Step<u8>> {
    let held = Step {
        preemptible: true,
        ..long(1, 1, Span::secs(7_200))
    };
    vec![set(0, 1), held]
}

/// A hold that may be cut short ends, and its routine is committed and not undone.
#[test]
fn a_preemptible_hold_ends_early() {
    for config in configs() {
        let mut home = Home::new(config, 2);
        let movie = home.submit(movie());
        home.pass(at(10_000));
        let night = urgent(&mut home, vec![set(1, 9)]);
        let device = NodeId(1);
        let cut = Event::CutShort {
            routine: movie,
            device,
            by: Some(night),
        };
        assert_eq!(home.when(&cut), Some(at(10_000)), "{config:?}");
        assert_eq!(home.committed(movie), Some(at(10_000)), "{config:?}");
        assert_eq!(began(&home, night), Some(at(10_000)), "{config:?}");
        home.rest();
        assert_eq!(home.states, [1, 9], "{config:?}");
    }
}

/// No device is restored in between, whichever run is over first: the one with a hold that is cut
/// short, or the aborted one.
#[test]
fn devices_go_straight_from_what_is_cut_short_and_aborted_to_what_is_urgent() {
    for config in configs() {
        for is_cut_first in [true, false] {
            let mut home = Home::new(config, 3);
            let other = || vec![long(2, 1, Span::secs(7_200))];
            let steps = if is_cut_first {
                [movie(), other()]
            } else {
                [other(), movie()]
            };
            for it in steps {
                home.submit(it);
            }
            home.pass(at(10_000));
            let night = urgent(&mut home, vec![set(2, 9), set(1, 9)]);
            assert_eq!(began(&home, night), Some(at(10_000)), "{config:?}");
            home.rest();
            for nth in [1, 2] {
                let issued = home.issued(nth);
                assert!(issued.iter().all(|it| it.1), "{config:?}: {issued:?}");
                assert_eq!(issued.last(), Some(&(9, true)), "{config:?}");
            }
        }
    }
}

/// The same where it is aborted when its hold is over: a device that it used is down.
#[test]
fn a_device_goes_straight_from_one_that_is_cut_short_and_cannot_be_committed() {
    let config = Config::default().with_visibility(Visibility::PartitionedStrict);
    let mut home = Home::new(config, 2);
    let movie = home.submit(movie());
    home.pass(at(10_000));
    home.flip(0);
    let night = urgent(&mut home, vec![set(1, 9)]);
    assert_eq!(began(&home, night), Some(at(10_000)));
    let why = AbortReason::Device {
        device: NodeId(0),
        step: Some(0),
    };
    assert_eq!(aborted(&home, movie), Some(why));
    home.rest();
    assert_eq!(home.issued(1), [(1, true), (9, true)]);
}

/// It is of no use where the routine needs the device again: then it is aborted.
#[test]
fn a_hold_is_not_cut_short_where_that_is_not_enough() {
    let mut home = Home::new(Config::default(), 2);
    let mut steps = movie();
    steps.push(set(1, 2));
    let movie = home.submit(steps);
    home.pass(at(10_000));
    let night = urgent(&mut home, vec![set(1, 9)]);
    home.rest();
    let why = AbortReason::Preempted {
        by: Some(night),
        device: NodeId(1),
        step: Some(1),
    };
    assert_eq!(aborted(&home, movie), Some(why));
    assert_eq!(home.states, [0, 9], "what it did elsewhere is undone");
}

/// An urgent routine with a condition must not see a state that may still be undone.
#[test]
fn what_is_urgent_and_asks_preempts_what_changed_the_state() {
    for config in configs().filter(|it| it.visibility != Visibility::Weak) {
        let mut home = Home::new(config, 2);
        home.submit(vec![set(0, 1), long(1, 1, Span::secs(60))]);
        home.pass(at(10_000));
        let asks = crate::home::if_it_is(set(0, 9), 0, 0);
        let id = urgent(&mut home, vec![asks]);
        home.rest();
        // It waited until device 0 was restored, and no longer.
        let done = home.committed(id).unwrap();
        assert!(done <= at(10_000) + DELAY + DELAY, "{config:?}: {done:?}");
        assert_eq!(home.states[0], 9, "{config:?}");
    }
}

/// A manual change preempts as a routine does, and its state stays.
#[test]
fn what_an_urgent_hand_did_stays() {
    for config in configs().filter(|it| it.visibility != Visibility::Weak) {
        for (before, state) in [(10_000, 5), (10_000, 1), (0, 5), (0, 1)] {
            let mut home = Home::new(config, 2);
            let steps = vec![long(0, 1, Span::secs(60)), set(0, 7)];
            let id = home.submit(steps);
            // The command is in flight, or done.
            home.pass(at(before));
            let by_hand = Command::ChangedByHand {
                device: NodeId(0),
                state,
                urgency: URGENT,
            };
            home.states[0] = state;
            home.notify(by_hand).unwrap();
            home.rest();
            let why = aborted(&home, id);
            let is_its = matches!(why, Some(AbortReason::Preempted { by: None, .. }));
            assert!(is_its, "{config:?}: {why:?}");
            assert_eq!(home.states[0], state, "{config:?}: {:#?}", home.events);
            assert_eq!(home.hub.machine().state(NodeId(0)), Some(&state));
        }
    }
}

/// It happens once, also where no routine has touched the device.
#[test]
fn what_an_urgent_hand_did_is_told_once() {
    let mut home = Home::new(Config::default(), 2);
    home.submit(vec![long(1, 1, Span::secs(60)), set(0, 7)]);
    home.pass(at(10_000));
    home.states[0] = 5;
    let by_hand = Command::ChangedByHand {
        device: NodeId(0),
        state: 5,
        urgency: URGENT,
    };
    home.notify(by_hand).unwrap();
    home.rest();
    let by_hand = Placed::Set {
        device: NodeId(0),
        state: Some(5),
    };
    assert_eq!(home.order(), [by_hand]);
    assert_eq!(home.states, [5, 0]);
}

/// Without urgency a manual change preempts nothing: the routine goes on.
#[test]
fn a_hand_that_is_not_urgent_preempts_nothing() {
    let mut home = Home::new(Config::default(), 1);
    let id = home.submit(vec![long(0, 1, Span::secs(60)), set(0, 7)]);
    home.pass(at(10_000));
    home.notify(Command::ChangedByHand {
        device: NodeId(0),
        state: 5,
        urgency: Urgency::default(),
    })
    .unwrap();
    home.rest();
    assert!(home.committed(id).is_some());
    assert_eq!(home.states, [7]);
}

/// An urgent queued run does not wait for one of its key that is less urgent.
#[test]
fn an_urgent_queued_run_preempts_those_before_it() {
    let mut home = Home::new(Config::default(), 2);
    let terms = |urgency| {
        let limit = core::num::NonZeroU16::MAX;
        Terms::of("k", Mode::Queued { limit }).with_urgency(Urgency(urgency))
    };
    let first = submit_as(&mut home, vec![long(0, 1, Span::secs(60))], terms(0)).unwrap();
    home.pass(at(1_000));
    let second = submit_as(&mut home, vec![set(1, 2)], terms(1)).unwrap();
    assert_eq!(began(&home, second), Some(home.now));
    assert_eq!(
        aborted(&home, first).and_then(AbortReason::routine),
        Some(second)
    );
}

/// A dry run predicts the effects, and changes nothing.
#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    for config in configs() {
        let mut home = Home::new(config, 3);
        let key = || Terms::of("k", Mode::Restart).with_urgency(URGENT);
        let first = submit_as(&mut home, vec![long(2, 1, Span::secs(60))], key()).unwrap();
        let movie = home.submit(movie());
        home.pass(at(10_000));
        let hub = home.hub.machine();
        let before = hub.save();
        let steps = vec![set(2, 9), set(1, 9)];
        let routine = selvedge_safehome::Routine { steps };
        let preview = hub.preview(home.now, routine.clone(), key()).unwrap();
        assert_eq!(preview.superseded, [first], "{config:?}");
        let is_one_by_one = matches!(
            config.visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        );
        if is_one_by_one {
            assert_eq!(preview.preempted, [(movie, NodeId(1))], "{config:?}");
        } else {
            assert_eq!(preview.cut_short, [(movie, NodeId(1))], "{config:?}");
        }
        assert_eq!(preview.wait, None, "{config:?}");
        assert_eq!(hub.save(), before);
        let waits = hub.preview(home.now, routine.clone(), Terms::urgent(URGENT));
        let wait: Wait = waits.unwrap().wait.unwrap();
        assert_eq!(wait.cause, WaitCause::Routine(first), "{config:?}");
        assert!(wait.until.is_none_or(|it| it >= at(60_000)), "{config:?}");
        let single = Terms::of("k", Mode::Single);
        let refused = hub.preview(home.now, routine, single).unwrap_err();
        assert_eq!(
            refused,
            selvedge_safehome::Reject::Unfinished { routine: first }
        );
    }
}

/// Each routine has a reason to wait, with a planned end.
#[test]
fn each_routine_says_for_what_it_waits_and_until_when() {
    let mut home = Home::new(Config::default(), 2);
    let first = home.submit(vec![long(0, 1, Span::secs(60))]);
    let second = home.submit(vec![set(0, 2)]);
    let hub = home.hub.machine();
    let wait = |home: &Home, id| home.hub.machine().wait(id).unwrap();
    let own = hub.wait(first).unwrap();
    let timeout = at(0) + Config::default().timeout;
    assert_eq!((own.cause, own.until), (WaitCause::Outcome, Some(timeout)));
    home.pass(at(1_000));
    let own = wait(&home, first);
    let over = at(60_000) + DELAY;
    assert_eq!((own.cause, own.since), (WaitCause::Hold, at(0) + DELAY));
    assert_eq!((own.device, own.until), (Some(NodeId(0)), Some(over)));
    let theirs = wait(&home, second);
    assert_eq!(theirs.cause, WaitCause::Routine(first));
    assert_eq!((theirs.device, theirs.since), (Some(NodeId(0)), at(0)));
    assert!(theirs.until.is_some_and(|it| it >= over));
    assert_eq!(home.hub.machine().waits().count(), 2);
    home.notify(Command::Cancel(first)).unwrap();
    let theirs = wait(&home, second);
    let back = home.now + Config::default().timeout;
    assert_eq!(
        (theirs.cause, theirs.until),
        (WaitCause::Rollback, Some(back))
    );
    home.rest();
    assert_eq!(home.hub.machine().wait(second), None);
}

#[test]
fn what_a_routine_waits_for_is_said_with_the_names_of_devices() {
    let mut catalogue = Catalogue::new();
    catalogue.id_or_new("lamp");
    let reported = |home: &Home, id| {
        let wait = home.hub.machine().wait(id).unwrap();
        (wait.explain(&catalogue), wait.until)
    };
    let mut home = Home::new(Config::default(), 2);
    let limit = 2.try_into().unwrap();
    let lamp = || vec![long(0, 1, Span::secs(60))];
    let [first, second] = [0; 2].map(|_| {
        let terms = Terms::of("k", Mode::Queued { limit });
        submit_as(&mut home, lamp(), terms).unwrap()
    });
    let third = home.submit(vec![set(0, 3), set(1, 3)]);
    let text = |home: &Home, id| reported(home, id).0;
    assert_eq!(text(&home, first), "its command to \"lamp\" is on its way");
    home.pass(at(1_000));
    assert_eq!(text(&home, first), "its command holds \"lamp\"");
    let held = format!("it is held back until routine {first} is finished");
    assert_eq!(reported(&home, second), (held, None));
    let waits = format!("it waits for routine {first} on \"lamp\"");
    assert_eq!(text(&home, third), waits);
    home.notify(Command::Cancel(second)).unwrap();
    home.notify(Command::Cancel(first)).unwrap();
    let back = String::from("it waits until \"lamp\" is brought back");
    let timeout = home.now + Config::default().timeout;
    assert_eq!(reported(&home, third), (back.clone(), Some(timeout)));
    // It refuses, and is asked again later.
    home.lands(0, Outcome::Refused);
    let again = home.now + Config::default().undo_retry;
    assert_eq!(reported(&home, third), (back, Some(again)));
    home.rest();
    let lateness = Span::secs(100);
    let device = NodeId(0);
    home.notify(Command::SetLateness { device, lateness })
        .unwrap();
    home.submit(vec![set(0, 5)]);
    home.lands(0, Outcome::Unknown);
    let over = home.now + lateness;
    let fourth = home.submit(vec![set(0, 6)]);
    let late = String::from("an earlier command to \"lamp\" may still act");
    assert_eq!(reported(&home, fourth), (late, Some(over)));
}

/// It has done its last command to the device, and is not finished.
#[test]
fn what_keeps_a_device_to_its_end_is_preempted_for_it() {
    for (visibility, post_leases, keeps) in [
        (Visibility::Eventual, true, false),
        (Visibility::Eventual, false, true),
        (Visibility::PartitionedStrict, true, true),
        (Visibility::PartitionedStrict, false, true),
    ] {
        let config = Config::default()
            .with_visibility(visibility)
            .with_post_leases(post_leases);
        let mut home = Home::new(config, 4);
        let first = home.submit(vec![set(0, 1), long(1, 1, Span::secs(60))]);
        let other = home.submit(vec![long(2, 1, Span::secs(60))]);
        home.pass(at(1_000));
        urgent(&mut home, vec![set(0, 9)]);
        let taken = aborted(&home, first).and_then(|it| match it {
            AbortReason::Preempted { device, .. } => Some(device),
            _ => None,
        });
        assert_eq!(taken, keeps.then_some(NodeId(0)), "{config:?}");
        assert_eq!(aborted(&home, other), None, "it is in nobody's way");
    }
}

#[test]
fn who_waits_just_in_time_says_for_whom() {
    let config = Config::default().with_scheduler(Scheduler::JustInTime);
    let cause = |home: &Home, id| {
        let wait = home.hub.machine().wait(id).unwrap();
        (wait.cause, wait.device)
    };
    let lamp = Some(NodeId(0));
    // One has done with the lamp, and one has it now.
    let mut home = Home::new(config, 4);
    let open = home.submit(vec![set(0, 1), long(1, 1, Span::secs(600))]);
    home.pass(at(1_000));
    let busy = home.submit(vec![long(0, 2, Span::secs(60))]);
    home.pass(at(2_000));
    let waits = home.submit(vec![set(0, 3)]);
    assert_eq!(cause(&home, waits), (WaitCause::Routine(busy), lamp));
    home.notify(Command::Cancel(busy)).unwrap();
    assert_eq!(cause(&home, waits), (WaitCause::Rollback, lamp));
    home.pass(at(3_000));
    assert_eq!(home.hub.machine().wait(waits), None, "it is done");
    // The changes of the first one may still be undone, so the answer is unknown.
    let asks = home.submit(vec![if_it_is(set(2, 1), 0, 3)]);
    assert_eq!(cause(&home, asks), (WaitCause::Routine(open), lamp));
}

/// The reason names the device, among those of the condition, that cannot be read yet.
#[test]
fn who_asks_says_which_answer_is_not_final() {
    let mut home = Home::new(Config::default(), 4);
    let open = home.submit(vec![set(0, 1), long(3, 1, Span::secs(60))]);
    home.pass(at(1_000));
    let is = |device, value| {
        Clause::Is(Condition {
            device: NodeId(device),
            comparison: Comparison::Equal,
            value,
        })
    };
    let both = Clause::All(vec![is(1, 0), is(0, 1)]);
    let condition = Some(both);
    let asks = home.submit(vec![Step {
        condition,
        ..set(2, 1)
    }]);
    let wait = home.hub.machine().wait(asks).unwrap();
    assert_eq!(wait.cause, WaitCause::Routine(open));
    assert_eq!(wait.device, Some(NodeId(0)));
}
