//! Tasks while processes are killed, over the broker inside and over mosquitto.

use std::env;
use std::process::Command;

use crate::support::{PROGRAM, text};

fn seconds() -> u64 {
    let seconds = env::var("SELVEDGE_FAAS_SECONDS").ok();
    seconds.map_or(20, |it| it.parse().unwrap())
}

/// Runs a successful demo.
fn demo(seconds: u64, more: &[&str]) {
    let mut command = Command::new(PROGRAM);
    let seconds = seconds.to_string();
    command.args(["demo", "--seconds", &seconds]).args(more);
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(
        out.contains("each task has exactly one answer, the right one"),
        "{out}"
    );
    println!("{out}");
}

#[test]
fn each_task_has_one_answer_while_gateways_and_followers_are_killed() {
    demo(seconds(), &[]);
}

/// A request that arrives at this moment must not be lost. Its repetition would hide that here: the tests of the
/// follower's host show it.
#[test]
fn each_task_has_one_answer_while_followers_fall_asleep_all_the_time() {
    let calm = "--calm --every 30 --active 100 --asleep 100";
    let calm: Vec<&str> = calm.split(' ').collect();
    demo(10, &calm);
}

#[test]
fn each_task_has_one_answer_where_mosquitto_has_the_mailboxes() {
    let named = env::var("SELVEDGE_MOSQUITTO");
    let program = named.unwrap_or_else(|_| "mosquitto".into());
    let is_there = Command::new(&program).arg("-h").output().is_ok();
    if !is_there {
        let required = env::var_os("SELVEDGE_MOSQUITTO_REQUIRED").is_some();
        assert!(!required, "no {program}: apt-get install mosquitto");
        println!("skipped: no {program}; apt-get install mosquitto, or set SELVEDGE_MOSQUITTO");
        return;
    }
    demo(seconds(), &["--mosquitto", &program]);
}
