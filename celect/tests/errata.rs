//! Every published rule that breaks a promise, run twice: it must break in so many steps, and ours
//! must hold to the end.
//!
//! `docs/errata.md` says where each rule stands.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use selvedge_celect::check::scenarios;
use selvedge_sim::check::{Rules, Scenario};

#[test]
fn published_rules_break_in_so_many_steps_and_ours_hold() {
    let list = scenarios();
    let published: Vec<&Scenario> = list
        .iter()
        .filter(|scenario| scenario.rules() == Rules::Published)
        .collect();
    assert!(published.len() >= 10, "{}", published.len());
    let mut held = Vec::new();
    for theirs in published {
        let name = theirs.name();
        let ours = |it: &&Scenario| it.name() == name && it.rules() == Rules::Ours;
        let ours = list.iter().find(ours).unwrap();
        let is_new = !held.contains(&name);
        for scenario in [(is_new, ours), (!theirs.is_deep(), theirs)] {
            let (is_due, scenario) = scenario;
            if is_due && let Err(surprise) = scenario.verify() {
                panic!("{surprise}");
            }
        }
        held.push(name);
    }
}
