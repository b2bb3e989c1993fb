//! The facts of a node's memory.

use selvedge_core::durable::Durable;
use selvedge_groups::Fact;
use selvedge_replica::Configuration;

use crate::mesh::*;

#[test]
fn what_a_node_stores_has_the_groups_that_it_left() {
    let mut mark = Configuration::of([2, 3, 4].map(|id| life(id, 0)));
    mark.number = 3;
    let mut groups = machine(life(1, 0), 5, config(), Start::Restarted);
    leave(&mut groups, GROUP, mark.clone());
    let left = Fact::Left {
        group: GROUP,
        plan: groups.plan().digest(),
        configuration: mark.into(),
    };
    assert_eq!(groups.base(Some(GROUP)), Some(left.clone()));
    assert_eq!(groups.base(Some(LATER)), None);
    let stored: Vec<_> = groups.stored().collect();
    assert_eq!(stored.last(), Some(&left));
    let mut next = machine(life(1, 1), 5, config(), Start::Restarted);
    stored.iter().for_each(|it| next.fold(it).unwrap());
    assert_eq!(next.base(Some(GROUP)), Some(left));
}

#[test]
fn a_host_finds_facts_among_events() {
    let fact = machine(life(1, 0), 5, config(), Start::Restarted)
        .base(None)
        .unwrap();
    assert_eq!(Machine::fact(&Event::Fact(fact.clone())), Some(&fact));
    assert_eq!(Machine::fact(&Event::Entered(GROUP)), None);
}
