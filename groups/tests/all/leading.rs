//! The members of a group, and its leader.

use crate::mesh::*;

#[test]
fn a_founder_is_in_its_groups_at_its_first_input_and_waits_for_a_leader() {
    let founders = founders(5, GROUP);
    assert_eq!(founders.len(), 3);
    for (before, id) in founders.iter().enumerate() {
        let mut node = One::new(*id, 5, Start::Fresh);
        node.command(Command::SetEpoch(1));
        assert_eq!(node.notified(), [Event::Entered(GROUP)]);
        let after = PATIENCE * before as u64 + Span(PATIENCE.0 / 8);
        let due = Time::ZERO + after;
        assert_eq!(node.timers(), BTreeMap::from([(timer(GROUP), due)]));
        node.now = Time::ZERO + Span(1);
        node.command(Command::SetEpoch(2));
        assert_eq!(node.notified(), []);
        assert_eq!(node.timers()[&timer(GROUP)], due, "it waits on");
    }
    let other = (1..=5).find(|it| !founders.contains(it)).unwrap();
    let mut node = One::new(other, 5, Start::Fresh);
    node.command(Command::SetEpoch(1));
    assert_eq!((node.notified(), node.timers()), (vec![], BTreeMap::new()));
    let mut node = One::new(founders[0], 5, Start::Restarted);
    node.command(Command::SetEpoch(1));
    assert_eq!((node.notified(), node.timers()), (vec![], BTreeMap::new()));
}

#[test]
fn a_member_does_not_wait_for_those_that_are_gone() {
    let founders = founders(5, GROUP);
    let due_after = |ended: u64, of: u64| {
        let mut node = One::new(of, 5, Start::Fresh);
        node.learn(Delta::Failed(life(ended, 0)));
        node.timers()[&timer(GROUP)].since(Time::ZERO)
    };
    let first = Span(PATIENCE.0 / 8);
    assert_eq!(due_after(founders[0], founders[2]), PATIENCE + first);
    assert_eq!(due_after(founders[2], founders[1]), PATIENCE + first);
}

#[test]
fn nobody_waits_or_stands_where_a_leader_is() {
    let mut mesh = Mesh::new(5, config());
    mesh.run(Span::secs(5));
    let leader = mesh.leader(GROUP);
    for node in mesh.nodes.values() {
        assert!(!node.timers().contains_key(&timer(GROUP)));
    }
    for id in founders(5, GROUP) {
        let stray = Input::Tick(timer(GROUP));
        mesh.node(id).input(stray).unwrap();
        let sent = mesh.node(id).sent();
        let stands = |it: &Item<u64, Payload>| {
            let Item::Replica { message, .. } = it else {
                return false;
            };
            matches!(message.body, replica::Body::Prepare { .. })
        };
        assert!(!sent.iter().any(|it| stands(&it.1)), "{sent:?}");
    }
    mesh.settle();
    assert_eq!(mesh.leader(GROUP), leader);
    mesh.kill(leader);
    mesh.run(Span::secs(10));
    assert_ne!(mesh.leader(GROUP), leader);
}

#[test]
fn a_group_gets_a_leader_when_some_members_were_never_there() {
    let founders = founders(5, GROUP);
    let mut mesh = Mesh::without(Some(founders[0]), &plan(5), config());
    mesh.run(Span::secs(30));
    assert_eq!(mesh.leader(GROUP), founders[1]);
}

#[test]
fn a_node_enters_a_group_with_its_state_and_leaves_it_with_nothing() {
    let mut mesh = Mesh::new(9, config());
    let mut total = 0;
    for epoch in 2..8 {
        mesh.run(Span::secs(20));
        let leader = mesh.leader(GROUP);
        mesh.node(leader).command(Command::Propose {
            group: GROUP,
            update: epoch,
        });
        total += epoch;
        mesh.run(Span::secs(1));
        mesh.epoch(epoch);
        mesh.run(Span::secs(20));
        let (_, members) = mesh.members(GROUP);
        for id in members {
            let state = mesh.nodes[&id].machine().state(GROUP);
            assert_eq!(state, Some(&Sum(total)), "node {id}");
        }
        for (id, node) in &mesh.nodes {
            let entered = mesh.count(*id, &Event::Entered(GROUP));
            let left = mesh.count(*id, &Event::Left(GROUP));
            // A member that was not needed for a link may learn of it later.
            let is_in = node.is_in(GROUP);
            assert_eq!(entered, left + usize::from(is_in), "node {id}");
            if !is_in {
                assert_eq!(node.machine().state(GROUP), None, "node {id}");
                assert_eq!(node.machine().former(), usize::from(entered > 0));
            }
        }
    }
    let moves = (1..=9).map(|id| mesh.count(id, &Event::Entered(GROUP)));
    assert!(moves.sum::<usize>() > 9);
}

/// All nodes report at once, so the test sees the moment.
#[test]
fn a_node_that_is_named_has_not_entered_before_it_has_the_state() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(5));
    let (number, members) = mesh.members(GROUP);
    let leader = life(mesh.leader(GROUP), 0);
    let configuration = {
        let node = mesh.node(leader.id.0);
        let present = node.machine().replica(GROUP).unwrap().configuration();
        let mut next = present.clone();
        next.number = number + 1;
        next.voters.push(replica::Voter::new(life(9, 0)));
        next
    };
    assert!(!members.contains(&9), "choose another node");
    let mut node = One::new(9, 9, Start::Fresh);
    let body = replica::Body::Current {
        configuration: configuration.into(),
        is_active: false,
    };
    node.receive(leader, [replica_item(number + 1, body)]);
    assert!(node.is_in(GROUP));
    assert_eq!(node.notified(), []);
    assert!(!node.timers().contains_key(&timer(GROUP)), "it cannot vote");
}
