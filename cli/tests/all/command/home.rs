//! `selvedge home`: its page, its JSON, and what is asked for wrongly.

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
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["routines"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&told["held"], &told["explained"]),
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
    for (flag, value, said) in [
        ("--fail", "toaster", "write DEVICE@FROM..TO"),
        ("--fail", "toaster@9..3", "FROM below TO"),
        (
            "--fail",
            "toaster@1..18446744073709551615",
            "up to 1000000000",
        ),
        ("--fail", "piano@1..2", "no device \"piano\""),
        ("--speed", "0", "give a number from 1 to 1000000, or max"),
    ] {
        let output = selvedge(&["home", "--out", &out, flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}");
        assert!(complaint(&output).contains(said), "{}", complaint(&output));
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
