//! Lives that are over before this node hears of them: other protocols may have met them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod lone;

use lone::{Lone, pings, quiet};
use selvedge_core::{Delta, Effect, Member};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, Event, Membership, Message, Metadata, Record,
};

fn told(lone: &Lone) -> Vec<Delta> {
    let delta = |effect: &Effect<_>| match effect {
        Effect::Event(Event::Membership(delta)) => Some(*delta),
        _ => None,
    };
    lone.effects.iter().filter_map(delta).collect()
}

fn hear(lone: &mut Lone, member: Member, revision: u32, claim: Claim) {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.0.push(Record {
        member,
        revision,
        claim,
    });
    lone.hear(Member::new(2, 0), message);
}

fn failed() -> Claim {
    Claim::Failed(Metadata::default(), Age::default())
}

#[test]
fn the_end_of_a_life_that_was_never_here_is_told_once() {
    let mut lone = Lone::new(quiet(), &[1]);
    let [left, lost] = [Member::new(8, 3), Member::new(9, 0)];
    for _ in 0..2 {
        hear(&mut lone, left, 0, Claim::Left(Age::default()));
        hear(&mut lone, lost, 0, failed());
    }
    assert_eq!(told(&lone), [Delta::Left(left), Delta::Failed(lost)]);
    // It lives after all, which is news.
    lone.effects.clear();
    hear(&mut lone, lost, 1, Claim::Alive(Metadata::default()));
    assert_eq!(told(&lone), [Delta::Joined(lost)]);
}

#[test]
fn each_life_that_was_over_when_it_was_heard_of_is_told() {
    let mut lone = Lone::new(quiet(), &[1]);
    let life = |incarnation| Member::new(9, incarnation);
    hear(&mut lone, life(0), 0, Claim::Alive(Metadata::default()));
    hear(&mut lone, life(1), 0, failed());
    hear(&mut lone, life(2), 0, Claim::Left(Age::default()));
    assert_eq!(
        told(&lone),
        [
            Delta::Joined(life(0)),
            Delta::Confirmed(life(0)),
            Delta::Failed(life(1)),
            Delta::Confirmed(life(1)),
            Delta::Left(life(2)),
        ]
    );
}

/// What was told of one life.
fn told_of(lone: &Lone, member: Member) -> Vec<Delta> {
    let told = told(lone).into_iter();
    told.filter(|it| it.member() == member).collect()
}

/// Another protocol waits for it, and no member ever told of it.
#[test]
fn who_is_asked_after_is_silent_and_is_declared_failed() {
    let mut lone = Lone::new(quiet(), &[1]);
    let silent = Member::new(9, 3);
    lone.command(Command::Inquire(silent));
    assert_eq!(told_of(&lone, silent), [Delta::Joined(silent)]);
    for _ in 0..100 {
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
    }
    assert_eq!(
        told_of(&lone, silent),
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
    lone.hear(here, Message::bare(Body::Ack { origin: None }));
    for _ in 0..20 {
        lone.period(None);
    }
    assert_eq!(told_of(&lone, here), [Delta::Joined(here)]);
    // It is in a later life, says another protocol: it is asked itself.
    let later = Member::new(9, 4);
    lone.effects.clear();
    lone.command(Command::Inquire(later));
    assert_eq!(told(&lone), []);
    let asks = |it: &Effect<Membership>| matches!(it, Effect::Send { to, message } if *to == later && is_pull(&message.body));
    assert!(lone.effects.iter().any(asks), "{:?}", lone.effects);
}

fn is_pull(body: &Body) -> bool {
    matches!(body, Body::Pull { first, last } if first == last)
}

/// It said good-bye, and that was missed. Whoever knows is asked again for as long as it takes.
#[test]
fn a_good_bye_that_was_missed_is_asked_for() {
    for is_known in [false, true] {
        let mut lone = Lone::new(quiet(), &[1]);
        let (friend, gone) = (Member::new(2, 0), Member::new(9, 3));
        if is_known {
            hear(&mut lone, gone, 0, failed());
        }
        for _ in 0..2 {
            lone.effects.clear();
            lone.command(Command::Inquire(gone));
            let pull = lone.effects.iter().find_map(|effect| match effect {
                Effect::Send { to, message } if *to == friend => Some(message.body),
                _ => None,
            });
            if is_known {
                assert!(pull.is_some_and(|it| is_pull(&it)), "{:?}", lone.effects);
            }
        }
        hear(&mut lone, gone, 0, Claim::Left(Age::default()));
        assert_eq!(told(&lone), [Delta::Left(gone)], "known: {is_known}");
        lone.effects.clear();
        lone.command(Command::Inquire(gone));
        assert_eq!(lone.effects, [], "that is final");
    }
}

/// Whoever is to be waited for was named by others, who may lie.
#[test]
fn no_more_are_asked_after_in_a_period_than_others_may_tell_of() {
    let config = Config {
        hearsay_limit: 2,
        ..quiet()
    };
    let mut lone = Lone::new(config, &[1]);
    lone.period(None);
    lone.effects.clear();
    for id in 100..110 {
        lone.command(Command::Inquire(Member::new(id, 0)));
    }
    assert_eq!(told(&lone).len(), 2);
    assert_eq!(lone.driver.machine().counters().hearsay_refused, 8);
    assert_eq!(lone.driver.machine().members().count(), 4);
}
