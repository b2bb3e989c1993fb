//! `selvedge claims celect --live`, as short as possible. Durations are not checked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::command::running::{Folder, Running, SELVEDGE, complaint};

/// Runs the command if the laboratory is beside it, which `cargo test --workspace` builds and this
/// package alone does not. Cargo is not asked to build it, because it belongs to another package.
fn lab(arguments: &[&str]) -> Option<Output> {
    let name = format!("selvedge-lab{}", std::env::consts::EXE_SUFFIX);
    let lab = Path::new(SELVEDGE).with_file_name(name);
    if !lab.exists() {
        eprintln!("passed over: {} was not built", lab.display());
        return None;
    }
    let mut command = Command::new(SELVEDGE);
    // As the build of another package would start it.
    command
        .env("CARGO", "nowhere")
        .env("CARGO_PKG_NAME", "another");
    Some(command.args(arguments).output().unwrap())
}

/// Without the laboratory one line explains how to get it; with it, its exit status is the
/// command's.
#[test]
fn the_laboratory_is_handed_what_was_asked_or_is_missed() {
    let folder = Folder::new("no-lab");
    let alone = folder.path(&format!("selvedge{}", std::env::consts::EXE_SUFFIX));
    fs::copy(SELVEDGE, &alone).unwrap();
    let mut command = Command::new(alone);
    let output = output_of_copy(command.arg("check").env_remove("CARGO"));
    assert_eq!(output.status.code(), Some(1));
    let notified = complaint(&output);
    assert_eq!(notified.lines().count(), 1, "{notified}");
    assert!(
        notified.contains("cargo build --release -p selvedge-lab"),
        "{notified}"
    );

    let Some(output) = lab(&["check", "camera-obscura", "--deep"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("camera-obscura"));
}

/// Runs the copy. Another test may begin a process while the copy is written, which has it open for
/// a moment.
fn output_of_copy(command: &mut Command) -> Output {
    for _ in 0..200 {
        match command.output() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(20));
            }
            output => return output.unwrap(),
        }
    }
    panic!("the copy stays open for writing");
}

#[test]
#[cfg(target_os = "linux")]
fn a_mesh_of_processes_is_measured_and_loses_its_leader() {
    let folder = Folder::new("claims-live");
    let out = folder.path("out");
    let arguments = [
        "claims",
        "celect",
        "--live",
        "--nodes",
        "3",
        "--idle",
        "3",
        "--kills",
        "1",
        "--setting",
        "200:1",
        "--simulated",
        "0",
        "--json",
        "--out",
        &out,
    ];
    let Some(output) = lab(&arguments) else {
        return;
    };
    assert!(output.status.success(), "{}", complaint(&output));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&str> = rows.iter().map(|it| it["id"].as_str().unwrap()).collect();
    let all = [
        "traffic",
        "deviation",
        "processor",
        "memory",
        "goal",
        "leader",
    ];
    assert_eq!(ids, all.map(|id| format!("E11-{id}")));
    for row in rows.iter().filter(|row| row["id"] != "E11-goal") {
        let ours: f64 = row["ours"].as_str().unwrap().parse().unwrap();
        assert!(ours.is_finite(), "{row:#}");
    }
    assert!(complaint(&output).contains("kill 1 of 1"));
    assert!(
        fs::read_to_string(format!("{out}/claims.html"))
            .unwrap()
            .contains("<svg")
    );
}

#[test]
#[cfg(unix)]
fn a_node_that_writes_json_says_who_leads_and_what_it_sent() {
    let arguments = [
        "node",
        "--plain",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--id",
        "7",
        "--period",
        "50",
    ];
    let mut node = Running::start(SELVEDGE, &arguments);
    let object = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let elected = object(&node.wait_for("\"elected\""));
    assert_eq!(elected["node"], 7);
    assert_eq!(elected["ballot"]["epoch"], 1);
    assert!(elected["at_us"].as_u64() > Some(1_600_000_000_000_000));
    let traffic = object(&node.wait_for("\"traffic\""));
    assert!(traffic["traffic"]["sent_bytes"].is_u64());
    for line in ["\"listens\"", "\"identity\"", "\"electing\""] {
        object(&node.wait_for(line));
    }
    assert!(node.interrupt().success());
}
