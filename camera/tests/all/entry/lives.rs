//! Failures and lives: the nodes for which a request waits.

use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{Camera, Command, Config, Event, Message, Refusal, Request, Token};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

use super::member;

/// Node 1 of a mesh, by hand: takes the inputs and returns the nodes to which it sent requests.
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

/// Membership reports a failure once; earlier messages of the node may come afterwards.
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
        Message::Release {
            number: 1,
            last: 1,
            over: 1,
        },
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
    let config = Config::new(4).with_slack(0);
    let ok = |from| {
        let message = Message::Ok {
            life: 0,
            number: 1,
            after: None,
            rivals: [].into_iter().collect(),
            more: false,
            floor: Token {
                number: 5,
                by: member(3),
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

/// Node 1 knows 2 and has no room for more. 2 names a rival, which may be inside.
#[test]
fn a_rival_that_cannot_be_remembered_is_not_taken_for_dead() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let config = Config::new(3).with_peer_limit(1);
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
    let mut notified = Vec::new();
    let input = Input::Message { from, message };
    node.step(Time::ZERO, &mut rng, input, |effect| {
        if let Effect::Event(event) = effect {
            notified.push(event);
        }
    })
    .unwrap();
    let limit = 1;
    assert_eq!(notified, [Event::Refused(Refusal::NoRoom { limit })]);
}

/// 2 came back and is inside. Its former life has ended, so there is no other node to wait for.
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

/// A message can reach a later life of its receiver, and both lives begin with number 1.
#[test]
fn an_ok_to_a_former_life_does_not_count() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let me = Member::new(1, 5);
    let mut node = Driver::new(Camera::new(me, Config::new(2)).unwrap());
    let joined = Input::Membership(Delta::Joined(member(1)));
    node.step(Time::ZERO, &mut rng, joined, |_| ()).unwrap();
    let enter = Input::Command(Command::Enter);
    node.step(Time::ZERO, &mut rng, enter, |_| ()).unwrap();
    let mut receive = |life| {
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
        node.step_into(Time::ZERO, &mut rng, input, &mut effects)
            .unwrap();
        effects
    };
    // Its sender learns from the message's sender that the former life has ended; the request goes on.
    let message = Message::Release {
        number: 0,
        last: 0,
        over: 0,
    };
    let to = member(1);
    assert_eq!(receive(4), [Effect::Send { to, message }]);
    let (number, holder) = (1, me);
    let token = Token { number, by: holder };
    assert_eq!(receive(5), [Effect::Event(Event::Entered(token))]);
}

/// A newcomer learns the highest token from any node, so tokens go on rising when all nodes that
/// entered before have ended.
#[test]
fn a_newcomer_that_is_left_alone_enters_above_all_tokens_it_was_not_there_for() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let node = |at| Driver::new(Camera::new(member(at), Config::new(1)).unwrap());
    let (mut old, mut newcomer) = (node(0), node(1));
    let mut tokens = Vec::new();
    let mut enter = |node: &mut Driver<Camera>| {
        let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
        for command in [Command::Enter, Command::Exit] {
            node.step(Time::ZERO, &mut rng, Input::Command(command), |effect| {
                if let Effect::Event(Event::Entered(token)) = effect {
                    tokens.push(token);
                }
            })
            .unwrap();
        }
    };
    for _ in 0..3 {
        enter(&mut old);
    }
    let mut notified = Vec::new();
    let joined = Input::Membership(Delta::Joined(member(1)));
    old.step_into(Time::ZERO, &mut rng, joined, &mut notified)
        .unwrap();
    for effect in notified {
        if let Effect::Send { to, message } = effect {
            assert_eq!(to, member(1));
            let from = member(0);
            let input = Input::Message { from, message };
            newcomer.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
        }
    }
    let left = Input::Membership(Delta::Left(member(0)));
    newcomer.step(Time::ZERO, &mut rng, left, |_| ()).unwrap();
    enter(&mut newcomer);
    assert_eq!(tokens.len(), 4);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}
