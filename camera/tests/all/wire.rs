//! The wire format: exact bytes, foretold lengths, and frames within their budget.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{
    Branch, Camera, Command, Config, Event, Message, Request, Rival, Token, TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

use super::frames::{self, frame};

fn samples() -> Vec<Message> {
    let request = Request {
        number: 300,
        up_to: 364,
        last: 0,
    };
    let rival = Rival {
        member: Member::new(5, 1),
        up_to: 64,
    };
    let token = Token {
        number: 2,
        by: Member::new(9, 0),
    };
    let tree = TreeId {
        root: Member::new(9, 0),
        number: 300,
        attempt: 2,
    };
    vec![
        Message::Request {
            request,
            after: None,
        },
        Message::Request {
            request,
            after: Some(Member::new(200, 3)),
        },
        Message::Ok {
            life: 2,
            number: 300,
            after: None,
            rivals: [rival].into_iter().collect(),
            more: true,
            floor: token,
        },
        Message::Wait { number: 300 },
        Message::Release {
            number: 300,
            last: 1,
            over: 364,
        },
        Message::Fence { token },
        Message::Floor { token },
        Message::Join {
            tree,
            up_to: 300,
            last: 7,
        },
        Message::Nack { tree },
        Message::Echo {
            life: 4,
            tree,
            levels: 2,
            branches: [
                Branch {
                    depth: 1,
                    member: Member::new(200, 3),
                },
                Branch {
                    depth: 2,
                    member: Member::new(3, 0),
                },
            ]
            .into_iter()
            .collect(),
        },
        Message::Up {
            life: 4,
            tree,
            oks: 200,
            after: Some(Member::new(1, 0)),
            rivals: [rival].into_iter().collect(),
            more: true,
            floor: token,
        },
        Message::Adopt {
            tree,
            up_to: 300,
            last: 7,
            after: None,
        },
        Message::Broken { tree },
        Message::Over {
            root: tree.root,
            number: 300,
            last: 7,
            over: 364,
        },
        Message::Abstain {
            life: 4,
            number: 300,
            over: 7,
            floor: token,
        },
    ]
}

#[test]
fn the_format_stays_as_it_is() {
    let golden = [
        "0102010000ac02ec020000",
        "0102010000ac02ec020001c80103",
        "010201000102ac020001050140010209 00",
        "0102010002ac02",
        "0102010003ac0201ec02",
        "01020100040209 00",
        "01020100050209 00",
        "0102010006 0900ac0202 ac0207",
        "0102010007 0900ac0202",
        "0102010008 04 0900ac0202 02 02 01c80103 020300",
        "0102010009 04 0900ac0202 c801 010100 01050140 01 020900",
        "010201000a 0900ac0202 ac0207 00",
        "010201000b 0900ac0202",
        "010201000c 0900ac0207 ec02",
        "010201000d 04 ac02 07 020900",
    ];
    frames::stay(&samples(), &golden);
}

#[test]
fn lengths_are_foretold() {
    frames::lengths_are_foretold(&samples());
}

/// Node 1 has given its OK to 40 others, each with the longest names and numbers. Node 2 learns of all
/// of them in frames of an IEEE 802.15.4 radio, and asks them all.
#[test]
fn a_long_list_comes_in_frames_of_the_budget() {
    const OTHERS: u64 = 40;
    let member = |nth: u64| Member::new(u64::MAX - nth, u32::MAX);
    let (friend, asker) = (member(1_000), member(2_000));
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut config = Config::radio(3);
    config.max_lives = 3;
    let node = |me| Driver::new(Camera::new(me, config).unwrap());
    let (mut one, mut two) = (node(friend), node(asker));
    let mut frames = Vec::new();
    for nth in 0..OTHERS {
        let request = Request {
            number: u64::MAX / 2 + nth,
            up_to: u64::MAX / 2 + nth + 64,
            last: 0,
        };
        let message = Message::Request {
            request,
            after: None,
        };
        let from = member(nth);
        let input = Input::Message { from, message };
        one.step(Time::ZERO, &mut rng, input, |effect| {
            if let Effect::Send { message, .. } = effect {
                frames.push(frame(friend, &message).len());
            }
        })
        .unwrap();
    }
    // Its own list is short: it knows the friend alone.
    let joined = Input::Membership(Delta::Joined(friend));
    two.step(Time::ZERO, &mut rng, joined, |_| ()).unwrap();
    let mut asked = Vec::new();
    let mut to_one = Vec::new();
    let mut carry = |effect: Effect<Camera>, to_one: &mut Vec<Message>| {
        if let Effect::Send { to, message } = effect {
            if to == friend {
                to_one.push(message);
            } else {
                asked.push(to);
            }
        }
    };
    let enter = Input::Command(Command::Enter);
    two.step(Time::ZERO, &mut rng, enter, |it| carry(it, &mut to_one))
        .unwrap();
    let mut rounds = 0;
    while let Some(message) = to_one.pop() {
        rounds += 1;
        let mut answers = Vec::new();
        let input = Input::Message {
            from: asker,
            message,
        };
        one.step(Time::ZERO, &mut rng, input, |effect| {
            if let Effect::Send { message, .. } = effect {
                frames.push(frame(friend, &message).len());
                answers.push(message);
            }
        })
        .unwrap();
        for message in answers {
            let input = Input::Message {
                from: friend,
                message,
            };
            two.step(Time::ZERO, &mut rng, input, |it| carry(it, &mut to_one))
                .unwrap();
        }
    }
    asked.sort_unstable();
    let mut all: Vec<Member> = (0..OTHERS).map(member).collect();
    all.sort_unstable();
    assert_eq!(asked, all);
    assert!(rounds > 10, "{rounds}");
    assert!(
        frames.iter().all(|&len| len <= 127),
        "{:?}",
        frames.iter().max()
    );
    assert_eq!(two.machine().waits_for().count(), all.len());
}

#[test]
fn an_entry_is_told_before_anything_depends_on_it() {
    let me = Member::new(1, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut alone = Driver::new(Camera::new(me, Config::new(1)).unwrap());
    let mut notified = Vec::new();
    let enter = Input::Command(Command::Enter);
    alone
        .step_into(Time::ZERO, &mut rng, enter, &mut notified)
        .unwrap();
    let token = Token { number: 1, by: me };
    assert_eq!(notified, [Effect::Event(Event::Entered(token))]);
}
