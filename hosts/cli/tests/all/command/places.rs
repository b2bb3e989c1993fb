//! The addresses of nodes, the names of seeds, signals, and flags that exclude each other.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use crate::command::running::{Folder, Running, SELVEDGE, complaint, selvedge};

const LOOPBACK: &str = "127.0.0.1:0";

/// A node in the clear with a short period, and the port at which it listens.
fn start(id: &str, listen: &str, arguments: &[&str]) -> (Running, String) {
    let flags = ["node", "--plain", "--period", "100", "--id", id];
    let arguments = [&flags[..], &["--listen", listen], arguments].concat();
    let mut node = Running::start(SELVEDGE, &arguments);
    let line = node.wait_for("listens at");
    let port = line.rsplit(':').next().unwrap().to_owned();
    (node, port)
}

/// The port is taken: a node that takes the flags ends, too.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let taken = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let output = selvedge(&[&["node", "--listen", &listen], arguments].concat());
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    (output.status.code(), complaint)
}

/// Nodes that joined through a third node and announced no address once lost each other with it.
#[test]
fn nodes_at_any_address_stay_one_mesh_when_their_seed_is_gone() {
    for (any, host) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "[::1]")] {
        if host == "[::1]" && std::net::UdpSocket::bind("[::1]:0").is_err() {
            eprintln!("skipped: this machine has no IPv6");
            continue;
        }
        let (mut seed, port) = start("1", any, &[]);
        let join = format!("{host}:{port}");
        let (mut two, own) = start("2", any, &["--join", &join]);
        let (mut three, _) = start("3", any, &["--join", &join]);
        for node in [&mut seed, &mut two, &mut three] {
            node.wait_for("3 here");
        }
        two.wait_for(&format!("other nodes reach this one at {host}:{own}"));
        seed.wait_for(&format!("other nodes reach this one at {join}"));
        seed.kill();
        for node in [&mut two, &mut three] {
            node.wait_for("node 1 failed: 2 here");
        }
        // Longer than it takes to declare a node failed.
        sleep(Duration::from_secs(3));
        assert!(three.leave().success());
        two.wait_for("node 3 left: 1 here");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_named_and_sought_again() {
    let nowhere = "nowhere.invalid:7001";
    let (_seed, port) = start("1", LOOPBACK, &[]);
    let seed = format!("127.0.0.1:{port}");
    let (mut both, _) = start("2", LOOPBACK, &["--join", nowhere, &seed]);
    both.wait_for("2 here");
    let (mut alone, _) = start("3", LOOPBACK, &["--join", nowhere]);
    for node in [&mut both, &mut alone] {
        let line = node.wait_for(nowhere);
        assert!(line.contains("looked up again"), "{line}");
    }
    assert!(alone.interrupt().success());
}

/// The name of a service may resolve to this node alone when it starts.
#[test]
fn a_name_that_is_the_node_itself_is_reported_and_the_node_begins() {
    let free = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let name = format!("localhost:{}", address.port());
    let (mut node, _) = start("1", &address.to_string(), &["--join", &name]);
    node.wait_for("in the mesh as node 1");
    let line = node.wait_for(&name);
    assert!(line.contains("looked up again"), "{line}");
}

#[test]
fn what_needs_a_key_is_refused_in_the_clear() {
    let flags: [&[&str]; 4] = [
        &["--group", "kitchen"],
        &["--rate", "100"],
        &["--group-reads-key"],
        &["--state", "no-such-folder"],
    ];
    for flag in flags {
        let (status, complaint) = refused(&[&["--plain", "--id", "1"], flag].concat());
        assert_eq!(status, Some(2));
        assert!(
            complaint.contains(flag[0]) && complaint.contains("--key FILE"),
            "{complaint}"
        );
    }
}

/// Two nodes that leave at the same moment: each may receive the announcement of the other node.
#[test]
fn a_node_that_has_left_counts_the_others_as_its_lines_do() {
    for _ in 0..4 {
        let (mut one, port) = start("1", LOOPBACK, &[]);
        let (mut two, _) = start("2", LOOPBACK, &["--join", &format!("127.0.0.1:{port}")]);
        for node in [&mut one, &mut two] {
            node.wait_for("2 here");
        }
        for signal in ["STOP", "INT", "CONT"] {
            one.signal(signal);
            two.signal(signal);
        }
        for mut node in [one, two] {
            let last = node.wait_for("others here");
            let reported = node.said_by_now();
            let is_alone = reported.iter().any(|it| it.contains("left: 1 here"));
            let others = format!("others here: {}", u8::from(!is_alone));
            assert!(last.ends_with(&others), "{reported:#?}");
        }
    }
}

/// SIGHUP has a node read its key file again; this one has none.
#[test]
fn signals_that_do_not_ask_a_node_to_leave_do_not_end_it() {
    let (mut one, port) = start("1", LOOPBACK, &[]);
    let (mut two, _) = start("2", LOOPBACK, &["--join", &format!("127.0.0.1:{port}")]);
    two.wait_for("2 here");
    for signal in ["HUP", "USR1", "USR2"] {
        two.signal(signal);
    }
    sleep(Duration::from_millis(300));
    assert!(two.interrupt().success());
    one.wait_for("node 2 left");
}

/// The loopback interface has no such address, so the error is the system's.
#[cfg(target_os = "linux")]
#[test]
fn a_link_local_address_has_its_interface_by_name() {
    let output = selvedge(&["node", "--plain", "--listen", "[fe80::1%lo]:7001"]);
    assert_eq!(output.status.code(), Some(1));
    let reported = complaint(&output);
    assert!(
        reported.contains("cannot listen at [fe80::1%1]:7001"),
        "{reported}"
    );
    for flag in ["--listen", "--advertise"] {
        let (status, reported) = {
            let listen: &[&str] = if flag == "--listen" {
                &[]
            } else {
                &["--listen", LOOPBACK]
            };
            let wrong = ["node", "--plain", flag, "[fe80::1%nosuch0]:7001"];
            let output = selvedge(&[&wrong[..], listen].concat());
            (output.status.code(), complaint(&output))
        };
        assert_eq!(status, Some(2));
        assert!(reported.contains("no interface nosuch0"), "{reported}");
    }
}

#[test]
fn a_node_whose_sends_all_fail_reports_it_with_the_error() {
    // A socket of the loopback interface cannot send to any outside address.
    let (mut node, _) = start("1", LOOPBACK, &["--join", "192.0.2.1:7001"]);
    let line = node.wait_for("this node cannot send");
    assert!(line.contains("os error"), "{line}");
    sleep(Duration::from_secs(2));
    let reported = node.said_by_now().iter();
    assert_eq!(reported.filter(|it| it.contains("cannot send")).count(), 1);
}

#[test]
fn a_key_file_of_a_group_is_taken_where_a_flag_says_so() {
    let folder = Folder::new("group-key");
    let path = folder.key("mesh.key");
    let set = |mode| set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    for mode in [0o440, 0o640] {
        set(mode);
        let (status, reported) = refused(&["--key", &path]);
        assert_eq!(status, Some(1));
        assert!(reported.contains("--group-reads-key"), "{reported}");
        let shared = [
            "node",
            "--listen",
            LOOPBACK,
            "--key",
            &path,
            "--group-reads-key",
        ];
        Running::start(SELVEDGE, &shared).wait_for("listens at");
    }
    for mode in [0o644, 0o660, 0o444] {
        set(mode);
        let (status, reported) = refused(&["--key", &path, "--group-reads-key"]);
        assert_eq!(status, Some(1));
        assert!(
            reported.contains(&format!("chmod 640 {path}")),
            "{reported}"
        );
    }
}
