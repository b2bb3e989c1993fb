//! Any message that the format can carry.

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_membership::{
    Age, Body, Broadcast, Claim, Digest, KIND, Key, Message, Metadata, Record,
};

/// The frame of a message, as a host sends it.
pub(crate) fn encode(from: Member, message: &Message) -> Vec<u8> {
    let mut frame = vec![VERSION, KIND];
    let message = message.clone();
    frame.extend(postcard::to_allocvec(&Envelope { from, message }).unwrap());
    frame
}

/// The envelope in a frame, as a host reads it.
pub(crate) fn decode(frame: &[u8]) -> Option<Envelope<Message>> {
    match frame {
        [VERSION, KIND, envelope @ ..] => postcard::from_bytes(envelope).ok(),
        _ => None,
    }
}

pub(crate) fn member() -> impl Strategy<Value = Member> {
    let id = prop_oneof![0_u64..300, any::<u64>()];
    let incarnation = prop_oneof![0_u32..3, any::<u32>()];
    (id, incarnation).prop_map(|(id, incarnation)| Member::new(id, incarnation))
}

fn bytes(longest: usize) -> impl Strategy<Value = Box<[u8]>> {
    vec(any::<u8>(), 0..=longest).prop_map(Vec::into_boxed_slice)
}

fn metadata() -> impl Strategy<Value = Metadata> {
    bytes(40).prop_map(Metadata)
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let claim = prop_oneof![
        metadata().prop_map(Claim::Alive),
        metadata().prop_map(Claim::Suspect),
        (metadata(), any::<u16>()).prop_map(|(metadata, age)| Claim::Failed(metadata, Age(age))),
        any::<u16>().prop_map(|age| Claim::Left(Age(age))),
    ];
    let revision = prop_oneof![0_u32..3, any::<u32>()];
    (member(), revision, claim).prop_map(|(member, revision, claim)| Record {
        member,
        revision,
        claim,
    })
}

fn key() -> impl Strategy<Value = Key> {
    any::<u64>().prop_map(Key)
}

pub(crate) fn body() -> impl Strategy<Value = Body> {
    let digest = any::<[u8; 2]>().prop_map(Digest);
    let next = || proptest::option::of(key());
    prop_oneof![
        (digest.clone(), proptest::option::of(member()))
            .prop_map(|(digest, origin)| Body::Ping { digest, origin }),
        proptest::option::of(member()).prop_map(|origin| Body::Ack { origin }),
        member().prop_map(|target| Body::PingRequest { target }),
        member().prop_map(|target| Body::RelayedAck { target }),
        Just(Body::Unlucky),
        Just(Body::Join),
        (member(), next()).prop_map(|(you, next)| Body::Welcome { you, next }),
        member().prop_map(|life| Body::IdTaken { life }),
        proptest::array::uniform32(digest).prop_map(|buckets| Body::Digests { buckets }),
        (key(), key()).prop_map(|(first, last)| Body::Pull { first, last }),
        (key(), key(), next(), any::<bool>()).prop_map(|(first, last, next, exchange)| {
            Body::Records {
                first,
                last,
                next,
                exchange,
            }
        }),
        Just(Body::Farewell),
    ]
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let broadcast =
        (member(), any::<u32>(), bytes(60)).prop_map(|(origin, number, payload)| Broadcast {
            origin,
            number,
            payload,
        });
    (body(), vec(record(), 0..8), vec(broadcast, 0..3)).prop_map(|(body, records, broadcasts)| {
        let mut message = Message::bare(body);
        message.records.extend(records);
        message.broadcasts = broadcasts.into_iter().collect();
        message
    })
}
