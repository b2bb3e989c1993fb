//! Candidates, the members that they ask, and each answer.

use super::*;

fn prepared(sent: &[(u64, Body<u16>)]) -> Vec<u64> {
    let to = sent
        .iter()
        .filter(|it| matches!(it.1, Body::Prepare { .. }));
    to.map(|it| it.0).collect()
}

fn promised(sent: &[(u64, Body<u16>)]) -> Vec<u64> {
    let to = sent
        .iter()
        .filter(|it| matches!(it.1, Body::Promise { .. }));
    to.map(|it| it.0).collect()
}

fn prepare(ballot: Ballot) -> Body<u16> {
    Body::Prepare {
        ballot,
        committed: 0,
        accepted: Ballot::default(),
        end: 0,
        handed_over: Ballot::default(),
    }
}

fn refuse(of: Ballot, promised: Ballot, leader: Ballot) -> Body<u16> {
    Body::Refuse {
        ballot: of,
        promised,
        leader,
    }
}

fn update(number: u64, update: u16) -> Entry<u16> {
    Entry::Update(Proposal {
        by: member(5),
        number,
        first: 1,
        since: 0,
        update,
    })
}

/// A promise of `of`, by a member that accepted these under `accepted`.
fn promise(of: Ballot, accepted: Ballot, end: u64, tail: &[Entry<u16>]) -> Body<u16> {
    Body::Promise {
        ballot: of,
        committed: 0,
        accepted,
        end,
        tail: tail.iter().cloned().collect(),
    }
}

fn accept(ballot: Ballot, commit: u64, entries: &[Entry<u16>]) -> Body<u16> {
    Body::Accept {
        ballot,
        after: 0,
        commit,
        round: 1,
        entries: entries.iter().cloned().collect(),
    }
}

/// Node 2 has promised and failed; nodes 4 and 5 have failed, and node 3 has not answered.
#[test]
fn a_promise_counts_also_when_its_member_is_gone() {
    let mut group = Group::of(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Campaign);
    let own = ballot(1, 1);
    group.say(1, member(2), promise(own, Ballot::default(), 0, &[]));
    for id in [2, 4, 5] {
        group.notify(1, Delta::Failed(member(id)));
    }
    for _ in 0..3 {
        assert_eq!(prepared(&group.pass(1, Span::millis(200))), [3]);
    }
    group.say(1, member(3), promise(own, Ballot::default(), 0, &[]));
    assert!(group.node(1).leads());
}

/// Node 2 holds more than node 3, and answers first.
#[test]
fn a_candidate_adopts_what_the_highest_of_those_that_promised_holds() {
    let (own, former) = (ballot(1, 1), ballot(0, 2));
    let high = promise(own, former, 1, &[update(1, 7)]);
    let low = promise(own, Ballot::default(), 0, &[]);
    for answers in [[(2, &high), (3, &low)], [(3, &low), (2, &high)]] {
        let mut group = Group::of(&[1, 2, 3, 4, 5]);
        group.command(1, Command::Campaign);
        let mut sent = Vec::new();
        for (from, answer) in answers {
            sent = group.say(1, member(from), answer.clone());
        }
        assert!(group.node(1).leads(), "{sent:?}");
        for (_, body) in sent {
            let Body::Accept {
                after: 0, entries, ..
            } = body
            else {
                panic!("{body:?}");
            };
            assert_eq!(entries[..], [update(1, 7)]);
        }
    }
}

/// Node 2 holds more than the candidate, and its message has not all of it.
#[test]
fn a_candidate_does_not_lead_with_less_than_was_accepted() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Campaign);
    let own = ballot(1, 1);
    let without = promise(own, ballot(0, 2), 1, &[]);
    assert_eq!(group.say(1, member(2), without), []);
    assert!(!group.node(1).leads());
    let with = promise(own, ballot(0, 2), 1, &[update(1, 7)]);
    group.say(1, member(2), with);
    assert!(group.node(1).leads());
}

#[test]
fn a_refusal_that_names_no_other_leader_has_a_candidate_wait() {
    // By a member that knows no leader, and by one which still takes this member for the leader.
    for leader in [Ballot::default(), ballot(1, 1)] {
        let mut group = Group::of(&[1, 2, 3]);
        group.command(1, Command::Campaign);
        let refused = refuse(ballot(1, 1), ballot(4, 3), leader);
        assert_eq!(group.say(1, member(2), refused), []);
        assert_eq!(group.leader(1), None);
        assert_eq!(group.pass(1, Span::millis(399)), []);
        assert_eq!(prepared(&group.pass(1, Span::millis(1))), [2, 3]);
    }
}

/// Node 3 has promised a candidate. Another member does not know that, and names the former leader.
#[test]
fn a_member_follows_no_leader_below_its_promise() {
    let mut group = Group::of(&[1, 2, 3]);
    let high = ballot(9, 2);
    assert_eq!(promised(&group.say(3, member(2), prepare(high))), [2]);
    let none = Ballot::default();
    let (former, later) = (ballot(1, 1), ballot(8, 1));
    for leader in [former, later] {
        assert_eq!(group.say(3, member(1), refuse(none, leader, leader)), []);
        assert_eq!(group.leader(3), None);
    }
    // The candidate leads by now.
    let reported = group.say(3, member(1), refuse(none, high, high));
    assert_eq!(group.leader(3), Some(2));
    assert!(
        matches!(reported[..], [(2, Body::Read { number: 0 })]),
        "{reported:?}"
    );
}

/// Node 3 has refused node 2, which would be next.
#[test]
fn a_candidate_that_is_gone_is_promised_nothing_later() {
    for (ended, answered) in [(2, vec![]), (4, vec![2])] {
        let mut group = Group::of(&[1, 2, 3, 4]);
        group.command(1, Command::Propose(7));
        group.wait(Span::secs(1));
        group.say(3, member(2), prepare(ballot(9, 2)));
        group.notify(3, Delta::Failed(member(ended)));
        group.taken();
        group.notify(3, Delta::Failed(member(1)));
        assert_eq!(promised(&group.taken()), answered, "node {ended} is gone");
    }
}

/// The first two of three members fail one after another.
#[test]
fn a_member_that_waits_stands_at_once_when_it_is_the_first_that_is_here() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.notify(3, Delta::Failed(member(2)));
    assert_eq!(group.taken(), [], "the leader is there");
    group.notify(3, Delta::Failed(member(1)));
    assert_eq!(group.node(3).counters().elections, 1);
    // The other way round: it waits for node 2 to stand.
    let mut group = Group::of(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    for (id, elections) in [(1, 0), (4, 0), (2, 1)] {
        group.notify(3, Delta::Failed(member(id)));
        let counted = group.node(3).counters().elections;
        assert_eq!(counted, elections, "node {id} is gone");
    }
}

/// A member that learns commits keeps only those accepted entries that may be committed.
#[test]
fn what_was_accepted_behind_what_is_learned_is_kept_if_it_follows() {
    let leader = ballot(1, 1);
    for (learned, end, brings) in [(7, 2, vec![update(2, 8)]), (9, 1, vec![])] {
        let mut group = Group::of(&[1, 2, 3]);
        group.say(
            3,
            member(1),
            accept(leader, 0, &[update(1, 7), update(2, 8)]),
        );
        let learn = Body::Learn {
            after: 0,
            entries: [update(1, learned)].into_iter().collect(),
        };
        group.say(3, member(2), learn);
        assert_eq!(group.state(3), [learned]);
        group.notify(3, Delta::Failed(member(1)));
        let reported = group.say(3, member(2), prepare(ballot(9, 2)));
        let [
            (
                2,
                Body::Promise {
                    end: held, tail, ..
                },
            ),
        ] = &reported[..]
        else {
            panic!("{reported:?}");
        };
        assert_eq!((*held, &tail[..]), (end, &brings[..]));
    }
}

/// The published rule: a new leader keeps those of its entries that a quorum confirms.
#[test]
fn under_the_published_rule_a_leader_keeps_what_a_quorum_confirms() {
    let first = Configuration::of([1, 2, 3, 4, 5].map(member));
    for (confirmed, keeps) in [(1, 0), (2, 1), (3, 2), (4, 3), (9, 3)] {
        let mut group = Group::of(&[1, 2, 3, 4, 5]);
        let node = Replica::new(member(1), Config::new(), first.clone(), Journal::default());
        let node = node.unwrap();
        let at = group.at(1);
        group.nodes[at] =
            Driver::new(node.published(&[selvedge_replica::Published::AdoptsConfirmed]));
        let entries: Vec<_> = (1..=4).map(|nth| update(nth, nth as u16)).collect();
        // The first one is committed.
        group.say(1, member(2), accept(ballot(1, 2), 1, &entries));
        group.command(1, Command::Campaign);
        let own = ballot(2, 1);
        group.say(1, member(2), promise(own, ballot(1, 2), 4, &[]));
        let sent = group.say(1, member(3), promise(own, ballot(1, 2), confirmed, &[]));
        let Some((
            _,
            Body::Accept {
                after: 1, entries, ..
            },
        )) = sent.first()
        else {
            panic!("{sent:?}");
        };
        assert_eq!(entries.len(), keeps, "confirmed up to {confirmed}");
    }
}

/// The first ballot that fails changes nothing; each further one makes the wait longer, until a
/// leader has led.
#[test]
fn a_member_waits_longer_after_each_ballot_that_fails_until_a_quorum_follows_a_leader() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Campaign);
    let outbid = |group: &mut Group, number: u64, wait: u64| {
        let refused = Body::Refuse {
            ballot: ballot(number, 1),
            promised: ballot(number + 1, 3),
            leader: Ballot::default(),
        };
        assert_eq!(group.say(1, member(3), refused), []);
        assert_eq!(group.pass(1, Span::millis(wait - 1)), []);
        let prepares = group.pass(1, Span::millis(1));
        assert_eq!(prepares.len(), 2, "{prepares:?}");
    };
    for (nth, wait) in (0..).zip([400, 1_600, 6_400, 12_800, 12_800]) {
        outbid(&mut group, 1 + 2 * nth, wait);
    }
    let promise = Body::Promise {
        ballot: ballot(11, 1),
        committed: 0,
        accepted: Ballot::default(),
        end: 0,
        tail: [].into_iter().collect(),
    };
    group.say(1, member(2), promise);
    assert!(group.node(1).leads());
    let accepted = Body::Accepted {
        ballot: ballot(11, 1),
        end: 0,
        committed: 0,
        round: 1,
    };
    group.say(1, member(2), accepted);
    // A leader stands again at once, for the first time.
    let refused = Body::Refuse {
        ballot: ballot(11, 1),
        promised: ballot(12, 3),
        leader: Ballot::default(),
    };
    assert_eq!(group.say(1, member(3), refused).len(), 2);
    outbid(&mut group, 13, 400);
}
