//! What nodes store of groups that begin by a decision of the registry.

use super::rounds::{END, Rounds};
use super::*;

/// The node loses power, and goes on from what it has stored.
fn restart(town: &mut Town, id: u64, life_number: u32, land: &Land) {
    town.stop(id);
    town.wire.clear();
    town.start(life(id, life_number), land, Start::Fresh);
}

#[test]
fn a_founder_that_loses_power_before_the_first_decision_goes_on_as_a_member() {
    let mut rounds = Rounds::new();
    let [by, founder] = [1, 2].map(|it| life(it, 1));
    let birth = Birth {
        number: END + 1,
        generation: 1,
        founders: [1, 2, 3].map(|it| life(it, 1)).into_iter().collect(),
    };
    let group = FIRST;
    rounds.send(by, founder.id.0, Item::Born { group, birth });
    let land = Land::first(7, &[FIRST.0]);
    restart(&mut rounds.town, founder.id.0, 2, &land);
    let replica = rounds.town.nodes[&founder.id.0].machine().replica(FIRST);
    let replica = replica.unwrap();
    assert_eq!(replica.configuration().number, END + 1);
    assert!(replica.votes());
}

/// A founder of a group that has stored nothing there. It takes a later site from a node that is no
/// founder of the registry, and loses power.
fn takes_a_later_site_and_restarts(group: GroupId) {
    let nodes = 17;
    let land = Land::first(nodes, &[FIRST.0]);
    let mut town = Town::new(&land);
    let founders_of = |town: &Town, group| -> Vec<u64> {
        let founders = town.nodes[&1].machine().founders(group);
        founders.into_iter().map(|it| it.0).collect()
    };
    let of_registry = founders_of(&town, GroupId::REGISTRY);
    let last = *founders_of(&town, group).last().unwrap();
    town.stop(last);
    town.run(Span::secs(2));
    let by = of_registry.iter().find(|it| **it != last).unwrap();
    town.change(*by, &land.next());
    town.run(Span::secs(10));
    town.cut
        .extend(of_registry.iter().filter(|it| **it != last));
    town.start(life(last, 1), &land, Start::Fresh);
    let is_other = |it: &u64| !of_registry.contains(it) && *it != last;
    let other = (1..=nodes).find(is_other).unwrap();
    let me = town.nodes[&last].machine().me();
    town.input(other, Input::Membership(Delta::Joined(me)));
    town.run(Span::millis(500));
    assert_eq!(town.nodes[&last].machine().generation(), 1);
    // A host that compacts has the present site alone, and its program may have a later file.
    let stored = town.nodes[&last].machine().stored().collect();
    town.facts.insert(last, stored);
    restart(&mut town, last, 2, &land.next());
    let replica = town.nodes[&last].machine().replica(group);
    assert!(replica.is_some_and(replica::Replica::votes));
}

#[test]
fn a_founder_of_the_registry_that_takes_a_later_site_votes_in_later_lives() {
    takes_a_later_site_and_restarts(GroupId::REGISTRY);
}

/// Without its vote, its group would be lost where one founder more is away.
#[test]
fn a_founder_of_a_group_that_takes_a_later_site_votes_in_later_lives() {
    takes_a_later_site_and_restarts(FIRST);
}

fn left(number: u64, plan: u32) -> Fact<Held> {
    let first = Configuration::of([1, 2, 3].map(|it| life(it, 1)));
    let configuration = Box::new(Configuration { number, ..first });
    Fact::Left {
        group: FIRST,
        plan,
        configuration,
    }
}

/// The last one of a promise and of the end of a part stands alone.
#[test]
fn of_a_promise_and_a_mark_the_later_one_is_stored() {
    let land = Land::first(7, &[FIRST.0]);
    let plan = land.plan().digest();
    let ended = Fact::Ended {
        group: FIRST,
        plan,
        number: END,
    };
    let mark_first = vec![left(1, plan), ended.clone()];
    let promise_first = vec![ended, left(END + 2, plan)];
    for facts in [mark_first, promise_first] {
        let mut town = Town::new(&land);
        let last = facts.last().unwrap().clone();
        town.stop(1);
        town.facts.insert(1, facts);
        town.start(life(1, 2), &land, Start::Fresh);
        let machine = town.nodes[&1].machine();
        let of_group = machine.stored().filter(|it| it.group() == Some(FIRST));
        assert_eq!(of_group.collect::<Vec<_>>(), [last]);
    }
}
