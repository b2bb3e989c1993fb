//! Errors in the file of a home.

use core::time::Duration;

use selvedge_hub::file::{DriverShape, HomeError, HomeFile};
use selvedge_routine::Catalogue;
use selvedge_routine::file::Format;

use crate::support::HOME;

fn refusal(text: &str) -> String {
    HomeFile::read(Format::Json, text.as_bytes(), Catalogue::new())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_routine_that_a_hub_would_refuse_is_refused_with_its_file() {
    let command = r#"{"DevID": "lamp", "Action": "dim"}"#;
    let repeated = |times: usize| {
        let repeat = format!(r#"{{"repeat": {times}, "do": [{command}]}}"#);
        HOME.replacen(&format!("[{command}]"), &format!("[{repeat}]"), 1)
    };
    let read = HomeFile::read(Format::Json, repeated(256).as_bytes(), Catalogue::new());
    assert!(read.is_ok(), "{read:?}");
    let why = refusal(&repeated(257));
    let notified =
        "routines[1]: \"light\" has 257 commands when expanded, the limit is 256: split it";
    assert_eq!(why, notified);
}

#[test]
fn a_file_that_is_wrong_is_refused_with_place_and_mend() {
    for (from, to, notified) in [
        (
            r#""fan": {"dummy""#,
            r#""fun": {"dummy""#,
            "device \"fan\" has no entry: add how it is reached",
        ),
        (r#"{"dummy": {}}"#, r#"{"dumy": {}}"#, "hub.devices.lamp"),
        (
            r#"{"takes_ms": 100}"#,
            r#"{"takes_ms": -1}"#,
            "hub.devices.fan.dummy.takes_ms",
        ),
        (
            r#"{"dummy": {}}"#,
            r#"{"kasa": {"address": "lamp"}}"#,
            "hub.devices.lamp.kasa.address",
        ),
        (
            r#""lamp": {"dummy": {}}"#,
            r#""lamp": {"kasa": {"address": "127.0.0.1:9999"}}"#,
            "routines[1].CommandList[0]: \"lamp\" is a plug, and \"dim\" is no state of it: write on or off, at line 6 column 46",
        ),
        (
            r#""lock": {"dummy": {}}"#,
            r#""lock": {"kasa": {"address": "127.0.0.1:9999"}}"#,
            "devices[1].initial: \"lock\" is a plug, and \"open\" is no state of it: write on or off, at line 2 column",
        ),
        (
            r#""hub": {"#,
            r#""hub": {"page": 1, "#,
            "unknown field `page`",
        ),
        (
            r#""DevID": "fan", "Action""#,
            r#""DevID": "van", "Action""#,
            "\"van\" is not declared",
        ),
    ] {
        assert!(HOME.contains(from), "{from}");
        let why = refusal(&HOME.replacen(from, to, 1));
        assert!(why.contains(notified), "{to}: {why}");
    }
    let more = HOME.replacen(
        r#""fan": {"dummy""#,
        r#""van": {"dummy": {}}, "fan": {"dummy""#,
        1,
    );
    assert!(refusal(&more).contains("device \"van\" is not in this file"));
}

#[test]
fn a_dummy_takes_as_long_as_is_written_and_else_thirty_milliseconds() {
    let file = HomeFile::read(Format::Json, HOME.as_bytes(), Catalogue::new()).unwrap();
    for (name, ms) in [("lamp", 30), ("fan", 100)] {
        let DriverShape::Dummy(it) = &file.drivers[name] else {
            panic!("{name} is a dummy");
        };
        assert_eq!(it.takes(), Duration::from_millis(ms), "{name}");
    }
}

#[test]
fn the_key_of_an_esphome_device_is_read_and_what_is_none_is_refused() {
    let home = r#"devices: [{DevID: pump}]
hub: {devices: {pump: {esphome: {address: "127.0.0.1:6053", entity: pump, key: "KEY"}}}}
"#;
    let read = |key: &str| {
        let text = home.replacen("KEY", key, 1);
        HomeFile::read(Format::Yaml, text.as_bytes(), Catalogue::new())
    };
    let file = read("BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=").unwrap();
    let DriverShape::Esphome(it) = &file.drivers["pump"] else {
        panic!("it is one by ESPHome");
    };
    assert_eq!(it.key, Some([7; 32]));
    for wrong in ["", "BwcH", "no key"] {
        let why = read(wrong).unwrap_err().to_string();
        assert!(why.contains("hub.devices.pump.esphome"), "{why}");
        assert!(why.contains("copy the 44 characters"), "{why}");
    }
}

#[test]
fn a_device_by_mqtt_is_there_and_gone_by_the_words_online_and_offline_unless_the_file_has_others() {
    let there_and_gone = |more: &str| {
        let text = format!(
            r#"devices: [{{DevID: heater}}]
hub:
  mqtt: {{broker: "a:1"}}
  devices: {{heater: {{mqtt: {{command_topic: a, state_topic: b, availability_topic: c{more}}}}}}}
"#
        );
        let file = HomeFile::read(Format::Yaml, text.as_bytes(), Catalogue::new()).unwrap();
        let how = file.drivers["heater"].conventions("heater");
        let it = how.unwrap().unwrap().availability.unwrap();
        assert_eq!(it.topic, "c");
        [it.there, it.ended]
    };
    assert_eq!(there_and_gone(""), ["online", "offline"]);
    let others = ", payload_available: up, payload_not_available: down";
    assert_eq!(there_and_gone(others), ["up", "down"]);
}

#[test]
fn known_devices_keep_their_ids() {
    let first = HomeFile::read(Format::Json, HOME.as_bytes(), Catalogue::new()).unwrap();
    let mut known = Catalogue::new();
    known.id_or_new("door");
    known.id_or_new("fan");
    let second = HomeFile::read(Format::Json, HOME.as_bytes(), known.clone()).unwrap();
    assert_eq!(second.home.catalogue.id("fan"), known.id("fan"));
    assert_ne!(
        second.home.catalogue.id("fan"),
        first.home.catalogue.id("fan")
    );
}

#[test]
fn yaml_says_the_same_with_the_same_places() {
    let json = HomeFile::read(Format::Json, HOME.as_bytes(), Catalogue::new());
    // Each JSON is YAML.
    let yaml = HomeFile::read(Format::Yaml, HOME.as_bytes(), Catalogue::new());
    assert_eq!(json.unwrap(), yaml.unwrap());
    let text = "
devices: [DevID: plug]
routines:
  - RoutineName: r
    mode: single
    CommandList:
      - if: {any: [{DevID: plug, equal: off}, {DevID: plug, equal: dim}]}
        then: [{DevID: plug, Action: on}]
hub:
  devices:
    plug: {kasa: {address: '127.0.0.1:9999', outlet: 256}}
";
    let read = |text: &str| HomeFile::read(Format::Yaml, text.as_bytes(), Catalogue::new());
    let why = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        why(text),
        "hub.devices.plug.kasa.outlet: invalid value: integer `256`, expected u8, at line 11 column 54"
    );
    let text = text.replace("256", "2");
    assert_eq!(
        why(&text),
        "routines[0].CommandList[0].if.any[1]: \"plug\" is a plug, and \"dim\" is no state of it: write on or off, at \
         line 7 column 47"
    );
    let home = read(&text.replace("equal: dim", "not_equal: on")).unwrap();
    let Some(DriverShape::Kasa(plug)) = home.drivers.get("plug") else {
        panic!("{home:?}");
    };
    assert_eq!(plug.outlet, Some(2));
}

#[test]
fn a_name_says_the_format() {
    for (name, format) in [
        ("home.json", Ok(Format::Json)),
        ("home.yaml", Ok(Format::Yaml)),
        ("a.json/home.yml", Ok(Format::Yaml)),
        ("home", Err(HomeError::Format)),
        ("home.toml", Err(HomeError::Format)),
        (".json", Err(HomeError::Format)),
    ] {
        assert_eq!(HomeFile::format(name.as_ref()), format, "{name}");
    }
}

#[test]
fn what_is_wrong_with_mqtt_is_told_with_its_mend() {
    let driver =
        |it: &str| HOME.replacen(r#""lamp": {"dummy": {}}"#, &format!(r#""lamp": {it}"#), 1);
    let with = |mqtt: &str, it: &str| {
        driver(it).replacen(r#""hub": {"#, &format!(r#""hub": {{"mqtt": {mqtt}, "#), 1)
    };
    const THERE: &str = r#"{"broker": "127.0.0.1:1883"}"#;
    const ZIGBEE: &str = r#"{"zigbee2mqtt": {"name": "lamp"}}"#;
    let other =
        |more: &str| format!(r#"{{"mqtt": {{"command_topic": "a", "state_topic": "b"{more}}}}}"#);
    for (text, notified) in [
        (
            driver(ZIGBEE),
            "hub.devices.lamp: it speaks MQTT, and no broker is set",
        ),
        (with("{}", ZIGBEE), "hub.mqtt: set \"broker\""),
        (
            with(r#"{"broker": "a:1", "listen": "127.0.0.1:1"}"#, ZIGBEE),
            "and not both",
        ),
        (
            with(r#"{"broker": "a"}"#, ZIGBEE),
            "hub.mqtt.broker: \"a\" is no address",
        ),
        (
            with(r#"{"broker": "a:1", "users": "u"}"#, ZIGBEE),
            "hub.mqtt.users: only a broker inside has users",
        ),
        (
            with(r#"{"broker": "a:1", "key": "k"}"#, ZIGBEE),
            "belong together",
        ),
        (
            with(r#"{"listen": "127.0.0.1:1", "ca": "c"}"#, ZIGBEE),
            "remove \"ca\"",
        ),
        (
            with(r#"{"broker": "a:1", "user": ""}"#, ZIGBEE),
            "hub.mqtt.user: it is empty",
        ),
        (
            with(r#"{"listen": "0.0.0.0:1883"}"#, ZIGBEE),
            "anyone on the network can reach 0.0.0.0:1883",
        ),
        (
            with(r#"{"listen": "127.0.0.1:1", "users": "u"}"#, ZIGBEE),
            "the hub has no name among them",
        ),
        (
            with(r#"{"broker": "a:1", "topic": "a/#"}"#, ZIGBEE),
            "hub.mqtt.topic: \"a/#\" is no topic",
        ),
        (
            with(THERE, r#"{"tasmota": {"topic": "+"}}"#),
            "hub.devices.lamp: \"cmnd/+/POWER\" is no topic",
        ),
        (
            with(THERE, &other(r#", "payload": "on""#)),
            "the payload has no {}",
        ),
        (
            with(THERE, &other(r#", "payload": "{}", "property": "p""#)),
            "remove one",
        ),
        (
            with(THERE, &other(r#", "words": {"on": "1", "off": "1"}"#)),
            "two states have the word \"1\"",
        ),
        (
            with(
                r#"{"broker": "a:1", "topic": "home", "discovery": "home"}"#,
                ZIGBEE,
            ),
            "hub.mqtt: \"topic\" and \"discovery\" are both \"home\"",
        ),
        (
            with(
                THERE,
                r#"{"mqtt": {"command_topic": "a", "state_topic": "a"}}"#,
            ),
            "hub.devices.lamp: the hub publishes at \"a\" (to \"lamp\")",
        ),
        (
            with(THERE, &other(r#", "ask_topic": "b""#)),
            "hub.devices.lamp: the hub publishes at \"b\" (to \"lamp\")",
        ),
        (
            with(THERE, &other(r#", "availability_topic": "a""#)),
            "hub.devices.lamp: the hub publishes at \"a\" (to \"lamp\")",
        ),
        (
            with(
                THERE,
                r#"{"mqtt": {"command_topic": "a", "state_topic": "selvedge/device/lamp/state"}}"#,
            ),
            "hub.devices.lamp: the hub publishes at \"selvedge/device/lamp/state\" (its own)",
        ),
        (
            with(
                THERE,
                &other(r#", "availability_topic": "selvedge/status""#),
            ),
            "hub.devices.lamp: the hub publishes at \"selvedge/status\" (its own)",
        ),
        (
            with(THERE, &other("")).replacen(
                r#""lock": {"dummy": {}}"#,
                r#""lock": {"mqtt": {"command_topic": "b", "state_topic": "c"}}"#,
                1,
            ),
            "hub.devices.lamp: the hub publishes at \"b\" (to \"lock\")",
        ),
        (
            with(THERE, r#"{"tasmota": {"topic": "lamp"}}"#),
            "\"lamp\" is a plug, and \"dim\" is no state of it",
        ),
    ] {
        let why = refusal(&text);
        assert!(why.contains(notified), "{text}: {why}");
    }
    for text in [
        with(THERE, ZIGBEE),
        with(THERE, &other("")),
        with(
            THERE,
            &other(r#", "ask_topic": "a", "availability_topic": "b""#),
        ),
        // Topics of another hub, with this hub's prefix in front.
        with(
            r#"{"broker": "a:1", "topic": "b"}"#,
            &other(r#", "availability_topic": "b/other/status""#),
        ),
        // Two devices are two properties of the same thing.
        with(THERE, &other(r#", "property": "p""#)).replacen(
            r#""lock": {"dummy": {}}"#,
            r#""lock": {"mqtt": {"command_topic": "a", "state_topic": "b", "property": "q"}}"#,
            1,
        ),
    ] {
        HomeFile::read(Format::Json, text.as_bytes(), Catalogue::new()).unwrap();
    }
}

/// A state that the device reports as another one, which the hub would never see.
#[test]
fn a_state_that_a_device_says_as_another_one_is_told_wherever_it_is_named() {
    const HOME: &str = r#"devices: [{DevID: lamp, initial: "off"}, {DevID: heater}]
scenes: {s: {lamp: "off"}}
routines:
  - RoutineName: r
    CommandList:
      - {DevID: lamp, Action: "on", undo: "off"}
      - {DevID: heater, Action: 21, if: {DevID: lamp, equal: "on"}}
      - scene: s
triggers: [{RoutineName: r, when: {DevID: lamp, equal: "off"}}]
hub:
  mqtt: {broker: "a:1"}
  devices:
    lamp: {zigbee2mqtt: {name: lamp}}
    heater: {mqtt: {command_topic: a, state_topic: b, payload: "set {}", words: {low: "15", none: ""}}}
"#;
    let read = |text: &str| HomeFile::read(Format::Yaml, text.as_bytes(), Catalogue::new());
    read(HOME).unwrap();
    let on = "\"lamp\" is never in the state \"ON\": its report of it is read as \"on\": write \"on\", at line";
    let off = on.replace("ON", "OFF").replace("\"on\"", "\"off\"");
    let (on, off) = (on, &*off);
    for (from, to, notified) in [
        (
            r#"initial: "off""#,
            r#"initial: "OFF""#,
            format!("devices[0].initial: {off} 1 column"),
        ),
        (
            r#"{lamp: "off"}"#,
            r#"{lamp: "OFF"}"#,
            format!("scenes.s.lamp: {off} 2 column"),
        ),
        (
            r#"Action: "on""#,
            r#"Action: "ON""#,
            format!("routines[0].CommandList[0]: {on} 6 column 9"),
        ),
        (
            r#"undo: "off""#,
            r#"undo: "OFF""#,
            format!("routines[0].CommandList[0].undo: {off} 6 column"),
        ),
        (
            r#"equal: "on""#,
            r#"equal: "ON""#,
            format!("routines[0].CommandList[1].if: {on} 7 column"),
        ),
        (
            r#"equal: "off""#,
            r#"equal: "OFF""#,
            format!("triggers[0].when: {off} 9 column"),
        ),
        (
            "Action: 21",
            r#"Action: "21""#,
            "\"heater\" is never in the state \"21\": its report of it is read as 21: write 21"
                .into(),
        ),
        (
            "Action: 21",
            "Action: 15",
            "never in the state 15: its report of it is read as \"low\"".into(),
        ),
        (
            "Action: 21",
            "Action: none",
            "is read as none: choose another state".into(),
        ),
    ] {
        assert!(HOME.contains(from), "{from}");
        let why = read(&HOME.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(why.contains(&notified), "{notified}: {why}");
    }
    read(&HOME.replacen("Action: 21", "Action: low", 1)).unwrap();
}

#[test]
fn homes_that_are_examples_are_read() {
    let homes = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("homes");
    let mut found = 0;
    for entry in std::fs::read_dir(homes).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().unwrap().to_str().unwrap();
        let format = Format::of_extension(extension).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = HomeFile::read(format, &bytes, Catalogue::new()).unwrap();
        assert!(file.home.routines.len() > 1, "{path:?}");
        found += 1;
    }
    assert!(found >= 2);
}
