//! Frames of every kind of body, and scripted histories.

use selvedge_core::Member;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_membership::{
    Age, Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record, Records,
};

use super::Seed;
use crate::decode::seal;

/// Scripted histories: the first five bytes are settings, then come node, operation and the
/// operation's arguments. See `selvedge_membership::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    let join = |node: u8, seed: u8| vec![node, 12, seed, 0];
    // Everything in flight arrives; the bytes that follow are choices.
    let deliver = |times: usize| [0, 0, 0].repeat(times);
    let pass = |quarters: u8| vec![0, 8, quarters, 0, 0, 0, 0, 0, 0];
    let mesh = || {
        let start = [join(0, 0), join(1, 0), join(2, 0), join(3, 0)];
        [start.concat(), pass(5), deliver(12), pass(4), deliver(24)].concat()
    };
    let crash = |node: u8| vec![node, 10];
    let restart = |node: u8, incarnation: u8| vec![node, 11, incarnation];
    let command = |node: u8, which: u8, rest: &[u8]| [&[node, 12, 1, which], rest].concat();
    let hostile = |node: u8, rest: &[u8]| [&[node, 15], rest].concat();
    let periods = |count: usize| [pass(4), deliver(10)].concat().repeat(count);
    let courses = [
        ("join", mesh()),
        ("crash", [mesh(), crash(2), periods(20)].concat()),
        (
            "restart-with-memory",
            [mesh(), crash(2), restart(2, 3), periods(12)].concat(),
        ),
        (
            "restart-without-memory",
            [mesh(), crash(1), restart(1, 1), periods(12)].concat(),
        ),
        (
            "leave-and-rejoin",
            [
                mesh(),
                command(1, 3, &[]),
                periods(8),
                join(1, 0),
                periods(8),
            ]
            .concat(),
        ),
        (
            "metadata",
            [mesh(), command(1, 4, &[3, b'a', b'b', b'c']), periods(6)].concat(),
        ),
        (
            "broadcast",
            [mesh(), command(2, 6, &[2, b'h', b'i']), periods(6)].concat(),
        ),
        (
            "confirm",
            [mesh(), command(0, 7, &[1]), periods(6)].concat(),
        ),
        (
            "forged-left",
            [mesh(), hostile(0, &[1, 1, 1, 1, 1, 3, 0]), periods(8)].concat(),
        ),
        (
            "forged-failed",
            [mesh(), hostile(0, &[1, 1, 1, 1, 2, 2, 0]), periods(8)].concat(),
        ),
    ];
    courses.into_iter().flat_map(|(name, course)| {
        [("tight", [0, 2, 1, 0, 0]), ("roomy", [1, 0, 0, 1, 1])].map(|(kind, settings)| Seed {
            target: "membership_operations",
            name: format!("{name}-{kind}"),
            bytes: [settings.to_vec(), course.clone()].concat(),
        })
    })
}

pub(super) fn decode_seeds() -> Vec<Seed> {
    let mut frames = Vec::new();
    for body in bodies() {
        let bare = Message::bare(body);
        let loaded = Message {
            records: records(),
            broadcasts: broadcasts(),
            ..bare.clone()
        };
        frames.push((name(&body).to_owned(), frame(Member::new(1, 1), bare)));
        frames.push((
            format!("{}-loaded", name(&body)),
            frame(Member::new(u64::MAX, u32::MAX), loaded),
        ));
    }
    // A list that claims 2^32 - 1 records and has none: it must reserve nothing.
    let hostile = [VERSION, KIND, 1, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f];
    frames.push(("bad-length".to_owned(), hostile.to_vec()));
    frames.push((
        "bad-version".to_owned(),
        vec![VERSION + 1, KIND, 1, 1, 4, 0, 0],
    ));
    frames
        .into_iter()
        .map(|(name, bytes)| Seed {
            target: "decode",
            name,
            bytes,
        })
        .collect()
}

fn frame(from: Member, message: Message) -> Vec<u8> {
    seal(&Envelope { from, message })
}

/// A frame with each body from this member, with records and broadcasts.
pub(super) fn frames_from(member: Member) -> impl Iterator<Item = Vec<u8>> {
    let loaded = |body| Message {
        records: records(),
        broadcasts: broadcasts(),
        ..Message::bare(body)
    };
    let bodies = bodies().into_iter().map(loaded);
    bodies.map(move |it| frame(member, it))
}

/// A body of every kind, and both forms of optional fields.
fn bodies() -> Vec<Body> {
    let member = Member::new(300, 2);
    vec![
        Body::Ping {
            digest: Digest([1, 2]),
            origin: None,
        },
        Body::Ack {
            origin: Some(member),
        },
        Body::PingRequest { target: member },
        Body::RelayedAck { target: member },
        Body::Unlucky,
        Body::Join,
        Body::Welcome {
            you: member,
            next: Some(Key(1 << 40)),
        },
        Body::IdTaken { life: member },
        Body::Digests {
            buckets: [Digest([3, 4]); 32],
        },
        Body::Pull {
            first: Key(0),
            last: Key(u64::MAX),
        },
        Body::Records {
            first: Key(1 << 59),
            last: Key((1 << 60) - 1),
            next: None,
            exchange: true,
        },
        Body::Farewell,
    ]
}

/// A new kind of body does not compile until it is named here: give it a line in [`bodies`] too.
const fn name(body: &Body) -> &'static str {
    match body {
        Body::Ping { .. } => "ping",
        Body::Ack { .. } => "ack",
        Body::PingRequest { .. } => "ping-request",
        Body::RelayedAck { .. } => "relayed-ack",
        Body::Unlucky => "unlucky",
        Body::Join => "join",
        Body::Welcome { .. } => "welcome",
        Body::IdTaken { .. } => "known",
        Body::Digests { .. } => "digests",
        Body::Pull { .. } => "pull",
        Body::Records { .. } => "records",
        Body::Farewell => "farewell",
    }
}

/// A record of every claim.
fn records() -> Records {
    let claims = [
        Claim::Alive(Metadata(Box::from(*b"kitchen"))),
        Claim::Suspect(Metadata::default()),
        Claim::Failed(Metadata(Box::from(*b"cellar")), Age(300)),
        Claim::Left(Age::default()),
    ];
    let records = (2_u64..).zip(claims).map(|(id, claim)| Record {
        member: Member::new(id, 0),
        revision: 128,
        claim,
    });
    records.collect()
}

fn broadcasts() -> Broadcasts {
    let payloads: [&[u8]; 2] = [b"", b"the lamp is on"];
    let broadcasts = (0_u32..).zip(payloads).map(|(number, payload)| Broadcast {
        origin: Member::new(9, 1),
        number,
        payload: payload.into(),
    });
    broadcasts.collect()
}
