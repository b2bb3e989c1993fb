//! Where the timeline scheduler puts a routine, seen by when it is finished.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use home::{Home, MODELS, at, if_it_is, long, set};
use selvedge_core::{Driver, Span, Time};
use selvedge_safehome::{Command, Config, Hub, Published, RoutineId, Scheduler, Visibility};
use selvedge_sim::histories;

/// A home whose devices do commands at once.
fn home(devices: usize) -> Home {
    let mut home = Home::new(Config::default(), devices);
    home.delay = Span::ZERO;
    home
}

/// Submits commands to devices, each for this number of seconds.
fn submit(home: &mut Home, needs: &[(u64, u64)]) -> RoutineId {
    let needs = needs.iter();
    let steps = needs.map(|&(device, seconds)| long(device, 1, Span::secs(seconds)));
    home.submit(steps.collect())
}

#[test]
fn a_routine_that_must_be_stretched_still_goes_into_gaps() {
    let mut home = home(4);
    submit(&mut home, &[(0, 1_000)]);
    // Needs device 2 much later.
    submit(&mut home, &[(1, 2_000), (2, 1)]);
    // Waits for device 0 for many times as long as its commands take.
    let third = submit(&mut home, &[(3, 1), (0, 1), (2, 1)]);
    home.rest();
    assert_eq!(home.committed(third), Some(at(1_002_000)));
}

#[test]
fn a_gap_is_taken_only_if_nobody_else_is_late_by_it() {
    let mut home = home(3);
    let first = submit(&mut home, &[(0, 100), (1, 10)]);
    // It would fit, and take longer than until the first one needs the device.
    let long = submit(&mut home, &[(1, 101), (2, 1)]);
    let short = submit(&mut home, &[(1, 50)]);
    home.rest();
    let ends = [first, long, short].map(|it| home.committed(it));
    assert_eq!(
        ends,
        [110_000, 212_000, 50_000].map(|it| Some(at(it))),
        "the first one is not delayed, the short one goes before it, the long one behind"
    );
}

/// A routine that waits for its first device needs the next ones later by the same time.
#[test]
fn a_delay_of_the_first_device_moves_the_places_on_the_others() {
    let mut home = home(3);
    submit(&mut home, &[(0, 100)]);
    submit(&mut home, &[(0, 10), (1, 10), (2, 10)]);
    // From 110 s on device 1 is needed.
    let third = submit(&mut home, &[(1, 105)]);
    home.rest();
    assert_eq!(home.committed(third), Some(at(105_000)));
}

/// A count of one for each device of a routine that finds its places at once.
#[test]
fn the_gaps_that_are_looked_at_are_counted() {
    let mut home = home(2);
    for _ in 0..2 {
        submit(&mut home, &[(0, 1), (1, 1)]);
    }
    let counters = home.hub.machine().counters();
    assert_eq!((counters.searched, counters.unplaced), (4, 0));
}

/// A place that leaves no room on a later device is skipped before that device is examined.
#[test]
fn what_leaves_no_room_on_a_later_device_is_seen_at_once() {
    for devices in [2, 4] {
        let config = Config::default().with_stretch(u16::MAX);
        let mut home = Home::new(config, devices as usize + 1);
        let (another, last, before) = (devices, devices - 1, devices - 2);
        // It has the last device, and leaves a gap of 10 s on the one before.
        let steps = vec![
            long(last, 1, Span::secs(10)),
            set(before, 1),
            set(another, 1),
        ];
        home.submit(steps);
        home.submit((0..devices).map(|it| set(it, 2)).collect());
        let counters = home.hub.machine().counters();
        assert_eq!(counters.searched, 3 + devices + 1, "{devices} devices");
    }
}

/// The plan of a routine that has given the device back is over, whichever routines are behind.
#[test]
fn who_comes_behind_all_is_planned_from_when_the_device_is_free() {
    let config = Config::default().with_search_limit(1);
    let mut home = Home::new(config, 3);
    // A routine that keeps device 0 for 100 s, and is planned to keep it for that long from its
    // last command to it; another command follows, so that it is unfinished when the next one
    // comes.
    home.submit(vec![
        long(0, 1, Span::secs(100)),
        set(0, 2),
        long(1, 2, Span::secs(600)),
    ]);
    home.pass(at(101_000));
    // It needs two devices, and one gap is looked at.
    let behind = home.submit(vec![long(2, 3, Span::secs(10)), set(0, 3)]);
    assert_eq!(home.hub.machine().counters().unplaced, 2);
    // This one would keep device 0 for 30 s.
    home.submit(vec![long(0, 4, Span::secs(30))]);
    home.rest();
    assert_eq!(home.committed(behind), Some(at(111_100)));
    assert_eq!(home.states[0], 4);
}

/// Every model and every scheduler but the weak one, which promises nothing.
fn models() -> impl Iterator<Item = Config> {
    let eventual = [
        Scheduler::Timeline,
        Scheduler::JustInTime,
        Scheduler::FirstCome,
    ];
    let strong = MODELS.into_iter().filter(|it| *it != Visibility::Weak);
    strong.flat_map(move |visibility| {
        eventual.map(|scheduler| {
            Config::default()
                .with_visibility(visibility)
                .with_scheduler(scheduler)
        })
    })
}

/// A slider is moved: a routine for each position, up to 100 ms apart. Its last position.
fn slide(home: &mut Home, seed: u64) -> u8 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let positions = 2 + (rng.next_u32() % 30) as u8;
    for position in 1..=positions {
        home.submit(vec![set(0, position)]);
        home.wait(Span::millis(u64::from(rng.next_u32() % 100)));
    }
    home.rest();
    positions
}

#[test]
fn a_slider_ends_where_it_was_left() {
    for config in models() {
        histories(0..40, |seed| {
            let mut home = Home::new(config, 1);
            let last = slide(&mut home, seed);
            assert_eq!(home.states[0], last, "{config:?}");
        });
    }
    // Into any gap the last one goes before others.
    let ends = |seed| {
        let mut home = Home::under(&[Published::AnyGap], Config::default(), 1);
        slide(&mut home, seed) == home.states[0]
    };
    let as_left = (0..100).filter(|it| ends(*it)).count();
    println!("into any gap {as_left} of 100 sliders end where they were left");
    assert!(as_left < 90);
}

/// Commands take half of the estimated time, so that there is a gap before the fifth one.
fn sixth_comes_late(rules: &[Published], restarts: bool) -> u8 {
    let mut home = Home::under(rules, Config::default(), 1);
    for value in 1..=5 {
        home.submit(vec![set(0, value)]);
    }
    home.pass(at(165));
    if restarts {
        let saved = home.hub.machine().save();
        home.hub = Driver::new(Hub::restore(Config::default(), saved).unwrap());
        home.notify(Command::Resume).unwrap();
    }
    home.submit(vec![set(0, 6)]);
    home.rest();
    home.states[0]
}

#[test]
fn the_last_command_wins() {
    assert_eq!(sixth_comes_late(&[Published::AnyGap], false), 5);
    assert_eq!(sixth_comes_late(&[], false), 6);
    assert_eq!(sixth_comes_late(&[], true), 6);
}

/// Whichever device they set first.
#[test]
fn routines_that_set_the_same_devices_keep_their_order() {
    for config in models() {
        let mut home = Home::new(config, 3);
        home.submit(vec![long(2, 1, Span::secs(10)), set(0, 1), set(1, 1)]);
        let second = home.submit(vec![long(0, 2, Span::secs(20)), long(1, 2, Span::secs(20))]);
        let third = home.submit(vec![set(1, 3), set(0, 3)]);
        home.rest();
        assert!(home.committed(second).unwrap() <= home.committed(third).unwrap());
        assert_eq!(home.states[..2], [3, 3], "{config:?}");
    }
}

/// A routine that asks for a state, or sets another device besides, still goes into a gap.
#[test]
fn others_go_into_gaps() {
    type Ends = (Vec<selvedge_safehome::Step<u8>>, u64);
    let ends: [Ends; 3] = [
        (vec![set(0, 3)], 20_000),
        (vec![set(0, 3), set(1, 3)], 0),
        (vec![if_it_is(set(0, 3), 0, 0)], 0),
    ];
    for (steps, least) in ends {
        let mut home = Home::new(Config::default(), 3);
        home.submit(vec![long(2, 1, Span::secs(10)), set(0, 1)]);
        home.submit(vec![long(0, 2, Span::secs(20))]);
        let third = home.submit(steps);
        home.rest();
        let ended: Time = home.committed(third).unwrap();
        assert!(ended >= at(least), "{ended:?}");
        assert_eq!(ended < at(1_000), least == 0, "{ended:?}");
    }
}
