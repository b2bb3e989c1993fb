//! Frames of every kind of message, and scripted histories.

use selvedge_camera::estimate::{self, Walk};
use selvedge_camera::sections::{self, Name};
use selvedge_camera::{Branch, KIND, Message, Request, Rival, Token, TreeId};
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, VERSION};

use super::Seed;
use crate::decode::seal;

/// Scripted meshes. The first five bytes are settings, seven if the highest bit of the third is
/// set; then each operation has the node and its number in one byte, and its arguments. See
/// `selvedge_camera::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    fast_seeds().chain(slow_seeds())
}

/// Meshes in which all nodes may know each other.
fn fast_seeds() -> impl Iterator<Item = Seed> {
    let op = |node: u8, op: u8| node << 5 | op;
    let all = |times: usize| vec![7; times];
    let enter = |node| vec![op(node, 16)];
    let exit = |node| vec![op(node, 20)];
    let cancel = |node| vec![op(node, 24)];
    let again = |which: u8| vec![12, which];
    let lose = |which: u8| vec![13, 65, which];
    let cut_off = |node| vec![op(node, 13), 0];
    let pass = |quarters: u8| vec![14, quarters];
    let failed = |node, about: u8| vec![op(node, 26), about, 0xff];
    let confirmed = |node, about: u8| vec![op(node, 26), about, 0xf8];
    let back = |node, about: u8| vec![op(node, 26), about, 0xfc];
    let crash = |node| vec![op(node, 29), 16];
    let restart = |node| vec![op(node, 29), 0];
    let hostile = |node, rest: &[u8]| [&[op(node, 30)], rest].concat();
    let visit = |node| [enter(node), all(3), exit(node), all(2)].concat();
    let rush = || [enter(0), enter(1), enter(2), all(4)].concat();
    let courses = [
        (
            "visits",
            [visit(0), visit(1), visit(0), visit(0), visit(2)].concat(),
        ),
        (
            "rush",
            [rush(), exit(0), all(3), exit(1), all(3), exit(2), all(1)].concat(),
        ),
        (
            "cancel",
            [rush(), cancel(1), all(2), exit(0), all(3)].concat(),
        ),
        (
            "loss",
            [
                enter(0),
                lose(0),
                enter(1),
                again(0),
                pass(8),
                all(3),
                pass(8),
                all(3),
            ]
            .concat(),
        ),
        (
            "false-failure",
            [
                enter(0),
                all(3),
                failed(1, 0),
                failed(2, 0),
                enter(1),
                all(3),
                back(1, 0),
            ]
            .concat(),
        ),
        (
            "passed-over",
            [
                enter(0),
                all(3),
                failed(1, 0),
                enter(1),
                cut_off(0),
                pass(9),
                all(4),
                pass(9),
                all(4),
                back(1, 0),
                all(2),
            ]
            .concat(),
        ),
        (
            "holder-dies",
            [
                enter(0),
                all(3),
                crash(0),
                enter(1),
                all(2),
                confirmed(1, 0),
                all(3),
            ]
            .concat(),
        ),
        (
            "holder-comes-back",
            [
                visit(1),
                enter(0),
                all(3),
                crash(0),
                restart(0),
                visit(0),
                visit(1),
            ]
            .concat(),
        ),
        (
            "late-ok",
            [
                visit(0),
                enter(0),
                all(1),
                crash(0),
                restart(0),
                enter(0),
                all(3),
                visit(1),
            ]
            .concat(),
        ),
        (
            "forged-ok",
            [
                enter(0),
                hostile(0, &[33, 2, 34, 1, 1, 1, 1, 35, 9, 1, 0, 0, 5, 36]),
                all(4),
                exit(0),
            ]
            .concat(),
        ),
        (
            "forged-request",
            [
                hostile(0, &[35, 0, 255, 255, 255, 1]),
                visit(0),
                hostile(1, &[36, 0, 3, 70, 2, 1]),
                visit(1),
            ]
            .concat(),
        ),
    ];
    // Three or four nodes; plain, kept permissions, takeover, and few peers that lie in short
    // frames.
    let settings = [
        ("plain", [1, 0, 0, 0, 0]),
        ("kept", [1, 2, 1, 2, 0]),
        ("takeover", [2, 1, 4, 1, 0]),
        ("tight", [2, 0, 8 | 16 | 32 | 64, 12, 0]),
    ];
    courses.into_iter().flat_map(move |(name, course)| {
        settings.map(|(kind, settings)| Seed {
            target: "camera_operations",
            name: format!("{name}-{kind}"),
            bytes: [settings.to_vec(), course.clone()].concat(),
        })
    })
}

/// Meshes in which few nodes know each other.
fn slow_seeds() -> impl Iterator<Item = Seed> {
    let op = |node: u8, op: u8| node << 5 | op;
    let all = |times: usize| vec![7; times];
    let enter = |node| vec![op(node, 16)];
    let exit = |node| vec![op(node, 20)];
    let cancel = |node| vec![op(node, 24)];
    let pass = |quarters: u8| vec![14, quarters];
    let dies = |node| vec![op(node, 29), 16, op(node, 28)];
    let returns = |node| vec![op(node, 29), 0];
    let failed = |node, about: u8| vec![op(node, 26), about, 0xff];
    let visit = |node| [enter(node), all(12), exit(node), all(6)].concat();
    let stay = || [enter(0), all(12), enter(3), all(12)].concat();
    let hostile = |node, rest: &[u8]| [&[op(node, 30)], rest].concat();
    let courses = [
        ("visits", [visit(0), visit(3), visit(0), visit(1)].concat()),
        (
            "rush",
            [
                [enter(0), enter(3), enter(2), all(16)].concat(),
                [exit(0), all(16), exit(2), all(16), exit(3), all(6)].concat(),
            ]
            .concat(),
        ),
        (
            "cancel",
            [stay(), cancel(3), all(8), exit(0), visit(3)].concat(),
        ),
        (
            "inner-dies",
            [stay(), dies(1), all(4), exit(0), all(12)].concat(),
        ),
        (
            "inner-fails-falsely",
            [stay(), failed(2, 1), failed(0, 1), all(4), exit(0), all(12)].concat(),
        ),
        (
            "dies-while-building",
            [
                enter(0),
                all(2),
                dies(2),
                all(6),
                returns(2),
                pass(9),
                all(12),
            ]
            .concat(),
        ),
        (
            "root-comes-back",
            [
                enter(0),
                all(3),
                dies(0),
                returns(0),
                all(6),
                visit(3),
                visit(0),
            ]
            .concat(),
        ),
        (
            "forged",
            [
                enter(0),
                all(2),
                // A whole tree with the largest number of OKs, and a part with its nodes.
                hostile(0, &[33, 132, 32, 1, 1, 33, 255, 1, 1, 34, 3, 1, 0, 32]),
                hostile(0, &[33, 130, 32, 1, 1, 33, 2, 2, 1, 34, 2, 35]),
                hostile(1, &[34, 128, 35, 9, 1, 10, 0]),
                hostile(0, &[33, 134, 32, 1, 1]),
                all(12),
            ]
            .concat(),
        ),
    ];
    // Four nodes in a line or a ring; seven in a tree with eager entries, and few places in trees
    // of short frames; a takeover; and peers that lie.
    let settings = [
        ("line", [2, 0, 128, 0, 0, 0, 1 << 2]),
        ("ring", [2, 0, 128 | 2, 0, 0, 2 | 2 << 5, 2 << 2 | 1]),
        (
            "tree",
            [2, 1, 128 | 32, 0, 0, 128 | 4 | 2 << 3, 4 << 2 | 32],
        ),
        ("takeover", [3, 0, 128 | 4, 1, 0, 0, 5 << 2]),
        ("hostile", [2, 0, 128 | 8 | 64, 0, 0, 4, 1 << 2]),
    ];
    courses.into_iter().flat_map(move |(name, course)| {
        settings.map(|(kind, settings)| Seed {
            target: "camera_operations",
            name: format!("slow-{name}-{kind}"),
            bytes: [settings.to_vec(), course.clone()].concat(),
        })
    })
}

pub(super) fn decode_seeds() -> impl Iterator<Item = Seed> {
    let short = Member::new(1, 1);
    let long = Member::new(u64::MAX, u32::MAX);
    let small = messages(Member::new(2, 0), 3)
        .into_iter()
        .flat_map(move |message| frames(short, message, "door", ""));
    let loaded = messages(long, u64::MAX)
        .into_iter()
        .flat_map(move |message| frames(long, message, "\u{10ffff}, Stock 3 \u{fc}", "-loaded"));
    let walks = [(short, 3, ""), (long, u32::MAX, "-loaded")]
        .into_iter()
        .flat_map(|(member, number, kind)| walks(member, number, kind));
    small
        .chain(loaded)
        .chain(walks)
        .chain(hostile())
        .map(|(name, bytes)| Seed {
            target: "decode",
            name,
            bytes,
        })
}

/// Frames that claim more than they have, and must reserve nothing, and names that are not valid.
fn hostile() -> impl Iterator<Item = (String, Vec<u8>)> {
    const MOST: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let section = |name: &[u8]| {
        // WAIT for request 1.
        let around: [&[u8]; 3] = [&[VERSION, sections::KIND, 1, 1], name, &[2, 1]];
        around.concat()
    };
    [
        // An OK with 2^32 - 1 rivals.
        (
            "bad-camera-length",
            [&[VERSION, KIND, 1, 1, 1, 0, 1, 0][..], &MOST].concat(),
        ),
        ("bad-section-length", section(&MOST)),
        ("bad-section-empty", section(&[0])),
        (
            "bad-section-17",
            section(&[&[17][..], &[b'x'; 17]].concat()),
        ),
        ("bad-section-utf-8", section(&[2, 0xc0, 0xaf])),
    ]
    .into_iter()
    .map(|(name, bytes)| (name.to_owned(), bytes))
}

/// A message alone, and the same about a section with this name.
fn frames(
    from: Member,
    message: Message,
    section: &str,
    kind: &str,
) -> impl Iterator<Item = (String, Vec<u8>)> {
    let name = name(&message);
    let alone = seal(&Envelope {
        from,
        message: message.clone(),
    });
    let named = Name::new(section).map(|section| {
        let message = sections::Message { section, message };
        let bytes = seal(&Envelope { from, message });
        (format!("section-{name}{kind}"), bytes)
    });
    [(format!("camera-{name}{kind}"), alone)]
        .into_iter()
        .chain(named)
}

/// The estimator's messages.
fn walks(
    origin: Member,
    number: u32,
    kind: &str,
) -> impl Iterator<Item = (String, Vec<u8>)> + use<> {
    let estimate = number;
    let walk = Walk {
        origin,
        estimate,
        number,
        budget: u64::from(number) << 10,
        hops: number.min(u16::MAX.into()) as u16,
    };
    let sample = estimate::Message::Sample {
        origin,
        estimate,
        number,
    };
    [
        (format!("walk{kind}"), estimate::Message::Walk(walk)),
        (format!("sample{kind}"), sample),
    ]
    .map(|(name, message)| {
        let from = origin;
        (name, seal(&Envelope { from, message }))
    })
    .into_iter()
}

/// A message of every kind, and both forms of optional fields.
fn messages(member: Member, number: u64) -> Vec<Message> {
    let request = Request {
        number,
        up_to: number,
        last: number,
    };
    let token = Token { number, by: member };
    let rivals = (0..number.min(5)).map(|id| Rival {
        member: Member::new(id, member.incarnation.0),
        up_to: number,
    });
    let tree = TreeId {
        root: member,
        number,
        attempt: 1,
    };
    let (life, last) = (member.incarnation.0, number);
    let after = (number > 5).then_some(member);
    vec![
        Message::Request { request, after },
        Message::Ok {
            life,
            number,
            after,
            rivals: rivals.clone().collect(),
            more: number > 5,
            floor: token,
        },
        Message::Wait { number },
        Message::Release {
            number,
            last: number,
            over: number,
        },
        Message::Fence { token },
        Message::Floor { token },
        Message::Join {
            tree,
            up_to: number,
            last,
        },
        Message::Nack { tree },
        Message::Echo {
            life,
            tree,
            levels: 2,
            branches: (1..=2).map(|depth| Branch { depth, member }).collect(),
        },
        Message::Up {
            life,
            tree,
            oks: 3,
            after,
            rivals: rivals.collect(),
            more: number > 5,
            floor: token,
        },
        Message::Adopt {
            tree,
            up_to: number,
            last,
            after,
        },
        Message::Broken { tree },
        Message::Over {
            root: member,
            number,
            last,
            over: number,
        },
        Message::Abstain {
            life,
            number,
            over: number,
            floor: token,
        },
    ]
}

/// A new kind of message does not compile until it is named here: give it a line in [`messages`]
/// too.
const fn name(message: &Message) -> &'static str {
    match message {
        Message::Request { .. } => "request",
        Message::Ok { .. } => "ok",
        Message::Wait { .. } => "wait",
        Message::Release { .. } => "release",
        Message::Fence { .. } => "fence",
        Message::Floor { .. } => "floor",
        Message::Join { .. } => "join",
        Message::Nack { .. } => "nack",
        Message::Echo { .. } => "echo",
        Message::Up { .. } => "up",
        Message::Adopt { .. } => "adopt",
        Message::Broken { .. } => "broken",
        Message::Over { .. } => "over",
        Message::Abstain { .. } => "abstain",
    }
}
