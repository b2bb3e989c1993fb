//! `selvedge claims celect --live`, as short as it can be. How long anything takes is not asked.

use std::fs;

use serde_json::Value;

use crate::running::{Folder, Running, SELVEDGE, complaint, selvedge};

#[test]
fn what_is_no_setting_or_not_for_elections_is_refused() {
    let live = |arguments: &[&str]| {
        let output = selvedge(&[&["claims"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        complaint(&output)
    };
    let told = live(&["celect", "--live", "--setting", "10:1"]);
    assert!(
        told.contains("10:1") && told.contains("PERIOD_MS"),
        "{told}"
    );
    assert!(live(&["M6", "--live"]).contains("M6"));
    assert!(live(&["M6", "--idle", "5"]).contains("--live"));
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
    let output = selvedge(&arguments);
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
