//! Runs the quick scenarios of `check` under our rules: every promise, explored to the end, with
//! exact counts. The deep ones are for `selvedge check --deep`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_celect::check::scenarios;
use selvedge_sim::check::verify_ours;

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 50);
}
