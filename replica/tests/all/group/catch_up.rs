//! Members that lack entries or the state.

use selvedge_replica::{SnapshotId, Wants};

use super::*;

#[test]
fn a_state_travels_in_pages_of_127_bytes_while_updates_go_on() {
    let mut first = Configuration::of([1, 2].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    for update in 0..400 {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    let mut next = first.clone();
    next.voters.push(Voter::new(member(3)));
    group.command(1, Command::Configure(next));
    for update in 400..600 {
        group
            .step(1, Input::Command(Command::Propose(update)))
            .unwrap();
        group.wait(Span::millis(20));
    }
    group.wait(Span::secs(5));
    assert_eq!(group.notified(3, |it| matches!(it, Event::Installed(_))), 1);
    assert_eq!(group.state(3).len(), 600);
    assert_eq!(group.state(3), group.state(1));
}

/// The member that is asked no longer has committed entries in its window.
#[test]
fn a_member_that_was_away_for_long_gets_the_state_whole_and_one_for_short_the_entries() {
    for (updates, installed) in [(10, 0), (300, 1)] {
        let mut group = Group::of(&[1, 2, 3]);
        for update in 0..updates {
            group.command(1, Command::Propose(update));
            group.deliver_without(&[3]);
        }
        group.wait(Span::secs(2));
        assert_eq!(group.state(3).len(), usize::from(updates));
        assert_eq!(
            group.notified(3, |it| matches!(it, Event::Installed(_))),
            installed
        );
    }
}

#[test]
fn a_member_that_lacks_nothing_hears_from_the_leader() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let missing = |committed| Body::Missing {
        committed,
        wants: Wants::Entries,
    };
    let reported = group.say(1, member(3), missing(1));
    assert!(
        matches!(reported[..], [(3, Body::Accept { .. })]),
        "{reported:?}"
    );
    assert_eq!(group.say(2, member(3), missing(1)), []);
    assert_eq!(group.say(1, member(3), missing(2)), [], "it has more");
}

/// A group of two with the smallest frames, in which node 1 has committed 13 updates. The first 12
/// fit into a frame to the byte.
fn updates_in_small_frames(ids: &[u64]) -> Group {
    let mut first = Configuration::of(ids.iter().map(|&id| member(id)));
    first.frame_budget = 127;
    let mut group = Group::new(&first, ids);
    for update in 1..=13 {
        let update = if update == 12 { 200 } else { update };
        group.command(1, Command::Propose(update));
        group.deliver_without(&[3]);
    }
    group
}

#[test]
fn committed_entries_travel_as_many_as_fit_into_a_frame() {
    let mut group = updates_in_small_frames(&[1, 2, 3]);
    let missing = Body::Missing {
        committed: 0,
        wants: Wants::Entries,
    };
    let reported = group.say(1, member(3), missing);
    let [(3, Body::Learn { after: 0, entries })] = &reported[..] else {
        panic!("{reported:?}");
    };
    assert_eq!(entries.len(), 12);
}

/// The messages that a leader sends again.
#[test]
fn entries_are_sent_again_as_many_as_fit_into_a_frame() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    for update in 1..=13 {
        let update = if update == 12 { 200 } else { update };
        group.command(1, Command::Propose(update));
        group.deliver_without(&[3]);
    }
    let sent = group.pass(1, Span::millis(300));
    let mut to_3 = sent.iter().filter_map(|(to, body)| match body {
        Body::Accept { after, entries, .. } if *to == 3 => Some((*after, entries.len())),
        _ => None,
    });
    assert_eq!(to_3.next_back(), Some((0, 12)));
    group.wait(Span::secs(1));
    assert_eq!(group.state(3).len(), 13);
}

/// A group of two that keeps no entries, and the messages of node 1 to a node that wants its state.
fn pages() -> (Group, Vec<(u32, Vec<u8>)>, u32) {
    let mut first = Configuration::of([1, 2].map(member));
    first.frame_budget = 127;
    let mut group = Group::set(&first, &[1, 2, 3, 4], Config::new().with_window(0));
    for update in 200..300 {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    group.wait(Span::secs(1));
    let mut pages: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut ask = Body::Missing {
        committed: 0,
        wants: Wants::State,
    };
    loop {
        let reported = group.say(1, member(3), ask);
        let [(3, body)] = &reported[..] else {
            panic!("{reported:?}");
        };
        let message = Message {
            configuration: 1,
            body: body.clone(),
        };
        assert!(message.frame_len(member(1)) <= 127);
        let Body::Page {
            snapshot,
            offset,
            bytes,
        } = body
        else {
            panic!("{body:?}");
        };
        pages.push((*offset, bytes.iter().copied().collect()));
        let held = offset + bytes.len() as u32;
        assert_eq!(*snapshot, whole(100, snapshot.total));
        if held == snapshot.total {
            return (group, pages, held);
        }
        ask = fetch(100, held, snapshot.total);
    }
}

fn whole(version: u64, total: u32) -> SnapshotId {
    SnapshotId {
        version,
        is_bare: false,
        total,
    }
}

fn fetch(version: u64, offset: u32, total: u32) -> Body<u16> {
    let snapshot = whole(version, total);
    Body::Fetch { snapshot, offset }
}

fn page(version: u64, offset: u32, total: u32, bytes: &[u8]) -> Body<u16> {
    Body::Page {
        snapshot: whole(version, total),
        offset,
        bytes: bytes.iter().copied().collect(),
    }
}

#[test]
fn a_state_arrives_page_by_page_from_one_member() {
    let (mut group, pages, total) = pages();
    assert!(pages.len() > 2);
    let of = |nth: usize| page(100, pages[nth].0, total, &pages[nth].1);
    let next = |to: u64, nth: usize| {
        let offset = pages[nth].0;
        vec![(to, fetch(100, offset, total))]
    };
    let stale = |group: &Group| group.node(3).counters().stale;
    // The second one, while the first has not come.
    assert_eq!(group.say(3, member(1), of(1)), []);
    assert_eq!(stale(&group), 1);
    assert_eq!(group.say(3, member(1), of(0)), next(1, 1));
    let second = &pages[1].1;
    for (nth, (from, body)) in [
        (2, of(1)),
        (1, of(2)),
        (1, page(101, pages[1].0, total, second)),
        (1, page(100, pages[1].0, total + 1, second)),
        (1, page(100, pages[1].0, total, &[])),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(group.say(3, member(from), body), []);
        assert_eq!(stale(&group), nth as u64 + 2);
    }
    // It is lost 5 times, and then another member is asked.
    for _ in 0..5 {
        assert_eq!(group.pass(3, Span::millis(200)), next(1, 1));
    }
    assert_eq!(group.pass(3, Span::millis(200)), []);
    assert_eq!(group.pass(3, Span::secs(9)), []);
    assert_eq!(group.say(3, member(1), of(1)), []);
    for nth in 0..pages.len() - 1 {
        assert_eq!(group.say(3, member(2), of(nth)), next(2, nth + 1));
    }
    assert_eq!(group.notified(3, |it| matches!(it, Event::Installed(_))), 0);
    group.say(3, member(2), of(pages.len() - 1));
    assert_eq!(group.notified(3, |it| *it == Event::Installed(100)), 1);
    assert_eq!(group.node(3).counters().installed, 1);
    assert_eq!(group.node(3).configuration().number, 1);
    // It has it.
    let before = stale(&group);
    assert_eq!(group.say(3, member(2), of(0)), []);
    assert_eq!(stale(&group), before + 1);
}

#[test]
fn a_state_that_is_damaged_or_too_long_is_not_taken() {
    let (mut group, pages, total) = pages();
    let state: Vec<u8> = pages.iter().flat_map(|it| it.1.clone()).collect();
    assert_eq!(state.len(), total as usize);
    // Version, number of the configuration, count of voters, their ids, lives and parts.
    assert_eq!(state[..6], [100, 1, 2, 1, 1, 0]);
    let with = |at: usize, byte| {
        let mut state = state.clone();
        state[at] = byte;
        state
    };
    for damaged in [with(0, 101), with(1, 0), with(3, 2), vec![255; 9]] {
        let whole = page(100, 0, damaged.len() as u32, &damaged);
        let refused = group.judged(3, member(1), 1, whole);
        let expected = Err(Reject::Misbehaviour(Misbehaviour::State));
        assert_eq!(refused, expected, "{damaged:?}");
    }
    let whole = page(100, 0, total, &state);
    for (limit, installed) in [(total - 1, 0), (total, 1)] {
        let config = Config::new().with_state_limit(limit);
        let at = group.at(4);
        group.nodes[at] = Driver::new(Replica::newcomer(member(4), config).unwrap());
        group.say(4, member(1), whole.clone());
        assert_eq!(
            group.notified(4, |it| matches!(it, Event::Installed(_))),
            installed
        );
        assert_eq!(group.node(4).counters().too_long, 1 - installed as u64);
    }
    // Of a configuration that has ended.
    let mut second = Configuration::of([1, 2, 4].map(member));
    second.number = 2;
    let later = Replica::new(member(4), Config::new(), second, Journal::default());
    let at = group.at(4);
    group.nodes[at] = Driver::new(later.unwrap());
    group.say(4, member(1), whole);
    assert_eq!(group.node(4).version(), 0);
    assert_eq!(group.node(4).counters().stale, 1);
}

#[test]
fn a_proposal_that_the_received_state_holds_is_overtaken() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::set(&first, &[1, 2, 3], Config::new().with_window(0));
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(3, Command::Propose(8));
    let (from, _, message) = group.wire.remove(0);
    group.step(1, Input::Message { from, message }).unwrap();
    group.deliver_without(&[3]);
    group.command(3, Command::Propose(9));
    group.wire.clear();
    group.wait(Span::secs(3));
    assert_eq!(group.state(3), [7, 8, 9]);
    group.command(3, Command::Propose(10));
    let sent = group.taken();
    let [(1, Body::Propose { proposals })] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!((proposals[0].number, proposals[0].first), (3, 1), "one row");
    let overtaken = |nth| move |it: &Event<Journal>| matches!(it, Event::Overtaken { number, .. } if *number == nth);
    assert_eq!(
        (
            group.notified(3, overtaken(1)),
            group.notified(3, overtaken(2))
        ),
        (1, 0)
    );
    assert_eq!(group.node(3).waiting(), 1);
}

/// A state behind which an update is committed while its first page is in flight.
#[test]
fn a_state_stays_as_it_is_while_it_is_fetched() {
    let mut first = Configuration::of([1, 2].map(member));
    first.frame_budget = 127;
    let missing = |committed| Body::Missing {
        committed,
        wants: Wants::State,
    };
    let version = |reported: &[(u64, Body<u16>)]| match reported {
        [(_, Body::Page { snapshot, .. })] => snapshot.version,
        other => panic!("{other:?}"),
    };
    // A node that has all that the state has, but the state itself, is served as well.
    for committed in [0, 50, 100] {
        let mut group = Group::new(&first, &[1, 2]);
        for update in 200..300 {
            group.command(1, Command::Propose(update));
            group.deliver();
        }
        assert_eq!(version(&group.say(1, member(3), missing(0))), 100);
        group.command(1, Command::Propose(7));
        group.deliver();
        assert_eq!(group.node(1).version(), 101);
        assert_eq!(version(&group.say(1, member(4), missing(committed))), 100);
    }
}

/// Its sender no longer has the state that was begun.
#[test]
fn a_later_state_replaces_the_one_that_is_fetched() {
    let (mut group, pages, total) = pages();
    group.say(3, member(1), page(100, 0, total, &pages[0].1));
    let mut later: Vec<u8> = pages.iter().flat_map(|it| it.1.clone()).collect();
    later[0] = 101;
    group.say(3, member(1), page(101, 0, total, &later));
    assert_eq!(group.notified(3, |it| *it == Event::Installed(101)), 1);
}

#[test]
fn a_member_that_holds_a_state_takes_none_without_one() {
    let (mut group, _, _) = pages();
    let bare = Body::Missing {
        committed: 0,
        wants: Wants::Bare,
    };
    let reported = group.say(1, member(3), bare);
    let [(3, whole)] = &reported[..] else {
        panic!("{reported:?}");
    };
    let first = Configuration::of([1, 2, 4].map(member));
    let at = group.at(4);
    let node = Replica::new(member(4), Config::new(), first, Journal::default());
    group.nodes[at] = Driver::new(node.unwrap());
    for stale in 1..=2 {
        assert_eq!(group.say(4, member(1), whole.clone()), []);
        assert_eq!(group.node(4).counters().stale, stale);
        assert_eq!(group.node(4).version(), 0);
    }
}

/// The reported commit is beyond the entries that it was sent.
#[test]
fn a_member_asks_for_what_is_committed_and_was_not_sent() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let ballot = group.node(1).leader().unwrap().1;
    let accept = |commit| Body::Accept {
        ballot,
        after: 1,
        commit,
        round: 1,
        entries: [].into_iter().collect(),
    };
    for commit in [0, 1] {
        let reported = group.say(3, member(1), accept(commit));
        assert!(
            matches!(reported[..], [(1, Body::Accepted { .. })]),
            "{reported:?}"
        );
    }
    let reported = group.say(3, member(1), accept(2));
    let [
        (1, Body::Accepted { .. }),
        (1, Body::Missing { committed: 1, .. }),
    ] = reported[..]
    else {
        panic!("{reported:?}");
    };
}

/// A member that began a new life without its memory holds the first state.
#[test]
fn a_member_without_a_vote_asks_for_what_is_committed_and_to_be_named() {
    let mut group = Group::of(&[1, 2, 3]);
    let me = Member::new(3, 2);
    let first = Configuration::of([1, 2, 3].map(member));
    let at = group.at(3);
    let node = Replica::new(me, Config::new(), first, Journal::default());
    group.nodes[at] = Driver::new(node.unwrap());
    let accept = |commit| Body::Accept {
        ballot: ballot(1, 1),
        after: 0,
        commit,
        round: 1,
        entries: [].into_iter().collect(),
    };
    let reported = group.say(3, member(1), accept(0));
    assert!(
        matches!(reported[..], [(1, Body::Rejoin { .. })]),
        "{reported:?}"
    );
    let reported = group.say(3, member(1), accept(1));
    let [
        (1, Body::Missing { committed: 0, .. }),
        (1, Body::Rejoin { .. }),
    ] = reported[..]
    else {
        panic!("{reported:?}");
    };
}

/// It fetches the state from 2, as of the change that makes it a witness, and learns of that change
/// from 1.
#[test]
fn a_member_that_becomes_a_witness_while_it_fetches_gets_no_page_of_another_state() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 200;
    let mut group = Group::new(&first, &[1, 2, 3]);
    for (at, window) in [256, 0, 256].into_iter().enumerate() {
        let (me, config) = (member(at as u64 + 1), Config::new().with_window(window));
        let long = Journal(vec![7; 500]);
        group.nodes[at] = Driver::new(Replica::new(me, config, first.clone(), long).unwrap());
    }
    group.command(1, Command::Propose(8));
    group.deliver_without(&[3]);
    let mut next = first.clone();
    next.voters[2].is_witness = true;
    group.command(1, Command::Configure(next));
    group.wait_without(Span::secs(1), &[3]);
    let missing = |wants| Body::Missing {
        committed: 0,
        wants,
    };
    let first_page = group.say(2, member(3), missing(Wants::Entries));
    let [(3, page @ Body::Page { .. })] = &first_page[..] else {
        panic!("{first_page:?}");
    };
    group.judged(3, member(2), 2, page.clone()).unwrap();
    group.wire.clear();
    // All entries of node 1, as often as node 3 asks for more.
    group
        .judged(1, member(3), 1, missing(Wants::Entries))
        .unwrap();
    group.deliver_without(&[2]);
    assert_eq!(group.node(3).configuration().number, 2);
    // Its next question, the answer, and so on: `step` fails if a peer is reported to misbehave.
    group.wait(Span::secs(3));
    assert_eq!(group.node(3).state(), None);
    assert_eq!(group.node(3).version(), group.node(1).version());
    assert!(group.node(3).votes());
}

/// The leader has as many entries in flight as fit into a frame, and others wait for room.
#[test]
fn a_leader_that_learns_from_others_what_is_committed_sends_what_waits() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(0));
    group.deliver();
    for update in 1..=64 {
        group.command(1, Command::Propose(update));
    }
    let is_accept =
        |body: &Body<u16>| matches!(body, Body::Accept { entries, .. } if !entries.is_empty());
    let entries: Vec<Entry<u16>> = (group.taken().into_iter())
        .filter_map(|(to, body)| match body {
            Body::Accept { entries, .. } if to == 2 => Some(entries.into_iter()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!((1..64).contains(&entries.len()), "{}", entries.len());
    let entries = entries.into_iter().take(5).collect();
    let reported = group.say(1, member(2), Body::Learn { after: 1, entries });
    assert!(group.node(1).leads());
    assert_eq!(group.node(1).version(), 6);
    assert!(
        reported.iter().any(|(_, body)| is_accept(body)),
        "{reported:?}"
    );
}
