//! Runs the quick scenarios of `check` with routines, under the rules of this crate: every promise,
//! explored to the end, with exact counts. Then every published rule: each breaks in an exact
//! number of steps. The deep ones are for `selvedge check --deep`.

use selvedge_kgroup::check::{routines, scenarios};
use selvedge_sim::check::{verify_ours, verify_published};

#[test]
fn our_rules_keep_every_promise() {
    assert_eq!(verify_ours(&routines()).unwrap(), 30);
}

#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&routines()).unwrap(), 12);
}

#[test]
fn a_scenario_has_a_name_of_its_own() {
    let mut names: Vec<_> = (scenarios().iter())
        .map(|it| (it.name().to_owned(), it.rules().to_string()))
        .collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|it| it[0] != it[1]), "{names:?}");
}
