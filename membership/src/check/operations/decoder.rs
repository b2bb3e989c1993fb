//! Bytes as messages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::Member;
use selvedge_sim::Bytes;

use crate::{Age, Body, Broadcast, Claim, Digest, Key, Message, Metadata, Record};

pub(super) fn byte_string(bytes: &mut Bytes<'_>, longest: u8) -> Box<[u8]> {
    let len = bytes.take() % (longest + 1);
    (0..len)
        .map(|_| bytes.take())
        .collect::<Vec<_>>()
        .into_boxed_slice()
}

/// A few bytes that differ, or many that do not: up to the longest that a frame holds.
pub(super) fn payload(bytes: &mut Bytes<'_>) -> Box<[u8]> {
    if bytes.flip() {
        return byte_string(bytes, 60);
    }
    let len = 6 * usize::from(bytes.take());
    Box::from_iter(core::iter::repeat_n(bytes.take(), len))
}

/// A member near `offset`, known or invented, in a life around the wrap.
fn member(bytes: &mut Bytes<'_>, offset: u64) -> Member {
    let byte = bytes.take();
    let id = offset.wrapping_add(u64::from(byte & 7));
    Member::new(
        id,
        u32::MAX.wrapping_sub(2).wrapping_add(u32::from(byte >> 5)),
    )
}

fn key(bytes: &mut Bytes<'_>) -> Key {
    Key(u64::from(bytes.take()) << 56 | u64::from(bytes.take()))
}

fn optional<T>(bytes: &mut Bytes<'_>, make: impl FnOnce(&mut Bytes<'_>) -> T) -> Option<T> {
    (bytes.flip()).then(|| make(bytes))
}

fn body(bytes: &mut Bytes<'_>, offset: u64) -> Body {
    let digest = |bytes: &mut Bytes<'_>| Digest([bytes.take() % 2, 0]);
    match bytes.take() % 12 {
        0 => Body::Ping {
            digest: digest(bytes),
            origin: optional(bytes, |bytes| member(bytes, offset)),
        },
        1 => Body::Ack {
            origin: optional(bytes, |bytes| member(bytes, offset)),
        },
        2 => Body::PingRequest {
            target: member(bytes, offset),
        },
        3 => Body::RelayedAck {
            target: member(bytes, offset),
        },
        4 => Body::Unlucky,
        5 => Body::Join,
        6 => Body::Welcome {
            you: member(bytes, offset),
            next: optional(bytes, key),
        },
        7 => Body::IdTaken {
            life: member(bytes, offset),
        },
        8 => Body::Digests {
            buckets: [digest(bytes); 32],
        },
        9 => Body::Pull {
            first: key(bytes),
            last: key(bytes),
        },
        10 => Body::Records {
            first: key(bytes),
            last: if bytes.flip() {
                Key(u64::MAX)
            } else {
                key(bytes)
            },
            next: optional(bytes, key),
            exchange: bytes.flip(),
        },
        _ => Body::Farewell,
    }
}

/// A message of anyone about anyone.
pub(super) fn message(bytes: &mut Bytes<'_>, offset: u64) -> (Member, Message) {
    let from = member(bytes, offset);
    let mut message = Message::bare(body(bytes, offset));
    for _ in 0..bytes.take() % 5 {
        let member = member(bytes, offset);
        let byte = bytes.take();
        let revision = u32::from(byte >> 4).wrapping_sub(4);
        let age = Age(u16::from(byte) * 16);
        let claim = match byte % 4 {
            0 => Claim::Alive(Metadata(payload(bytes))),
            1 => Claim::Suspect(Metadata(payload(bytes))),
            2 => Claim::Failed(Metadata(payload(bytes)), age),
            _ => Claim::Left(age),
        };
        message.records.push(Record {
            member,
            revision,
            claim,
        });
    }
    for _ in 0..bytes.take() % 2 {
        let origin = member(bytes, offset);
        let number = bytes.take().into();
        let payload = payload(bytes);
        message.broadcasts.push(Broadcast {
            origin,
            number,
            payload,
        });
    }
    (from, message)
}
