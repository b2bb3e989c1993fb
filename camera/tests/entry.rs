//! What an entry costs, what it waits for, and what it is told.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use selvedge_camera::{
    Camera, Command, Config, Event, Message, Misbehaviour, Refusal, Reject, Request, Token,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

const DELAY: Span = Span::millis(10);

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// Nodes that know each other, over links of 10 ms.
fn mesh(nodes: usize, config: Config) -> Network<Camera> {
    let link = Link {
        min_delay: DELAY,
        max_delay: DELAY,
        ..Link::default()
    };
    let mut mesh = Network::new(1, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for node in 0..nodes {
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

fn entered(mesh: &mut Network<Camera>) -> Vec<(Time, usize, Token)> {
    let token = |(at, node, event)| match event {
        Event::Entered(token) => Some((at, node, token)),
        _ => None,
    };
    mesh.drain_events().filter_map(token).collect()
}

/// Claim C1 and C2 of the thesis, section 4.3: exactly 2(n - 1) messages, one round trip; and an
/// exit is one multicast.
#[test]
fn an_uncontended_entry_takes_two_messages_a_member_and_one_round_trip() {
    for nodes in [2, 5, 49] {
        let mut mesh = mesh(nodes, Config::new(nodes as u32));
        for number in [1, 2] {
            let (sent, now) = (mesh.counters().sent, mesh.now());
            mesh.command(0, Command::Enter).unwrap();
            mesh.run_for(DELAY * 3);
            assert_eq!(mesh.counters().sent - sent, 2 * (nodes as u64 - 1));
            let holder = member(0);
            let expected = (now + DELAY * 2, 0, Token { number, holder });
            assert_eq!(entered(&mut mesh), [expected]);
            mesh.command(0, Command::Exit).unwrap();
            mesh.run_for(DELAY * 3);
        }
    }
}

/// A request in vain comes again once, then twice and so on; so does an OK that is asked for again.
#[test]
fn what_was_lost_comes_again_in_more_and_more_copies() {
    let config = Config {
        copies: 4,
        ..Config::new(2)
    };
    let mut mesh = mesh(2, config);
    let deaf = Link {
        loss: Ratio::ALWAYS,
        ..Link::default()
    };
    mesh.set_link(deaf).unwrap();
    mesh.command(0, Command::Enter).unwrap();
    let mut sent = Vec::new();
    for _ in 0..5 {
        mesh.run_for(config.resend);
        sent.push(mesh.counters().sent);
    }
    assert_eq!(sent, [2, 4, 8, 12, 16], "one, then 1, 2, 4, 4, 4 more");

    // Answers to one request that comes again and again.
    let mut rng = chacha20::ChaCha8Rng::from_seed([1; 32]);
    let mut node = Driver::new(Camera::new(member(1), config).unwrap());
    let request = Request {
        number: 1,
        up_to: 65,
        last: 0,
    };
    let after = None;
    let message = Message::Request { request, after };
    let mut answers = Vec::new();
    for _ in 0..4 {
        let mut count = 0;
        let (from, message) = (member(0), message.clone());
        let input = Input::Message { from, message };
        node.step(Time::ZERO, &mut rng, input, |_| count += 1)
            .unwrap();
        answers.push(count);
    }
    assert_eq!(answers, [1, 2, 4, 4]);
}

/// Two of five do not answer. Who is eager enters with the OKs of the others, but not before a
/// holder is out.
#[test]
fn with_a_quorum_and_all_rivals_the_eager_enter() {
    let config = Config {
        eager: true,
        ..Config::new(5)
    };
    let patient = Config {
        eager: false,
        ..config
    };
    for config in [patient, config] {
        let mut mesh = mesh(5, config);
        mesh.crash(3).unwrap();
        mesh.crash(4).unwrap();
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(Span::secs(60));
        assert_eq!(entered(&mut mesh).len(), usize::from(config.eager));
    }
    let mut mesh = mesh(5, config);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(DELAY * 100);
    assert_eq!(entered(&mut mesh).len(), 1, "the holder is no other");
    mesh.command(0, Command::Exit).unwrap();
    mesh.run_for(DELAY);
    assert_eq!(entered(&mut mesh).len(), 1);
}

/// Half a round trip after the exit of a known holder.
#[test]
fn who_waits_gets_in_with_one_message_after_the_exit() {
    let mut mesh = mesh(5, Config::new(5));
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 4);
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(DELAY * 4);
    let exit = mesh.now();
    mesh.command(0, Command::Exit).unwrap();
    mesh.run_for(DELAY * 4);
    let tokens: Vec<_> = entered(&mut mesh);
    assert_eq!(tokens.len(), 2);
    assert_eq!(tokens[1].0, exit + DELAY);
    assert!(tokens[1].2 > tokens[0].2);
}

#[test]
fn permissions_that_are_kept_cost_nothing_until_somebody_else_wants_them() {
    let config = Config {
        keep: true,
        ..Config::new(7)
    };
    let mut mesh = mesh(7, config);
    let visit = |mesh: &mut Network<Camera>, node| {
        let sent = mesh.counters().sent;
        mesh.command(node, Command::Enter).unwrap();
        mesh.run_for(DELAY * 10);
        mesh.command(node, Command::Exit).unwrap();
        mesh.run_for(DELAY * 10);
        mesh.counters().sent - sent
    };
    assert_eq!(visit(&mut mesh, 0), 12);
    for _ in 0..20 {
        assert_eq!(visit(&mut mesh, 0), 0);
    }
    // Another one pays for all, and takes the permission of the first one only.
    assert_eq!(visit(&mut mesh, 1), 12);
    assert_eq!(visit(&mut mesh, 0), 2);
    let tokens: Vec<Token> = entered(&mut mesh).into_iter().map(|it| it.2).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(tokens.len(), 23);
}

#[test]
fn too_few_nodes_are_refused_at_once_with_the_numbers() {
    let mut mesh = mesh(3, Config::new(6));
    mesh.command(0, Command::Enter).unwrap();
    let events: Vec<_> = mesh.drain_events().map(|it| it.2).collect();
    let (answered, upper) = (1, 6);
    assert_eq!(
        events,
        [Event::Refused(Refusal::TooFew { answered, upper })]
    );
    // The bound is put right.
    mesh.command(0, Command::Bound(3)).unwrap();
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    assert_eq!(entered(&mut mesh).len(), 1);
}

#[test]
fn commands_at_the_wrong_time_are_refused_with_the_mend() {
    let mut mesh = mesh(2, Config::new(2));
    let mut refused = |command| {
        assert!(mesh.command(0, command).is_err());
        mesh.last_reject(0).unwrap().to_string()
    };
    assert!(refused(Command::Exit).contains("wait for Entered"));
    assert!(refused(Command::Cancel).contains("give Enter first"));
    assert!(refused(Command::Bound(0)).contains("upper is 0"));
    mesh.command(0, Command::Enter).unwrap();
    assert!(mesh.command(0, Command::Enter).is_err());
    mesh.run_for(DELAY * 3);
    assert!(mesh.command(0, Command::Enter).is_err());
}

/// The holder is cut off and declared failed. With a takeover another one gets in with a higher
/// token; when they hear of each other again, the first is told.
#[test]
fn a_holder_that_was_passed_over_is_fenced() {
    let config = Config {
        takeover: Some(Span::secs(5)),
        ..Config::new(3)
    };
    let mut mesh = mesh(3, config);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.partition(&[vec![0], vec![1, 2]]).unwrap();
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(Span::secs(20));
    mesh.membership(1, Delta::Failed(member(0))).unwrap();
    mesh.run_for(Span::secs(4));
    assert_eq!(mesh.machine(1).unwrap().token(), None, "it has a time");
    mesh.run_for(Span::secs(2));
    let later = mesh.machine(1).unwrap().token().unwrap();
    assert!(later > mesh.machine(0).unwrap().token().unwrap());
    mesh.heal();
    mesh.membership(1, Delta::Refuted(member(0))).unwrap();
    mesh.run_for(DELAY * 3);
    let told = |event| {
        mesh.events()
            .iter()
            .any(|(_, node, it)| (*node, *it) == event)
    };
    assert!(told((1, Event::PassedOver(member(0)))));
    assert!(told((0, Event::Fenced(later))));
}

/// Without one nobody passes, until it is certain that the holder is dead.
#[test]
fn without_a_takeover_only_certainty_lets_others_in() {
    let mut mesh = mesh(3, Config::new(3));
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.crash(0).unwrap();
    mesh.command(1, Command::Enter).unwrap();
    for node in [1, 2] {
        mesh.membership(node, Delta::Suspected(member(0))).unwrap();
        mesh.membership(node, Delta::Failed(member(0))).unwrap();
    }
    mesh.run_for(Span::secs(3_600));
    assert_eq!(mesh.machine(1).unwrap().token(), None);
    let waits_for: Vec<Member> = mesh.machine(1).unwrap().waits_for().collect();
    assert_eq!(waits_for, [member(0)]);
    mesh.membership(1, Delta::Confirmed(member(0))).unwrap();
    assert!(mesh.machine(1).unwrap().token().is_some());
}

#[test]
fn what_no_sound_peer_sends_is_refused_and_changes_nothing() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let mut node = Driver::new(Camera::new(member(0), Config::new(3)).unwrap());
    let request = |number, up_to| Message::Request {
        request: Request {
            number,
            up_to,
            last: 0,
        },
        after: None,
    };
    let rivals = [member(5), member(4)].map(|member| selvedge_camera::Rival { member, up_to: 1 });
    let unsorted = Message::Ok {
        number: 1,
        after: None,
        rivals: rivals.into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    for (from, message) in [
        (member(1), request(0, 0)),
        (member(1), request(7, 6)),
        (member(0), request(1, 1)),
        (member(1), unsorted),
    ] {
        let input = Input::Message { from, message };
        let refused = node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap_err();
        assert!(matches!(refused, Reject::Misbehaviour(_)), "{refused}");
    }
    let own = Misbehaviour::OwnId(member(0)).to_string();
    assert!(own.contains("an id of its own"), "{own}");
}

/// 10,000 strangers ask; what is remembered stays within the limit, and a member is still served.
#[test]
fn a_flood_of_strangers_stays_within_the_limit() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let config = Config {
        peer_limit: 32,
        ..Config::new(3)
    };
    let mut node = Driver::new(Camera::new(member(0), config).unwrap());
    let friend = Input::Membership(Delta::Joined(member(1)));
    node.step(Time::ZERO, &mut rng, friend, |_| ()).unwrap();
    let mut ask = |from, number| {
        let request = Request {
            number,
            up_to: number,
            last: 0,
        };
        let message = Message::Request {
            request,
            after: None,
        };
        let mut answered = false;
        let input = Input::Message { from, message };
        node.step(Time::ZERO, &mut rng, input, |effect| {
            answered |= matches!(effect, Effect::Send { to, .. } if to == from);
        })
        .unwrap();
        answered
    };
    assert!(ask(member(1), 1));
    let strangers = (100..10_100)
        .filter(|&id| ask(Member::new(id, 0), 2))
        .count();
    assert!(strangers < 32, "{strangers}");
    assert!(ask(member(1), 3), "who is known is served");
    let no_room = node.machine().counters().no_room;
    assert_eq!(no_room as usize, 10_000 - strangers);
}

use chacha20::rand_core::SeedableRng as _;

/// Who passes a holder over cannot reach it then, and may be gone when others can.
#[test]
fn who_was_passed_over_is_told_by_whoever_heard_of_it() {
    let config = Config {
        takeover: Some(Span::secs(1)),
        ..Config::new(4)
    };
    // It may be heard of when it is back on a list, or when an OK is refreshed.
    for is_refuted in [true, false] {
        let mut mesh = mesh(4, config);
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(DELAY * 4);
        mesh.partition(&[vec![0], vec![1, 2, 3]]).unwrap();
        for node in 1..4 {
            mesh.membership(node, Delta::Failed(member(0))).unwrap();
        }
        mesh.command(1, Command::Enter).unwrap();
        mesh.run_for(Span::secs(2));
        mesh.command(1, Command::Exit).unwrap();
        mesh.run_for(DELAY * 4);
        let by = entered(&mut mesh)[1].2;
        assert_eq!(by.holder, member(1));
        mesh.crash(1).unwrap();
        mesh.heal();
        if is_refuted {
            mesh.membership(2, Delta::Refuted(member(0))).unwrap();
            mesh.run_for(DELAY * 2);
        } else {
            mesh.run_for(config.refresh);
        }
        let told: Vec<_> = mesh
            .drain_events()
            .map(|(_, node, event)| (node, event))
            .collect();
        assert_eq!(told, [(0, Event::Fenced(by))]);
    }
}
