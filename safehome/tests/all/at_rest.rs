//! State queries, the removal of devices, and undo handlers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, long, set};
use selvedge_core::{NodeId, Span};
use selvedge_safehome::{Command, Config, Event, Outcome, Reject, Step, Visibility};

const A: NodeId = NodeId(0);

/// A home whose first device refuses the given number of rollbacks.
fn refusing(undo_attempts: u8) -> Home {
    let config = Config::default().with_undo_attempts(undo_attempts);
    let mut home = Home::new(config, 2);
    let routine = home.submit(vec![set(0, 1), long(1, 1, Span::secs(100))]);
    home.pass(at(1_000));
    home.is_mute[0] = true;
    home.notify(Command::Cancel(routine)).unwrap();
    home.lands(0, Outcome::Refused);
    home
}

#[test]
fn a_hub_tells_its_settings() {
    let config = Config::default()
        .with_visibility(Visibility::GlobalStrict)
        .with_undo_attempts(3);
    let home = Home::new(config, 1);
    assert_eq!(*home.hub.machine().config(), config);
}

/// Its rollback may still be done, and a host that removes it would not learn of that.
#[test]
fn a_device_that_is_to_be_restored_stays() {
    let mut home = refusing(2);
    assert_eq!(
        home.notify(Command::RemoveDevice(A)),
        Err(Reject::DeviceInUse(A)),
        "it is tried again"
    );
    assert!(!home.hub.machine().is_quiet());
    home.pass(home.now + Span::millis(1_100));
    assert!(!home.hub.machine().is_quiet(), "it is on its way");
    home.lands(0, Outcome::Refused);
    assert!(home.when(&Event::Stuck(A)).is_some());
    home.pass(home.now + Span::millis(500));
    assert!(home.hub.machine().is_quiet(), "nothing is tried any more");
    assert_eq!(home.notify(Command::RemoveDevice(A)), Ok(()));
}

/// Others that wait behind a routine have not written yet.
#[test]
fn an_undo_handler_is_due_though_somebody_waits_for_the_device() {
    let mut home = Home::new(Config::default(), 3);
    let handled = Step {
        undo: Some(7),
        ..set(0, 1)
    };
    let first = home.submit(vec![handled, long(1, 1, Span::secs(5)), set(2, 1)]);
    home.pass(at(1_000));
    home.submit(vec![set(1, 2), set(0, 2)]);
    home.pass(at(1_500));
    home.notify(Command::Cancel(first)).unwrap();
    home.rest();
    assert_eq!(home.issued(0), [(1, true), (7, false), (2, true)]);
}
