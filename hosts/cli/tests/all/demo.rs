//! A small, fast demo from end to end. Whether a hurried run on a busy machine keeps its promises
//! in time is not asked here; that it judges them, and what cannot depend on time, is.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn the_demo_judges_itself_and_draws_its_page() {
    let out = std::env::temp_dir().join(format!("selvedge-demo-{}.html", std::process::id()));
    let path = out.to_str().unwrap();
    let arguments = [
        "--nodes", "8", "--seed", "5", "--period", "60", "--json", "--out", path,
    ];
    let selvedge = env!("CARGO_BIN_EXE_selvedge");
    let output = Command::new(selvedge).args(arguments).output().unwrap();
    let page = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();

    let table: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&str> = table
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!((ids.len(), ids[0], ids[8]), (34, "join", "false-removals"));
    let held = |row: &Value| row["held"].as_bool().unwrap();
    let broken = |row: &Value| !held(row) && row["judged"].as_bool().unwrap();
    assert_eq!(
        output.status.success(),
        !table.iter().any(broken),
        "{table:#?}"
    );
    for always in [
        "ballot",
        "fencing",
        "overlap",
        "tokens",
        "frame",
        "faulty",
        "ledger-kept",
        "ledger-once",
        "ledger-reads",
    ] {
        let row = table.iter().find(|row| row["id"] == always).unwrap();
        assert!(held(row), "{row:#?}");
    }

    // Unless the machine was too slow for them.
    for judged in ["ledger-alike", "building-order"] {
        let row = table.iter().find(|row| row["id"] == judged).unwrap();
        assert!(!broken(row), "{row:#?}");
    }
    // This does not depend on time.
    let ring = table.iter().find(|row| row["id"] == "building-once");
    assert_eq!(ring.unwrap()["seen"].as_f64(), Some(0.0), "{ring:#?}");

    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    for outside in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("are cut off") && told.contains("the cut heals"));
    assert!(told.contains("goes dark") && told.contains("have power again"));
    assert!(page.contains("A building without a hub") && page.contains("class=\"band"));
}
