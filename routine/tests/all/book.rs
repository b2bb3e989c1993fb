//! The book's examples of routine files are files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_routine::Catalogue;
use selvedge_routine::file::{Format, Home};

const CHAPTER: &str = include_str!("../../../docs/src/safehome-files.md");

#[test]
fn each_example_is_read_and_written() {
    let mut examples = 0;
    for part in CHAPTER.split("```json\n").skip(1) {
        let (text, _) = part.split_once("```").unwrap();
        let home = match Home::read(text.as_bytes()) {
            Ok(home) => home,
            Err(error) => panic!("{error}\n{text}"),
        };
        assert!(!home.routines.is_empty());
        let written = home.write().unwrap();
        assert_eq!(Home::read(written.as_bytes()), Ok(home), "{written}");
        examples += 1;
    }
    assert_eq!(examples, 3);
}

#[test]
fn each_example_in_yaml_is_read_and_written_and_has_nothing_odd() {
    let mut examples = 0;
    for part in CHAPTER.split("```yaml\n").skip(1) {
        let (text, _) = part.split_once("```").unwrap();
        let read = Home::lint(Format::Yaml, text.as_bytes(), Catalogue::new());
        let (home, lints) = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(lints, []);
        let written = home.write_as(Format::Yaml).unwrap();
        let again = Home::read_as(Format::Yaml, written.as_bytes(), Catalogue::new());
        assert_eq!(again, Ok(home), "{written}");
        examples += 1;
    }
    assert_eq!(examples, 1);
}

/// The chapter quotes the refusals word for word.
#[test]
fn the_refusals_are_said_so() {
    let command = r#"{"DevID": "d", "Action": 1}"#;
    let routine = |name: &str, second: &str| {
        format!(r#"{{"RoutineName": "{name}", "CommandList": [{command}, {second}]}}"#)
    };
    let wrong = format!(
        "{}\"Priority\": \"must\"}}",
        r#"{"DevID": "d", "Action": 1, "#
    );
    let three = [
        routine("a", command),
        routine("b", command),
        routine("c", &wrong),
    ];
    let priority = format!(r#"{{"routines": [{}]}}"#, three.join(","));
    let clause = r#"[{"DevID": "window", "equal": "open"}, {"DevID": "rain", "equal": 1}, {"DevID": "window", "equal": "closed"}]"#;
    let never = format!(
        r#"{{"routines": [{}], "triggers": [{{"RoutineName": "a", "when": {{"all": {clause}}}}}]}}"#,
        routine("a", command)
    );
    let group = r#"{"groups": {"lights": ["a"]},
"routines": [{"RoutineName": "r", "CommandList": [{"group": "lihgts", "Action": 1}]}]}"#
        .into();
    for text in [priority, never, group] {
        let error = Home::read(text.as_bytes()).unwrap_err().to_string();
        // The place in this file differs from the place in the chapter.
        let reported = error.split(", at line").next().unwrap();
        assert!(CHAPTER.contains(reported), "{reported}");
    }
}
