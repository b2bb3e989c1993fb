//! Every published rule that breaks a promise, run twice: it must break in so many steps, and ours
//! must hold to the end. Then ours with one part taken out, which must break too.
//!
//! `docs/errata.md` says where each rule stands.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use selvedge_camera::check::scenarios;
use selvedge_sim::check::{Rules, Scenario};

#[test]
fn published_rules_break_in_so_many_steps_and_ours_hold() {
    let list = scenarios();
    let published: Vec<&Scenario> = list
        .iter()
        .filter(|scenario| scenario.rules() == Rules::Published)
        .collect();
    assert!(published.len() >= 28, "{}", published.len());
    for theirs in published {
        let ours = |scenario: &&Scenario| {
            scenario.name() == theirs.name() && scenario.rules() == Rules::Ours
        };
        for scenario in [theirs, list.iter().find(ours).unwrap()] {
            if let Err(surprise) = scenario.verify() {
                panic!("{surprise}");
            }
        }
    }
}
