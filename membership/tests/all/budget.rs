//! Frame budgets: the longest metadata, and data that was stored under larger budgets.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use crate::ring;

use ring::{Ring, plain};
use selvedge_core::settings::OutOfRange;
use selvedge_core::wire::frame_len;
use selvedge_core::{Driver, Input, Member, NodeId};
use selvedge_membership::{
    Body, Broadcast, Claim, Command, Config, ConfigError, Digest, Event, Key, Membership, Message,
    Metadata, Record, Reject,
};

/// The longest metadata, or the longest broadcast, that a budget allows.
fn longest(frame_budget: u16) -> u16 {
    let config = plain()
        .with_frame_budget(frame_budget)
        .with_metadata_limit(u16::MAX)
        .with_broadcast_len(0);
    match Membership::new(Member::new(0, 7), config) {
        Err(ConfigError::Range(OutOfRange(limit))) => limit.most.try_into().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The largest settings that a budget allows.
fn widest(frame_budget: u16) -> Config {
    let longest = longest(frame_budget);
    plain()
        .with_frame_budget(frame_budget)
        .with_metadata_limit(longest)
        .with_broadcast_len(longest)
}

fn bytes(len: u16) -> Metadata {
    Metadata(vec![0xab; len.into()].into())
}

/// Id, incarnation, revision and the keys of the page have their longest encoding.
#[test]
fn the_longest_metadata_fits_a_page_at_every_budget() {
    let upper = Key(1 << 63);
    for budget in (96..260).chain([1_400, 16_500, u16::MAX]) {
        let config = widest(budget);
        let mut ring = Ring::new(1, &config);
        let me = Member::new(u64::MAX, u32::MAX);
        ring.nodes[0] = Driver::new(Membership::new(me, config.clone()).unwrap());
        ring.command(0, Command::Join { seeds: vec![] }).unwrap();
        let others: Vec<Member> = (1..9)
            .map(|below| Member::new(u64::MAX - below, u32::MAX))
            .collect();
        for &member in &others {
            let mut message = Message::bare(Body::Unlucky);
            message.records.push(Record {
                member,
                revision: u32::MAX,
                claim: Claim::Alive(bytes(config.metadata_limit)),
            });
            let from = Member::new(1, 0);
            ring.step(0, Input::Message { from, message }).unwrap();
        }
        let mut first = Some(upper);
        let mut found = 0;
        while let Some(from_here) = first {
            ring.wire.clear();
            let (first_key, last) = (from_here, Key(u64::MAX));
            let message = Message::bare(Body::Pull {
                first: first_key,
                last,
            });
            let from = others[0];
            ring.step(0, Input::Message { from, message }).unwrap();
            let (_, _, page) = &ring.wire[0];
            assert!(frame_len(me, page) <= budget.into(), "at {budget}");
            found += page
                .records
                .iter()
                .filter(|it| others.contains(&it.member))
                .count();
            let Body::Records { next, .. } = page.body else {
                panic!("{page:?}")
            };
            first = next;
        }
        // The number of members with hashed ids in the upper half.
        assert_eq!(found, 6, "at {budget}");
    }
}

fn with_frames_of(budget: u16) -> Command {
    Command::SetConfig(Box::new(widest(budget)))
}

/// Also while it says good-bye, and when it asks to be let in again.
#[test]
fn no_frame_is_longer_than_the_budget_that_a_node_was_given_last() {
    let seeds = || vec![NodeId(0)];
    let mut ring = Ring::joined(2, &widest(1_400));
    ring.command(1, Command::SetMetadata(bytes(1_000))).unwrap();
    ring.periods(8, |_, _, _| true);
    // The stored data does not fit: nothing changes until the application shortens it.
    let before = ring.nodes[1].machine().clone();
    let (len, limit) = (1_000, usize::from(longest(127)));
    assert_eq!(
        ring.command(1, with_frames_of(127)),
        Err(Reject::MetadataTooLong { len, limit })
    );
    assert_eq!(*ring.nodes[1].machine(), before);
    ring.command(1, Command::SetMetadata(bytes(longest(127))))
        .unwrap();
    ring.command(1, with_frames_of(127)).unwrap();
    let fits = |from: Member, _: NodeId, message: &Message| {
        let len = frame_len(from, message);
        assert!(from.id.0 == 0 || len <= 127, "{len} bytes: {message:?}");
        true
    };
    ring.periods(8, fits);
    ring.command(1, Command::Leave).unwrap();
    ring.periods(8, fits);
    ring.command(1, Command::Join { seeds: seeds() }).unwrap();
    ring.settle(fits);
    ring.periods(8, fits);
    assert_eq!(
        ring.nodes[0].machine().metadata(NodeId(1)),
        Some(&bytes(longest(127)).0[..]),
        "and so it is in again"
    );
}

/// News and broadcasts from a time of larger frames are given up, and delay no other news.
#[test]
fn what_fits_no_frame_any_more_holds_up_no_news() {
    let mut ring = Ring::joined(3, &widest(1_400));
    let long = Member::new(20, 7);
    let mut message = Message::bare(Body::Unlucky);
    message.records.push(Record {
        member: long,
        revision: 0,
        claim: Claim::Alive(bytes(1_000)),
    });
    let from = Member::new(1, 7);
    ring.step(0, Input::Message { from, message }).unwrap();
    ring.command(0, Command::Broadcast(bytes(1_000).0)).unwrap();
    ring.command(0, with_frames_of(127)).unwrap();
    assert_eq!(ring.nodes[0].machine().counters().broadcasts_dropped, 1);
    let payload: Box<[u8]> = Box::new(*b"short");
    ring.command(0, Command::SetMetadata(Metadata(payload.clone())))
        .unwrap();
    ring.command(0, Command::Broadcast(payload.clone()))
        .unwrap();
    // A node that asks for node 0's list gets the records that fit, and no page that it has to
    // refuse.
    let limit = usize::from(longest(127));
    let (first, last) = (Key(0), Key(u64::MAX));
    let message = Message::bare(Body::Pull { first, last });
    ring.step(0, Input::Message { from, message }).unwrap();
    ring.periods(8, |from, _, message| {
        let len = frame_len(from, message);
        assert!(from.id.0 > 0 || len <= 127, "{len} bytes: {message:?}");
        let metadata = message.records.iter().filter_map(|it| it.claim.metadata());
        let notified = metadata.map(|metadata| metadata.0.len()).max();
        assert!(from.id.0 > 0 || notified <= Some(limit), "{message:?}");
        true
    });
    for node in [1, 2] {
        let origin = Member::new(0, 7);
        let payload = payload.clone();
        assert_eq!(
            ring.nodes[node].machine().metadata(origin.id),
            Some(&payload[..])
        );
        assert!(
            ring.events
                .contains(&(node, Event::BroadcastReceived { origin, payload }))
        );
    }
    // Its own application still gets it.
    assert_eq!(
        ring.nodes[0].machine().metadata(long.id),
        Some(&bytes(1_000).0[..])
    );
}

/// Eight times as many broadcasts as may wait are remembered, for any former limit.
#[test]
fn broadcasts_arrive_once_after_the_limit_was_raised() {
    let none = plain().with_broadcast_limit(0);
    let mut ring = Ring::joined(2, &none);
    ring.command(0, Command::SetConfig(Box::new(plain())))
        .unwrap();
    let origin = Member::new(1, 7);
    for number in (0..8 * 32).chain(0..8 * 32) {
        let mut message = Message::bare(Body::Unlucky);
        message.broadcasts.push(Broadcast {
            origin,
            number,
            payload: Box::new([7]),
        });
        ring.step(
            0,
            Input::Message {
                from: origin,
                message,
            },
        )
        .unwrap();
    }
    let arrived = ring
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::BroadcastReceived { .. }));
    assert_eq!(arrived.count(), 8 * 32);
}

/// While many nodes with long metadata join, updates about them fill all frames. A message has the
/// newest one and the first broadcast all the same, both as long as the defaults allow.
#[test]
fn a_broadcast_does_not_wait_for_updates_with_long_metadata() {
    let mut ring = Ring::joined(2, &plain());
    let config = plain();
    let from = Member::new(1, 7);
    for id in 10..60 {
        let mut message = Message::bare(Body::Unlucky);
        message.records.push(Record {
            member: Member::new(id, 0),
            revision: 0,
            claim: Claim::Alive(bytes(config.metadata_limit)),
        });
        ring.step(0, Input::Message { from, message }).unwrap();
    }
    let payload = bytes(config.broadcast_len).0;
    ring.command(0, Command::Broadcast(payload)).unwrap();
    ring.wire.clear();
    let ping = Message::bare(Body::Ping {
        digest: Digest::default(),
        origin: None,
    });
    for newest in [59, 58] {
        let message = ping.clone();
        ring.step(0, Input::Message { from, message }).unwrap();
        let (_, _, answer) = ring.wire.remove(0);
        assert_eq!(answer.records[0].member.id, NodeId(newest));
        assert_eq!(
            answer.broadcasts.len(),
            1,
            "{} records",
            answer.records.len()
        );
        let numbers = answer.records.iter().map(|it| it.member.id);
        assert_eq!(numbers.collect::<BTreeSet<_>>().len(), answer.records.len());
    }
}
