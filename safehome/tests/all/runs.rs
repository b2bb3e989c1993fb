//! Runs of one key: the effects of a new one on the unfinished ones.

use core::num::NonZeroU16;

use selvedge_core::{NodeId, Span};
use selvedge_safehome::{
    AbortReason, Command, Config, Event, Hub, LONGEST_KEY, Mode, Placed, Reject, Routine,
    RoutineId, Scheduler, Step, Terms, Visibility, WaitCause,
};

use crate::home::{Home, MODELS, at, long, set};

/// Tried under every model, with every scheduler where it counts.
pub(crate) fn configs() -> impl Iterator<Item = Config> {
    let schedulers = [
        Scheduler::FirstCome,
        Scheduler::JustInTime,
        Scheduler::Timeline,
    ];
    let of = |visibility| Config::default().with_visibility(visibility);
    let eventual = schedulers.map(|it| of(Visibility::Eventual).with_scheduler(it));
    let strict = MODELS.into_iter().filter(|it| *it != Visibility::Eventual);
    eventual.into_iter().chain(strict.map(of))
}

pub(crate) fn submit_as(
    home: &mut Home,
    steps: Vec<Step<u8>>,
    terms: Terms,
) -> Result<RoutineId, Reject> {
    let routine = Routine { steps };
    home.notify(Command::SubmitAs { routine, terms })?;
    let accepted = home.events.iter().rev().find_map(|it| match it.1 {
        Event::Accepted(id) => Some(id),
        _ => None,
    });
    Ok(accepted.unwrap())
}

fn queued(limit: u16) -> Mode {
    let limit = NonZeroU16::new(limit).unwrap();
    Mode::Queued { limit }
}

/// On, hold for 2 minutes, then off.
fn motion() -> Vec<Step<u8>> {
    vec![long(0, 1, Span::secs(120)), set(0, 0)]
}

/// A motion light that is triggered each minute is on until 2 minutes after the last trigger, and
/// never off before that.
#[test]
fn a_light_that_restarts_is_on_until_its_hold_is_over_and_does_not_flicker() {
    for config in configs() {
        let mut home = Home::new(config, 1);
        for minute in 0..10 {
            home.pass(at(minute * 60_000));
            submit_as(&mut home, motion(), Terms::of("hall", Mode::Restart)).unwrap();
        }
        let last = home.now;
        home.rest();
        let issued = home.issued(0);
        let on = issued.iter().filter(|it| **it == (1, true)).count();
        assert_eq!((on, issued.len()), (10, 11), "{config:?}: {issued:?}");
        assert_eq!(issued.last(), Some(&(0, true)), "{config:?}");
        let off = home.events.iter().rev().find_map(|(when, it)| match it {
            Event::Issue { value: 0, .. } => Some(*when),
            _ => None,
        });
        let expected = last + Span::secs(120) + home.delay;
        assert_eq!(off, Some(expected), "{config:?}");
        let committed = home
            .events
            .iter()
            .filter(|it| matches!(it.1, Event::Committed(_)));
        assert_eq!(committed.count(), 1, "{config:?}");
    }
}

/// The device is restored if the superseding run does not set it.
#[test]
fn what_a_restart_does_not_set_is_undone() {
    let mut home = Home::new(Config::default(), 2);
    let terms = || Terms::of("k", Mode::Restart);
    let steps = vec![set(0, 1), long(1, 1, Span::secs(60))];
    let first = submit_as(&mut home, steps, terms()).unwrap();
    home.pass(at(1_000));
    let second = submit_as(&mut home, vec![set(1, 2)], terms()).unwrap();
    home.rest();
    assert_eq!(home.issued(0), [(1, true), (0, false)]);
    assert_eq!(home.issued(1), [(1, true), (2, true)]);
    let why = AbortReason::Superseded(second);
    let aborting = Event::Aborting {
        routine: first,
        why,
    };
    assert!(home.when(&aborting).is_some());
    assert_eq!(
        (why.device(&Routine::<u8> { steps: vec![] }), why.step()),
        (None, None)
    );
    assert_eq!(why.routine(), Some(second));
}

/// A question needs the state that the superseded run found.
#[test]
fn a_run_that_asks_waits_until_the_device_is_brought_back() {
    let mut home = Home::new(Config::default(), 1);
    let terms = || Terms::of("k", Mode::Restart);
    let steps = vec![long(0, 1, Span::secs(60))];
    submit_as(&mut home, steps, terms()).unwrap();
    home.pass(at(1_000));
    let asks = crate::home::if_it_is(set(0, 2), 0, 0);
    submit_as(&mut home, vec![asks], terms()).unwrap();
    home.rest();
    assert_eq!(home.issued(0), [(1, true), (0, false), (2, true)]);
}

/// The same holds for a run that sets the device, skips that command, and has a condition later.
#[test]
fn a_run_that_asks_later_does_not_wait_for_ever() {
    let mut home = Home::new(Config::default(), 2);
    let terms = || Terms::of("k", Mode::Restart);
    submit_as(&mut home, vec![long(0, 1, Span::secs(60))], terms()).unwrap();
    home.pass(at(1_000));
    let passed_over = crate::home::if_it_is(set(0, 2), 1, 9);
    let asks = crate::home::if_it_is(set(1, 3), 0, 0);
    let id = submit_as(&mut home, vec![passed_over, asks], terms()).unwrap();
    home.rest();
    assert!(home.committed(id).is_some());
    assert_eq!(home.states, [0, 3]);
}

/// A superseding run leaves the device as it is until it sets it. A routine that gets a place before
/// it has no such right, so the device is restored for it.
#[test]
fn a_routine_that_is_placed_before_a_restarted_run_does_not_wait_for_ever() {
    for post_leases in [false, true] {
        let config = Config::default().with_post_leases(post_leases);
        let mut home = Home::new(config, 2);
        let terms = || Terms::of("k", Mode::Restart);
        submit_as(&mut home, vec![set(0, 1)], terms()).unwrap();
        let steps = vec![long(1, 1, Span::secs(1)), set(0, 2)];
        let second = submit_as(&mut home, steps, terms()).unwrap();
        home.pass(at(500));
        let between = home.submit(vec![set(0, 3)]);
        home.rest();
        assert!(home.committed(between).is_some(), "{:?}", home.events);
        assert!(home.committed(second).is_some());
        assert_eq!(
            home.issued(0),
            [(1, true), (0, false), (3, true), (2, true)]
        );
        assert_eq!(home.order(), [between, second].map(Placed::Routine));
    }
}

#[test]
fn a_single_run_is_refused_while_another_is_unfinished() {
    for config in configs() {
        let mut home = Home::new(config, 2);
        let terms = || Terms::of("k", Mode::Single);
        let first = submit_as(&mut home, vec![set(0, 1)], terms()).unwrap();
        let refused = submit_as(&mut home, vec![set(1, 1)], terms());
        assert_eq!(refused, Err(Reject::Unfinished { routine: first }));
        let other = Terms::of("other", Mode::Single);
        submit_as(&mut home, vec![set(1, 1)], other).unwrap();
        home.rest();
        submit_as(&mut home, vec![set(1, 2)], terms()).unwrap();
    }
}

#[test]
fn queued_runs_go_one_after_the_other_and_beyond_the_limit_are_refused() {
    for config in configs() {
        let mut home = Home::new(config, 3);
        let terms = || Terms::of("k", queued(3));
        // They share no device.
        let runs = [0, 1, 2].map(|nth| {
            let steps = vec![long(nth, 1, Span::secs(10))];
            submit_as(&mut home, steps, terms()).unwrap()
        });
        let (routine, limit) = (runs[0], NonZeroU16::new(3).unwrap());
        let refused = submit_as(&mut home, vec![set(0, 2)], terms());
        assert_eq!(refused, Err(Reject::QueueFull { routine, limit }));
        home.rest();
        for pair in runs.windows(2) {
            let began = home.when(&Event::Started(pair[1]));
            assert!(began >= home.committed(pair[0]), "{config:?}");
        }
        assert_eq!(home.states, [1, 1, 1]);
    }
}

/// A held-back run is cancelled, superseded and restored like any other.
#[test]
fn a_run_that_is_held_back_is_cancelled_superseded_and_stored() {
    let mut home = Home::new(Config::default(), 2);
    let steps = |value| vec![long(0, value, Span::secs(10))];
    let submit = |home: &mut Home, value, mode| submit_as(home, steps(value), Terms::of("k", mode));
    submit(&mut home, 1, queued(9)).unwrap();
    let second = submit(&mut home, 2, queued(9)).unwrap();
    let third = submit(&mut home, 3, queued(9)).unwrap();
    home.notify(Command::Cancel(second)).unwrap();
    let saved = home.hub.machine().save();
    let back = Hub::restore(Config::default(), saved.clone()).unwrap();
    assert_eq!(back.save(), saved);
    let open: Vec<_> = back.unfinished().map(|it| it.0).collect();
    assert_eq!(open, [RoutineId(1), third]);
    let last = submit(&mut home, 4, Mode::Restart).unwrap();
    home.rest();
    assert!(home.committed(last).is_some());
    assert_eq!(home.issued(0), [(1, true), (4, true)]);
}

/// Two routines set the same devices: the last one wins, also if the one before it is held back.
#[test]
fn the_last_one_wins_over_one_that_is_held_back() {
    for config in configs().filter(|it| it.visibility != Visibility::Weak) {
        let mut home = Home::new(config, 2);
        let terms = || Terms::of("k", queued(9));
        submit_as(&mut home, vec![long(1, 1, Span::secs(10))], terms()).unwrap();
        submit_as(&mut home, vec![set(0, 2)], terms()).unwrap();
        home.submit(vec![set(0, 3)]);
        home.rest();
        assert_eq!(home.states[0], 3, "{config:?}");
    }
}

#[test]
fn a_key_has_a_longest_length() {
    let mut home = Home::new(Config::default(), 1);
    let key = |length| Terms::of("k".repeat(length), Mode::Single);
    let (found, limit) = (LONGEST_KEY + 1, LONGEST_KEY);
    let refused = submit_as(&mut home, vec![set(0, 1)], key(found));
    assert_eq!(refused, Err(Reject::KeyTooLong { found, limit }));
    submit_as(&mut home, vec![set(0, 1)], key(limit)).unwrap();
    assert_eq!(home.hub.machine().state(NodeId(0)), Some(&0));
}

/// Others that have no key have nothing in common for that.
#[test]
fn who_is_held_back_holds_back_none_but_those_that_set_the_same() {
    let mut home = Home::new(Config::default(), 4);
    let busy = home.submit(vec![long(2, 1, Span::secs(60))]);
    let steps = |value| vec![long(0, value, Span::secs(60))];
    let [_, held] = [1, 2].map(|it| {
        let terms = Terms::of("k", queued(2));
        submit_as(&mut home, steps(it), terms).unwrap()
    });
    let cause = |home: &Home, id| home.hub.machine().wait(id).unwrap().cause;
    assert!(matches!(cause(&home, held), WaitCause::Held(_)));
    let other = home.submit(vec![set(1, 1)]);
    assert_eq!(cause(&home, other), WaitCause::Outcome, "it began at once");
    let behind = home.submit(vec![set(2, 2)]);
    assert_eq!(cause(&home, behind), WaitCause::Routine(busy));
    let alike = home.submit(vec![set(0, 3)]);
    assert_eq!(cause(&home, alike), WaitCause::Held(held));
}
