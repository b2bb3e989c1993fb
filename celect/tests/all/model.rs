//! Runs the quick scenarios of `check` under this crate's rules: every promise, explored to the end,
//! with exact counts. `selvedge check --deep` runs the deep scenarios.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_celect::check::scenarios;
use selvedge_sim::check::verify_ours;

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 50);
}
