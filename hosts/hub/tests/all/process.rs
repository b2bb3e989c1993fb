//! The program itself: over HTTP, and killed.

use core::time::Duration;
use std::process::Command;
use std::time::Instant;
use std::{fs, thread};

use crate::program::Hub;
use crate::support::{Dir, HOME};

fn home(name: &str) -> Dir {
    let dir = Dir::new(name);
    fs::write(dir.path().join("home.json"), HOME).unwrap();
    dir
}

#[test]
fn a_routine_is_run_and_seen_and_what_is_wrong_is_refused() {
    let dir = home("run");
    let hub = Hub::start(dir.path());
    let id = hub.run("evening");
    let run = hub.wait_for(id, "done");
    assert_eq!(run["name"], "evening");
    assert_eq!(run["steps"][1], "fan: 3");
    let until = Instant::now() + Duration::from_secs(10);
    // "light" follows, and what is shown is a moment behind.
    while !hub
        .get("/api/home")
        .to_string()
        .contains(r#""state":"dim""#)
    {
        assert!(Instant::now() < until, "{}", hub.get("/api/home"));
        thread::sleep(Duration::from_millis(50));
    }
    for (method, path, header, status, told) in [
        (
            "POST",
            "/api/routines/nothing/run",
            "",
            404,
            "there is no routine \\\"nothing\\\"",
        ),
        (
            "POST",
            "/api/runs/999/cancel",
            "",
            404,
            "run 999 is unknown, or finished",
        ),
        (
            "POST",
            "/api/runs/1/cancel",
            "",
            404,
            "run 1 is unknown, or finished",
        ),
        ("GET", "/api/runs/x", "", 404, "a run is a number"),
        ("GET", "/api/nothing", "", 404, "there is nothing here"),
        (
            "GET",
            "/api/routines/evening/run",
            "",
            405,
            "asked for with POST",
        ),
        (
            "POST",
            "/api/routines/evening/run",
            "origin: http://elsewhere.example\r\n",
            403,
            "another site",
        ),
        ("POST", "/api/routines/%ff/run", "", 400, "Invalid UTF-8"),
    ] {
        let answer = hub.ask(method, path, header);
        assert_eq!(answer.0, status, "{method} {path}: {answer:?}");
        assert!(answer.1.contains(told), "{method} {path}: {answer:?}");
    }
    let (status, page) = hub.ask("GET", "/", "");
    assert_eq!(status, 200);
    assert!(page.contains("<title>Selvedge") && !page.contains("NONCE"));
}

#[test]
fn a_run_that_was_answered_survives_a_kill_and_ends_once() {
    let dir = home("kill");
    let hub = Hub::start(dir.path());
    let id = hub.run("slow");
    drop(hub); // As soon as it has answered.
    let hub = Hub::start(dir.path());
    hub.wait_for(id, "runs");
    drop(hub);
    let hub = Hub::start(dir.path());
    let run = hub.wait_for(id, "done");
    assert_eq!(run["place"], 1);
    drop(hub);
    let hub = Hub::start(dir.path());
    assert_eq!(hub.get(&format!("/api/runs/{id}")), run);
    assert_eq!(hub.run("light"), id + 1);
}

#[test]
fn a_run_is_undone_on_request() {
    let dir = home("undo");
    let hub = Hub::start(dir.path());
    let id = hub.run("slow");
    hub.wait_for(id, "runs");
    let (status, _) = hub.ask("POST", &format!("/api/runs/{id}/cancel"), "");
    assert_eq!(status, 202);
    let run = hub.wait_for(id, "undone");
    assert_eq!(run["why"], "it was cancelled");
    let until = Instant::now() + Duration::from_secs(10);
    while hub.get("/api/home")["devices"][1]["state"] != "off" {
        assert!(Instant::now() < until, "{}", hub.get("/api/home"));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn two_hubs_do_not_share_a_folder() {
    let dir = home("two");
    let _first = Hub::start(dir.path());
    let second = Command::new(env!("CARGO_BIN_EXE_selvedge-hub"))
        .arg(dir.path().join("home.json"))
        .arg("--state")
        .arg(dir.path().join("state"))
        .args(["--http", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert!(!second.status.success());
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(told.contains("another hub runs with the folder"), "{told}");
}

/// Nobody asks for the run, which would have it shown anew.
#[test]
fn what_ends_by_time_alone_is_shown() {
    let dir = home("time");
    let hub = Hub::start(dir.path());
    hub.run("rest");
    let until = Instant::now() + Duration::from_secs(10);
    while hub.get("/api/home")["runs"][0]["what"] != "done" {
        assert!(Instant::now() < until, "{}", hub.get("/api/home"));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_device_that_is_gone_from_the_file_keeps_its_name_in_what_was_told() {
    let dir = home("gone");
    let path = dir.path().join("home.json");
    let hub = Hub::start(dir.path());
    let id = hub.run("evening");
    let told = hub.wait_for(id, "done");
    drop(hub);
    let other = |devices: [&str; 2]| {
        let named = devices
            .map(|it| format!(r#"{{"DevID": "{it}"}}"#))
            .join(", ");
        let drivers = devices
            .map(|it| format!(r#""{it}": {{"dummy": {{}}}}"#))
            .join(", ");
        format!(r#"{{"devices": [{named}], "hub": {{"devices": {{{drivers}}}}}}}"#)
    };
    // Without the one that came last, and with another one after that.
    for devices in [["lamp", "lock"], ["lamp", "siren"]] {
        fs::write(&path, other(devices)).unwrap();
        let hub = Hub::start(dir.path());
        assert_eq!(hub.get(&format!("/api/runs/{id}")), told, "{devices:?}");
        let shown = hub.get("/api/home");
        let shown = shown["devices"].as_array().unwrap().iter();
        let names: Vec<_> = shown.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, devices);
    }
}
