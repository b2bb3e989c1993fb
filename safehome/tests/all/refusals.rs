//! Inputs that a hub refuses, and the removal of devices.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, long, set};
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_safehome::{Command, Config, Damage, Flaw, Hub, Reject, Routine, RoutineId, Step};

const DEVICE: NodeId = NodeId(0);

#[test]
fn a_command_without_time_is_refused() {
    let mut home = Home::new(Config::default(), 2);
    let hasty = Step {
        timeout: Some(Span::ZERO),
        ..set(1, 1)
    };
    let steps = vec![set(0, 1), hasty];
    let refused = home.notify(Command::Submit(Routine { steps }));
    assert_eq!(refused, Err(Reject::NoTime(1)));
}

#[test]
fn a_device_goes_when_nobody_needs_it() {
    let mut home = Home::new(Config::default(), 2);
    let remove = |home: &mut Home| home.notify(Command::RemoveDevice(DEVICE));
    let in_use = Err(Reject::DeviceInUse(DEVICE));
    home.submit(vec![set(0, 1), long(1, 1, Span::secs(1))]);
    home.submit(vec![set(1, 2), set(0, 2)]);
    assert_eq!(remove(&mut home), in_use, "a command is on its way");
    home.pass(at(200));
    assert_eq!(remove(&mut home), in_use, "somebody waits for it");
    home.rest();
    assert_eq!(remove(&mut home), Ok(()));
    assert_eq!(remove(&mut home), Err(Reject::UnknownDevice(DEVICE)));
    let steps = vec![set(0, 1)];
    let refused = home.notify(Command::Submit(Routine { steps }));
    assert_eq!(refused, Err(Reject::UnknownDevice(DEVICE)));
    // Its id is free.
    let state = None;
    let back = Command::AddDevice {
        device: DEVICE,
        state,
    };
    assert_eq!(home.notify(back), Ok(()));
    assert_eq!(home.hub.machine().state(DEVICE), None);
}

/// A due rollback is not forgotten, unless the device is removed for good; and a hub that skipped a
/// device and goes on can be stored.
#[test]
fn a_device_that_is_to_be_restored_stays_unless_it_is_gone() {
    let undone = || {
        let mut home = Home::new(Config::default(), 2);
        let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(1))]);
        home.pass(at(200));
        home.flip(0);
        home.notify(Command::Cancel(routine)).unwrap();
        home.pass(at(2_000));
        let saved = home.hub.machine().save();
        Hub::restore(Config::default(), saved).unwrap();
        home
    };
    let mut home = undone();
    home.flip(0);
    let refused = home.notify(Command::RemoveDevice(DEVICE));
    assert_eq!(refused, Err(Reject::DeviceInUse(DEVICE)));
    home.rest();
    assert_eq!(home.states[0], 0);
    assert_eq!(home.notify(Command::RemoveDevice(DEVICE)), Ok(()));

    let mut home = undone();
    assert_eq!(home.notify(Command::RemoveDevice(DEVICE)), Ok(()));
    let state = Some(1);
    let device = DEVICE;
    home.notify(Command::AddDevice { device, state }).unwrap();
    home.rest();
    assert_eq!(home.states[0], 1);
    assert_eq!(home.hub.machine().state(DEVICE), Some(&1));
}

/// By the number under which people know them, and not as Rust writes them.
#[test]
fn errors_name_routines_devices_and_commands_by_number() {
    let routine = RoutineId(7);
    let flaw = Flaw::NoPlace;
    let (found, limit) = (9, 8);
    let too_long = Damage::TooLong {
        routine,
        found,
        limit,
    };
    let news = Delta::Failed(Member::new(5, 0));
    for (reported, expected) in [
        (
            Reject::UnknownRoutine(routine).to_string(),
            "routine 7 is unknown",
        ),
        (Damage::Order(routine).to_string(), "routine 7 comes"),
        (
            Damage::Routine { routine, flaw }.to_string(),
            "routine 7: it has no place",
        ),
        (too_long.to_string(), "routine 7 has 9 commands"),
        (
            Reject::UnknownMember(news).to_string(),
            "the delta is about device 5, which",
        ),
        (
            Reject::NoTime(1).to_string(),
            "command 2, counted from 1, has",
        ),
    ] {
        assert!(reported.starts_with(expected), "{reported}");
    }
}

/// Limits of the settings: the number is reached, and not exceeded; a refusal changes nothing.
#[test]
fn no_more_is_taken_than_the_settings_allow() {
    let config = Config::default()
        .with_step_limit(2)
        .with_routine_limit(2)
        .with_device_limit(2);
    let mut home = Home::new(config, 2);
    let device = NodeId(2);
    let state = Some(0);
    let refused = home.notify(Command::AddDevice { device, state });
    assert_eq!(refused, Err(Reject::TooManyDevices { limit: 2 }));
    let submit = |home: &mut Home, count: usize| {
        let steps = vec![long(0, 1, Span::secs(1)); count];
        home.notify(Command::Submit(Routine { steps }))
    };
    assert_eq!(submit(&mut home, 0), Err(Reject::Empty));
    let too_long = Reject::TooLong { found: 3, limit: 2 };
    assert_eq!(submit(&mut home, 3), Err(too_long));
    assert_eq!(submit(&mut home, 2), Ok(()));
    assert_eq!(submit(&mut home, 2), Ok(()));
    let before = home.hub.machine().clone();
    let too_many = Reject::TooManyRoutines { limit: 2 };
    assert_eq!(submit(&mut home, 1), Err(too_many));
    assert_eq!(*home.hub.machine(), before);
    home.rest();
    assert_eq!(submit(&mut home, 1), Ok(()));
}

/// A command has its own timeout, or the one of the settings.
#[test]
fn a_command_is_waited_for_as_long_as_it_says() {
    for (timeout, expected) in [(None, 5), (Some(Span::secs(60)), 60)] {
        let mut home = Home::new(Config::default(), 1);
        home.is_mute[0] = true;
        home.submit(vec![Step {
            timeout,
            ..set(0, 1)
        }]);
        assert_eq!(home.hub.deadline(), Some(Time::ZERO + Span::secs(expected)));
    }
}

#[test]
fn settings_that_cannot_work_are_named() {
    let config = Config::default();
    let none = Span::ZERO;
    for (wrong, name) in [
        (config.with_leniency(99), "leniency"),
        (config.with_patience(none), "patience"),
        (config.with_stretch(99), "stretch"),
        (config.with_search_limit(0), "search_limit"),
        (config.with_short(none), "short"),
        (config.with_timeout(none), "timeout"),
        (config.with_undo_attempts(0), "undo_attempts"),
        (config.with_undo_retry(none), "undo_retry"),
        (config.with_step_limit(0), "step_limit"),
        (config.with_routine_limit(0), "routine_limit"),
        (config.with_order_limit(0), "order_limit"),
        (config.with_device_limit(0), "device_limit"),
    ] {
        let reported = Hub::<u8>::new(wrong).map(|_| ()).unwrap_err().to_string();
        assert!(reported.starts_with(&format!("{name} is ")), "{reported}");
    }
    let least = config
        .with_leniency(100)
        .with_patience(Span(1))
        .with_stretch(100)
        .with_search_limit(1)
        .with_short(Span(1))
        .with_timeout(Span(1))
        .with_undo_attempts(1)
        .with_undo_retry(Span(1));
    let least = least
        .with_step_limit(1)
        .with_routine_limit(1)
        .with_order_limit(1)
        .with_device_limit(1);
    assert_eq!(least.check(), Ok(()));
}
