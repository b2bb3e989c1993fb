//! Random histories in which hosts and membership keep core's contract, and do nothing beyond it.
//!
//! - Nodes differ in settings and in the pace of their clocks. A host sleeps: its timers are late,
//!   and messages that arrived meanwhile come at once when it wakes. Commands come in any order.
//! - Single messages are lost, come twice, out of order, or after everything else.
//! - Membership reports to one node early, to another late, and to a third not at all: nodes that
//!   joined and left and never asked to enter, and even in the end some live nodes. Failures are
//!   false.
//! - Nodes crash, leave and restart, but no more lives are present than [`plan::Plan::bound`] from
//!   the beginning of a request to its end.
//!
//! Then the trouble ends, and each node that wants to enter does, three times, or is refused if the
//! lists connect too few nodes. In the end no more messages are sent.
//!
//! `selvedge_sim::histories` explains how to run more of them, or one.

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

use selvedge_sim::histories::{Choices, random, seeds};
use watch::Tally;

fn history(choices: Choices) -> Tally {
    let mut choices = choices;
    let plan = plan::Plan::draw(&mut choices);
    let mut world = world::World::new(&plan, choices);
    for &step in &plan.steps {
        world.step(step);
    }
    world.calm();
    world.watch.tally
}

#[test]
fn the_letter_of_the_contract_is_enough() {
    let mut all = Tally::default();
    let ran = random(seeds(400), |choices| all.add(&history(choices)));
    println!("{ran} histories: {all:?}");
    // Without each kind of trouble the test would prove little.
    if ran >= 100 {
        assert_eq!(all.missing(), None, "{all:?}");
        assert!(
            all.entries >= ran && 2 * all.compared >= all.entries,
            "{all:?}"
        );
    }
}
