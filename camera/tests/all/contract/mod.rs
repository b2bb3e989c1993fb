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
//! How to run more of them, or one, stands in `selvedge_sim::histories`.

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
    // Each kind of trouble was met, or the test says nothing.
    if ran >= 100 {
        assert_eq!(all.missing(), None, "{all:?}");
        assert!(
            all.entries >= ran && 2 * all.compared >= all.entries,
            "{all:?}"
        );
    }
}
