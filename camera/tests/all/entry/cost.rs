//! The cost of an entry.

use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{Camera, Command, Config, Message, Request, Token};
use selvedge_core::{Driver, Input, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network};

use super::{DELAY, entered, member, mesh};

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
            let expected = (now + DELAY * 2, 0, Token { number, by: holder });
            assert_eq!(entered(&mut mesh), [expected]);
            mesh.command(0, Command::Exit).unwrap();
            mesh.run_for(DELAY * 3);
        }
    }
}

/// A request without an answer comes again once, then twice and so on; so does an OK that is
/// requested again.
#[test]
fn what_was_lost_comes_again_in_more_and_more_copies() {
    let config = Config::new(2).with_copies(4);
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

/// Two of five do not answer. An eager node enters with the OKs of the others, but not before a
/// holder is outside.
#[test]
fn with_a_quorum_and_all_rivals_the_eager_enter() {
    let config = Config::new(5).with_eager(true);
    let patient = config.with_eager(false);
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
    let config = Config::new(7).with_keep(true);
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
