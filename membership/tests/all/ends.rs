//! Lives that end before this node learns of them: other protocols may have met them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::lone;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use lone::{Lone, pings, quiet};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Time};
use selvedge_membership::{
    Age, Body, Claim, Command, Event, Membership, Message, Metadata, Record, Reject, Status,
};

fn notified(lone: &Lone) -> Vec<Delta> {
    let delta = |effect: &Effect<_>| match effect {
        Effect::Event(Event::Changed(delta)) => Some(*delta),
        _ => None,
    };
    lone.effects.iter().filter_map(delta).collect()
}

fn receive(lone: &mut Lone, member: Member, revision: u32, claim: Claim) {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        member,
        revision,
        claim,
    });
    lone.receive(Member::new(2, 0), message);
}

fn failed() -> Claim {
    Claim::Failed(Metadata::default(), Age::default())
}

#[test]
fn the_end_of_a_life_that_was_never_here_is_told_once() {
    let mut lone = Lone::new(quiet(), &[1]);
    let [left, lost] = [Member::new(8, 3), Member::new(9, 0)];
    for _ in 0..2 {
        receive(&mut lone, left, 0, Claim::Left(Age::default()));
        receive(&mut lone, lost, 0, failed());
    }
    assert_eq!(notified(&lone), [Delta::Left(left), Delta::Failed(lost)]);
    // It lives after all, which is news.
    lone.effects.clear();
    receive(&mut lone, lost, 1, Claim::Alive(Metadata::default()));
    assert_eq!(notified(&lone), [Delta::Joined(lost)]);
}

#[test]
fn each_life_that_was_over_when_it_was_heard_of_is_told() {
    let mut lone = Lone::new(quiet(), &[1]);
    let life = |incarnation| Member::new(9, incarnation);
    receive(&mut lone, life(0), 0, Claim::Alive(Metadata::default()));
    receive(&mut lone, life(1), 0, failed());
    receive(&mut lone, life(2), 0, Claim::Left(Age::default()));
    assert_eq!(
        notified(&lone),
        [
            Delta::Joined(life(0)),
            Delta::Confirmed(life(0)),
            Delta::Failed(life(1)),
            Delta::Confirmed(life(1)),
            Delta::Left(life(2)),
        ]
    );
}

/// The deltas about one life.
fn notified_of(lone: &Lone, member: Member) -> Vec<Delta> {
    let notified = notified(lone).into_iter();
    notified.filter(|it| it.member() == member).collect()
}

/// Another protocol waits for it, and no member ever reported it.
#[test]
fn who_is_asked_after_is_silent_and_is_declared_failed() {
    let mut lone = Lone::new(quiet(), &[1]);
    let silent = Member::new(9, 3);
    lone.command(Command::Inquire(silent));
    assert_eq!(notified_of(&lone, silent), [Delta::Joined(silent)]);
    for _ in 0..100 {
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
    }
    assert_eq!(
        notified_of(&lone, silent),
        [
            Delta::Joined(silent),
            Delta::Suspected(silent),
            Delta::Failed(silent)
        ]
    );
}

#[test]
fn who_is_asked_after_and_answers_is_listed() {
    let mut lone = Lone::new(quiet(), &[1]);
    let here = Member::new(9, 3);
    lone.command(Command::Inquire(here));
    assert!(pings(&lone.effects).contains(&here));
    lone.receive(here, Message::bare(Body::Ack { origin: None }));
    for _ in 0..20 {
        lone.period(None);
    }
    assert_eq!(notified_of(&lone, here), [Delta::Joined(here)]);
    // Another protocol reports a later life: the node is asked itself.
    let later = Member::new(9, 4);
    lone.effects.clear();
    lone.command(Command::Inquire(later));
    assert_eq!(notified(&lone), []);
    let asks = |it: &Effect<Membership>| matches!(it, Effect::Send { to, message } if *to == later && is_pull(&message.body));
    assert!(lone.effects.iter().any(asks), "{:?}", lone.effects);
}

fn is_pull(body: &Body) -> bool {
    matches!(body, Body::Pull { first, last } if first == last)
}

/// It said good-bye, and that message was lost. Members that know are asked again until one
/// answers.
#[test]
fn a_good_bye_that_was_missed_is_asked_for() {
    for is_known in [false, true] {
        let mut lone = Lone::new(quiet(), &[1]);
        let (friend, ended) = (Member::new(2, 0), Member::new(9, 3));
        if is_known {
            receive(&mut lone, ended, 0, failed());
        }
        for _ in 0..2 {
            lone.effects.clear();
            lone.command(Command::Inquire(ended));
            let pull = lone.effects.iter().find_map(|effect| match effect {
                Effect::Send { to, message } if *to == friend => Some(message.body),
                _ => None,
            });
            if is_known {
                assert!(pull.is_some_and(|it| is_pull(&it)), "{:?}", lone.effects);
            }
        }
        receive(&mut lone, ended, 0, Claim::Left(Age::default()));
        assert_eq!(notified(&lone), [Delta::Left(ended)], "known: {is_known}");
        lone.effects.clear();
        lone.command(Command::Inquire(ended));
        assert_eq!(lone.effects, [], "that is final");
    }
}

/// The life to wait for was named by other nodes, which may lie.
#[test]
fn no_more_are_asked_after_in_a_period_than_others_may_tell_of() {
    let config = quiet().with_hearsay_limit(2);
    let mut lone = Lone::new(config, &[1]);
    lone.period(None);
    lone.effects.clear();
    for id in 100..110 {
        lone.command(Command::Inquire(Member::new(id, 0)));
    }
    assert_eq!(notified(&lone).len(), 2);
    assert_eq!(lone.driver.machine().counters().hearsay_refused, 8);
    assert_eq!(lone.driver.machine().members().count(), 4);
}

/// The list's entry of a node.
fn listed(lone: &Lone, id: u64) -> Option<(Member, Status)> {
    let view = lone.driver.machine().member(NodeId(id))?;
    Some((view.member, view.status))
}

/// A confirmation by an operator works at once, also for a life that only another protocol has met.
#[test]
fn a_life_that_was_never_listed_is_confirmed() {
    let mut lone = Lone::new(quiet(), &[1]);
    let ended = Member::new(9, 3);
    lone.command(Command::Confirm(ended));
    assert_eq!(notified(&lone), [Delta::Left(ended)]);
    assert_eq!(listed(&lone, 9), Some((ended, Status::Left)));
    // The other nodes learn of it.
    lone.effects.clear();
    lone.period(None);
    let is_news = |it: &Effect<Membership>| match it {
        Effect::Send { message, .. } => message
            .records
            .iter()
            .any(|it| it.member == ended && matches!(it.claim, Claim::Left(_))),
        _ => false,
    };
    assert!(lone.effects.iter().any(is_news), "{:?}", lone.effects);
    // A life before that is over already, and one after it is confirmed as well.
    lone.effects.clear();
    let (former, later) = (Member::new(9, 2), Member::new(9, 4));
    lone.command(Command::Confirm(former));
    assert_eq!(
        (lone.effects.len(), listed(&lone, 9)),
        (0, Some((ended, Status::Left)))
    );
    lone.command(Command::Confirm(later));
    assert_eq!(notified(&lone), [Delta::Left(later)]);
    assert_eq!(listed(&lone, 9), Some((later, Status::Left)));
}

/// The list has an earlier life, which seems to be here.
#[test]
fn a_later_life_than_the_listed_one_is_confirmed() {
    let mut lone = Lone::new(quiet(), &[1]);
    let (listed_one, later) = (Member::new(2, 0), Member::new(2, 1));
    lone.command(Command::Confirm(later));
    assert_eq!(
        notified(&lone),
        [Delta::Confirmed(listed_one), Delta::Left(later)]
    );
    assert_eq!(listed(&lone, 2), Some((later, Status::Left)));
}

/// It is reported in any case, and takes the place of no member that left before.
#[test]
fn whom_an_operator_confirms_is_told_also_where_there_is_no_room() {
    let config = quiet().with_tombstone_limit(1);
    let mut lone = Lone::new(config, &[1]);
    let [first, second] = [8, 9].map(|id| Member::new(id, 0));
    lone.command(Command::Confirm(first));
    lone.command(Command::Confirm(second));
    assert_eq!(
        notified(&lone),
        [Delta::Left(first), Delta::Confirmed(second)]
    );
    assert_eq!(
        (listed(&lone, 8), listed(&lone, 9)),
        (Some((first, Status::Left)), None)
    );
    assert_eq!(lone.driver.machine().counters().list_full, 1);
}

/// In no mesh there are no members to notify.
#[test]
fn who_is_in_no_mesh_confirms_nobody_else() {
    let machine = Membership::new(Member::new(1, 0), quiet()).unwrap();
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let confirm = Input::Command(Command::Confirm(Member::new(9, 3)));
    let taken = driver.step(Time::ZERO, &mut rng, confirm, |_| ());
    assert_eq!(taken, Err(Reject::NotJoined));
}

/// An earlier life is over, and a later one has to answer, like a life that was never listed.
#[test]
fn another_life_than_the_one_that_failed_is_asked_after_if_it_is_later() {
    let mut lone = Lone::new(quiet(), &[1]);
    let [earlier, known, later] = [2, 3, 4].map(|life| Member::new(9, life));
    receive(&mut lone, known, 0, failed());
    lone.effects.clear();
    lone.command(Command::Inquire(earlier));
    assert_eq!(lone.effects, []);
    lone.command(Command::Inquire(later));
    assert_eq!(
        notified(&lone),
        [Delta::Confirmed(known), Delta::Joined(later)]
    );
    assert!(pings(&lone.effects).contains(&later));
}

#[test]
fn nobody_asks_after_itself_or_outside_a_mesh() {
    let me = Member::new(1, 0);
    let other = Member::new(9, 3);
    let mut driver = Driver::new(Membership::new(me, quiet()).unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut command = |command| {
        let input = Input::Command(command);
        driver.step(Time::ZERO, &mut rng, input, |_| ())
    };
    assert_eq!(command(Command::Inquire(other)), Err(Reject::NotJoined));
    let own = Err(Reject::OwnMember(me.id));
    assert_eq!(command(Command::Confirm(me)), own);
    let seeds = [].into_iter().collect();
    assert_eq!(command(Command::Join { seeds }), Ok(()));
    assert_eq!(command(Command::Inquire(me)), own);
    assert_eq!(command(Command::Confirm(me)), own);
}
