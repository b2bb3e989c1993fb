//! Runs the quick scenarios of `check` under this crate's rules: every promise, explored to the
//! end, with exact counts. The deep ones are for `selvedge check --deep`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use selvedge_replica::check::{five_at_work, scenarios};
use selvedge_sim::check::{Incomplete, Limits, Outcome, verify_ours};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&scenarios()).unwrap(), 35);
}

/// Too many states to search, so this is no proof: nothing breaks as far as it goes.
#[test]
fn five_members_with_three_proposals_break_nothing_in_the_first_states() {
    let limits = Limits {
        states: 60_000,
        ..Limits::default()
    };
    for report in five_at_work().check(&limits) {
        let is_cut = matches!(
            report.outcome,
            Outcome::Truncated {
                why: Incomplete::States { .. }
            }
        );
        assert!(is_cut, "{report}");
    }
}
