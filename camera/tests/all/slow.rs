//! The slow path through whole meshes: entries, their cost, and nodes that die meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{
    Camera, Command, Config, Event, Message, Refusal, Request, Rival, Token, TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

const DELAY: Span = Span::millis(10);

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// A mesh in which node `n` knows `n + step` and `n - step` for each step, all in a ring.
fn ring(nodes: usize, steps: &[usize], config: Config, loss: u32) -> Network<Camera> {
    let link = Link {
        min_delay: DELAY,
        max_delay: DELAY,
        loss: Ratio::new(loss, 100),
        ..Link::default()
    };
    let mut mesh = Network::new(7, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for node in 0..nodes {
        let me = member(node);
        mesh.add(me, Camera::new(me, config).unwrap()).unwrap();
    }
    for node in 0..nodes {
        for step in steps {
            for other in [node + step, node + nodes - step] {
                let joined = Delta::Joined(member(other % nodes));
                mesh.membership(node, joined).unwrap();
            }
        }
    }
    mesh
}

fn events(mesh: &mut Network<Camera>) -> Vec<(usize, Event)> {
    let notified = mesh.drain_events();
    notified.map(|(_, node, event)| (node, event)).collect()
}

fn entered(mesh: &mut Network<Camera>) -> Vec<(usize, Token)> {
    let notified = events(mesh).into_iter();
    notified
        .filter_map(|(node, event)| match event {
            Event::Entered(token) => Some((node, token)),
            _ => None,
        })
        .collect()
}

/// Two round trips of neighbours are two messages, or four if both ask each other.
#[test]
fn a_request_goes_through_the_whole_mesh_and_back() {
    const NODES: usize = 48;
    let mut mesh = ring(NODES, &[1, 5], Config::new(NODES as u32), 0);
    mesh.command(0, Command::Enter).unwrap();
    assert_eq!(events(&mut mesh), [(0, Event::SlowPathTaken)]);
    // The farthest node is 6 hops away; it asks its neighbours, and its OK returns over 6 hops.
    mesh.run_for(DELAY * 13);
    assert_eq!(entered(&mut mesh), []);
    mesh.run_for(DELAY);
    let number = 1;
    let holder = member(0);
    assert_eq!(entered(&mut mesh), [(0, Token { number, by: holder })]);
    let pairs = NODES as u64 * 2;
    let sent = mesh.counters().sent;
    println!("{sent} messages for {pairs} pairs");
    assert!(sent <= 4 * pairs, "{sent} messages for {pairs} pairs");
    assert_eq!(mesh.machine(0).unwrap().counters().slow, 1);
}

/// All nodes want to enter at once, and some messages are lost.
#[test]
fn all_get_in_one_after_the_other() {
    const NODES: usize = 12;
    for multicast in [true, false] {
        let config = Config::new(NODES as u32).with_multicast(multicast);
        let mut mesh = ring(NODES, &[1], config, 5);
        for node in 0..NODES {
            mesh.command(node, Command::Enter).unwrap();
        }
        let mut all: Vec<(usize, Token)> = Vec::new();
        for _ in 0..400 {
            mesh.run_for(Span::millis(500));
            let inside = |node: &usize| mesh.machine(*node).unwrap().token().is_some();
            let inside: Vec<usize> = (0..NODES).filter(inside).collect();
            assert!(inside.len() <= 1, "{inside:?}");
            all.extend(entered(&mut mesh));
            for node in inside {
                mesh.command(node, Command::Exit).unwrap();
            }
        }
        assert_eq!(all.len(), NODES, "{all:?}");
        assert!(all.is_sorted_by(|a, b| a.1 < b.1), "{all:?}");
    }
}

/// The holder makes all others wait. Meanwhile nodes between it and a waiting root die.
#[test]
fn inner_nodes_may_die_while_the_root_waits() {
    const NODES: usize = 9;
    let mut mesh = ring(NODES, &[1], Config::new(NODES as u32), 0);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    mesh.command(4, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    assert_eq!(entered(&mut mesh).len(), 1);
    let before = mesh.counters().sent;
    // Node 2 is between them, and node 1 is its child in the tree of node 4.
    mesh.crash(2).unwrap();
    for node in [1, 3] {
        mesh.membership(node, Delta::Failed(member(2))).unwrap();
    }
    mesh.run_for(DELAY * 4);
    // Its child was adopted: nothing was built again.
    assert!(mesh.counters().sent < before + 10);
    mesh.command(0, Command::Exit).unwrap();
    mesh.run_for(DELAY * 10);
    let all = entered(&mut mesh);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].0, 4);
    assert_eq!(mesh.machine(4).unwrap().counters().rebuilt, 0);
}

/// A request that began on the fast path goes on when its list gets too short.
#[test]
fn a_request_changes_its_path_under_way() {
    const NODES: usize = 6;
    let mut mesh = ring(NODES, &[1, 2], Config::new(NODES as u32), 0);
    mesh.command(3, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    // All of its neighbours but one are wrongly taken for dead while it waits for node 3.
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    for other in [2, 4, 5] {
        mesh.membership(0, Delta::Failed(member(other))).unwrap();
    }
    mesh.run_for(DELAY * 10);
    let notified = events(&mut mesh);
    assert!(
        !notified.contains(&(0, Event::SlowPathTaken)),
        "it has their OKs"
    );
    mesh.command(0, Command::Cancel).unwrap();
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    assert!(events(&mut mesh).contains(&(0, Event::SlowPathTaken)));
    mesh.command(3, Command::Exit).unwrap();
    mesh.run_for(DELAY * 10);
    let all = entered(&mut mesh);
    assert_eq!(all.iter().map(|it| it.0).collect::<Vec<_>>(), [0]);
}

/// Nodes that are not connected are too few, and the root learns of it.
#[test]
fn a_part_of_the_mesh_is_refused() {
    let mut mesh = ring(4, &[1], Config::new(9), 0);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    let (answered, max_lives) = (4, 9);
    let refused = Event::Refused(Refusal::TooFew {
        answered,
        max_lives,
    });
    assert_eq!(events(&mut mesh), [(0, Event::SlowPathTaken), (0, refused)]);
    // Nothing is left of it.
    for node in 0..4 {
        assert!(!mesh.machine(node).unwrap().is_waiting());
    }
}

/// A node takes part in a limited number of trees; further trees go around it.
#[test]
fn trees_are_bounded() {
    let config = Config::new(6).with_tree_limit(1);
    let mut mesh = ring(6, &[1], config, 0);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    assert_eq!(entered(&mut mesh).len(), 1);
    mesh.command(2, Command::Enter).unwrap();
    mesh.command(4, Command::Enter).unwrap();
    mesh.run_for(DELAY * 10);
    let no_room: u64 = mesh.machines().map(|it| it.1.counters().no_room).sum();
    assert!(no_room > 0);
    mesh.command(0, Command::Exit).unwrap();
    mesh.run_for(Span::secs(10));
    let inside = mesh.machines().filter(|it| it.1.token().is_some());
    assert!(inside.count() <= 1);
}

/// A permission is kept until its giver wants to enter. On the slow path nothing is kept, so a
/// permission that was kept from a rival has to be given again: it may have our OK before our own entry.
#[test]
fn a_permission_that_was_kept_is_asked_for_again_on_the_slow_path() {
    let config = Config::new(3).with_keep(true);
    let [rival, me, third] = [member(0), member(1), member(2)];
    let mut node = Driver::new(Camera::new(me, config).unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut step = |input| {
        let mut effects = Vec::new();
        node.step_into(Time::ZERO, &mut rng, input, &mut effects)
            .unwrap();
        let waits_for: Vec<Member> = node.machine().waits_for().collect();
        (effects, waits_for)
    };
    let request = |number| Message::Request {
        request: Request {
            number,
            up_to: 65,
            last: 0,
        },
        after: None,
    };
    let ok = Message::Ok {
        life: 0,
        number: 1,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    let from = |from, message| Input::Message { from, message };
    for other in [rival, third] {
        step(Input::Membership(Delta::Joined(other)));
    }
    step(Input::Command(Command::Enter));
    // It goes first, keeps our OK, and so never reports to us that it is outside again.
    step(from(rival, request(1)));
    step(from(third, ok.clone()));
    let (effects, _) = step(from(rival, ok));
    assert!(matches!(effects[..], [Effect::Event(Event::Entered(_))]));
    step(Input::Command(Command::Exit));
    step(Input::Command(Command::SetMaxLives(6)));
    let (effects, waits_for) = step(Input::Command(Command::Enter));
    assert!(effects.contains(&Effect::Event(Event::SlowPathTaken)));
    assert_eq!(waits_for, [rival]);
}

/// Node 1 of a mesh that needs the slow path, by hand, asks to enter after these inputs. Returns a
/// function that takes a message of node 3, and returns the nodes for which node 1 then waits.
fn root(config: Config, before: Vec<Input<Camera>>) -> impl FnMut(Option<Message>) -> Vec<Member> {
    let mut node = Driver::new(Camera::new(member(0), config).unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for input in before.into_iter().chain([Input::Command(Command::Enter)]) {
        node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
    }
    move |message| {
        let from = member(2);
        if let Some(message) = message {
            let input = Input::Message { from, message };
            node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
        }
        node.machine().waits_for().collect()
    }
}

/// The answer of node 3 and all nodes below it to node 1's request.
fn sum(number: u64, after: Option<usize>, rivals: &[usize], more: bool) -> Message {
    let rival = |&node| Rival {
        member: member(node),
        up_to: 9,
    };
    Message::Up {
        life: 0,
        tree: TreeId {
            root: member(0),
            number,
            attempt: 1,
        },
        oks: 3,
        after: after.map(member),
        rivals: rivals.iter().map(rival).collect(),
        more,
        floor: Token::default(),
    }
}

/// Its giver is not asked in the tree, and may have gone on since.
#[test]
fn a_rival_of_which_a_permission_was_kept_is_asked_when_the_tree_names_it() {
    let config = Config::new(4).with_keep(true);
    let ok = |node| Input::Message {
        from: member(node),
        message: Message::Ok {
            life: 0,
            number: 1,
            after: None,
            rivals: [].into_iter().collect(),
            more: false,
            floor: Token::default(),
        },
    };
    let joined = |node| Input::Membership(Delta::Joined(member(node)));
    let before = vec![
        joined(1),
        joined(2),
        Input::Command(Command::Enter),
        ok(1),
        ok(2),
        Input::Command(Command::Exit),
        Input::Membership(Delta::Failed(member(1))),
    ];
    let mut waits = root(config, before);
    assert_eq!(waits(None), []);
    assert_eq!(waits(Some(sum(2, None, &[1], false))), [member(1)]);
}

/// A part that comes late, or twice, would hide the rivals of the parts between.
#[test]
fn a_part_of_a_list_from_below_counts_in_its_turn_only() {
    let joined = Input::Membership(Delta::Joined(member(2)));
    let mut waits = root(Config::radio(5), vec![joined]);
    assert_eq!(waits(Some(sum(1, None, &[3], true))), [member(3)]);
    for late in [
        sum(1, Some(4), &[5], false),
        sum(1, Some(4), &[], false),
        sum(1, None, &[3], true),
        sum(1, None, &[], false),
    ] {
        assert_eq!(waits(Some(late)), [member(3)]);
    }
    let last = sum(1, Some(3), &[4], false);
    assert_eq!(waits(Some(last)), [member(3), member(4)]);
}
