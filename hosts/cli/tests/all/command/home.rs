//! `selvedge home`: its page, its JSON, and wrong arguments.

use std::fs;

use serde_json::Value;

use crate::command::running::{Folder, complaint, selvedge};

#[test]
fn a_party_is_run_and_drawn() {
    let folder = Folder::new("home-party");
    let out = folder.path("out");
    let arguments = [
        "home",
        "--scenario",
        "party",
        "--speed",
        "max",
        "--seed",
        "4",
        "--json",
        "--out",
        &out,
        "--fail",
        "microphone@10..2000",
    ];
    let output = selvedge(&arguments);
    assert!(output.status.success(), "{}", complaint(&output));
    let notified: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(notified["routines"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&notified["held"], &notified["explained"]),
        (&true.into(), &true.into())
    );
    let page = fs::read_to_string(format!("{out}/party-ev-timeline.html")).unwrap();
    assert!(page.contains("microphone was down") && page.ends_with("</html>\n"));
    for outside in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
}

#[test]
fn a_wrong_file_gets_one_line_with_the_place_and_the_mend() {
    let folder = Folder::new("home-file");
    let file = folder.path("home.json");
    fs::write(
        &file,
        r#"{"RoutineName": "r", "CommandList": [{"DevID": "d", "Action": 1, "hold_ms": -5}]}"#,
    )
    .unwrap();
    let out = folder.path("out");
    let output = selvedge(&["home", "--routines", &file, "--speed", "max", "--out", &out]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains("home.json: CommandList[0].hold_ms: -5 is below zero"));
}

#[test]
fn a_wrong_outage_speed_or_device_is_named_and_the_status_is_2() {
    let folder = Folder::new("home-wrong");
    let out = folder.path("out");
    for (flag, value, reported) in [
        ("--fail", "toaster", "write DEVICE@FROM..TO"),
        ("--fail", "toaster@9..3", "FROM below TO"),
        (
            "--fail",
            "toaster@1..18446744073709551615",
            "up to 1000000000",
        ),
        ("--fail", "piano@1..2", "no device \"piano\""),
        ("--set", "motion=on", "write DEVICE=STATE@SECOND"),
        ("--set", "motion=@5", "write DEVICE=STATE@SECOND"),
        ("--set", "piano=on@5", "no device \"piano\""),
        ("--press", "night", "write ROUTINE@SECOND"),
        ("--press", "night@1000000001", "write ROUTINE@SECOND"),
        ("--press", "night@5", "no routine \"night\""),
        ("--speed", "0", "give a number from 1 to 1000000, or max"),
    ] {
        let output = selvedge(&["home", "--out", &out, flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}");
        assert!(
            complaint(&output).contains(reported),
            "{}",
            complaint(&output)
        );
    }
}

#[test]
fn a_page_from_before_stays_when_a_run_does_not_begin() {
    let folder = Folder::new("home-before");
    let out = folder.path("out");
    let page = format!("{out}/morning-ev-timeline.html");
    fs::create_dir_all(&out).unwrap();
    fs::write(&page, "from before").unwrap();
    let output = selvedge(&["home", "--out", &out, "--fail", "piano@1..2"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&page).unwrap(), "from before");
}

#[test]
fn a_sensor_is_set_and_a_routine_is_pressed() {
    let folder = Folder::new("home-hand");
    let (file, out) = (folder.path("home.json"), folder.path("out"));
    fs::write(
        &file,
        r#"{"devices": [{"DevID": "motion", "initial": "clear"}, {"DevID": "lamp", "initial": "off"}],
          "routines": [
            {"RoutineName": "light", "CommandList": [{"DevID": "lamp", "Action": "on"}]},
            {"RoutineName": "good night", "CommandList": [{"DevID": "lamp", "Action": "off"}]}],
          "triggers": [{"RoutineName": "light", "when": {"DevID": "motion", "equal": "seen"}}]}"#,
    )
    .unwrap();
    let mut arguments = vec![
        "home",
        "--routines",
        &file,
        "--clock",
        "21:00",
        "--length",
        "900",
    ];
    arguments.extend(["--speed", "max", "--json", "--out", &out]);
    let lamp = |more: &[&str]| {
        let output = selvedge(&[&arguments, more].concat());
        assert!(output.status.success(), "{}", complaint(&output));
        let notified: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(notified["explained"], true, "{notified}");
        let devices = notified["devices"].as_array().unwrap();
        let lamp = devices.iter().find(|it| it["device"] == "lamp").unwrap();
        let routines = notified["routines"].as_array().unwrap().len();
        (lamp["state"].as_str().unwrap().to_owned(), routines)
    };
    assert_eq!(lamp(&[]), ("off".into(), 0));
    let seen = ["--set", "motion=seen@60"];
    assert_eq!(lamp(&seen), ("on".into(), 1));
    let night = [&seen[..], &["--press", "good night@600"]].concat();
    assert_eq!(lamp(&night), ("off".into(), 2));
    let ended = [&seen[..], &["--fail", "motion@50..70"]].concat();
    assert_eq!(lamp(&ended), ("off".into(), 0), "it has no power then");
}
