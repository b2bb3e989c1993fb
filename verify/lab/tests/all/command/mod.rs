//! Errors of the laboratory's command when it is called wrongly, and its output.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "helpers of tests are tests, too"
)]

mod check;
mod claims;
mod running;

use selvedge_lab::checks::LISTS;
use selvedge_lab::claims::FAMILIES;

use running::{complaint, lab};

/// The help lists all names, including the latest.
#[test]
fn help_names_all_claims_and_checks_that_there_are() {
    let help = |command| {
        let output = lab(&[command, "--help"]);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let (claims, checks) = (help("claims"), help("check"));
    for family in FAMILIES {
        assert!(claims.contains(&format!("`{}`", family.name)), "{claims}");
    }
    for list in LISTS {
        assert!(checks.contains(&format!("`{}`", list.name)), "{checks}");
    }
}

#[test]
fn an_unknown_check_gets_one_line_with_the_known_ones() {
    let output = lab(&["check", "camera-obscura"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains("camera-obscura") && complaint.contains("membership"));
}

#[test]
fn what_is_no_setting_or_not_for_elections_is_refused() {
    let live = |arguments: &[&str]| {
        let output = lab(&[&["claims"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        complaint(&output)
    };
    let notified = live(&["celect", "--live", "--setting", "10:1"]);
    assert!(
        notified.contains("10:1") && notified.contains("PERIOD_MS"),
        "{notified}"
    );
    assert!(live(&["M6", "--live"]).contains("M6"));
    assert!(live(&["M6", "--idle", "5"]).contains("--live"));
}
