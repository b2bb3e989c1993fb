//! A gateway with few followers.

use crate::support::{Dir, Node, spawn, wait_for};

/// A gateway and three followers that are awake half a second of 0.7 s.
pub(crate) fn small(dir: &Dir, at: &str, more: &str) -> Vec<Node> {
    let data = dir.0.display();
    let gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let followers = (101..104).map(|id| {
        spawn(&format!(
            "follower --id {id} --gateway 1={at} --active 500ms --asleep 200ms{more}"
        ))
    });
    [gateway].into_iter().chain(followers).collect()
}
