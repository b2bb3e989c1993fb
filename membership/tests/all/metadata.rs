//! Metadata: it belongs to the revision in which its member stated it, and all lists end with the
//! same.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]

use crate::ring;

use proptest::prelude::*;
use ring::{Ring, plain};
use selvedge_core::{Driver, Input, Member, NodeId};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, Event, Key, Membership, Message, Metadata, Record, Status,
};

const ALL: (Key, Key) = (Key(0), Key(u64::MAX));

fn word(word: &str) -> Metadata {
    Metadata(word.as_bytes().into())
}

/// Sends node 1's claim about a member to node 0.
fn notify(ring: &mut Ring, body: Body, member: Member, revision: u32, claim: Claim) {
    let mut message = Message::bare(body);
    message.records.push(Record {
        member,
        revision,
        claim,
    });
    let from = Member::new(1, 7);
    ring.step(0, Input::Message { from, message }).unwrap();
}

/// A page of a list.
fn page() -> Body {
    let (first, last) = ALL;
    Body::Records {
        first,
        last,
        next: None,
        exchange: false,
    }
}

/// A message that is no page.
fn news() -> Body {
    Body::Unlucky
}

/// Node 0's entry of a node: status, revision and metadata.
fn listed(ring: &Ring, id: u64) -> (Status, u32, String) {
    let view = ring.nodes[0].machine().member(NodeId(id)).unwrap();
    let metadata = String::from_utf8(view.metadata.into()).unwrap();
    (view.status, view.revision, metadata)
}

/// Three nodes that know each other; each had its metadata before it joined.
fn ring_of_three(config: &Config) -> Ring {
    let mut ring = Ring::new(3, config);
    for node in 0..3 {
        ring.command(node, Command::SetMetadata(word("old")))
            .unwrap();
        let seeds = if node == 0 { vec![] } else { vec![NodeId(0)] };
        ring.command(node, Command::Join { seeds }).unwrap();
        ring.settle(|_, _, _| true);
    }
    ring.periods(8, |_, _, _| true);
    for id in 1..3 {
        assert_eq!(listed(&ring, id), (Status::Alive, 0, "old".into()));
    }
    ring.events.clear();
    ring
}

/// A relay reports that the member answered it. No other node sends anything.
fn reached_by_relay(ring: &mut Ring, target: Member) {
    let from = Member::new(1, 7);
    let message = Message::bare(Body::RelayedAck { target });
    ring.step(0, Input::Message { from, message }).unwrap();
}

#[test]
fn the_metadata_of_a_newcomer_is_told_where_it_has_any() {
    let mut ring = ring_of_three(&plain());
    let [named, nameless] = [30, 31].map(|id| Member::new(id, 0));
    notify(&mut ring, news(), named, 0, Claim::Alive(word("new")));
    let none = Claim::Alive(Metadata::default());
    notify(&mut ring, news(), nameless, 0, none);
    let notified = |member| ring.events.contains(&(0, Event::MetadataChanged(member)));
    assert!(notified(named) && !notified(nameless), "{:?}", ring.events);
}

#[test]
fn who_failed_on_another_list_and_answers_a_relay_has_the_metadata_of_its_revision() {
    let mut ring = ring_of_three(&plain());
    let member = Member::new(2, 7);
    notify(
        &mut ring,
        page(),
        member,
        1,
        Claim::Failed(word("new"), Age::default()),
    );
    reached_by_relay(&mut ring, member);
    assert_eq!(listed(&ring, 2), (Status::Alive, 1, "new".into()));
    assert!(ring.events.contains(&(0, Event::MetadataChanged(member))));
}

/// The other list knows of the revision alone. A node that adopted it would send the old metadata
/// in the member's name.
#[test]
fn a_revision_that_came_without_metadata_is_told_to_nobody_as_alive() {
    let mut ring = ring_of_three(&plain());
    let member = Member::new(2, 7);
    let failed = Claim::Failed(Metadata::default(), Age::default());
    notify(&mut ring, page(), member, 1, failed);
    reached_by_relay(&mut ring, member);
    assert_eq!(listed(&ring, 2), (Status::Alive, 0, "old".into()));
    // In the end all lists have the member's own metadata.
    ring.command(2, Command::SetMetadata(word("new"))).unwrap();
    ring.periods(10, |_, _, _| true);
    assert_eq!(listed(&ring, 2), (Status::Alive, 1, "new".into()));
}

#[test]
fn a_page_about_a_suspect_or_failed_member_brings_its_metadata() {
    let failed = |metadata| Claim::Failed(metadata, Age::default());
    for claim in [Claim::Suspect, failed] {
        let mut ring = ring_of_three(&plain());
        let member = Member::new(2, 7);
        // It is suspected here too, so that it is not asked first.
        let suspect = Claim::Suspect(Metadata::default());
        notify(&mut ring, news(), member, 0, suspect);
        notify(&mut ring, page(), member, 3, claim(word("new")));
        let (status, revision, metadata) = listed(&ring, 2);
        assert_ne!(status, Status::Alive);
        assert_eq!((revision, metadata), (3, "new".into()));
        assert!(ring.events.contains(&(0, Event::MetadataChanged(member))));
    }
}

/// Metadata of an older revision gives way to the metadata of the newer one, whichever is larger,
/// and is not sent in the newer one's name. The host keeps it meanwhile, to reach the suspect.
#[test]
fn a_suspicion_that_came_without_metadata_does_not_make_the_old_one_new() {
    let mut ring = ring_of_three(&plain());
    let member = Member::new(2, 7);
    let suspect = Claim::Suspect(Metadata::default());
    notify(&mut ring, news(), member, 1, suspect);
    assert_eq!(listed(&ring, 2), (Status::Suspect, 1, "old".into()));
    ring.wire.clear();
    let (first, last) = ALL;
    let message = Message::bare(Body::Pull { first, last });
    let from = Member::new(1, 7);
    ring.step(0, Input::Message { from, message }).unwrap();
    let (_, _, answer) = &ring.wire[0];
    let record = answer.records.iter().find(|it| it.member == member);
    let notified = record.and_then(|record| record.claim.metadata());
    assert_eq!(notified, Some(&Metadata::default()));
    notify(&mut ring, news(), member, 1, Claim::Alive(word("a")));
    assert_eq!(listed(&ring, 2), (Status::Suspect, 1, "a".into()));
}

/// Node 1 comes back under the number of its former life, with `metadata`, and asks no node to let
/// it in. Returns the number under which it ends, and the number of its refutations.
fn comes_back_without_seeds(metadata: &str, config: &Config) -> (Member, u64) {
    let mut ring = ring_of_three(config);
    let me = Member::new(1, 7);
    ring.nodes[1] = Driver::new(Membership::new(me, config.clone()).unwrap());
    ring.command(1, Command::SetMetadata(word(metadata)))
        .unwrap();
    ring.command(1, Command::Join { seeds: vec![] }).unwrap();
    ring.periods(30, |_, _, _| true);
    for node in &ring.nodes {
        let machine = node.machine();
        assert_eq!(machine.live(), 3);
        assert_eq!(machine.metadata(NodeId(1)), Some(metadata.as_bytes()));
        assert_eq!(machine.metadata(NodeId(2)), Some(&b"old"[..]));
    }
    let machine = ring.nodes[1].machine();
    (machine.me(), machine.counters().refutations)
}

/// With comparison of lists and without.
#[test]
fn metadata_of_a_life_under_a_used_number_ends_as_the_node_says() {
    for sync_after in [0, 1, 4] {
        let config = plain().with_sync_after(sync_after);
        let me = Member::new(1, 7);
        // If its own metadata is larger, all take it. If it is smaller, the node learns of the
        // other one, and raises its revision.
        assert_eq!(comes_back_without_seeds("young", &config).0, me);
        let (again, refutations) = comes_back_without_seeds("new", &config);
        assert_eq!((again, refutations > 0), (me, true));
    }
}

/// A node that takes other metadata passes it on, so the member learns of it.
#[test]
fn a_word_that_a_member_never_said_reaches_it_and_is_put_right() {
    let mut ring = ring_of_three(&plain());
    let member = Member::new(2, 7);
    notify(&mut ring, news(), member, 0, Claim::Alive(word("other")));
    assert_eq!(listed(&ring, 2), (Status::Alive, 0, "other".into()));
    ring.periods(12, |_, _, _| true);
    assert_eq!(listed(&ring, 2), (Status::Alive, 1, "old".into()));
}

#[test]
fn lists_that_differ_in_metadata_alone_have_different_digests() {
    let digest_with = |metadata: &str| {
        let mut ring = ring_of_three(&plain());
        let claim = Claim::Alive(word(metadata));
        notify(&mut ring, news(), Member::new(9, 7), 0, claim);
        let period = ring.nodes[0].machine().config().period;
        let until = ring.now + period * 2;
        let seen = core::cell::Cell::new(None);
        let is_first = |node| node == 0;
        ring.run_until(until, is_first, |_, _, message| {
            if let Body::Ping { digest, .. } = message.body {
                seen.set(Some(digest));
            }
            false
        });
        seen.get().unwrap()
    };
    assert_eq!(digest_with("one"), digest_with("one"));
    assert_ne!(digest_with("one"), digest_with("two"));
    assert_ne!(digest_with(""), digest_with("\0"));
}

/// The node that answered the first request has the metadata of that request.
#[test]
fn metadata_that_changes_while_a_node_asks_to_be_let_in_is_a_new_word() {
    let mut ring = ring_of_three(&plain());
    let me = Member::new(3, 7);
    let machine = Membership::new(me, plain()).unwrap();
    ring.nodes.push(Driver::new(machine));
    ring.command(3, Command::SetMetadata(word("first")))
        .unwrap();
    let seeds = vec![NodeId(0)];
    ring.command(3, Command::Join { seeds }).unwrap();
    ring.command(3, Command::SetMetadata(word("changed")))
        .unwrap();
    // It does not wait until it learns which metadata the others have.
    assert_eq!(ring.nodes[3].machine().member(me.id).unwrap().revision, 1);
    ring.settle(|_, _, _| true);
    assert_eq!(listed(&ring, 3), (Status::Alive, 0, "first".into()));
    ring.periods(8, |_, _, _| true);
    assert_eq!(listed(&ring, 3), (Status::Alive, 1, "changed".into()));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// If two lives had one number, one revision has two metadata. For any order and repetition
    /// of claims, and any suspicions without metadata in between, lists agree.
    #[test]
    fn the_metadata_of_a_revision_does_not_depend_on_what_was_heard_first(
        (first, second) in proptest::collection::vec((0_u32..3, 0_usize..5), 1..10)
            .prop_map(|mut received| {
                // Some record of the latest revision has metadata.
                let latest = received.iter().map(|&(revision, _)| revision).max().unwrap_or(0);
                received.push((latest, 0));
                received
            })
            .prop_flat_map(|received| {
                let twice = [received.clone(), received.clone()].concat();
                (Just(received), Just(twice).prop_shuffle())
            }),
    ) {
        let lists = [first, second].map(|received| {
            let mut ring = ring_of_three(&plain());
            let member = Member::new(20, 0);
            for (revision, what) in received {
                let (body, claim) = match what {
                    0 => (news(), Claim::Alive(word("m"))),
                    1 => (news(), Claim::Alive(word("z"))),
                    2 => (news(), Claim::Suspect(Metadata::default())),
                    3 => (page(), Claim::Suspect(word("a"))),
                    _ => (news(), Claim::Failed(Metadata::default(), Age::default())),
                };
                notify(&mut ring, body, member, revision, claim);
            }
            listed(&ring, 20)
        });
        prop_assert_eq!(&lists[0], &lists[1]);
    }
}
