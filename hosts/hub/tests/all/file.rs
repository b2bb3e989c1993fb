//! What a home's file is refused for.

use selvedge_hub::file::HomeFile;
use selvedge_routine::Catalogue;

use crate::support::HOME;

fn refusal(text: &str) -> String {
    HomeFile::read(text.as_bytes(), Catalogue::new())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_file_that_is_wrong_is_refused_with_place_and_mend() {
    for (from, to, told) in [
        (
            r#""fan": {"dummy""#,
            r#""fun": {"dummy""#,
            "device \"fan\" has no entry: say how it is reached",
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
            "\"lamp\" is a plug, and dim is no state of it",
        ),
        (
            r#""lock": {"dummy": {}}"#,
            r#""lock": {"kasa": {"address": "127.0.0.1:9999"}}"#,
            "initial: \"lock\" is a plug, and open is no state of it",
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
        assert!(why.contains(told), "{to}: {why}");
    }
    let more = HOME.replacen(
        r#""fan": {"dummy""#,
        r#""van": {"dummy": {}}, "fan": {"dummy""#,
        1,
    );
    assert!(refusal(&more).contains("there is no device \"van\""));
}

#[test]
fn known_devices_keep_their_ids() {
    let first = HomeFile::read(HOME.as_bytes(), Catalogue::new()).unwrap();
    let mut known = Catalogue::new();
    known.id_or_new("door");
    known.id_or_new("fan");
    let second = HomeFile::read(HOME.as_bytes(), known.clone()).unwrap();
    assert_eq!(second.home.catalogue.id("fan"), known.id("fan"));
    assert_ne!(
        second.home.catalogue.id("fan"),
        first.home.catalogue.id("fan")
    );
}
