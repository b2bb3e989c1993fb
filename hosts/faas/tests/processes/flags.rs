//! Flags that contradict each other, or have no effect: nothing starts, and the error has the
//! remedy.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Dir, Node, command, run, spawn, text, wait_for};

fn refused(arguments: &str, password: &str, notified: &str) {
    let ended = run(arguments, password);
    let why = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{arguments}: {why}");
    assert!(why.contains(notified), "{arguments}: {why}");
}

#[test]
fn a_name_has_a_password_and_a_password_a_name() {
    let dir = Dir::new("names");
    let data = dir.file("1");
    for start in [
        format!("gateway --id 1 --listen 127.61.25.1:18831 --data {data} --first"),
        "submit --code x --gateway 1=127.61.25.1:18831".into(),
        "follower --id 101 --gateway 1=127.61.25.1:18831".into(),
        "top --once --gateway 1=127.61.25.1:18831".into(),
    ] {
        refused(&start, "sesame", "give --user");
        let named = format!("{start} --user node");
        refused(&named, "", "SELVEDGE_FAAS_PASSWORD");
        let nameless = format!("{start} --user=");
        refused(&nameless, "sesame", "--user has no name");
    }
}

#[cfg(unix)]
#[test]
fn a_password_that_is_no_text_is_not_the_empty_one() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let mut submit = command(
        "submit --code x --gateway 1=127.61.25.1:18831 --user node",
        "",
    );
    submit.env("SELVEDGE_FAAS_PASSWORD", OsStr::from_bytes(b"\xff"));
    let ended = submit.output().unwrap();
    let why = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{why}");
    assert!(why.contains("not UTF-8"), "{why}");
}

#[test]
fn a_gateway_tells_an_address_that_others_find() {
    let dir = Dir::new("addresses");
    let data = dir.file("1");
    let peers = "--peer 2=127.61.25.2:1 --peer 2=127.61.25.3:1";
    for (flags, notified) in [
        ("--listen 0.0.0.0:18831", "give --advertise HOST:PORT"),
        ("--listen [::]:18831", "give --advertise HOST:PORT"),
        ("--listen 127.61.25.1:0", "port 0"),
        (peers, "twice"),
    ] {
        let start = format!("gateway --id 1 --data {data} --first {flags}");
        refused(&start, "", notified);
    }
}

#[test]
fn a_demo_has_followers_for_a_unit() {
    for followers in ["0", "1"] {
        let start = format!("demo --seconds 1 --followers {followers}");
        refused(&start, "", "--followers");
    }
}

#[test]
fn a_single_picture_waits_for_what_gateways_say() {
    let begun = Instant::now();
    let shown = run("top --once --gateway 1=127.61.25.6:1", "");
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert!(text(&shown.stdout).contains("has sent nothing yet"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_client_that_has_asked_for_nothing_yet() {
    use rustix::process::{Pid, Signal, kill_process};

    let gcd = concat!(env!("CARGO_MANIFEST_DIR"), "/functions/gcd.wasm");
    let mut submit = command(&format!("submit {gcd} --gateway 1=127.61.25.7:1"), "");
    let mut client = Node(submit.stderr(Stdio::piped()).spawn().unwrap());
    client.wait_until_said("no gateway has answered for 5 s");
    kill_process(Pid::from_child(&client.0), Signal::INT).unwrap();
    assert_eq!(client.0.wait().unwrap().code(), Some(130));
}

#[test]
fn a_client_waits_for_followers_and_not_for_gateways_that_are_gone() {
    let silent = run("submit --code x --gateway 1=127.61.25.4:1 --timeout 6", "");
    let why = text(&silent.stderr);
    assert_eq!(silent.status.code(), Some(1), "{why}");
    // One line, and not earlier.
    let quiet = why.matches("no gateway has answered for 5 s").count();
    assert_eq!(quiet, 1, "{why}");
    assert!(
        why.contains("no gateway has answered for 6 s: check"),
        "{why}"
    );

    let (dir, at) = (Dir::new("patience"), "127.61.25.5:18831");
    let data = dir.file("1");
    let gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let submit = format!("submit --code x --gateway 1={at} --timeout 3");
    let mut client = command(&submit, "");
    let mut client = client.spawn().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(
            client.try_wait().unwrap(),
            None,
            "its task waits for a unit"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(gateway);
    assert_eq!(client.wait().unwrap().code(), Some(1));
}
