//! Every published rule that breaks a promise: it must break in so many steps. That ours hold in the
//! same scenarios is seen to in `tests/all/model.rs`.
//!
//! `docs/errata.md` says where each rule stands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_celect::check::scenarios;
use selvedge_sim::check::verify_published;

#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 11);
}
