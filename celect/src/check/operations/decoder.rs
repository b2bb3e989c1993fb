//! Bytes as messages.

use selvedge_core::{Member, Span};
use selvedge_sim::Bytes;

use crate::{Ballot, LeaderState, Members, Message, Source};

/// Decodes a message from any sender about any node.
pub(super) fn message(bytes: &mut Bytes<'_>, first: Member) -> (Member, Message) {
    let from = member(bytes, first);
    let message = match bytes.take() % 12 {
        0 | 1 => Message::Query {
            ballot: ballot(bytes, from, first),
            lowest: bytes.take(),
            suspected: bytes.take(),
            want: u16::from(bytes.take()) * 257,
            exclude: members(bytes, first),
            no_majority: bytes.take() > 127,
        },
        2 | 3 => Message::Response {
            ballot: ballot(bytes, from, first),
            candidates: members(bytes, first),
            unhealthy: members(bytes, first),
            known: members(bytes, first),
        },
        4 => Message::Appoint {
            ballot: ballot(bytes, from, first),
            life: member(bytes, first).incarnation.0,
            no_majority: bytes.take() > 127,
        },
        5 | 6 => Message::Leader {
            ballot: ballot(bytes, from, first),
            leader: member(bytes, first),
            renewal: number(bytes) as u32,
            lease: Span(number(bytes)),
            state: match bytes.take() {
                0..32 => LeaderState::Ended,
                32..64 => LeaderState::NoMajority,
                _ => LeaderState::Leading,
            },
            covered: members(bytes, first).to_vec().into(),
        },
        7 => Message::LeaderAck {
            ballot: ballot(bytes, from, first),
            renewal: number(bytes) as u32,
        },
        8 => Message::SampleQuery {
            run: number(bytes) as u32,
            from: member(bytes, first).id,
        },
        9 => Message::SampleResponse {
            run: number(bytes) as u32,
            life: member(bytes, first).incarnation.0,
            from: member(bytes, first).id,
            members: members(bytes, first),
            more: bytes.take() < 128,
        },
        10 => Message::Feedback {
            ballot: ballot(bytes, from, first),
            answers: number(bytes) as u16,
            missing: number(bytes) as u16,
        },
        _ => Message::Estimate {
            ballot: ballot(bytes, from, first),
            number: number(bytes) as u32,
            source: if bytes.take() < 128 {
                Source::Sampling
            } else {
                Source::Feedback
            },
            upper_bound: number(bytes) as u16,
            miss: number(bytes) as u32,
        },
    };
    (from, message)
}

/// Decodes a ballot, mostly the sender's.
fn ballot(bytes: &mut Bytes<'_>, from: Member, first: Member) -> Ballot {
    Ballot {
        epoch: number(bytes),
        initiator: if bytes.take() < 192 {
            from
        } else {
            member(bytes, first)
        },
        step: number(bytes) as u32,
    }
}

fn members(bytes: &mut Bytes<'_>, first: Member) -> Members {
    let count = match bytes.take() {
        few @ 0..=239 => few % 5,
        many => many,
    };
    (0..count).map(|_| member(bytes, first)).collect()
}

/// Decodes a member near `first`, known or invented, in a life near its own.
fn member(bytes: &mut Bytes<'_>, first: Member) -> Member {
    let byte = bytes.take();
    let id = first.id.0.wrapping_add(u64::from(byte & 31));
    let life = first.incarnation.0.wrapping_add(u32::from(byte >> 6));
    Member::new(id, life.wrapping_sub(1))
}

/// Decodes a number, mostly a small number in use, rarely close to the largest.
fn number(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.take() {
        byte @ 0..=239 => u64::from(byte % 12),
        byte => u64::MAX - u64::from(byte - 240),
    }
}
