//! The end of a pre-lease, in the presence of others (section 4.1, erratum H12).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, if_it_is, long, maybe, set};
use selvedge_core::{Driver, NodeId, Span};
use selvedge_safehome::{
    AbortReason, Command, Config, Event, Hub, Outcome, RoutineId, Scheduler, Step, Timer,
};

const SHARED: u64 = 0;
const MUTE: u64 = 4;

/// A home in which a routine needs the shared device after 3.6 s, and a device never answers.
fn home(config: Config) -> (Home, RoutineId) {
    let config = config.with_leniency(300).with_timeout(Span::secs(60));
    let mut home = Home::new(config, 5);
    home.is_mute[MUTE as usize] = true;
    let source = home.submit(vec![long(1, 1, Span::millis(3_500)), set(SHARED, 1)]);
    (home, source)
}

fn is_revoked(home: &Home, id: RoutineId) -> bool {
    home.events.iter().any(|it| {
        let Event::Aborting { routine, why } = it.1 else {
            return false;
        };
        let is_over = |device| device == NodeId(SHARED);
        let step = why.step();
        routine == id
            && step.is_some()
            && matches!(why, AbortReason::LeaseExpired { device, .. } if is_over(device))
    })
}

/// Steps that go before the source, and stop in the middle.
fn holder() -> Vec<Step<u8>> {
    vec![set(SHARED, 2), long(MUTE, 2, Span::secs(2)), set(SHARED, 3)]
}

/// It skipped its command there, and needs the device again later: until then others may use it.
#[test]
fn a_device_that_a_routine_has_skipped_can_be_leased_at_once() {
    let mut home = Home::new(Config::default().with_scheduler(Scheduler::JustInTime), 2);
    home.is_mute[SHARED as usize] = true;
    let long = long(1, 2, Span::secs(100));
    let source = home.submit(vec![set(1, 1), maybe(SHARED, 1), long, set(SHARED, 1)]);
    let failing = home.submit(vec![set(SHARED, 2)]);
    let waiting = home.submit(vec![maybe(SHARED, 3)]);
    home.pass(at(100));
    home.flip(SHARED as usize);
    home.pass(at(90_000));
    let aborted =
        |it: &Event<u8>| matches!(it, Event::Aborted { routine, .. } if *routine == failing);
    let aborted = home.events.iter().find(|it| aborted(&it.1)).map(|it| it.0);
    assert!(aborted.is_some() && home.committed(source).is_none());
    assert_eq!(home.committed(waiting), aborted, "{:?}", home.events);
}

#[test]
fn a_lease_that_takes_too_long_ends() {
    let (mut home, _) = home(Config::default());
    let lease = home.submit(holder());
    home.pass(at(12_000));
    assert!(is_revoked(&home, lease));
}

/// A routine between them skips the device. Its own lease had not begun.
#[test]
fn a_lease_ends_though_another_one_is_given_up() {
    let (mut home, _) = home(Config::default());
    let other = vec![long(3, 1, Span::secs(3)), if_it_is(set(SHARED, 4), 2, 9)];
    home.submit(other);
    let lease = home.submit(holder());
    home.pass(at(12_000));
    assert!(is_revoked(&home, lease));
}

#[test]
fn a_lease_ends_though_another_one_is_cancelled() {
    let (mut home, _) = home(Config::default());
    let other = home.submit(vec![long(3, 1, Span::secs(3)), set(SHARED, 4)]);
    let lease = home.submit(holder());
    home.pass(at(1_000));
    home.notify(Command::Cancel(other)).unwrap();
    home.pass(at(12_000));
    assert!(is_revoked(&home, lease));
}

#[test]
fn a_lease_that_a_condition_begins_ends() {
    let (mut home, _) = home(Config::default());
    let lease = home.submit(vec![if_it_is(set(MUTE, 2), SHARED, 0), set(SHARED, 2)]);
    home.pass(at(12_000));
    assert!(is_revoked(&home, lease));
}

#[test]
fn a_lease_goes_back_after_the_last_access_also_without_post_leases() {
    let (mut home, source) = home(Config::default().with_post_leases(false));
    home.submit(vec![set(SHARED, 2), set(MUTE, 2)]);
    home.pass(at(4_000));
    assert!(home.committed(source).is_some());
    assert_eq!(home.states[SHARED as usize], 1);
}

/// The lease is over while the routine, cancelled before, awaits the outcome of its last command.
#[test]
fn a_routine_is_aborted_once_and_for_one_reason() {
    let (mut home, _) = home(Config::default());
    let lease = home.submit(holder());
    home.pass(at(1_000));
    home.notify(Command::Cancel(lease)).unwrap();
    home.pass(at(120_000));
    let reasons: Vec<AbortReason> = home
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Aborting { routine, why } | Event::Aborted { routine, why, .. }
                if *routine == lease =>
            {
                Some(*why)
            }
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [AbortReason::Cancelled, AbortReason::Cancelled]);
}

/// The lease is over while its last command is in flight, and another routine waits: the device is
/// given back anyway.
#[test]
fn a_lease_that_is_over_at_its_last_command_ends_nothing() {
    let config = Config::default().with_short(Span::millis(10));
    let run = |last: Step<u8>| {
        let mut home = Home::new(config, 3);
        let source = home.submit(vec![long(1, 1, Span::millis(3_500)), set(SHARED, 1)]);
        let before = long(2, 2, Span::millis(3_480));
        let lease = home.submit(vec![before, last]);
        home.pass(at(60_000));
        assert!(home.committed(source).is_some());
        assert_eq!(home.states[SHARED as usize], 1);
        (is_revoked(&home, lease), home.committed(lease).is_some())
    };
    assert_eq!(run(set(SHARED, 2)), (false, true));
    // A long one would keep it.
    let is_long = long(SHARED, 2, Span::millis(1));
    assert_eq!(run(is_long), (true, false));
}

/// A lease lasts for the planned time and the leniency, from the first access: another access does
/// not extend it.
#[test]
fn a_lease_lasts_from_its_first_access() {
    let (mut home, source) = home(Config::default());
    let ends = |home: &Home| {
        let mut timers = home.hub.timers();
        let timer = timers.find(|it| it.0 == Timer::Lease(NodeId(SHARED)));
        timer.map(|it| it.1)
    };
    home.pass(at(200));
    home.submit(vec![set(SHARED, 2), set(3, 2), set(SHARED, 3)]);
    // Three short ones, three times as long.
    assert_eq!(ends(&home), Some(at(200 + 3 * 300)));
    home.pass(at(325));
    assert_eq!(home.issued(SHARED as usize), [(2, true), (3, true)]);
    assert_eq!(ends(&home), Some(at(200 + 3 * 300)));
    home.pass(at(400));
    assert_eq!(ends(&home), None);
    home.rest();
    assert!(home.committed(source).is_some());
}

/// Its device was slow to begin, and would be needed for longer than was planned.
#[test]
fn a_lease_that_is_over_cuts_a_long_command_short() {
    let (mut home, source) = home(Config::default());
    home.is_mute[SHARED as usize] = true;
    let lease = home.submit(vec![long(SHARED, 2, Span::secs(2))]);
    // It has 6.3 s, and would take 7.
    home.pass(at(5_000));
    home.lands(SHARED as usize, Outcome::Done);
    home.is_mute[SHARED as usize] = false;
    home.pass(at(6_299));
    assert!(!is_revoked(&home, lease));
    home.pass(at(6_300));
    assert!(is_revoked(&home, lease));
    home.pass(at(8_000));
    assert!(home.committed(source).is_some());
    assert_eq!(home.states[SHARED as usize], 1);
}

/// Its lease was over while its command was in flight, and the hub restarted: the command was not
/// done, and no routine wants it any more.
#[test]
fn a_lease_that_is_over_issues_nothing_again_after_a_restart() {
    let (mut home, source) = home(Config::default());
    home.is_mute[SHARED as usize] = true;
    let lease = home.submit(vec![set(SHARED, 2), set(3, 2), set(SHARED, 3)]);
    home.pass(at(5_000));
    assert!(
        !is_revoked(&home, lease),
        "its command has its outcome first"
    );
    let (config, saved) = (*home.hub.machine().config(), home.hub.machine().save());
    home.hub = Driver::new(Hub::restore(config, saved).unwrap());
    home.notify(Command::Resume).unwrap();
    home.gives_up(SHARED as usize);
    home.is_mute[SHARED as usize] = false;
    let asked = home.events.iter().rev().find_map(|(_, event)| match event {
        Event::Ask { device, token } => Some((*device, *token)),
        _ => None,
    });
    let ((device, token), state) = (asked.unwrap(), 0);
    home.notify(Command::Answered {
        device,
        token,
        state,
    })
    .unwrap();
    assert!(is_revoked(&home, lease));
    home.pass(at(10_000));
    assert_eq!(home.issued(SHARED as usize), [(2, true), (1, true)]);
    assert!(home.committed(source).is_some());
}

/// A lease has a minimum length, however long the commands before it are; otherwise it would be
/// over again and again without time passing.
#[test]
fn a_lease_takes_time() {
    let (mut home, _) = home(Config::default().with_scheduler(Scheduler::JustInTime));
    home.pass(at(100));
    home.flip(2);
    home.is_mute[SHARED as usize] = true;
    let for_ever = Step {
        hold: Span(u64::MAX),
        ..maybe(2, 1)
    };
    home.submit(vec![for_ever.clone(), for_ever, set(SHARED, 2)]);
    let mut timers = home.hub.timers();
    let lease = timers.find(|it| it.0 == Timer::Lease(NodeId(SHARED)));
    assert_eq!(lease.unwrap().1, at(100 + 3 * 100));
}

/// Its owner waits for a condition, and no routine waits for the device.
#[test]
fn a_lease_that_nobody_awaits_goes_on() {
    let config = Config::default().with_stretch(u16::MAX);
    let mut home = Home::new(config, 3);
    home.submit(vec![long(1, 1, Span::secs(60)), set(SHARED, 1)]);
    home.submit(vec![long(2, 1, Span::secs(20))]);
    let lease = home.submit(vec![set(SHARED, 2), if_it_is(set(SHARED, 3), 2, 1)]);
    home.rest();
    assert_eq!(home.committed(lease), Some(at(20_100)));
    assert_eq!(
        home.issued(SHARED as usize),
        [(2, true), (3, true), (1, true)]
    );
}
