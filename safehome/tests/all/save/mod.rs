//! A hub is saved and comes back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod damaged;
mod durable;
mod host;
mod restarts;
mod settings;

use selvedge_safehome::{Command, Config, Outcome, Saved};

use host::{A, B, Host, issues};

/// A device says by itself in which state it is; that is no answer.
#[test]
fn a_change_by_hand_while_a_command_is_on_its_way_issues_nothing() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1)]);
    let token = issues(&events)[0].2;
    let events = host
        .tell(Command::Observed {
            device: A,
            state: 9,
        })
        .unwrap();
    assert_eq!(issues(&events), []);
    let outcome = Outcome::Refused;
    let device = A;
    let events = host.tell(Command::Outcome {
        device,
        token,
        outcome,
    });
    assert_eq!(issues(&events.unwrap()), [], "it stays as the hand left it");
    assert_eq!(host.hub.machine().state(A), Some(&9));
}

/// However often a device says so: nothing grows.
#[test]
fn changes_by_hand_take_no_room() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let token = issues(&events)[0].2;
    let done = Command::Outcome {
        device: A,
        token,
        outcome: Outcome::Done,
    };
    host.tell(done).unwrap();
    let size = |host: &Host| {
        postcard::to_allocvec(&host.hub.machine().save())
            .unwrap()
            .len()
    };
    host.tell(Command::Observed {
        device: A,
        state: 9,
    })
    .unwrap();
    let before = size(&host);
    for state in 10..100 {
        host.tell(Command::Observed { device: A, state }).unwrap();
    }
    assert_eq!(size(&host), before);
}

/// Text formats will do as well.
#[test]
fn a_state_is_the_same_in_every_format() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    let saved = host.hub.machine().save();
    let text = serde_json::to_string(&saved).unwrap();
    let back: Saved<u8> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, saved);
    assert!(text.starts_with("{\"version\":6,"), "{text}");
}
