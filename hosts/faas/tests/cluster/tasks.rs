//! Tasks that last, end or are cancelled, and payloads that are no tasks.

use std::process::Command;
use std::time::{Duration, Instant};

use rumqttc::{Client, Event, Incoming, MqttOptions, QoS};

use crate::small::small;
use crate::support::{Dir, Node, PROGRAM, command, run, spawn, text, wait_for, wait_until_shown};

#[test]
fn a_task_that_was_accepted_is_done_though_all_that_know_it_are_killed() {
    let dir = Dir::new("accepted");
    let ats = ["127.61.5.1:18831", "127.61.5.2:18831", "127.61.5.3:18831"];
    let gateway = |id: usize| {
        let peers = (1..=3).filter(|it| *it != id);
        let peers: Vec<String> = peers
            .map(|it| format!(" --peer {it}={}", ats[it - 1]))
            .collect();
        let (at, peers) = (ats[id - 1], peers.concat());
        let data = dir.file(&id.to_string());
        format!("gateway --id {id} --listen {at} --data {data}{peers}")
    };
    let gateways: Vec<Node> = (1..=3)
        .map(|id| spawn(&format!("{} --first", gateway(id))))
        .collect();
    ats.iter().for_each(|it| wait_for(it));
    let submit = format!("submit --code lasting --gateway 1={}", ats[0]);
    let client = Node(command(&submit, "").spawn().unwrap());
    wait_until_shown("1 tasks open", &format!("--gateway {}", ats[1]), "");
    // No follower had started: nothing has run.
    drop((client, gateways));
    let _gateways: Vec<Node> = (1..=3).map(|id| spawn(&gateway(id))).collect();
    ats.iter().for_each(|it| wait_for(it));
    wait_until_shown(
        "0 followers in 0 units, 1 tasks open",
        &format!("--gateway {}", ats[0]),
        "",
    );
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            let at = ats[id % 3];
            let gateway = id % 3 + 1;
            spawn(&format!(
                "follower --executor hash --id {id} --gateway {gateway}={at} --active 500ms --asleep 0s"
            ))
        })
        .collect();
    wait_until_shown(
        "3 followers in 1 units, 0 tasks open",
        &format!("--gateway {}", ats[2]),
        "",
    );
    let shown = text(&run(&format!("top --once --counters --gateway {}", ats[0]), "").stdout);
    assert!(shown.contains(" ended 1 "), "{shown}");
}

#[test]
fn a_function_may_take_longer_than_a_period_and_not_longer_than_its_time() {
    let (dir, at) = (Dir::new("long"), "127.61.7.1:18831");
    let _nodes = small(&dir, at, " --executor hash --time 7s");
    wait_until_shown("3 followers in 1 units", &format!("--gateway {at}"), "");
    let submit = |code: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["submit", "--gateway", at, "--code", code]);
        command.output().unwrap()
    };
    // Longer than the broker waits for a packet, too.
    let begun = Instant::now();
    let long = submit("wait 6000 x");
    assert!(long.status.success(), "{}", text(&long.stderr));
    assert!(
        text(&long.stderr).contains("attempt 1,"),
        "{}",
        text(&long.stderr)
    );
    assert!(begun.elapsed() >= Duration::from_secs(6));
    let longer = submit("wait 600000 x");
    let err = text(&longer.stderr);
    assert_eq!(longer.status.code(), Some(3), "{err}");
    assert!(err.contains("it took too long"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_cancels_a_task() {
    use rustix::process::{Pid, Signal, kill_process};

    let (dir, at) = (Dir::new("cancel"), "127.61.8.1:18831");
    let data = dir.0.display();
    let _gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let submit = format!("submit --code x --gateway 1={at}");
    let mut client = Node(command(&submit, "").spawn().unwrap());
    wait_until_shown("1 tasks open", &format!("--gateway {at}"), "");
    kill_process(Pid::from_child(&client.0), Signal::INT).unwrap();
    assert_eq!(client.0.wait().unwrap().code(), Some(130));
    wait_until_shown("0 tasks open", &format!("--gateway {at}"), "");
}

#[test]
fn input_that_is_wrong_is_counted_and_nothing_else_happens() {
    let dir = Dir::new("wrong");
    let (host, at) = ("127.61.3.1", "127.61.3.1:18831");
    let data = dir.0.display();
    let _gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            spawn(&format!(
                "follower --executor hash --id {id} --gateway 1={at} --active 1s --asleep 0s"
            ))
        })
        .collect();
    wait_until_shown("3 followers in 1 units", &format!("--gateway {at}"), "");

    let mut options = MqttOptions::new("a-stranger", host, 18_831);
    options.set_max_packet_size(1 << 21, 1 << 21);
    let (client, mut connection) = Client::new(options, 100);
    let long = vec![1; 3_000];
    let wrong: [(&str, &[u8]); 8] = [
        ("selvedge/faas/1/1", b""),
        ("selvedge/faas/1/1", &[9, 9, 9, 9]),
        ("selvedge/faas/1/1", &[1, 77, 0]),
        ("selvedge/faas/1/1", &[1, 9, 1, 0, 0xff, 0xff]),
        ("selvedge/faas/1/1", &[&[1, 9], long.as_slice()].concat()),
        ("selvedge/faas/1/1/relay/101", &[1, 9, 5, 0, 2]),
        // Frames in the name of the gateway itself, and of an unknown node.
        ("selvedge/faas/1/1", &[1, 9, 1, 0, 2]),
        ("selvedge/faas/1/101", &[1, 9, 5, 0, 2]),
    ];
    for (topic, payload) in wrong {
        client
            .publish(topic, QoS::AtLeastOnce, false, payload)
            .unwrap();
    }
    let mut left = wrong.len();
    for event in connection.iter() {
        if let Event::Incoming(Incoming::PubAck(_)) = event.unwrap() {
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    let answered = run(&format!("submit --code still-here --gateway {at}"), "");
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let shown = text(&run(&format!("top --once --counters --gateway {at}"), "").stdout);
    for counted in [
        "malformed 2",
        "versions 1",
        "kinds 1",
        "long 1",
        "not_relayed 1",
    ] {
        assert!(shown.contains(counted), "no {counted:?} in {shown}");
    }
}
