//! Configurations, and members that restart.

use super::*;

#[test]
fn a_restart_with_storage_keeps_the_promise_and_the_state() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    for id in [1, 2, 3] {
        group.restart_with_storage(id, &first);
    }
    group.command(2, Command::Propose(8));
    group.wait(Span::secs(2));
    for id in [1, 2, 3] {
        assert_eq!(group.state(id), [7, 8], "node {id}");
        assert_eq!(group.node(id).voter(), member(id));
    }
    assert_eq!(group.node(1).configuration().number, 1);
}

#[test]
fn a_restart_without_memory_has_no_vote_until_it_is_named_again() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let me = Member::new(3, 2);
    let fresh = Replica::new(me, Config::new(), first, Journal::default()).unwrap();
    let at = group.at(3);
    group.nodes[at] = Driver::new(fresh);
    assert!(!group.node(3).votes());
    group.notify(1, Delta::Joined(me));
    group.notify(2, Delta::Joined(me));
    group.wait(Span::secs(2));
    assert!(group.node(3).votes());
    assert_eq!(group.node(3).configuration().number, 2);
    assert_eq!(group.state(3), [7]);
    assert_eq!(group.node(1).configuration().voters[2], Voter::new(me));
}

#[test]
fn members_may_all_be_new_and_the_former_ones_give_the_state_up() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4, 5, 6]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let next = Configuration::of([4, 5, 6].map(member));
    group.command(1, Command::Configure(next));
    group.wait(Span::secs(2));
    for id in [4, 5, 6] {
        assert_eq!(
            (group.state(id), group.leader(id)),
            (&[7][..], Some(4)),
            "node {id}"
        );
    }
    for id in [1, 2, 3] {
        assert_eq!(group.node(id).state(), None, "node {id}");
        let refused = group.step(id, Input::Command(Command::Propose(8)));
        assert_eq!(refused, Err(Reject::NoMember));
    }
    group.command(5, Command::Propose(8));
    group.wait(Span::secs(1));
    assert_eq!(group.state(6), [7, 8]);
}

/// The members of the next configuration are down: the former ones keep the state.
#[test]
fn the_former_members_keep_the_state_until_the_next_ones_have_it() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4, 5, 6]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let next = Configuration::of([4, 5, 6].map(member));
    group.command(1, Command::Configure(next));
    group.wait_without(Span::secs(3), &[4, 5, 6]);
    group.restart_with_storage(1, &first);
    group.wait(Span::secs(30));
    assert_eq!(group.state(4), [7]);
    assert_eq!(
        group.notified(1, |it| matches!(
            it,
            Event::Fact(selvedge_replica::Fact::Retired)
        )),
        1
    );
}

fn invited(sent: &[(u64, Body<u16>)]) -> Vec<u64> {
    let to = sent
        .iter()
        .filter(|it| matches!(it.1, Body::Current { .. }));
    to.map(|it| it.0).collect()
}

/// The members of the next configuration do not answer.
#[test]
fn the_next_members_are_told_less_and_less_often() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4, 5, 6]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let next = Configuration::of([4, 5, 6].map(member));
    group.command(1, Command::Configure(next.clone()));
    assert_eq!(
        group.step(1, Input::Command(Command::Configure(next))),
        Err(Reject::Changing)
    );
    let mut at_once = Vec::new();
    for (from, to, message) in core::mem::take(&mut group.wire) {
        assert_eq!(from, member(1));
        group
            .step(to.id.0, Input::Message { from, message })
            .unwrap();
    }
    for (from, to, message) in core::mem::take(&mut group.wire) {
        if to == member(1) {
            group.step(1, Input::Message { from, message }).unwrap();
        }
    }
    at_once.extend(invited(&group.taken()));
    assert_eq!(at_once, [4, 5, 6]);
    let mut waited = Vec::new();
    let mut since = 0;
    for _ in 0..400 {
        since += 1;
        let sent = invited(&group.pass(1, Span::millis(200)));
        if !sent.is_empty() {
            assert_eq!(sent, [4, 5, 6, 2, 3]);
            waited.push(since);
            since = 0;
        }
    }
    let doubles = (0..6).map(|nth| 1 << nth).chain(core::iter::repeat(64));
    assert_eq!(waited, doubles.take(waited.len()).collect::<Vec<_>>());
    assert!(waited.len() > 7);
}

/// A member of the present configuration has no node to announce it to.
#[test]
fn a_member_that_restarts_invites_nobody() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.restart_with_storage(3, &first);
    group.notify(3, Delta::Joined(member(2)));
    assert!(invited(&group.taken()).is_empty());
    assert!(invited(&group.pass(3, Span::secs(1))).is_empty());
}

/// Lives of two bytes, one after another, until the next configuration is too long.
#[test]
fn the_next_configuration_fits_into_a_frame_of_the_present_one() {
    let mut first = Configuration::of([member(1)]);
    first.frame_budget = 127;
    let mut refused = false;
    for long in 0..=24_u64 {
        let lives = |id: u64| Member::new(id, if id <= 1 + long { 200 } else { 1 });
        let mut next = Configuration::of([member(1)]);
        next.voters.extend((2..=22).map(|id| Voter::new(lives(id))));
        next.number = 2;
        let len = 1 + postcard::to_allocvec(&next).unwrap().len();
        let mut group = Group::new(&first, &[1]);
        group.command(1, Command::Propose(7));
        match group.step(1, Input::Command(Command::Configure(next))) {
            Ok(()) => assert!(!refused),
            Err(Reject::TooLong {
                len: reported,
                room,
            }) => {
                assert_eq!(reported, len);
                assert!(
                    refused || reported == room + 1,
                    "the first one that is refused"
                );
                refused = true;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused);
}

#[test]
fn a_node_that_is_no_member_any_more_says_what_it_does_not_answer() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(3, Command::Propose(8));
    group.command(3, Command::Read(5));
    group.wire.clear();
    let next = Configuration::of([1, 2].map(member));
    group.command(1, Command::Configure(next));
    group.wait(Span::secs(5));
    let abandoned = |it: &Event<Journal>| matches!(it, Event::Abandoned { number: 1, .. });
    assert_eq!(group.notified(3, abandoned), 1);
    assert_eq!(group.notified(3, |it| *it == Event::Unreadable(5)), 1);
    assert_eq!(group.node(3).waiting(), 0);
}

#[test]
fn what_was_stored_and_is_damaged_is_refused() {
    use selvedge_replica::{ConfigError, Stored};
    let first = Configuration::of([1, 2].map(member));
    let node = Replica::new(member(1), Config::new(), first.clone(), Journal::default());
    let stored: Stored<Journal> = node.unwrap().stored();
    assert_eq!(stored.voter(), member(1));
    let bytes = postcard::to_allocvec(&stored).unwrap();
    let damaged = |from: &Configuration, to: &Configuration| {
        let (from, to) = (postcard::to_allocvec(from), postcard::to_allocvec(to));
        let (from, to) = (from.unwrap(), to.unwrap());
        let at = bytes.windows(from.len()).position(|it| it == from).unwrap();
        let mut bytes = bytes.clone();
        bytes.splice(at..at + from.len(), to);
        let stored: Stored<Journal> = postcard::from_bytes(&bytes).unwrap();
        Replica::restore(Member::new(1, 2), Config::new(), stored).map(|it| it.voter())
    };
    assert_eq!(damaged(&first, &first), Ok(member(1)));
    let twice = Configuration::of([1, 1].map(member));
    let expected = Reject::Configuration(ConfigError::Twice(NodeId(1)));
    assert_eq!(damaged(&first, &twice), Err(expected));
    // A node that knew of no configuration stored that.
    let config = Config::new().with_window(3);
    let newcomer = Node::newcomer(member(9), config).unwrap().stored();
    let restored = Replica::restore(Member::new(9, 2), config, newcomer).unwrap();
    assert_eq!((restored.voter(), restored.config()), (member(9), &config));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let first = Configuration::of([1, 2].map(member));
    let config = Config::new().with_attempts(0);
    let refused = Replica::new(member(1), config, first, Journal::default());
    assert!(matches!(refused, Err(Reject::Config(_))));
    assert!(Node::newcomer(member(1), config).is_err());
    let reported = config.check().unwrap_err().to_string();
    assert_eq!(reported, "attempts is 0: set it to 1 or more, up to 255");
}

/// A stored memory with damage in one place at a time.
#[test]
fn each_part_of_what_was_stored_is_checked() {
    type Parts = (
        (Member, bool, u64),
        Ballot,
        Ballot,
        (u64, Configuration, (Vec<[u64; 5]>, u64), Option<Journal>),
        Vec<Entry<u16>>,
    );
    let first = Configuration::of([1, 2].map(member));
    let low = ballot(1, 1);
    let state = || Some(Journal::default());
    let sound = || -> Parts {
        let snapshot = (3, first.clone(), (vec![], 0), state());
        ((member(1), false, 0), low, low, snapshot, vec![])
    };
    let restored = |parts: Parts| {
        let bytes = postcard::to_allocvec(&parts).unwrap();
        let stored = postcard::from_bytes::<selvedge_replica::Stored<Journal>>(&bytes).unwrap();
        Replica::restore(Member::new(1, 2), Config::new(), stored).is_ok()
    };
    assert!(restored(sound()));
    type Damage<'a> = &'a dyn Fn(&mut Parts);
    let damages: [(&str, Damage<'_>); 8] = [
        ("mark", &|it| it.0.2 = 1 << 28),
        ("a configuration up to the mark", &|it| it.0.2 = 1),
        ("promised", &|it| it.1.number = 1 << 35),
        ("accepted above promised", &|it| it.2.number = 2),
        ("accepted", &|it| (it.1.number, it.2.number) = (1, 1 << 35)),
        ("version", &|it| it.3.0 = 1 << 49),
        ("sessions", &|it| {
            it.3.2.0 = vec![[9, 1, 1, 1, 1], [7, 1, 1, 1, 2]];
        }),
        ("a session twice", &|it| {
            it.3.2.0 = vec![[9, 1, 1, 1, 1], [9, 1, 1, 1, 2]];
        }),
    ];
    for (what, damage) in damages {
        let mut parts = sound();
        damage(&mut parts);
        assert!(!restored(parts), "{what}");
    }
}
