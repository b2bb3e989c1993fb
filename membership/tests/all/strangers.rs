//! Senders that are not on the list, or in a former life only, and the answers to them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::ring;

use ring::{Ring, plain};
use selvedge_core::{Input, Member, NodeId};
use selvedge_membership::{Body, Claim, Command, Counters, Digest, Key, Message, Metadata, Record};

fn ping() -> Body {
    Body::Ping {
        digest: Digest::default(),
        origin: None,
    }
}

fn ack() -> Body {
    Body::Ack { origin: None }
}

fn alive(member: Member) -> Record {
    Record {
        member,
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    }
}

/// The messages that node 0 sends after this one.
fn answers(ring: &mut Ring, from: Member, body: Body, about: &[Member]) -> Vec<(NodeId, Body)> {
    let mut message = Message::bare(body);
    message.records.extend(about.iter().map(|&it| alive(it)));
    ring.wire.clear();
    ring.step(0, Input::Message { from, message }).unwrap();
    let sent = ring.wire.drain(..);
    sent.map(|(_, to, message)| (to, message.body)).collect()
}

fn counters(ring: &Ring) -> Counters {
    *ring.nodes[0].machine().counters()
}

/// The key of node 0 or 1, by which the other asks for its record.
fn key_of(id: u64) -> Key {
    let mut ring = Ring::new(2, &plain());
    let other = 1 - id as usize;
    ring.command(other, Command::Join { seeds: vec![] })
        .unwrap();
    let from = Member::new(id, 7);
    let message = Message::bare(ping());
    ring.step(other, Input::Message { from, message }).unwrap();
    let key = ring.wire.iter().find_map(|(_, _, sent)| match sent.body {
        Body::Pull { first, last } if first == last => Some(first),
        _ => None,
    });
    key.unwrap()
}

/// Its frames may be late, and their content out of date.
#[test]
fn what_a_former_life_tells_is_not_believed_and_its_questions_name_the_heir() {
    let mut ring = Ring::joined(3, &plain());
    let (former, heir) = (Member::new(2, 6), Member::new(2, 7));
    let known = (NodeId(2), Body::IdTaken { life: heir });
    assert_eq!(answers(&mut ring, former, ack(), &[Member::new(30, 0)]), []);
    assert_eq!(
        answers(&mut ring, former, ping(), &[Member::new(31, 0)]),
        [known]
    );
    assert_eq!(counters(&ring).stale_senders, 2);
    let machine = ring.nodes[0].machine();
    assert!(machine.member(NodeId(30)).is_none() && machine.member(NodeId(31)).is_none());
}

/// A good-bye is repeated; no other message comes from a member that has left.
#[test]
fn of_who_has_left_only_the_good_bye_is_heard() {
    let mut ring = Ring::joined(3, &plain());
    ring.command(2, Command::Leave).unwrap();
    ring.settle(|_, _, _| true);
    let ended = Member::new(2, 7);
    let before = counters(&ring).stale_senders;
    answers(&mut ring, ended, Body::Farewell, &[Member::new(30, 0)]);
    assert_eq!(counters(&ring).stale_senders, before);
    assert!(ring.nodes[0].machine().member(NodeId(30)).is_some());
    answers(&mut ring, ended, ack(), &[Member::new(31, 0)]);
    assert_eq!(counters(&ring).stale_senders, before + 1);
    assert!(ring.nodes[0].machine().member(NodeId(31)).is_none());
}

/// A stranger is asked for its record in answer to a question only, so that two strangers do not
/// ask each other for ever. A node that sends its own record is no stranger.
#[test]
fn strangers_that_ask_are_asked_who_they_are() {
    let mut ring = Ring::joined(2, &plain());
    let asks = |sent: &[(NodeId, Body)]| {
        sent.iter()
            .any(|(_, body)| matches!(body, Body::Pull { first, last } if first == last))
    };
    let stranger = Member::new(30, 0);
    assert!(asks(&answers(&mut ring, stranger, ping(), &[])));
    assert_eq!(answers(&mut ring, stranger, ack(), &[]), []);
    assert_eq!(counters(&ring).unknown_senders, 2);
    // A later life of a known node.
    let later = Member::new(1, 8);
    assert!(asks(&answers(&mut ring, later, ping(), &[])));
    assert_eq!(counters(&ring).unknown_senders, 3);
    assert!(!asks(&answers(&mut ring, stranger, ping(), &[stranger])));
    assert!(!asks(&answers(&mut ring, later, ping(), &[later])));
    assert!(!asks(&answers(&mut ring, stranger, ping(), &[])));
    assert_eq!(counters(&ring).unknown_senders, 3);
}

/// It may ask for our record, and for nothing else of the list.
#[test]
fn a_stranger_is_told_of_us_alone() {
    let (own, other) = (key_of(0), key_of(1));
    let mut ring = Ring::joined(3, &plain());
    let mut pages = |first, last| {
        let stranger = Member::new(30, 0);
        ring.wire.clear();
        let message = Message::bare(Body::Pull { first, last });
        let from = stranger;
        ring.step(0, Input::Message { from, message }).unwrap();
        let mut notified = Vec::new();
        for (_, _, message) in ring.wire.drain(..) {
            notified.extend(message.records.into_iter().map(|it| it.member.id.0));
        }
        notified
    };
    assert_eq!(pages(own, own), [0]);
    assert!(pages(other, other).is_empty());
    assert!(pages(own, Key(u64::MAX)).is_empty());
    assert!(pages(Key(0), own).is_empty());
}

/// A node that began a mesh for want of an answer fetches the list of the first member that
/// welcomes it later, if the welcome names it.
#[test]
fn a_welcome_that_comes_late_is_for_the_one_it_names() {
    let mut ring = Ring::new(1, &plain());
    let seed = Member::new(5, 0);
    let seeds = vec![seed.id];
    ring.command(0, Command::Join { seeds }).unwrap();
    ring.periods(2, |_, _, _| false);
    answers(&mut ring, seed, Body::Join, &[seed]);
    assert_eq!(ring.nodes[0].machine().live(), 2);
    let welcome = |you| Body::Welcome {
        you,
        next: Some(Key(1)),
    };
    let other = Member::new(0, 6);
    assert_eq!(answers(&mut ring, seed, welcome(other), &[]), []);
    let (first, last) = (Key(1), Key(u64::MAX));
    let me = ring.nodes[0].machine().me();
    assert_eq!(
        answers(&mut ring, seed, welcome(me), &[]),
        [(seed.id, Body::Pull { first, last })]
    );
    // Another welcome while we fetch, or after it, has no effect.
    assert_eq!(answers(&mut ring, seed, welcome(me), &[]), []);
}
