//! Tags of nodes on the command line, and in the lines of other nodes.

use crate::command::running::{Running, SELVEDGE, complaint, selvedge};

const LOOPBACK: &str = "127.0.0.1:0";

fn start(arguments: &[&str]) -> (Running, String) {
    let flags = ["node", "--plain", "--period", "100", "--listen", LOOPBACK];
    let mut node = Running::start(SELVEDGE, &[&flags[..], arguments].concat());
    let line = node.wait_for("listens at");
    let address = line.split(['"', ' ']).find(|it| it.starts_with("127."));
    let address = address.unwrap().to_owned();
    (node, address)
}

#[test]
fn a_node_shows_the_tags_of_others_as_text_and_as_json() {
    let (mut text, seed) = start(&["--id", "1"]);
    let (mut json, _) = start(&["--id", "2", "--json", "--join", &seed]);
    let tags = ["--tag", "role=lamp", "--tag", "query=a=b", "--tag", "rack="];
    let (_tagged, _) = start(&[&["--id", "3", "--join", &seed][..], &tags].concat());
    text.wait_for("node 3 has the tags query=a=b, rack=, role=lamp");
    let line = json.wait_for(r#""event":"tags""#);
    let shown = r#""node":3,"tags":{"query":"a=b","rack":"","role":"lamp"}"#;
    assert!(line.contains(shown), "{line}");
}

#[test]
fn a_tag_that_is_none_and_tags_that_are_too_long_are_refused() {
    for tag in ["role", "=lamp"] {
        let output = selvedge(&["node", "--plain", "--listen", LOOPBACK, "--tag", tag]);
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint(&output).contains("NAME=VALUE"));
    }
    let long = format!("a={}", "b".repeat(509));
    let output = selvedge(&["node", "--plain", "--listen", LOOPBACK, "--tag", &long]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert!(
        complaint.contains("513 bytes, but at most 512"),
        "{complaint}"
    );
}
