//! Beginnings by an operator's command, and the reports of them.

use selvedge_replica::{Body, Wants};

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
    let latest = town.nodes.values();
    let latest = latest.filter_map(|it| Some(it.machine().replica(MAP)?.configuration().number));
    assert_eq!(latest.max(), Some(2 * LATER + 1));
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

/// A message that no honest node sends.
#[test]
fn a_number_that_cannot_be_ends_no_part() {
    let (mut town, _) = begun_anew(u64::MAX);
    town.ask(1, MAP, 1);
    let plan = Land::first(7, &[FIRST.0]).plan().digest();
    let wants = Wants::Entries;
    let numbers = [
        (GroupId::REGISTRY, LATER + 1),
        (GroupId::REGISTRY, u64::MAX),
        (MAP, u64::MAX),
    ];
    for (group, configuration) in numbers {
        let leader = town.leaders(group)[0];
        let refused = town.nodes[&leader].machine().counters().refused;
        let body = Body::Missing {
            committed: 0,
            wants,
        };
        let message = replica::Message {
            configuration,
            body,
        };
        let message = Message {
            plan,
            generation: 0,
            items: [Item::Replica { group, message }].into_iter().collect(),
        };
        let mut members = town.nodes.values().map(|it| it.machine().me());
        let from = members.find(|it| it.id.0 != leader).unwrap();
        town.input(leader, Input::Message { from, message });
        assert_eq!(town.leaders(group), [leader]);
        let machine = town.nodes[&leader].machine();
        assert_eq!(machine.counters().refused, refused + 1);
    }
}
