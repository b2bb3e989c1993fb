//! The choice of the leader, and its replacement.

use super::*;

#[test]
fn a_leader_that_fails_is_replaced_one_round_trip_after_it_is_told() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    for id in [2, 3] {
        group.notify(id, Delta::Failed(member(1)));
    }
    group.round_without(&[1]);
    assert!(!group.node(2).leads());
    group.round_without(&[1]);
    assert!(group.node(2).leads(), "PREPARE there and PROMISE back");
    group.deliver_without(&[1]);
    assert_eq!(group.leader(3), Some(2));
    assert_eq!(group.state(2), [7], "what a quorum held is adopted");
}

/// Node 3 learns of the failure only after node 2 has asked it.
#[test]
fn a_question_that_came_too_early_is_answered_when_the_leader_is_told_to_be_gone() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.notify(2, Delta::Failed(member(1)));
    group.round_without(&[1]);
    group.round_without(&[1]);
    assert!(!group.node(2).leads(), "refused: the leader is there");
    group.notify(3, Delta::Failed(member(1)));
    group.deliver_without(&[1]);
    assert!(group.node(2).leads());
}

#[test]
fn a_member_that_was_cut_off_deposes_nobody() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let ballot = group.node(1).leader();
    for other in [1, 2] {
        group.notify(3, Delta::Failed(member(other)));
    }
    group.step(3, Input::Command(Command::Propose(9))).unwrap();
    group.wait_without(Span::secs(20), &[3]);
    assert_eq!(
        group.notified(3, |it| matches!(it, Event::Unavailable { .. })),
        0
    );
    // Time passes there, too, and no member answers.
    for _ in 0..20 {
        group.now = group.now + Span::millis(200);
        let mut effects = Vec::new();
        let at = group.at(3);
        let now = group.now;
        group.nodes[at].expire_into(now, &mut group.rng, &mut effects);
        group.take(at, effects);
        group.wire.clear();
    }
    assert_eq!(
        group.notified(3, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    for other in [1, 2] {
        group.notify(3, Delta::Refuted(member(other)));
    }
    group.wait(Span::secs(5));
    assert_eq!(group.node(1).leader(), ballot);
    assert_eq!(group.notified(1, |it| matches!(it, Event::Deposed(_))), 0);
    assert_eq!(group.state(1), [7, 9]);
    assert_eq!(group.notified(3, |it| matches!(it, Event::Available)), 1);
}

#[test]
fn a_leader_hands_over_when_it_is_asked() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let refused = group.step(2, Input::Command(Command::TransferLeadership(NodeId(3))));
    let leader = Some(NodeId(1));
    assert_eq!(refused, Err(Reject::NotLeader { leader }));
    let refused = group.step(1, Input::Command(Command::TransferLeadership(NodeId(9))));
    assert_eq!(refused, Err(Reject::NoCandidate(NodeId(9))));
    group.command(1, Command::TransferLeadership(NodeId(3)));
    group.deliver();
    assert!((1..=3).all(|id| group.leader(id) == Some(3)));
    assert_eq!(group.notified(1, |it| matches!(it, Event::Deposed(_))), 1);
}

fn asks(group: &Group, ballot: Ballot, of: u64) -> Body<u16> {
    Body::Prepare {
        ballot,
        committed: group.node(of).version(),
        accepted: group.node(1).leader().unwrap().1,
        end: group.node(of).version(),
        handed_over: Ballot::default(),
    }
}

fn prepared(sent: &[(u64, Body<u16>)]) -> Vec<u64> {
    let to = sent
        .iter()
        .filter(|it| matches!(it.1, Body::Prepare { .. }));
    to.map(|it| it.0).collect()
}

/// A member with a present leader refuses, and asks the leader, once. A leader that does not answer
/// is lost, and the promise is made.
#[test]
fn a_question_is_answered_when_the_leader_turns_out_to_be_silent() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let high = ballot(9, 2);
    let prepare = asks(&group, high, 2);
    let reported = group.say(3, member(2), prepare.clone());
    assert!(matches!(
        reported[..],
        [(2, Body::Refuse { .. }), (1, Body::Read { number: 0 })]
    ));
    let reported = group.say(3, member(2), prepare);
    assert!(
        matches!(reported[..], [(2, Body::Refuse { .. })]),
        "{reported:?}"
    );
    assert_eq!(group.pass(3, Span::millis(999)), []);
    let reported = group.pass(3, Span::millis(1));
    assert!(
        matches!(reported[..], [(2, Body::Promise { ballot, .. })] if ballot == high),
        "{reported:?}"
    );
    // It is asked again where the answer was lost.
    let prepare = asks(&group, high, 2);
    let reported = group.say(3, member(2), prepare);
    assert!(
        matches!(reported[..], [(2, Body::Promise { .. })]),
        "{reported:?}"
    );
}

#[test]
fn a_leader_that_answers_is_not_lost() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let prepare = asks(&group, ballot(9, 2), 2);
    group.say(3, member(2), prepare);
    let answer = Body::ReadAt {
        life: 1,
        number: 0,
        version: 1,
    };
    assert_eq!(group.say(3, member(1), answer), []);
    assert_eq!(group.pass(3, Span::secs(5)), []);
    assert_eq!(group.leader(3), Some(1));
}

#[test]
fn a_leader_itself_may_raise_its_ballot() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let prepare = asks(&group, ballot(9, 1), 1);
    let reported = group.say(3, member(1), prepare);
    assert!(
        matches!(reported[..], [(1, Body::Promise { .. })]),
        "{reported:?}"
    );
}

/// Node 3 holds an update that is not committed.
#[test]
fn a_promise_brings_what_the_candidate_lacks_and_nothing_else() {
    for (end, brings) in [(1, 1), (2, 0), (3, 0)] {
        let mut group = Group::of(&[1, 2, 3]);
        group.command(1, Command::Propose(7));
        group.wait(Span::secs(1));
        group.command(1, Command::Propose(8));
        group.round_without(&[2]);
        group.notify(3, Delta::Failed(member(1)));
        let accepted = group.node(1).leader().unwrap().1;
        let prepare = Body::Prepare {
            ballot: ballot(9, 2),
            committed: 1,
            accepted,
            end,
            handed_over: Ballot::default(),
        };
        let reported = group.say(3, member(2), prepare);
        let [(2, Body::Promise { end: 2, tail, .. })] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert_eq!(tail.len(), brings, "the candidate holds up to {end}");
    }
}

#[test]
fn a_candidate_asks_again_and_waits_for_members_that_come_back() {
    let mut group = Group::of(&[1, 2, 3]);
    group.notify(1, Delta::Failed(member(3)));
    group.taken();
    group.command(1, Command::Campaign);
    assert_eq!(group.node(1).counters().elections, 1);
    assert_eq!(prepared(&group.taken()), [2]);
    for _ in 0..3 {
        assert_eq!(prepared(&group.pass(1, Span::millis(200))), [2]);
    }
    assert_eq!(group.node(1).counters().elections, 1);
    // Alone it is idle.
    group.notify(1, Delta::Failed(member(2)));
    group.taken();
    for _ in 0..9 {
        assert_eq!(group.pass(1, Span::millis(200)), []);
    }
    group.notify(1, Delta::Refuted(member(3)));
    assert_eq!(prepared(&group.taken()), [3]);
    assert_eq!(group.node(1).counters().elections, 2);
    group.notify(1, Delta::Refuted(member(2)));
    assert_eq!(prepared(&group.taken()), [2, 3]);
}

#[test]
fn a_refusal_leads_to_the_leader_that_is_there() {
    let refuse = |of, promised, leader| Body::Refuse {
        ballot: of,
        promised,
        leader,
    };
    // A follower learns of a later leader, and of no earlier one.
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let present = group.node(3).leader().unwrap().1;
    let none = Ballot::default();
    assert_eq!(group.say(3, member(2), refuse(none, present, present)), []);
    assert_eq!(group.leader(3), Some(1));
    let later = ballot(present.number + 1, 2);
    let reported = group.say(3, member(2), refuse(none, later, later));
    assert_eq!(group.leader(3), Some(2));
    assert!(
        matches!(reported[..], [(2, Body::Read { number: 0 })]),
        "{reported:?}"
    );
    let own = ballot(present.number + 2, 3);
    assert_eq!(group.say(3, member(2), refuse(none, own, own)), []);
    assert_eq!(group.leader(3), Some(2));
    // A leader takes a higher ballot if its own was refused for a later promise.
    assert_eq!(group.say(1, member(2), refuse(later, later, none)), []);
    assert_eq!(group.say(1, member(2), refuse(present, present, none)), []);
    assert!(group.node(1).leads());
    let reported = group.say(1, member(2), refuse(present, later, none));
    assert_eq!(prepared(&reported), [2, 3]);
    assert!(!group.node(1).leads());
    // A candidate steps back for a later promise of its own ballot alone.
    let stands = ballot(later.number + 1, 1);
    let high = ballot(later.number + 9, 3);
    assert_eq!(group.say(1, member(2), refuse(later, high, none)), []);
    assert_eq!(group.say(1, member(2), refuse(stands, stands, none)), []);
    assert_eq!(prepared(&group.pass(1, Span::millis(200))), [2, 3]);
    assert_eq!(group.say(1, member(2), refuse(stands, high, none)), []);
    // Its turn comes after 2 times the resend time.
    assert_eq!(group.pass(1, Span::millis(399)), []);
    let sent = group.pass(1, Span::millis(1));
    assert_eq!(prepared(&sent), [2, 3]);
    assert!(
        matches!(sent[0].1, Body::Prepare { ballot, .. } if ballot > high),
        "{sent:?}"
    );
}

#[test]
fn nobody_stands_beside_a_leader() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(2, Command::Campaign);
    group.deliver();
    assert_eq!(group.leader(1), Some(2));
    group.wait(Span::secs(1));
    let current = Body::Current {
        configuration: group.node(1).configuration().clone().into(),
        is_active: true,
    };
    // The most preferred member neither stands nor asks for entries that it has.
    assert_eq!(group.say(1, member(3), current), []);
    // Only the leader that a member follows may ask it to stand.
    let other = Body::Stand {
        ballot: ballot(9, 3),
    };
    assert_eq!(group.say(1, member(3), other), []);
    assert_eq!(group.node(1).counters().stale, 1);
}

#[test]
fn a_leader_in_a_new_life_leads_no_more_and_other_lives_change_nothing() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    for life in [1, 5] {
        group.notify(3, Delta::Joined(Member::new(2, life)));
        assert_eq!(group.leader(3), Some(1));
    }
    group.notify(3, Delta::Refuted(member(1)));
    assert_eq!(group.leader(3), Some(1));
    group.notify(3, Delta::Joined(Member::new(1, 2)));
    assert_eq!(group.leader(3), None);
}

#[test]
fn messages_go_to_the_latest_life_that_is_known() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.notify(1, Delta::Joined(Member::new(2, 5)));
    group.taken();
    group.command(1, Command::Propose(8));
    let to: Vec<Member> = group.wire.iter().map(|it| it.1).collect();
    assert_eq!(to, [Member::new(2, 5), member(3)]);
}

/// Nodes 1 and 2 are cut off from each other, the membership service reports that 1 failed, and
/// each request for a promise overtakes the leader's entries. No time passes.
#[test]
fn two_that_lead_in_turns_come_to_an_end_without_a_timer() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.notify(3, Delta::Failed(member(1)));
    group.notify(2, Delta::Failed(member(1)));
    group.command(1, Command::Propose(8));
    let mut elections = Vec::new();
    for _ in 0..40 {
        let is_cut = |a: Member, b: Member| a.id.0 + b.id.0 == 3;
        group.wire.retain(|it| !is_cut(it.0, it.1));
        group
            .wire
            .sort_by_key(|it| !matches!(it.2.body, Body::Prepare { .. }));
        group.round_without(&[]);
        let all = (1..=3).map(|id| group.node(id).counters().elections);
        elections.push(all.sum::<u64>());
    }
    assert_eq!(group.wire, [], "{elections:?}");
    assert!(elections.iter().all(|&it| it <= 5), "{elections:?}");
    assert_eq!(group.leader(3), Some(2));
    group.command(2, Command::Propose(9));
    group.round_without(&[1]);
    group.round_without(&[1]);
    assert_eq!(group.state(2), [7, 9]);
    // The other one goes on with its followers, and stands after a while.
    assert!(group.node(1).leads());
    let sent = group.pass(1, Span::millis(400));
    assert_eq!(prepared(&sent), [2, 3]);
}
