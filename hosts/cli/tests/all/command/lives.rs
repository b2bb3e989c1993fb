//! Successive lives of one node.

use selvedge_core::Incarnation;
use serde_json::Value;

use crate::command::running::{Folder, Running, SELVEDGE, complaint, selvedge};

/// A restart at once: each life is later than the one before, though nothing is stored.
#[test]
fn a_node_that_is_killed_and_started_again_at_once_has_a_later_life() {
    let mut former: Option<Incarnation> = None;
    for start in 0..8 {
        let arguments = ["node", "--plain", "--json", "--id", "7"];
        let listen = ["--listen", "127.0.0.1:0"];
        let mut node = Running::start(SELVEDGE, &[&arguments[..], &listen].concat());
        let line: Value = serde_json::from_str(&node.wait_for("\"identity\"")).unwrap();
        let number = line["incarnation"].as_u64().unwrap();
        let life = Incarnation(u32::try_from(number).unwrap());
        if let Some(former) = former {
            assert!(
                life.newer_than(former),
                "start {start}: {life:?} after {former:?}"
            );
        }
        former = Some(life);
        // Dropping it kills it.
    }
}

/// A node leaves properly from the moment at which other nodes may know of it.
#[cfg(unix)]
#[test]
fn a_node_that_is_asked_to_go_as_soon_as_it_listens_says_good_bye() {
    for start in 0..30 {
        let arguments = ["node", "--plain", "--listen", "127.0.0.1:0"];
        let mut node = Running::start(SELVEDGE, &arguments);
        node.wait_for("listens at");
        let status = node.interrupt();
        assert!(status.success(), "start {start}: {status}");
    }
}

/// The epoch of its seal is in the folder, so another process cannot use it meanwhile.
#[test]
fn a_node_with_a_folder_stores_its_epoch() {
    let folder = Folder::new("epoch");
    let (key, state) = (folder.key("mesh.key"), folder.path("state"));
    let arguments = ["node", "--key", &key, "--state", &state, "--id", "7"];
    let arguments = [&arguments[..], &["--listen", "127.0.0.1:0"]].concat();
    let mut node = Running::start(SELVEDGE, &arguments);
    node.wait_for("listens at");
    let second = selvedge(&arguments);
    assert!(!second.status.success() && complaint(&second).contains(&state));
    assert!(node.interrupt().success());
    assert!(std::path::Path::new(&state).join("node.redb").is_file());
}
