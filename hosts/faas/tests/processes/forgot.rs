//! A gateway that has lost its storage.

use std::fs;
use std::process::Stdio;

use crate::support::{Dir, Node, command, run, spawn, text, wait_for, wait_until_shown};

fn broker(id: usize) -> String {
    format!("127.61.22.{id}:18831")
}

fn gateway(dir: &Dir, id: usize) -> String {
    let peers = (1..=3).filter(|it| *it != id);
    let peers: Vec<String> = peers
        .map(|it| format!(" --peer {it}={}", broker(it)))
        .collect();
    let (at, data, peers) = (broker(id), dir.file(&id.to_string()), peers.concat());
    format!("gateway --id {id} --listen {at} --data {data} --voting dynamic --timeout 3{peers}")
}

#[test]
fn a_gateway_that_forgot_all_comes_back_and_no_task_is_lost() {
    let dir = Dir::new("forgot");
    let mut gateways: Vec<Option<Node>> = (1..=3)
        .map(|id| Some(spawn(&format!("{} --first", gateway(&dir, id)))))
        .collect();
    (1..=3).for_each(|id| wait_for(&broker(id)));
    // No follower has started: the task waits, and all gateways know it.
    let submit = format!("submit --code kept --gateway 1={}", broker(1));
    let mut client = command(&submit, "");
    let client = client.stdout(Stdio::piped()).stderr(Stdio::null());
    let client = client.spawn().unwrap();
    let second = format!("--gateway {}", broker(2));
    wait_until_shown("0 followers in 0 units, 1 tasks open", &second, "");
    gateways[1] = None;
    fs::remove_dir_all(dir.0.join("2")).unwrap();
    // A forbidden start: as if it had never run before.
    let unsaid = run(&gateway(&dir, 2), "");
    let why = text(&unsaid.stderr);
    assert_eq!(unsaid.status.code(), Some(1), "{why}");
    assert!(why.contains("--forgot"), "{why}");

    gateways[1] = Some(spawn(&format!("{} --forgot", gateway(&dir, 2))));
    wait_for(&broker(2));
    // The others have sent it the forgotten state.
    wait_until_shown(
        "0 followers in 0 units, 1 tasks open",
        &format!("--gateway 2={}", broker(2)),
        "",
    );
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            let at = broker(2);
            spawn(&format!(
                "follower --executor hash --id {id} --gateway 2={at} --active 500ms --asleep 200ms"
            ))
        })
        .collect();
    let answered = client.wait_with_output().unwrap();
    assert!(answered.status.success());
    assert!(text(&answered.stdout).starts_with("hex:"), "{answered:?}");
    // It serves clients again, with the same result.
    let again = run(&format!("submit --code kept --gateway 2={}", broker(2)), "");
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(again.stdout, answered.stdout);
    wait_until_shown("3 followers in 1 units, 0 tasks open", &second, "");
}
