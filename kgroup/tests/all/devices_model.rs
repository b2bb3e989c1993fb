//! Runs the quick scenarios of `check` under the rules of this crate: every promise, explored to
//! the end, with exact counts. Then every published rule: each breaks in an exact number of steps.

use selvedge_kgroup::devices::check::scenarios;
use selvedge_sim::check::{verify_ours, verify_published};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 25);
}

#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 8);
}
