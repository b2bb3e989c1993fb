//! Reads, with and without a lease.

use super::*;

#[test]
fn a_read_takes_a_round_and_with_a_lease_none() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(1),
        drift: 1_000,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.wait(Span::secs(2));
    let readable = |group: &Group| group.notified(1, |it| matches!(it, Event::Readable { .. }));
    // The lease has ended: a round.
    let before = group.sent;
    group.command(1, Command::Read(1));
    assert_eq!((group.sent - before, readable(&group)), (2, 0));
    group.deliver();
    assert_eq!(readable(&group), 1);
    // It is held now.
    let before = group.sent;
    group.command(1, Command::Read(2));
    assert_eq!((group.sent - before, readable(&group)), (0, 2));
}

/// The host of the leader sleeps, and is asked before its timers tick.
#[test]
fn a_leader_that_slept_does_not_answer_by_its_lease() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(1),
        drift: 1_000,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.command(1, Command::Read(1));
    group.deliver();
    for id in [2, 3] {
        group.notify(id, Delta::Failed(member(1)));
    }
    // While the lease runs, no other member leads; then node 2 does, and decides.
    group.wait_without(Span::millis(900), &[1]);
    assert!(!group.node(2).leads());
    group.wait_without(Span::secs(2), &[1]);
    assert!(group.node(2).leads());
    group.command(2, Command::Propose(8));
    group.deliver_without(&[1]);
    let before = group.notified(1, |it| matches!(it, Event::Readable { .. }));
    group.command(1, Command::Read(2));
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { .. })),
        before
    );
    group.wait(Span::secs(3));
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { read: 2, .. })),
        1
    );
    assert_eq!(group.state(1), [7, 8]);
}

/// The others may promise at once.
#[test]
fn a_leader_that_handed_over_has_no_lease_any_more() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(1),
        drift: 1_000,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let readable = |group: &Group| group.notified(1, |it| matches!(it, Event::Readable { .. }));
    group.command(1, Command::Read(1));
    group.deliver();
    group.command(1, Command::Read(2));
    assert_eq!(readable(&group), 2, "by its lease");
    group.command(1, Command::TransferLeadership(NodeId(3)));
    group.wire.clear();
    group.command(1, Command::Read(3));
    assert_eq!(readable(&group), 2);
    group.deliver();
    assert_eq!(readable(&group), 3, "by a round");
    group.wait(Span::secs(2));
    for read in 4..9 {
        let before = readable(&group);
        group.command(1, Command::Read(read));
        assert_eq!(readable(&group), before);
        group.deliver();
        assert_eq!(readable(&group), before + 1);
    }
}

#[test]
fn a_round_that_is_lost_is_sent_again() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(1, Command::Read(1));
    assert_eq!(group.taken().len(), 2);
    for _ in 0..3 {
        assert_eq!(group.pass(1, Span::millis(200)).len(), 2);
    }
    group.wait(Span::secs(1));
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { read: 1, .. })),
        1
    );
    assert_eq!(group.pass(1, Span::secs(1)), []);
}

/// A member that asked if the leader is there begins another life before it is answered, and asks
/// again. A read that waits behind its question is answered all the same.
#[test]
fn a_question_of_a_former_life_holds_no_read_up() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let watch = || Body::Read { number: 0 };
    let asked = group.say(1, member(2), watch());
    assert!(matches!(
        asked[..],
        [(2, Body::Accept { .. }), (3, Body::Accept { .. })]
    ));
    // The round is in flight, so this waits for the next one.
    group.command(1, Command::Read(5));
    let later = Member::new(2, 2);
    group.say(1, later, watch());
    for _ in 0..2 {
        group.wait(Config::new().resend);
    }
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { read: 5, .. })),
        1
    );
}

/// Members 1 and 4 go on in configuration 2, which 1 decided with 2. Neither 2 nor 3 has learned so,
/// and 2 leads configuration 1 once more.
#[test]
fn a_read_is_not_answered_with_the_end_of_its_configuration() {
    let mut group = Group::new(&Configuration::of([1, 2, 3].map(member)), &[1, 2, 3, 4]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let next = Configuration::of([1, 3, 4].map(member));
    group.command(1, Command::Configure(next));
    group.round_without(&[3, 4]); // Node 2 accepts,
    group.round_without(&[3, 4]); // and 1 learns of it.
    assert_eq!(group.node(1).configuration().number, 2);
    let within = |group: &mut Group, down: &[u64]| group.wait_without(Span::secs(1), down);
    group.wire.clear();
    within(&mut group, &[2, 3]);
    group.command(4, Command::Propose(8));
    within(&mut group, &[2, 3]);
    assert_eq!(group.state(4), [7, 8]);
    for id in [2, 3] {
        group.notify(id, Delta::Failed(member(1)));
    }
    group.command(3, Command::Read(1));
    while !group.node(2).leads() {
        group.round_without(&[1, 4]);
    }
    // Its first messages are lost; the question arrives.
    let asked = group.say(2, member(3), Body::Read { number: 1 });
    for (to, body) in asked {
        assert_eq!(to, 3);
        group.judged(3, member(2), 1, body).unwrap();
        group.deliver_without(&[1, 4]);
    }
    within(&mut group, &[1, 4]);
    assert_eq!(group.node(2).version(), 2, "it decided the change, too");
    group.wait(Span::secs(3));
    let read = group.events.iter().find_map(|(id, it)| match it {
        Event::Readable { read: 1, version } if *id == 3 => Some(*version),
        _ => None,
    });
    assert!(
        read.is_some_and(|it| it >= 3),
        "8 was applied before: {read:?}"
    );
}

/// The acknowledgement that ends the round of a read ends the leader's configuration, too.
#[test]
fn a_read_is_not_answered_by_a_node_that_leaves_in_the_same_step() {
    let mut group = Group::of(&[1, 2]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(1, Command::Read(1));
    let round = group.taken();
    assert!(matches!(round[..], [(2, Body::Accept { .. })]), "{round:?}");
    let next = Configuration::of([member(2)]);
    group.command(1, Command::Configure(next));
    // The question of the round is lost, and with it the entry that ends the configuration.
    group.deliver();
    group.wait(Span::secs(2));
    let readable = |it: &Event<Journal>| matches!(it, Event::Readable { .. });
    assert_eq!(group.state(1), [0u16; 0]);
    assert_eq!(group.notified(1, readable), 0);
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Unreadable(1))),
        1
    );
}
