//! A member that was left behind looks for its group.

use selvedge_replica::{Body, SnapshotId, Wants};

use crate::mesh::*;

/// A founder, and nodes that found nothing.
fn founder() -> (One, Vec<u64>) {
    let founders = founders(9, GROUP);
    let others = (1..=9).filter(|it| !founders.contains(it)).collect();
    (One::new(founders[0], 9, Start::Fresh), others)
}

fn where_is(number: u64, members: &[u64]) -> Item<u64, Payload> {
    Item::Where {
        group: GROUP,
        number,
        leader: None,
        members: members.iter().map(|it| life(*it, 1)).collect(),
    }
}

/// The nodes that it asks for a later configuration.
fn finds_leader(node: &mut One) -> BTreeSet<u64> {
    let sent = node.sent().into_iter().filter_map(|(to, item)| {
        let Item::Replica { message, .. } = item else {
            return None;
        };
        let wants = Wants::Entries;
        matches!(message.body, Body::Missing { wants: it, .. } if it == wants).then_some(to.id.0)
    });
    sent.collect()
}

#[test]
fn a_member_that_is_told_of_later_members_asks_them() {
    let (mut node, others) = founder();
    let from = life(others[0], 0);
    let notified = &others[..3];
    node.command(Command::SetEpoch(1));
    node.receive(from, [where_is(1, notified)]);
    assert!(finds_leader(&mut node).is_empty(), "of what it knows");
    node.receive(from, [where_is(2, notified)]);
    let asked: BTreeSet<u64> = notified.iter().copied().collect();
    assert_eq!(finds_leader(&mut node), asked);
    node.receive(from, [where_is(2, notified)]);
    assert!(finds_leader(&mut node).is_empty(), "it was asked");
    let with_members = [others[1], node.machine().me().id.0, founders(9, GROUP)[1]];
    node.receive(from, [where_is(3, &with_members)]);
    assert_eq!(finds_leader(&mut node), BTreeSet::from([others[1]]));

    let mut node = One::new(others[4], 9, Start::Fresh);
    node.receive(from, [where_is(2, notified)]);
    assert!(finds_leader(&mut node).is_empty(), "it is no member");
    node.receive(from, [replica_item(3, Body::Read { number: 1 })]);
    assert!(node.is_in(GROUP));
    node.sent();
    node.receive(from, [where_is(4, notified)]);
    assert!(finds_leader(&mut node).is_empty(), "it knows of no members");
}

/// A hint counts less when questions are not answered, and is no news when it arrives again: each
/// copy would cause a question to its senders.
#[test]
fn what_leads_nowhere_is_looked_for_once() {
    let (mut node, others) = founder();
    let from = life(others[0], 0);
    let notified = &others[..3];
    node.command(Command::SetEpoch(1));
    node.receive(from, [where_is(2, notified)]);
    for payload in 0..9 {
        let (group, payload) = (GROUP, vec![payload]);
        node.command(Command::Ask { group, payload });
    }
    assert_eq!(finds_leader(&mut node).len(), 3);
    node.receive(from, [where_is(3, notified)]);
    assert_eq!(finds_leader(&mut node).len(), 3);
    // Two nodes send their hints, by turns.
    for number in [3, 2, 3, 2, 3] {
        node.receive(from, [where_is(number, notified)]);
        assert!(finds_leader(&mut node).is_empty());
    }
    node.command(Command::SetEpoch(2));
    for seeking in [3, 0, 0] {
        node.receive(from, [where_is(2, notified)]);
        assert_eq!(finds_leader(&mut node).len(), seeking);
    }
}

#[test]
fn a_group_of_which_nothing_came_is_dropped_with_its_timers_in_the_next_epoch() {
    let (_, others) = founder();
    let mut node = One::new(others[4], 9, Start::Fresh);
    let from = life(others[0], 0);
    node.command(Command::SetEpoch(1));
    node.receive(from, [replica_item(3, Body::Read { number: 1 })]);
    assert!(node.is_in(GROUP));
    node.command(Command::SetEpoch(1));
    assert!(node.is_in(GROUP));
    node.command(Command::SetEpoch(2));
    assert!(!node.is_in(GROUP));
    assert_eq!(node.timers(), BTreeMap::new());
}

#[test]
fn a_group_is_kept_while_a_state_arrives_and_dropped_with_its_timers_in_the_epoch_after() {
    let (_, others) = founder();
    let mut node = One::new(others[4], 9, Start::Fresh);
    let from = life(others[0], 0);
    node.command(Command::SetEpoch(1));
    node.receive(from, [replica_item(3, Body::Read { number: 1 })]);
    // The beginning of the state.
    let page = Body::Page {
        snapshot: SnapshotId {
            version: 3,
            is_bare: false,
            total: 100,
        },
        offset: 0,
        bytes: [1].into_iter().collect(),
    };
    node.receive(from, [replica_item(3, page)]);
    assert!(node.is_in(GROUP) && !node.timers().is_empty());
    node.command(Command::SetEpoch(1));
    assert!(node.is_in(GROUP));
    // The rest may come still: a state may take longer than an epoch.
    node.command(Command::SetEpoch(2));
    assert!(node.is_in(GROUP));
    let fetch = Timer::Replica(GROUP, replica::Timer::Fetch);
    for _ in 0..=replica::Config::new().attempts {
        node.now = node.timers()[&fetch];
        node.input(Input::Tick(fetch)).unwrap();
    }
    node.command(Command::SetEpoch(3));
    assert!(!node.is_in(GROUP));
    assert_eq!(node.timers(), BTreeMap::new());
}

#[test]
fn a_member_that_waits_in_vain_asks_again_at_longer_and_longer_times() {
    let (mut node, others) = founder();
    node.command(Command::SetEpoch(1));
    let from = life(others[0], 0);
    node.receive(from, [where_is(1, &others[..3])]);
    node.sent();
    let mut at = vec![];
    for time in 1..=200 {
        let due = node.timers()[&timer(GROUP)];
        node.now = node.now.max(due);
        node.input(Input::Tick(timer(GROUP))).unwrap();
        if !finds_leader(&mut node).is_empty() {
            at.push(time);
        }
    }
    assert_eq!(at, [2, 4, 8, 16, 32, 64, 96, 128, 160, 192]);
}

#[test]
fn a_member_of_before_is_told_where_the_group_is_by_one_that_only_heard_of_it() {
    let (_, others) = founder();
    let from = life(others[0], 0);
    let received = |number| {
        let mut node = One::new(others[4], 9, Start::Restarted);
        node.receive(from, [where_is(3, &others[..3])]);
        node.sent();
        node.receive(from, [replica_item(number, Body::Read { number: 1 })]);
        let is_notified = node.sent().contains(&(from, where_is(3, &others[..3])));
        (is_notified, node.is_in(GROUP))
    };
    assert_eq!(received(2), (true, false));
    assert_eq!(received(3), (false, true));
    assert_eq!(received(4), (false, true));
}

/// Each differs from the first one in one thing that it keeps.
#[test]
fn nodes_are_equal_where_all_that_they_keep_is() {
    let (_, others) = founder();
    let (id, from) = (others[1], life(others[0], 0));
    let begun = |incarnation, start, config, prepare: &dyn Fn(&mut Machine)| {
        let mut machine = machine(life(id, incarnation), 9, config, start);
        prepare(&mut machine);
        machine
    };
    let plain = || begun(0, Start::Fresh, config(), &|_| {});
    let with = |prepare: &dyn Fn(&mut Machine)| begun(0, Start::Fresh, config(), prepare);
    let after = |input: fn(&mut One, Member)| {
        with(&|it| {
            let mut node = One::of(it.clone());
            input(&mut node, from);
            *it = node.driver.into_machine();
        })
    };
    assert_eq!(plain(), plain());
    assert_eq!(plain(), plain().clone());
    let since = |it: &mut Machine| it.fold(&plain().base(None).unwrap()).unwrap();
    let all = [
        plain(),
        begun(1, Start::Fresh, config(), &|_| {}),
        begun(1, Start::Fresh, config(), &since),
        begun(0, Start::Restarted, config(), &|_| {}),
        begun(0, Start::Fresh, config().with_leader_hints(7), &|_| {}),
        with(&|it| leave(it, LATER, replica::Configuration::of([from]))),
        with(&|it| {
            let mut node = One::of(it.clone());
            node.receive(from, [replica_item(1, Body::Read { number: 1 })]);
            let replica = node.machine().replica(GROUP).unwrap();
            let base = Fact::Base {
                group: GROUP,
                plan: it.plan().digest(),
                stored: Box::new(replica.stored()),
            };
            it.fold(&base).unwrap();
        }),
        after(|it, _| it.command(Command::SetEpoch(0))),
        after(|it, _| it.command(Command::SetEpoch(5))),
        after(|it, from| it.learn(Delta::Joined(from))),
        after(|it, from| it.receive(from, [where_is(1, &[1, 2])])),
    ];
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{at}, {other_at}");
        }
    }
}
