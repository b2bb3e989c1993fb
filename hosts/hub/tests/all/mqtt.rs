//! Devices, requests and announcements at a broker.

use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::{fs, thread};

use serde_json::Value;

use crate::broker::{Listener, Mosquitto, PATIENCE, Relay, a_free_port};
use crate::program::Hub;
use crate::support::Dir;

/// Two relays, and routines for them, at this broker.
fn home(mqtt: &str) -> String {
    format!(
        r#"{{
  "routines": [
    {{"RoutineName": "both/on", "CommandList": [
      {{"DevID": "first", "Action": "on", "hold_ms": 300}}, {{"DevID": "second", "Action": "on"}}]}},
    {{"RoutineName": "off", "CommandList": [
      {{"DevID": "first", "Action": "off"}}, {{"DevID": "second", "Action": "off"}}]}},
    {{"RoutineName": "long", "CommandList": [{{"DevID": "first", "Action": "on", "hold_ms": 60000, "undo": "off"}}]}}
  ],
  "hub": {{
    "mqtt": {mqtt},
    "devices": {{"first": {{"tasmota": {{"topic": "one"}}}}, "second": {{"tasmota": {{"topic": "two"}}}}}}
  }}
}}"#
    )
}

pub(crate) fn at(broker: SocketAddr) -> String {
    format!(r#"{{"broker": "{broker}"}}"#)
}

pub(crate) fn start(dir: &Dir, mqtt: &str) -> Hub {
    fs::write(dir.path().join("home.json"), home(mqtt)).unwrap();
    Hub::start(dir.path())
}

pub(crate) fn wait_until_all_are_up(hub: &Hub) {
    wait_for(hub, |home| {
        let mut devices = home["devices"].as_array().unwrap().iter();
        devices.all(|it| it["up"] == true && it["state"] != Value::Null)
    });
}

pub(crate) fn wait_for(hub: &Hub, so: impl Fn(&Value) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let home = hub.get("/api/home");
        if so(&home) {
            return;
        }
        assert!(Instant::now() < until, "{home}");
        thread::sleep(Duration::from_millis(30));
    }
}

fn received(relay: &Relay) -> Vec<String> {
    let received = relay.received.lock().unwrap();
    received.iter().map(|it| it.0.clone()).collect()
}

/// Runs with a broker inside of the hub, and with mosquitto if that is installed.
fn with_each_broker(name: &str, host: &str, test: impl Fn(&Dir, Hub, SocketAddr)) {
    let dir = Dir::new(&format!("{name}-inside"));
    let inside = a_free_port(host);
    let hub = start(&dir, &format!(r#"{{"listen": "{inside}"}}"#));
    test(&dir, hub, inside);
    let dir = Dir::new(&format!("{name}-mosquitto"));
    if let Some(broker) = Mosquitto::start(dir.path(), host) {
        let hub = start(&dir, &at(broker.at));
        test(&dir, hub, broker.at);
    }
}

#[test]
fn relays_are_switched_and_what_one_does_not_do_is_undone() {
    with_each_broker("relays", "127.0.0.1", |_, hub, broker| {
        let relays = ["one", "two"].map(|it| Relay::start(it, broker));
        wait_until_all_are_up(&hub);
        let id = hub.run("both%2Fon");
        hub.wait_for(id, "done");
        assert!(relays.iter().all(|it| it.is_on.load(Ordering::SeqCst)));
        let first = relays[0].received.lock().unwrap().clone();
        assert_eq!(first, [("ON".into(), false)], "once, and not retained");
        let id = hub.run("off");
        hub.wait_for(id, "done");

        // It is available, and does nothing.
        relays[1].obeys.store(false, Ordering::SeqCst);
        let id = hub.run("both%2Fon");
        let run = hub.wait_for(id, "undone");
        assert!(run["why"].as_str().unwrap().contains("second"), "{run}");
        wait_for(&hub, |home| home["devices"][0]["state"] == "off");
        assert!(!relays[0].is_on.load(Ordering::SeqCst));
        assert_eq!(received(&relays[0]), ["ON", "OFF", "ON", "OFF"]);
        relays[1].obeys.store(true, Ordering::SeqCst);
        wait_until_all_are_up(&hub);

        // Its power is cut: the broker reports that.
        relays[1].pull_out();
        wait_for(&hub, |home| home["devices"][1]["up"] == false);
        let id = hub.run("both%2Fon");
        hub.wait_for(id, "undone");
        wait_for(&hub, |home| home["devices"][0]["state"] == "off");
        assert!(!relays[0].is_on.load(Ordering::SeqCst));
    });
}

#[test]
fn a_relay_that_comes_back_does_nothing_of_what_it_missed() {
    with_each_broker("late", "127.0.0.1", |_, hub, broker| {
        // It has a session that the broker keeps, as many devices have.
        let options = |is_clean| {
            let mut it =
                rumqttc::MqttOptions::new("sleeper", broker.ip().to_string(), broker.port());
            it.set_clean_session(is_clean);
            it
        };
        let sleeper = Listener::with(options(false), &["cmnd/two/POWER"]);
        let _first = Relay::start("one", broker);
        sleeper.retain("tele/two/LWT", "Online");
        // The hub may receive it a moment later.
        let until = Instant::now() + PATIENCE;
        while hub.get("/api/home")["devices"][1]["state"] != "off" {
            assert!(Instant::now() < until, "it is never heard");
            sleeper.say("stat/two/POWER", "OFF");
            thread::sleep(Duration::from_millis(100));
        }
        wait_until_all_are_up(&hub);
        sleeper.client.disconnect().unwrap();
        drop(sleeper);
        thread::sleep(Duration::from_millis(200));
        let id = hub.run("both%2Fon");
        hub.wait_for(id, "undone");
        let sleeper = Listener::with(options(false), &["cmnd/two/POWER"]);
        let late = sleeper.all(Duration::from_secs(2));
        let late = late.iter().filter(|it| !it.payload.is_empty());
        assert_eq!(late.count(), 0, "commands are not kept for it");
    });
}

#[test]
fn a_press_is_answered_and_what_becomes_of_it_is_said() {
    with_each_broker("press", "127.0.0.1", |_, hub, broker| {
        let _relays = ["one", "two"].map(|it| Relay::start(it, broker));
        wait_until_all_are_up(&hub);
        let client = Listener::new("client", broker, &["selvedge/#"]);
        assert_eq!(client.text("selvedge/status"), "online");
        client.say("selvedge/routine/both_on/run", "PRESS");
        let answer: Value =
            serde_json::from_str(&client.text("selvedge/routine/both_on/answer")).unwrap();
        let id = answer["id"].as_u64().unwrap();
        let ends = |it: &rumqttc::Publish| {
            it.topic == format!("selvedge/run/{id}")
                && String::from_utf8_lossy(&it.payload).contains(r#""what":"done""#)
        };
        assert!(!client.wait_for("it is done", ends).retain);
        // The routine's last run is retained, and follows the event of the run.
        let later = Listener::new("later", broker, &["selvedge/#"]);
        later.wait_for("the last run is done", |it| {
            it.topic == "selvedge/routine/both_on/last"
                && serde_json::from_slice(&it.payload)
                    .is_ok_and(|last: Value| last["id"] == id && last["what"] == "done")
        });
        let other = Listener::new("other", broker, &["selvedge/device/#"]);
        let state = other.wait_for("its state", |it| {
            it.topic == "selvedge/device/first/state" && it.payload.starts_with(br#"{"state":"on""#)
        });
        assert!(state.payload.ends_with(br#""up":true}"#), "{state:?}");

        client.say("selvedge/routine/both_on/run", "NOW");
        assert!(
            client
                .text("selvedge/routine/both_on/answer")
                .contains("PRESS")
        );
        client.say("selvedge/routine/both_on/cancel", "");
        let none = client.text("selvedge/routine/both_on/answer");
        assert!(none.contains("no run of"), "{none}");

        client.say("selvedge/routine/long/run", "");
        let long = client.text("selvedge/routine/long/answer");
        client.say("selvedge/routine/both_on/cancel", "2");
        let none = client.text("selvedge/routine/both_on/answer");
        assert!(none.contains("no run 2"), "{none}");
        client.say("selvedge/routine/long/cancel", "");
        assert_eq!(client.text("selvedge/routine/long/answer"), long);
        let undone = |it: &rumqttc::Publish| {
            it.topic == "selvedge/routine/long/last"
                && String::from_utf8_lossy(&it.payload).contains(r#""what":"undone""#)
        };
        client.wait_for("it is undone", undone);
        drop(hub);
    });
}

#[test]
fn a_request_that_a_broker_retained_has_nothing_run() {
    let dir = Dir::new("retained");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let client = Listener::new("client", broker.at, &["selvedge/routine/#"]);
    client.retain("selvedge/routine/off/run", "PRESS");
    let hub = start(&dir, &at(broker.at));
    let answer = client.text("selvedge/routine/off/answer");
    assert!(answer.contains("retained"), "{answer}");
    assert_eq!(hub.get("/api/home")["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn home_assistant_discovers_what_there_is_and_what_is_gone_is_taken_back() {
    let dir = Dir::new("discovery");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let client = Listener::new("client", broker.at, &["homeassistant/#", "selvedge/status"]);
    client.retain("homeassistant/button/selvedge/gone/config", "{}");
    client.retain("homeassistant/button/other/one/config", "{}");
    let mut hub = start(&dir, &at(broker.at));
    let button = "homeassistant/button/selvedge/both_2fon/config";
    let config: Value = serde_json::from_str(&client.text(button)).unwrap();
    for (key, value) in [
        ("name", "both/on"),
        ("command_topic", "selvedge/routine/both_on/run"),
        ("payload_press", "PRESS"),
        ("availability_topic", "selvedge/status"),
        ("unique_id", "selvedge-run-both_2fon"),
    ] {
        assert_eq!(config[key], value, "{config}");
    }
    client.wait_for("the hub is there", |it| {
        it.topic == "selvedge/status" && it.payload == "online"
    });
    client.wait_for("it is taken back", |it| {
        it.topic == "homeassistant/button/selvedge/gone/config" && it.payload.is_empty()
    });
    // Home Assistant starts again.
    client.say("homeassistant/status", "online");
    client.text(button);
    // Messages of other programs are left.
    let later = Listener::new("later", broker.at, &["homeassistant/#"]);
    later.text("homeassistant/button/other/one/config");

    hub.terminate();
    client.wait_for("it says farewell", |it| {
        it.topic == "selvedge/status" && it.payload == "offline"
    });
    let hub = start(&dir, &at(broker.at));
    client.wait_for("the hub is there", |it| {
        it.topic == "selvedge/status" && it.payload == "online"
    });
    drop(hub); // By SIGKILL.
    client.wait_for("its will is said", |it| {
        it.topic == "selvedge/status" && it.payload == "offline"
    });
}

#[test]
fn a_broker_that_goes_and_comes_back_is_gone_to_again() {
    let dir = Dir::new("lost");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let at_it = broker.at;
    let hub = start(&dir, &at(at_it));
    let relays = ["one", "two"].map(|it| Relay::start(it, at_it));
    wait_until_all_are_up(&hub);
    drop(broker);
    let id = hub.run("both%2Fon");
    let run = hub.wait_for(id, "undone");
    assert!(run["why"].as_str().unwrap().contains("first"), "{run}");
    wait_for(&hub, |home| home["devices"][0]["up"] == false);
    let _broker = Mosquitto::again(dir.path(), at_it).unwrap();
    wait_until_all_are_up(&hub);
    let id = hub.run("both%2Fon");
    hub.wait_for(id, "done");
    assert!(relays.iter().all(|it| it.is_on.load(Ordering::SeqCst)));
}

/// The hub learns of them by the broker's retained messages, and needs no memory of its own.
#[test]
fn what_a_broker_retained_of_devices_and_routines_that_are_gone_is_taken_back() {
    let dir = Dir::new("taken-back");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let client = Listener::new("client", broker.at, &["selvedge/#"]);
    let ended = ["selvedge/device/old/state", "selvedge/routine/old/last"];
    let others = [
        "selvedge/device/old/other",
        "selvedge/device/old/more/state",
        "selvedge/old",
        "other/device/old/state",
    ];
    for topic in ended.iter().chain(&others) {
        client.retain(topic, "{}");
    }
    client.retain("selvedge/routine/off/last", "{}");
    for topic in ended {
        client.text(topic);
    }
    let hub = start(&dir, &at(broker.at));
    for topic in ended {
        client.wait_for("it is taken back", |it| {
            it.topic == topic && it.payload.is_empty()
        });
    }
    client.text("selvedge/device/first/state");
    drop(hub);
    let later = Listener::new("later", broker.at, &["selvedge/#", "other/#"]);
    let kept = later.all(Duration::from_secs(2));
    let kept: BTreeSet<_> = kept.iter().map(|it| it.topic.as_str()).collect();
    for topic in others {
        assert!(kept.contains(topic), "{topic}: {kept:?}");
    }
    assert!(kept.contains("selvedge/routine/off/last"), "{kept:?}");
    assert!(kept.contains("selvedge/device/second/state"), "{kept:?}");
    assert!(ended.iter().all(|it| !kept.contains(it)), "{kept:?}");
}

/// Mosquitto keeps nothing without its persistence, and the house changes while it is away.
#[test]
fn a_broker_that_has_forgotten_all_is_told_all_again() {
    let dir = Dir::new("forgotten");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let at_it = broker.at;
    let hub = start(&dir, &at(at_it));
    let _relays = ["one", "two"].map(|it| Relay::start(it, at_it));
    wait_until_all_are_up(&hub);
    let run = hub.run("off");
    hub.wait_for(run, "done");
    drop(broker);
    wait_for(&hub, |home| {
        let mut devices = home["devices"].as_array().unwrap().iter();
        devices.all(|it| it["up"] == false)
    });
    // It is published without a receiver, at once and once more.
    thread::sleep(Duration::from_millis(600));
    let _broker = Mosquitto::again(dir.path(), at_it).unwrap();
    wait_until_all_are_up(&hub);
    let listener = |topic: &str| Listener::new(topic, at_it, &[topic]).text(topic);
    assert_eq!(listener("selvedge/status"), "online");
    listener("homeassistant/button/selvedge/off/config");
    assert!(listener("selvedge/routine/off/last").contains(r#""what":"done""#));
    assert!(listener("selvedge/device/first/state").contains("off"));
    listener("selvedge/runs");
}

/// A home with this number of devices and of routines.
pub(crate) fn many(mqtt: &str, devices: usize, routines: usize) -> String {
    let device = |it| {
        format!(
            r#""d{it}": {{"mqtt": {{"command_topic": "set/{it}", "state_topic": "is/{it}", "availability_topic": "there/{it}"}}}}"#
        )
    };
    let routine = |it| {
        format!(
            r#"{{"RoutineName": "r{it}", "CommandList": [{{"DevID": "d{}", "Action": "on", "timeout_ms": 3000}}]}}"#,
            it % devices
        )
    };
    let named: Vec<_> = (0..devices)
        .map(|it| format!(r#"{{"DevID": "d{it}", "lateness_ms": 500}}"#))
        .collect();
    let devices: Vec<_> = (0..devices).map(device).collect();
    let routines: Vec<_> = (0..routines).map(routine).collect();
    format!(
        r#"{{"devices": [{}], "routines": [{}], "hub": {{"mqtt": {mqtt}, "devices": {{{}}}}}}}"#,
        named.join(", "),
        routines.join(", "),
        devices.join(", ")
    )
}

#[test]
fn many_devices_are_heard_and_many_routines_are_announced() {
    const DEVICES: usize = 700;
    const ROUTINES: usize = 500;
    let dir = Dir::new("many");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let devices = Listener::new("devices", broker.at, &[]);
    for it in 0..DEVICES {
        devices.retain(&format!("is/{it}"), "off");
        devices.retain(&format!("there/{it}"), "online");
    }
    let client = Listener::new("client", broker.at, &["homeassistant/button/#"]);
    fs::write(
        dir.path().join("home.json"),
        many(&at(broker.at), DEVICES, ROUTINES),
    )
    .unwrap();
    let hub = Hub::start(dir.path());
    // While everything is announced.
    let id = hub.run("r0");
    let run = hub.wait_for(id, "undone");
    assert!(
        run["why"].as_str().unwrap().contains("no answer"),
        "it was told: {run}"
    );
    // The hub accepts no state of it while the command may still act.
    let until = Instant::now() + PATIENCE;
    while hub.get("/api/home")["devices"][0]["state"] != "off" {
        assert!(Instant::now() < until, "it is never heard");
        devices.say("is/0", "off");
        thread::sleep(Duration::from_millis(200));
    }
    wait_until_all_are_up(&hub);
    let all = client.all(Duration::from_secs(2));
    let topics: BTreeSet<_> = all.iter().map(|it| &it.topic).collect();
    assert_eq!(topics.len(), ROUTINES);
}

#[test]
fn what_a_broker_retained_is_no_proof_after_a_restart_either() {
    let dir = Dir::new("no-proof");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    // It was on once, and lost its power; it does not receive its commands.
    let device = Listener::new("device", broker.at, &["set/0"]);
    device.retain("is/0", "on");
    device.retain("there/0", "online");
    fs::write(dir.path().join("home.json"), many(&at(broker.at), 1, 1)).unwrap();
    let hub = Hub::start(dir.path());
    wait_until_all_are_up(&hub);
    let id = hub.run("r0");
    device.wait_for("it is told", |it| it.topic == "set/0");
    drop(hub);
    let hub = Hub::start(dir.path());
    let run = hub.wait_for(id, "undone");
    assert!(run["why"].as_str().unwrap().contains("no answer"), "{run}");
}
