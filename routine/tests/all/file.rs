//! Routine files: reading, refusals and their texts, and writing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod refused;

use core::num::NonZeroU16;

use selvedge_core::{NodeId, Span};
use selvedge_routine::file::{Fault, FileError, Format, Home, write_routine};
use selvedge_routine::trigger::{Clause, TimeOfDay, Trigger};
use selvedge_routine::{
    Catalogue, Comparison, LONGEST_KEY, LONGEST_LATENESS, Mode, Number, Priority, Routine, State,
    Step, Terms, Urgency,
};

/// Figure 10a of the paper, to the letter.
const PAPER: &str = r#"{"RoutineName":"Prep. Breakfast", "CommandList":
[{"DevID":"CoffeeMkr", "Action":"ON", "Priority":"MUST"},
{"DevID":"Toaster", "Action":"ON", "Priority":"MUST"}
]}"#;

/// A file with every key.
const ALL: &str = r#"{
  "devices": [
    {"DevID": "lamp", "initial": "off"},
    {"DevID": "heater", "initial": 18.5, "lateness_ms": 86400000},
    {"DevID": "window", "lateness_ms": 0}
  ],
  "routines": [
    {"RoutineName": "warm up", "mode": "queued", "limit": 3, "urgency": 255, "CommandList": [
      {"DevID": "window", "Action": "closed", "Priority": "MUST", "timeout_ms": 2500},
      {"DevID": "heater", "Action": 21, "Priority": "BEST_EFFORT", "hold_ms": 600000, "preemptible": true,
       "undo": 16.25, "if": {"DevID": "heater", "less": 20}},
      {"DevID": "lamp", "Action": "on"}
    ]},
    {"RoutineName": "lights out", "mode": "restart", "CommandList": [{"DevID": "lamp", "Action": "off"}]}
  ],
  "triggers": [
    {"RoutineName": "warm up", "at": "06:30"},
    {"RoutineName": "warm up", "every_ms": 3600000, "cooldown_ms": 1},
    {"RoutineName": "lights out", "manual": true},
    {"RoutineName": "lights out", "when": {"any": [
      {"not": {"DevID": "lamp", "not_equal": "on"}},
      {"all": [{"DevID": "heater", "greater": -3.125}, {"DevID": "window", "equal": "open"}]}
    ]}}
  ]
}"#;

#[test]
fn the_papers_form_is_read_to_the_letter() {
    let home = Home::read(PAPER.as_bytes()).unwrap();
    let [routine] = &home.routines[..] else {
        panic!("{home:#?}");
    };
    assert_eq!(routine.name, "Prep. Breakfast");
    let (coffee, toaster) = (NodeId(0), NodeId(1));
    assert_eq!(home.catalogue.name(coffee), Some("CoffeeMkr"));
    assert_eq!(home.catalogue.id("Toaster"), Some(toaster));
    let on = State::from("ON");
    let steps = [Step::new(coffee, on.clone()), Step::new(toaster, on)];
    assert_eq!(routine.routine.steps, steps);
}

#[test]
fn all_keys_mean_what_they_say() {
    let home = Home::read(ALL.as_bytes()).unwrap();
    let [lamp, heater, window] = ["lamp", "heater", "window"].map(|it| {
        let id = home.catalogue.id(it);
        id.unwrap()
    });
    assert_eq!((lamp, window), (NodeId(0), NodeId(2)), "in their order");
    assert_eq!(home.initial[&lamp], "off".into());
    let part = |it| State::Number(Number::from_thousandths(it).unwrap());
    assert_eq!(home.initial[&heater], part(18_500));
    assert!(!home.initial.contains_key(&window));
    let late = [(heater, LONGEST_LATENESS), (window, Span::ZERO)];
    assert_eq!(home.lateness, late.into(), "where the file says so");
    let [close, warm, light] = &home.routines[0].routine.steps[..] else {
        panic!("{home:#?}");
    };
    assert_eq!(close.timeout, Some(Span::millis(2_500)));
    assert!(warm.preemptible && !close.preemptible);
    let limit = NonZeroU16::new(3).unwrap();
    let terms = Terms::of("warm up", Mode::Queued { limit }).with_urgency(Urgency(255));
    assert_eq!(home.routines[0].terms(), terms);
    assert_eq!(
        home.routines[1].terms(),
        Terms::of("lights out", Mode::Restart)
    );
    let cool_downs: Vec<Span> = home.triggers.iter().map(|it| it.cool_down).collect();
    assert_eq!(cool_downs, [0, 1, 0, 0].map(Span::millis));
    assert_eq!(
        (close.priority, light.priority),
        (Priority::Must, Priority::Must)
    );
    assert_eq!(warm.priority, Priority::BestEffort);
    assert_eq!(warm.hold, Span::secs(600));
    assert_eq!(warm.undo, Some(part(16_250)));
    let condition = warm.condition.as_ref().unwrap().single().unwrap();
    assert_eq!(condition.device, heater);
    assert_eq!(condition.comparison, Comparison::Less);
    assert_eq!(condition.value, 20.into());
    let [at, every, manual, when] = &home.triggers[..] else {
        panic!("{home:#?}");
    };
    assert_eq!(at.trigger, Trigger::At(TimeOfDay::parse("06:30").unwrap()));
    assert_eq!(every.trigger, Trigger::Every(Span::secs(3_600)));
    assert_eq!(manual.trigger, Trigger::Manual);
    let Trigger::When(Clause::Any(any)) = &when.trigger else {
        panic!("{when:?}");
    };
    assert!(matches!(&any[0], Clause::Not(_)));
    assert!(matches!(&any[1], Clause::All(all) if all.len() == 2));
}

#[test]
fn what_was_read_can_be_written_and_read_again() {
    for text in [PAPER, ALL, "{}", r#"{"devices": [{"DevID": "x"}]}"#] {
        let home = Home::read(text.as_bytes()).unwrap();
        let written = home.write().unwrap();
        let again = Home::read(written.as_bytes()).unwrap();
        assert_eq!(again, home, "{written}");
        assert_eq!(again.write().unwrap(), written);
    }
}

#[test]
fn one_routine_is_written_as_the_paper_does() {
    let home = Home::read(PAPER.as_bytes()).unwrap();
    let routine = &home.routines[0];
    let text = write_routine(&routine.name, &routine.routine, &home.catalogue).unwrap();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&text), value(PAPER));
}

#[test]
fn a_file_for_a_known_home_keeps_the_ids() {
    let mut catalogue = Catalogue::new();
    catalogue.assign("Toaster", NodeId(70)).unwrap();
    let home = Home::read_with(PAPER.as_bytes(), catalogue.clone()).unwrap();
    assert_eq!(home.catalogue.id("Toaster"), Some(NodeId(70)));
    assert_eq!(home.catalogue.id("CoffeeMkr"), Some(NodeId(71)));
    // Known devices need not be declared.
    let text = r#"{"devices": [{"DevID": "lamp"}], "routines": [{"RoutineName": "r", "CommandList":
        [{"DevID": "Toaster", "Action": "OFF"}]}]}"#;
    let home = Home::read_with(text.as_bytes(), catalogue).unwrap();
    assert_eq!(home.routines[0].routine.steps[0].device, NodeId(70));
    assert!(Home::read(text.as_bytes()).is_err());
}

/// Every documented limit is accepted, and not one more.
#[test]
fn what_is_at_a_limit_is_read_and_what_is_beyond_is_not() {
    let command = |hold: u64| format!(r#"{{"DevID": "d", "Action": 1, "hold_ms": {hold}}}"#);
    let read = |commands: &[String]| {
        let list = commands.join(",");
        Home::read(format!(r#"{{"RoutineName": "r", "CommandList": [{list}]}}"#).as_bytes())
    };
    let fault = |error| match error {
        FileError::Meaning { fault, .. } => fault,
        form @ FileError::Form { .. } => panic!("{form}"),
    };
    let Fault::TooLong { found, limit } = fault(read(&[command(u64::MAX)]).unwrap_err()) else {
        panic!("{} ms were read", u64::MAX);
    };
    assert_eq!(found, u64::MAX.to_string());
    assert!(read(&[command(limit)]).is_ok());
    assert!(read(&[command(limit + 1)]).is_err());
    let most = usize::from(u16::MAX);
    for many in [most, most + 1, most + 2] {
        let home = read(&vec![command(0); many]);
        if many <= most {
            assert_eq!(home.unwrap().routines[0].routine.steps.len(), many);
        } else {
            assert_eq!(fault(home.unwrap_err()), Fault::TooManyCommands(many));
        }
    }
}

#[test]
fn each_comparison_is_written_at_its_key_in_triggers_and_commands() {
    for key in ["equal", "not_equal", "less", "greater"] {
        let condition = format!(r#"{{"DevID": "d", "{key}": 20.5}}"#);
        let text = format!(
            r#"{{"routines": [{{"RoutineName": "r", "CommandList":
                [{{"DevID": "d", "Action": 1, "if": {condition}}}]}}],
              "triggers": [{{"RoutineName": "r", "when": {condition}}}]}}"#
        );
        let home = Home::read(text.as_bytes()).unwrap();
        assert_eq!(Home::read(home.write().unwrap().as_bytes()).unwrap(), home);
    }
}

/// Other programs distinguish 21 from 21.0.
#[test]
fn whole_numbers_are_written_without_a_point() {
    let mut catalogue = Catalogue::new();
    let device = catalogue.id_or_new("d");
    for thousandths in [-1_000, -500, -1, 0, 1, 999, 1_000, 21_000, 21_001] {
        let value = State::Number(Number::from_thousandths(thousandths).unwrap());
        let steps = vec![Step::new(device, value)];
        let text = write_routine("r", &Routine { steps }, &catalogue).unwrap();
        let written = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["CommandList"][0];
        let whole = thousandths / 1_000;
        let is_whole = whole * 1_000 == thousandths;
        assert_eq!(
            written["Action"].as_i64(),
            is_whole.then_some(whole),
            "{text}"
        );
    }
}

#[test]
fn a_name_of_a_file_says_its_format() {
    for (extension, format) in [
        ("json", Some(Format::Json)),
        ("yaml", Some(Format::Yaml)),
        ("yml", Some(Format::Yaml)),
        ("JSON", None),
        ("txt", None),
        ("", None),
    ] {
        assert_eq!(Format::of_extension(extension), format, "{extension}");
    }
}

#[test]
fn a_place_and_an_offset_may_be_at_their_limits() {
    for (latitude, longitude, offset) in [(90, -180, 43_200_000), (-90, 180, -43_200_000)] {
        let text = format!(
            r#"{{"location": {{"latitude": {latitude}, "longitude": {longitude}}},
                "routines": [{{"RoutineName": "r", "CommandList": [{{"DevID": "d", "Action": 1}}]}}],
                "triggers": [{{"RoutineName": "r", "at": "sunset", "offset_ms": {offset}}}]}}"#
        );
        let home = Home::read(text.as_bytes()).unwrap();
        let place = home.location.unwrap();
        let found = (place.latitude.thousandths(), place.longitude.thousandths());
        assert_eq!(found, (latitude * 1_000, longitude * 1_000));
        assert!(
            matches!(home.triggers[0].trigger, Trigger::Sun { offset_ms, .. } if offset_ms == offset)
        );
    }
    let text = r#"{"location": {"latitude": 90.001, "longitude": 0}}"#;
    assert!(Home::read(text.as_bytes()).is_err());
}

#[test]
fn a_path_has_keys_that_are_no_words_in_quotes() {
    for (key, path) in [
        ("s", "scenes.s.d"),
        ("a b", "scenes[\"a b\"].d"),
        ("a_1", "scenes.a_1.d"),
    ] {
        let text = format!(r#"{{"scenes": {{"{key}": {{"d": [1]}}}}}}"#);
        let reported = Home::read(text.as_bytes()).unwrap_err().to_string();
        assert!(reported.starts_with(&format!("{path}: ")), "{reported}");
    }
}

/// Written files are for people to read.
#[test]
fn a_file_is_written_with_a_line_for_each_entry() {
    let text = r#"{"devices": [{"DevID": "lamp", "initial": "off\n\t\r\u0001"}, {"DevID": "the fan"}],
        "groups": {"all things": ["lamp", "the fan"]},
        "scenes": {"on": {"the fan": "on", "lamp": 5}},
        "routines": [{"RoutineName": "r", "urgency": 0, "mode": "single",
          "CommandList": [{"DevID": "lamp", "Action": "on"}]}],
        "triggers": [{"RoutineName": "r", "when": {"DevID": "lamp", "equal": "on"}}]}"#;
    let home = Home::read(text.as_bytes()).unwrap();
    assert_eq!(home.write().unwrap(), JSON);
    assert_eq!(home.write_as(Format::Yaml).unwrap(), YAML);
    let nothing = Home::default();
    let (json, yaml) = (nothing.write().unwrap(), nothing.write_as(Format::Yaml));
    assert_eq!(json, "{\n  \"devices\": [],\n  \"routines\": []\n}");
    assert_eq!(yaml.unwrap(), "devices: []\nroutines: []\n");
}

const JSON: &str = r#"{
  "devices": [
    {
      "DevID": "lamp",
      "initial": "off\n\t\r\u0001"
    },
    {
      "DevID": "the fan"
    }
  ],
  "groups": {
    "all things": [
      "lamp",
      "the fan"
    ]
  },
  "scenes": {
    "on": {
      "the fan": "on",
      "lamp": 5
    }
  },
  "routines": [
    {
      "RoutineName": "r",
      "CommandList": [
        {
          "DevID": "lamp",
          "Action": "on",
          "Priority": "MUST"
        }
      ],
      "mode": "single"
    }
  ],
  "triggers": [
    {
      "RoutineName": "r",
      "when": {
        "DevID": "lamp",
        "equal": "on"
      }
    }
  ]
}"#;

const YAML: &str = r#"devices:
  - DevID: "lamp"
    initial: "off\n\t\r\u0001"
  - DevID: "the fan"
groups:
  "all things":
    - "lamp"
    - "the fan"
scenes:
  on:
    "the fan": "on"
    lamp: 5
routines:
  - RoutineName: "r"
    CommandList:
      - DevID: "lamp"
        Action: "on"
        Priority: "MUST"
    mode: "single"
triggers:
  - RoutineName: "r"
    when:
      DevID: "lamp"
      equal: "on"
"#;
