//! Sites that change, and groups that begin by a decision of the registry.

use selvedge_core::wire::List;
use selvedge_groups::Misbehaviour;
use selvedge_groups::registry::{Birth, Registration};

mod anew;
mod beginnings;
mod town;

use self::town::{Change, Held, Land, Machine, Town};
use crate::mesh::*;

const MAP: GroupId = GroupId(18);
const FIRST: GroupId = GroupId(4);
const SECOND: GroupId = GroupId(8);

fn many_groups() -> Land {
    // Longer than some frames.
    let land = Land::first(5, &[FIRST.0]).next();
    let others = (100..1_500_u64).map(|it| it * 4);
    let groups = [FIRST.0, SECOND.0].into_iter().chain(others);
    Land {
        groups: groups.collect(),
        ..land
    }
}

#[test]
fn all_nodes_take_a_site_that_was_decided_and_its_groups_begin() {
    for loss in [u64::MAX, 7] {
        let land = Land::first(5, &[FIRST.0]);
        let mut town = Town::new(&land);
        town.loss = loss;
        town.run(Span::secs(2));
        town.ask(3, FIRST, 1);
        let next = Land {
            groups: vec![FIRST.0, SECOND.0],
            ..land.next()
        };
        town.change(2, &next);
        town.run(Span::secs(10));
        assert_eq!(town.generations(), [1; 5]);
        town.ask(3, FIRST, 2);
        town.ask(3, SECOND, 5);
        town.ask(1, SECOND, 6);
        assert_eq!((town.set(FIRST), town.set(SECOND)), (0b110, 0b110_0000));
        let proposed = |it: &(u64, Event<Held, u64>)| match it.1 {
            Event::Proposed {
                number: 1,
                generation,
                is_decided,
            } => Some((it.0, generation, is_decided)),
            _ => None,
        };
        let proposed: Vec<_> = town.events.iter().filter_map(proposed).collect();
        assert_eq!(proposed, [(2, 1, true)]);
    }
}

#[test]
fn a_node_that_the_site_has_no_more_asks_for_the_site_that_has_it_and_nothing_else() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    let leads = |it: &u64| town.leaders(GroupId::REGISTRY).contains(it);
    let gone = (1..=5).find(|it| !leads(it)).unwrap();
    let without = Land {
        nodes: (1..=5).filter(|it| *it != gone).collect(),
        ..land.next()
    };
    town.change(gone % 5 + 1, &without);
    town.run(Span::secs(20));
    assert_eq!(town.generations(), [1; 5]);
    let sent = town.count;
    let (group, payload) = (FIRST, 1);
    town.input(gone, Input::Command(Command::Ask { group, payload }));
    assert_eq!(town.count, sent);
    town.run(Span::secs(60));
    assert!(town.count <= sent + 4, "it asks once for a question");
    town.input(gone, Input::Command(Command::Ask { group, payload }));
    let with = Land {
        nodes: land.nodes,
        ..without.next()
    };
    town.change(gone % 5 + 1, &with);
    town.run(Span::secs(20));
    assert_eq!(town.generations(), [2; 5]);
    town.ask(gone, FIRST, 2);
    assert_eq!(town.set(FIRST), 0b100);
}

#[test]
fn a_site_of_many_frames_is_decided_and_taken_by_all() {
    let mut town = Town::new(&Land::first(5, &[FIRST.0]));
    town.loss = 9;
    town.run(Span::secs(2));
    town.change(2, &many_groups());
    town.run(Span::secs(20));
    assert_eq!(town.generations(), [1; 5]);
}

#[test]
fn parts_of_two_sites_never_become_one() {
    let first = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&first);
    let plan = first.plan().digest();
    // Of one length, and they differ at both ends.
    let [former, later] = [(1, 12, 40), (2, 16, 44)].map(|(generation, one, other)| Land {
        generation,
        groups: vec![FIRST.0, one, other],
        first: vec![FIRST.0, one, other],
        ..first.clone()
    });
    let mut part = |land: &Land, of: core::ops::Range<usize>| {
        let bytes = Held::encode(land);
        let item = Item::Site {
            length: bytes.len() as u32,
            at: of.start as u32,
            bytes: bytes[of].iter().copied().collect(),
        };
        let message = Message {
            plan,
            generation: land.generation,
            items: [item].into_iter().collect(),
        };
        let from = life(2, 1);
        town.input(1, Input::Message { from, message });
        town.nodes[&1].machine().site().clone()
    };
    let length = Held::encode(&later).len();
    assert_eq!(length, Held::encode(&former).len());
    part(&former, 0..0);
    part(&former, 0..8);
    part(&later, 0..0);
    part(&later, 0..8);
    let after_late = part(&former, 8..length);
    assert_eq!(after_late.generation, 0);
    assert_eq!(*part(&later, 8..length), later);
}

#[test]
fn of_two_sites_one_is_decided() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let one = Land {
        groups: vec![FIRST.0, 8],
        ..land.next()
    };
    let other = Land {
        groups: vec![FIRST.0, 12],
        ..land.next()
    };
    town.change(2, &one);
    town.change(4, &other);
    town.run(Span::secs(10));
    assert_eq!(town.generations(), [1; 5]);
    let sites: BTreeSet<Vec<u64>> = town
        .nodes
        .values()
        .map(|it| it.machine().site().groups.clone())
        .collect();
    assert_eq!(sites.len(), 1, "{sites:?}");
    let is_decided = |it: &(u64, Event<Held, u64>)| match it.1 {
        Event::Proposed { is_decided, .. } => Some(is_decided),
        _ => None,
    };
    let mut outcomes: Vec<bool> = town.events.iter().filter_map(is_decided).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true]);
}

#[test]
fn a_node_that_was_away_takes_the_site_when_it_is_back() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.cut.insert(5);
    let next = Land {
        groups: vec![FIRST.0, SECOND.0],
        ..land.next()
    };
    town.change(2, &next);
    town.run(Span::secs(5));
    assert_eq!(town.generations(), [1, 1, 1, 1, 0]);
    town.cut.clear();
    let back = town.nodes[&5].machine().me();
    town.input(1, Input::Membership(Delta::Joined(back)));
    town.run(Span::secs(5));
    assert_eq!(town.generations(), [1; 5]);
}

#[test]
fn a_node_that_is_new_in_the_site_joins_and_a_removed_one_is_replaced() {
    let land = Land::first(4, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let next = Land {
        nodes: vec![1, 2, 3, 5],
        former: vec![4],
        ..land.next()
    };
    // The new node begins with the next site, before the others have it.
    town.start(life(5, 1), &next, Start::Fresh);
    town.run(Span::secs(2));
    assert!(!town.nodes[&5].machine().leads(FIRST));
    town.change(2, &next);
    town.run(Span::secs(20));
    assert_eq!(town.generations(), [1; 5]);
    town.ask(5, FIRST, 2);
    assert_eq!(town.set(FIRST), 0b110);
    let leader = town.leaders(FIRST)[0];
    let replica = town.nodes[&leader].machine().replica(FIRST).unwrap();
    let members = replica.configuration().members();
    assert!(members.map(|it| it.member.id).all(|it| it != NodeId(4)));
}

/// Another building has the same network, and nodes of the same names.
#[test]
fn a_new_node_takes_the_origin_of_the_node_that_sent_its_site() {
    let land = Land::first(4, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let next = Land {
        nodes: vec![1, 2, 3, 4, 5],
        ..land.next()
    };
    town.change(2, &next);
    town.run(Span::secs(10));
    assert_eq!(town.generations(), [1; 4]);
    town.start(life(5, 1), &next, Start::Fresh);
    let news = Item::Site {
        length: 0,
        at: 0,
        bytes: List::new(),
    };
    let message = Message {
        plan: land.plan().digest() ^ 1,
        generation: 1,
        items: [news].into_iter().collect(),
    };
    let from = life(1, 1);
    town.input(5, Input::Message { from, message });
    town.run(Span::secs(10));
    assert_eq!(town.generations(), [1; 5]);
    town.ask(5, FIRST, 2);
    assert_eq!(town.set(FIRST), 0b100);
}

#[test]
fn a_group_that_the_site_does_not_have_any_more_ends() {
    let land = Land::first(5, &[FIRST.0, SECOND.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(3, SECOND, 1);
    let next = Land {
        groups: vec![FIRST.0],
        ..land.next()
    };
    town.change(1, &next);
    town.run(Span::secs(5));
    assert!(town.leaders(SECOND).is_empty());
    town.ask(3, FIRST, 1);
    let is_in = |it: &Driver<Machine>| it.machine().replica(SECOND).is_some();
    assert!(!town.nodes.values().any(is_in));
}

#[test]
fn a_restarted_node_has_the_site_that_it_stored() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let next = Land {
        groups: vec![FIRST.0, SECOND.0],
        ..land.next()
    };
    town.change(2, &next);
    town.run(Span::secs(5));
    town.ask(1, SECOND, 4);
    town.ask(1, MAP, 3);
    for id in 1..=5 {
        town.stop(id);
    }
    town.wire.clear();
    // With the first site and with the next one.
    for id in 1..=5 {
        let land = match id {
            1 | 2 => land.clone(),
            _ => next.clone(),
        };
        town.start(life(id, 2), &land, Start::Fresh);
    }
    assert_eq!(town.generations(), [1; 5]);
    town.run(Span::secs(2));
    town.ask(1, SECOND, 5);
    town.ask(4, MAP, 2);
    assert_eq!((town.set(SECOND), town.set(MAP)), (0b11_0000, 0b1100));
}

/// No site was decided when all programs begin again with a later one.
#[test]
fn a_restarted_node_has_the_first_site_though_its_program_has_another_one() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 4);
    for id in 1..=5 {
        town.stop(id);
    }
    town.wire.clear();
    let groups = vec![FIRST.0, SECOND.0];
    let next = Land {
        groups,
        ..land.next()
    };
    for id in 1..=5 {
        town.start(life(id, 2), &next, Start::Fresh);
    }
    assert_eq!(town.generations(), [0; 5]);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 5);
    assert_eq!(
        (town.set(FIRST), town.generations()),
        (0b11_0000, vec![0; 5])
    );
}

/// A node that the present site does not have waits for one that has it.
#[test]
fn a_node_that_runs_before_the_site_has_it_joins() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let next = Land {
        nodes: (1..=6).collect(),
        ..land.next()
    };
    town.start(life(6, 1), &next, Start::Fresh);
    town.run(Span::secs(5));
    assert_eq!(town.generations(), [0; 6]);
    town.change(2, &next);
    town.run(Span::secs(5));
    assert_eq!(town.generations(), [1; 6]);
    town.ask(6, FIRST, 4);
}

/// It misses the news of that one, and no node sends it anything else.
#[test]
fn a_node_that_runs_before_the_site_has_it_goes_on_to_ask() {
    let mut town = Town::new(&Land::first(4, &[FIRST.0]));
    town.run(Span::secs(2));
    let next = Land {
        nodes: vec![1, 2, 3, 4, 5],
        ..Land::first(4, &[FIRST.0]).next()
    };
    town.start(life(5, 1), &next, Start::Fresh);
    town.run(Span::secs(10));
    assert!(town.nodes[&5].machine().has_site());
    town.cut.insert(5);
    town.change(1, &next);
    town.run(Span::secs(30));
    assert_eq!(town.generations(), [1, 1, 1, 1, 0]);
    town.cut.clear();
    town.run(Span::secs(30));
    assert_eq!(town.generations(), [1; 5]);
    town.ask(5, FIRST, 1);
    // It does not ask any more.
    town.run(Span::secs(30));
    town.wire.clear();
    town.run(Span::secs(30));
    assert!(town.wire.is_empty());
}

/// A host may store a base at any time. One without an origin would have later lives refuse all others.
#[test]
fn a_node_without_a_site_has_nothing_to_store() {
    let mut town = Town::new(&Land::first(4, &[FIRST.0]));
    town.run(Span::secs(2));
    let next = Land {
        nodes: vec![1, 2, 3, 4, 5],
        ..Land::first(4, &[FIRST.0]).next()
    };
    town.cut.insert(5);
    town.start(life(5, 1), &next, Start::Fresh);
    town.run(Span::secs(2));
    let node = town.nodes[&5].machine();
    assert!(!node.has_site());
    let stored: Vec<_> = node.stored().chain(node.base(None)).collect();
    assert_eq!(stored, []);
    town.change(1, &next);
    town.run(Span::secs(2));
    town.cut.clear();
    town.run(Span::secs(30));
    assert_eq!(town.generations(), [1; 5]);
    let node = town.nodes[&5].machine();
    assert!(node.stored().next().is_some() && node.base(None).is_some());
}

/// An empty message shows the plan of its sender.
#[test]
fn an_empty_message_of_another_plan_is_refused_for_the_plan() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    let plan = land.plan().digest() + 1;
    let message = Message {
        plan,
        generation: 0,
        items: List::new(),
    };
    let (from, node) = (life(2, 1), town.nodes.get_mut(&1).unwrap());
    let input = Input::Message { from, message };
    let refused = node.step(town.now, &mut town.rng, input, |_| {});
    let found = plan;
    assert!(
        matches!(refused, Err(Reject::Misbehaviour(Misbehaviour::Plan { found: it, .. })) if it == found),
        "{refused:?}"
    );
}

#[test]
fn a_group_that_lost_its_memory_begins_anew_once_by_command() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 3);
    let holds = |it: &(&u64, &Driver<Machine>)| it.1.machine().replica(MAP).is_some();
    let members: Vec<u64> = town.nodes.iter().filter(holds).map(|it| *it.0).collect();
    assert_eq!(members.len(), 3);
    // Two of three are gone for good.
    town.stop(members[0]);
    town.stop(members[1]);
    town.run(Span::secs(5));
    assert!(town.leaders(MAP).is_empty());
    let is_lost = |it: &(u64, Event<Held, u64>)| matches!(it.1, Event::QuorumLost(MAP));
    assert!(!town.events.iter().any(is_lost));
    for id in 1..=7 {
        town.input(id, Input::Command(Command::SetEpoch(2)));
    }
    let reports: BTreeSet<u64> = town
        .events
        .iter()
        .filter(|it| is_lost(it))
        .map(|it| it.0)
        .collect();
    assert!(reports.contains(&members[2]), "{reports:?}");
    let asker = *town.nodes.keys().find(|it| **it != members[2]).unwrap();
    for _ in 0..3 {
        town.input(asker, Input::Command(Command::BeginAnew(MAP)));
    }
    town.run(Span::secs(5));
    town.ask(asker, MAP, 4);
    assert_eq!(town.set(MAP), 1 << 4);
    // The ones that were away are back with their memory: they take part in the new beginning alone.
    for &id in &members[..2] {
        town.start(life(id, 2), &land, Start::Fresh);
    }
    town.run(Span::secs(5));
    for &id in &members {
        town.ask(id, MAP, 1);
    }
    assert_eq!(town.set(MAP), 0b1_0010);
    // All lose power, and go on from what they have stored.
    for id in 1..=7 {
        town.stop(id);
    }
    for id in 1..=7 {
        town.start(life(id, 3), &land, Start::Fresh);
    }
    town.run(Span::secs(5));
    town.ask(1, MAP, 2);
    assert_eq!(town.set(MAP), 0b1_0110);
}

#[test]
fn all_nodes_restart_at_once_with_a_later_site_and_one_change_follows() {
    let land = Land::first(5, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    for id in 1..=5 {
        town.stop(id);
    }
    // Their programs differ: neither was decided.
    for id in 1..=5 {
        let groups = vec![FIRST.0, if id < 3 { SECOND.0 } else { 12 }];
        let land = Land {
            groups,
            ..land.next()
        };
        town.start(life(id, 2), &land, Start::Fresh);
    }
    town.run(Span::secs(3));
    assert_eq!(town.generations(), [0; 5]);
    town.ask(2, FIRST, 2);
    town.ask(2, MAP, 3);
    let next = Land {
        groups: vec![FIRST.0, SECOND.0],
        ..land.next()
    };
    town.change(4, &next);
    town.run(Span::secs(5));
    assert_eq!(town.generations(), [1; 5]);
    town.ask(3, SECOND, 5);
    let sets = (town.set(FIRST), town.set(MAP), town.set(SECOND));
    assert_eq!(sets, (0b110, 0b1000, 0b10_0000));
}

#[test]
fn a_node_of_another_building_is_not_joined() {
    let mut town = Town::new(&Land::first(5, &[FIRST.0]));
    town.run(Span::secs(2));
    let other = Land {
        nodes: vec![6, 7, 8],
        ..Land::first(5, &[FIRST.0]).next()
    };
    town.start(life(6, 1), &other, Start::Fresh);
    town.run(Span::secs(5));
    assert!(!town.nodes[&6].machine().has_site());
}

/// A frame that changes is refused by nodes of earlier versions: note it in the changelog, under
/// Wire.
#[test]
fn the_bytes_of_messages_about_sites_stay_the_same() {
    let by = life(7, 3);
    let founders = [by].into_iter().collect();
    let birth = Birth {
        number: 1,
        generation: 0,
        founders,
    };
    let draft = Registration::Draft {
        by,
        number: 1,
        at: 0,
        bytes: [9].into_iter().collect(),
    };
    let commit = Registration::Commit {
        by,
        number: 1,
        length: 1,
        after: 0,
        generation: 2,
    };
    let group = GroupId(2);
    let register = |registration| Item::Register { registration };
    let cases: [(Item<Change, u64>, &[u8]); 10] = [
        (Item::Find { group, lost: 5 }, &[6, 2, 5]),
        (Item::Born { group, birth }, &[7, 2, 1, 0, 1, 7, 3]),
        (Item::WantSite { at: 300 }, &[8, 172, 2]),
        (
            Item::Site {
                length: 3,
                at: 1,
                bytes: [4, 5].into_iter().collect(),
            },
            &[9, 3, 1, 2, 4, 5],
        ),
        (register(draft), &[10, 0, 7, 3, 1, 0, 1, 9]),
        (register(commit), &[10, 1, 7, 3, 1, 1, 0, 2]),
        (
            Item::Registered {
                life: 3,
                number: 1,
                length: 1,
                generation: 0,
                is_decided: true,
            },
            &[11, 3, 1, 1, 0, 1],
        ),
        (Item::Lost { group, number: 5 }, &[12, 2, 5]),
        (
            Item::End {
                group,
                call: 1,
                number: 300,
                is_binding: true,
            },
            &[13, 2, 1, 172, 2, 1],
        ),
        (
            Item::Ended {
                group,
                life: 3,
                since: 2,
                call: 1,
                mark: 300,
                votes: false,
                number: 5,
                members: [life(7, 3)].into_iter().collect(),
            },
            &[14, 2, 3, 2, 1, 172, 2, 0, 5, 1, 7, 3],
        ),
    ];
    for (item, bytes) in cases {
        assert_eq!(postcard::to_allocvec(&item).unwrap(), bytes, "{item:?}");
        assert_eq!(postcard::from_bytes::<Item<Change, u64>>(bytes), Ok(item));
    }
}
