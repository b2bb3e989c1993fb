//! Inputs that are refused, and messages that are not remembered.

use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{
    Branch, Camera, Command, Config, Event, Message, Misbehaviour, Refusal, Reject, Request, Token,
    TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

use super::{DELAY, entered, member, mesh};

#[test]
fn too_few_nodes_are_refused_at_once_with_the_numbers() {
    let slow_path = false;
    let config = Config::new(6).with_slow_path(slow_path);
    let mut mesh = mesh(3, config);
    mesh.command(0, Command::Enter).unwrap();
    let events: Vec<_> = mesh.drain_events().map(|it| it.2).collect();
    let (answered, max_lives) = (1, 6);
    assert_eq!(
        events,
        [Event::Refused(Refusal::TooFew {
            answered,
            max_lives
        })]
    );
    // The bound is put right.
    mesh.command(0, Command::SetMaxLives(3)).unwrap();
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
    assert!(refused(Command::SetMaxLives(0)).contains("max_lives is 0"));
    mesh.command(0, Command::Enter).unwrap();
    assert!(mesh.command(0, Command::Enter).is_err());
    mesh.run_for(DELAY * 3);
    assert!(mesh.command(0, Command::Enter).is_err());
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
    let echo = |levels, depths: &[u8]| {
        let member = member(6);
        let branches = depths.iter().map(|&depth| Branch { depth, member });
        let branches = branches.collect();
        let tree = TreeId {
            root: self::member(0),
            number: 1,
            attempt: 1,
        };
        Message::Echo {
            life: 0,
            tree,
            levels,
            branches,
        }
    };
    // A late message of a correct peer is no misbehaviour.
    let from = member(1);
    for message in [echo(0, &[]), echo(2, &[1, 2, 2, 1])] {
        let input = Input::Message { from, message };
        node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
    }
    for (from, message) in [
        (member(1), request(0, 0)),
        (member(1), request(7, 6)),
        (member(0), request(1, 1)),
        (member(1), unsorted),
        (member(1), echo(u8::MAX, &[])),
        (member(1), echo(2, &[2])),
        (member(1), echo(2, &[1, 3])),
        (member(1), echo(2, &[1, 0])),
        (member(1), echo(1, &[1, 2])),
    ] {
        let input = Input::Message { from, message };
        let refused = node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap_err();
        assert!(matches!(refused, Reject::Misbehaviour(_)), "{refused}");
    }
    let own = Misbehaviour::OwnId(member(0)).to_string();
    assert!(own.contains("an id of its own"), "{own}");
}

/// 10,000 strangers ask; the number of remembered nodes stays within the limit, and a member is
/// still served.
#[test]
fn a_flood_of_strangers_stays_within_the_limit() {
    let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
    let config = Config::new(3).with_peer_limit(32);
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
            answered |= matches!(
                effect,
                Effect::Send { to, message: Message::Ok { .. } } if to == from
            );
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
