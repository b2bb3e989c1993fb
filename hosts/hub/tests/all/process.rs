//! The program itself: over HTTP, and killed.

use core::time::Duration;
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Instant;
use std::{fs, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Span, Time};
use selvedge_hub::event_loop::Readers;
use selvedge_hub::house::{House, Moment};
use selvedge_hub::http;
use selvedge_hub::http::metrics::{Metrics, write_seconds};
use selvedge_routine::file::Home;
use selvedge_safehome::Config;

use crate::program::{Hub, ask};
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
    // "light" follows, and the view is a moment behind.
    while !hub
        .get("/api/home")
        .to_string()
        .contains(r#""state":"dim""#)
    {
        assert!(Instant::now() < until, "{}", hub.get("/api/home"));
        thread::sleep(Duration::from_millis(50));
    }
    for (method, path, header, status, notified) in [
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
            "run and cancel with POST",
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
        assert!(answer.1.contains(notified), "{method} {path}: {answer:?}");
    }
    let (status, page) = hub.ask("GET", "/", "");
    assert_eq!(status, 200);
    assert!(page.contains("<title>Selvedge") && !page.contains("NONCE"));
    let (status, numbers) = hub.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    let devices = "selvedge_hub_devices{up=\"true\"} 3\n";
    assert!(numbers.contains(devices), "{numbers}");
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
    let notified = String::from_utf8(second.stderr).unwrap();
    assert!(
        notified.contains("another process uses the folder"),
        "{notified}"
    );
}

/// No client asks for the run, which would update the view.
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
    let notified = hub.wait_for(id, "done");
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
    // Without the device that came last, and then with another device.
    for devices in [["lamp", "lock"], ["lamp", "siren"]] {
        fs::write(&path, other(devices)).unwrap();
        let hub = Hub::start(dir.path());
        assert_eq!(hub.get(&format!("/api/runs/{id}")), notified, "{devices:?}");
        let shown = hub.get("/api/home");
        let shown = shown["devices"].as_array().unwrap().iter();
        let names: Vec<_> = shown.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, devices);
    }
}

fn only_reads(arguments: &[&str], text: &str) -> (bool, String, String) {
    let dir = Dir::new("reads");
    let path = dir.path().join("home.yaml");
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-hub"));
    let output = command.arg(&path).args(arguments).current_dir(dir.path());
    let output = output.output().unwrap();
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "it makes nothing"
    );
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn what_is_odd_in_a_file_is_told_and_what_is_wrong_ends_it() {
    const HOME: &str = "devices: [{DevID: lamp}]\nroutines:\n\
        - {RoutineName: a, CommandList: [{DevID: lamp, Action: \"on\"}]}\n\
        - {RoutineName: b, CommandList: [{DevID: lamp, Action: \"On\"}]}\n\
        hub: {devices: {lamp: {dummy: {}}}}\n";
    let (is_fine, out, notified) = only_reads(&["--check"], HOME);
    assert!(is_fine && out.is_empty(), "{notified}");
    assert!(
        notified.contains("home.yaml: routines[1].CommandList[0]"),
        "{notified}"
    );
    assert!(notified.contains("\"On\""), "{notified}");
    let (is_fine, _, notified) = only_reads(&["--check"], &HOME.replace("dummy", "dumy"));
    assert!(!is_fine && notified.contains("dumy"), "{notified}");
}

#[test]
fn scripts_of_home_assistant_become_a_homes_file() {
    const SCRIPTS: &str = "evening:\n  mode: restart\n  sequence:\n  - action: switch.turn_on\n    \
        target: {entity_id: switch.lamp}\n";
    let (is_fine, out, notified) = only_reads(&["--from-home-assistant"], SCRIPTS);
    assert!(is_fine && notified.is_empty(), "{notified}");
    for part in ["evening", "switch.lamp", "restart"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let missed = SCRIPTS.replace("switch.turn_on", "notify.all");
    let (is_fine, out, notified) = only_reads(&["--from-home-assistant"], &missed);
    assert!(!is_fine && out.is_empty());
    assert!(notified.contains("notify.all"), "{notified}");
}

/// The page is still served while the house is stored for the last time.
#[test]
fn a_hub_that_has_stopped_says_so() {
    let home = Home::read(HOME.as_bytes()).unwrap();
    let (rng, now) = (
        ChaCha12Rng::seed_from_u64(7),
        Moment {
            now: Time::ZERO,
            wall: 0,
        },
    );
    let none = |_| Span::ZERO;
    let house = House::new(&home, Config::default(), none, &[], None, rng, now).unwrap();
    let notify = Readers::new(&house, None);
    let metrics = Metrics::new(notify.view.subscribe(), write_seconds());
    let (to_house, requests) = channel();
    drop(requests);
    let router = http::router(
        notify.json.subscribe(),
        to_house,
        http::page().unwrap(),
        metrics,
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let _serving = thread::spawn(move || {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await
        })
    });
    for (method, path) in [
        ("POST", "/api/routines/light/run"),
        ("GET", "/api/routines/light/preview"),
        ("GET", "/api/runs/1"),
        ("POST", "/api/runs/1/cancel"),
    ] {
        let (status, body) = ask(&address.to_string(), method, path, "");
        assert_eq!(status, 503, "{method} {path}: {body}");
        assert!(body.contains("the hub is about to stop"), "{body}");
    }
    let (status, body) = ask(&address.to_string(), "GET", "/api/home", "");
    assert!(status == 200 && body.contains("lamp"), "{body}");
}
