//! Nodes that promised to end a group, while the outcome is open.

use super::rounds::{END, Rounds};
use super::*;

/// Too few nodes have promised, and the registry's leader has given up: the group goes on among the others.
#[test]
fn a_node_that_promised_to_end_a_group_is_named_by_no_link_of_it() {
    let mut rounds = Rounds::new();
    rounds.town.ask(1, FIRST, 1);
    let first = members(&rounds.town, FIRST);
    let others = (1..=7).filter(|it| !first.contains(it));
    let bound: Vec<u64> = others.take(2).collect();
    for id in &bound {
        let promise = rounds.ask_about(*id, FIRST, END, true);
        assert!(promise.is_some());
    }
    let mut named = BTreeSet::new();
    for number in 2..=9 {
        for id in 1..=7 {
            let epoch = Command::SetEpoch(number);
            rounds.town.input(id, Input::Command(epoch));
        }
        rounds.run_unasked(Span::secs(10));
        named.extend(members(&rounds.town, FIRST));
    }
    let other = (1..=7).filter(|it| !bound.contains(it));
    assert_eq!(named, other.collect());
    rounds.town.ask(bound[0], FIRST, 2);
    assert_eq!(rounds.town.set(FIRST), 0b110);
}
