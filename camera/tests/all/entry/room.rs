//! Nodes that cannot remember all others.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{
    Camera, Command, Config, Event, Message, Refusal, Request, Rival, Token, TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

use super::{DELAY, member};

/// Nodes that all know each other, the first of them with room for `limit`.
fn with_little_room(nodes: usize, limit: u32, config: Config) -> Network<Camera> {
    let link = Link {
        min_delay: DELAY,
        max_delay: DELAY,
        ..Link::default()
    };
    let mut mesh = Network::new(1, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for node in 0..nodes {
        let peer_limit = if node == 0 { limit } else { config.peer_limit };
        let config = config.with_peer_limit(peer_limit);
        mesh.add(member(node), Camera::new(member(node), config).unwrap())
            .unwrap();
    }
    for node in 0..nodes {
        for other in (0..nodes).filter(|&other| other != node) {
            mesh.membership(node, Delta::Joined(member(other))).unwrap();
        }
    }
    mesh
}

/// Lets all nodes that want to enter do so, one after the other. Returns the nodes that entered, and
/// the nodes that were refused.
fn serve(mesh: &mut Network<Camera>, nodes: &[usize]) -> (Vec<usize>, Vec<(usize, Refusal)>) {
    let (mut entered, mut refused) = (Vec::new(), Vec::new());
    for &node in nodes {
        mesh.command(node, Command::Enter).unwrap();
    }
    for _ in 0..20 {
        mesh.run_for(Span::secs(1));
        let events: Vec<_> = mesh.drain_events().collect();
        for (_, node, event) in events {
            match event {
                Event::Entered(_) => {
                    entered.push(node);
                    mesh.command(node, Command::Exit).unwrap();
                }
                Event::Refused(refusal) => refused.push((node, refusal)),
                _ => {}
            }
        }
    }
    (entered, refused)
}

/// Node 1 knows two others, and node 2 names three to it.
#[test]
fn a_node_that_cannot_remember_its_rivals_is_told_so_and_holds_up_nobody() {
    for slow_path in [false, true] {
        let config = Config::new(5).with_slow_path(slow_path);
        let mut mesh = with_little_room(5, 2, config);
        let (mut entered, refused) = serve(&mut mesh, &[2, 3, 4, 0]);
        entered.sort_unstable();
        let limit = 2;
        assert_eq!(refused, [(0, Refusal::NoRoom { limit })]);
        assert_eq!(entered, [2, 3, 4]);
        // When no other node wants to enter, it needs no room.
        assert_eq!(serve(&mut mesh, &[0]), (vec![0], Vec::new()));
        // Nor does a node that enters after it.
        assert_eq!(serve(&mut mesh, &[4]), (vec![4], Vec::new()));
    }
}

/// Node 1 is inside when 5 asks, for which it has no room.
#[test]
fn a_holder_without_room_lets_in_who_comes_after_it() {
    for keep in [false, true] {
        let config = Config::new(5).with_keep(keep);
        let mut mesh = with_little_room(5, 2, config);
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(Span::secs(1));
        mesh.command(4, Command::Enter).unwrap();
        mesh.run_for(Span::secs(3));
        assert!(mesh.machine(0).unwrap().token().is_some());
        assert!(mesh.machine(4).unwrap().is_waiting());
        mesh.command(0, Command::Exit).unwrap();
        mesh.run_for(Span::secs(3));
        let first = mesh.machine(4).unwrap().token().unwrap();
        mesh.command(4, Command::Exit).unwrap();
        // The permissions that node 1 kept are no good any more, or it knows of 5: either way it
        // asks.
        mesh.command(0, Command::Enter).unwrap();
        mesh.command(4, Command::Enter).unwrap();
        mesh.run_for(Span::secs(3));
        let inside = (0..5).filter_map(|node| mesh.machine(node).unwrap().token());
        let inside: Vec<Token> = inside.collect();
        assert!(matches!(inside[..], [token] if token > first), "{inside:?}");
    }
}

/// Node 1 by hand.
struct Node {
    driver: Driver<Camera>,
    rng: ChaCha8Rng,
}

impl Node {
    fn new(config: Config) -> Self {
        Self {
            driver: Driver::new(Camera::new(member(0), config).unwrap()),
            rng: ChaCha8Rng::from_seed([0; 32]),
        }
    }

    fn notified(&mut self, input: Input<Camera>) -> Vec<Effect<Camera>> {
        let mut notified = Vec::new();
        self.driver
            .step_into(Time::ZERO, &mut self.rng, input, &mut notified)
            .unwrap();
        notified
    }

    fn learn(&mut self, delta: Delta) {
        self.notified(Input::Membership(delta));
    }

    fn enter(&mut self) -> Vec<Effect<Camera>> {
        self.notified(Input::Command(Command::Enter))
    }

    fn receive(&mut self, from: Member, message: Message) -> Vec<Effect<Camera>> {
        self.notified(Input::Message { from, message })
    }

    fn waits_for(&self) -> Vec<Member> {
        self.driver.machine().waits_for().collect()
    }
}

fn ok(number: u64, rivals: &[Member]) -> Message {
    let rival = |&member| Rival { member, up_to: 1 };
    Message::Ok {
        life: 0,
        number,
        after: None,
        rivals: rivals.iter().map(rival).collect(),
        more: false,
        floor: Token::default(),
    }
}

fn request(number: u64) -> Message {
    let request = Request {
        number,
        up_to: number,
        last: 0,
    };
    Message::Request {
        request,
        after: None,
    }
}

fn abstain(over: u64) -> Message {
    Message::Abstain {
        life: 0,
        number: 1,
        over,
        floor: Token::default(),
    }
}

/// An OK names as many as may be awaited, and these are awaited already or have ended.
#[test]
fn rivals_that_are_known_or_over_take_no_room() {
    let mut node = Node::new(Config::new(5).with_peer_limit(3));
    for other in [1, 2, 3] {
        node.learn(Delta::Joined(member(other)));
    }
    node.enter();
    // Room for six, and three are there: two that are known, and one that has ended.
    node.learn(Delta::Left(member(3)));
    let (two, three, four) = (member(1), member(2), member(3));
    node.receive(two, ok(1, &[three, four]));
    assert_eq!(node.waits_for(), [three]);
    let notified = node.receive(three, ok(1, &[two, four]));
    assert!(
        notified
            .iter()
            .any(|it| matches!(it, Effect::Event(Event::Entered(_)))),
        "{notified:?}"
    );
}

#[test]
fn the_first_list_that_cannot_be_remembered_refuses_the_request() {
    let mut node = Node::new(Config::new(3).with_peer_limit(1));
    node.learn(Delta::Joined(member(1)));
    node.enter();
    let notified = node.receive(member(1), ok(1, &[member(2), member(3), member(4)]));
    let refused = Event::Refused(Refusal::NoRoom { limit: 1 });
    assert!(notified.contains(&Effect::Event(refused)), "{notified:?}");
    assert_eq!(node.driver.machine().counters().no_room, 1);
}

/// The list is full, so the end of a life that was never met is not remembered.
#[test]
fn an_end_that_cannot_be_remembered_is_counted_once() {
    let mut node = Node::new(Config::new(3).with_peer_limit(1));
    node.learn(Delta::Joined(member(1)));
    node.learn(Delta::Confirmed(member(2)));
    assert_eq!(node.driver.machine().counters().no_room, 1);
    node.learn(Delta::Confirmed(member(1)));
    assert_eq!(node.driver.machine().counters().no_room, 1);
}

/// A list of rivals without room, which comes up a tree.
#[test]
fn the_first_list_that_cannot_be_remembered_refuses_a_request_on_the_slow_path() {
    let mut node = Node::new(Config::new(5).with_peer_limit(1));
    node.learn(Delta::Joined(member(1)));
    node.enter();
    let tree = TreeId {
        root: member(0),
        number: 1,
        attempt: 1,
    };
    let rival = |node| Rival {
        member: member(node),
        up_to: 1,
    };
    let up = Message::Up {
        life: 0,
        tree,
        oks: 4,
        after: None,
        rivals: [rival(2), rival(3), rival(4)].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    let notified = node.receive(member(1), up);
    let refused = Event::Refused(Refusal::NoRoom { limit: 1 });
    assert!(notified.contains(&Effect::Event(refused)), "{notified:?}");
}

/// Node 1 stands between the root and a child that names more than it can remember.
#[test]
fn the_oks_of_those_who_name_too_many_do_not_count_in_a_tree() {
    let mut node = Node::new(Config::new(9).with_peer_limit(2));
    let (root, child) = (member(1), member(2));
    node.learn(Delta::Joined(child));
    let tree = TreeId {
        root,
        number: 1,
        attempt: 1,
    };
    let (up_to, last) = (1, 0);
    node.receive(root, Message::Join { tree, up_to, last });
    let rival = |node| Rival {
        member: member(node),
        up_to: 1,
    };
    let floor = Token {
        number: 3,
        by: member(8),
    };
    let notified = node.receive(
        child,
        Message::Up {
            life: 0,
            tree,
            oks: 5,
            after: None,
            rivals: (3..8).map(rival).collect(),
            more: false,
            floor,
        },
    );
    let [Effect::Send { to, message }] = &notified[..] else {
        panic!("{notified:?}");
    };
    assert_eq!(*to, root);
    let Message::Up {
        oks,
        rivals,
        floor: passed_on,
        ..
    } = message
    else {
        panic!("{message:?}");
    };
    assert_eq!((*oks, rivals.len(), *passed_on), (1, 0, floor));
    assert_eq!(node.driver.machine().counters().no_room, 1);
}

/// Each new node takes the place of a node that has ended, and its messages are accepted.
#[test]
fn who_comes_takes_the_place_of_who_is_gone() {
    let mut node = Node::new(Config::new(3).with_peer_limit(4));
    let friend = member(1);
    node.learn(Delta::Joined(friend));
    for id in 100..200 {
        let guest = Member::new(id, 0);
        node.learn(Delta::Joined(guest));
        let notified = node.receive(guest, request(id));
        assert!(
            notified.iter().any(
                |it| matches!(it, Effect::Send { to, message: Message::Ok { .. } } if *to == guest)
            ),
            "{notified:?}"
        );
        node.receive(
            guest,
            Message::Release {
                number: id,
                last: id,
                over: id,
            },
        );
        node.learn(match id % 3 {
            0 => Delta::Left(guest),
            1 => Delta::Confirmed(guest),
            _ => Delta::Failed(guest),
        });
    }
    assert_eq!(node.driver.machine().counters().no_room, 0);
    node.enter();
    assert_eq!(node.waits_for(), [friend]);
}

/// No node with an OK is forgotten, and no node that was asked.
#[test]
fn who_has_our_ok_or_is_asked_for_one_is_never_forgotten() {
    let mut node = Node::new(Config::new(3).with_peer_limit(3));
    let [listed, holder, named] = [member(1), member(2), member(3)];
    node.learn(Delta::Joined(listed));
    node.receive(holder, request(1));
    node.learn(Delta::Failed(holder));
    node.enter();
    node.receive(listed, ok(2, &[named]));
    for id in 100..110 {
        let notified = node.receive(Member::new(id, 0), request(5));
        let wait = Message::Wait { number: 5 };
        let to = Member::new(id, 0);
        assert_eq!(notified, [Effect::Send { to, message: wait }]);
    }
    assert_eq!(node.waits_for(), [holder, named]);
}

/// A node that was not asked, and has the OK of this node, or waits for it.
#[test]
fn a_node_with_an_open_request_is_never_forgotten() {
    let [listed, asker] = [member(1), member(2)];
    for is_inside in [false, true] {
        let mut node = Node::new(Config::new(2).with_peer_limit(2));
        node.learn(Delta::Joined(listed));
        if is_inside {
            node.enter();
            node.receive(listed, ok(1, &[]));
            assert!(node.driver.machine().token().is_some());
        }
        node.receive(asker, request(5));
        for id in 100..110 {
            let to = Member::new(id, 0);
            let notified = node.receive(to, request(5));
            let is_open = |it: &Effect<Camera>| match it {
                Effect::Send { message, .. } if is_inside => {
                    *message != Message::Wait { number: 5 }
                }
                Effect::Send { message, .. } => !matches!(message, Message::Abstain { .. }),
                Effect::Multicast { .. } | Effect::Event(_) => true,
            };
            assert!(
                notified.len() == 1 && !notified.iter().any(is_open),
                "{notified:?}"
            );
        }
        assert_eq!(node.driver.machine().counters().no_room, 10);
        if is_inside {
            node.notified(Input::Command(Command::Exit));
        }
        assert!(node.driver.machine().granted().eq([asker]));
    }
}

/// 2 has no room for 1. Its answer counts for its earlier requests, and not for its later ones.
#[test]
fn an_abstention_that_is_older_than_a_request_does_not_end_the_wait_for_it() {
    let others = [member(1), member(2), member(3)];
    let mut node = Node::new(Config::new(4));
    for other in others {
        node.learn(Delta::Joined(other));
    }
    node.enter();
    let [two, three, four] = others;
    node.receive(two, abstain(0));
    assert_eq!(node.waits_for(), [three, four]);
    // Now 2 wants to enter, and has the OK of 3.
    let asks = node.receive(three, ok(1, &[two]));
    assert!(
        asks.iter().any(
            |it| matches!(it, Effect::Send { to, message: Message::Request { .. } } if *to == two)
        ),
        "{asks:?}"
    );
    node.receive(four, ok(1, &[]));
    assert_eq!(node.waits_for(), [two]);
    // A copy of its old answer; then an answer that it gave when it was outside again.
    node.receive(two, abstain(0));
    assert_eq!(node.waits_for(), [two]);
    assert_eq!(node.driver.machine().token(), None);
    node.receive(two, abstain(1));
    assert!(node.driver.machine().token().is_some());
}

/// An abstention is no OK: abstentions alone make no quorum.
#[test]
fn abstentions_make_no_quorum() {
    let mut node = Node::new(Config::new(3).with_slow_path(false));
    for other in [1, 2] {
        node.learn(Delta::Joined(member(other)));
    }
    node.enter();
    node.receive(member(1), abstain(0));
    let notified = node.receive(member(2), abstain(0));
    let (answered, max_lives) = (1, 3);
    let refused = Event::Refused(Refusal::TooFew {
        answered,
        max_lives,
    });
    assert!(notified.contains(&Effect::Event(refused)), "{notified:?}");
}
