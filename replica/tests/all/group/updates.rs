//! Updates: their cost, the number of times that they apply, and refusals.

use super::*;

#[test]
fn an_update_costs_8_messages_among_5_members_when_another_follows() {
    let mut group = Group::of(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Propose(1));
    group.deliver();
    let before = group.sent;
    for update in 2..=101 {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    assert_eq!((group.sent - before) / 100, 8);
    assert_eq!(group.state(1).len(), 101);
    // The last commit is reported after a while, and then nothing is sent.
    group.wait(Span::millis(200));
    assert!((2..=5).all(|id| group.state(id).len() == 101));
    let idle = group.sent;
    group.wait(Span::secs(60));
    assert_eq!(group.sent, idle);
}

#[test]
fn many_updates_are_on_their_way_at_once() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(0));
    group.deliver();
    for update in 1..=64 {
        group.command(1, Command::Propose(update));
    }
    group.round_without(&[]);
    group.round_without(&[]);
    assert_eq!(group.state(1).len(), 65, "one round trip for all");
}

#[test]
fn updates_that_are_proposed_together_travel_together() {
    let mut group = Group::of(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Propose(0));
    group.deliver();
    let before = group.sent;
    group.command(1, Command::ProposeAll((1..=64).collect()));
    group.deliver();
    assert_eq!(group.state(1), (0..=64).collect::<Vec<_>>());
    assert_eq!(group.sent - before, 8, "as one update");

    // Through another member one message more takes them to the leader.
    let before = group.sent;
    group.command(3, Command::ProposeAll((65..=128).collect()));
    group.deliver();
    assert_eq!(group.state(1), (0..=128).collect::<Vec<_>>());
    assert_eq!(group.sent - before, 9);
    group.wait(Span::secs(1));
    let applied = |it: &Event<Journal>| matches!(it, Event::Applied { by, .. } if by.id.0 == 3);
    assert_eq!(group.notified(3, applied), 64);

    let before = group.sent;
    group.command(3, Command::ProposeAll(Vec::new()));
    assert_eq!((group.sent, group.node(3).next_number()), (before, 65));
}

/// A client outside proposes through one member, and, without an answer, through another one.
#[test]
fn a_proposal_that_is_relayed_twice_is_applied_once() {
    let mut group = Group::of(&[1, 2, 3]);
    let proposal = |number| Proposal {
        by: Member::new(77, 1),
        number,
        first: 1,
        since: 0,
        update: number as u16,
    };
    for relay in [2, 3, 1] {
        group.command(relay, Command::Relay(proposal(1)));
        group.wait(Span::secs(1));
    }
    group.command(3, Command::Relay(proposal(2)));
    group.wait(Span::secs(1));
    assert_eq!(group.state(1), [1, 2]);
    let overtaken = |it: &Event<Journal>| matches!(it, Event::Overtaken { number: 1, .. });
    assert_eq!(
        (group.notified(3, overtaken), group.notified(1, overtaken)),
        (1, 1)
    );
    // Also behind the next one of its row.
    group.command(3, Command::Relay(proposal(1)));
    assert_eq!(group.notified(3, overtaken), 2);
}

/// A group that remembers one proposer.
#[test]
fn a_proposer_that_was_forgotten_is_told_so_and_begins_again() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.proposers = 1;
    let mut group = Group::new(&first, &[1, 2, 3]);
    for id in [1, 2] {
        group.command(id, Command::Propose(id as u16));
        group.wait(Span::secs(1));
    }
    group.command(1, Command::Propose(11));
    group.wait(Span::secs(1));
    // It knows that it was forgotten.
    let forgotten = |it: &Event<Journal>| matches!(it, Event::Forgotten { .. });
    assert_eq!(group.notified(1, forgotten), 0);
    let late = Proposal {
        by: member(2),
        number: 2,
        first: 1,
        since: 0,
        update: 12,
    };
    for relay in [1, 3] {
        group.command(relay, Command::Relay(late.clone()));
        group.wait(Span::secs(1));
        assert_eq!(group.notified(relay, forgotten), 1);
    }
    group.command(2, Command::Propose(13));
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [1, 2, 11, 13]);
}

#[test]
fn what_is_too_much_is_refused() {
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new().with_pending(1);
    let node = Replica::new(member(2), config, first, Journal::default()).unwrap();
    let mut group = Group::of(&[1, 2, 3]);
    let at = group.at(2);
    group.nodes[at] = Driver::new(node);
    group.command(2, Command::Propose(1));
    let refused = group.step(2, Input::Command(Command::Read(1)));
    assert_eq!(refused, Err(Reject::Full { limit: 1 }));
    group.deliver();
    group.wait(Span::secs(1));
    group.command(2, Command::Read(1));
    group.wait(Span::secs(1));
    // All of them, or none.
    let together = Command::ProposeAll(vec![2, 3]);
    let refused = group.step(2, Input::Command(together));
    assert_eq!(refused, Err(Reject::Full { limit: 1 }));
    assert_eq!(
        (group.node(2).next_number(), group.node(2).waiting()),
        (2, 0)
    );
    group.command(2, Command::ProposeAll(vec![2]));
    group.wait(Span::secs(1));
    assert_eq!(group.state(1), [1, 2]);
}

/// Many proposals at once, with the smallest frames: the entries in flight fit into one.
#[test]
fn the_updates_on_their_way_fit_into_a_frame() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    for update in 1..=100 {
        let update = if update == 12 { 200 } else { update };
        group.command(1, Command::Propose(update));
    }
    // 12 fit, to the byte; none is committed yet.
    assert_eq!(group.taken().len(), 2 * 12);
    // All were lost. They are sent again in one frame to each.
    let sent = group.pass(1, Span::millis(200));
    for to in [2, 3] {
        let to_it = sent.iter().find(|it| it.0 == to);
        let Some((
            _,
            Body::Accept {
                after: 0, entries, ..
            },
        )) = to_it
        else {
            panic!("{sent:?}");
        };
        assert_eq!(entries.len(), 12);
    }
    group.wait(Span::secs(2));
    assert_eq!(group.state(3).len(), 100);
}

#[test]
fn a_leader_keeps_a_limited_number_of_proposals_of_others() {
    let first = Configuration::of([1, 2].map(member));
    let mut group = Group::set(&first, &[1, 2], Config::new().with_pending(2));
    group.command(1, Command::Campaign);
    group.deliver();
    let proposals = (1..=60).map(|number| Proposal {
        by: member(2),
        number,
        first: 1,
        since: 0,
        update: 1,
    });
    let proposals = proposals.collect();
    group.say(1, member(2), Body::Propose { proposals });
    assert_eq!(group.node(1).counters().no_room, 1);
    for number in 1..=4 {
        group.say(1, member(2), Body::Read { number });
    }
    assert_eq!(group.node(1).counters().no_room, 3);
}

/// A proposer's numbers have no gap, and each is taken once.
#[test]
fn a_leader_takes_the_next_number_of_a_proposer() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    let propose = |number, first| Body::Propose {
        proposals: [Proposal {
            by: member(2),
            number,
            first,
            since: 0,
            update: number as u16,
        }]
        .into_iter()
        .collect(),
    };
    let takes = |group: &mut Group, number, first| {
        !group.say(1, member(2), propose(number, first)).is_empty()
    };
    assert!(!takes(&mut group, 2, 1), "1 is missing");
    assert!(takes(&mut group, 1, 1));
    assert!(!takes(&mut group, 1, 1), "it is on its way");
    assert!(!takes(&mut group, 3, 1), "2 is missing");
    assert!(takes(&mut group, 2, 1));
    assert!(takes(&mut group, 5, 5), "it gave 3 and 4 up");
    assert!(!takes(&mut group, 5, 5), "it is on its way");
    assert!(!takes(&mut group, 4, 4), "it comes before 5");
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [1, 2, 5]);
    assert!(!takes(&mut group, 5, 5), "it was applied");
    assert!(!takes(&mut group, 4, 4), "it comes before 5");
    assert!(!takes(&mut group, 7, 5), "6 is missing");
    assert!(takes(&mut group, 6, 5));
    group.wait(Span::secs(1));
    assert!(takes(&mut group, 9, 9));
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [1, 2, 5, 6, 9]);
}

#[test]
fn a_proposal_that_is_relayed_again_waits_once() {
    let mut group = Group::of(&[1, 2, 3]);
    let proposal = |by, number| Proposal {
        by: Member::new(by, 1),
        number,
        first: 1,
        since: 0,
        update: 1,
    };
    for (by, number, waiting) in [(77, 1, 1), (77, 1, 1), (77, 2, 2), (78, 1, 3), (78, 1, 3)] {
        group.command(3, Command::Relay(proposal(by, number)));
        assert_eq!(group.node(3).waiting(), waiting);
    }
}

/// A follower sends waiting proposals again, to a leader that does not answer.
#[test]
fn proposals_travel_as_many_as_fit_into_a_frame() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    for update in 1..=13 {
        let update = if update == 12 { 200 } else { update };
        group.command(2, Command::Propose(update));
    }
    let sent = group.pass(2, Span::millis(200));
    let [(1, Body::Propose { proposals })] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(proposals.len(), 12);
    // Updates that are proposed together are sent at once, in as many messages as they need.
    group.command(2, Command::ProposeAll((1..=25).collect()));
    let sizes = group.taken().into_iter().map(|sent| match sent {
        (1, Body::Propose { proposals }) => proposals.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [12, 12, 1]);
}

#[test]
fn a_member_that_knows_no_leader_asks_the_member_that_should_lead() {
    for (id, asked) in [(1, vec![]), (2, vec![1]), (3, vec![1])] {
        let mut group = Group::of(&[1, 2, 3]);
        group.command(id, Command::Propose(7));
        let sent = group.taken().into_iter();
        let to = sent.filter(|it| matches!(it.1, Body::Propose { .. }));
        assert_eq!(to.map(|it| it.0).collect::<Vec<_>>(), asked, "node {id}");
        let mut group = Group::of(&[1, 2, 3]);
        group.command(id, Command::Read(7));
        let sent = group.taken().into_iter();
        let to = sent.filter(|it| matches!(it.1, Body::Read { .. }));
        assert_eq!(to.map(|it| it.0).collect::<Vec<_>>(), asked, "node {id}");
    }
}
