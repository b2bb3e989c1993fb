//! Beginnings by an operator's command, and the reports of them.

use selvedge_groups::{Reject, SiteError};

use super::*;

const LATER: u64 = 1 << 22;

/// Two members of the map lose their memory: one more than may fail.
fn lose(town: &mut Town, land: &Land, life_number: u32) {
    for id in members(town, MAP).into_iter().take(2) {
        forget(town, id, life_number, land);
    }
    town.run(Span::secs(5));
    assert!(town.leaders(MAP).is_empty());
}

fn begin_anew(town: &mut Town, by: u64) {
    town.input(by, Input::Command(Command::BeginAnew(MAP)));
    town.run(Span::secs(10));
}

/// A map that was lost, and began anew by a command.
fn begun_anew(loss: u64) -> (Town, Land) {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.loss = loss;
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    lose(&mut town, &land, 2);
    begin_anew(&mut town, 1);
    (town, land)
}

fn reports(town: &Town) -> Vec<usize> {
    let is_it = |it: &&(u64, _)| matches!(it.1, Event::BegunAnew(MAP));
    let of = |id: u64| {
        let own = town.events.iter().filter(is_it).filter(|it| it.0 == id);
        own.count()
    };
    (1..=7).map(of).collect()
}

/// It lost its memory, or asks for the first time: it cannot name the beginning that is lost.
#[test]
fn a_command_at_a_node_that_does_not_know_the_group_begins_it_after_its_present_beginning() {
    let (mut town, land) = begun_anew(u64::MAX);
    town.ask(2, MAP, 2);
    assert_eq!(town.set(MAP), 0b100);
    lose(&mut town, &land, 3);
    let is_away = |it: &u64| town.nodes[it].machine().replica(MAP).is_none();
    let other = (1..=7).find(is_away).unwrap();
    forget(&mut town, other, 4, &land);
    town.run(Span::secs(5));
    begin_anew(&mut town, other);
    town.ask(other, MAP, 3);
    assert_eq!(town.set(MAP), 0b1000);
    assert_eq!(latest_number(&town), Some(2 * LATER + 1));
}

fn latest_number(town: &Town) -> Option<u64> {
    let latest = town.nodes.values();
    let latest = latest.filter_map(|it| Some(it.machine().replica(MAP)?.configuration().number));
    latest.max()
}

#[test]
fn a_command_for_a_group_that_never_began_begins_it_once() {
    let mut town = Town::new(&Land::first(7, &[FIRST.0]));
    town.run(Span::secs(2));
    begin_anew(&mut town, 1);
    town.ask(1, MAP, 1);
    assert_eq!(latest_number(&town), Some(LATER + 1));
    assert_eq!(reports(&town), [1; 7]);
}

/// The group is lost, and two nodes that do not know it are given the command. The first question of one is lost.
#[test]
fn two_commands_at_one_time_begin_a_group_once() {
    let (mut town, one, other) = lost_and_unknown();
    town.cut.insert(other);
    town.input(other, Input::Command(Command::BeginAnew(MAP)));
    town.cut.clear();
    begin_anew(&mut town, one);
    town.run(Span::secs(20));
    town.ask(1, MAP, 3);
    assert_eq!(latest_number(&town), Some(LATER + 1));
}

/// It receives the decision before other news of it.
#[test]
fn a_command_at_a_founder_of_the_next_beginning_has_its_result() {
    let (mut town, _, one) = lost_and_unknown();
    // Its question would be on no wire.
    assert_ne!(town.leaders(GroupId::REGISTRY), [one]);
    town.cut.insert(one);
    town.input(one, Input::Command(Command::BeginAnew(MAP)));
    town.cut.clear();
    town.wire.clear();
    let me = town.nodes[&one].machine().me();
    let mut others = town.nodes.values().map(|it| it.machine().me());
    let from = others.find(|it| *it != me).unwrap();
    let birth = Birth {
        number: LATER + 1,
        generation: 0,
        founders: [from, me].into_iter().collect(),
    };
    let born = Item::Born { group: MAP, birth };
    let message = Message {
        plan: Land::first(7, &[FIRST.0]).plan().digest(),
        generation: 0,
        items: [born].into_iter().collect(),
    };
    town.input(one, Input::Message { from, message });
    assert!(town.nodes[&one].machine().replica(MAP).is_some());
    let mut items = town.wire.iter().flat_map(|it| &it.3.items);
    let found = items.find(|it| matches!(it, Item::Find { lost: 1.., .. }));
    assert_eq!(found, None);
}

/// It asks for the places of as many groups as it has hints.
#[test]
fn a_command_is_not_lost_at_a_node_that_looks_for_many_groups() {
    let (mut town, one, _) = lost_and_unknown();
    let limit = u64::from(config().leader_hints) + 1; // A group of the site has a place of its own.
    town.cut.insert(one);
    for number in 0..limit {
        town.input(
            one,
            Input::Command(Command::Ask {
                group: GroupId(4 * (100 + number) + 2),
                payload: 1,
            }),
        );
    }
    town.cut.clear();
    begin_anew(&mut town, one);
    town.ask(one, MAP, 3);
    assert_eq!(latest_number(&town), Some(LATER + 1));
}

#[test]
fn a_command_more_than_a_node_can_wait_for_is_refused() {
    let (mut town, one, _) = lost_and_unknown();
    town.cut.insert(one);
    let limit = usize::from(config().leader_hints) + 1;
    let node = town.nodes.get_mut(&one).unwrap();
    let mut given = |number: u64| {
        let anew = Command::BeginAnew(GroupId(4 * (100 + number) + 2));
        node.step(town.now, &mut town.rng, Input::Command(anew), |_| {})
    };
    for number in 0..limit as u64 {
        given(number).unwrap();
    }
    let refused = given(limit as u64);
    assert!(
        matches!(refused, Err(Reject::Site(SiteError::Beginning(it))) if it == limit),
        "{refused:?}"
    );
    given(0).unwrap();
}

#[test]
fn a_command_that_was_not_answered_ends_with_the_epoch() {
    let (mut town, one, _) = lost_and_unknown();
    town.cut.insert(one);
    begin_anew(&mut town, one);
    epochs(&mut town, [2]);
    town.cut.clear();
    town.run(Span::secs(20));
    assert_eq!(reports(&town), [0; 7]);
    begin_anew(&mut town, one);
    assert_eq!(reports(&town), [1; 7]);
}

/// A map that was lost, and two nodes that do not know it.
fn lost_and_unknown() -> (Town, u64, u64) {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    let known = members(&town, MAP);
    lose(&mut town, &land, 2);
    let other = (1..=7).find(|it| !known.contains(it)).unwrap();
    forget(&mut town, other, 2, &land);
    town.run(Span::secs(5));
    let is_other = |it: &u64| town.nodes[it].machine().whereabouts(MAP).is_none();
    let others: Vec<u64> = (1..=7).filter(is_other).take(2).collect();
    (town, others[0], others[1])
}

/// Also a group whose founders follow from the first site.
#[test]
fn a_command_at_a_node_that_does_not_know_a_group_of_the_first_site_begins_it_anew() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let lost: Vec<u64> = members(&town, FIRST).into_iter().take(2).collect();
    for id in &lost {
        forget(&mut town, *id, 2, &land);
    }
    town.run(Span::secs(5));
    let known = members(&town, FIRST);
    let other = (1..=7).find(|it| !known.contains(it) && !lost.contains(it));
    let other = other.unwrap();
    forget(&mut town, other, 2, &land);
    town.run(Span::secs(5));
    town.input(other, Input::Command(Command::BeginAnew(FIRST)));
    town.run(Span::secs(10));
    town.ask(other, FIRST, 3);
    assert_eq!(town.set(FIRST), 0b1000);
}

/// Its leader is up, leads no more, and sends nothing.
#[test]
fn a_follower_that_missed_the_next_beginning_leaves_the_former_one() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let maps: Vec<GroupId> = (4..44).map(|it| GroupId(4 * it + 2)).collect();
    for map in &maps {
        town.ask(1, *map, 1);
    }
    let follower = 3;
    let number = |town: &Town, map: GroupId| {
        let replica = town.nodes[&follower].machine().replica(map);
        replica.map(|it| it.configuration().number)
    };
    let mut followed = maps;
    followed.retain(|it| number(&town, *it).is_some() && town.leaders(*it) != [follower]);
    town.cut.insert(follower);
    for map in &followed {
        let leader = town.leaders(*map)[0];
        town.input(leader, Input::Command(Command::BeginAnew(*map)));
    }
    town.run(Span::secs(20));
    let is_former = |town: &Town, map: &GroupId| number(town, *map).is_some_and(|it| it < LATER);
    assert!(followed.iter().all(|it| is_former(&town, it)));
    assert!(followed.len() > 3, "{followed:?}");
    town.cut.clear();
    epochs(&mut town, 2..=3);
    followed.retain(|it| is_former(&town, it));
    assert_eq!(followed, []);
}

#[test]
fn each_node_reports_a_beginning_once_and_without_a_question() {
    let (town, _) = begun_anew(u64::MAX);
    assert_eq!(reports(&town), [1; 7]);
}

#[test]
fn no_node_reports_a_beginning_twice_while_messages_are_lost() {
    for loss in [3, 4, 5, 7] {
        let (mut town, _) = begun_anew(loss);
        epochs(&mut town, 2..=6);
        for id in 1..=7 {
            town.ask(id, MAP, id);
        }
        assert_eq!(reports(&town), [1; 7], "loss {loss}");
    }
}

/// Messages that no honest node sends.
#[test]
fn a_beginning_of_too_many_or_of_no_members_is_refused() {
    let (mut town, one, _) = lost_and_unknown();
    town.input(one, Input::Command(Command::BeginAnew(MAP)));
    let named = |count: usize| Birth {
        number: LATER + 1,
        generation: 0,
        founders: core::iter::repeat_n(life(1, 1), count).collect(),
    };
    let place = |count: usize| Item::Where {
        group: MAP,
        number: LATER + 1,
        leader: None,
        members: core::iter::repeat_n(life(1, 1), count).collect(),
    };
    let born = |count| Item::Born {
        group: MAP,
        birth: named(count),
    };
    for item in [born(0), born(65), place(0), place(65)] {
        let refused = town.nodes[&one].machine().counters().refused;
        let message = Message {
            plan: Land::first(7, &[FIRST.0]).plan().digest(),
            generation: 0,
            items: [item].into_iter().collect(),
        };
        let mut members = town.nodes.values().map(|it| it.machine().me());
        let from = members.find(|it| it.id.0 != one).unwrap();
        town.input(one, Input::Message { from, message });
        let machine = town.nodes[&one].machine();
        assert_eq!(machine.counters().refused, refused + 1);
    }
    // The command is carried out all the same.
    town.run(Span::secs(10));
    assert_eq!(latest_number(&town), Some(LATER + 1));
    assert_eq!(reports(&town), [1; 7]);
}

/// A message that no honest node sends.
#[test]
fn a_number_that_cannot_be_ends_no_part() {
    let (mut town, _) = begun_anew(u64::MAX);
    town.ask(1, MAP, 1);
    let plan = Land::first(7, &[FIRST.0]).plan().digest();
    let numbers = [
        (GroupId::REGISTRY, LATER + 1),
        (GroupId::REGISTRY, u64::MAX),
        (MAP, u64::MAX),
    ];
    for (group, configuration) in numbers {
        let leader = town.leaders(group)[0];
        let refused = town.nodes[&leader].machine().counters().refused;
        let message = Message {
            plan,
            generation: 0,
            items: [answers::missing(group, configuration)]
                .into_iter()
                .collect(),
        };
        let mut members = town.nodes.values().map(|it| it.machine().me());
        let from = members.find(|it| it.id.0 != leader).unwrap();
        town.input(leader, Input::Message { from, message });
        assert_eq!(town.leaders(group), [leader]);
        let machine = town.nodes[&leader].machine();
        assert_eq!(machine.counters().refused, refused + 1);
    }
}
