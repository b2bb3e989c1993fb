//! Requests that are sent again, their receivers and number; and messages that count as too late.

use selvedge_camera::{Camera, Command, Config, Counters, Event, Message, Request, Rival, Token};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};

use chacha20::rand_core::SeedableRng as _;

use super::member;

/// Node 0 of a mesh, by hand.
struct Node {
    driver: Driver<Camera>,
    rng: chacha20::ChaCha8Rng,
    now: Time,
}

impl Node {
    /// It knows the nodes 1 to `nodes - 1`.
    fn new(nodes: usize, config: Config) -> Self {
        let mut node = Self {
            driver: Driver::new(Camera::new(member(0), config).unwrap()),
            rng: chacha20::ChaCha8Rng::from_seed([0; 32]),
            now: Time::ZERO,
        };
        for other in 1..nodes {
            node.step(Input::Membership(Delta::Joined(member(other))));
        }
        node
    }

    fn step(&mut self, input: Input<Camera>) -> Vec<Effect<Camera>> {
        let mut effects = Vec::new();
        self.driver
            .step_into(self.now, &mut self.rng, input, &mut effects)
            .unwrap();
        effects
    }

    fn command(&mut self, command: Command) -> Vec<Effect<Camera>> {
        self.step(Input::Command(command))
    }

    fn receives(&mut self, node: usize, message: Message) -> Vec<Effect<Camera>> {
        let from = member(node);
        self.step(Input::Message { from, message })
    }

    /// The effects of its next timer.
    fn tick(&mut self) -> Vec<Effect<Camera>> {
        self.now = self.driver.deadline().unwrap();
        let mut effects = Vec::new();
        self.driver
            .expire_into(self.now, &mut self.rng, &mut effects);
        effects
    }

    fn counters(&self) -> Counters {
        *self.driver.machine().counters()
    }

    fn waits_for(&self) -> Vec<Member> {
        self.driver.machine().waits_for().collect()
    }
}

/// The number of requests to each of the nodes 1 to 6.
fn asked(effects: &[Effect<Camera>]) -> [usize; 6] {
    let mut counts = [0; 6];
    for effect in effects {
        if let Effect::Send {
            to,
            message: Message::Request { .. },
        } = effect
        {
            counts[to.id.0 as usize - 2] += 1;
        }
    }
    counts
}

fn wait() -> Message {
    Message::Wait { number: 1 }
}

fn ok(life: u32, number: u64, rivals: &[usize]) -> Message {
    let rival = |&node: &usize| Rival {
        member: member(node),
        up_to: 1,
    };
    Message::Ok {
        life,
        number,
        after: None,
        rivals: rivals.iter().map(rival).collect(),
        more: false,
        floor: Token::default(),
    }
}

fn request(number: u64) -> Message {
    Message::Request {
        request: Request {
            number,
            up_to: number,
            last: 0,
        },
        after: None,
    }
}

/// A node that answered that we have to wait has our request.
#[test]
fn who_said_that_we_have_to_wait_is_asked_again_now_and_then() {
    let config = Config::new(7).with_copies(1);
    let mut node = Node::new(7, config);
    assert_eq!(asked(&node.command(Command::Enter)), [1; 6]);
    node.receives(1, wait());
    let mut rounds = Vec::new();
    for _ in 0..8 {
        rounds.push(asked(&node.tick()));
    }
    let (few, all) = ([0, 1, 1, 1, 1, 1], [1; 6]);
    assert_eq!(rounds, [few, few, few, all, few, few, few, all]);
    // We are among the next when four are awaited, and an OK may have been lost.
    node.receives(2, ok(0, 1, &[]));
    assert_eq!(asked(&node.tick()), [0, 0, 1, 1, 1, 1]);
    node.receives(3, ok(0, 1, &[]));
    assert_eq!(asked(&node.tick()), [1, 0, 0, 1, 1, 1]);
}

/// A node that sends WAIT has received one of them.
#[test]
fn copies_double_until_it_is_known_that_one_was_heard() {
    let mut node = Node::new(7, Config::new(7));
    node.command(Command::Enter);
    assert_eq!(asked(&node.tick()), [1; 6]);
    assert_eq!(asked(&node.tick()), [2; 6]);
    node.receives(1, wait());
    assert_eq!(asked(&node.tick()), [0, 4, 4, 4, 4, 4]);
    assert_eq!(asked(&node.tick()), [1, 8, 8, 8, 8, 8]);
}

/// The first request needs no answer until it can be granted.
#[test]
fn a_request_that_comes_again_is_told_that_it_waits() {
    let mut node = Node::new(2, Config::new(2));
    node.command(Command::Enter);
    node.receives(1, ok(0, 1, &[]));
    assert_eq!(node.receives(1, request(2)), []);
    let to = member(1);
    let message = Message::Wait { number: 2 };
    assert_eq!(node.receives(1, request(2)), [Effect::Send { to, message }]);
    // A former one is over.
    assert_eq!(node.receives(1, request(1)), []);
    assert_eq!(node.counters().stale, 1);
}

#[test]
fn an_ok_that_comes_late_is_counted_and_answered() {
    let mut node = Node::new(2, Config::new(2));
    node.command(Command::Enter);
    node.command(Command::Cancel);
    let to = member(1);
    let release = |number| {
        let message = Message::Release {
            number,
            last: 0,
            over: 65,
        };
        Effect::Send { to, message }
    };
    assert_eq!(node.receives(1, ok(0, 1, &[])), [release(1)]);
    assert_eq!(node.receives(1, ok(9, 1, &[])), [release(0)]);
    assert_eq!(node.counters().stale, 2);
}

/// One event for a rival, for any number of nodes that name it.
#[test]
fn a_rival_is_told_of_once() {
    let mut node = Node::new(4, Config::new(5));
    node.command(Command::Enter);
    let mut notified = Vec::new();
    for from in [1, 2] {
        notified.extend(node.receives(from, ok(0, 1, &[4])));
    }
    let waiting = Effect::Event(Event::Waiting(member(4)));
    assert_eq!(notified.iter().filter(|&it| *it == waiting).count(), 1);
}

/// An abstention covers all requests that its sender has made.
#[test]
fn who_had_no_room_is_awaited_when_it_has_asked_since() {
    let names = |up_to| Message::Ok {
        life: 0,
        number: 1,
        after: None,
        rivals: [Rival {
            member: member(1),
            up_to,
        }]
        .into_iter()
        .collect(),
        more: true,
        floor: Token::default(),
    };
    let awaits = |up_to| {
        let mut node = Node::new(5, Config::new(5));
        node.command(Command::Enter);
        node.receives(
            1,
            Message::Abstain {
                life: 0,
                number: 1,
                over: 5,
                floor: Token::default(),
            },
        );
        node.receives(2, names(up_to));
        node.waits_for()
    };
    assert_eq!(awaits(5), [2, 3, 4].map(member));
    assert_eq!(awaits(6), [1, 2, 3, 4].map(member));
}

/// Permissions are good for the number of the request that got them, and `slack` more.
#[test]
fn a_permission_is_kept_for_so_many_numbers() {
    let config = Config::new(2).with_keep(true).with_slack(2);
    let mut node = Node::new(2, config);
    let mut requests = Vec::new();
    for number in 1..=6 {
        let effects = node.command(Command::Enter);
        requests.push(asked(&effects)[0]);
        node.receives(1, ok(0, number, &[]));
        node.command(Command::Exit);
    }
    assert_eq!(requests, [1, 0, 0, 1, 0, 0]);
    // They are given back once.
    assert!(!node.command(Command::GiveBack).is_empty());
    assert_eq!(node.command(Command::GiveBack), []);
}

/// An OK that was not released is sent again after `refresh`, even if other nodes have got one since.
#[test]
fn an_ok_is_said_again_in_time() {
    let refresh = Span::secs(30);
    let deadline = |refresh| {
        let config = Config::new(4).with_refresh(refresh);
        let mut node = Node::new(4, config);
        node.receives(1, request(1));
        node.now = Time::ZERO + Span::secs(20);
        node.receives(2, request(2));
        node.driver.deadline()
    };
    assert_eq!(deadline(refresh), Some(Time::ZERO + refresh));
    assert_eq!(deadline(Span::ZERO), None, "switched off");
}

#[test]
fn members_on_the_list_are_counted_but_for_this_node() {
    let mut node = Node::new(4, Config::new(4));
    assert_eq!(node.driver.machine().listed(), 3);
    node.step(Input::Membership(Delta::Failed(member(2))));
    assert_eq!(node.driver.machine().listed(), 2);
}
