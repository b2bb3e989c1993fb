//! Long messages at a broker.

use core::time::Duration;
use std::{fs, thread};

use serde_json::Value;

use crate::broker::{Listener, Mosquitto, a_free_port};
use crate::mqtt::{at, many, wait_for};
use crate::program::Hub;
use crate::support::Dir;

#[test]
fn a_message_of_some_hundred_thousand_bytes_ends_no_link() {
    let dir = Dir::new("long-in");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let device = Listener::new("device", broker.at, &["selvedge/status"]);
    device.retain("is/0", &" ".repeat(1_000_000));
    device.retain("there/0", "online");
    device.retain("is/1", "off");
    device.retain("there/1", "online");
    fs::write(dir.path().join("home.json"), many(&at(broker.at), 2, 2)).unwrap();
    let hub = Hub::start(dir.path());
    // A payload of this length is no state.
    wait_for(&hub, |home| home["devices"][1]["state"] == "off");
    assert_eq!(hub.get("/api/home")["devices"][0]["state"], Value::Null);
    assert_eq!(device.text("selvedge/status"), "online");
    thread::sleep(Duration::from_millis(500));
    let later = device.all(Duration::from_millis(100));
    assert!(later.is_empty(), "{later:?}");
}

/// As a message of Zigbee2MQTT, which sends all its devices in one.
#[test]
fn a_long_message_goes_through_the_broker_inside() {
    let dir = Dir::new("long-inside");
    let listen = a_free_port("127.0.0.1");
    let home = many(&format!(r#"{{"listen": "{listen}"}}"#), 1, 1);
    fs::write(dir.path().join("home.json"), home).unwrap();
    let _hub = Hub::start(dir.path());
    let client = Listener::new("client", listen, &["zigbee2mqtt/bridge/devices", "last"]);
    let long = "x".repeat(400_000);
    client.say("zigbee2mqtt/bridge/devices", &long);
    client.say("last", "here");
    assert_eq!(client.text("zigbee2mqtt/bridge/devices").len(), long.len());
    assert_eq!(client.text("last"), "here");
}

#[test]
fn a_long_run_of_devices_with_long_names_is_announced_in_short_and_ends_no_link() {
    // The largest number of commands of a routine.
    const STEPS: usize = 256;
    let dir = Dir::new("long-out");
    let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") else {
        return;
    };
    let name = "x".repeat(250);
    let steps = vec![format!(r#"{{"DevID": "{name}", "Action": "on"}}"#); STEPS].join(", ");
    let home = format!(
        r#"{{"devices": [{{"DevID": "{name}", "initial": "off"}}],
          "routines": [{{"RoutineName": "long", "CommandList": [{steps}]}}],
          "hub": {{"mqtt": {}, "devices": {{"{name}": {{"dummy": {{"takes_ms": 5000}}}}}}}}}}"#,
        at(broker.at)
    );
    fs::write(dir.path().join("home.json"), home).unwrap();
    let client = Listener::new("client", broker.at, &["selvedge/#"]);
    let hub = Hub::start(dir.path());
    assert_eq!(client.text("selvedge/status"), "online");
    let id = hub.run("long");
    let last = client.text("selvedge/routine/long/last");
    let last: Value = serde_json::from_str(&last).unwrap();
    let reported = last["steps"].as_array().unwrap();
    let more = STEPS + 1 - reported.len();
    let mark = format!("… {more} more are left out: see /api/runs/{id}");
    assert_eq!(reported.last().unwrap(), &mark);
    let whole = hub.get(&format!("/api/runs/{id}"));
    assert_eq!(whole["steps"].as_array().unwrap().len(), STEPS);
    // After a lost link everything would be published again.
    let later = client.all(Duration::from_secs(1));
    assert!(later.iter().all(|it| it.topic != "selvedge/status"));
}
