//! Changes of members.

use crate::mesh::*;

const STAGGER: Span = Span::secs(10);

fn change(mesh: &mut Mesh, id: u64) -> Option<Span> {
    let now = mesh.now;
    let due = mesh.node(id).timers().get(&Timer::Change(GROUP)).copied();
    due.map(|it| it.since(now))
}

#[test]
fn a_leader_changes_members_at_its_groups_moment_of_an_epoch() {
    let mut mesh = Mesh::new(9, config().with_stagger(STAGGER));
    mesh.run(Span::secs(20));
    let leader = mesh.leader(GROUP);
    assert_eq!(change(&mut mesh, leader), None);
    mesh.epoch(2);
    // The id of the group alone shows that.
    let after = Span::secs(1) + Span(STAGGER.0 / 256 * 180);
    assert_eq!(change(&mut mesh, leader), Some(after));
    for id in (1..=9).filter(|it| *it != leader) {
        assert_eq!(change(&mut mesh, id), None, "it does not lead");
    }
    mesh.run(Span::secs(1));
    mesh.epoch(2);
    assert_eq!(
        change(&mut mesh, leader),
        Some(Span(after.0 - Span::secs(1).0)),
        "the same epoch"
    );
    mesh.run(Span::secs(20));
    let (number, _) = mesh.members(GROUP);
    assert!(number <= 2);
}

/// No node asks, so only the leader's own report is known.
#[test]
fn founders_that_are_no_members_are_told_where_the_group_is() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    let founders = founders(9, GROUP);
    let mut notified = 0;
    let (_, former) = mesh.members(GROUP);
    let mut knows: BTreeSet<u64> = founders.iter().copied().chain(former).collect();
    for epoch in 2..8 {
        mesh.epoch(epoch);
        mesh.run(Span::secs(30));
        let (number, members) = mesh.members(GROUP);
        let leader = mesh.leader(GROUP);
        for founder in founders.iter().filter(|it| !members.contains(it)) {
            let answer = mesh.nodes[founder].machine().whereabouts(GROUP);
            let Some(Item::Where {
                number: known,
                leader: known_leader,
                ..
            }) = answer
            else {
                panic!("{answer:?}");
            };
            // A former member knows the members alone.
            assert_eq!(known, number);
            assert!(known_leader.is_none_or(|it| it.0 == leader));
            notified += 1;
        }
        knows.extend(members);
        for id in (1..=9).filter(|it| !knows.contains(it)) {
            assert_eq!(mesh.nodes[&id].machine().whereabouts(GROUP), None);
        }
    }
    assert!(notified > 4);
}

#[test]
fn members_that_are_gone_are_replaced_together() {
    let mut mesh = Mesh::new(9, config().with_stagger(STAGGER));
    mesh.run(Span::secs(20));
    mesh.epoch(2);
    mesh.run(Span::secs(20));
    let (number, members) = mesh.members(GROUP);
    let leader = mesh.leader(GROUP);
    let other = members.into_iter().find(|it| *it != leader).unwrap();
    mesh.kill(other);
    let wait = Span(PATIENCE.0 / 4);
    let notified = "no other one may fail";
    assert_eq!(change(&mut mesh, leader), Some(wait), "{notified}");
    mesh.run(Span::millis(100));
    let bystander = (1..=9).find(|it| !mesh.members(GROUP).1.contains(it));
    mesh.kill(bystander.unwrap());
    let rest = Some(wait - Span::millis(100));
    assert_eq!(change(&mut mesh, leader), rest, "it waits on");
    mesh.run(Span::secs(5));
    let (next, members) = mesh.members(GROUP);
    assert_eq!(next, number + 1);
    assert!(!members.contains(&other));
    assert_eq!(members.len(), 3);
}

#[test]
fn the_first_of_several_that_may_fail_is_replaced_after_the_whole_patience() {
    let config = config().with_stagger(STAGGER).with_replace_after(1);
    let mut mesh = Mesh::of(&plan_for(2, 9), config);
    mesh.run(Span::secs(20));
    let (_, members) = mesh.members(GROUP);
    assert_eq!(members.len(), 5);
    let leader = mesh.leader(GROUP);
    let mut others = members.into_iter().filter(|it| *it != leader);
    mesh.kill(others.next().unwrap());
    assert_eq!(change(&mut mesh, leader), Some(PATIENCE));
    mesh.run(Span::secs(5));
    assert_eq!(mesh.members(GROUP).1.len(), 5);
}

#[test]
fn founders_are_told_once_of_each_link_and_in_each_epoch() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    let founders = founders(9, GROUP);
    let others = |members: &[u64]| founders.iter().filter(|it| !members.contains(it)).count();
    let mut changes = 0;
    for epoch in 2..8 {
        let (before, former) = mesh.members(GROUP);
        mesh.reported = 0;
        mesh.epoch(epoch);
        mesh.run(Span::secs(30));
        let (number, members) = mesh.members(GROUP);
        assert_eq!(number, before + 1);
        assert_eq!(mesh.reported, others(&former) + others(&members));
        changes += others(&members);
    }
    assert!(changes > 4);
}

#[test]
fn a_leader_that_is_deposed_changes_nothing() {
    let mut mesh = Mesh::new(9, config().with_stagger(STAGGER));
    mesh.run(Span::secs(20));
    let leader = mesh.leader(GROUP);
    mesh.epoch(2);
    assert!(change(&mut mesh, leader).is_some());
    for id in (1..=9).filter(|it| *it != leader) {
        mesh.node(id).learn(Delta::Failed(life(leader, 0)));
    }
    mesh.settle();
    mesh.run(Span::millis(200));
    let later = (1..=9).find(|it| *it != leader && mesh.nodes[it].machine().leads(GROUP));
    let later = later.unwrap();
    mesh.node(later).learn(Delta::Refuted(life(leader, 0)));
    let (group, update) = (GROUP, 1);
    mesh.node(later).command(Command::Propose { group, update });
    mesh.settle();
    assert_eq!(mesh.leader(GROUP), later);
    assert_eq!(change(&mut mesh, leader), None);
}

#[test]
fn what_a_leader_asks_for_itself_is_not_told() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    mesh.epoch(2);
    mesh.run(Span::secs(1));
    let is_read = |it: &Notified| {
        let Event::Replica { event, .. } = it else {
            return false;
        };
        matches!(
            event,
            replica::Event::Readable { .. } | replica::Event::Unreadable(_)
        )
    };
    assert!(!mesh.notified.iter().any(|it| is_read(&it.1)));
}

#[test]
fn a_member_in_a_later_life_is_named_in_it() {
    let mut mesh = Mesh::new(3, config());
    mesh.run(Span::secs(5));
    let leader = mesh.leader(GROUP);
    let id = (1..=3).find(|it| *it != leader).unwrap();
    let again = life(id, 1);
    let mut node = One::of(machine(again, 3, config(), Start::Restarted));
    node.now = mesh.now;
    mesh.nodes.insert(id, node);
    for other in (1..=3).filter(|it| *it != id) {
        mesh.node(other).learn(Delta::Joined(again));
        mesh.node(id).learn(Delta::Joined(life(other, 0)));
    }
    mesh.epoch(2);
    mesh.run(Span::secs(60));
    let leader = mesh.leader(GROUP);
    let replica = mesh.node(leader).machine().replica(GROUP).unwrap();
    let voter = replica.configuration().voter(NodeId(id)).unwrap();
    assert_eq!(voter.member, again);
    assert_eq!(mesh.node(id).machine().state(GROUP), Some(&Sum(0)));

    // A leader that does not know that life does not name the one before: the others go on from
    // their stored memory, and know the node in its former life.
    mesh.down.insert(id);
    let now = mesh.now;
    for it in (1..=3).filter(|it| *it != id) {
        let stored: Vec<_> = mesh.node(it).machine().stored().collect();
        let mut machine = machine(life(it, 0), 3, config(), Start::Fresh);
        stored.iter().for_each(|it| machine.fold(it).unwrap());
        let mut node = One::of(machine);
        node.now = now;
        for other in (1..=3).filter(|other| *other != it) {
            node.learn(Delta::Joined(life(other, 0)));
        }
        mesh.nodes.insert(it, node);
    }
    mesh.run(Span::secs(60));
    let leader = mesh.leader(GROUP);
    let mut node = mesh.nodes.remove(&leader).unwrap();
    node.command(Command::SetEpoch(3));
    node.input(Input::Tick(Timer::Change(GROUP))).unwrap();
    let asks = |it: &Item<u64, Payload>| matches!(it, Item::Inquire { .. });
    assert!(!node.sent().iter().any(|it| asks(&it.1)));
    assert_eq!(node.machine().counters().changes, 0);
}
