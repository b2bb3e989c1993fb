//! Clients of a broker that send without end.

use core::time::Duration;
use std::time::Instant;
use std::{fs, thread};

use rumqttc::QoS;

use crate::broker::{Listener, Mosquitto, PATIENCE, Relay};
use crate::mqtt::{at, many, start, wait_for, wait_until_all_are_up};
use crate::program::Hub;
use crate::support::Dir;

/// Memory in use, in kB.
fn memory(hub: &Hub) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_presses_is_answered_or_refused_and_holds_up_nothing() {
    const PRESSES: usize = 10_000;
    let dir = Dir::new("flood");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let hub = start(&dir, &at(broker.at));
    let _relays = ["one", "two"].map(|it| Relay::start(it, broker.at));
    wait_until_all_are_up(&hub);
    let before = memory(&hub);
    let client = Listener::new("client", broker.at, &["selvedge/routine/off/answer"]);
    let reported = Instant::now();
    thread::scope(|scope| {
        let presser = Listener::new("presser", broker.at, &[]);
        scope.spawn(move || {
            for _ in 0..PRESSES {
                presser.say("selvedge/routine/off/run", "PRESS");
            }
        });
        for _ in 0..20 {
            let asked = Instant::now();
            hub.get("/api/home");
            assert!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
            thread::sleep(Duration::from_millis(100));
        }
    });
    let (mut taken, mut refused) = (0, 0);
    let until = Instant::now() + PATIENCE;
    loop {
        for it in client.all(Duration::from_secs(1)) {
            match String::from_utf8_lossy(&it.payload) {
                it if it.contains("\"id\"") => taken += 1,
                it if it.contains("error") => refused += 1,
                it => panic!("{it}"),
            }
        }
        // Each run that is stored is answered.
        let accepted = hub.get("/api/home")["counts"]["accepted"].as_u64().unwrap();
        if accepted == taken {
            break;
        }
        assert!(Instant::now() < until, "{taken} answers of {accepted}");
    }
    let after = memory(&hub);
    println!(
        "{taken} taken, {refused} refused, {before} kB before, {after} after, {:?}",
        reported.elapsed()
    );
    assert!(after < before + 20_000, "{before} {after}");
    assert!(taken > 0 && refused > 0, "{taken} {refused}");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let home = hub.get("/api/home");
        let runs = home["runs"].as_array().unwrap();
        if runs.iter().all(|it| it["what"] == "done") {
            break;
        }
        assert!(Instant::now() < until, "{}", runs.len());
        thread::sleep(Duration::from_millis(100));
    }
    println!(
        "all ended after {:?}, {} kB",
        reported.elapsed(),
        memory(&hub)
    );
}

#[test]
fn a_device_that_flips_its_state_without_pause_fills_nothing_and_its_last_state_is_shown() {
    const FLIPS: usize = 100_000;
    let dir = Dir::new("flips");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    fs::write(dir.path().join("home.json"), many(&at(broker.at), 2, 2)).unwrap();
    let hub = Hub::start(dir.path());
    let device = Listener::new("device", broker.at, &[]);
    device.retain("is/1", "off");
    device.retain("there/1", "online");
    wait_for(&hub, |home| home["devices"][1]["state"] == "off");
    let before = memory(&hub);
    let begun = Instant::now();
    for nth in 0..FLIPS {
        let state = if nth % 2 == 0 { "on" } else { "off" };
        let reported = device.client.publish("is/0", QoS::AtMostOnce, false, state);
        reported.unwrap();
    }
    let most = memory(&hub);
    let until = Instant::now() + PATIENCE;
    // The broker may drop some.
    while hub.get("/api/home")["devices"][0]["state"] != "last" {
        assert!(Instant::now() < until, "{}", hub.get("/api/home"));
        device.say("is/0", "last");
        thread::sleep(Duration::from_millis(100));
    }
    let took = begun.elapsed();
    println!("{before} kB before, {most} kB behind the flips, {took:?}");
    assert!(most < before + 5_000, "{before} {most}");
}
