//! Runs the quick scenarios of `check` under our rules: every promise, explored to the end, with
//! exact counts. The deep ones are for `selvedge check --deep`.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use selvedge_celect::check::scenarios;
use selvedge_sim::check::{Rules, Scenario};

#[test]
fn our_rules_keep_every_promise() {
    let quick = |scenario: &&Scenario| !scenario.is_deep() && scenario.rules() == Rules::Ours;
    let list = scenarios();
    assert!(list.iter().filter(quick).count() >= 10);
    for scenario in list.iter().filter(quick) {
        if let Err(surprise) = scenario.verify() {
            panic!("{surprise}");
        }
    }
}
