//! The way of a question to the leader of a group.

use selvedge_groups::Published;
use selvedge_replica::{Body, Configuration};

use crate::mesh::*;

/// Enough nodes for different ones to be asked for different reasons.
const NODES: u64 = 40;

fn where_is(
    group: GroupId,
    number: u64,
    leader: Option<u64>,
    members: &[u64],
) -> Item<u64, Payload> {
    Item::Where {
        group,
        number,
        leader: leader.map(NodeId),
        members: members.iter().map(|it| life(*it, 0)).collect(),
    }
}

fn ask(group: GroupId) -> Item<u64, Payload> {
    let asked = vec![7];
    Item::Ask { group, asked }
}

/// The nodes that a node asks.
fn asked(node: &mut One, group: GroupId) -> BTreeSet<u64> {
    let payload = vec![7];
    node.command(Command::Ask { group, payload });
    let sent = node.sent().into_iter().map(|(to, item)| {
        assert_eq!(item, ask(group));
        to.id.0
    });
    sent.collect()
}

fn set(ids: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    ids.into_iter().collect()
}

/// Nodes that are not founders, so that a founder is asked for no other reason.
fn others(group: GroupId) -> Vec<u64> {
    let founders = founders(NODES, group);
    (1..=NODES).filter(|it| !founders.contains(it)).collect()
}

/// A present node that founds nothing, and the others that it would choose.
fn stranger(here: &[u64]) -> (One, BTreeSet<u64>) {
    let id = others(LATER)[0];
    let mut node = One::new(id, NODES, Start::Fresh);
    node.command(Command::SetEpoch(5));
    for it in here {
        node.learn(Delta::Joined(life(*it, 0)));
    }
    node.sent();
    let groups = node.machine();
    let here = groups.plan().nodes().iter().copied();
    let here = here.filter(|it| groups.is_here(it.id));
    let chosen = groups.plan().choose::<Sum>(&vec![], 5, here, [LATER]);
    let chosen = chosen.into_iter().flat_map(|it| it.1.unwrap_or_default());
    let chosen = chosen.map(|it| it.0).filter(|it| *it != id);
    let chosen = chosen.collect();
    (node, chosen)
}

/// It lost its memory, so it founds the group no second time, and another node has it since.
#[test]
fn the_only_founder_asks_all_others_for_its_group() {
    let only = machine_of(life(1, 0), plan_for(0, 5), config(), Start::Restarted).founders(LATER);
    let me = Member::new(only[0].0, 1);
    let mut node = One::of(machine_of(me, plan_for(0, 5), config(), Start::Restarted));
    let epoch = (1..).find(|epoch| {
        let groups = node.machine();
        let nodes = groups.plan().nodes().iter().copied();
        let chosen = groups.plan().choose::<Sum>(&vec![], *epoch, nodes, [LATER]);
        chosen[0].1 == Ok(only.clone())
    });
    node.command(Command::SetEpoch(epoch.unwrap()));
    let others: Vec<u64> = (1..=5).filter(|it| *it != me.id.0).collect();
    for it in &others {
        node.learn(Delta::Joined(life(*it, 0)));
    }
    node.sent();
    assert_eq!(asked(&mut node, LATER), set(others));
}

#[test]
fn a_node_that_knows_nothing_asks_those_that_it_would_choose_and_the_founders() {
    let founders = set(founders(NODES, LATER));
    let (mut node, chosen) = stranger(&[]);
    assert!(chosen.is_empty());
    assert_eq!(asked(&mut node, LATER), founders);
    let (mut node, chosen) = stranger(&others(LATER)[1..12]);
    assert!(chosen.len() > 1 && chosen.is_disjoint(&founders));
    assert_eq!(asked(&mut node, LATER), &chosen | &founders);
}

#[test]
fn a_node_that_knows_the_leader_asks_it_and_then_more_and_more_others() {
    let founders = set(founders(NODES, LATER));
    let others = others(LATER);
    let (mut node, chosen) = stranger(&others[1..12]);
    let [one, two, three] = [others[20], others[21], others[22]];
    let from = life(others[13], 0);
    let members = [one, two, three];
    node.receive(from, [where_is(LATER, 1, Some(one), &members)]);
    let expected = [
        set([one]),
        set([one]),
        &set(members) | &chosen,
        &set(members) | &chosen,
        &(&set(members) | &chosen) | &founders,
    ];
    for expected in &expected {
        assert_eq!(asked(&mut node, LATER), *expected);
    }
    // Another one answers, so it leads.
    let notified = Item::Answer {
        group: LATER,
        life: 0,
        notified: vec![1],
    };
    node.notified();
    node.receive(life(two, 0), [notified]);
    let payload = vec![1];
    let event = Event::Answered {
        group: LATER,
        from: life(two, 0),
        payload,
    };
    assert_eq!(node.notified(), [event]);
    for _ in 0..2 {
        assert_eq!(asked(&mut node, LATER), set([two]));
    }
    let (mut node, chosen) = stranger(&others[1..12]);
    node.receive(from, [where_is(LATER, 1, None, &members)]);
    let expected = [set(members), set(members), &set(members) | &chosen];
    for expected in expected {
        assert_eq!(asked(&mut node, LATER), expected, "no leader is known");
    }
    let (mut node, _) = stranger(&others[1..12]);
    node.receive(from, [where_is(LATER, 1, Some(one), &members)]);
    node.learn(Delta::Failed(life(one, 0)));
    assert_eq!(asked(&mut node, LATER), set(members), "the leader is gone");
}

/// A later hint may be older than the knowledge of a former member: a guess, or from a node that
/// missed a link.
#[test]
fn a_former_member_asks_the_members_that_it_knows_of_whatever_is_told() {
    let others = others(LATER);
    let [one, two, three, four] = [others[20], others[21], others[22], others[23]];
    let from = life(others[13], 0);
    let asks = |number, leader: Option<u64>, times: usize| {
        let (id, peer) = (others[0], others[1]);
        let mut groups = machine(life(id, 0), NODES, config(), Start::Restarted);
        let mut mark = Configuration::of([one, two, three].map(|id| life(id, 0)));
        mark.number = 3;
        leave(&mut groups, LATER, mark);
        let mut node = One::of(groups);
        node.learn(Delta::Joined(life(peer, 0)));
        node.receive(from, [where_is(LATER, number, leader, &[id, four])]);
        node.sent();
        let asked = (0..times).map(|_| asked(&mut node, LATER)).last();
        asked.unwrap()
    };
    let known = set([one, two, three]);
    for number in [0, 2, 3] {
        assert!(asks(number, None, 1).is_superset(&known), "{number}");
    }
    assert_eq!(asks(4, None, 1), set([four]), "it is told of later members");
    assert!(asks(4, None, 3).is_superset(&known), "which lead nowhere");
    assert_eq!(
        asks(2, Some(four), 1),
        set([four]),
        "the leader may be known"
    );
    assert!(asks(2, Some(four), 3).is_superset(&known));
}

#[test]
fn an_answer_to_a_former_life_is_passed_over() {
    let mut node = One::of(machine(life(1, 3), 5, config(), Start::Restarted));
    let notify = |life| Item::Answer {
        group: LATER,
        life,
        notified: vec![1],
    };
    node.receive(life(2, 0), [notify(2)]);
    assert_eq!(node.notified(), []);
    node.receive(life(2, 0), [notify(3)]);
    assert_eq!(node.notified().len(), 1);
}

#[test]
fn news_of_a_group_count_where_they_are_later() {
    let (mut node, _) = stranger(&[]);
    let from = life(others(LATER)[1], 0);
    let me = node.machine().me().id.0;
    let mut leader_after = |number, leader: Option<u64>| {
        node.receive(from, [where_is(LATER, number, leader, &[31, 32, 33])]);
        node.sent();
        let answer = node.machine().whereabouts(LATER);
        let Some(Item::Where { number, leader, .. }) = answer else {
            panic!("{answer:?}");
        };
        (number, leader.map(|it| it.0))
    };
    assert_eq!(leader_after(4, Some(31)), (4, Some(31)));
    assert_eq!(leader_after(3, Some(32)), (4, Some(31)));
    assert_eq!(leader_after(4, None), (4, Some(31)));
    assert_eq!(leader_after(4, Some(32)), (4, Some(32)));
    assert_eq!(leader_after(4, Some(me)), (4, Some(32)), "it would know");
    assert_eq!(leader_after(5, None), (5, None));
    assert_eq!(leader_after(6, Some(me)), (6, None));
}

#[test]
fn news_of_nodes_that_are_not_planned_are_refused_and_counted() {
    let (mut node, _) = stranger(&[]);
    let from = life(others(LATER)[1], 0);
    let many: Vec<u64> = (0..65).map(|it| it % NODES + 1).collect();
    let wrong = [
        where_is(LATER, 1, None, &[31, 32, 77]),
        where_is(LATER, 1, Some(77), &[31, 32, 33]),
        where_is(LATER, 1, None, &many),
    ];
    for (count, item) in (1..).zip(wrong) {
        node.receive(from, [item]);
        assert_eq!(node.machine().counters().refused, count);
        assert_eq!(node.machine().whereabouts(LATER), None);
    }
    node.receive(from, [where_is(LATER, 1, None, &many[..64])]);
    assert_eq!(node.machine().counters().refused, 3);
    assert!(node.machine().whereabouts(LATER).is_some());
}

#[test]
fn what_was_asked_last_goes_on_once_when_the_leader_is_known() {
    let (mut node, _) = stranger(&[]);
    let from = life(others(LATER)[1], 0);
    for number in 0..20 {
        let (group, payload) = (LATER, vec![number]);
        node.command(Command::Ask { group, payload });
    }
    node.sent();
    let news = || [where_is(LATER, 1, Some(31), &[31, 32, 33])];
    node.receive(from, news());
    let sent = node.sent().into_iter().map(|(to, item)| {
        assert_eq!(to.id.0, 31);
        let Item::Ask { asked, .. } = item else {
            panic!("{item:?}");
        };
        asked[0]
    });
    assert_eq!(sent.collect::<Vec<_>>(), (4..20).collect::<Vec<_>>());
    node.receive(from, news());
    assert_eq!(node.sent(), []);
    assert!(asked(&mut node, LATER).contains(&31));
    node.receive(from, news());
    assert_eq!(node.sent(), [], "it was asked itself");
}

#[test]
fn hints_of_as_many_groups_are_kept_as_there_is_room_for() {
    let id = others(LATER)[0];
    // The site has one group.
    let config = config().with_leader_hints(1);
    let mut node = One::of(machine(life(id, 0), NODES, config, Start::Restarted));
    let from = life(others(LATER)[1], 0);
    let groups = [11, 12, 13].map(GroupId);
    let knows = |node: &One| groups.map(|it| node.machine().whereabouts(it).is_some());
    let receive = |node: &mut One, at: usize| {
        node.receive(from, [where_is(groups[at], 1, Some(31), &[31, 32, 33])]);
        knows(node)
    };
    assert_eq!(receive(&mut node, 0), [true, false, false]);
    assert_eq!(receive(&mut node, 1), [true, true, false]);
    assert_eq!(receive(&mut node, 1), [true, true, false], "it has a place");
    assert_eq!(receive(&mut node, 2), [false, true, true]);
}

#[test]
fn a_node_that_does_not_lead_says_where_the_group_is() {
    let from = life(others(LATER)[1], 0);
    let answer = |mark: Option<u64>, hint: Option<u64>| {
        let id = others(LATER)[0];
        let mut groups = machine(life(id, 0), NODES, config(), Start::Fresh);
        if let Some(number) = mark {
            let mut mark = Configuration::of([21, 22, 23].map(|id| life(id, 0)));
            mark.number = number;
            leave(&mut groups, LATER, mark);
        }
        let mut node = One::of(groups);
        if let Some(number) = hint {
            node.receive(from, [where_is(LATER, number, Some(31), &[31, 32, 33])]);
        }
        node.sent();
        for count in 1..=2 {
            node.receive(from, [ask(LATER)]);
            assert_eq!(node.machine().counters().elsewhere, count);
        }
        let sent = node.sent();
        assert!(sent.iter().all(|it| it.0 == from));
        sent.into_iter().map(|it| it.1).next()
    };
    let of_mark = |number| Some(where_is(LATER, number, None, &[21, 22, 23]));
    let of_hint = |number| Some(where_is(LATER, number, Some(31), &[31, 32, 33]));
    assert_eq!(answer(None, None), None);
    assert_eq!(answer(Some(3), None), of_mark(3));
    assert_eq!(answer(None, Some(3)), of_hint(3));
    assert_eq!(answer(Some(3), Some(2)), of_mark(3));
    assert_eq!(answer(Some(3), Some(3)), of_mark(3));
    assert_eq!(answer(Some(3), Some(4)), of_hint(4));
}

#[test]
fn a_member_asks_its_leader_unless_it_missed_a_link() {
    let mut mesh = Mesh::new(NODES, config());
    mesh.run(Span::secs(5));
    let leader = mesh.leader(GROUP);
    let member = founders(NODES, GROUP).into_iter().find(|it| *it != leader);
    let member = member.unwrap();
    let node = mesh.node(member);
    assert_eq!(asked(node, GROUP), set([leader]));
    let other = (1..=NODES).find(|it| !founders(NODES, GROUP).contains(it));
    let other = other.unwrap();
    node.receive(life(other, 0), [ask(GROUP)]);
    let sent = node.sent();
    let members = founders(NODES, GROUP);
    let own = where_is(GROUP, 1, Some(leader), &members);
    assert_eq!(sent, [(life(other, 0), own)]);

    let [one, two] = [NODES - 1, NODES];
    let news = where_is(GROUP, 7, Some(one), &[one, two, other]);
    node.receive(life(other, 0), [news.clone()]);
    node.sent();
    assert_eq!(asked(node, GROUP), set([one]));
    node.receive(life(two, 0), [ask(GROUP)]);
    assert_eq!(node.sent(), [(life(two, 0), news)]);

    let node = mesh.node(leader);
    node.notified();
    assert_eq!(asked(node, GROUP), set([]));
    node.receive(life(other, 0), [ask(GROUP)]);
    let asked_by = |from| Event::Asked {
        group: GROUP,
        from,
        payload: vec![7],
    };
    assert_eq!(
        node.notified(),
        [asked_by(life(leader, 0)), asked_by(life(other, 0))]
    );
    let payload = vec![8];
    let (to, group) = (life(leader, 0), GROUP);
    node.command(Command::Answer { to, group, payload });
    assert_eq!(node.notified().len(), 1, "it tells itself");
    assert_eq!(node.sent(), []);
}

#[test]
fn a_founder_begins_a_group_when_it_is_first_asked_for() {
    let founders = founders(NODES, LATER);
    let from = life(others(LATER)[1], 0);
    let begins = |id: u64, start, group, prepare: fn(&mut Machine)| {
        [true, false].map(|is_asked_by_other| {
            let mut groups = machine(life(id, 0), NODES, config(), start);
            prepare(&mut groups);
            let mut node = One::of(groups);
            match is_asked_by_other {
                true => node.receive(from, [ask(group)]),
                false => drop(asked(&mut node, group)),
            }
            let state = node.machine().state(group);
            node.is_in(group) && state == Some(&Sum(0))
        })
    };
    let nothing = |_: &mut Machine| {};
    for id in &founders {
        assert_eq!(begins(*id, Start::Fresh, LATER, nothing), [true; 2]);
        assert_eq!(begins(*id, Start::Restarted, LATER, nothing), [false; 2]);
        let was_in = |groups: &mut Machine| {
            let mark = Configuration::of([life(21, 0)]);
            leave(groups, LATER, mark);
        };
        assert_eq!(begins(*id, Start::Fresh, LATER, was_in), [false; 2]);
        let knows = |groups: &mut Machine| {
            let mut node = One::of(groups.clone());
            node.receive(life(21, 0), [where_is(LATER, 1, None, &[21])]);
            *groups = node.driver.into_machine();
        };
        assert_eq!(begins(*id, Start::Fresh, LATER, knows), [false; 2]);
    }
    let unknown = GroupId(100);
    for id in crate::mesh::founders(NODES, unknown) {
        let mut node = One::new(id, NODES, Start::Fresh);
        node.receive(from, [ask(unknown)]);
        assert!(!node.is_in(unknown));
    }
    let other = others(LATER)[2];
    assert_eq!(begins(other, Start::Fresh, LATER, nothing), [false; 2]);
}

/// A group that begins with the site is founded with the node, and by no node later.
#[test]
fn a_founder_without_its_part_comes_back_as_a_newcomer() {
    let id = founders(NODES, GROUP)[0];
    let from = life(founders(NODES, GROUP)[1], 0);
    let read = || [replica_item(1, Body::Read { number: 1 })];
    let mut node = One::new(id, NODES, Start::Fresh);
    node.receive(from, read());
    assert_eq!(node.machine().state(GROUP), Some(&Sum(0)));
    // It left, and kept nothing.
    let mut mesh = Mesh::new(NODES, config());
    let groups = mesh.node(id).machine().clone();
    let node = One::of(groups.published(&[Published::NoMark]));
    mesh.nodes.insert(id, node);
    mesh.run(Span::secs(5));
    for epoch in 2.. {
        mesh.epoch(epoch);
        mesh.run(Span::secs(20));
        if !mesh.node(id).is_in(GROUP) {
            break;
        }
    }
    let node = mesh.node(id);
    node.receive(from, [replica_item(1_000, Body::Read { number: 1 })]);
    assert!(node.is_in(GROUP));
    assert_eq!(node.machine().state(GROUP), None);
}

#[test]
fn groups_for_which_there_is_no_room_are_counted() {
    let id = founders(NODES, GROUP)[0];
    let config = config().with_groups(1);
    let mut node = One::of(machine(life(id, 0), NODES, config, Start::Fresh));
    let from = life(founders(NODES, GROUP)[1], 0);
    for count in 1..=2 {
        let message = replica::Message {
            configuration: 1,
            body: Body::Read { number: 1 },
        };
        let group = LATER;
        node.receive(from, [Item::Replica { group, message }]);
        assert_eq!(node.machine().counters().no_room, count);
        assert!(!node.is_in(LATER));
    }
}
