//! Runs the quick scenarios of `groups::check` under this crate's rules: every promise, explored to
//! the end, with exact counts. Then every rule that must break: in an exact number of steps.

use selvedge_groups::check::scenarios;
use selvedge_sim::check::{verify_ours, verify_published};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 29);
}

#[test]
fn each_rule_that_breaks_a_promise_is_found() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 6);
}
