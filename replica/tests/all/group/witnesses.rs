//! Members that only vote.

use selvedge_replica::{SnapshotId, Wants};

use super::*;

#[test]
fn two_holders_and_a_witness_survive_the_loss_of_one() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    assert_eq!(group.node(3).state(), None);
    assert_eq!(
        group.step(3, Input::Command(Command::Read(1))),
        Err(Reject::NoMember)
    );
    for id in [2, 3] {
        group.notify(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(8));
    group.wait_without(Span::secs(2), &[1]);
    assert_eq!(group.state(2), [7, 8]);
}

/// Only node 1 and the witness accepted 8: node 2 cannot know it, and reports that it waits.
#[test]
fn what_a_witness_alone_has_accepted_is_waited_for() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(8));
    group.deliver_without(&[2]);
    assert_eq!(group.state(1), [7, 8]);
    for id in [2, 3] {
        group.notify(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(9));
    group.wait_without(Span::secs(5), &[1]);
    assert_eq!(group.state(2), [7]);
    assert!(!group.node(2).leads());
    assert_eq!(
        group.notified(2, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    group.notify(2, Delta::Refuted(member(1)));
    group.notify(3, Delta::Refuted(member(1)));
    group.wait(Span::secs(5));
    assert_eq!(group.state(2), [7, 8, 9]);
}

/// The others of the former configuration have failed for good when the next one begins: the two
/// members that become witnesses hold the only states.
#[test]
fn a_member_that_becomes_a_witness_keeps_the_state_until_the_next_members_have_it() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4]);
    let at = group.at(1);
    let config = Config::new().with_window(0);
    let leader = Replica::new(member(1), config, first, Journal::default());
    group.nodes[at] = Driver::new(leader.unwrap());
    for update in 1..=3 {
        group.command(1, Command::Propose(update));
        group.deliver_without(&[2, 4]);
    }
    let mut voters = vec![Voter::new(member(4))];
    voters.extend([2, 3].map(|id| Voter::witness(member(id))));
    group.command(1, Command::Configure(Configuration::new(voters)));
    group.deliver_without(&[2, 4]);
    // Node 2 lacks all of it, and gets the state whole, for nothing is kept of the entries.
    group.wait_without(Span::secs(1), &[3, 4]);
    assert_eq!(group.node(2).configuration().number, 2);
    assert_eq!(
        group.node(2).state(),
        None,
        "for the application it is a witness"
    );
    group.wait_without(Span::secs(60), &[1, 3]);
    assert_eq!(group.state(4), [1, 2, 3]);
    assert!(group.node(4).leads());
}

/// Nodes that hold no state themselves.
#[test]
fn a_witness_tells_which_nodes_have_the_state_once_it_knows() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3, 4]);
    let missing = Body::Missing {
        committed: 0,
        wants: Wants::State,
    };
    assert_eq!(group.say(3, member(9), missing.clone()), []);
    group.command(1, Command::Propose(7));
    group.deliver();
    let reported = group.say(3, member(9), missing.clone());
    let [
        (
            9,
            Body::Current {
                is_active: true, ..
            },
        ),
    ] = reported[..]
    else {
        panic!("{reported:?}");
    };
    // A former member gave the state up. It would be asked again for each answer.
    let next = Configuration::of([1, 4].map(member));
    group.command(1, Command::Configure(next));
    group.wait(Span::secs(2));
    assert_eq!(group.node(2).state(), None);
    assert_eq!(group.say(2, member(9), missing.clone()), []);
    // A node that knows of no configuration has nothing to send.
    let newcomer = Replica::newcomer(member(4), Config::new()).unwrap();
    let at = group.at(4);
    group.nodes[at] = Driver::new(newcomer);
    let fetch = Body::Fetch {
        snapshot: SnapshotId {
            version: 1,
            is_bare: false,
            total: 302,
        },
        offset: 0,
    };
    assert_eq!(group.say(4, member(9), missing), []);
    assert_eq!(group.say(4, member(9), fetch), []);
}

/// A message of a configuration that has ended.
#[test]
fn a_member_tells_that_its_configuration_is_active_once_it_follows_a_leader() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.number = 2;
    let mut group = Group::new(&first, &[1, 2, 3]);
    let active = |group: &mut Group| {
        group
            .judged(3, member(9), 1, Body::Rejoin { life: 1 })
            .unwrap();
        match group.taken()[..] {
            [(9, Body::Current { is_active, .. })] => is_active,
            ref other => panic!("{other:?}"),
        }
    };
    assert!(!active(&mut group));
    group.command(1, Command::Campaign);
    group.deliver();
    assert!(active(&mut group));
    // An answer needs none, and is counted.
    let answer = Body::Accepted {
        ballot: ballot(1, 1),
        end: 0,
        committed: 0,
        round: 1,
    };
    for stale in 1..=2 {
        group.judged(3, member(9), 1, answer.clone()).unwrap();
        assert_eq!(group.taken(), []);
        assert_eq!(group.node(3).counters().stale, stale);
    }
}

/// Nodes 1 and 3 changed places: each is the witness of the configuration that it knows, and node 1 is behind.
/// Node 2 knows neither configuration.
#[test]
fn two_witnesses_that_name_each_other_are_not_asked_in_turn() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    let named = |number: u64, holder: u64, witness: u64| {
        let voters = [Voter::new(member(holder)), Voter::witness(member(witness))];
        let mut configuration = Configuration::new(voters);
        configuration.number = number;
        Body::Current {
            configuration: Box::new(configuration),
            is_active: true,
        }
    };
    let asked = |group: &mut Group, number: u64, from: u64, holder: u64| {
        let body = named(number, holder, from);
        group.judged(2, member(from), number, body).unwrap();
        let is_question = |it: &(u64, Body<u16>)| matches!(it.1, Body::Missing { .. });
        let taken = group.taken().into_iter().filter(is_question);
        taken.map(|it| it.0).collect::<Vec<u64>>()
    };
    assert_eq!(asked(&mut group, 3, 1, 3), [3]);
    assert_eq!(asked(&mut group, 4, 3, 1), [1]);
    assert_eq!(
        asked(&mut group, 3, 1, 3),
        [0_u64; 0],
        "node 3 has answered"
    );
    assert_eq!(
        asked(&mut group, 4, 3, 1),
        [1],
        "the latest configuration may be named again"
    );
    group.command(2, Command::Propose(7));
    for _ in 0..10 {
        group.taken();
        group.slow_round(Span::secs(1));
    }
    group.taken();
    assert_eq!(
        asked(&mut group, 3, 1, 3),
        [3],
        "its answer may have been lost"
    );
}

/// No state arrives at node 2 once it knows of the change.
fn drop_states(group: &mut Group) {
    let lacks = group.node(2).configuration().number == 2;
    let is_state = |body: &Body<u16>| matches!(body, Body::Page { .. });
    group.wire.retain(|it| !(lacks && is_state(&it.2.body)));
}

/// The member that holds the state is down. A member without it asks, and only the witness answers.
#[test]
fn a_member_that_lacks_the_state_does_not_ask_a_witness_for_each_of_its_answers() {
    let first = Configuration::new([
        Voter::new(member(1)),
        Voter::witness(member(2)),
        Voter::witness(member(3)),
    ]);
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let mut next = first.clone();
    next.voters[1].is_witness = false;
    next.also = first.voters.iter().copied().skip(2).collect();
    next.also.push(Voter::new(member(1)));
    group.command(1, Command::Configure(next));
    // Node 2 learns of the change; messages that carry the state are lost.
    while group.node(2).configuration().number < 2 || !group.node(1).leads() {
        drop_states(&mut group);
        group.slow_round(Span::millis(10));
    }
    assert_eq!(group.node(2).configuration().number, 2);
    assert_eq!(group.node(2).state(), None);
    assert!(group.node(1).leads());
    group.wire.clear();
    let current = Body::Current {
        configuration: Box::new(group.node(3).configuration().clone()),
        is_active: true,
    };
    for reported in group.say(2, member(3), current) {
        let missing = matches!(reported, (3, Body::Missing { .. }));
        assert!(!missing, "{reported:?}");
    }
    let before = group.sent;
    for _ in 0..1_000 {
        group.round_without(&[1]);
    }
    assert!(group.sent - before < 10, "{} messages", group.sent - before);
    group.wait(Span::secs(2));
    assert_eq!(group.state(2), [7]);
}
