//! Nodes that cannot understand each other, or share an id, report it.

use std::net::UdpSocket;

use crate::command::running::{Folder, Running, SELVEDGE};

fn start(listen: &str, arguments: &[&str]) -> (Running, String) {
    let arguments = [&["node", "--period", "100", "--listen", listen], arguments].concat();
    let mut node = Running::start(SELVEDGE, &arguments);
    let line = node.wait_for("listens at");
    let address = line.split_whitespace().last().unwrap().to_owned();
    (node, address)
}

const ANY: &str = "127.0.0.1:0";

/// A node that gets datagrams of strangers counts them and reports the likely cause; the sender
/// gets no answer.
#[test]
fn who_is_asked_by_strangers_says_what_came() {
    let folder = Folder::new("strangers");
    let (ours, others) = (folder.key("ours.key"), folder.key("others.key"));
    let sealed = ["--key", &ours];
    let cases: [(&[&str], &[&str], &str); 4] = [
        (
            &sealed,
            &["--key", &others],
            "that did not open: another key file or --group?",
        ),
        (
            &sealed,
            &["--key", &ours, "--group", "others"],
            "that did not open: another key file or --group?",
        ),
        (
            &sealed,
            &["--plain"],
            "unsealed: does another node run with --plain?",
        ),
        (
            &["--plain"],
            &sealed,
            "sealed, and this node runs with --plain",
        ),
    ];
    let mut running = Vec::new();
    for (asked, asks, notified) in cases {
        let (asked, seed) = start(ANY, asked);
        let (asks, _) = start(ANY, &[asks, &["--join", &seed]].concat());
        running.push((asked, asks, notified));
    }
    for (mut asked, mut asks, notified) in running {
        assert!(asked.wait_for(notified).contains("datagrams came"));
        let line = asks.wait_for("no answer from");
        assert!(
            line.contains("nothing came at all") && line.contains("still trying"),
            "{line}"
        );
    }
}

/// Two nodes that have each other as seeds, with different keys.
#[test]
fn no_answer_says_what_came_instead() {
    let folder = Folder::new("keys-apart");
    let keys = [folder.key("one.key"), folder.key("two.key")];
    let free = [0, 1].map(|_| UdpSocket::bind(ANY).unwrap());
    let places = free.map(|it| it.local_addr().unwrap().to_string());
    let start = |nth: usize| {
        let (here, there) = (places[nth].as_str(), places[1 - nth].as_str());
        start(here, &["--key", &keys[nth], "--join", there]).0
    };
    for mut node in [start(0), start(1)] {
        let line = node.wait_for("no answer from");
        assert!(line.contains("datagrams came that did not open"), "{line}");
    }
}

#[test]
fn two_processes_with_one_id_say_so_both() {
    let folder = Folder::new("twins");
    let key = folder.key("mesh.key");
    for mode in [&["--key", key.as_str()][..], &["--plain"]] {
        let (mut first, seed) = start(ANY, &[mode, &["--id", "1"]].concat());
        let twin = [mode, &["--id", "7", "--join", &seed]].concat();
        let (mut earlier, _) = start(ANY, &twin);
        earlier.wait_for("2 here");
        let (mut later, _) = start(ANY, &twin);
        later.wait_for("2 here");
        for node in [&mut earlier, &mut later] {
            node.wait_for("another process has the id 7");
        }
        if mode.contains(&"--key") {
            first.wait_for("from an earlier start of a node: do two processes have one id");
        }
    }
}

#[test]
fn an_address_of_many_gets_one_line_with_the_mend() {
    use crate::command::running::{complaint, selvedge};
    let many = "239.1.2.3:7001";
    for (arguments, mend) in [
        (&["--listen", many][..], "listen at an address of this host"),
        (
            &["--listen", ANY, "--advertise", many],
            "advertise the address",
        ),
        (
            &["--listen", ANY, "--join", many],
            "address and port of one node",
        ),
    ] {
        let output = selvedge(&[&["node", "--plain"], arguments].concat());
        assert_eq!(output.status.code(), Some(1));
        let complaint = complaint(&output);
        assert_eq!(complaint.lines().count(), 1);
        assert!(
            complaint.contains(many) && complaint.contains(mend),
            "{complaint}"
        );
    }
}
