//! Processes that are killed: updates that they reported as done stay done, once.

use core::time::Duration;
use std::thread;

use super::running::{Group, Running, parse};

/// A client. All changes are its own, so it knows each revision beforehand: an update that is lost,
/// or applied twice, shows in the next one.
#[derive(Default)]
struct Client {
    /// The latest revision of the map.
    revision: u64,
    /// The value of `count`, and its revision.
    count: (u64, u64),
    /// A `cas` of a node that was killed before it answered.
    has_open: bool,
}

impl Client {
    fn begin(group: &mut Group) -> Self {
        let mut client = Self::default();
        client.done(&group.node(1).ask("cas count - 0"));
        client.count = (0, client.revision);
        for id in group.ids() {
            group.node(id).ask("watch count");
        }
        client
    }

    fn done(&mut self, answer: &str) {
        self.revision += 1;
        assert_eq!(answer, format!("done, revision {}", self.revision));
    }

    fn increment_line(&self) -> String {
        format!("cas count @{} {}", self.count.1, self.count.0 + 1)
    }

    /// Reads, and notes whether an increment without an answer was done.
    fn read(&mut self, node: &mut Running) {
        let found = parse(&node.ask("get count"));
        if found != self.count {
            assert!(
                self.has_open,
                "{found:?} is read, {:?} was written",
                self.count
            );
            self.revision += 1;
            assert_eq!(found, (self.count.0 + 1, self.revision));
            (self.count, self.has_open) = (found, false);
        }
    }

    /// Writes and reads through this node.
    fn work(&mut self, node: &mut Running) {
        self.read(node);
        if self.has_open {
            // It may still be in progress: one of two with the same revision is done.
            let answer = node.ask(&self.increment_line());
            self.revision += 1;
            let (value, revision) = (self.count.0 + 1, self.revision);
            let found = format!("refused, found {value} revision {revision}");
            assert!(
                [format!("done, revision {revision}"), found].contains(&answer),
                "{answer}"
            );
            (self.count, self.has_open) = ((value, revision), false);
        }
        for _ in 0..2 {
            self.done(&node.ask(&self.increment_line()));
            self.count = (self.count.0 + 1, self.revision);
            self.done(&node.ask(&format!("set other {}", self.revision)));
            self.read(node);
        }
    }

    fn work_at_all(&mut self, group: &mut Group) {
        for id in group.running() {
            self.work(group.node(id));
        }
    }

    /// Asks this node, and kills all of `killed` before any client gets the answer.
    fn ask_and_kill(&mut self, group: &mut Group, asked: usize, killed: &[usize]) {
        group.node(asked).say(&self.increment_line());
        self.has_open = true;
        // Some are killed before the line is read, and some after: both must work.
        thread::sleep(Duration::from_millis(self.revision % 4));
        for &id in killed {
            group.kill(id);
        }
    }

    fn restart(&mut self, group: &mut Group, killed: &[usize]) {
        for &id in killed {
            group.restart(id, "");
        }
        for &id in killed {
            self.read(group.node(id));
            group.node(id).ask("watch count");
            self.work(group.node(id));
        }
    }

    /// Each watch saw the last change, and no revision twice or out of order.
    fn check_watches(&self, group: &mut Group) {
        for id in group.running() {
            let node = group.node(id);
            while node.changes.last() != Some(&self.count) {
                let change = node.wait_for("changed count: ");
                assert!(parse(&change) <= self.count, "{change}");
            }
            let is_ordered = node.changes.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
            assert!(is_ordered, "at node {id}: {:?}", node.changes);
        }
    }
}

/// Kills each of these minorities while it is asked, and then all nodes at once.
fn survives(name: &str, count: usize, minorities: &[&[usize]]) {
    let mut group = Group::start(name, count);
    let mut client = Client::begin(&mut group);
    client.work_at_all(&mut group);
    for &minority in minorities {
        let asked = minority[0];
        client.ask_and_kill(&mut group, asked, minority);
        client.work_at_all(&mut group);
        client.check_watches(&mut group);
        client.restart(&mut group, minority);
    }
    // The leader with as many others as a minority may have.
    let leader = group.leader();
    let others = group.ids().filter(|&id| id != leader);
    let minority: Vec<usize> = [leader].into_iter().chain(others).take(count / 2).collect();
    client.ask_and_kill(&mut group, leader, &minority);
    client.work_at_all(&mut group);
    client.restart(&mut group, &minority);

    let all = group.running();
    client.ask_and_kill(&mut group, 1, &all);
    client.restart(&mut group, &all);
    client.work_at_all(&mut group);
    client.check_watches(&mut group);
}

#[test]
fn three_nodes_survive_the_kill_of_any_one_and_of_all() {
    survives("three", 3, &[&[1], &[2], &[3]]);
}

#[test]
fn five_nodes_survive_the_kill_of_any_two_and_of_all() {
    survives("five", 5, &[]);
}

#[test]
#[cfg(unix)]
fn a_leader_that_was_suspended_reads_what_was_done_meanwhile() {
    let mut group = Group::start("suspended", 3);
    let mut client = Client::begin(&mut group);
    let leader = group.leader();
    group.node(leader).signal("STOP");
    for id in group.ids().filter(|&id| id != leader) {
        client.work(group.node(id));
    }
    group.node(leader).signal("CONT");
    client.work(group.node(leader));
    client.check_watches(&mut group);
}

#[test]
fn a_node_that_lost_its_data_votes_when_the_others_have_named_it_anew() {
    let mut group = Group::start("forgot", 3);
    let mut client = Client::begin(&mut group);
    client.work_at_all(&mut group);
    group.kill(3);
    std::fs::remove_dir_all(group.directory(3)).unwrap();
    group.restart(3, "");
    let ended = group.node(3).wait_for("ended: ");
    assert!(ended.contains("nothing is stored here"), "{ended}");
    group.restart(3, "--forgot");
    client.read(group.node(3));
    while !group.node(3).ask("status").contains(" votes") {
        thread::sleep(Duration::from_millis(20));
    }
    // It is needed now, and has a memory again.
    group.kill(1);
    client.work(group.node(3));
    group.kill(3);
    group.restart(3, "");
    client.work(group.node(3));
    group.restart(1, "--first");
    let ended = group.node(1).wait_for("ended: ");
    assert!(
        ended.contains("the folder holds the memory of a node"),
        "{ended}"
    );
}

#[test]
fn an_input_that_ends_loses_no_answer_and_an_output_that_ends_ends_no_node() {
    let mut group = Group::start("ends", 2);
    group.node(1).ask("status");
    group.node(1).hear_no_more();
    for value in 1..=3 {
        group.node(1).say(&format!("set count {value}"));
        while group.node(2).ask("get count") != format!("{value} revision {value}") {
            thread::sleep(Duration::from_millis(20));
        }
    }
    group.node(2).say("set count 4");
    group.node(2).say_no_more();
    assert_eq!(group.node(2).wait_for("set count 4: "), "done, revision 4");
}
