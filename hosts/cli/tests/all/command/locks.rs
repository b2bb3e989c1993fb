//! Settings of locks and elections of nodes in processes: takeover, a lease, and what is measured.

use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::command::running::{Running, SELVEDGE, complaint, selvedge};

const LOOPBACK: &str = "127.0.0.1:0";

fn start(arguments: &[&str]) -> (Running, String) {
    let flags = [
        "node", "--plain", "--json", "--period", "100", "--listen", LOOPBACK,
    ];
    let mut node = Running::start(SELVEDGE, &[&flags[..], arguments].concat());
    let line = node.wait_for("listens at");
    let address = line.split(['"', ' ']).find(|it| it.starts_with("127."));
    let address = address.unwrap().to_owned();
    (node, address)
}

/// Three nodes with these flags, which know one another.
fn three(flags: &[&str]) -> [Running; 3] {
    let (first, seed) = start(&[&["--id", "1"], flags].concat());
    let join = |id| start(&[&["--id", id, "--join", &seed], flags].concat()).0;
    let mut nodes = [first, join("2"), join("3")];
    for node in &mut nodes {
        node.wait_for("3 here");
    }
    nodes
}

fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Tokens are compared as their hexadecimal digits.
fn token(line: &str) -> String {
    object(line)["token"].as_str().unwrap().to_owned()
}

/// Three nodes: a member of the mesh's locks, a holder, and a waiter.
fn holder_and_waiter() -> [Running; 3] {
    let locks = ["--locks", "3", "--takeover", "50", "--suspicion", "10"];
    let asks = [&locks[..], &["--lock", "door"]].concat();
    let (first, seed) = start(&[&["--id", "1"], &locks[..]].concat());
    let (mut holder, _) = start(&[&["--id", "2", "--join", &seed], &asks[..]].concat());
    holder.wait_for("has the lock door");
    let (mut waiter, _) = start(&[&["--id", "3", "--join", &seed], &asks[..]].concat());
    waiter.wait_for("3 here");
    // No node that is alive was passed over.
    let has_it = |line: &String| line.contains("has the lock door");
    assert!(!waiter.said_by_now().iter().any(has_it));
    [first, holder, waiter]
}

#[test]
fn a_lock_is_taken_over_after_its_holder_was_killed() {
    let [_first, mut holder, mut waiter] = holder_and_waiter();
    let held = token(&holder.wait_for("has the lock door"));
    holder.kill();
    waiter.wait_for("node 2 failed");
    assert!(token(&waiter.wait_for("has the lock door")) > held);
    waiter.leave();
    waiter.wait_for("released the lock door");
}

/// It is not dead, and learns that another node has the lock.
#[test]
fn a_holder_that_was_stopped_reports_that_its_lock_was_taken_over() {
    let [_first, mut holder, mut waiter] = holder_and_waiter();
    holder.signal("STOP");
    waiter.wait_for("has the lock door");
    holder.signal("CONT");
    holder.wait_for("another node has taken over the lock door");
}

#[test]
fn nodes_take_turns_at_a_lock_that_one_keeps() {
    let turns = ["--locks", "2", "--lock", "door", "--hold", "20"];
    let keeps = ["--keep", "60000", "--eager"];
    let (mut first, seed) = start(&[&["--id", "1"], &turns[..], &keeps].concat());
    let (mut second, _) = start(&[&["--id", "2", "--join", &seed], &turns[..]].concat());
    let last = token(&second.wait_for("has the lock door"));
    first.wait_for_line("has the lock door", |line| token(line) > last);
}

/// The leader that all of them follow.
fn leader_of_all(nodes: &mut [Running; 3]) -> usize {
    let end = Instant::now() + Duration::from_secs(60);
    let last = |it: &mut Running| {
        let objects = it.said_by_now().iter().rev().map(|it| object(it));
        let mut elections =
            objects.filter(|it| it["event"] == "elected" || it["event"] == "regained");
        elections.next().and_then(|it| it["node"].as_u64())
    };
    while Instant::now() < end {
        if let [Some(one), two, three] = nodes.each_mut().map(last)
            && two == Some(one)
            && three == two
        {
            return one as usize;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("the nodes follow different leaders");
}

#[test]
fn a_lease_ends_the_leadership_of_a_leader_that_was_killed() {
    let mut nodes = three(&["--lease", "500", "--suspicion", "1000"]);
    let leader = leader_of_all(&mut nodes);
    for node in &mut nodes {
        node.forget();
    }
    nodes[leader - 1].kill();
    let lost = format!("node {leader} leads no longer: its lease was not renewed");
    for node in (1..=3).filter(|it| *it != leader) {
        nodes[node - 1].wait_for(&lost);
    }
}

#[test]
fn a_measured_c_is_what_elections_rest_on() {
    let mut nodes = three(&["--measure-c", "100", "--c", "2", "--f", "0"]);
    for node in &mut nodes {
        node.wait_for_line("\"tolerates\"", |line| object(line)["missing_from"] == 1);
    }
    // The leader asked for lists, and no list lacks a node.
    let has_measured = |node: &mut Running| {
        let lines = node.said_by_now().iter();
        let mut measured = lines.filter(|it| it.contains("\"measured\""));
        measured.any(|it| object(it)["missing_from"] == 0)
    };
    assert!(nodes.iter_mut().any(has_measured));
}

#[test]
fn nodes_are_counted_and_the_bound_of_locks_is_raised() {
    let mut nodes = three(&["--locks", "3", "--count", "200", "--spare", "2"]);
    for node in &mut nodes {
        // Two nodes are counted as three at most, and three as four; with two restarts.
        let is_raised = |line: &str| object(line)["lives"].as_u64() >= Some(6);
        node.wait_for_line(r#""event":"lives""#, is_raised);
    }
}

/// Two nodes are counted as three at most; with a restart more than half are three.
#[test]
fn a_bound_for_which_too_few_nodes_are_here_is_reported() {
    let flags = ["--locks", "2", "--count", "200"];
    let (mut first, seed) = start(&[&["--id", "1"], &flags[..]].concat());
    let (mut second, _) = start(&[&["--id", "2", "--join", &seed], &flags[..]].concat());
    for node in [&mut first, &mut second] {
        let is_four = |line: &str| object(line)["lives"] == 4;
        let line = node.wait_for_line(r#""event":"lives""#, is_four);
        assert!(
            line.contains("3 of them must answer, and 2 nodes are here"),
            "{line}"
        );
        assert!(line.contains("lower --spare"), "{line}");
    }
}

#[test]
fn nodes_with_other_settings_of_locks_report_it() {
    let (mut first, seed) = start(&["--id", "1", "--locks", "3"]);
    let (mut second, _) = start(&[
        "--id",
        "2",
        "--join",
        &seed,
        "--locks",
        "3",
        "--takeover",
        "9",
    ]);
    let (mut third, _) = start(&["--id", "3", "--join", &seed]);
    let line = first.wait_for("other-locks");
    assert!(
        line.contains("node 2 has other settings of locks: 3, takeover 9 ms; this node has 3"),
        "{line}"
    );
    assert!(second.wait_for("other-locks").contains("node 1 has"));
    assert!(third.wait_for("other-locks").contains("this node does not"));
}

/// The tag comes from another node, and a terminal would obey it.
#[test]
fn settings_of_another_node_are_written_without_control_characters() {
    let (mut first, seed) = start(&["--id", "1", "--locks", "3"]);
    let join = ["--id", "2", "--join", &seed, "--tag", "locks=\u{1b}[2J"];
    let (_second, _) = start(&join);
    let (mut third, _) = start(&["--id", "3", "--join", &seed]);
    for node in [&mut first, &mut third] {
        let about = |line: &str| object(line)["text"].as_str().unwrap().contains("node 2");
        let line = object(&node.wait_for_line(r#""event":"other-locks""#, about));
        let text = line["text"].as_str().unwrap();
        assert!(text.contains(r"\u{1b}[2J"), "{text:?}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

#[test]
fn flags_of_locks_that_need_others_name_them() {
    let all: [(&[&str], &str); 8] = [
        (&["--takeover", "9"], "--locks"),
        (&["--count", "900"], "--locks"),
        (&["--lock", "door"], "--locks"),
        (&["--locks", "3", "--eager"], "--lock <"),
        (&["--locks", "3", "--hold", "900"], "--lock <"),
        (&["--locks", "3", "--lock", "door", "--keep", "9"], "--hold"),
        (&["--locks", "3", "--spare", "1"], "--count"),
        (&["--locks", "3", "--tag", "locks=4"], "--tag locks"),
    ];
    // A node that is not refused finds its port taken.
    let taken = UdpSocket::bind(LOOPBACK).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flags, named) in all {
        let node = ["node", "--plain", "--listen", &address];
        let output = selvedge(&[&node[..], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let complaint = complaint(&output);
        assert!(complaint.contains(named), "{complaint}");
    }
}
