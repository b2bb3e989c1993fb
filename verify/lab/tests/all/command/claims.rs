//! `selvedge-lab claims`: rows, shards, and wrong arguments.

use std::fs;

use serde_json::Value;

use crate::command::running::{Folder, complaint, lab};

/// Few trials of something quick, and the exact example.
const SOME: [&str; 5] = ["claims", "M4", "M11", "--trials", "6"];

#[test]
fn an_unknown_claim_gets_one_line_with_the_known_ones() {
    let folder = Folder::new("claims-unknown");
    let output = lab(&["claims", "M99", "--out", &folder.path("out")]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(
        complaint.contains("M99") && complaint.contains("membership") && complaint.contains("M12")
    );
    for shard in ["0/2", "3/2", "2", "a/b"] {
        let output = lab(&["claims", "M11", "--shard", shard]);
        assert_eq!(output.status.code(), Some(2), "{shard}");
    }
}

/// The result is the same, byte for byte, with any division of the trials and in any order.
#[test]
fn shards_merge_into_what_one_run_finds() {
    let folder = Folder::new("claims-shards");
    let whole = folder.path("whole");
    let output = lab(&[&SOME[..], &["--threads", "1", "--out", &whole]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let parts = folder.path("parts");
    let mut files = Vec::new();
    for shard in ["3/3", "1/3", "2/3"] {
        let output = lab(&[&SOME[..], &["--shard", shard, "--out", &parts]].concat());
        assert!(output.status.success(), "{}", complaint(&output));
        files.push(format!("{parts}/shard-{}.json", shard.replace('/', "-of-")));
    }
    let merged = folder.path("merged");
    let mut arguments = vec!["claims", "--out", &merged, "--merge"];
    arguments.extend(files.iter().map(String::as_str));
    assert!(lab(&arguments).status.success());
    for file in ["claims.json", "claims.html"] {
        let read = |folder: &str| fs::read(format!("{folder}/{file}")).unwrap();
        assert!(read(&whole) == read(&merged), "{file} differs");
    }

    // A shard is missing: the rest is judged, with a warning.
    arguments.pop();
    let output = lab(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("missing"));

    // A shard of another run is refused.
    let other = folder.path("other");
    let seeded = [
        &SOME[..],
        &["--seed", "2", "--shard", "1/3", "--out", &other],
    ]
    .concat();
    assert!(lab(&seeded).status.success());
    let other = format!("{other}/shard-1-of-3.json");
    let first = &files[0];
    let output = lab(&["claims", "--out", &merged, "--merge", first, &other]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("seed"));
}

#[test]
fn rows_have_the_promised_shape_and_the_page_needs_nothing_else() {
    let folder = Folder::new("claims-rows");
    let out = folder.path("out");
    let output = lab(&[&SOME[..], &["--json", "--out", &out]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let written = fs::read(format!("{out}/claims.json")).unwrap();
    assert_eq!(output.stdout, written);
    let rows: Vec<Value> = serde_json::from_slice(&written).unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["M4", "M11"]);
    for row in &rows {
        for name in ["id", "claim", "paper", "ours", "unit", "verdict", "reason"] {
            assert!(row[name].is_string(), "{name} of {row}");
        }
        assert!(row["trials"].as_u64().unwrap() > 0 && row["seed"] == 1);
        let verdict = row["verdict"].as_str().unwrap();
        assert!(["better", "holds", "differs"].contains(&verdict));
    }
    assert_eq!(rows[1]["ours"], "[0.31, 0.27, 0.17, 0.25]");
    assert_eq!(rows[1]["verdict"], "holds");
    let page = fs::read_to_string(format!("{out}/claims.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2);
    for outside in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}
