//! Decoding of bytes into messages.

use selvedge_core::Member;
use selvedge_sim::Bytes;

use crate::{Branch, Message, Request, Rival, Rivals, Token, TreeId};

/// A message from any node about any node.
pub(super) fn message(bytes: &mut Bytes<'_>, first: Member) -> (Member, Message) {
    let from = member(bytes, first);
    let kind = bytes.take();
    if kind >= 128 {
        return (from, slow_message(bytes, kind, first));
    }
    let message = match kind % 8 {
        0 | 1 => Message::Request {
            request: Request {
                number: number(bytes),
                up_to: number(bytes),
                last: number(bytes),
            },
            after: after(bytes, first),
        },
        2..=4 => Message::Ok {
            life: member(bytes, first).incarnation.0,
            number: number(bytes),
            after: after(bytes, first),
            rivals: rivals(bytes, first),
            more: bytes.flip(),
            floor: token(bytes, first),
        },
        5 => Message::Wait {
            number: number(bytes),
        },
        6 => Message::Release {
            number: number(bytes),
            last: number(bytes),
            over: number(bytes),
        },
        _ => match bytes.take() % 4 {
            0 | 2 => Message::Fence {
                token: token(bytes, first),
            },
            1 => Message::Floor {
                token: token(bytes, first),
            },
            _ => Message::Abstain {
                life: member(bytes, first).incarnation.0,
                number: number(bytes),
                over: number(bytes),
                floor: token(bytes, first),
            },
        },
    };
    (from, message)
}

/// A message about any node's tree.
fn slow_message(bytes: &mut Bytes<'_>, kind: u8, first: Member) -> Message {
    let tree = TreeId {
        root: member(bytes, first),
        number: number(bytes),
        attempt: (bytes.take() % 4).into(),
    };
    match kind % 8 {
        0 => Message::Join {
            tree,
            up_to: number(bytes),
            last: number(bytes),
        },
        1 => Message::Nack { tree },
        2 | 3 => Message::Echo {
            life: member(bytes, first).incarnation.0,
            tree,
            levels: bytes.take() % 10,
            branches: (0..bytes.take() % 6)
                .map(|_| Branch {
                    depth: bytes.take() % 4,
                    member: member(bytes, first),
                })
                .collect(),
        },
        4 => Message::Up {
            life: member(bytes, first).incarnation.0,
            tree,
            // Few, or as many as there can be.
            oks: match bytes.take() {
                255 => u32::MAX,
                few => u32::from(few % 8),
            },
            after: after(bytes, first),
            rivals: rivals(bytes, first),
            more: bytes.flip(),
            floor: token(bytes, first),
        },
        5 => Message::Adopt {
            tree,
            up_to: number(bytes),
            last: number(bytes),
            after: after(bytes, first),
        },
        6 => Message::Broken { tree },
        _ => Message::Over {
            root: tree.root,
            number: tree.number,
            last: number(bytes),
            over: number(bytes),
        },
    }
}

fn rivals(bytes: &mut Bytes<'_>, first: Member) -> Rivals {
    (0..bytes.take() % 6)
        .map(|_| Rival {
            member: member(bytes, first),
            up_to: number(bytes),
        })
        .collect()
}

/// A member near `first`, known or invented, in a life near its own.
fn member(bytes: &mut Bytes<'_>, first: Member) -> Member {
    let byte = bytes.take();
    let id = first.id.0.wrapping_add(u64::from(byte & 15));
    let life = first.incarnation.0.wrapping_add(u32::from(byte >> 5));
    Member::new(id, life.wrapping_sub(1))
}

fn after(bytes: &mut Bytes<'_>, first: Member) -> Option<Member> {
    bytes.take().is_multiple_of(4).then(|| member(bytes, first))
}

fn token(bytes: &mut Bytes<'_>, first: Member) -> Token {
    Token {
        number: number(bytes),
        by: member(bytes, first),
    }
}

/// A number: mostly one that is in use, sometimes one of the highest that exist.
fn number(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.take() {
        byte @ 0..=239 => u64::from(byte % 80),
        byte => u64::MAX - u64::from(byte - 240),
    }
}
