//! Files that are made to exhaust memory, time or the stack.

use selvedge_routine::Catalogue;
use selvedge_routine::file::{Fault, FileError, Format, Home, home_assistant};

/// Several times as many as a home has.
const MANY: usize = 30_000;

fn fault(format: Format, text: &str) -> Fault {
    match Home::lint(format, text.as_bytes(), Catalogue::new()) {
        Ok(_) => panic!("it was read: {}", &text[..text.len().min(200)]),
        Err(FileError::Meaning { fault, line, .. }) => {
            assert!(line > 0, "it has a place");
            fault
        }
        Err(form @ FileError::Form { .. }) => panic!("{form}"),
    }
}

fn json(text: &str) -> Fault {
    let inner = fault(Format::Json, text);
    assert_eq!(fault(Format::Yaml, text), inner, "each JSON is YAML");
    inner
}

#[test]
fn words_that_are_written_out_again_and_again_have_a_limit() {
    let too_long = |found| Fault::LongWord { found, limit: 255 };
    let long = "x".repeat(255);
    let over = "x".repeat(256);
    let command = |device: &str, action: &str, undo: &str| {
        format!(
            r#"{{"RoutineName": "r", "CommandList": [{{"repeat": 65535, "do": [{{"DevID": "{device}", "Action": "{action}", "undo": "{undo}"}}]}}]}}"#
        )
    };
    for text in [
        command(&over, "on", "off"),
        command("d", &over, "off"),
        command("d", "on", &over),
        format!(r#"{{"groups": {{"{over}": ["d"]}}}}"#),
        format!(r#"{{"scenes": {{"{over}": {{"d": 1}}}}}}"#),
        format!(r#"{{"scenes": {{"s": {{"d": "{over}"}}}}}}"#),
        format!(r#"{{"devices": [{{"DevID": "d", "initial": "{over}"}}]}}"#),
        format!(r#"{{"RoutineName": "{over}", "CommandList": []}}"#),
        format!(r#"{{"triggers": [{{"RoutineName": "{over}", "manual": true}}]}}"#),
        format!(
            r#"{{"routines": [{{"RoutineName": "r", "CommandList": [{{"DevID": "d", "Action": 1}}]}}],
            "triggers": [{{"RoutineName": "r", "when": {{"DevID": "d", "equal": "{over}"}}}}]}}"#
        ),
    ] {
        assert_eq!(json(&text), too_long(256));
    }
    let text = command(&long, &long, "off");
    let home = Home::read(text.as_bytes()).unwrap();
    assert_eq!(home.routines[0].routine.steps.len(), 65_535);
    let alias =
        format!("alias: {over}\nsequence:\n  - {{action: light.turn_on, entity_id: light.l}}");
    let missed = home_assistant::read(alias.as_bytes(), Catalogue::new()).unwrap_err();
    assert!(
        missed[0].to_string().contains("has 256 bytes"),
        "{missed:?}"
    );
}

#[test]
fn what_grows_by_being_written_out_has_a_limit() {
    let names: Vec<String> = (0..MANY).map(|it| format!("{it:?}d")).collect();
    let listed: Vec<String> = names.iter().map(|it| format!("\"{it}\"")).collect();
    let listed = listed.join(",");
    // Each clause names every device of the group.
    let clauses = r#"{"any_of": "g", "equal": 1},"#.repeat(MANY);
    let text = format!(
        r#"{{"groups": {{"g": [{listed}]}},
        "routines": [{{"RoutineName": "r", "CommandList": [{{"DevID": "d", "Action": 1}}]}}],
        "triggers": [{{"RoutineName": "r", "when": {{"any": [{clauses} {{"DevID": "d", "equal": 1}}]}}}}]}}"#
    );
    assert_eq!(json(&text), Fault::TooLarge { limit: 1 << 18 });
    // Each repetition multiplies those in it.
    let mut list = String::from(r#"[{"DevID": "d", "Action": 1}]"#);
    for _ in 0..15 {
        list = format!(r#"[{{"repeat": 60000, "do": {list}}}]"#);
    }
    let text = format!(r#"{{"RoutineName": "r", "CommandList": {list}}}"#);
    assert!(matches!(json(&text), Fault::TooManyCommands(_)));
    for count in ["0", "-1", "65536", "1e99", "1.5", "\"2\"", "null"] {
        let text = format!(
            r#"{{"RoutineName": "r", "CommandList": [{{"repeat": {count}, "do": [{{"DevID": "d", "Action": 1}}]}}]}}"#
        );
        let refused = json(&text);
        let is_count = matches!(refused, Fault::NoCount(_) | Fault::Wrong { .. });
        assert!(is_count, "{refused:?}");
    }
}

#[test]
fn entities_times_states_have_a_limit_in_scripts_too() {
    let entities: Vec<String> = (0..2_000).map(|it| format!("light.l{it}")).collect();
    let states: Vec<String> = (0..2_000).map(|it| format!("s{it}")).collect();
    let (entities, states) = (entities.join(","), states.join(", "));
    for text in [
        format!(
            "s:\n  sequence:\n    - condition: state\n      entity_id: {entities}\n      state: [{states}]\n    - {{action: light.turn_on, entity_id: light.l}}"
        ),
        format!(
            "- alias: a\n  triggers:\n    - trigger: state\n      entity_id: {entities}\n      to: [{states}]\n  actions:\n    - {{action: light.turn_on, entity_id: light.l}}"
        ),
    ] {
        let missed = home_assistant::read(text.as_bytes(), Catalogue::new()).unwrap_err();
        let fault = match &missed[0] {
            FileError::Meaning { fault, .. } => fault,
            form @ FileError::Form { .. } => panic!("{form}"),
        };
        assert_eq!(*fault, Fault::TooLarge { limit: 1 << 18 });
    }
}

/// Most of these took seconds to hours where a list was searched for each of its entries.
#[test]
fn large_files_take_no_longer_than_they_are_large() {
    let many = |it: &str| it.repeat(MANY);
    let devices: String = (0..MANY)
        .map(|it| format!(r#"{{"DevID": "device {it}"}},"#))
        .collect();
    let not: String = (0..MANY)
        .map(|it| format!(r#"{{"DevID": "d", "not_equal": {it}}},"#))
        .collect();
    let text = format!(
        r#"{{"devices": [{devices} {{"DevID": "d"}}],
        "routines": [{{"RoutineName": "r", "CommandList": [{{"DevID": "d", "Action": 1}}]}}],
        "triggers": [{{"RoutineName": "r", "when": {{"all": [{not} {{"DevID": "d", "equal": -1}}]}}}}]}}"#
    );
    for format in [Format::Json, Format::Yaml] {
        let (home, lints) = Home::lint(format, text.as_bytes(), Catalogue::new()).unwrap();
        assert_eq!((home.catalogue.len(), lints.len()), (MANY + 1, MANY));
    }
    let known: Catalogue = {
        let text = format!(r#"{{"devices": [{devices} {{"DevID": "d"}}]}}"#);
        Home::read(text.as_bytes()).unwrap().catalogue
    };
    let commands: String = (0..MANY)
        .map(|it| format!(r#"{{"DevID": "devise {it}", "Action": 1}},"#))
        .collect();
    let text = format!(
        r#"{{"RoutineName": "r", "CommandList": [{commands} {{"DevID": "d", "Action": 1}}]}}"#
    );
    let (_, lints) = Home::lint(Format::Json, text.as_bytes(), known).unwrap();
    assert_eq!(lints.len(), MANY);
    let entities: String = (0..70_000).map(|it| format!("light.l{it},")).collect();
    let text = format!("sequence:\n  - {{action: light.turn_on, entity_id: '{entities}light.l'}}");
    let missed = home_assistant::read(text.as_bytes(), Catalogue::new()).unwrap_err();
    assert!(
        missed[0].to_string().contains("commands are too many"),
        "{}",
        missed[0]
    );
    for text in [
        many("a: 1\n"),
        many("- \n"),
        many("? a\n"),
        many("#\n"),
        many("\n"),
        many("a "),
        many("a\n"),
        many("[],"),
        many("'' "),
        many("--- \n"),
        many("{a},"),
        many("!a "),
        many("&a "),
        many("%A \n"),
        many("\t"),
        many("\" \\\n"),
        many("|\n"),
        many("a:"),
        format!("[{}]", many("a, ")),
        format!("[{}]", many("[a: b], ")),
        format!("\"{}\"", many("\\u0041")),
        format!("a: |\n{}", many(" a\n")),
        format!("a: >\n{}", many(" \n")),
        format!("a: \"{}\"", many("b\n ")),
    ] {
        let shown = &text[..30];
        for format in [Format::Json, Format::Yaml] {
            let error = Home::read_as(format, text.as_bytes(), Catalogue::new());
            let error = error.expect_err(shown).to_string();
            assert!(error.len() < 1_000, "{shown}: {}", error.len());
        }
        let missed = home_assistant::read(text.as_bytes(), Catalogue::new()).unwrap_err();
        assert!(missed.len() <= 101, "{shown}: {}", missed.len());
    }
}

#[test]
fn a_file_has_a_limit_whether_read_or_written() {
    let limit = 1 << 23;
    let text = r#"{"devices": [{"DevID": "d"}]}"#;
    let padded = |size: usize| format!("{text}{}", " ".repeat(size - text.len()));
    for format in [Format::Json, Format::Yaml] {
        let read = |size| Home::read_as(format, padded(size).as_bytes(), Catalogue::new());
        assert_eq!(read(limit).unwrap().catalogue.len(), 1);
        let error = read(limit + 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "the file has 8388609 bytes and may have 8388608: split it, at line 1 column 1"
        );
    }
    let missed = home_assistant::read(padded(limit + 1).as_bytes(), Catalogue::new());
    assert_eq!(missed.unwrap_err().len(), 1);
    // The expanded form is larger than the file.
    let word = "x".repeat(255);
    let text = format!(
        r#"{{"RoutineName": "r", "CommandList": [{{"repeat": 65535, "do": [{{"DevID": "d", "Action": "{word}"}}]}}]}}"#
    );
    let home = Home::read(text.as_bytes()).unwrap();
    let refused = home.write().unwrap_err().to_string();
    assert!(refused.ends_with("may have 8388608: split it"), "{refused}");
}
