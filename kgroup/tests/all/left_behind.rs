//! Nodes that slept, were cut off, or began again while their groups went on.

use selvedge_core::{Delta, Member, NodeId, Sha256Sortition, Span};
use selvedge_groups::{
    self as groups, GroupId, Item,
    store::{Expected, Operation, StoreAnswer, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup::{Answer, Command, Config, Event, Kgroup, Payload, Site};
use selvedge_sim::network::Link;

use crate::building::Building;

fn house(seed: u64, nodes: u64) -> Building {
    let mut house = Building::new(seed, nodes, 2, 1, Link::default(), []);
    house.run(Span::secs(15));
    house
}

const CLUSTER: GroupId = Site::cluster(0);

fn members(house: &Building, group: GroupId) -> Vec<Member> {
    let leader = house.leader(group);
    let node = house.net.machine(leader[0]).unwrap();
    let configuration = node.groups().replica(group).unwrap().configuration();
    configuration.members().map(|it| it.member).collect()
}

/// The node at this place.
fn id(at: usize) -> NodeId {
    NodeId(at as u64 + 1)
}

fn say_epoch(house: &mut Building, epoch: u64) {
    for at in 0..9 {
        if house.net.is_up(at) {
            house.net.command(at, Command::SetEpoch(epoch)).unwrap();
        }
    }
}

#[test]
fn a_node_that_is_down_is_named_in_no_epoch_although_all_lists_have_it() {
    let mut was_asked = 0;
    for victim in 0..9 {
        let mut house = house(victim as u64, 9);
        let before = members(&house, CLUSTER);
        if before.iter().any(|it| it.id == id(victim)) {
            continue; // It is lost as a member.
        }
        house.net.crash(victim).unwrap();
        for epoch in 2..12 {
            say_epoch(&mut house, epoch);
            house.run(Span::secs(30));
            let now = members(&house, CLUSTER);
            assert!(
                now.iter().all(|it| it.id != id(victim)),
                "{victim}: {now:?}"
            );
        }
        let machines = house.net.machines();
        let silent = machines.map(|it| it.1.groups().counters().silent);
        was_asked += silent.sum::<u64>();
    }
    assert!(was_asked > 0, "some would have been named");
}

/// The others have not learned of its present life, and name the former one.
#[test]
fn a_node_is_named_in_the_life_that_answers() {
    let mut named = 0;
    for victim in 0..9 {
        let mut house = house(victim as u64, 9);
        if members(&house, CLUSTER)
            .iter()
            .any(|it| it.id == id(victim))
        {
            continue;
        }
        house.begin_again_unnoticed(victim);
        for epoch in 2..8 {
            say_epoch(&mut house, epoch);
            house.run(Span::secs(30));
            let now = members(&house, CLUSTER);
            let member = now.iter().find(|it| it.id == id(victim));
            named += usize::from(member.is_some());
            assert!(member.is_none_or(|it| it.incarnation.0 == 1), "{member:?}");
        }
    }
    assert!(named > 0);
}

#[test]
fn an_answer_to_a_former_life_is_none_to_the_present_one() {
    let map = GroupId::map("doors", &Sha256Sortition);
    let mut house = house(5, 5);
    let change = |ticket| {
        let operation = Operation::set(
            "front",
            Expected::Absent,
            Some(b"shut".iter().copied().collect()),
        );
        let command = StoreCommand::Change { ticket, operation };
        Command::Map { map, command }
    };
    let notified = |house: &Building, from: usize| {
        let events = house.events.iter().skip(from);
        let notified = events.filter_map(|(_, at, event)| match event {
            Event::Map {
                event: StoreEvent::Changed { ticket, stored },
                ..
            } if *at == 4 => Some((*ticket, *stored)),
            _ => None,
        });
        notified.collect::<Vec<_>>()
    };
    house.net.command(4, change(1)).unwrap();
    house.run(Span::secs(5));
    assert_eq!(notified(&house, 0), [(1, Stored::Done { version: 1 })]);
    house.kill(4);
    house.revive(4);
    let before = house.events.len();
    house.net.command(4, change(2)).unwrap();
    // The first change of this life has the same number as a change of the former life, which gets
    // a late answer.
    let answer = StoreAnswer::Changed {
        number: 1,
        stored: Stored::Done { version: 1 },
    };
    let late = |life| Item::Answer {
        group: map,
        life,
        notified: Payload::Answer {
            of: map,
            answer: Answer::Store(answer.clone()),
        },
    };
    house.deliver(Member::new(1, 0), 4, late(0));
    assert_eq!(notified(&house, before), []);
    house.run(Span::secs(5));
    let found = Some(1);
    assert_eq!(notified(&house, before), [(2, Stored::Mismatch { found })]);
}

#[test]
fn a_leader_that_was_cut_off_gives_up_when_an_epoch_begins() {
    let mut house = house(3, 9);
    let old = house.leader(CLUSTER)[0];
    let others: Vec<usize> = (0..9).filter(|it| *it != old).collect();
    house.net.partition(&[[old].as_slice(), &others]).unwrap();
    let ended = house.member(old);
    for &at in &others {
        house.net.membership(at, Delta::Failed(ended)).unwrap();
    }
    house.run(Span::secs(20));
    house.net.heal();
    house.run(Span::secs(20));
    assert!(
        house.leader(CLUSTER).contains(&old),
        "no message reaches it"
    );
    house.net.partition(&[[old].as_slice(), &others]).unwrap();
    house.net.command(old, Command::SetEpoch(2)).unwrap();
    house.run(Span::secs(5));
    house.net.heal();
    // Its own choice would not change anything.
    house.net.command(old, Command::SetEpoch(1)).unwrap();
    house.run(Span::secs(5));
    let leader = house.leader(CLUSTER);
    assert!(leader.len() == 1 && leader[0] != old, "{leader:?}");
    let left = house.net.machine(old).unwrap();
    assert!(
        left.groups().replica(CLUSTER).is_none(),
        "it is a member no more"
    );
}

/// Its peers have lost their memory; founders got the group's place.
#[test]
fn a_member_that_was_cut_off_finds_its_group_by_way_of_the_founders() {
    let mut house = house(3, 9);
    for epoch in 2..5 {
        say_epoch(&mut house, epoch);
        house.run(Span::secs(30));
    }
    let former = members(&house, CLUSTER);
    let leader = house.member(house.leader(CLUSTER)[0]);
    let ended = *former.iter().find(|it| **it != leader).unwrap();
    let left = ended.id.0 as usize - 1;
    let others: Vec<usize> = (0..9).filter(|it| *it != left).collect();
    house.net.partition(&[[left].as_slice(), &others]).unwrap();
    house.net.membership(left, Delta::Failed(leader)).unwrap();
    for &at in &others {
        house.net.membership(at, Delta::Failed(ended)).unwrap();
    }
    house.run(Span::secs(20));
    // The group goes on without all of its former members, and these forget it.
    let forgetful = former.iter().filter(|it| it.id != ended.id);
    let forgetful: Vec<usize> = forgetful.map(|it| it.id.0 as usize - 1).collect();
    for &at in &forgetful {
        house.kill(at);
        house.run(Span::secs(20));
    }
    for &at in &forgetful {
        house.revive(at);
        house.run(Span::secs(5));
    }
    house.net.heal();
    house.run(Span::secs(60));
    let leader = house.leader(CLUSTER);
    assert!(leader.len() == 1 && leader[0] != left, "{leader:?}");
    let here = members(&house, CLUSTER);
    let groups = house.net.machine(left).unwrap().groups();
    let is_member = here.iter().any(|it| it.id == ended.id);
    assert_eq!(
        groups.replica(CLUSTER).is_some(),
        is_member,
        "it knows that it is none"
    );
}

/// The leader's last message comes after the news that it failed, and no node asks for anything.
#[test]
fn a_leader_that_is_dead_is_not_followed_for_ever() {
    // Before another member stands, so that the dead leader changes members.
    let groups = groups::Config::new().with_change_delay(Span::ZERO);
    let config = Config::new().with_groups(groups);
    let mut house = Building::with_config(config, 3, (5, 2, 1), Link::default(), []);
    house.run(Span::secs(15));
    let dead = house.leader(CLUSTER)[0];
    let ended = house.member(dead);
    let follows = |it: &(usize, &Kgroup)| {
        let replica = it.1.groups().replica(CLUSTER);
        replica.and_then(|it| it.leader()).map(|it| it.0) == Some(ended.id)
    };
    for at in (0..5).filter(|it| *it != dead) {
        house.net.membership(at, Delta::Failed(ended)).unwrap();
    }
    let following = |house: &Building| house.net.machines().filter(follows).count();
    assert_eq!(following(&house), 1, "itself");
    // A round of its own.
    house.net.command(dead, Command::SetEpoch(2)).unwrap();
    let mut believed = 0..100;
    let is_believed = believed.any(|_| {
        house.run(Span::millis(1));
        following(&house) == 3
    });
    assert!(is_believed, "they believe it once more");
    house.net.crash(dead).unwrap();
    house.run(Span::secs(10));
    for group in house.site.groups() {
        let leader = house.leader(group);
        assert!(
            leader.len() == 1 && leader[0] != dead,
            "{group:?} {leader:?}"
        );
    }
}
