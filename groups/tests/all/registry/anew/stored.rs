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

/// It takes it from a node that is no founder.
#[test]
fn a_founder_of_the_registry_that_takes_a_later_site_votes_in_later_lives() {
    let nodes = 17;
    let land = Land::first(nodes, &[FIRST.0]);
    let mut town = Town::new(&land);
    let founders = town.nodes[&1].machine().founders(GroupId::REGISTRY);
    let founders: Vec<u64> = founders.into_iter().map(|it| it.0).collect();
    let last = founders[founders.len() - 1];
    town.cut.insert(last);
    town.run(Span::secs(2));
    town.change(founders[0], &land.next());
    town.run(Span::secs(10));
    town.cut.extend(&founders);
    town.cut.remove(&last);
    town.run(Span::secs(1));
    let other = (1..=nodes).find(|it| !founders.contains(it)).unwrap();
    let me = town.nodes[&last].machine().me();
    town.input(other, Input::Membership(Delta::Joined(me)));
    town.run(Span::secs(1));
    assert_eq!(town.nodes[&last].machine().generation(), 1);
    restart(&mut town, last, 2, &land);
    let replica = town.nodes[&last].machine().replica(GroupId::REGISTRY);
    assert!(replica.is_some_and(replica::Replica::votes));
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
