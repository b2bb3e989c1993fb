//! Blocks, groups, scenes, delays and repetitions: their expansion, and refusals.

use selvedge_core::Span;
use selvedge_routine::file::{Fault, FileError, Format, Home};
use selvedge_routine::{Catalogue, Clause, Priority, State};

/// A document with these commands, two groups and a scene.
fn document(commands: &str) -> String {
    format!(
        r#"{{"devices": [{{"DevID": "a"}}, {{"DevID": "b"}}, {{"DevID": "c"}}, {{"DevID": "me"}}, {{"DevID": "you"}}],
  "groups": {{"lamps": ["a", "b"], "family": ["me", "you"]}},
  "scenes": {{"evening": {{"b": "dim", "c": 21.5}}}},
  "routines": [{{"RoutineName": "r", "CommandList": [{commands}]}}]}}"#
    )
}

/// Each command as one line: device, state, hold in ms, condition.
fn lines(text: &str) -> Vec<String> {
    let home = match Home::read(text.as_bytes()) {
        Ok(home) => home,
        Err(error) => panic!("{error}\n{text}"),
    };
    let written = home.write().unwrap();
    assert_eq!(
        Home::read(written.as_bytes()),
        Ok(home.clone()),
        "{written}"
    );
    let name = |it| home.catalogue.name(it).unwrap().to_owned();
    let steps = home.routines[0].routine.steps.iter();
    let line = steps.map(|it| {
        let mut line = format!("{} {}", name(it.device), it.value);
        if it.priority == Priority::BestEffort {
            line += " ?";
        }
        if it.hold > Span::ZERO {
            line += &format!(" {}", it.hold.0 / 1_000);
        }
        if let Some(condition) = &it.condition {
            line += &format!(" if {}", shown(condition, &name));
        }
        line
    });
    line.collect()
}

fn shown(clause: &Clause<State>, name: &impl Fn(selvedge_core::NodeId) -> String) -> String {
    let list = |all: &[Clause<State>], with: &str| {
        let all: Vec<_> = all.iter().map(|it| shown(it, name)).collect();
        format!("({})", all.join(with))
    };
    match clause {
        Clause::Is(it) => format!("{}={}", name(it.device), it.value),
        Clause::Not(it) => format!("!{}", shown(it, name)),
        Clause::All(all) => list(all, "&"),
        Clause::Any(all) => list(all, "|"),
    }
}

fn fault(commands: &str) -> (String, Fault) {
    match Home::read(document(commands).as_bytes()) {
        Err(FileError::Meaning {
            path, fault, line, ..
        }) => {
            assert_eq!(line, 4, "{path}: {fault}");
            (path, fault)
        }
        other => panic!("{commands}: {other:?}"),
    }
}

const ME: &str = r#"{"DevID": "me", "equal": "home"}"#;
const YOU: &str = r#"{"DevID": "you", "equal": "home"}"#;

#[test]
fn a_group_and_a_scene_are_their_commands() {
    let text = document(
        r#"{"group": "lamps", "Action": "on", "hold_ms": 5}, {"scene": "evening", "Priority": "BEST_EFFORT"}"#,
    );
    assert_eq!(lines(&text), ["a on 5", "b on 5", "b dim ?", "c 21.5 ?"]);
}

#[test]
fn a_delay_is_the_hold_of_the_command_before_it() {
    let text = document(
        r#"{"DevID": "a", "Action": 1, "hold_ms": 10}, {"delay_ms": 5}, {"delay_ms": 1},
        {"group": "lamps", "Action": 2}, {"delay_ms": 7}"#,
    );
    assert_eq!(lines(&text), ["a 1 16", "a 2", "b 2 7"]);
    for stray in [
        r#"{"delay_ms": 5}"#,
        r#"{"DevID": "a", "Action": 1, "Priority": "BEST_EFFORT"}, {"delay_ms": 5}"#,
        r#"{"DevID": "a", "Action": 1, "if": {"DevID": "me", "equal": 1}}, {"delay_ms": 5}"#,
    ] {
        assert_eq!(fault(stray).1, Fault::StrayDelay, "{stray}");
    }
}

#[test]
fn a_repetition_is_its_commands_again_and_again() {
    let text = document(
        r#"{"repeat": 2, "do": [{"DevID": "a", "Action": 1}, {"delay_ms": 5}, {"repeat": 2, "do": [{"DevID": "b", "Action": 2}]}]}, {"delay_ms": 3}"#,
    );
    assert_eq!(
        lines(&text),
        ["a 1 5", "b 2", "b 2", "a 1 5", "b 2", "b 2 3"]
    );
    for count in ["0", "-1", "65536", "1e20"] {
        let text = format!(r#"{{"repeat": {count}, "do": [{{"DevID": "a", "Action": 1}}]}}"#);
        let (path, fault) = fault(&text);
        assert_eq!(path, "routines[0].CommandList[0].repeat");
        assert!(matches!(fault, Fault::NoCount(_)), "{fault}");
    }
}

#[test]
fn a_block_is_a_condition_of_each_of_its_commands() {
    let text = document(&format!(
        r#"{{"if": {ME}, "then": [{{"DevID": "a", "Action": 1}}, {{"DevID": "b", "Action": 2, "if": {YOU}}}],
        "else": [{{"DevID": "c", "Action": 3}}]}}"#
    ));
    let found = lines(&text);
    assert_eq!(
        found,
        [
            "a 1 if me=home",
            "b 2 if (me=home&you=home)",
            "c 3 if !me=home"
        ]
    );
}

#[test]
fn one_branch_of_a_choice_is_done() {
    let text = document(&format!(
        r#"{{"choose": [{{"if": {ME}, "then": [{{"DevID": "a", "Action": 1}}]}}, {{"if": {YOU}, "then": [{{"DevID": "a", "Action": 2}}]}}],
        "else": [{{"DevID": "a", "Action": 3}}]}}"#
    ));
    let found = lines(&text);
    assert_eq!(
        found,
        [
            "a 1 if me=home",
            "a 2 if (!me=home&you=home)",
            "a 3 if (!me=home&!you=home)"
        ]
    );
    // In each home one of them is true.
    let home = Home::read(text.as_bytes()).unwrap();
    let states = [State::from("home"), "away".into()];
    let [me, you] = ["me", "you"].map(|it| home.catalogue.id(it).unwrap());
    for (mine, yours) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let state = |it| match it {
            _ if it == me => Some(&states[mine]),
            _ if it == you => Some(&states[yours]),
            _ => None,
        };
        let steps = home.routines[0].routine.steps.iter();
        let done = steps.filter(|it| it.condition.as_ref().unwrap().holds(&state) == Some(true));
        assert_eq!(done.count(), 1, "{mine} {yours}");
    }
}

#[test]
fn a_whole_routine_may_have_a_condition() {
    let text = format!(
        r#"{{"RoutineName": "r", "if": {{"any": [{ME}, {YOU}]}}, "CommandList": [{{"DevID": "a", "Action": 1}}, {{"DevID": "b", "Action": 2}}]}}"#
    );
    let found = lines(&text);
    assert_eq!(
        found,
        ["a 1 if (me=home|you=home)", "b 2 if (me=home|you=home)"]
    );
}

#[test]
fn someone_of_a_group_is_asked_for() {
    let is = |key: &str| {
        let text = document(&format!(
            r#"{{"DevID": "a", "Action": 1, "if": {{"{key}": "family", "equal": "home"}}}}"#
        ));
        lines(&text).remove(0)
    };
    assert_eq!(is("any_of"), "a 1 if (me=home|you=home)");
    assert_eq!(is("all_of"), "a 1 if (me=home&you=home)");
    assert_eq!(is("none_of"), "a 1 if !(me=home|you=home)");
}

#[test]
fn what_a_block_asks_is_not_changed_before_it_is_done() {
    let asks = |commands: &str| match Home::read(document(commands).as_bytes()) {
        Ok(_) => None,
        Err(FileError::Meaning {
            fault: Fault::AsksWhatItSets(device),
            ..
        }) => Some(device),
        Err(error) => panic!("{error}"),
    };
    let on = r#"{"DevID": "a", "equal": "on"}"#;
    let block = |first: &str, second: &str| {
        format!(
            r#"{{"if": {on}, "then": [{{"DevID": "{first}", "Action": 1}}, {{"DevID": "{second}", "Action": 1}}]}}"#
        )
    };
    assert_eq!(asks(&block("a", "b")), Some("a".into()));
    assert_eq!(asks(&block("b", "a")), None, "the last one may");
    // A toggle would run both.
    let toggle = format!(
        r#"{{"if": {on}, "then": [{{"DevID": "a", "Action": "off"}}], "else": [{{"DevID": "a", "Action": "on"}}]}}"#
    );
    assert_eq!(asks(&toggle), Some("a".into()));
    let group = format!(r#"{{"group": "lamps", "Action": "off", "if": {on}}}"#);
    assert_eq!(asks(&group), Some("a".into()));
    // Each repetition evaluates it again.
    let again = format!(r#"{{"repeat": 2, "do": [{}]}}"#, block("b", "a"));
    assert_eq!(asks(&again), None);
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are_like_them() {
    for (command, path, near) in [
        (r#"{"group": "lamp", "Action": 1}"#, "group", "lamps"),
        (r#"{"scene": "evenign"}"#, "scene", "evening"),
        (r#"{"DevID": "yuo", "Action": 1}"#, "DevID", "you"),
        (
            r#"{"DevID": "a", "Action": 1, "Holdms": 1}"#,
            "Holdms",
            "hold_ms",
        ),
    ] {
        let error = Home::read(document(command).as_bytes()).unwrap_err();
        let reported = error.to_string();
        let place = format!("routines[0].CommandList[0].{path}: ");
        assert!(reported.starts_with(&place), "{reported}");
        assert!(
            reported.contains(&format!("did you mean {near:?}?")),
            "{reported}"
        );
    }
    let (_, fault) = fault(r#"{"group": "garden", "Action": 1}"#);
    assert!(matches!(fault, Fault::UnknownGroup { near: None, .. }));
}

#[test]
fn what_is_written_out_has_a_limit() {
    let nest = |count: u32| {
        let body = r#"{"DevID": "a", "Action": 1}"#.to_owned();
        let nested = (0..count).fold(body, |body, _| {
            format!(r#"{{"repeat": 1000, "do": [{body}]}}"#)
        });
        Home::read(document(&nested).as_bytes())
    };
    assert_eq!(nest(1).unwrap().routines[0].routine.steps.len(), 1_000);
    let error = nest(2).unwrap_err();
    assert!(
        error.to_string().contains("1000000 commands are too many"),
        "{error}"
    );
    // Many routines, each of the largest size.
    let routine = |nth: usize| {
        format!(
            r#"{{"RoutineName": "r{nth}", "CommandList": [{{"repeat": 65535, "do": [{{"DevID": "a", "Action": 1}}]}}]}}"#
        )
    };
    let all = |many: usize| {
        let all: Vec<_> = (0..many).map(routine).collect();
        Home::read(format!(r#"{{"routines": [{}]}}"#, all.join(",")).as_bytes())
    };
    assert!(all(4).is_ok());
    let error = all(5).unwrap_err();
    assert!(
        error.to_string().contains("more than 262144 commands"),
        "{error}"
    );
    // A condition may have 64 parts, and not one more.
    let asked = |parts: usize| {
        let parts: Vec<_> = (0..parts - 1).map(|_| ME).collect();
        let clause = format!(r#"{{"any": [{}]}}"#, parts.join(","));
        Home::read(
            document(&format!(r#"{{"DevID": "a", "Action": 1, "if": {clause}}}"#)).as_bytes(),
        )
    };
    assert!(asked(64).is_ok());
    let chosen = |parts: usize| {
        let parts: Vec<_> = (0..parts - 1).map(|_| ME).collect();
        let clause = format!(r#"{{"any": [{}]}}"#, parts.join(","));
        let choice = format!(
            r#"{{"choose": [{{"if": {clause}, "then": [{{"DevID": "a", "Action": 1}}]}}]}}"#
        );
        Home::read(document(&choice).as_bytes())
    };
    assert!(chosen(64).is_ok() && chosen(65).is_err());
    assert!(
        asked(65)
            .unwrap_err()
            .to_string()
            .contains("65 parts here and may have 64")
    );
}

#[test]
fn a_deep_clause_is_read_and_written_or_refused() {
    let clause = |depth: usize| {
        let (open, close) = (r#"{"not": "#.repeat(depth - 1), "}".repeat(depth - 1));
        document(&format!(
            r#"{{"if": {open}{ME}{close}, "then": [{{"DevID": "a", "Action": 1}}], "else": [{{"DevID": "b", "Action": 1}}]}}"#
        ))
    };
    let home = Home::read(clause(23).as_bytes()).unwrap();
    let written = home.write().unwrap();
    assert_eq!(Home::read(written.as_bytes()).as_ref(), Ok(&home));
    let yaml = home.write_as(Format::Yaml).unwrap();
    let again = Home::read_as(Format::Yaml, yaml.as_bytes(), Catalogue::new());
    assert_eq!(again.as_ref(), Ok(&home));
    let error = Home::read(clause(25).as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("nested more than 24 deep"),
        "{error}"
    );
}

/// A command counts as one, and its condition as its parts and one more.
#[test]
fn a_file_may_be_written_out_to_its_limit() {
    let one = r#"{"DevID": "a", "Action": 1}"#.to_owned();
    let asked = r#"{"DevID": "a", "Action": 1, "if": {"DevID": "b", "equal": 1}}"#;
    let most = |body: &str| format!(r#"{{"repeat": 65535, "do": [{body}]}}"#);
    let read = |commands: &[String]| {
        let routine = |(nth, it)| format!(r#"{{"RoutineName": "{nth}", "CommandList": [{it}]}}"#);
        let all: Vec<_> = commands.iter().enumerate().map(routine).collect();
        Home::read(format!(r#"{{"routines": [{}]}}"#, all.join(",")).as_bytes())
    };
    // 4 * 65,535 and 4 are 2^18.
    let mut all = vec![most(asked), most(&one)];
    all.extend(vec![one.clone(); 4]);
    assert!(read(&all).is_ok());
    all.push(one.clone());
    let error = read(&all).unwrap_err().to_string();
    assert!(error.contains("more than 262144 commands"), "{error}");
}

#[test]
fn delays_add_up_to_the_longest_hold_at_most() {
    let longest = u64::MAX / 1_000;
    let text = document(&format!(
        r#"{{"DevID": "a", "Action": 1, "hold_ms": {}}}, {{"delay_ms": 5}}, {{"delay_ms": {longest}}}"#,
        longest - 5
    ));
    assert_eq!(lines(&text), [format!("a 1 {longest}")]);
}
