//! The promises of Ricart and Agrawala, checked in every order of events.

use selvedge_core::Member;
use selvedge_sim::check::{Expected, Model, Scenario, State};

use super::{Command, RicartAgrawala, Stage};

/// Nodes with numbers from 1 on, each with its list of known nodes.
fn nodes(lists: &[&[u64]]) -> Vec<RicartAgrawala> {
    let member = |id| Member::new(id, 0);
    let known = |list: &&[u64]| list.iter().copied().map(member).collect::<Vec<_>>();
    (1..)
        .zip(lists)
        .map(|(id, list)| RicartAgrawala::new(member(id), known(list)))
        .collect()
}

/// The first `visitors` nodes enter and exit `visits` times each.
fn model(lists: &[&[u64]], visitors: usize, visits: usize) -> Model<RicartAgrawala> {
    let visit = [Command::Enter, Command::Exit].repeat(visits);
    (0..visitors)
        .fold(
            Model::new(nodes(lists), RicartAgrawala::me),
            |model, node| model.commands(node, visit.clone()),
        )
        .always("mutual exclusion", |state| inside(state) <= 1)
}

fn inside(state: &State<RicartAgrawala>) -> usize {
    let machines = state.machines();
    machines
        .filter(|machine| *machine.stage() == Stage::Inside)
        .count()
}

/// Returns true if all nodes have left the last visit.
fn all_done(state: &State<RicartAgrawala>, visits: usize) -> bool {
    state
        .nodes()
        .all(|node| node.issued() as usize == 2 * visits)
}

/// `nodes` with complete lists, `visits` each: safe, and every node gets in and out.
#[must_use]
pub fn full(nodes: u64, visits: usize) -> Model<RicartAgrawala> {
    let everyone: Vec<u64> = (1..=nodes).collect();
    let lists: Vec<&[u64]> = everyone.iter().map(|_| everyone.as_slice()).collect();
    model(&lists, lists.len(), visits)
        .progress("everyone gets in and out", move |state| {
            all_done(state, visits)
        })
        .never_rejects("no message is refused")
}

/// Nodes 1 and 2 want to enter and do not know each other; both know 3.
#[must_use]
pub fn symmetric() -> Model<RicartAgrawala> {
    model(&[&[3], &[3], &[1, 2]], 2, 1)
}

/// Node 1 knows 2, but 2 does not know 1; both know 3.
#[must_use]
pub fn asymmetric() -> Model<RicartAgrawala> {
    model(&[&[2, 3], &[3], &[1, 2]], 2, 1)
}

/// All scenarios, with their expected outcomes.
///
/// The counts are those of this model: a node enters in the step in which the last OK arrives, two
/// equal letters are indistinguishable, and a node keeps the highest number it has seen
/// (`max_seen`) when no node asks any more. If entering were a step of its own, three nodes would
/// have 3,275 states with one visit each instead of 2,858, and 44,910 with two instead of 39,841.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let holds = |states| Expected::Holds { states };
    let breaks = |steps| Expected::Breaks { steps };
    vec![
        Scenario::new("ricart-agrawala/3 nodes, 1 visit", holds(2_858), || {
            full(3, 1)
        }),
        Scenario::new("ricart-agrawala/3 nodes, 2 visits", holds(39_841), || {
            full(3, 2)
        }),
        Scenario::new("ricart-agrawala/3 nodes, 3 visits", holds(219_128), || {
            full(3, 3)
        })
        .deep(),
        Scenario::new("ricart-agrawala/4 nodes, 1 visit", holds(2_074_189), || {
            full(4, 1)
        })
        .deep(),
        Scenario::new("ricart-agrawala/symmetric ignorance", breaks(6), symmetric).published(),
        Scenario::new(
            "ricart-agrawala/asymmetric ignorance",
            breaks(8),
            asymmetric,
        )
        .published(),
    ]
}
