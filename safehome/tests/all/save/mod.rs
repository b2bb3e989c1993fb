//! A hub that is saved and restored.

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

use selvedge_core::NodeId;
use selvedge_safehome::{Command, Config, Outcome, RoutineId, Saved};

use host::{A, B, Host, issues};

/// A device reports its state by itself; that is no answer.
#[test]
fn a_change_by_hand_while_a_command_is_on_its_way_issues_nothing() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1)]);
    let token = issues(&events)[0].2;
    let events = host
        .notify(Command::Observed {
            device: A,
            state: 9,
        })
        .unwrap();
    assert_eq!(issues(&events), []);
    let outcome = Outcome::Refused;
    let device = A;
    let events = host.notify(Command::Acted {
        device,
        token,
        outcome,
    });
    assert_eq!(issues(&events.unwrap()), [], "it stays as the hand left it");
    assert_eq!(host.hub.machine().state(A), Some(&9));
}

/// The device reports a state often: memory does not grow.
#[test]
fn changes_by_hand_take_no_room() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let token = issues(&events)[0].2;
    let done = Command::Acted {
        device: A,
        token,
        outcome: Outcome::Done,
    };
    host.notify(done).unwrap();
    let size = |host: &Host| {
        postcard::to_allocvec(&host.hub.machine().save())
            .unwrap()
            .len()
    };
    host.notify(Command::Observed {
        device: A,
        state: 9,
    })
    .unwrap();
    let before = size(&host);
    for state in 10..100 {
        host.notify(Command::Observed { device: A, state }).unwrap();
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

/// The ids of the devices and runs that a difference removes, and of the ones that it changes.
fn changed(host: &Host, last: &mut Saved<u8>) -> [Vec<u64>; 4] {
    let before = last.clone();
    let difference = host.hub.machine().difference(last);
    let text = serde_json::to_value(&difference).unwrap();
    let ids = |key: &str| {
        let list = text[key].as_array().unwrap().iter();
        list.map(|it| it.as_u64().or_else(|| it[0].as_u64()).unwrap())
            .collect()
    };
    assert_eq!(before.apply(difference).unwrap(), host.hub.machine().save());
    ["gone_devices", "gone_runs", "devices", "runs"].map(ids)
}

#[test]
fn a_difference_has_what_changed_and_what_is_gone_and_nothing_else() {
    let mut host = Host::new(Config::default());
    let more = |host: &mut Host, device| {
        let (device, state) = (NodeId(device), Some(0));
        host.notify(Command::AddDevice { device, state }).unwrap();
    };
    for device in [3, 5, 7, 8] {
        more(&mut host, device);
    }
    let mut last = host.hub.machine().save();
    let nothing: [Vec<u64>; 4] = Default::default();
    assert_eq!(changed(&host, &mut last), nothing);
    for device in [A, NodeId(5), NodeId(8)] {
        host.notify(Command::RemoveDevice(device)).unwrap();
    }
    more(&mut host, 4);
    more(&mut host, 9);
    let found = changed(&host, &mut last);
    assert_eq!(found, [vec![0, 5, 8], vec![], vec![4, 9], vec![]]);
    // Each holds its device, and the last one waits behind the second.
    let mut tokens = Vec::new();
    for device in [1, 3, 4] {
        let events = host.submit(&[(NodeId(device), 1), (NodeId(device), 2)]);
        tokens.push(issues(&events)[0]);
    }
    host.submit(&[(NodeId(3), 3)]);
    let found = changed(&host, &mut last);
    assert_eq!(found, [vec![], vec![], vec![1, 3, 4], vec![1, 2, 3, 4]]);
    host.notify(Command::Cancel(RoutineId(2))).unwrap();
    assert_eq!(changed(&host, &mut last), [vec![], vec![], vec![], vec![2]]);
    // It is undone and has left; the one behind it waits until its device is restored.
    let (device, _, token) = tokens[1];
    let outcome = Outcome::Done;
    let notified = Command::Acted {
        device,
        token,
        outcome,
    };
    let events = host.notify(notified).unwrap();
    assert_eq!(
        changed(&host, &mut last),
        [vec![], vec![2], vec![3], vec![]]
    );
    let (device, _, token) = issues(&events)[0];
    let notified = Command::Acted {
        device,
        token,
        outcome,
    };
    host.notify(notified).unwrap();
    assert_eq!(
        changed(&host, &mut last),
        [vec![], vec![], vec![3], vec![4]]
    );
    let (device, state) = (NodeId(9), 7);
    host.notify(Command::Observed { device, state }).unwrap();
    assert_eq!(changed(&host, &mut last), [vec![], vec![], vec![9], vec![]]);
}
