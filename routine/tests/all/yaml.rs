//! Files in YAML: the same homes as in JSON, and the result of hostile text.

use core::fmt::Write as _;

use selvedge_core::{Choose, Span};
use selvedge_routine::file::{FileError, Format, Home};
use selvedge_routine::trigger::{Days, SunEvent, Trigger, Weekday};
use selvedge_routine::{Catalogue, Mode, Number, State, Step, Terms, Urgency};

const ALL: &str = r#"
devices:
  - DevID: lamp
    initial: off
  - {DevID: heater, initial: 18.5, lateness_ms: 1000}
  - DevID: "the window"
location: {latitude: 52.52, longitude: -13.4}
groups:
  warm things: [lamp, heater]
scenes:
  evening:
    lamp: on
    the window: "21"
routines:
  - RoutineName: warm up
    mode: queued
    limit: 3
    urgency: 255
    if: {DevID: heater, not_equal: on}
    CommandList:
      - DevID: the window
        Action: closed
        Priority: MUST
      - scene: evening
  - RoutineName: out
    CommandList:
      - {group: warm things, Action: "off", hold_ms: 5, preemptible: true}
triggers:
  - {RoutineName: warm up, at: 06:30, days: [mon, fri], cooldown_ms: 60000}
  - {RoutineName: out, at: sunset, offset_ms: -1800000}
  - RoutineName: out
    when:
      none_of: warm things
      equal: on
"#;

fn read(text: &str) -> Result<Home, FileError> {
    Home::read_as(Format::Yaml, text.as_bytes(), Catalogue::new())
}

/// Checks that a home is the same after it is written in both formats and read again.
fn stays(home: &Home) {
    for format in [Format::Json, Format::Yaml] {
        let written = home.write_as(format).unwrap();
        let again = Home::read_as(format, written.as_bytes(), Catalogue::new());
        assert_eq!(again.as_ref(), Ok(home), "{written}");
        assert_eq!(again.unwrap().write_as(format).unwrap(), written);
    }
}

#[test]
fn all_keys_mean_what_they_say_in_yaml() {
    let home = read(ALL).unwrap_or_else(|error| panic!("{error}"));
    stays(&home);
    let [lamp, heater, window] = ["lamp", "heater", "the window"].map(|it| {
        let id = home.catalogue.id(it);
        id.unwrap()
    });
    assert_eq!(home.initial[&lamp], "off".into(), "a word, and no truth");
    let part = |it| State::Number(Number::from_thousandths(it).unwrap());
    assert_eq!(home.initial[&heater], part(18_500));
    assert_eq!(home.location.unwrap().longitude.thousandths(), -13_400);
    assert_eq!(home.groups["warm things"], [lamp, heater]);
    assert_eq!(
        home.scenes["evening"],
        [(lamp, "on".into()), (window, "21".into())]
    );
    let [weekly, sun, _] = &home.triggers[..] else {
        panic!("{home:#?}");
    };
    let days = Days::new([Weekday::Monday, Weekday::Friday]).unwrap();
    assert!(matches!(weekly.trigger, Trigger::On { days: it, .. } if it == days));
    let expected = Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Set,
        offset_ms: -1_800_000,
    };
    assert_eq!(sun.trigger, expected);
    assert_eq!(weekly.cool_down, Span::secs(60));
    let [warm, out] = &home.routines[..] else {
        panic!("{home:#?}");
    };
    let limit = core::num::NonZeroU16::new(3).unwrap();
    let terms = Terms::of("warm up", Mode::Queued { limit }).with_urgency(Urgency(255));
    assert_eq!((warm.terms(), out.terms()), (terms, Terms::default()));
    let holds = |it: &Step<State>| it.preemptible && it.hold == Span::millis(5);
    assert!(out.routine.steps.iter().all(holds), "each of a group");
}

#[test]
fn each_json_file_is_yaml() {
    for text in [
        r#"{"RoutineName":"r", "CommandList": [{"DevID": "d", "Action": "\u00e4\n"}]}"#,
        r#"{"devices": [{"DevID": "x", "initial": -0.125}]}"#,
    ] {
        assert_eq!(read(text), Home::read(text.as_bytes()));
        stays(&read(text).unwrap());
    }
}

/// The fault, its place, and the text.
#[test]
fn what_is_refused_in_yaml_is_named_with_its_place_and_the_mend() {
    for (text, reported) in [
        ("", "found nothing: give an object"),
        ("routines: [", "this is no YAML"),
        ("devices:\n  - \"d", "mend it, at line 2 column 5"),
        (
            "a: 1\n---\nb: 2",
            "a second document begins here: leave one, at line 2 column 1",
        ),
        (
            "rutines: []",
            "did you mean \"routines\"? else give one of devices, groups, scenes, location, routines, triggers, hub, at line 1 column 1",
        ),
        (
            "devices:\n  - DevID: &x d\n  - DevID: *x",
            "anchors and aliases are not read: write out what is meant, at line 2",
        ),
        (
            "devices:\n  - DevID: !secret d",
            "is not read: remove it, at line 2",
        ),
        ("? [1]\n: 2", "a key that is no word"),
        (
            "devices:\n- {DevID: d, initial: 0x1F}",
            "0x1F is a number in YAML",
        ),
        (
            "devices:\n- {DevID: d, initial: .inf}",
            ".inf is a number in YAML",
        ),
        (
            "devices:\n- {DevID: d, initial: 007}",
            "007 has a 0 in front: remove it, or quote it for a word, at line 2 column 23",
        ),
        (
            "devices:\n- {DevID: d, initial: true}",
            "devices[0].initial: found true: give a word",
        ),
        (
            "devices:\n- {DevID: d, initial: }",
            "devices[0].initial: found nothing: give a word",
        ),
        (
            "devices:\n- {DevID: 21}",
            "devices[0].DevID: found 21: give a name, in quotes",
        ),
        (
            "devices:\n- {DevID: d, initial: 1e300}",
            "1e300 is too long",
        ),
        (
            "devices:\n- {DevID: d, initial: 1, initial: 2}",
            "is there twice",
        ),
        ("groups: {a: []}", "groups.a: the list is empty"),
        (
            "groups: {a: [b, b]}",
            "groups.a[1]: device \"b\" is there twice",
        ),
        ("groups: {\"\": [b]}", "the name is empty"),
        ("scenes: {a: {}}", "scenes.a: the list is empty"),
        (
            "scenes: {a: {b: [1]}}",
            "scenes.a.b: found a list: give a word",
        ),
        (
            "location: {latitude: 91, longitude: 0}",
            "location.latitude: 91 is no latitude: give degrees from -90 to 90",
        ),
        (
            "location: {latitude: 0.0001, longitude: 0}",
            "is no latitude",
        ),
        (
            "location: {latitude: 1}",
            "the key \"longitude\" is missing",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: R, manual: true}]",
            "did you mean \"r\"?",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, at: sunset}]",
            "triggers[0].at: the file has no location",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, at: 06:30, days: []}]",
            "triggers[0].days: the list is empty",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, at: 06:30, days: [monday]}]",
            "triggers[0].days[0]: \"monday\" is not a day of the week",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, at: 06:30, offset_ms: 1}]",
            "offset_ms belongs to sunrise and sunset",
        ),
        (
            "routines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, manual: true, days: [mon]}]",
            "days belongs to a trigger with at",
        ),
        (
            "location: {latitude: 1, longitude: 1}\nroutines: [{RoutineName: r, CommandList: [{DevID: d, Action: 1}]}]\ntriggers: [{RoutineName: r, at: sunset, offset_ms: 43200001}]",
            "the offset is 43200001 ms",
        ),
    ] {
        let error = match read(text) {
            Ok(home) => panic!("{text} was read: {home:#?}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(reported), "{text}: {error}");
        assert!(error.contains("at line "), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let bytes = b"devices:\n  - \xff";
    let error = Home::read_as(Format::Yaml, bytes, Catalogue::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a byte that is no UTF-8: save the file as UTF-8, at line 2 column 5"
    );
}

#[test]
fn hostile_text_ends_with_an_error() {
    let mut laughs = String::from("a: &a [x, x]\n");
    for nth in 1..40 {
        writeln!(laughs, "b{nth}: &b{nth} [*a, *a]").unwrap();
    }
    let deep = [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        format!("{}x", "- ".repeat(100_000)),
        format!("not: {}", "\n".repeat(100_000)),
        "{\"not\": ".repeat(10_000),
        laughs,
        format!(
            "devices: [{{DevID: d, initial: {}}}]",
            "9".repeat(1_000_000)
        ),
        format!(
            "devices: [{{DevID: d, initial: 1e{}}}]",
            "9".repeat(100_000)
        ),
        format!("{}: 1", "k".repeat(1_000_000)),
        "\"\\".into(),
        "%YAML 9.9\n---\n".into(),
        "a: |\n\tb".into(),
        "\u{0}".into(),
    ];
    for text in deep {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.len() < 1_000, "{}", error.len());
        if text.starts_with(['[', '{', '-']) {
            // In one line the parser itself gives up.
            let is_notified =
                error.contains("nested more than 64 deep") || error.contains("recursion limit");
            assert!(is_notified, "{error}");
        }
    }
}

#[test]
fn any_word_is_written_so_that_it_is_read() {
    for seed in 0..300 {
        let mut rng = chacha20::rand_core::SeedableRng::seed_from_u64(seed);
        let rng: &mut chacha20::ChaCha8Rng = &mut rng;
        let letters = [
            "on",
            "null",
            "~",
            "true",
            "1",
            "-",
            ":",
            " ",
            "#",
            "'",
            "\"",
            "\\",
            "\n",
            "\t",
            "\r",
            "\u{0}",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{fffe}",
            "\u{1f600}",
            "ä",
            "{",
            "]",
            "&",
            "*",
            "!",
            "|",
            ">",
            "%",
            "@",
            "`",
            "? ",
            "- ",
            "---",
            "0x1",
            ".inf",
            "e",
            ",",
            "=",
        ];
        let mut word = |least: u64| {
            let length = least + rng.below(5);
            let some = (0..length).map(|_| letters[rng.below(letters.len() as u64) as usize]);
            some.collect::<String>()
        };
        let mut home = Home::default();
        for _ in 0..2 {
            let name = word(1);
            let id = home.catalogue.id_or_new(&name);
            home.initial.insert(id, State::Word(word(0)));
            home.groups.insert(word(1), [id].into());
            home.scenes
                .insert(word(1), [(id, State::Word(word(0)))].into());
        }
        stays(&home);
    }
}

#[test]
fn what_is_no_decimal_number_is_a_word() {
    for (text, number) in [
        (".5", Some(500)),
        ("5.", Some(5_000)),
        ("-.5", Some(-500)),
        ("+5e0", Some(5_000)),
        ("5e+1", Some(50_000)),
        ("+", None),
        (".", None),
        ("1e", None),
        ("1e+", None),
        ("1ex", None),
        ("e1", None),
        ("1.2.3", None),
        ("1a", None),
        ("0.1a", None),
        ("06:30", None),
    ] {
        let home = read(&format!("devices: [{{DevID: d, initial: {text}}}]")).unwrap();
        let state = match number {
            Some(it) => State::Number(Number::from_thousandths(it).unwrap()),
            None => text.into(),
        };
        assert_eq!(home.initial.values().next(), Some(&state), "{text}");
    }
}
