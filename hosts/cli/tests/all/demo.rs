//! Small, fast demos from end to end. They check that a demo judges itself, and the promises that
//! do not depend on time; a hurried run on a busy machine may break the others.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests, too"
)]

use std::fs;
use std::process::Command;

use serde_json::Value;

/// The result of a demo.
struct Ended {
    table: Vec<Value>,
    notified: String,
    page: String,
}

/// Runs a demo, and compares its exit status with its table.
fn run(story: &[&str], page: bool) -> Ended {
    let name = story.join("").replace(' ', "");
    let out = std::env::temp_dir().join(format!("selvedge-{name}-{}.html", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(story);
    command.args(["--seed", "5", "--period", "60", "--json"]);
    if page {
        command.arg("--out").arg(&out);
    }
    let output = command.output().unwrap();
    let notified = String::from_utf8(output.stderr).unwrap();
    let page = page.then(|| {
        let page = fs::read_to_string(&out).unwrap();
        fs::remove_file(&out).unwrap();
        page
    });
    let table: Vec<Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {notified}"));
    assert_eq!(
        output.status.success(),
        !table.iter().any(is_broken),
        "{table:#?}"
    );
    let page = page.unwrap_or_default();
    Ended {
        table,
        notified,
        page,
    }
}

fn is_broken(row: &Value) -> bool {
    !row["held"].as_bool().unwrap() && row["judged"].as_bool().unwrap()
}

impl Ended {
    fn ids(&self) -> Vec<&str> {
        let ids = self.table.iter().map(|row| row["id"].as_str().unwrap());
        ids.collect()
    }

    fn row(&self, id: &str) -> &Value {
        self.table.iter().find(|row| row["id"] == id).unwrap()
    }

    fn held(&self, ids: &[&str]) {
        for id in ids {
            let row = self.row(id);
            assert!(row["held"].as_bool().unwrap(), "{row:#?}");
        }
    }

    /// Asserts that a promise held, unless the machine was too slow for it.
    fn unbroken(&self, id: &str) {
        let row = self.row(id);
        assert!(!is_broken(row), "{row:#?}");
    }

    fn page_needs_nothing_else(&self) {
        assert!(self.page.contains("<svg") && self.page.ends_with("</html>\n"));
        for outside in ["http:", "https:", "src=", "url(", "@import"] {
            assert!(!self.page.contains(outside), "the page needs {outside}");
        }
    }
}

#[test]
fn the_demo_judges_itself_and_draws_its_page() {
    let demo = run(&["--nodes", "8"], true);
    let ids = demo.ids();
    assert_eq!((ids.len(), ids[0], ids[8]), (21, "join", "false-removals"));
    demo.held(&["ballot", "fencing", "overlap", "tokens", "frame", "faulty"]);
    demo.page_needs_nothing_else();
    assert!(demo.notified.contains("are cut off") && demo.notified.contains("the cut heals"));
}

#[test]
fn the_building_judges_itself_and_draws_its_page() {
    let demo = run(&["demo", "building"], true);
    assert_eq!((demo.ids().len(), demo.ids()[0]), (12, "building-order"));
    demo.unbroken("building-order");
    // This does not depend on time.
    let ring = demo.row("building-once");
    assert_eq!(ring["seen"].as_f64(), Some(0.0), "{ring:#?}");
    demo.page_needs_nothing_else();
    assert!(
        demo.notified.contains("goes dark")
            && demo
                .notified
                .contains("all nodes are back with what they stored")
    );
    assert!(demo.page.contains("A building without a hub") && demo.page.contains("class=\"band"));
}

#[test]
fn the_ledger_judges_itself() {
    let demo = run(&["demo", "ledger"], false);
    assert_eq!((demo.ids().len(), demo.ids()[0]), (5, "ledger-kept"));
    demo.held(&["ledger-kept", "ledger-once", "ledger-reads"]);
    demo.unbroken("ledger-alike");
    assert_eq!(
        demo.notified.matches("killed: ").count(),
        2,
        "{}",
        demo.notified
    );
}
