//! Every published rule that breaks a promise: it must break in the stated number of steps.
//! `tests/all/model.rs` checks that this crate's rules hold in the same scenarios.
//!
//! `docs/errata.md` lists the source of each rule.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_camera::check::scenarios;
use selvedge_sim::check::verify_published;

#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 40);
}
