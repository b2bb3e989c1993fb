//! Two nodes that receive the same records in another order, and twice, end with the same list.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::ring;

use proptest::prelude::*;
use ring::{Ring, plain};
use selvedge_core::{Input, Member, NodeId};
use selvedge_membership::{Age, Body, Claim, Message, Metadata, Record, Status};

fn record() -> impl Strategy<Value = Record> {
    let claim = prop_oneof![
        4 => Just(Claim::Alive(Metadata::default())),
        4 => Just(Claim::Suspect(Metadata::default())),
        4 => Just(Claim::Failed(Metadata::default(), Age::default())),
        1 => Just(Claim::Left(Age::default())),
    ];
    // Around the wrap of both numbers.
    let life = (20_u64..23, 0_u32..3).prop_map(|(id, life)| Member::new(id, life.wrapping_sub(1)));
    let revision = (0_u32..4).prop_map(|revision| revision.wrapping_sub(2));
    (life, revision, claim).prop_map(|(member, revision, claim)| Record {
        member,
        revision,
        claim,
    })
}

fn receive(ring: &mut Ring, records: &[Record]) {
    for record in records {
        let mut message = Message::bare(Body::Ack { origin: None });
        message.records.push(record.clone());
        let from = Member::new(1, 7);
        ring.step(0, Input::Message { from, message }).unwrap();
    }
}

/// The revision of a member that left decides nothing any more.
fn list(ring: &Ring) -> Vec<(Member, Status, Option<u32>)> {
    ring.nodes[0]
        .machine()
        .members()
        .filter(|view| view.member.id.0 >= 20)
        .map(|view| {
            let revision = (view.status != Status::Left).then_some(view.revision);
            (view.member, view.status, revision)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn order_and_repetition_change_nothing(
        (first, second) in proptest::collection::vec(record(), 1..14).prop_flat_map(|records| {
            let twice = [records.clone(), records.clone()].concat();
            (Just(records), Just(twice).prop_shuffle())
        }),
    ) {
        let lists = [first, second].map(|records| {
            let mut ring = Ring::joined(2, &plain());
            receive(&mut ring, &records);
            list(&ring)
        });
        prop_assert_eq!(&lists[0], &lists[1]);
    }

    #[test]
    fn who_said_good_bye_has_left_whatever_else_is_heard_and_when(
        records in Just([
            (0, Claim::Alive(Metadata::default())),
            (0, Claim::Suspect(Metadata::default())),
            (1, Claim::Alive(Metadata::default())),
            (1, Claim::Failed(Metadata::default(), Age::default())),
            (0, Claim::Left(Age::default())),
        ].to_vec()).prop_shuffle(),
    ) {
        let member = Member::new(20, 0);
        let records: Vec<_> = records
            .into_iter()
            .map(|(revision, claim)| Record { member, revision, claim })
            .collect();
        let mut ring = Ring::joined(2, &plain());
        receive(&mut ring, &records);
        prop_assert_eq!(ring.status(0, NodeId(20).0), Some(Status::Left));
    }
}
