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
    let slow_path = false;
    let config = Config {
        slow_path,
        ..Config::new(6)
    };
    let mut mesh = mesh(3, config);
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

/// What the others say of the holder afterwards is what was known: nobody waits for it again.
#[test]
fn who_was_passed_over_is_not_awaited_again() {
    let takeover = Span::secs(1);
    let base = Config {
        takeover: Some(takeover),
        ..Config::new(3)
    };
    for slack in [0, 64] {
        let config = Config { slack, ..base };
        // Both ask with number 1, so the second one's token has to be above what its request may
        // have: it issues the request again, and is told of the holder again.
        let mut both = mesh(3, config);
        both.command(0, Command::Enter).unwrap();
        both.command(1, Command::Enter).unwrap();
        both.run_for(DELAY * 4);
        assert!(both.machine(0).unwrap().token().is_some());
        both.crash(0).unwrap();
        both.membership(1, Delta::Failed(member(0))).unwrap();
        both.run_for(takeover + config.resend);
        assert!(both.machine(1).unwrap().token().is_some(), "slack {slack}");

        // The OK that names the holder comes when its time is over.
        let mut late = mesh(3, config);
        late.command(0, Command::Enter).unwrap();
        late.run_for(DELAY * 4);
        late.crash(0).unwrap();
        late.membership(1, Delta::Failed(member(0))).unwrap();
        late.partition(&[vec![1], vec![0, 2]]).unwrap();
        late.command(1, Command::Enter).unwrap();
        late.run_for(takeover * 2);
        late.heal();
        late.run_for(config.resend * 2);
        assert!(late.machine(1).unwrap().token().is_some(), "slack {slack}");
    }
}

/// Node 1 of a mesh, by hand: takes the inputs and says to whom it sent requests.
fn asked_by_first(config: Config, inputs: Vec<Input<Camera>>) -> (Driver<Camera>, Vec<Member>) {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let mut node = Driver::new(Camera::new(member(0), config).unwrap());
    let mut asked = Vec::new();
    for input in inputs {
        asked.clear();
        node.step(Time::ZERO, &mut rng, input, |effect| {
            if let Effect::Send {
                to,
                message: Message::Request { .. },
            } = effect
            {
                asked.push(to);
            }
        })
        .unwrap();
    }
    (node, asked)
}

/// Membership says once that a node failed; what it sent before may come afterwards.
#[test]
fn a_late_request_does_not_put_who_failed_on_the_list() {
    let request = Request {
        number: 1,
        up_to: 1,
        last: 0,
    };
    let late = [
        Message::Request {
            request,
            after: None,
        },
        Message::Release { number: 1, last: 1 },
    ];
    let from = member(1);
    let joined = (1..4).map(|it| Input::Membership(Delta::Joined(member(it))));
    let inputs = joined
        .chain([Input::Membership(Delta::Failed(from))])
        .chain(late.map(|message| Input::Message { from, message }))
        .chain([Input::Command(Command::Enter)]);
    let (_, asked) = asked_by_first(Config::new(4), inputs.collect());
    assert_eq!(asked, [member(2), member(3)]);
}

/// Its OK was there, so its failure changed nothing; to the new number it will not answer.
#[test]
fn a_request_that_is_issued_again_does_not_wait_for_who_failed_meanwhile() {
    let config = Config {
        slack: 0,
        ..Config::new(4)
    };
    let ok = |from| {
        let message = Message::Ok {
            life: 0,
            number: 1,
            after: None,
            rivals: [].into_iter().collect(),
            more: false,
            floor: Token {
                number: 5,
                holder: member(3),
            },
        };
        Input::Message { from, message }
    };
    let joined = (1..4).map(|it| Input::Membership(Delta::Joined(member(it))));
    let inputs = joined.chain([
        Input::Command(Command::Enter),
        ok(member(1)),
        Input::Membership(Delta::Failed(member(1))),
        ok(member(2)),
        ok(member(3)),
    ]);
    let (node, asked) = asked_by_first(config, inputs.collect());
    // Should it be there, it must not be left with the old number.
    assert_eq!(asked, [member(1), member(2), member(3)]);
    let waits_for: Vec<Member> = node.machine().waits_for().collect();
    assert_eq!(waits_for, [member(2), member(3)]);
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
        life: 0,
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

/// Node 1 knows 2 and has no room for more. 2 names a rival, who may be inside.
#[test]
fn a_rival_that_cannot_be_remembered_is_not_taken_for_dead() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let config = Config {
        peer_limit: 1,
        ..Config::new(3)
    };
    let mut node = Driver::new(Camera::new(member(0), config).unwrap());
    let joined = Input::Membership(Delta::Joined(member(1)));
    node.step(Time::ZERO, &mut rng, joined, |_| ()).unwrap();
    let enter = Input::Command(Command::Enter);
    node.step(Time::ZERO, &mut rng, enter, |_| ()).unwrap();
    let rival = selvedge_camera::Rival {
        member: member(2),
        up_to: 1,
    };
    let message = Message::Ok {
        life: 0,
        number: 1,
        after: None,
        rivals: [rival].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    let from = member(1);
    let mut told = Vec::new();
    let input = Input::Message { from, message };
    node.step(Time::ZERO, &mut rng, input, |effect| {
        if let Effect::Event(event) = effect {
            told.push(event);
        }
    })
    .unwrap();
    let limit = 1;
    assert_eq!(told, [Event::Refused(Refusal::NoRoom { limit })]);
}

/// 2 came back and is inside. That its former life is over leaves nobody else to wait for.
#[test]
fn a_rival_in_a_new_life_is_awaited_before_its_former_life_is_forgotten() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let mut node = Driver::new(Camera::new(member(0), Config::new(3)).unwrap());
    let rival = selvedge_camera::Rival {
        member: Member::new(2, 1),
        up_to: 1,
    };
    let message = Message::Ok {
        life: 0,
        number: 1,
        after: None,
        rivals: [rival].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    let from = member(2);
    for input in [
        Input::Membership(Delta::Joined(member(1))),
        Input::Membership(Delta::Joined(from)),
        Input::Command(Command::Enter),
        Input::Message { from, message },
    ] {
        node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
    }
    assert_eq!(node.machine().token(), None);
    let waits_for: Vec<Member> = node.machine().waits_for().collect();
    assert_eq!(waits_for, [rival.member]);
}

/// A message reaches a node in whichever life it is, and both lives begin with number 1.
#[test]
fn an_ok_to_a_former_life_does_not_count() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let me = Member::new(1, 5);
    let mut node = Driver::new(Camera::new(me, Config::new(2)).unwrap());
    let joined = Input::Membership(Delta::Joined(member(1)));
    node.step(Time::ZERO, &mut rng, joined, |_| ()).unwrap();
    let enter = Input::Command(Command::Enter);
    node.step(Time::ZERO, &mut rng, enter, |_| ()).unwrap();
    let mut hear = |life| {
        let message = Message::Ok {
            life,
            number: 1,
            after: None,
            rivals: [].into_iter().collect(),
            more: false,
            floor: Token::default(),
        };
        let from = member(1);
        let mut effects = Vec::new();
        let input = Input::Message { from, message };
        node.step(Time::ZERO, &mut rng, input, |effect| effects.push(effect))
            .unwrap();
        effects
    };
    // Its sender learns from whom it comes that the former life is over; the request goes on.
    let message = Message::Release { number: 0, last: 0 };
    let to = member(1);
    assert_eq!(hear(4), [Effect::Send { to, message }]);
    let (number, holder) = (1, me);
    let token = Token { number, holder };
    assert_eq!(hear(5), [Effect::Event(Event::Entered(token))]);
}

/// A dead holder is waited for by one, and not by each that comes after it.
#[test]
fn a_takeover_is_waited_for_once() {
    let config = Config {
        takeover: Some(Span::secs(1)),
        ..Config::new(4)
    };
    let mut mesh = mesh(4, config);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 4);
    mesh.crash(0).unwrap();
    for node in 1..4 {
        mesh.membership(node, Delta::Failed(member(0))).unwrap();
    }
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(Span::secs(1) - DELAY);
    assert_eq!(entered(&mut mesh).len(), 1);
    mesh.run_for(DELAY * 4);
    mesh.command(1, Command::Exit).unwrap();
    mesh.run_for(DELAY * 4);
    assert_eq!(entered(&mut mesh).len(), 1);
    mesh.command(2, Command::Enter).unwrap();
    mesh.run_for(DELAY * 4);
    assert_eq!(entered(&mut mesh).len(), 1);
}

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
