//! Where the timeline scheduler puts a routine, seen by when it is finished.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod home;

use home::{Home, at, long};
use selvedge_core::Span;
use selvedge_safehome::{Config, RoutineId};

/// A home whose devices do at once what they are told.
fn home(devices: usize) -> Home {
    let mut home = Home::new(Config::default(), devices);
    home.delay = Span::ZERO;
    home
}

/// Submits commands to devices, each for so many seconds.
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
    let mut home = home(2);
    let first = submit(&mut home, &[(0, 100), (1, 10)]);
    // It would fit, and take longer than until the first one needs the device.
    let long = submit(&mut home, &[(1, 101)]);
    let short = submit(&mut home, &[(1, 50)]);
    home.rest();
    let ends = [first, long, short].map(|it| home.committed(it));
    assert_eq!(
        ends,
        [110_000, 211_000, 50_000].map(|it| Some(at(it))),
        "the first one is not delayed, the short one goes before it, the long one behind"
    );
}
