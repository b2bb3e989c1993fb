//! The reasons why devices do not answer, and a log without a reader.

use core::time::Duration;
use std::io::{BufRead as _, Read as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{fs, thread};

use serde_json::Value;

use crate::board::Board;
use crate::broker::PATIENCE;
use crate::plug::Plug;
use crate::program::Hub;
use crate::support::Dir;

fn wait_for(hub: &Hub, so: impl Fn(&Value) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let home = hub.get("/api/home");
        if so(&home["devices"]) {
            return;
        }
        assert!(Instant::now() < until, "{home}");
        thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn why_a_device_does_not_answer_is_logged_once_and_shown_while_it_is_down() {
    let (locked, open, strip) = (Board::start(true), Board::start(false), Plug::start());
    // The port is free now.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let no_node = free.local_addr().unwrap();
    drop(free);
    let dir = Dir::new("trouble");
    let esphome =
        |at, more| format!(r#"{{"esphome": {{"address": "{at}", "entity": "water_pump"{more}}}}}"#);
    let key = r#", "key": "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=""#;
    let home = format!(
        r#"{{"devices": [{}],
          "hub": {{"devices": {{
            "a": {}, "b": {}, "c": {}, "d": {},
            "e": {{"kasa": {{"address": "{}", "outlet": 7}}}}, "f": {{"kasa": {{"address": "{no_node}"}}}}}}}}}}"#,
        ["a", "b", "c", "d", "e", "f"]
            .map(|it| format!(r#"{{"DevID": "{it}"}}"#))
            .join(", "),
        esphome(locked.at, ""),
        esphome(locked.at, key),
        esphome(open.at, key),
        esphome(open.at, "").replace("water_pump", "heater"),
        strip.address,
    );
    fs::write(dir.path().join("home.json"), home).unwrap();
    let (hub, stderr) = Hub::with(dir.path(), &[]);
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&lines);
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            all.lock().unwrap().push(line);
        }
    });
    let all = [
        ("a", "the device requires a key: set "),
        ("b", "no connection with this key (Handshake MAC failure)"),
        ("c", "the device does not encrypt: remove "),
        ("d", "the device has no switch and no light "),
        (
            "e",
            "the strip has no outlet 7: outlets are numbered from 0",
        ),
        ("f", "no connection (Connection refused"),
    ];
    wait_for(&hub, |devices| {
        devices
            .as_array()
            .unwrap()
            .iter()
            .zip(all)
            .all(|(it, (_, why))| {
                it["up"] == false && it["why"].as_str().is_some_and(|it| it.contains(why))
            })
    });
    // Some looks later.
    thread::sleep(Duration::from_secs(5));
    for (name, why) in all {
        let lines = lines.lock().unwrap();
        let name = format!("name=\"{name}\"");
        let notified = lines
            .iter()
            .filter(|it| it.contains(&name) && it.contains("WARN"));
        let notified: Vec<_> = notified.collect();
        assert!(
            notified.len() == 1 && notified[0].contains(why),
            "{why}: {lines:#?}"
        );
    }
    let _plug = Plug::at(no_node);
    wait_for(&hub, |devices| {
        devices[5]["up"] == true && devices[5]["why"] == Value::Null
    });
}

/// More than a pipe and the queue before it take.
#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    const RUNS: usize = 1_000;
    let dir = Dir::new("stalled");
    let name = "r".repeat(250);
    let home = format!(
        r#"{{"devices": [{{"DevID": "lamp", "initial": "off"}}],
          "routines": [{{"RoutineName": "{name}", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}}],
          "hub": {{"devices": {{"lamp": {{"dummy": {{"takes_ms": 0}}}}}}}}}}"#
    );
    fs::write(dir.path().join("home.json"), home).unwrap();
    let (mut hub, mut stalled) = Hub::with(dir.path(), &["--log", "debug"]);
    for nth in 1..=RUNS {
        let asked = Instant::now();
        let id = hub.run(&name);
        if nth % 50 == 0 {
            hub.wait_for(id, "done");
        }
        let took = asked.elapsed();
        assert!(took < PATIENCE, "{id}: {took:?}");
    }
    let asked = Instant::now();
    hub.terminate();
    let took = asked.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    // The pipe is full, and the queue before it was.
    let mut reported = Vec::new();
    stalled.read_to_end(&mut reported).unwrap();
    let lines = reported.iter().filter(|it| **it == b'\n').count();
    assert!(
        reported.len() > 60_000 && lines < RUNS,
        "{} {lines}",
        reported.len()
    );
}
