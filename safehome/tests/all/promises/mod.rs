//! Random histories of a hub among devices that are the test's own. The oracle knows only the
//! documentation of the hub: it does not read its lineages or the states that the hub believes.
//!
//! Devices do commands late, twice, or never; reports are late and duplicated, but in order; manual
//! changes match commands in flight, or not; the host sleeps, stops before or after it has stored a
//! step, and restarts with other settings.
//!
//! How to run more of them, or one, stands in `selvedge_sim::histories`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod oracle;
mod things;
mod world;

use selvedge_sim::histories::{random, seeds};

use world::{Counts, World};

#[test]
fn what_the_documentation_promises_is_so() {
    let mut all = Counts::default();
    let ran = random(seeds(1_000), |choices| {
        let mut world = World::new(choices);
        let steps = 20 + world.below(100);
        for _ in 0..steps {
            world.happens();
        }
        world.faults_end();
        all.add(&world.counts);
    });
    println!("{ran} histories: {all:?}");
    if ran >= 1_000 {
        // Each happens, and more routines commit than are undone, except for those that were
        // superseded or preempted.
        assert_eq!(all.missing(), None, "{all:?}");
        assert!(
            all.committed > all.aborted - all.superseded - all.preempted,
            "{all:?}"
        );
    }
}
