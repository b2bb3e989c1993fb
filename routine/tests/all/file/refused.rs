//! Refusals of files.

use super::*;

/// The fault, its place, and the text.
#[test]
fn what_is_refused_is_named_with_its_place_and_the_mend() {
    let routine = |command: &str| {
        format!(r#"{{"routines": [{{"RoutineName": "r", "CommandList": [{command}]}}]}}"#)
    };
    let trigger = |trigger: &str| {
        format!(
            r#"{{"devices": [{{"DevID": "d"}}], "routines": [{{"RoutineName": "r", "CommandList": [{{"DevID": "d", "Action": 1}}]}}], "triggers": [{trigger}]}}"#
        )
    };
    let one = r#"{"DevID": "d", "Action": 1}"#;
    let at = "routines[0].CommandList[0]";
    let cases: &[(String, &str, &str)] = &[
        (
            "".into(),
            "",
            "the file ends here: give a value, at line 1 column 1",
        ),
        (
            "[1]".into(),
            "",
            "found a list: give an object: a routine, or a document",
        ),
        (
            "{} {}".into(),
            "",
            "found '{' behind the end: remove it, at line 1 column 4",
        ),
        (
            r#"{"RoutineName": "r"}"#.into(),
            "",
            "the key \"CommandList\" is missing: add it, at line 1 column 1",
        ),
        (
            r#"{"rutines": []}"#.into(),
            "rutines",
            "there is no key \"rutines\" here: did you mean \"routines\"? else give one of devices, groups, scenes, location, routines, triggers, hub",
        ),
        (
            r#"{"RoutineName": "r", "CommandList": [], "devices": []}"#.into(),
            "devices",
            "there is no key \"devices\" here",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "Priority": "must"}"#),
            "routines[0].CommandList[0].Priority",
            "found \"must\": give \"MUST\" or \"BEST_EFFORT\"",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "hold": 3}"#),
            "routines[0].CommandList[0].hold",
            "there is no key \"hold\" here: did you mean \"hold_ms\"? else give one of DevID, group",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "Action": 2}"#),
            "routines[0].CommandList[0].Action",
            "the key \"Action\" is there twice",
        ),
        (
            routine(r#"{"DevID": "d"}"#),
            at,
            "the key \"Action\" is missing",
        ),
        (
            routine(r#"{"DevID": "d", "Action": true}"#),
            "routines[0].CommandList[0].Action",
            "found true: give a word, or a number of up to 12 digits",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 0.1234}"#),
            "routines[0].CommandList[0].Action",
            "0.1234 is too long: give a number of up to 12 digits",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1000000000000}"#),
            "routines[0].CommandList[0].Action",
            "1000000000000 is too long",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 18446744073709551615}"#),
            "routines[0].CommandList[0].Action",
            "is too long",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1e300}"#),
            "routines[0].CommandList[0].Action",
            "is too long",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "hold_ms": -5}"#),
            "routines[0].CommandList[0].hold_ms",
            "-5 is below zero: give whole milliseconds from 0",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "hold_ms": 1.5}"#),
            "routines[0].CommandList[0].hold_ms",
            "found 1.5: give whole milliseconds from 0",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "hold_ms": 18446744073709552}"#),
            "routines[0].CommandList[0].hold_ms",
            "give at most 18446744073709551",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "timeout_ms": 0}"#),
            "routines[0].CommandList[0].timeout_ms",
            "it is 0: give milliseconds above zero",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "undo": 1.0}"#),
            "routines[0].CommandList[0].undo",
            "the undo state \"1\" equals the Action",
        ),
        (
            routine(r#"{"DevID": "", "Action": 1}"#),
            "routines[0].CommandList[0].DevID",
            "the name is empty",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "if": {"DevID": "d"}}"#),
            "routines[0].CommandList[0].if",
            "0 of the keys equal, not_equal, less, greater, all, any and not are there: give one",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "if": {"DevID": "d", "less": 1, "equal": 2}}"#),
            "routines[0].CommandList[0].if",
            "2 of the keys",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "if": {"DevID": "d", "less": "warm"}}"#),
            "routines[0].CommandList[0].if.less",
            "\"warm\" is a word",
        ),
        (
            routine(r#"{"DevID": "d", "Action": 1, "if": {"all": []}}"#),
            "routines[0].CommandList[0].if.all",
            "the list is empty",
        ),
        (routine(""), "routines[0].CommandList", "the list is empty"),
        (
            r#"{"RoutineName": "", "CommandList": []}"#.into(),
            "RoutineName",
            "the name is empty",
        ),
        (
            r#"{"RoutineName": "r", "CommandList": []}"#.into(),
            "CommandList",
            "the list is empty",
        ),
        (
            format!(
                r#"{{"routines": [{{"RoutineName": "r", "CommandList": [{one}]}}, {{"RoutineName": "r", "CommandList": [{one}]}}]}}"#
            ),
            "routines[1].RoutineName",
            "a routine is called \"r\" already",
        ),
        (
            r#"{"devices": [{"DevID": "d"}, {"DevID": "e", "lateness_ms": 86400001}]}"#.into(),
            "devices[1].lateness_ms",
            "the lateness of commands is 86400001 ms: give at most 86400000, and make queued commands expire",
        ),
        (
            r#"{"devices": [{"DevID": "d", "lateness_ms": 1.5}]}"#.into(),
            "devices[0].lateness_ms",
            "found 1.5: give whole milliseconds from 0",
        ),
        (
            r#"{"devices": [{"DevID": "d"}, {"DevID": "d"}]}"#.into(),
            "devices[1].DevID",
            "device \"d\" is declared already",
        ),
        (
            r#"{"devices": [{"DevID": ""}]}"#.into(),
            "devices[0].DevID",
            "the name is empty",
        ),
        (
            format!(
                r#"{{"devices": [], "routines": [{{"RoutineName": "r", "CommandList": [{one}]}}]}}"#
            ),
            "routines[0].CommandList[0].DevID",
            "device \"d\" is not declared",
        ),
        (
            format!(
                r#"{{"devices": [{{"DevID": "d"}}], "routines": [{{"RoutineName": "r", "CommandList": [{one}, {{"DevID": "d", "Action": 1, "if": {{"DevID": "e", "less": 1}}}}]}}]}}"#
            ),
            "routines[0].CommandList[1].if.DevID",
            "device \"e\" is not declared",
        ),
        (
            trigger(r#"{"RoutineName": "s", "manual": true}"#),
            "triggers[0].RoutineName",
            "there is no routine \"s\" in this file",
        ),
        (
            trigger(r#"{"RoutineName": "r"}"#),
            "triggers[0]",
            "0 of the keys at, every_ms, when and manual are there",
        ),
        (
            trigger(r#"{"RoutineName": "r", "at": "06:30", "manual": true}"#),
            "triggers[0]",
            "2 of the keys",
        ),
        (
            trigger(r#"{"RoutineName": "r", "manual": false}"#),
            "triggers[0].manual",
            "make it true",
        ),
        (
            trigger(r#"{"RoutineName": "r", "every_ms": 0}"#),
            "triggers[0].every_ms",
            "it is 0",
        ),
        (
            trigger(r#"{"RoutineName": "r", "at": "6:30"}"#),
            "triggers[0].at",
            "\"6:30\" is not a time of day: write 06:30",
        ),
        (
            trigger(r#"{"RoutineName": "r", "at": "24:00"}"#),
            "triggers[0].at",
            "not a time of day",
        ),
        (
            trigger(r#"{"RoutineName": "r", "when": {}}"#),
            "triggers[0].when",
            "0 of the keys equal, not_equal, less, greater, all, any and not",
        ),
        (
            trigger(r#"{"RoutineName": "r", "when": {"all": []}}"#),
            "triggers[0].when.all",
            "the list is empty",
        ),
        (
            trigger(r#"{"RoutineName": "r", "when": {"equal": 1}}"#),
            "triggers[0].when",
            "names no device: add DevID, any_of",
        ),
        (
            trigger(
                r#"{"RoutineName": "r", "when": {"DevID": "d", "any": [{"DevID": "d", "equal": 1}]}}"#,
            ),
            "triggers[0].when",
            "a device or a group is only for comparisons",
        ),
        (
            trigger(r#"{"RoutineName": "r", "when": {"equal": 1, "DevID": "d", "any": []}}"#),
            "triggers[0].when",
            "2 of the keys",
        ),
        (
            trigger(
                r#"{"RoutineName": "r", "when": {"not": {"any": [{"DevID": "e", "equal": 1}]}}}"#,
            ),
            "triggers[0].when.not.any[0].DevID",
            "device \"e\" is not declared",
        ),
        (
            trigger(
                r#"{"RoutineName": "r", "when": {"all": [{"DevID": "d", "equal": 1}, {"DevID": "d", "less": 4}, {"DevID": "d", "equal": "1"}]}}"#,
            ),
            "triggers[0].when.all[2]",
            "device \"d\" cannot be \"1\" and \"1\" at once",
        ),
    ];
    for (text, place, reported) in cases {
        let error = match Home::read(text.as_bytes()) {
            Ok(home) => panic!("{text} was read: {home:#?}"),
            Err(error) => error,
        };
        let (FileError::Form { path, .. } | FileError::Meaning { path, .. }) = &error;
        assert_eq!(path, place, "{text}: {error}");
        let message = error.to_string();
        assert!(message.starts_with(place), "{text}: {message}");
        assert!(message.contains(reported), "{text}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_position_in_the_file_is_told() {
    let text = "{\n  \"routines\": [\n    {\"RoutineName\": 3}\n  ]\n}";
    let error = Home::read(text.as_bytes()).unwrap_err();
    let FileError::Meaning { line, column, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((line, column), (3, 21));
}

#[test]
fn modes_urgencies_and_cool_downs_that_mean_nothing_are_refused() {
    let read = |routine: &str, command: &str, trigger: &str| {
        let text = format!(
            r#"{{"routines": [{{"RoutineName": "r", {routine} "CommandList": [{{"DevID": "d", "Action": 1 {command}}}]}}],
                "triggers": [{{"RoutineName": "r", "every_ms": 5 {trigger}}}]}}"#
        );
        Home::read(text.as_bytes()).map(|_| ())
    };
    let reported = |routine: &str, command: &str, trigger: &str| {
        let refused = read(routine, command, trigger).unwrap_err().to_string();
        let (reported, _) = refused.rsplit_once(", at line ").unwrap();
        reported.to_owned()
    };
    assert_eq!(read("", "", ""), Ok(()));
    assert_eq!(
        reported("", r#", "preemptible": true"#, ""),
        "routines[0].CommandList[0].preemptible: preemptible is true and the command does not hold its device: give a hold_ms above zero, or leave it out"
    );
    assert_eq!(
        reported(r#""mode": "queued","#, "", ""),
        "routines[0].limit: the mode is queued and there is no limit: give how many runs may be unfinished, from 1"
    );
    for limit in ["0", "65536", "-1"] {
        assert_eq!(
            reported(&format!(r#""mode": "queued", "limit": {limit},"#), "", ""),
            format!("routines[0].limit: the limit is {limit}: give a whole number from 1 to 65535")
        );
    }
    assert_eq!(
        reported(r#""mode": "queud", "limit": 1,"#, "", ""),
        "routines[0].mode: \"queud\" is no mode: did you mean \"queued\"? else give parallel, single, restart or queued"
    );
    assert!(reported(r#""moed": "single","#, "", "").contains("did you mean \"mode\"?"));
    assert!(reported("", r#", "preemptable": true"#, "").contains("did you mean \"preemptible\"?"));
    assert!(reported("", "", r#", "cool_down_ms": 1"#).contains("did you mean \"cooldown_ms\"?"));
    for mode in ["", r#""mode": "single","#] {
        let routine = format!(r#"{mode} "limit": 2,"#);
        assert_eq!(
            reported(&routine, "", ""),
            "routines[0].limit: a limit is only for the mode queued: remove it, or set mode to queued"
        );
    }
    assert_eq!(
        reported("", "", r#", "cooldown_ms": 0"#),
        "triggers[0].cooldown_ms: it is 0: give milliseconds above zero, or leave it out"
    );
    for urgency in ["256", "-1"] {
        assert_eq!(
            reported(&format!(r#""urgency": {urgency},"#), "", ""),
            format!(
                "routines[0].urgency: the urgency is {urgency}: give a whole number from 0 to 255"
            )
        );
    }
    let manual = r#"{"routines": [{"RoutineName": "r", "CommandList": [{"DevID": "d", "Action": 1}]}],
        "triggers": [{"RoutineName": "r", "manual": true, "cooldown_ms": 5}]}"#;
    assert_eq!(
        Home::read(manual.as_bytes()).unwrap_err().to_string(),
        "triggers[0].cooldown_ms: a manual trigger does not cool down: remove cooldown_ms, or give another trigger, at line 2 column 74"
    );
    let long = |mode: &str, length| {
        let name = "r".repeat(length);
        let text = format!(
            r#"{{"RoutineName": "{name}", {mode} "CommandList": [{{"DevID": "d", "Action": 1}}]}}"#
        );
        Home::read(text.as_bytes()).map(|_| ())
    };
    let single = r#""mode": "single","#;
    assert_eq!(long(single, LONGEST_KEY), Ok(()));
    for mode in ["", single] {
        let refused = long(mode, LONGEST_KEY + 1).unwrap_err().to_string();
        assert!(
            refused.contains("it has 256 bytes and may have 255"),
            "{refused}"
        );
    }
}

#[test]
fn a_home_that_could_not_be_read_is_not_written() {
    let home = || Home::read(ALL.as_bytes()).unwrap();
    let refused = |home: Home| match home.write().unwrap_err() {
        FileError::Meaning { fault, .. } => fault,
        form @ FileError::Form { .. } => panic!("{form}"),
    };
    let mut it = home();
    it.routines[0].routine.steps[0].hold = Span::micros(1_500);
    assert_eq!(refused(it), Fault::NotWhole(1_500));
    let mut it = home();
    it.routines[0].routine.steps[0].device = NodeId(9);
    assert_eq!(refused(it), Fault::NoDeviceName(NodeId(9)));
    let mut it = home();
    it.routines[1].name = "warm up".into();
    assert_eq!(refused(it), Fault::SameRoutine("warm up".into()));
    let mut it = home();
    it.routines[0].routine.steps.clear();
    assert_eq!(refused(it), Fault::EmptyList);
    let mut it = home();
    it.initial.insert(NodeId(9), "on".into());
    assert_eq!(refused(it), Fault::NoDeviceName(NodeId(9)));
    let mut it = home();
    it.lateness.insert(NodeId(9), Span::secs(1));
    assert_eq!(refused(it), Fault::NoDeviceName(NodeId(9)));
    let mut it = home();
    it.lateness.insert(NodeId(0), Span::micros(1_500));
    assert_eq!(refused(it), Fault::NotWhole(1_500));
    let mut it = home();
    it.lateness
        .insert(NodeId(0), LONGEST_LATENESS + Span::millis(1));
    let (found, limit) = (86_400_001, 86_400_000);
    assert_eq!(refused(it), Fault::TooLate { found, limit });
}

#[test]
fn deep_nesting_is_refused_without_a_panic() {
    let open = r#"{"not":"#.repeat(10_000);
    let close = "}".repeat(10_000);
    let clause = format!(r#"{open}{{"DevID": "d", "equal": 1}}{close}"#);
    let text = format!(r#"{{"triggers": [{{"RoutineName": "r", "when": {clause}}}]}}"#);
    let error = Home::read(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("nested more than 64 deep"));
}

#[test]
fn lists_do_not_stand_for_objects() {
    for text in [
        r#"["r", [["d", 1]]]"#,
        r#"{"RoutineName": "r", "CommandList": [["d", 1]]}"#,
        r#"{"routines": [["r", [{"DevID": "d", "Action": 1}]]]}"#,
        r#"{"devices": [["d"]]}"#,
    ] {
        let error = Home::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("give an object"), "{text}: {error}");
    }
}
