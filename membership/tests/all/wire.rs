//! The frame format: lengths, round trips, invalid frames, and golden vectors.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::frames;

use crate::allocator::peak;
use frames::{decode, encode, member, message};
use proptest::prelude::*;
use selvedge_core::Member;
use selvedge_core::wire::frame_len;
use selvedge_membership::{Age, Body, Broadcast, Claim, Digest, Key, Message, Metadata, Record};

proptest! {
    #[test]
    fn a_frame_is_as_long_as_the_machine_thinks(from in member(), message in message()) {
        prop_assert_eq!(frame_len(from, &message), encode(from, &message).len());
    }

    #[test]
    fn what_is_sent_arrives(from in member(), message in message()) {
        let envelope = decode(&encode(from, &message)).unwrap();
        prop_assert_eq!((envelope.from, envelope.message), (from, message));
    }

    #[test]
    fn a_frame_cut_short_is_no_frame(from in member(), message in message(), cut in any::<usize>()) {
        let frame = encode(from, &message);
        prop_assert!(decode(&frame[..cut % frame.len()]).is_none());
    }

    #[test]
    fn any_bytes_are_a_frame_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut frame = vec![selvedge_core::wire::VERSION, selvedge_membership::KIND];
        frame.extend(bytes);
        if let Some(envelope) = decode(&frame) {
            let again = encode(envelope.from, &envelope.message);
            prop_assert_eq!(decode(&again), Some(envelope));
        }
    }
}

/// A list that claims four billion items is read until the bytes end, and no further.
#[test]
fn a_claimed_length_reserves_nothing() {
    let mut frame = encode(Member::new(1, 0), &Message::bare(Body::Join));
    // The last two bytes are the lengths of the empty lists.
    frame.truncate(frame.len() - 2);
    frame.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    let (envelope, peak) = peak(|| decode(&frame));
    assert!(envelope.is_none());
    assert!(peak < 10_000, "{peak} bytes were asked for");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_format_stands_still() {
    let (a, b) = (Member::new(0x1234, 7), Member::new(9, 1));
    let loaded = {
        let mut message = Message::bare(Body::Ping {
            digest: Digest([0xab, 0xcd]),
            origin: None,
        });
        let record = |revision, claim| Record {
            member: b,
            revision,
            claim,
        };
        message.records.extend([
            record(0, Claim::Alive(Metadata(Box::new(*b"hi")))),
            record(1, Claim::Suspect(Metadata::default())),
            record(2, Claim::Failed(Metadata::default(), Age(5))),
            record(300, Claim::Left(Age(300))),
        ]);
        let payload = Box::new(*b"yo");
        message.broadcasts.push(Broadcast {
            origin: b,
            number: 5,
            payload,
        });
        message
    };
    let (first, last) = (Key(1), Key(0x80));
    let vectors = [
        (
            loaded,
            "0101b4240700abcd000409010000026869090101010009010202000509 01ac0203ac020109010502796f",
        ),
        (
            Message::bare(Body::Ping {
                digest: Digest([1, 2]),
                origin: Some(b),
            }),
            "0101b4240700010201090100 00",
        ),
        (
            Message::bare(Body::Ack { origin: None }),
            "0101b4240701000000",
        ),
        (
            Message::bare(Body::PingRequest { target: b }),
            "0101b424070209010000",
        ),
        (
            Message::bare(Body::RelayedAck { target: b }),
            "0101b424070309010000",
        ),
        (Message::bare(Body::Unlucky), "0101b42407040000"),
        (Message::bare(Body::Join), "0101b42407050000"),
        (
            Message::bare(Body::Welcome {
                you: b,
                next: Some(last),
            }),
            "0101b424070609010180010000",
        ),
        (
            Message::bare(Body::IdTaken { life: b }),
            "0101b424070709010000",
        ),
        (
            Message::bare(Body::Pull { first, last }),
            "0101b42407090180010000",
        ),
        (
            Message::bare(Body::Records {
                first,
                last,
                next: None,
                exchange: true,
            }),
            "0101b424070a01800100010000",
        ),
        (Message::bare(Body::Farewell), "0101b424070b0000"),
    ];
    for (message, expected) in vectors {
        assert_eq!(
            hex(&encode(a, &message)),
            expected.replace(' ', ""),
            "{message:?}"
        );
    }
    let digests = encode(
        a,
        &Message::bare(Body::Digests {
            buckets: [Digest([1, 2]); 32],
        }),
    );
    assert_eq!(
        hex(&digests),
        format!("0101b4240708{}0000", "0102".repeat(32))
    );
}
