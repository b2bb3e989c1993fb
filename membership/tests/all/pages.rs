//! Lists in pages: lost parts are asked for again, and no part always comes first.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]

use crate::ring;

use core::cell::Cell;

use ring::{Ring, plain};
use selvedge_core::wire::frame_len;
use selvedge_core::{Input, Member, NodeId};
use selvedge_membership::{Body, Claim, Command, Config, Digest, Key, Message, Metadata, Record};

/// Sends node 0 members that no other node knows.
fn tell_of(ring: &mut Ring, members: u64) {
    for id in 100..100 + members {
        let mut message = Message::bare(Body::Unlucky);
        message.records.push(Record {
            member: Member::new(id, 0),
            revision: 0,
            claim: Claim::Alive(Metadata::default()),
        });
        let from = Member::new(id, 0);
        ring.step(0, Input::Message { from, message }).unwrap();
    }
    ring.wire.clear();
}

/// The key from which a joiner asks for the rest of the list, if this is such a request.
fn rest(message: &Message) -> Option<Key> {
    match message.body {
        Body::Pull { first, last } if last == Key(u64::MAX) => Some(first),
        _ => None,
    }
}

#[test]
fn a_page_that_does_not_come_is_asked_for_again() {
    let config = plain()
        .with_frame_budget(127)
        .with_metadata_limit(0)
        .with_broadcast_len(0);
    let mut ring = Ring::new(2, &config);
    ring.command(0, Command::Join { seeds: vec![] }).unwrap();
    tell_of(&mut ring, 60);
    let seeds = vec![NodeId(0)];
    ring.command(1, Command::Join { seeds }).unwrap();
    ring.settle(|_, _, message| rest(message).is_none());
    let known = ring.nodes[1].machine().live();
    assert!((10..60).contains(&known), "{known} on the first page");
    // Each request is lost once, and repeated in the next period, to anyone.
    let mut repeated = 0;
    while ring.nodes[1].machine().live() < 62 {
        let asked = Cell::new(None);
        let until = ring.now + config.period;
        let is_joiner = |node| node == 1;
        ring.run_until(until, is_joiner, |_, _, message| {
            asked.set(asked.get().or(rest(message)));
            false
        });
        repeated += 1;
        let first = asked.get().unwrap();
        let last = Key(u64::MAX);
        let message = Message::bare(Body::Pull { first, last });
        let from = Member::new(1, 7);
        ring.step(0, Input::Message { from, message }).unwrap();
        ring.settle(|_, _, message| rest(message).is_none());
    }
    assert!(repeated >= 2, "{repeated} requests");
}

/// Four parts of 32 are sent at once. A node that always began with the same ones would never get
/// to the others where these keep differing.
#[test]
fn every_part_of_a_list_that_differs_has_its_turn() {
    let mut ring = Ring::joined(2, &plain());
    tell_of(&mut ring, 200);
    let mut sent = Vec::new();
    for _ in 0..32 {
        // Nothing gets through, so all parts go on differing.
        ring.periods(1, |_, _, _| false);
        ring.wire.clear();
        let from = Member::new(1, 7);
        let buckets = [Digest([0xff, 0xff]); 32];
        let message = Message::bare(Body::Digests { buckets });
        ring.step(0, Input::Message { from, message }).unwrap();
        let parts = ring
            .wire
            .iter()
            .filter_map(|(_, _, message)| match message.body {
                Body::Records { first, .. } => Some(first),
                _ => None,
            });
        let before = sent.len();
        sent.extend(parts);
        assert_eq!(sent.len() - before, 4);
        let mut turn = sent[before..].to_vec();
        turn.sort_unstable();
        turn.dedup();
        assert_eq!(turn.len(), 4, "none goes twice at once");
    }
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), 32);
}

/// The rest of a range that node 0 asks for when a page continues at `next`.
fn goes_on(ring: &mut Ring, range: (u64, u64), next: u64) -> Option<(u64, u64)> {
    ring.wire.clear();
    let from = Member::new(1, 7);
    let message = Message::bare(Body::Records {
        first: Key(range.0),
        last: Key(range.1),
        next: Some(Key(next)),
        exchange: false,
    });
    ring.step(0, Input::Message { from, message }).unwrap();
    ring.wire
        .iter()
        .find_map(|(_, _, message)| match message.body {
            Body::Pull { first, last } => Some((first.0, last.0)),
            _ => None,
        })
}

/// Otherwise two nodes could be kept asking each other.
#[test]
fn a_page_goes_on_within_its_range_and_never_back() {
    let mut ring = Ring::joined(2, &plain());
    let range = (10, 20);
    for (next, rest) in [
        (9, None),
        (10, None),
        (11, Some((11, 20))),
        (20, Some((20, 20))),
        (21, None),
    ] {
        assert_eq!(goes_on(&mut ring, range, next), rest, "from {next}");
    }
}

/// The same while a joiner fetches its list, which then ends.
#[test]
fn a_fetched_page_that_does_not_go_on_is_the_last() {
    for (next, rest) in [(9, None), (10, None), (11, Some((11, u64::MAX)))] {
        let mut ring = Ring::new(1, &plain());
        let seeds = vec![NodeId(1)];
        ring.command(0, Command::Join { seeds }).unwrap();
        let you = ring.nodes[0].machine().me();
        let next_page = Some(Key(10));
        let message = Message::bare(Body::Welcome {
            you,
            next: next_page,
        });
        let from = Member::new(1, 7);
        ring.step(0, Input::Message { from, message }).unwrap();
        let range = (10, u64::MAX);
        assert_eq!(goes_on(&mut ring, range, next), rest, "from {next}");
    }
}

/// Except for the possible growth of its fixed part: the lengths of two lists, and the next key.
#[test]
fn a_page_is_filled_to_the_last_byte() {
    let longest = (0..16).map(|len| {
        let mut ring = Ring::joined(2, &Config::radio());
        for id in 100..130 {
            let mut message = Message::bare(Body::Unlucky);
            let from = Member::new(id, 0);
            message.records.push(Record {
                member: from,
                revision: 0,
                claim: Claim::Alive(Metadata(vec![7; len].into())),
            });
            ring.step(0, Input::Message { from, message }).unwrap();
        }
        ring.wire.clear();
        let (first, last) = (Key(0), Key(u64::MAX));
        let message = Message::bare(Body::Pull { first, last });
        let from = Member::new(1, 7);
        ring.step(0, Input::Message { from, message }).unwrap();
        let (from, _, page) = &ring.wire[0];
        assert!(matches!(page.body, Body::Records { next: Some(_), .. }));
        frame_len(*from, page)
    });
    assert_eq!(longest.max(), Some(127 - 3));
}
