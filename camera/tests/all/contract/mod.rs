//! Random histories in which hosts and membership keep core's contract to the letter, and do no more
//! than that.
//!
//! - Nodes differ in settings and in the pace of their clocks. A host sleeps: its timers are late,
//!   and what arrived meanwhile comes at once when it wakes. Commands come in any order.
//! - Single messages are lost, come twice, out of order, or when all else is over.
//! - Membership tells one node early, another late, and a third nothing: of a node that came and
//!   went and never asked to enter, and in the end still of some that live. Failures are false.
//! - Nodes crash, leave and restart, but no more lives are present than [`plan::Plan::bound`] from
//!   the beginning of a request to its end.
//!
//! Then the trouble ends, and whoever wants to enter does, three times over, or is refused where
//! the lists connect too few. In the end it is quiet.
//!
//! `SELVEDGE_HISTORIES` says how many; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod calm;
mod plan;
mod trouble;
mod watch;
mod world;

use watch::Tally;

fn history(seed: u64) -> Tally {
    let plan = plan::Plan::draw(seed);
    let mut world = world::World::new(&plan);
    for &step in &plan.steps {
        world.step(step);
    }
    world.calm();
    world.watch.tally
}

#[test]
fn the_letter_of_the_contract_is_enough() {
    let count = std::env::var("SELVEDGE_HISTORIES");
    let count = count.ok().and_then(|it| it.parse().ok()).unwrap_or(400);
    let mut all = Tally::default();
    let ran = selvedge_sim::histories(0..count, |seed| all += history(seed));
    println!("{ran} histories: {all:?}");
    // Each kind of trouble was met, or the test says nothing.
    if ran >= 100 {
        for met in [
            all.entries / ran,
            all.compared * 2 / all.entries,
            all.in_order,
            all.waits,
            all.refused,
            all.slow,
            all.kept,
            all.again,
            all.crashes,
            all.restarts,
            all.slept,
            all.served,
        ] {
            assert!(met > 0, "{all:?}");
        }
    }
}
