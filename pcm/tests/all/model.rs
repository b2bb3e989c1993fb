//! The quick scenarios of `check`, under our rules: every promise, explored to the end, with exact counts.
//! Then every published rule: each breaks in a known number of steps. The deep scenarios are for `selvedge
//! check --deep`.

use selvedge_pcm::check::scenarios;
use selvedge_sim::check::{verify_ours, verify_published};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 30);
}

#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 18);
}
