//! Runs the quick scenarios of `groups::check` under this crate's rules: every promise, explored to
//! the end, with exact counts. Then every rule that must break: in an exact number of steps.

use selvedge_groups::check::scenarios;
use selvedge_sim::check::{verify_ours, verify_published};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 16);
}

#[test]
fn without_a_mark_of_the_groups_that_a_node_left_two_histories_are_reached() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 1);
}
