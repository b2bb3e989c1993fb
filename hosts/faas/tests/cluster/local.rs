//! A mesh for trying functions.

use std::net::TcpStream;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Dir, Node, command, run, text, wait_for, wait_until_shown};

#[test]
fn a_local_mesh_runs_functions_and_nothing_of_it_stays_when_it_ends() {
    let at = "127.0.0.1:28831";
    let dir = Dir::new("local");
    let start = || {
        let mut command = command("local --port 28831 --active 200", "");
        Node(command.env("TMPDIR", &dir.0).spawn().unwrap())
    };
    // An end while it starts.
    let mut early = start();
    while fs::read_dir(&dir.0).unwrap().next().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&early.0), Signal::TERM).unwrap();
    assert_eq!(early.0.wait().unwrap().code(), Some(0));
    assert!(fs::read_dir(&dir.0).unwrap().next().is_none());

    let mut local = start();
    wait_for(at);
    wait_until_shown("5 followers in 1 units", &format!("--gateway {at}"), "");
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/functions");
    let gcd = format!("submit {functions}/gcd.wasm --gateway {at} --call gcd");
    let answered = run(&format!("{gcd} --arg 84i64 --arg 36i64"), "");
    assert_eq!(text(&answered.stdout), "12i64\n");
    assert!(fs::read_dir(&dir.0).unwrap().next().is_some());
    kill_process(Pid::from_child(&local.0), Signal::INT).unwrap();
    assert_eq!(local.0.wait().unwrap().code(), Some(0));
    assert!(fs::read_dir(&dir.0).unwrap().next().is_none());
    assert!(TcpStream::connect(at).is_err(), "the gateways are gone");
}
