use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::process::Command;

use selvedge_sim::histories;

/// Set in the processes that the tests below start, so that only these are made to fail.
const WANTED: &str = "HISTORIES_FAILS_AT";

#[test]
fn every_seed_is_run_once_in_order() {
    if std::env::var_os("SELVEDGE_SEED").is_some() {
        return;
    }
    let mut seen = Vec::new();
    assert_eq!(histories(3..7, |seed| seen.push(seed)), 4);
    assert_eq!(seen, [3, 4, 5, 6]);
    let mut seen = Vec::new();
    let failed = catch_unwind(AssertUnwindSafe(|| {
        histories(0..9, |seed| {
            seen.push(seed);
            assert!(seed < 2, "on purpose");
        })
    }));
    assert!(failed.is_err());
    assert_eq!(seen, [0, 1, 2]);
}

/// Passes, unless one of the tests below runs it in a process of its own.
#[test]
fn fails_when_notified() {
    let Ok(wanted) = std::env::var(WANTED) else {
        return;
    };
    let wanted: u64 = wanted.parse().unwrap();
    let mut ran = Vec::new();
    histories(0..20, |seed| {
        ran.push(seed);
        assert!(seed != wanted, "seeds were {ran:?}");
    });
}

/// Runs the test above; returns true if it passed, and its output.
fn run(fails_at: &str, seed: Option<&str>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "network::histories::fails_when_notified",
        "--nocapture",
    ]);
    command
        .env(WANTED, fails_at)
        .env("CARGO_PKG_NAME", "selvedge-sim");
    command.env_remove("SELVEDGE_SEED");
    if let Some(seed) = seed {
        command.env("SELVEDGE_SEED", seed);
    }
    let output = command.output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), reported)
}

#[test]
fn a_failure_names_its_seed_and_the_line_that_replays_it() {
    let (passed, reported) = run("17", None);
    let replay = "SELVEDGE_SEED=17 cargo test -p selvedge-sim -- --exact network::histories::fails_when_notified";
    assert!(
        !passed && reported.contains("failed with seed 17") && reported.contains(replay),
        "{reported}"
    );
    let (passed, reported) = run("17", Some("17"));
    assert!(
        !passed && reported.contains("seeds were [17]"),
        "{reported}"
    );
    assert!(run("17", Some("16")).0);
    let (passed, reported) = run("18446744073709551615", Some("18446744073709551615"));
    assert!(
        !passed && reported.contains("seeds were [18446744073709551615]"),
        "{reported}"
    );
}

#[test]
fn a_seed_that_is_no_number_fails_the_test() {
    let (passed, reported) = run("17", Some("seventeen"));
    assert!(
        !passed && reported.contains("SELVEDGE_SEED is `seventeen`; expected a number"),
        "{reported}"
    );
}
