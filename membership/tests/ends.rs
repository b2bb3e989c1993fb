//! Lives that are over before this node hears of them: other protocols may have met them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod lone;

use lone::{Lone, quiet};
use selvedge_core::{Delta, Effect, Member};
use selvedge_membership::{Age, Body, Claim, Event, Message, Metadata, Record};

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
