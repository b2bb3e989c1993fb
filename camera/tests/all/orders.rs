//! The outcome of messages in any order and any number of copies; and properties of every message
//! and token.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use std::collections::HashSet;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use proptest::prelude::*;
use selvedge_camera::{Camera, Command, Config, Event, Message, Request, Rival, Token};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

const OTHERS: u64 = 3;

/// A node that knows three others.
struct Node {
    driver: Driver<Camera>,
    rng: ChaCha8Rng,
}

impl Node {
    fn new(config: Config) -> Self {
        let mut node = Self {
            driver: Driver::new(Camera::new(Member::new(9, 0), config).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        for id in 1..=OTHERS {
            node.step(Input::Membership(Delta::Joined(Member::new(id, 0))));
        }
        node
    }

    fn step(&mut self, input: Input<Camera>) -> Vec<Effect<Camera>> {
        let mut effects = Vec::new();
        let carry_out = |effect| effects.push(effect);
        self.driver
            .step(Time::ZERO, &mut self.rng, input, carry_out)
            .unwrap();
        effects
    }

    fn receive(&mut self, (from, message): (u64, Message)) -> Vec<Effect<Camera>> {
        let from = Member::new(from, 0);
        self.step(Input::Message { from, message })
    }

    /// Asks to enter; returns the number.
    fn enter(&mut self) -> u64 {
        let effects = self.step(Input::Command(Command::Enter));
        request_in(&effects).unwrap().number
    }

    /// All nodes give their OK, without rivals.
    fn get_in(&mut self) {
        let number = self.enter();
        for id in 1..=OTHERS {
            self.receive((id, ok(number, Token::default())));
        }
        assert!(self.driver.machine().token().is_some());
    }
}

fn request_in(effects: &[Effect<Camera>]) -> Option<Request> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send {
            message: Message::Request { request, .. },
            ..
        } => Some(*request),
        _ => None,
    })
}

fn ok(number: u64, floor: Token) -> Message {
    Message::Ok {
        life: 0,
        number,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor,
    }
}

/// All that a node sends in its first `visits` visits, but for the last RELEASE if it is `open`.
fn visits(from: u64, visits: u64, is_open: bool) -> Vec<(u64, Message)> {
    let both = |number: u64| {
        let request = Request {
            number: 2 * number,
            up_to: 2 * number + 5,
            last: 2 * (number - 1),
        };
        let after = None;
        let last = 2 * number;
        let number = last;
        let over = request.up_to;
        [
            Message::Request { request, after },
            Message::Release { number, last, over },
        ]
    };
    let mut messages: Vec<_> = (1..=visits).flat_map(both).collect();
    if is_open {
        messages.pop();
    }
    messages.into_iter().map(|it| (from, it)).collect()
}

/// The messages in order, and in any order with some of them twice.
fn in_any_order<T: Clone + core::fmt::Debug>(
    sent: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    sent.prop_flat_map(|sent| {
        let len = sent.len();
        let again = proptest::collection::vec(0..len.max(1), 0..=len);
        (Just(sent), again)
    })
    .prop_flat_map(|(sent, again)| {
        let again = again.into_iter().filter_map(|at| sent.get(at).cloned());
        let all: Vec<T> = sent.iter().cloned().chain(again).collect();
        (Just(sent), Just(all).prop_shuffle())
    })
}

fn all_visits() -> impl Strategy<Value = Vec<(u64, Message)>> {
    proptest::collection::vec((0_u64..4, any::<bool>()), OTHERS as usize).prop_map(|nodes| {
        let sent = (1..).zip(nodes);
        sent.flat_map(|(from, (count, is_open))| visits(from, count, is_open))
            .collect()
    })
}

fn member() -> impl Strategy<Value = Member> {
    (numbers(), any::<u32>()).prop_map(|(id, life)| Member::new(id, life))
}

/// Messages of every length.
fn numbers() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

fn token() -> impl Strategy<Value = Token> {
    (numbers(), member()).prop_map(|(number, holder)| Token { number, by: holder })
}

fn message() -> impl Strategy<Value = Message> {
    let after = || proptest::option::of(member());
    let request = (numbers(), numbers(), numbers(), after());
    let rival = (member(), numbers()).prop_map(|(member, up_to)| Rival { member, up_to });
    let rivals = proptest::collection::vec(rival, 0..9);
    let ok = (
        any::<u32>(),
        numbers(),
        after(),
        rivals,
        any::<bool>(),
        token(),
    );
    prop_oneof![
        request.prop_map(|(number, up_to, last, after)| {
            let request = Request {
                number,
                up_to,
                last,
            };
            Message::Request { request, after }
        }),
        ok.prop_map(|(life, number, after, rivals, more, floor)| Message::Ok {
            life,
            number,
            after,
            rivals: rivals.into_iter().collect(),
            more,
            floor,
        }),
        numbers().prop_map(|number| Message::Wait { number }),
        (numbers(), numbers(), numbers()).prop_map(|(number, last, over)| Message::Release {
            number,
            last,
            over
        }),
        token().prop_map(|token| Message::Fence { token }),
        token().prop_map(|token| Message::Floor { token }),
    ]
}

/// Settings with one copy of each message: the number of copies of an OK is no promise, and depends
/// on the order.
const CONFIG: Config = Config::new(4).with_copies(1);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_message_reads_as_it_was_written_and_foretells_its_length(message in message()) {
        let bytes = postcard::to_extend(&message, Vec::new()).unwrap();
        prop_assert_eq!(bytes.len(), message.encoded_len());
        let (read, rest) = postcard::take_from_bytes::<Message>(&bytes).unwrap();
        prop_assert_eq!(read, message);
        prop_assert!(rest.is_empty());
        for len in 0..bytes.len() {
            prop_assert!(postcard::take_from_bytes::<Message>(&bytes[..len]).is_err());
        }
    }

    /// REQUESTs and RELEASEs of several nodes leave the same behind in every order.
    #[test]
    fn visits_of_others_may_be_heard_of_in_any_order(
        (sent, shuffled) in in_any_order(all_visits()),
        is_inside: bool,
    ) {
        let after = |messages: Vec<(u64, Message)>| {
            let mut node = Node::new(CONFIG);
            if is_inside {
                node.get_in();
            }
            for message in messages {
                node.receive(message);
            }
            node.driver.into_machine()
        };
        prop_assert_eq!(after(sent), after(shuffled));
    }

    /// OKs are counted once each, in every order, and the node enters with the last one that it needs.
    #[test]
    fn oks_may_come_in_any_order(
        (sent, shuffled) in in_any_order(
            proptest::collection::vec(0_u64..40, OTHERS as usize)
        ),
    ) {
        let after = |floors: Vec<u64>| {
            let mut node = Node::new(CONFIG);
            let number = node.enter();
            let mut entered = Vec::new();
            for floor in floors {
                // The floor determines the sender.
                let from = 1 + sent.iter().position(|&it| it == floor).unwrap() as u64;
                let holder = Member::new(from, 0);
                let token = Token { number: floor, by: holder };
                for effect in node.receive((from, ok(number, token))) {
                    match effect {
                        Effect::Event(Event::Entered(token)) => entered.push(token),
                        other => panic!("{other:?}"),
                    }
                }
            }
            (entered, node.driver.into_machine())
        };
        let (in_order, machine) = after(sent.clone());
        let distinct = HashSet::<&u64>::from_iter(&sent).len();
        prop_assert_eq!(in_order.len(), usize::from(distinct == OTHERS as usize));
        prop_assert_eq!((in_order, machine), after(shuffled));
    }

    /// A token is above all used ones and within its request's bound; else the request is issued again,
    /// above it.
    #[test]
    fn a_token_is_above_every_floor_and_within_its_request(
        slack in prop_oneof![Just(0), 0..9_u32, Just(u32::MAX)],
        floors in proptest::collection::vec((numbers(), 0..12_u64), OTHERS as usize),
        [received, heard_late] in [token(), token()],
    ) {
        let mut node = Node::new(Config::new(4).with_slack(slack));
        node.receive((1, Message::Floor { token: received }));
        let effects = node.step(Input::Command(Command::Enter));
        let mut request = request_in(&effects).unwrap();
        prop_assert!(request.number > received.number || received.number == u64::MAX);
        node.receive((2, Message::Floor { token: heard_late }));
        let mut highest = received.max(heard_late);
        // Once with any floors, then with none that is new.
        for _ in 0..2 {
            let number = request.number;
            for (from, &(number_used, holder)) in (1..).zip(&floors) {
                let floor = Token { number: number_used, by: Member::new(holder, 0) };
                highest = highest.max(floor);
                let effects = node.receive((from, ok(number, floor)));
                request = request_in(&effects).unwrap_or(request);
            }
            if request.number == number {
                break;
            }
            prop_assert!(request.number > highest.number || highest.number == u64::MAX);
        }
        prop_assert_eq!(request.up_to, request.number.saturating_add(slack.into()));
        if let Some(token) = node.driver.machine().token() {
            prop_assert!(token > highest || highest.number == u64::MAX, "{token:?} {highest:?}");
            prop_assert!(request.number <= token.number && token.number <= request.up_to);
        } else {
            prop_assert_eq!(highest.number, u64::MAX);
        }
    }
}
