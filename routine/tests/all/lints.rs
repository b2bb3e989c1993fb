//! Oddities in a file that can be read.

use selvedge_core::NodeId;
use selvedge_routine::Catalogue;
use selvedge_routine::file::{Format, Home, Lint, Oddity};

fn lints(text: &str, catalogue: Catalogue) -> Vec<Lint> {
    let (home, lints) = Home::lint(Format::Yaml, text.as_bytes(), catalogue.clone()).unwrap();
    let plain = Home::read_as(Format::Yaml, text.as_bytes(), catalogue);
    assert_eq!(plain, Ok(home), "it reads the same");
    lints
}

fn reported(text: &str) -> Vec<String> {
    lints(text, Catalogue::new())
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn states_that_differ_in_case_or_type_alone_are_told() {
    let found = reported(
        "
devices: [{DevID: lamp, initial: 'on'}, {DevID: heater}]
scenes: {s: {lamp: 'On'}}
routines:
  - RoutineName: r
    CommandList:
      - {DevID: lamp, Action: on, undo: off}
      - {DevID: heater, Action: 21}
      - {DevID: heater, Action: 21, if: {DevID: heater, not_equal: '21'}}
",
    );
    assert_eq!(
        found,
        [
            "scenes.s.lamp: device \"lamp\" has the state \"On\" here and \"on\" elsewhere, which are two states: write both alike, at line 3 column 20",
            "routines[0].CommandList[2].if: device \"heater\" has the state \"21\" here and 21 elsewhere, which are two states: write both alike, at line 9 column 41",
        ]
    );
}

#[test]
fn devices_that_nothing_knows_or_names_are_told() {
    let text = "
routines:
  - RoutineName: r
    CommandList: [{DevID: lapm, Action: on}, {DevID: lamp, Action: on}]
";
    assert!(reported(text).is_empty(), "nobody knows better");
    let mut catalogue = Catalogue::new();
    catalogue.assign("lamp", NodeId(7)).unwrap();
    let [lint] = &lints(text, catalogue)[..] else {
        panic!("one is known");
    };
    let near = Some("lamp".into());
    let device = "lapm".into();
    assert_eq!(lint.oddity, Oddity::UnknownDevice { device, near });
    assert_eq!(
        (lint.line, lint.path.as_str()),
        (4, "routines[0].CommandList[0]")
    );
    let unused = "devices: [{DevID: lamp}, {DevID: fan}]\ngroups: {g: [lamp]}";
    assert_eq!(
        reported(unused),
        ["devices[1]: nothing names device \"fan\": use it, or remove it, at line 1 column 26"]
    );
}

fn odd(clause: &str) -> Option<Oddity> {
    let text = format!(
        "
routines: [{{RoutineName: r, CommandList: [{{DevID: d, Action: 1}}]}}]
triggers: [{{RoutineName: r, when: {clause}}}]
"
    );
    let mut found = lints(&text, Catalogue::new());
    assert!(found.len() < 2, "{found:?}");
    let lint = found.pop()?;
    assert_eq!((lint.path.as_str(), lint.line), ("triggers[0]", 3));
    Some(lint.oddity)
}

#[test]
fn triggers_that_never_fire_are_told() {
    let is = |key: &str, value: i32| format!("{{DevID: d, {key}: {value}}}");
    let two = |list: &str, a: String, b: String| format!("{{{list}: [{a}, {b}]}}");
    let not = |it: String| format!("{{not: {it}}}");
    for never in [
        two("all", is("less", 5), is("greater", 5)),
        two("all", is("equal", 5), is("not_equal", 5)),
        two("all", is("equal", 5), is("less", 5)),
        two("all", is("equal", 5), is("greater", 5)),
        not(two("any", is("not_equal", 5), is("not_equal", 6))),
        two(
            "all",
            is("less", 5),
            format!("{{any: [{}]}}", is("greater", 5)),
        ),
        two("all", is("equal", 5), not(is("less", 6))),
        two("all", not(is("greater", 4)), is("equal", 5)),
        two(
            "all",
            is("equal", 5),
            two("all", is("greater", 7), is("less", 9)),
        ),
        not(two("any", is("equal", 5), is("not_equal", 5))),
        two(
            "any",
            two("all", is("less", 5), is("greater", 5)),
            two("all", is("less", 1), is("greater", 1)),
        ),
    ] {
        assert_eq!(odd(&never), Some(Oddity::NeverFires), "{never}");
    }
    for always in [
        two("any", is("equal", 5), is("not_equal", 5)),
        two("any", is("equal", 5), not(is("equal", 5))),
        not(two("all", is("less", 5), is("greater", 5))),
    ] {
        assert_eq!(odd(&always), Some(Oddity::AlwaysTrue), "{always}");
    }
    for fine in [
        is("equal", 5),
        two("all", is("less", 5), is("greater", 4)),
        two("all", is("greater", 4), is("not_equal", 5)),
        two("any", is("less", 5), is("greater", 5)),
        two("all", not(is("less", 5)), not(is("greater", 5))),
        two("all", is("equal", 5), not(is("less", 5))),
        two("all", is("equal", 5), not(is("greater", 5))),
        two("all", is("equal", 6), is("greater", 5)),
        two("all", is("equal", 4), is("less", 5)),
        not(two("any", is("not_equal", 5), is("not_equal", 5))),
        two(
            "all",
            two("any", is("equal", 1), is("equal", 2)),
            is("less", 9),
        ),
    ] {
        assert_eq!(odd(&fine), None, "{fine}");
    }
}

#[test]
fn commands_that_are_never_done_and_routines_without_a_trigger_are_told() {
    let found = reported(
        "
location: {latitude: 69.6, longitude: 18.9}
routines:
  - RoutineName: r
    if: {DevID: d, less: 5}
    CommandList: [{DevID: d, Action: 1, if: {DevID: d, greater: 5}}]
  - RoutineName: s
    CommandList: [{DevID: d, Action: 1}]
triggers:
  - {RoutineName: r, at: sunrise}
",
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("routines[0]: the condition is never true"));
    assert!(found[1].starts_with("routines[1]: routine \"s\" has no trigger"));
    assert!(found[2].starts_with("triggers[0]: at this latitude the sun does not rise or set"));
}

#[test]
fn states_are_mentioned_where_they_are_written() {
    let text = "
devices: [{DevID: lamp, initial: off}, {DevID: heater}]
groups: {g: [lamp, heater]}
scenes: {s: {lamp: dim}}
routines:
  - RoutineName: r
    CommandList:
      - {DevID: lamp, Action: on, undo: off}
      - scene: s
      - {DevID: heater, Action: 21, if: {DevID: lamp, not_equal: 3}}
triggers: [{RoutineName: r, when: {DevID: heater, equal: 20.5}}]
";
    let (home, found) = Home::mentions(Format::Yaml, text.as_bytes(), Catalogue::new()).unwrap();
    let plain = Home::read_as(Format::Yaml, text.as_bytes(), Catalogue::new());
    assert_eq!(plain.as_ref(), Ok(&home), "it reads the same");
    let mut warned: Vec<_> = found
        .iter()
        .map(|it| {
            let name = home.catalogue.name(it.device).unwrap();
            let (path, line) = (&it.path, it.line);
            format!("{line}: {path}: {name} {}", it.state)
        })
        .collect();
    warned.sort();
    assert_eq!(
        warned,
        [
            "10: routines[0].CommandList[2].if: lamp 3",
            "10: routines[0].CommandList[2]: heater 21",
            "11: triggers[0].when: heater 20.5",
            "2: devices[0].initial: lamp off",
            "4: scenes.s.lamp: lamp dim",
            "8: routines[0].CommandList[0].undo: lamp off",
            "8: routines[0].CommandList[0]: lamp on",
        ]
    );
    assert_eq!(found[0].column, 34);
}

#[test]
fn the_rarer_of_two_states_that_are_alike_is_told() {
    let found = reported(
        "
routines:
  - RoutineName: r
    CommandList:
      - {DevID: lamp, Action: Off}
      - {DevID: lamp, Action: off}
      - {DevID: lamp, Action: off}
",
    );
    assert_eq!(
        found,
        [
            "routines[0].CommandList[0]: device \"lamp\" has the state \"Off\" here and \"off\" elsewhere, which are two states: write both alike, at line 5 column 9"
        ]
    );
}

/// The search for a similar name takes long, so it is done for a few.
#[test]
fn the_first_ten_devices_that_nobody_knows_are_compared() {
    let commands: Vec<_> = (0..11)
        .map(|it| format!("{{DevID: lam{it:x}, Action: on}}"))
        .collect();
    let text = format!(
        "routines: [{{RoutineName: r, CommandList: [{}]}}]",
        commands.join(", ")
    );
    let mut catalogue = Catalogue::new();
    catalogue.assign("lamp", NodeId(7)).unwrap();
    let near: Vec<bool> = lints(&text, catalogue)
        .iter()
        .map(|it| match &it.oddity {
            Oddity::UnknownDevice { near, .. } => near.is_some(),
            other => panic!("{other}"),
        })
        .collect();
    let mut expected = vec![true; 10];
    expected.push(false);
    assert_eq!(near, expected);
}

#[test]
fn a_place_is_polar_beyond_the_latitude_of_the_midnight_sun() {
    for (latitude, count) in [("65.7", 0), ("65.701", 1), ("-65.701", 1)] {
        let text = format!(
            "
location: {{latitude: {latitude}, longitude: 0}}
routines: [{{RoutineName: r, CommandList: [{{DevID: d, Action: 1}}]}}]
triggers: [{{RoutineName: r, at: sunset}}]
"
        );
        assert_eq!(reported(&text).len(), count, "{latitude}");
    }
}
