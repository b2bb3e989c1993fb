//! Inquiries: a leader asks the nodes that it would name if they are present.

use crate::mesh::*;

/// A leader that has just asked, with the nodes and the question's number. A quorum has answered,
/// unless members are silent.
fn asking(are_silent: bool) -> (One, BTreeSet<u64>, u64) {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(5));
    let leader = mesh.leader(GROUP);
    let mut node = mesh.nodes.remove(&leader).unwrap();
    for epoch in 2.. {
        node.command(Command::SetEpoch(epoch));
        wait(&mut node);
        let sent = node.sent();
        let asked = asked(&sent);
        if !are_silent {
            answer_rounds(&mut node, sent);
        }
        if let Some((_, number)) = asked.first() {
            let to = asked.iter().map(|it| it.0).collect();
            return (node, to, *number);
        }
    }
    panic!("each epoch has the same members");
}

/// Waits until the leader looks for other members. Returns true if it does.
fn wait(node: &mut One) -> bool {
    let due = node.timers().get(&Timer::Change(GROUP)).copied();
    if let Some(due) = due {
        node.now = due;
        node.expire();
    }
    due.is_some()
}

fn inquiries(node: &mut One) -> Vec<(u64, u64)> {
    asked(&node.sent())
}

fn asked(sent: &[(Member, Item<u64, Payload>)]) -> Vec<(u64, u64)> {
    let asked = sent.iter().filter_map(|(to, item)| {
        let Item::Inquire { number, .. } = item else {
            return None;
        };
        Some((to.id.0, *number))
    });
    asked.collect()
}

/// Members follow the leader, as it was sent to them.
fn answer_rounds(node: &mut One, sent: Vec<(Member, Item<u64, Payload>)>) {
    for (to, item) in sent {
        let Item::Replica { message, .. } = item else {
            continue;
        };
        let replica::Body::Accept {
            ballot,
            after,
            commit,
            round,
            entries,
        } = message.body
        else {
            continue;
        };
        let body = replica::Body::Accepted {
            ballot,
            end: after + entries.iter().count() as u64,
            committed: commit,
            round,
        };
        node.receive(to, [replica_item(message.configuration, body)]);
    }
}

const fn here(life: u32, number: u64) -> Item<u64, Payload> {
    Item::Here {
        group: GROUP,
        life,
        number,
    }
}

#[test]
fn nodes_that_are_silent_are_asked_so_often_and_passed_over() {
    let (mut node, first, number) = asking(false);
    let mut asked: BTreeMap<u64, u32> = first.iter().map(|it| (*it, 1)).collect();
    while wait(&mut node) {
        for (to, again) in inquiries(&mut node) {
            assert_eq!(again, number);
            *asked.entry(to).or_default() += 1;
        }
    }
    let counts: BTreeSet<u32> = asked.values().copied().collect();
    assert_eq!(counts, BTreeSet::from([3]), "{asked:?}");
    assert!(asked.len() > first.len());
    let counters = node.machine().counters();
    assert_eq!(counters.silent, asked.len() as u64);
    assert_eq!(counters.changes, 0);
    let unplaceable = |it: &Notified| matches!(it, Event::Unplaced { .. });
    assert!(node.notified().iter().any(unplaceable));
}

#[test]
fn members_change_when_all_that_are_chosen_say_that_they_are_here() {
    let (mut node, asked, number) = asking(false);
    let me = node.machine().me().incarnation.0;
    for id in &asked {
        let id = life(*id, 0);
        node.receive(id, [here(me + 1, number)]);
        node.receive(id, [here(me, number + 1)]);
    }
    assert_eq!(node.machine().counters().changes, 0);
    let last = *asked.last().unwrap();
    for id in asked.iter().filter(|it| **it != last) {
        node.receive(life(*id, 0), [here(me, number)]);
        assert_eq!(node.machine().counters().changes, 0);
    }
    wait(&mut node);
    let open: Vec<u64> = inquiries(&mut node).iter().map(|it| it.0).collect();
    assert_eq!(open, [last], "the others have answered");
    for _ in 0..2 {
        node.receive(life(last, 0), [here(me, number)]);
        assert_eq!(node.machine().counters().changes, 1);
    }
}

/// Members are cut off, and the chosen nodes are not: a link would be decided when members are
/// present again, and name the others in outdated lives.
#[test]
fn a_leader_that_no_quorum_answers_names_nobody_until_one_does() {
    let (mut node, asked_first, first) = asking(true);
    let me = node.machine().me().incarnation.0;
    for id in &asked_first {
        node.receive(life(*id, 0), [here(me, first)]);
    }
    let mut rounds = vec![];
    for _ in 0..20 {
        assert!(wait(&mut node), "it tries again");
        let sent = node.sent();
        for (id, number) in asked(&sent) {
            node.receive(life(id, 0), [here(me, number)]);
        }
        rounds.extend(sent);
    }
    let counters = node.machine().counters();
    assert_eq!((counters.changes, counters.silent), (0, 0));
    answer_rounds(&mut node, rounds);
    assert_eq!(node.machine().counters().changes, 1);
}

/// A quorum answered, and is reported as failed before the chosen nodes have answered. The link
/// would reach no member until that is refuted, and name the others in outdated lives.
#[test]
fn a_leader_that_holds_a_quorum_for_gone_names_nobody_until_one_is_back() {
    let (mut node, asked_first, first) = asking(false);
    let me = node.machine().me();
    let present = node.machine().replica(GROUP).unwrap().configuration();
    let members: Vec<Member> = present.members().map(|it| it.member).collect();
    let others: Vec<Member> = members.into_iter().filter(|it| *it != me).collect();
    for other in &others {
        node.learn(Delta::Failed(*other));
    }
    let answer = |node: &mut One, asked: Vec<(u64, u64)>| {
        for (id, number) in asked {
            node.receive(life(id, 0), [here(me.incarnation.0, number)]);
        }
    };
    let is_here = |it: &u64| others.iter().all(|other| other.id.0 != *it);
    let asked_first = asked_first.into_iter().filter(is_here);
    answer(&mut node, asked_first.map(|it| (it, first)).collect());
    for _ in 0..20 {
        assert!(wait(&mut node), "it tries again");
        let asked = inquiries(&mut node);
        answer(&mut node, asked);
    }
    assert_eq!(node.machine().counters().changes, 0);
    for other in others {
        node.learn(Delta::Refuted(other));
    }
    for _ in 0..20 {
        wait(&mut node);
        let sent = node.sent();
        let asked = asked(&sent);
        answer(&mut node, asked);
        answer_rounds(&mut node, sent);
    }
    assert_ne!(node.machine().counters().changes, 0);
}

#[test]
fn a_node_that_has_room_for_a_group_says_that_it_is_here() {
    let id = founders(9, GROUP)[0];
    let from = life(founders(9, GROUP)[1], 3);
    let inquire = |node: &mut One, group| {
        let number = 6;
        let ask = Item::Inquire {
            group,
            number,
            configuration: 2,
        };
        node.receive(from, [ask]);
        let sent = node.sent();
        let life = from.incarnation.0;
        let here = Item::Here {
            group,
            life,
            number,
        };
        sent.contains(&(from, here))
    };
    let mut node = One::new(id, 9, Start::Fresh);
    assert!(inquire(&mut node, GROUP));
    assert!(inquire(&mut node, LATER));
    let full = config().with_groups(1);
    let mut node = One::of(machine(life(id, 0), 9, full, Start::Fresh));
    assert!(inquire(&mut node, GROUP), "it has a part in it");
    for count in 1..=2 {
        assert!(!inquire(&mut node, LATER));
        assert_eq!(node.machine().counters().no_room, count);
    }
}

/// The number of asked nodes is the only limit of kept answers.
#[test]
fn an_answer_that_is_late_or_comes_twice_or_was_not_asked_for_changes_nothing() {
    let (mut node, asked, number) = asking(false);
    let me = node.machine().me();
    let life_of_me = me.incarnation.0;
    let (first, last) = (*asked.first().unwrap(), *asked.last().unwrap());
    assert_ne!(first, last);
    let other = (1..=9).find(|it| *it != me.id.0 && !asked.contains(it));
    node.receive(life(first, 0), [here(life_of_me, number)]);
    node.learn(Delta::Joined(life(last, 1)));
    let before = node.machine().clone();
    for from in [life(first, 0), life(other.unwrap(), 0), life(last, 0)] {
        node.receive(from, [here(life_of_me, number)]);
        assert_eq!(node.machine(), &before, "{from:?}");
    }
}
