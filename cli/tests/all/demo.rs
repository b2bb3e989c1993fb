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
    assert_eq!(
        output.status.success(),
        table.iter().all(held),
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
        "ledger-alike",
        "ledger-reads",
    ] {
        let row = table.iter().find(|row| row["id"] == always).unwrap();
        assert!(held(row), "{row:#?}");
    }

    // Whatever time it took, nothing of this is ever seen.
    for never in ["building-order", "building-once"] {
        let row = table.iter().find(|row| row["id"] == never).unwrap();
        assert_eq!(row["seen"].as_f64(), Some(0.0), "{row:#?}");
    }

    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    for outside in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("are cut off") && told.contains("the cut heals"));
    assert!(told.contains("goes dark") && told.contains("have power again"));
    assert!(page.contains("A building without a hub") && page.contains("class=\"band"));
}
