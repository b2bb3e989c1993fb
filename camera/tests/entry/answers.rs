//! Which answers count, and for which request.

use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{Camera, Command, Config, Event, Message, Request, Rival, Token};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

use super::member;

/// Node 1 of a mesh, by hand.
struct First {
    driver: Driver<Camera>,
    rng: chacha20::ChaCha8Rng,
}

impl First {
    /// It knows the nodes 2 to `nodes`.
    fn new(nodes: usize, config: Config) -> Self {
        let mut first = Self {
            driver: Driver::new(Camera::new(member(0), config).unwrap()),
            rng: chacha20::ChaCha8Rng::from_seed([0; 32]),
        };
        for node in 1..nodes {
            first.step(Input::Membership(Delta::Joined(member(node))));
        }
        first
    }

    fn step(&mut self, input: Input<Camera>) -> Vec<Effect<Camera>> {
        let mut effects = Vec::new();
        self.driver
            .step(Time::ZERO, &mut self.rng, input, |it| effects.push(it))
            .unwrap();
        effects
    }

    fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    fn hears(&mut self, node: usize, message: Message) -> Vec<Effect<Camera>> {
        let from = member(node);
        self.step(Input::Message { from, message })
    }

    fn waits_for(&self) -> Vec<Member> {
        self.driver.machine().waits_for().collect()
    }

    fn number(&self) -> Option<u64> {
        self.driver.machine().token().map(|it| it.number)
    }
}

/// An OK without rivals; the highest token that its sender knows of has this number.
fn ok(number: u64, floor: u64) -> Message {
    let holder = member(9);
    Message::Ok {
        life: 0,
        number,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor: Token {
            number: floor,
            holder,
        },
    }
}

/// A part of the list of an OK to request 1.
fn part(after: Option<usize>, rivals: &[usize], more: bool) -> Message {
    let rival = |&node| Rival {
        member: member(node),
        up_to: 1,
    };
    Message::Ok {
        life: 0,
        number: 1,
        after: after.map(member),
        rivals: rivals.iter().map(rival).collect(),
        more,
        floor: Token::default(),
    }
}

/// A permission that was kept is good up to a number. Beyond it its giver may have let in others,
/// and so may those have that said OK to the former number.
#[test]
fn no_ok_counts_for_a_request_that_is_issued_again() {
    let config = Config {
        keep: true,
        slack: 4,
        ..Config::new(3)
    };
    let mut node = First::new(3, config);
    node.command(Command::Enter);
    node.hears(1, ok(1, 0));
    node.hears(2, ok(1, 0));
    node.command(Command::Exit);
    let request = Request {
        number: 2,
        up_to: 2,
        last: 0,
    };
    let after = None;
    node.hears(1, Message::Request { request, after });
    node.command(Command::Enter);
    // 3's permission is still there.
    assert_eq!(node.waits_for(), [member(1)]);
    let effects = node.hears(1, ok(3, 9));
    let asked: Vec<Member> = effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send {
                to,
                message: Message::Request { request, .. },
            } if request.number == 10 => Some(to),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [member(1), member(2)]);
    for (late, number) in [(1, 3), (2, 3), (2, 1)] {
        node.hears(late, ok(number, 0));
        assert_eq!(node.waits_for(), [member(1), member(2)]);
    }
    node.hears(1, ok(10, 0));
    node.hears(2, ok(10, 0));
    assert_eq!(node.number(), Some(10));
}

/// Frames of 127 bytes hold few rivals. A part that comes late, or twice, would hide those of the
/// parts between.
#[test]
fn a_part_of_a_list_counts_in_its_turn_only() {
    let mut node = First::new(3, Config::radio(7));
    node.command(Command::Bound(3));
    node.command(Command::Enter);
    let effects = node.hears(1, part(None, &[3], true));
    let goes_on = |effect: &Effect<Camera>| {
        let after = Some(member(3));
        matches!(effect, Effect::Send { to, message: Message::Request { after: it, .. } }
            if *to == member(1) && *it == after)
    };
    assert!(effects.iter().any(goes_on), "{effects:?}");
    let awaited = [member(1), member(2), member(3)];
    for late in [
        part(Some(4), &[5], false),
        part(Some(4), &[], false),
        part(None, &[3], true),
        part(None, &[], false),
    ] {
        assert_eq!(node.hears(1, late), []);
        assert_eq!(node.waits_for(), awaited);
    }
    node.hears(1, part(Some(3), &[4], false));
    assert_eq!(node.waits_for(), [member(2), member(3), member(4)]);
}

/// More than half of the list has to say OK where the bound says that fewer would do.
#[test]
fn a_list_that_is_longer_than_the_bound_counts() {
    let config = Config {
        eager: true,
        ..Config::new(2)
    };
    let mut node = First::new(5, config);
    node.command(Command::Enter);
    assert_eq!(node.hears(1, ok(1, 0)), []);
    let effects = node.hears(2, ok(1, 0));
    assert!(matches!(effects[..], [Effect::Event(Event::Entered(_))]));
}
