//! Errors of the command after wrong calls, and the behaviour of its nodes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "helpers of tests are tests, too"
)]

mod home;
mod keys;
mod live;
mod lives;
#[cfg(unix)]
mod locks;
#[cfg(unix)]
mod places;
#[cfg(unix)]
mod restarts;
mod running;
#[cfg(target_os = "linux")]
mod stalled;
#[cfg(unix)]
mod strangers;
mod tags;

use std::net::UdpSocket;

use running::{Folder, Running, SELVEDGE, complaint, selvedge};

#[test]
fn a_wrong_flag_is_named_and_the_status_is_2() {
    let output = selvedge(&["demo", "--nodez", "4"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("--nodez"));
    let output = selvedge(&["demo", "--nodes", "4"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("8..=128"));
}

#[test]
fn a_taken_port_gets_one_line_with_the_mend() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = selvedge(&["node", "--plain", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains(&address) && complaint.contains("choose a free port"));
}

#[test]
fn a_name_that_is_none_gets_one_line_with_the_mend() {
    let output = selvedge(&[
        "node",
        "--plain",
        "--listen",
        "127.0.0.1:0",
        "--join",
        "nowhere",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains("nowhere") && complaint.contains("192.0.2.1:7001"));
}

#[test]
#[cfg(unix)]
fn a_silent_seed_is_reported_and_ctrl_c_still_ends_well() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let arguments = [
        "node",
        "--plain",
        "--listen",
        "127.0.0.1:0",
        "--join",
        &address,
    ];
    let mut node = Running::start(SELVEDGE, &arguments);
    let line = node.wait_for("no answer from");
    assert!(line.contains(&address) && line.contains("still trying"));
    assert!(node.interrupt().success());
}

#[test]
#[cfg(unix)]
fn three_processes_form_a_mesh_and_one_leaves() {
    let folder = Folder::new("mesh");
    let key = &folder.key("mesh.key");
    let start = |join: &[&str]| {
        let arguments = [
            "node",
            "--listen",
            "127.0.0.1:0",
            "--period",
            "200",
            "--key",
        ];
        let arguments = [&arguments[..], &[key.as_str()], join].concat();
        let mut node = Running::start(SELVEDGE, &arguments);
        let line = node.wait_for("listens at");
        let address = line.split_whitespace().last().unwrap().to_owned();
        (node, address)
    };
    let (mut first, seed) = start(&[]);
    let (mut second, _) = start(&["--join", &seed]);
    let (mut third, _) = start(&["--join", &seed]);
    for node in [&mut first, &mut second, &mut third] {
        node.wait_for("3 here");
    }
    assert!(third.interrupt().success());
    for node in [&mut first, &mut second] {
        node.wait_for("left: 2 here");
    }
    assert!(second.interrupt().success());
    first.wait_for("left: 1 here");
    assert!(first.interrupt().success());
}

#[test]
#[cfg(unix)]
fn the_smallest_host_speaks_with_the_command() {
    let tests = std::env::current_exe().unwrap();
    let smallest = tests.ancestors().nth(2).unwrap().join("examples/smallest");
    if !smallest.exists() {
        // Only `cargo test -p selvedge-cli` does not build the examples.
        eprintln!("passed over: {} was not built", smallest.display());
        return;
    }
    let mut node = Running::start(SELVEDGE, &["node", "--plain", "--listen", "127.0.0.1:0"]);
    let line = node.wait_for("listens at");
    let seed = line.split_whitespace().last().unwrap();
    // The example cannot ask for any free port, so find one.
    let free = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut other = Running::start(smallest, &[&free.to_string(), seed]);
    other.wait_for("Joined");
    node.wait_for("joined: 2 here");
    assert!(node.interrupt().success());
    other.wait_for("Left");
}
