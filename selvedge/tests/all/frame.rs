//! Frames are read as they were written, and any bytes are survived.

#![allow(
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use proptest::prelude::*;
use selvedge::frame::{FrameError, decode, encode};
use selvedge_core::wire::{Envelope, VERSION, frame_len};
use selvedge_core::{Member, NodeId};
use selvedge_membership::{
    Age, Body, Broadcast, Claim, Digest, KIND, Key, Message, Metadata, Record,
};

const BUDGET: usize = 1_400;

fn member() -> impl Strategy<Value = Member> {
    (any::<u64>(), any::<u32>()).prop_map(|(id, incarnation)| Member::new(id, incarnation))
}

fn body() -> impl Strategy<Value = Body> {
    let key = || any::<u64>().prop_map(Key);
    prop_oneof![
        (any::<[u8; 2]>(), proptest::option::of(member())).prop_map(|(digest, origin)| {
            Body::Ping {
                digest: Digest(digest),
                origin,
            }
        }),
        proptest::option::of(member()).prop_map(|origin| Body::Ack { origin }),
        member().prop_map(|target| Body::PingRequest { target }),
        Just(Body::Join),
        Just(Body::Farewell),
        (member(), proptest::option::of(key())).prop_map(|(you, next)| Body::Welcome { you, next }),
        (key(), key(), proptest::option::of(key()), any::<bool>()).prop_map(
            |(first, last, next, exchange)| Body::Records {
                first,
                last,
                next,
                exchange
            }
        ),
    ]
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    proptest::collection::vec(any::<u8>(), 0..24).prop_map(Vec::into_boxed_slice)
}

fn message() -> impl Strategy<Value = Message> {
    let claim = prop_oneof![
        bytes().prop_map(|bytes| Claim::Alive(Metadata(bytes))),
        bytes().prop_map(|bytes| Claim::Suspect(Metadata(bytes))),
        (bytes(), any::<u16>()).prop_map(|(bytes, age)| Claim::Failed(Metadata(bytes), Age(age))),
        any::<u16>().prop_map(|age| Claim::Left(Age(age))),
    ];
    let record = (member(), any::<u32>(), claim).prop_map(|(member, revision, claim)| Record {
        member,
        revision,
        claim,
    });
    let broadcast =
        (member(), any::<u32>(), bytes()).prop_map(|(origin, number, payload)| Broadcast {
            origin,
            number,
            payload,
        });
    (
        body(),
        proptest::collection::vec(record, 0..6),
        proptest::collection::vec(broadcast, 0..3),
    )
        .prop_map(|(body, records, broadcasts)| Message {
            body,
            records: records.into_iter().collect(),
            broadcasts: broadcasts.into_iter().collect(),
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read(from in member(), message in message()) {
        let mut frame = vec![7; 3];
        prop_assert_eq!(encode(from, &message, BUDGET, &mut frame), Ok(()));
        prop_assert_eq!(frame.len(), frame_len(from, &message));
        let read = decode::<Message>(&frame, BUDGET);
        prop_assert_eq!(read, Ok(Envelope { from, message }));
    }

    #[test]
    fn a_cut_or_lengthened_frame_is_malformed(
        from in member(), message in message(), cut in any::<proptest::sample::Index>(),
    ) {
        let mut frame = Vec::new();
        prop_assert_eq!(encode(from, &message, BUDGET, &mut frame), Ok(()));
        let part = &frame[..cut.index(frame.len())];
        prop_assert_eq!(decode::<Message>(part, BUDGET), Err(FrameError::Malformed));
        frame.push(0);
        prop_assert_eq!(decode::<Message>(&frame, BUDGET), Err(FrameError::Malformed));
    }

    #[test]
    fn any_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), ours in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if ours {
            bytes.splice(0..0, [VERSION, KIND]);
        }
        if let Ok(envelope) = decode::<Message>(&bytes, BUDGET) {
            prop_assert!(envelope.message.records.len() <= bytes.len());
        }
    }

    #[test]
    fn a_damaged_frame_is_survived(
        from in member(), message in message(),
        at in any::<proptest::sample::Index>(), flip in 1..=u8::MAX,
    ) {
        let mut frame = Vec::new();
        prop_assert_eq!(encode(from, &message, BUDGET, &mut frame), Ok(()));
        let at = at.index(frame.len());
        frame[at] ^= flip;
        let read = decode::<Message>(&frame, BUDGET);
        prop_assert_ne!(read, Ok(Envelope { from, message }));
    }
}

#[test]
fn strangers_are_told_apart() {
    let read = |bytes: &[u8]| decode::<Message>(bytes, 8).err();
    assert_eq!(read(&[]), Some(FrameError::Malformed));
    assert_eq!(read(&[9, KIND, 1]), Some(FrameError::Version { found: 9 }));
    let other = FrameError::Kind {
        found: 77,
        expected: KIND,
    };
    assert_eq!(read(&[VERSION, 77, 1]), Some(other));
    assert_eq!(
        read(&[0; 9]),
        Some(FrameError::Oversize { len: 9, limit: 8 })
    );
}

#[test]
fn what_exceeds_the_budget_is_not_sent() {
    let mut frame = Vec::new();
    let message = Message::bare(Body::Join);
    let from = Member {
        id: NodeId(u64::MAX),
        ..Member::default()
    };
    let refused = encode(from, &message, 4, &mut frame);
    assert!(matches!(
        refused,
        Err(FrameError::Oversize { limit: 4, .. })
    ));
    assert!(frame.is_empty());
}
