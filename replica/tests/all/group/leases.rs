//! The members that a lease binds, and the time for which it does.

use super::*;

const LEASE: Lease = Lease {
    span: Span::secs(1),
    drift: 1_000,
};

/// A group that node 1 leads, with nothing in flight and no lease that runs.
fn leased() -> Group {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(LEASE);
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.wait(Span::secs(2));
    group
}

fn readable(group: &Group) -> usize {
    group.notified(1, |it| matches!(it, Event::Readable { .. }))
}

/// The host asks when the lease has just ended, before the timer ticks.
#[test]
fn a_lease_is_held_until_just_before_its_end() {
    for (early, answered) in [(1, 1), (0, 0)] {
        let mut group = leased();
        group.command(1, Command::Read(1));
        group.deliver();
        let before = readable(&group);
        group.now = group.now + Span(LEASE.relied_on().0 - early);
        group.command(1, Command::Read(2));
        assert_eq!(readable(&group) - before, answered);
    }
}

/// Only the leader itself lets a member stand that is bound by its lease.
#[test]
fn a_member_that_is_bound_stands_when_the_leader_asks_it_to() {
    let mut group = leased();
    group.command(1, Command::Read(1));
    group.deliver();
    group.command(2, Command::Campaign);
    assert_eq!(group.taken(), [], "it is bound");
    assert_eq!(group.node(2).counters().elections, 0);
    group.command(1, Command::TransferLeadership(NodeId(3)));
    group.deliver();
    assert!((1..=3).all(|id| group.leader(id) == Some(3)), "at once");
}

/// A tick that was due when the leader handed over.
#[test]
fn a_lease_that_was_given_up_stays_so() {
    let mut group = leased();
    group.command(1, Command::Read(1));
    group.deliver();
    group.command(1, Command::TransferLeadership(NodeId(3)));
    group.taken();
    let before = group.node(1).clone();
    group.step(1, Input::Tick(Timer::Lease)).unwrap();
    assert_eq!(group.node(1), &before);
}

/// Two members ask with the same number of their own, one of them twice.
#[test]
fn reads_of_several_members_are_each_answered_once() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.wait(Span::secs(1));
    let ask = |id: u64, number: u64| Input::Message {
        from: member(id),
        message: Message {
            configuration: 1,
            body: Body::Read { number },
        },
    };
    for id in [2, 3, 2, 3] {
        group.step(1, ask(id, 1)).unwrap();
    }
    // Node 2 asks if the leader is present as well.
    group.step(1, ask(2, 0)).unwrap();
    let mut answers = Vec::new();
    while !group.wire.is_empty() {
        for (from, to, message) in core::mem::take(&mut group.wire) {
            if let Body::ReadAt {
                number, version, ..
            } = &message.body
            {
                answers.push((to.id.0, *number, *version));
            } else {
                group
                    .step(to.id.0, Input::Message { from, message })
                    .unwrap();
            }
        }
    }
    assert_eq!(answers, [(2, 1, 1), (3, 1, 1), (2, 0, 1)]);
    assert_eq!(group.pass(1, Span::secs(1)), []);
}

/// Its round is in flight.
#[test]
fn a_lease_is_not_held_before_a_quorum_has_acknowledged_it() {
    let mut group = leased();
    let before = readable(&group);
    for read in 1..4 {
        group.command(1, Command::Read(read));
        assert_eq!(readable(&group), before);
    }
    group.deliver();
    assert_eq!(readable(&group), before + 3);
}

#[test]
fn each_read_has_a_number_of_its_own() {
    let mut group = leased();
    for read in [7, 7, 8] {
        group.command(3, Command::Read(read));
    }
    let numbers = group.taken().into_iter().map(|it| match it.1 {
        Body::Read { number } => number,
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3]);
}
