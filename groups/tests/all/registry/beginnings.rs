//! The beginnings of maps, and the founders that the registry decides.

use selvedge_core::wire::List;

use selvedge_groups::registry::Birth;

use super::town::{Held, Land, Town};
use super::{FIRST, MAP, SECOND};
use crate::mesh::*;

#[test]
fn a_map_that_was_never_used_begins_where_any_two_of_five_are_down() {
    for one in 1..=5 {
        for other in one + 1..=5 {
            let mut town = Town::new(&Land::first(5, &[]));
            town.run(Span::secs(2));
            town.stop(one);
            town.stop(other);
            let asker = (1..=5).find(|it| ![one, other].contains(it)).unwrap();
            for map in 1..6 {
                town.ask(asker, GroupId(map * 4 + 2), 7);
                assert_eq!(town.set(GroupId(map * 4 + 2)), 1 << 7);
            }
        }
    }
}

/// Two nodes are down, and no node has detected that. As founders of a map they would be too many.
#[test]
fn a_map_begins_with_nodes_that_answer() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    let leader = town.leaders(GroupId::REGISTRY)[0];
    let down: Vec<u64> = (2..=7).filter(|it| *it != leader).take(2).collect();
    town.cut.extend(&down);
    for number in 1..=8 {
        let map = GroupId(MAP.0 + 4 * number);
        town.ask(1, map, 1);
        let leader = town.leaders(map)[0];
        let replica = town.nodes[&leader].machine().replica(map).unwrap();
        let mut members = replica.configuration().members().map(|it| it.member.id.0);
        assert!(members.all(|it| !down.contains(&it)));
    }
}

/// The report stays with a node in later generations of the site.
#[test]
fn a_spared_node_founds_no_map_where_enough_others_are_here() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    for id in [4, 5] {
        town.input(id, Input::Command(Command::SetSpared(true)));
    }
    let founders = |town: &mut Town, number: u64| {
        let map = GroupId(MAP.0 + 4 * number);
        town.ask(1, map, 1);
        let leader = town.leaders(GroupId::REGISTRY)[0];
        let registry = town.nodes[&leader].machine().registry().unwrap();
        let founders = registry.birth(map).unwrap().founders.iter();
        founders.map(|it| it.id.0).collect::<BTreeSet<u64>>()
    };
    for number in 0..16 {
        if number == 8 {
            town.change(1, &land.next());
            town.run(Span::secs(5));
            assert_eq!(town.generations(), [1; 7]);
        }
        assert!(founders(&mut town, number).is_disjoint(&[4, 5].into()));
    }
    for id in [2, 3, 6] {
        town.stop(id);
    }
    for number in 16..24 {
        let founders = founders(&mut town, number);
        assert!(founders.len() == 3 && founders.is_superset(&[1, 7].into()));
    }
}

/// The registry's leader knows a later configuration from a former epoch. The founders are away.
#[test]
fn founders_of_a_group_that_went_on_are_not_notified_for_ever() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    let leader = town.leaders(GroupId::REGISTRY)[0];
    let registry = |town: &Town| town.nodes[&leader].machine().registry().cloned();
    let (map, birth) = (1..)
        .find_map(|number| {
            let map = GroupId(MAP.0 + 4 * number);
            town.ask(leader, map, 1);
            let birth = registry(&town)?.birth(map)?.clone();
            let is_in = birth.founders.iter().any(|it| it.id.0 == leader);
            (!is_in).then_some((map, birth))
        })
        .unwrap();
    let others = (1..=7).map(|it| life(it, 1));
    let others = others.filter(|it| it.id.0 != leader && !birth.founders.contains(it));
    let members: List<Member, 5> = others.take(3).collect();
    let from = *members.iter().next().unwrap();
    town.cut.extend(birth.founders.iter().map(|it| it.id.0));
    let place = Item::Where {
        group: map,
        number: birth.number + 1,
        leader: None,
        members,
    };
    town.receive(leader, from, place);
    town.input(leader, Input::Command(Command::SetEpoch(2)));
    let find = Item::Find {
        group: map,
        lost: 0,
    };
    town.receive(leader, from, find);
    let asked = town.births;
    town.run(Span::secs(300));
    assert_eq!(town.births, asked);
}

/// The harm that `SECURITY.md` lists: the map ends at each node that gets the lie, and no other group does.
#[test]
fn a_beginning_that_a_member_invents_ends_one_map_and_no_other() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let other = GroupId(MAP.0 + 4);
    town.ask(1, MAP, 1);
    town.ask(1, other, 1);
    town.ask(1, FIRST, 1);
    let from = life(7, 1);
    for id in 1..=6 {
        let founders: List<Member, 5> = [life(id, 1)].into_iter().collect();
        let birth = Birth {
            number: (63 << 22) + 1,
            generation: 0,
            founders: founders.iter().copied().collect(),
        };
        town.receive(id, from, Item::Born { group: MAP, birth });
    }
    town.run(Span::secs(5));
    let others = town.nodes.iter().filter(|it| *it.0 != from.id.0);
    let mut sets = others.filter_map(|it| it.1.machine().state(MAP));
    assert!(sets.all(|it| *it == Held::Set(0)));
    assert!(
        town.leaders(MAP).len() > 1,
        "each of them leads a map of its own"
    );
    for group in [other, FIRST] {
        town.ask(2, group, 2);
        assert_eq!(town.set(group), 0b110);
    }
}

/// It left the group, and learned of the next members in a former epoch.
#[test]
fn a_founder_that_is_notified_late_sends_the_last_members_that_it_knows() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    let leader = town.leaders(GroupId::REGISTRY)[0];
    let registry = town.nodes[&leader].machine().registry().unwrap();
    let birth = registry.birth(MAP).unwrap().clone();
    let founder = birth.founders.iter().find(|it| it.id.0 != leader).unwrap();
    let founder = founder.id.0;
    let is_in = |town: &Town| town.nodes[&founder].machine().replica(MAP).is_some();
    let mut epoch = 1;
    while is_in(&town) {
        epoch += 1;
        for id in 1..=7 {
            town.input(id, Input::Command(Command::SetEpoch(epoch)));
        }
        town.run(Span::secs(10));
    }
    let from = life(leader, 1);
    let others = (1..=7).filter(|it| *it != founder);
    let members: List<Member, 5> = others.take(3).map(|it| life(it, 1)).collect();
    let place = Item::Where {
        group: MAP,
        number: 1_000,
        leader: None,
        members,
    };
    town.receive(founder, from, place.clone());
    town.input(founder, Input::Command(Command::SetEpoch(epoch + 1)));
    town.wire.clear();
    town.receive(founder, from, Item::Born { group: MAP, birth });
    let sent: Vec<_> = town.wire.iter().map(|it| (it.1, &it.3.items)).collect();
    assert_eq!(sent, [(leader, &[place].into_iter().collect())]);
}

/// The leader has one node less than a group needs, so it looks for another one in each quarter of its patience,
/// which is also the interval of its questions to founders.
#[test]
fn a_group_begins_while_the_registry_lacks_a_member() {
    let land = Land::first(3, &[FIRST.0]);
    let resend = config().replica.resend;
    for offset in 0..20 {
        let config = config().with_patience(resend * 4);
        let mut town = Town::with(&land, config, &[]);
        town.run(Span::secs(2));
        town.ask(1, MAP, 1);
        town.stop(3);
        town.run(Span::secs(2) + Span::millis(10) * offset);
        let next = Land {
            groups: vec![FIRST.0, SECOND.0],
            ..land.next()
        };
        town.change(1, &next);
        town.run(Span::secs(5));
        town.ask(1, SECOND, 5);
        assert_eq!(town.set(SECOND), 1 << 5);
    }
}
