//! Messages that a correct peer never sends.

use selvedge_replica::SnapshotId;

use super::*;

/// A stranger's answer must not count, nor one under the id of the node itself.
#[test]
fn liars_are_counted_or_refused() {
    let mut group = Group::of(&[1, 2, 3]);
    let stand = Body::Stand {
        ballot: selvedge_core::Stamp {
            number: 4,
            by: NodeId(3),
        },
    };
    let message = Message {
        configuration: 1,
        body: stand,
    };
    let from = member(2);
    let refused = group.step(
        1,
        Input::Message {
            from,
            message: message.clone(),
        },
    );
    assert!(matches!(refused, Err(Reject::Misbehaviour(_))));
    let from = Member::new(1, 9);
    let refused = group.step(1, Input::Message { from, message });
    assert!(matches!(refused, Err(Reject::Misbehaviour(_))));
}

const NUMBER_MAX: u64 = (1 << 28) - 1;
const BALLOT_MAX: u64 = (1 << 35) - 1;
const VERSION_MAX: u64 = (1 << 49) - 1;

fn prepare(ballot: Ballot) -> Body<u16> {
    Body::Prepare {
        ballot,
        committed: 0,
        accepted: Ballot::default(),
        end: 0,
        handed_over: Ballot::default(),
    }
}

fn promise(ballot: Ballot, committed: u64, end: u64, tail: &[Entry<u16>]) -> Body<u16> {
    Body::Promise {
        ballot,
        committed,
        accepted: Ballot::default(),
        end,
        tail: tail.iter().cloned().collect(),
    }
}

fn accept(ballot: Ballot, after: u64, commit: u64, entries: &[Entry<u16>]) -> Body<u16> {
    Body::Accept {
        ballot,
        after,
        commit,
        round: 1,
        entries: entries.iter().cloned().collect(),
    }
}

/// Messages of node 2, each with this number in one of its ballots.
fn with_ballot(number: u64) -> Vec<Body<u16>> {
    let (high, low) = (ballot(number, 2), ballot(0, 2));
    let mut of_accepted = promise(low, 0, 0, &[]);
    if let Body::Promise { accepted, .. } = &mut of_accepted {
        *accepted = high;
    }
    let asks = |accepted, handed_over| Body::Prepare {
        ballot: low,
        committed: 0,
        accepted,
        end: 0,
        handed_over,
    };
    let refuses = |ballot, promised, leader| Body::Refuse {
        ballot,
        promised,
        leader,
    };
    vec![
        prepare(high),
        asks(high, low),
        asks(low, high),
        promise(high, 0, 0, &[]),
        of_accepted,
        refuses(high, low, low),
        refuses(low, high, low),
        refuses(low, low, high),
        accept(high, 0, 0, &[]),
        Body::Accepted {
            ballot: high,
            end: 0,
            committed: 0,
            round: 0,
        },
        Body::Stand { ballot: high },
    ]
}

/// Messages of node 2, each with this number as one of its versions.
fn with_version(version: u64) -> Vec<Body<u16>> {
    let low = ballot(0, 2);
    let asks = |committed, end| Body::Prepare {
        ballot: low,
        committed,
        accepted: low,
        end,
        handed_over: low,
    };
    let holds = |end, committed| Body::Accepted {
        ballot: low,
        end,
        committed,
        round: 0,
    };
    vec![
        asks(version, 0),
        asks(0, version),
        promise(low, version, 0, &[]),
        promise(low, 0, version, &[]),
        accept(low, version, 0, &[]),
        accept(low, 0, version, &[]),
        holds(version, 0),
        holds(0, version),
        Body::Missing {
            committed: version,
            wants: selvedge_replica::Wants::Entries,
        },
        Body::Learn {
            after: version,
            entries: [].into_iter().collect(),
        },
        Body::Fetch {
            snapshot: SnapshotId {
                version,
                is_bare: false,
                total: 2,
            },
            offset: 0,
        },
        Body::Page {
            snapshot: SnapshotId {
                version,
                is_bare: false,
                total: 2,
            },
            offset: 0,
            bytes: [1].into_iter().collect(),
        },
        Body::ReadAt {
            life: 1,
            number: 0,
            version,
        },
    ]
}

/// The result of a message of node 2 at a fresh node 1.
fn verdict(configuration: u64, body: Body<u16>) -> Option<Misbehaviour> {
    let mut group = Group::of(&[1, 2, 3]);
    match group.judged(1, member(2), configuration, body) {
        Ok(()) => None,
        Err(Reject::Misbehaviour(it)) => Some(it),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn numbers_beyond_what_a_group_comes_to_are_refused() {
    for (bodies, is_over) in [
        (with_ballot(BALLOT_MAX), false),
        (with_ballot(BALLOT_MAX + 1), true),
        (with_version(VERSION_MAX), false),
        (with_version(VERSION_MAX + 1), true),
    ] {
        for body in bodies {
            let expected = is_over.then_some(Misbehaviour::Number);
            assert_eq!(verdict(1, body.clone()), expected, "{body:?}");
        }
    }
    assert_eq!(verdict(NUMBER_MAX, Body::Rejoin { life: 1 }), None);
    assert_eq!(
        verdict(NUMBER_MAX + 1, Body::Rejoin { life: 1 }),
        Some(Misbehaviour::Number)
    );
}

#[test]
fn a_ballot_belongs_to_its_sender() {
    let other = ballot(4, 3);
    for body in [
        prepare(other),
        accept(other, 0, 0, &[]),
        Body::Stand { ballot: other },
    ] {
        assert_eq!(verdict(1, body), Some(Misbehaviour::Ballot(NodeId(3))));
    }
}

#[test]
fn entries_follow_each_other() {
    let update = || {
        Entry::Update(Proposal {
            by: member(2),
            number: 1,
            first: 1,
            since: 0,
            update: 4,
        })
    };
    let configure = |number, ids: &[u64]| {
        let mut next = Configuration::of(ids.iter().map(|&id| member(id)));
        next.number = number;
        Entry::Configure(next.into())
    };
    let of = |entries: &[Entry<u16>]| verdict(1, accept(ballot(4, 2), 0, 0, entries));
    assert_eq!(of(&[update(), update()]), None);
    assert_eq!(of(&[update(), configure(2, &[1, 2])]), None);
    let entries = Some(Misbehaviour::Entries);
    let configuration = Some(Misbehaviour::Configuration);
    assert_eq!(of(&[configure(2, &[1, 2]), update()]), entries);
    assert_eq!(of(&[Entry::Elided]), entries, "this member is no witness");
    assert_eq!(of(&[configure(3, &[1, 2])]), configuration);
    assert_eq!(of(&[configure(2, &[1, 1])]), configuration);
    let of = |end, tail: &[Entry<u16>]| verdict(1, promise(ballot(4, 1), 3, end, tail));
    assert_eq!(of(5, &[update(), update()]), None);
    assert_eq!(of(5, &[update()]), entries);
    assert_eq!(of(4, &[Entry::Elided]), entries);
    assert_eq!(of(5, &[]), None, "a witness sends none");
}

#[test]
fn configurations_and_pages_are_what_they_say() {
    let current = |number, ids: &[u64]| {
        let mut configuration = Configuration::of(ids.iter().map(|&id| member(id)));
        configuration.number = number;
        Body::Current {
            configuration: configuration.into(),
            is_active: false,
        }
    };
    let refused = Some(Misbehaviour::Configuration);
    assert_eq!(verdict(1, current(1, &[1, 2, 3])), None);
    assert_eq!(verdict(1, current(2, &[1, 2, 3])), refused);
    assert_eq!(verdict(1, current(1, &[1, 1])), refused);
    let page = |offset, total| Body::Page {
        snapshot: SnapshotId {
            version: 9,
            is_bare: false,
            total,
        },
        offset,
        bytes: [1, 2].into_iter().collect(),
    };
    let refused = Some(Misbehaviour::State);
    assert_eq!(verdict(1, page(0, 3)), None);
    assert_eq!(verdict(1, page(5, 7)), None, "it is late");
    assert_eq!(verdict(1, page(5, 6)), refused);
    assert_eq!(verdict(1, page(u32::MAX, u32::MAX)), refused);
}

#[test]
fn the_end_of_the_own_life_is_refused_and_that_of_a_former_one_is_not() {
    let mut group = Group::of(&[1, 2, 3]);
    let ended = group.step(1, Input::Membership(Delta::Left(member(1))));
    assert!(matches!(ended, Err(Reject::OwnEnd(_))));
    let ended = group.step(1, Input::Membership(Delta::Confirmed(member(1))));
    assert!(matches!(ended, Err(Reject::OwnEnd(_))));
    group.notify(1, Delta::Left(Member::new(1, 0)));
    group.notify(1, Delta::Failed(member(1)));
    group.notify(1, Delta::Suspected(member(1)));
}

/// Answers without a question, or from nodes that are not members.
#[test]
fn answers_that_are_not_awaited_are_counted() {
    let mut group = Group::of(&[1, 2, 3]);
    let of_another = ballot(7, 1);
    for (nth, body) in [
        promise(of_another, 0, 0, &[]),
        Body::Accepted {
            ballot: of_another,
            end: 0,
            committed: 0,
            round: 0,
        },
        Body::Stand {
            ballot: ballot(7, 2),
        },
        Body::ReadAt {
            life: 9,
            number: 1,
            version: 0,
        },
        Body::Refuse {
            ballot: of_another,
            promised: of_another,
            leader: Ballot::default(),
        },
        Body::Learn {
            after: 1,
            entries: [].into_iter().collect(),
        },
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(group.say(1, member(2), body), []);
        assert_eq!(group.node(1).counters().stale, nth as u64 + 1);
    }
    // A candidate.
    group.command(1, Command::Campaign);
    let number = 7 + 1;
    for (from, of) in [(9, ballot(number, 1)), (2, of_another)] {
        let before = group.node(1).counters().stale;
        assert_eq!(group.say(1, member(from), promise(of, 0, 0, &[])), []);
        assert_eq!(group.node(1).counters().stale, before + 1);
    }
    // A leader.
    let led = group.say(1, member(2), promise(ballot(number, 1), 0, 0, &[]));
    assert!(group.node(1).leads(), "{led:?}");
    for (from, of, end, round) in [
        (9, number, 0, 1),
        (2, 7, 0, 1),
        (2, number, 1, 1),
        (2, number, 0, 2),
    ] {
        let before = group.node(1).counters().stale;
        let accepted = Body::Accepted {
            ballot: ballot(of, 1),
            end,
            committed: 0,
            round,
        };
        assert_eq!(group.say(1, member(from), accepted), []);
        assert_eq!(group.node(1).counters().stale, before + 1);
    }
    // A life that has ended.
    let before = group.node(1).counters().stale;
    assert_eq!(
        group.say(1, Member::new(2, 0), Body::Rejoin { life: 1 }),
        []
    );
    assert_eq!(group.node(1).counters().stale, before + 1);
}

/// A timer that is not wanted now.
#[test]
fn a_stray_tick_changes_nothing() {
    let timers = [
        Timer::Resend,
        Timer::Commit,
        Timer::Campaign,
        Timer::Pending,
        Timer::Watch,
        Timer::Fetch,
        Timer::Lease,
        Timer::Tied,
        Timer::Invite,
    ];
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(2));
    for id in [1, 2] {
        for timer in timers {
            let before = group.node(id).clone();
            group.events.clear();
            group.step(id, Input::Tick(timer)).unwrap();
            assert_eq!(group.node(id), &before, "{timer:?} at node {id}");
            assert_eq!((group.taken(), group.events.len()), (vec![], 0));
        }
    }
    let mut fresh = Group::of(&[1, 2, 3]);
    for timer in timers.into_iter().filter(|&it| it != Timer::Campaign) {
        let before = fresh.node(2).clone();
        fresh.step(2, Input::Tick(timer)).unwrap();
        assert_eq!(fresh.node(2), &before, "{timer:?} at a fresh node");
        assert_eq!(fresh.taken(), []);
    }
}

/// Learned entries are checked where they are applied.
#[test]
fn what_is_learned_follows_what_is_committed() {
    let update = || {
        Entry::Update(Proposal {
            by: member(2),
            number: 1,
            first: 1,
            since: 0,
            update: 4,
        })
    };
    let learn = |entry: Entry<u16>| Body::Learn {
        after: 0,
        entries: [entry].into_iter().collect(),
    };
    let configure = |number| {
        let mut next = Configuration::of([1, 2].map(member));
        next.number = number;
        Entry::Configure(next.into())
    };
    let lies = [
        (Entry::Elided, Misbehaviour::Entries),
        (configure(1), Misbehaviour::Configuration),
        (configure(3), Misbehaviour::Configuration),
    ];
    let mut group = Group::of(&[1, 2, 3]);
    for (entry, lie) in lies.clone() {
        let refused = group.judged(1, member(2), 1, learn(entry));
        assert_eq!(refused, Err(Reject::Misbehaviour(lie)));
    }
    group.say(1, member(2), learn(update()));
    assert_eq!(group.state(1), [4]);
    // It may be of another configuration, and is not applied.
    for (entry, _) in lies {
        assert_eq!(group.say(1, member(2), learn(entry)), []);
    }
    assert_eq!(group.node(1).version(), 1);
}

/// Lives of two bytes, one after another, until the next configuration is too long.
#[test]
fn what_is_learned_fits_into_a_frame() {
    let mut first = Configuration::of([member(1)]);
    first.frame_budget = 127;
    let mut counts = (0, 0);
    for long in 0..=24_u64 {
        let lives = |id: u64| Member::new(id, if id <= 1 + long { 200 } else { 1 });
        let mut next = Configuration::of([member(1)]);
        next.voters.extend((2..=22).map(|id| Voter::new(lives(id))));
        next.number = 2;
        let learn = Body::Learn {
            after: 0,
            entries: [Entry::Configure(next.clone().into())]
                .into_iter()
                .collect(),
        };
        let mut group = Group::new(&first, &[1]);
        let learned = group.judged(1, member(2), 1, learn);
        // A leader decides what its members can learn.
        let mut group = Group::new(&first, &[1]);
        group.command(1, Command::Campaign);
        let decided = group.step(1, Input::Command(Command::Configure(next)));
        match decided {
            Ok(()) => {
                assert_eq!(learned, Ok(()));
                counts.0 += 1;
            }
            Err(_) => {
                let lie = Reject::Misbehaviour(Misbehaviour::Entries);
                assert_eq!(learned, Err(lie));
                counts.1 += 1;
            }
        }
    }
    assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
}

/// 40 entries where 12 fit: the entries that a member keeps fit into a frame all the same.
#[test]
fn a_member_accepts_no_more_than_fits_into_a_frame() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    let entries: Vec<Entry<u16>> = (1..=40)
        .map(|number| {
            Entry::Update(Proposal {
                by: member(2),
                number,
                first: 1,
                since: 0,
                update: 4,
            })
        })
        .collect();
    let reported = group.say(1, member(2), accept(ballot(4, 2), 0, 0, &entries));
    let [(2, Body::Accepted { end: 1..40, .. })] = reported[..] else {
        panic!("{reported:?}");
    };
    group.notify(1, Delta::Failed(member(2)));
    group.taken();
    let reported = group.say(
        1,
        member(3),
        Body::Prepare {
            ballot: ballot(9, 3),
            committed: 0,
            accepted: Ballot::default(),
            end: 0,
            handed_over: Ballot::default(),
        },
    );
    let (_, body) = reported.into_iter().next().unwrap();
    let configuration = 1;
    let message = Message {
        configuration,
        body,
    };
    assert!(matches!(message.body, Body::Promise { .. }));
    assert!(message.frame_len(member(1)) <= 127, "{message:?}");
}

/// A liar has used the ballots up, or all but one.
#[test]
fn a_member_stands_with_no_ballot_that_others_refuse() {
    for (number, stands) in [(BALLOT_MAX - 1, true), (BALLOT_MAX, false)] {
        let mut group = Group::of(&[1, 2, 3]);
        let reported = group.say(2, member(3), prepare(ballot(number, 3)));
        assert!(
            matches!(reported[..], [(3, Body::Promise { .. })]),
            "{reported:?}"
        );
        group.command(2, Command::Campaign);
        assert_eq!(!group.taken().is_empty(), stands);
        assert_eq!(group.node(2).counters().elections, u64::from(stands));
    }
}

/// A member began again without its memory, and the answer to its former life arrives.
#[test]
fn entries_that_begin_behind_what_a_member_knows_accuse_nobody() {
    let mut group = Group::of(&[1, 2, 3]);
    let mut later = Configuration::of([1, 2, 3].map(member));
    later.number = 4;
    let learn = Body::Learn {
        after: 11,
        entries: [Entry::Configure(later.into())].into_iter().collect(),
    };
    assert_eq!(group.judged(2, member(1), 4, learn), Ok(()));
    assert_eq!(group.node(2).counters().stale, 1);
}

/// A host names a peer by its life in the configuration, and not by its present one.
#[test]
fn a_failure_of_a_former_life_is_counted_and_changes_nothing() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.notify(2, Delta::Joined(Member::new(1, 2)));
    let before = group.node(2).clone();
    group.notify(2, Delta::Failed(member(1)));
    assert_eq!(group.node(2).counters().old_lives, 1);
    assert_eq!(*group.node(2), before, "counters are not compared");
    group.notify(2, Delta::Failed(Member::new(1, 2)));
    assert_eq!(group.node(2).counters().old_lives, 1);
}
