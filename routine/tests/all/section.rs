//! The part of a file that a host reads by itself.

use std::collections::BTreeMap;

use selvedge_routine::file::{FileError, Format, Home, section};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    devices: BTreeMap<String, Driver>,
    #[serde(default)]
    level: f64,
    pair: (u8, i64),
    name: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Driver {
    Plain,
    Plug(Plug),
    Strip { outlet: u8 },
    Two(u8, bool),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plug {
    address: core::net::SocketAddr,
}

const YAML: &str = "
devices: [DevID: lamp]
hub:
  devices:
    lamp: plain
    fan: {plug: {address: '127.0.0.1:9999'}}
    radio:
      strip: {outlet: 3}
    door: {two: [1, true]}
  level: 1.5e1
  pair: [255, -7]
  name: ~
";

fn read(text: &str) -> Result<Option<Part>, FileError> {
    Home::read_as(Format::Yaml, text.as_bytes(), Default::default()).unwrap();
    section(Format::Yaml, text.as_bytes(), "hub")
}

#[test]
fn a_part_is_read_by_its_type_in_both_formats() {
    let plug = Plug {
        address: ([127, 0, 0, 1], 9_999).into(),
    };
    let drivers = [
        ("lamp", Driver::Plain),
        ("fan", Driver::Plug(plug)),
        ("radio", Driver::Strip { outlet: 3 }),
        ("door", Driver::Two(1, true)),
    ];
    let part = Part {
        devices: drivers.map(|(name, it)| (name.into(), it)).into(),
        level: 15.0,
        pair: (255, -7),
        name: None,
    };
    assert_eq!(read(YAML).unwrap(), Some(part));
    let json =
        r#"{"hub": {"devices": {"lamp": {"strip": {"outlet": 3}}}, "pair": [0, 0], "name": "n"}}"#;
    let part: Part = section(Format::Json, json.as_bytes(), "hub")
        .unwrap()
        .unwrap();
    assert_eq!(part.devices["lamp"], Driver::Strip { outlet: 3 });
    assert_eq!(part.name.as_deref(), Some("n"));
    assert_eq!(read("devices: [DevID: lamp]"), Ok(None));
    let one = r#"{"RoutineName": "r", "CommandList": [{"DevID": "d", "Action": 1}]}"#;
    assert_eq!(read(one), Ok(None));
}

#[test]
fn what_the_type_refuses_is_told_with_its_place() {
    for (from, to, reported) in [
        (
            "outlet: 3",
            "outlets: 3",
            "hub.devices.radio.strip.outlets: unknown field `outlets`, expected `outlet`, at line 8 column 15",
        ),
        (
            "outlet: 3",
            "outlet: 256",
            "hub.devices.radio.strip.outlet: invalid value: integer `256`, expected u8, at line 8 column 23",
        ),
        (
            "outlet: 3",
            "outlet: 3, outlet: 4",
            "hub.devices.radio.strip.outlet: the key \"outlet\" is there twice: remove one of them, at line 8 column 26",
        ),
        (
            "{outlet: 3}",
            "{}",
            "hub.devices.radio.strip: missing field `outlet`, at line 8 column 14",
        ),
        (
            "lamp: plain",
            "lamp: plane",
            "hub.devices.lamp: unknown variant `plane`",
        ),
        (
            "lamp: plain",
            "lamp: {plane: 1}",
            "hub.devices.lamp.plane: unknown variant `plane`",
        ),
        (
            "lamp: plain",
            "lamp: {plain: 1}",
            "hub.devices.lamp.plain: invalid type: integer `1`, expected unit, at line 5 column 19",
        ),
        (
            "lamp: plain",
            "lamp: {}",
            "hub.devices.lamp: 0 keys are there: give one",
        ),
        (
            "lamp: plain",
            "lamp: [plain]",
            "hub.devices.lamp: found a list: give an object",
        ),
        (
            "127.0.0.1:9999",
            "lamp",
            "hub.devices.fan.plug.address: invalid socket address syntax, at line 6 column 27",
        ),
        (
            "[1, true]",
            "[1, true, 2]",
            "hub.devices.door.two: found 3 entries: give 2",
        ),
        ("[1, true]", "[1]", "hub.devices.door.two: invalid length 1"),
        (
            "[1, true]",
            "[1, 2]",
            "hub.devices.door.two[1]: invalid type: integer `2`, expected a boolean, at line 9 column 21",
        ),
        (
            "  name: ~",
            "  name: ~\n  more: 1",
            "hub.more: unknown field `more`",
        ),
    ] {
        assert!(YAML.contains(from), "{from}");
        let error = read(&YAML.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            error.starts_with(reported) || error.contains(reported),
            "{to}: {error}"
        );
        assert!(error.contains(", at line "), "{error}");
    }
    let error = section::<Part>(Format::Json, b"{", "hub").unwrap_err();
    assert!(matches!(error, FileError::Form { .. }));
}

/// A list of lists, to any depth.
#[derive(Debug, PartialEq, Deserialize)]
struct Deep(Vec<Self>);

#[test]
fn lists_and_objects_are_nested_to_their_limit() {
    let read = |format, lists: usize, inner: &str| {
        let text = format!(
            "{{\"hub\": {}{inner}{}}}",
            "[".repeat(lists),
            "]".repeat(lists)
        );
        section::<Deep>(format, text.as_bytes(), "hub").map(|it| {
            let mut depth = 0;
            let mut at = it.unwrap();
            while let Some(next) = at.0.pop() {
                at = next;
                depth += 1;
            }
            depth + 1
        })
    };
    for format in [Format::Json, Format::Yaml] {
        assert_eq!(
            read(format, 63, ""),
            Ok(63),
            "with the object around them, 64"
        );
        let reported = read(format, 64, "1").unwrap_err().to_string();
        assert!(reported.contains("nested more than 64 deep"), "{reported}");
    }
    // A scalar in the innermost list is within the limit, and is refused for its type.
    let reported = read(Format::Yaml, 63, "1").unwrap_err().to_string();
    assert!(reported.contains("invalid type: integer `1`"), "{reported}");
}

#[derive(Debug)]
struct Level;

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Plug::deserialize(deserializer);
        let why = |error| serde::de::Error::custom(format!("no level: {error}"));
        read.map(|_| Self).map_err(why)
    }
}

#[test]
fn what_a_type_says_about_the_error_of_another_is_told() {
    let error = section::<Level>(Format::Yaml, b"hub: {address: lamp}", "hub").unwrap_err();
    let reported = error.to_string();
    assert!(
        reported.contains("no level: hub.address: invalid socket address syntax"),
        "{reported}"
    );
    let error = section::<Level>(Format::Yaml, b"hub: {}", "hub").unwrap_err();
    let reported = error.to_string();
    assert!(
        reported.contains("no level: hub: missing field `address`"),
        "{reported}"
    );
}
