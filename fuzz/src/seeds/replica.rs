//! Frames of every kind of message, and scripted groups.

use selvedge_core::wire::Envelope;
use selvedge_core::{Member, NodeId, Stamp};
use selvedge_replica::{Body, Configuration, Entry, Message, Proposal, SnapshotId, Wants};

use super::Seed;
use crate::decode::seal;

/// Scripted groups. The first two bytes are settings: nodes, members, storage, changes, window; the
/// rest. Then each operation has the node and its number in one byte, and its arguments. See
/// `selvedge_replica::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    let op = |node: u8, op: u8| node << 5 | op;
    let all = |times: usize| vec![8; times];
    let propose = |node| vec![op(node, 17)];
    let read = |node| vec![op(node, 21)];
    let lose = |which: u8| vec![13, 65, which];
    let again = |which: u8| vec![12, which];
    let pass = |rounds: u8| vec![14, rounds];
    let failed = |node, about: u8| vec![op(node, 23), about];
    let restart = |node| vec![op(node, 25), 1];
    let configure = |node, chosen: u8| vec![op(node, 30), chosen];
    let hand_over = |node, to: u8| vec![op(node, 30), to];
    let applied = |node| [propose(node), all(5)].concat();
    let courses = [
        (
            "updates",
            [
                applied(0),
                applied(1),
                propose(2),
                propose(2),
                again(0),
                all(6),
            ]
            .concat(),
        ),
        (
            "reads",
            [applied(0), read(1), read(2), all(4), read(0), all(4)].concat(),
        ),
        (
            "loss",
            [
                propose(1),
                lose(0),
                pass(9),
                all(5),
                propose(0),
                lose(1),
                pass(9),
                all(5),
            ]
            .concat(),
        ),
        (
            "leader-restarts",
            [
                applied(0),
                restart(0),
                failed(1, 0),
                failed(2, 0),
                all(5),
                applied(2),
            ]
            .concat(),
        ),
        (
            "falsely-failed",
            [
                applied(0),
                failed(1, 0),
                all(5),
                failed(2, 0),
                all(6),
                applied(0),
            ]
            .concat(),
        ),
        (
            "hand-over",
            [applied(0), hand_over(0, 1), all(5), applied(2)].concat(),
        ),
        (
            "changes",
            [
                applied(0),
                configure(0, 0b0_0011),
                all(9),
                applied(1),
                configure(1, 0b0_0111),
                all(9),
            ]
            .concat(),
        ),
        (
            "all-new",
            [
                applied(0),
                configure(0, 0b1_1000),
                all(9),
                pass(9),
                all(9),
                applied(3),
            ]
            .concat(),
        ),
    ];
    let settings = [
        ("plain", [4, 0]),
        ("stored", [8, 0]),
        ("changing", [16 + 4, 0]),
        ("five", [16 + 8 + 2 + 32, 0]),
        ("narrow", [16 + 8, 16 + 32]),
        ("leased", [8, 8]),
        ("witness", [8 + 16, 6]),
        ("hostile", [8 + 16, 128]),
    ];
    settings.into_iter().flat_map(move |(setting, shape)| {
        courses
            .clone()
            .into_iter()
            .map(move |(course, operations)| Seed {
                target: "replica_operations",
                name: format!("{setting}-{course}"),
                bytes: [&shape[..], &operations].concat(),
            })
    })
}

pub(super) fn decode_seeds() -> Vec<Seed> {
    let from = Member::new(300, 7);
    let ballot = Stamp {
        number: 3,
        by: NodeId(300),
    };
    let proposal = Proposal {
        by: from,
        number: 9,
        first: 1,
        since: 200,
        update: 1_000_u16,
    };
    let next = Configuration::of([from, Member::new(2, 1)]);
    let entries = || {
        let all = [
            Entry::Update(proposal.clone()),
            Entry::Configure(next.clone().into()),
        ];
        all.into_iter().collect()
    };
    let bodies = [
        (
            "prepare",
            Body::Prepare {
                ballot,
                committed: 5,
                accepted: ballot,
                end: 6,
                handed_over: ballot,
            },
        ),
        (
            "promise",
            Body::Promise {
                ballot,
                committed: 5,
                accepted: ballot,
                end: 7,
                tail: entries(),
            },
        ),
        (
            "refuse",
            Body::Refuse {
                ballot,
                promised: ballot,
                leader: ballot,
            },
        ),
        (
            "accept",
            Body::Accept {
                ballot,
                after: 5,
                commit: 5,
                round: 2,
                entries: entries(),
            },
        ),
        (
            "accepted",
            Body::Accepted {
                ballot,
                end: 7,
                committed: 5,
                round: 2,
            },
        ),
        (
            "lacking",
            Body::Missing {
                committed: 5,
                wants: Wants::State,
            },
        ),
        (
            "learn",
            Body::Learn {
                after: 5,
                entries: entries(),
            },
        ),
        (
            "fetch",
            Body::Fetch {
                snapshot: SnapshotId {
                    version: 5,
                    is_bare: true,
                    total: 302,
                },
                offset: 90,
            },
        ),
        (
            "page",
            Body::Page {
                snapshot: SnapshotId {
                    version: 5,
                    is_bare: false,
                    total: 94,
                },
                offset: 90,
                bytes: [1, 2, 3, 4].into_iter().collect(),
            },
        ),
        (
            "propose",
            Body::Propose {
                proposals: [proposal.clone()].into_iter().collect(),
            },
        ),
        ("read", Body::Read { number: 4 }),
        (
            "read-at",
            Body::ReadAt {
                life: 7,
                number: 4,
                version: 5,
            },
        ),
        ("stand", Body::Stand { ballot }),
        (
            "current",
            Body::Current {
                configuration: next.clone().into(),
                is_active: true,
            },
        ),
        ("rejoin", Body::Rejoin { life: 1 }),
    ];
    let seed = |(name, body)| Seed {
        target: "decode",
        name: format!("replica-{name}"),
        bytes: seal(&Envelope {
            from,
            message: Message {
                configuration: 1,
                body,
            },
        }),
    };
    bodies.into_iter().map(seed).collect()
}
