//! The group's record of proposers, and their numbers.

use super::*;

/// A proposal of the proposer `by` in this life.
fn proposal(by: Member, number: u64, first: u64, since: u64) -> Proposal<u16> {
    Proposal {
        by,
        number,
        first,
        since,
        update: number as u16,
    }
}

fn remembering(proposers: u16, ids: &[u64]) -> Group {
    let mut first = Configuration::of(ids.iter().map(|&id| member(id)));
    first.proposers = proposers;
    let mut group = Group::new(&first, ids);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    group
}

/// Returns true if the leader, node 1, appends it.
fn takes(group: &mut Group, from: u64, it: Proposal<u16>) -> bool {
    let proposals = [it].into_iter().collect();
    !group
        .say(1, member(from), Body::Propose { proposals })
        .is_empty()
}

/// The proposals that were sent: number and first.
fn sent(group: &mut Group) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for (_, body) in group.taken() {
        if let Body::Propose { proposals } = body {
            all.extend(proposals.iter().map(|it| (it.number, it.first)));
        }
    }
    all
}

/// No leader decides most of these, but a decision applies each once and in order all the same.
#[test]
fn what_is_decided_twice_or_with_a_gap_is_not_applied() {
    let mut group = Group::of(&[1, 2, 3]);
    let life = |incarnation| Member::new(77, incarnation);
    for (nth, (by, number, first, is_applied)) in [
        (life(5), 2, 1, false), // 1 is missing
        (life(5), 1, 1, true),  //
        (life(5), 1, 1, false), // again
        (life(5), 3, 1, false), // 2 is missing
        (life(5), 2, 1, true),  //
        (life(6), 3, 1, false), // it begins with 1 in a later life
        (life(4), 1, 1, false), // a former life
        (life(4), 3, 3, false), //
        (life(5), 6, 6, true),  // it gave 3 to 5 up
        (life(5), 7, 6, true),  //
        (life(6), 1, 1, true),  // a later life
        (life(5), 8, 6, false), // a former one
        (life(6), 2, 1, true),  //
    ]
    .into_iter()
    .enumerate()
    {
        let before = group.state(3).len();
        let learn = Body::Learn {
            after: nth as u64,
            entries: [Entry::Update(proposal(by, number, first, 0))]
                .into_iter()
                .collect(),
        };
        group.say(3, member(2), learn);
        assert_eq!(group.node(3).version(), nth as u64 + 1);
        let applied = group.state(3).len() - before;
        assert_eq!(
            applied == 1,
            is_applied,
            "{by:?} number {number}, first {first}"
        );
    }
}

/// A group that remembers two: the one that was idle longest makes room for a third.
#[test]
fn the_proposer_that_was_idle_longest_is_forgotten() {
    let mut group = Group::of(&[1, 2, 3]);
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.proposers = 2;
    let node = Replica::new(member(3), Config::new(), first, Journal::default());
    let at = group.at(3);
    group.nodes[at] = Driver::new(node.unwrap());
    for (nth, (by, number, since, is_applied)) in [
        (77, 1, 0, true),
        (78, 1, 0, true),
        (77, 2, 0, true),
        (79, 1, 2, true),
        (78, 2, 0, false),
        (77, 3, 0, true),
        (79, 2, 2, true),
    ]
    .into_iter()
    .enumerate()
    {
        let before = group.state(3).len();
        let entry = Entry::Update(proposal(Member::new(by, 1), number, 1, since));
        let learn = Body::Learn {
            after: nth as u64,
            entries: [entry].into_iter().collect(),
        };
        group.say(3, member(2), learn);
        let applied = group.state(3).len() - before;
        assert_eq!(applied == 1, is_applied, "number {number} of {by}");
    }
}

/// Two proposers, of which nothing is committed yet.
#[test]
fn each_proposer_has_a_row_of_numbers_of_its_own() {
    let mut group = remembering(64, &[1, 2, 3]);
    for (by, number, is_taken) in [
        (2, 1, true),
        (2, 2, true),
        (3, 2, false),
        (3, 1, true),
        (2, 3, true),
        (3, 2, true),
    ] {
        let taken = takes(&mut group, by, proposal(member(by), number, 1, 0));
        assert_eq!(taken, is_taken, "number {number} of {by}");
    }
}

/// A leader decides nothing that would not apply: an entry for each attempt would be too much.
#[test]
fn a_leader_appends_nothing_of_a_proposer_that_was_forgotten() {
    let mut group = remembering(1, &[1, 2, 3]);
    for id in [2, 3] {
        group.command(id, Command::Propose(1));
        group.wait(Span::secs(1));
    }
    let version = group.node(1).version();
    assert!(!takes(&mut group, 2, proposal(member(2), 2, 1, 0)));
    assert!(!takes(&mut group, 2, proposal(member(2), 2, 2, 0)));
    assert!(!takes(&mut group, 2, proposal(member(2), 1, 1, 0)));
    assert!(takes(&mut group, 2, proposal(member(2), 2, 2, version)));
}

/// A group that remembers one proposer. Node 2's second proposal is in flight when the leader's own
/// one is decided before it.
#[test]
fn a_proposer_that_is_forgotten_on_the_way_is_told_with_the_commit() {
    let mut group = remembering(1, &[1, 2, 3]);
    group.command(2, Command::Propose(21));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(11));
    let mut on_their_way = core::mem::take(&mut group.wire);
    // This one is lost on its way to the leader, and has the same number.
    group.command(2, Command::Relay(proposal(Member::new(78, 1), 2, 2, 0)));
    group.wire.clear();
    group.command(2, Command::Propose(22));
    group.round_without(&[]);
    on_their_way.append(&mut group.wire);
    group.wire = on_their_way;
    group.deliver();
    // The leader reports the commit with its next message.
    group.command(1, Command::Propose(12));
    group.deliver();
    let forgotten =
        |it: &Event<Journal>| matches!(it, Event::Forgotten { by, number: 2 } if *by == member(2));
    assert_eq!(group.notified(2, forgotten), 1);
    let any = |it: &Event<Journal>| matches!(it, Event::Forgotten { .. });
    assert_eq!((group.notified(1, any), group.notified(2, any)), (0, 1));
    assert_eq!(group.node(2).waiting(), 1, "the relayed one");
    group.command(2, Command::Propose(23));
    assert_eq!(sent(&mut group), [(3, 3)]);
}

/// All its proposals are lost, not the first one alone.
#[test]
fn all_proposals_of_a_proposer_that_is_forgotten_are_lost() {
    let mut group = remembering(1, &[1, 2, 3]);
    group.command(2, Command::Propose(21));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(11));
    let mut on_their_way = core::mem::take(&mut group.wire);
    for update in [22, 23] {
        group.command(2, Command::Propose(update));
    }
    group.round_without(&[]);
    on_their_way.append(&mut group.wire);
    group.wire = on_their_way;
    group.deliver();
    group.command(1, Command::Propose(12));
    group.deliver();
    assert_eq!(
        group.notified(2, |it| matches!(it, Event::Forgotten { .. })),
        2
    );
    assert_eq!(group.node(2).waiting(), 0);
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [21, 11, 12]);
}

/// A relayed proposer is forgotten; the member's own numbers go on.
#[test]
fn a_member_that_relays_for_one_that_is_forgotten_goes_on_with_its_own_numbers() {
    let mut group = remembering(1, &[1, 2, 3]);
    let client = Member::new(77, 1);
    group.command(2, Command::Relay(proposal(client, 1, 1, 0)));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(11));
    let mut on_their_way = core::mem::take(&mut group.wire);
    group.command(2, Command::Propose(21));
    assert_eq!(sent(&mut group), [(1, 1)], "it is lost");
    group.command(2, Command::Relay(proposal(client, 2, 1, 0)));
    group.round_without(&[]);
    on_their_way.append(&mut group.wire);
    group.wire = on_their_way;
    group.deliver();
    group.command(1, Command::Propose(12));
    group.deliver();
    let forgotten =
        |it: &Event<Journal>| matches!(it, Event::Forgotten { by, .. } if *by == client);
    assert_eq!(group.notified(2, forgotten), 1);
    group.command(2, Command::Propose(22));
    assert_eq!(sent(&mut group), [(2, 1)]);
}

/// Its numbers go on from the first one, which the group need not have applied.
#[test]
fn the_proposals_of_a_member_are_one_row() {
    let mut group = remembering(1, &[1, 2, 3]);
    group.command(2, Command::Propose(21));
    assert_eq!(sent(&mut group), [(1, 1)]);
    group.command(2, Command::Propose(22));
    assert_eq!(sent(&mut group), [(2, 1)]);
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [21, 22]);
    group.command(1, Command::Propose(11));
    group.wait(Span::secs(1));
    // It was forgotten, and begins again.
    group.command(2, Command::Propose(23));
    assert_eq!(sent(&mut group), [(3, 3)]);
    group.command(2, Command::Propose(24));
    assert_eq!(sent(&mut group), [(4, 3)]);
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [21, 22, 11, 23, 24]);
}

/// The second one is lost, and the group forgets the row meanwhile.
#[test]
fn a_row_that_was_begun_again_goes_on_when_the_former_one_is_said_to_be_forgotten() {
    let mut group = remembering(1, &[1, 2, 3]);
    group.command(2, Command::Propose(21));
    group.wait(Span::secs(1));
    group.command(2, Command::Propose(22));
    assert_eq!(sent(&mut group), [(2, 1)]);
    for update in [11, 12] {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    group.command(2, Command::Propose(23));
    assert_eq!(sent(&mut group), [(3, 3)]);
    group.pass(2, Span::millis(200));
    let forgotten = |it: &Event<Journal>| matches!(it, Event::Forgotten { number: 2, .. });
    assert_eq!(group.notified(2, forgotten), 1);
    group.command(2, Command::Propose(24));
    assert_eq!(sent(&mut group), [(4, 3)]);
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [21, 11, 12, 23, 24]);
}

/// A relayed proposer is found to be forgotten when its proposal has to be sent again.
#[test]
fn own_numbers_go_on_whatever_becomes_of_what_is_relayed() {
    let mut group = remembering(1, &[1, 2, 3]);
    let client = Member::new(77, 1);
    group.command(2, Command::Relay(proposal(client, 1, 1, 0)));
    group.wait(Span::secs(1));
    group.command(2, Command::Propose(21));
    group.command(2, Command::Relay(proposal(client, 2, 1, 0)));
    assert_eq!(sent(&mut group), [(1, 1), (2, 1)]);
    for update in [11, 12] {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    group.pass(2, Span::millis(200));
    let forgotten =
        |it: &Event<Journal>| matches!(it, Event::Forgotten { by, .. } if *by == client);
    assert_eq!(group.notified(2, forgotten), 1);
    group.command(2, Command::Propose(22));
    assert_eq!(sent(&mut group), [(2, 1)]);
}

/// The next configuration remembers fewer proposers than the present one.
#[test]
fn the_proposers_that_were_used_last_are_kept_where_there_is_less_room() {
    let mut group = Group::of(&[1, 2, 3]);
    let update = |by, number, since| Entry::Update(proposal(Member::new(by, 1), number, 1, since));
    let mut next = Configuration::of([1, 2, 3].map(member));
    next.number = 2;
    next.proposers = 3;
    let mut entries: Vec<Entry<u16>> = (71..=76).map(|by| update(by, 1, 0)).collect();
    entries.push(Entry::Configure(next.into()));
    // It makes room for itself as well.
    entries.push(update(77, 1, 7));
    entries.extend([74, 75, 76].map(|by| update(by, 2, 0)));
    let mut applied = Vec::new();
    for (after, entry) in (0..).zip(entries) {
        let before = group.state(3).len();
        let learn = Body::Learn {
            after,
            entries: [entry].into_iter().collect(),
        };
        group.say(3, member(2), learn);
        applied.push(group.state(3).len() - before);
    }
    assert_eq!(applied, [1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1]);
}
