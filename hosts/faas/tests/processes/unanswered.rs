//! Processes with a closed standard error.

use crate::received::spawn_received;
use crate::support::{Dir, Node, run, text, wait_for};

/// A process with a long log, which is not read.
fn spawn_unheard(arguments: &str) -> Node {
    let mut node = spawn_received(&format!("{arguments} --verbose"), "");
    node.0.stderr = None;
    node
}

#[test]
fn processes_that_nobody_hears_go_on() {
    let (dir, broker) = (Dir::new("unheard"), "127.61.26.1:18831");
    let data = dir.file("1");
    let mut nodes = vec![spawn_unheard(&format!(
        "gateway --id 1 --listen {broker} --data {data} --first"
    ))];
    wait_for(broker);
    nodes.extend((101..104).map(|id| {
        spawn_unheard(&format!(
            "follower --executor hash --id {id} --gateway 1={broker} --active 500ms --asleep 200ms"
        ))
    }));
    let answered = run(&format!("submit --code said --gateway 1={broker}"), "");
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    for node in &mut nodes {
        assert_eq!(node.0.try_wait().unwrap(), None, "it goes on");
    }
}
