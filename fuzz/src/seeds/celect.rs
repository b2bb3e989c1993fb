//! Frames of every kind of message, and scripted elections.

use selvedge_celect::{Ballot, KIND, LeaderState, Members, Message};
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_core::{Member, Span};

use super::Seed;
use crate::decode::seal;

/// Scripted elections. The first seven bytes are settings: the number of nodes, c and f, flags, the
/// protocol, times, the rest, and the unknown nodes. Then each operation has the node and its
/// number in one byte, and its arguments. See `selvedge_celect::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    let op = |node: u8, op: u8| node << 5 | op;
    let all = |times: usize| vec![7; times];
    let elect = |node| vec![op(node, 19)];
    let again = |which: u8| vec![12, which];
    let lose = |which: u8| vec![14, 65, which];
    let cut_off = |node| vec![op(node, 14), 0];
    let pass = |quarters: u8| vec![15, quarters];
    let tolerate = |node, byte: u8| vec![op(node, 22), byte];
    let failed = |node, about: u8| vec![op(node, 23), about, 0xff];
    let back = |node, about: u8| vec![op(node, 23), about, 0xfc];
    let suspected = |node, about: u8| vec![op(node, 23), about, 0xf8];
    let announce = |node| vec![op(node, 26)];
    let dies = |node| vec![op(node, 27), 16];
    let returns = |node| vec![op(node, 27), 0];
    let hostile = |node, rest: &[u8]| [&[op(node, 29)], rest].concat();
    let elected = |node| [elect(node), all(5)].concat();
    let courses = [
        ("elections", [elected(2), elected(0), elected(1)].concat()),
        ("two-begin", [elect(1), elect(2), again(0), all(6)].concat()),
        (
            "loss",
            [elect(2), lose(0), pass(2), all(2), lose(0), pass(3), all(4)].concat(),
        ),
        (
            "leader-dies",
            [
                elected(2),
                dies(0),
                announce(0),
                pass(4),
                all(5),
                returns(0),
                all(5),
            ]
            .concat(),
        ),
        (
            "initiator-dies",
            [
                elect(1),
                elect(2),
                all(1),
                dies(1),
                failed(2, 1),
                pass(8),
                all(5),
            ]
            .concat(),
        ),
        (
            "initiator-returns",
            [elect(0), all(1), dies(0), returns(0), elect(0), all(5)].concat(),
        ),
        (
            "falsely-failed",
            [
                elected(2),
                failed(1, 0),
                pass(8),
                all(5),
                back(1, 0),
                all(4),
            ]
            .concat(),
        ),
        (
            "cut-off",
            [
                elected(2),
                cut_off(0),
                pass(12),
                cut_off(0),
                pass(12),
                cut_off(0),
                pass(12),
                cut_off(0),
                pass(8),
                all(6),
            ]
            .concat(),
        ),
        (
            "tolerate",
            [elect(2), tolerate(2, 3), all(4), tolerate(2, 0), all(4)].concat(),
        ),
        (
            "suspected",
            [
                suspected(1, 0),
                suspected(2, 0),
                suspected(2, 1),
                elected(2),
            ]
            .concat(),
        ),
        (
            "forged",
            [
                hostile(1, &[64, 5, 3, 0, 1, 64, 0, 0]),
                elect(2),
                hostile(2, &[65, 2, 1, 200, 66, 0, 1, 93, 0, 2, 70, 71]),
                hostile(0, &[65, 4, 255, 0, 255, 64]),
                all(5),
            ]
            .concat(),
        ),
    ];
    // Three or four nodes: plain; a protocol for each node; a reliable multicast; leases that run
    // out; and few peers that lie in short frames.
    let settings = [
        ("base", [1, 0x11, 0, 0, 2, 0, 0]),
        ("mixed", [2, 0x11, 1 | 2, 0x50, 2 | 8 | 16, 0, 0]),
        ("multicast", [1, 0x01, 4, 1, 0, 0, 0]),
        ("leased", [1, 0x11, 0, 3 | 0x50, 2 | 64, 0, 2]),
        ("lean-in-part", [2, 0x11, 0, 4, 2 | 4, 1, 36]),
        (
            "tight",
            [2, 0x11, 8 | 16 | 32 | 64 | 128, 0x50 | 3, 2, 2, 0],
        ),
    ];
    courses.into_iter().flat_map(move |(name, course)| {
        settings.map(|(kind, settings)| Seed {
            target: "celect_operations",
            name: format!("{name}-{kind}"),
            bytes: [settings.to_vec(), course.clone()].concat(),
        })
    })
}

pub(super) fn decode_seeds() -> impl Iterator<Item = Seed> {
    let short = Member::new(1, 1);
    let long = Member::new(u64::MAX, u32::MAX);
    let small = messages(Member::new(2, 0), 3, 2)
        .map(move |(name, message)| (format!("celect-{name}"), frame(short, message)));
    let loaded = messages(long, u64::MAX, 9)
        .map(move |(name, message)| (format!("celect-{name}-loaded"), frame(long, message)));
    // A LEADER that names 2^32 - 1 others.
    let bad = [
        &[VERSION, KIND, 1, 1, 3, 1, 1, 1, 1, 1, 1, 0][..],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
    ];
    let bad = [("bad-celect-length".to_owned(), bad.concat())];
    small.chain(loaded).chain(bad).map(|(name, bytes)| Seed {
        target: "decode",
        name,
        bytes,
    })
}

fn frame(from: Member, message: Message) -> Vec<u8> {
    seal(&Envelope { from, message })
}

/// A message of each kind, with lists of this length.
fn messages(
    member: Member,
    number: u64,
    many: u64,
) -> impl Iterator<Item = (&'static str, Message)> {
    let ballot = Ballot {
        epoch: number,
        initiator: member,
        step: number as u32,
    };
    let list = |from: u64| -> Members {
        let member = |nth| Member::new(member.id.0.wrapping_sub(from + nth), number as u32);
        (0..many).map(member).collect()
    };
    let few = number.to_le_bytes()[0];
    [
        (
            "query",
            Message::Query {
                ballot,
                lowest: few,
                suspected: few,
                want: number as u16,
                exclude: list(0),
                no_majority: number % 2 == 1,
            },
        ),
        (
            "response",
            Message::Response {
                ballot,
                candidates: list(0),
                unhealthy: list(1),
                known: list(2),
            },
        ),
        (
            "notify",
            Message::Appoint {
                ballot,
                life: number as u32,
                no_majority: number.is_multiple_of(2),
            },
        ),
        (
            "leader",
            Message::Leader {
                ballot,
                leader: member,
                renewal: number as u32,
                lease: Span(number),
                state: match number % 3 {
                    0 => LeaderState::Ended,
                    1 => LeaderState::NoMajority,
                    _ => LeaderState::Leading,
                },
                covered: list(0).to_vec().into(),
            },
        ),
        (
            "heard",
            Message::LeaderAck {
                ballot,
                renewal: number as u32,
            },
        ),
        (
            "sample-query",
            Message::SampleQuery {
                run: number as u32,
                from: member.id,
            },
        ),
        (
            "sample-response",
            Message::SampleResponse {
                run: number as u32,
                life: number as u32,
                from: member.id,
                members: list(0),
                more: number.is_multiple_of(2),
            },
        ),
        (
            "feedback",
            Message::Feedback {
                ballot,
                answers: number as u16,
                missing: few.into(),
            },
        ),
        (
            "estimate",
            Message::Estimate {
                ballot,
                number: number as u32,
                source: selvedge_celect::Source::Sampling,
                upper_bound: number as u16,
                miss: number as u32,
            },
        ),
    ]
    .into_iter()
}
