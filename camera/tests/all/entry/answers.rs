//! The answers that count, and the requests for which they count.

use chacha20::rand_core::SeedableRng as _;
use selvedge_camera::{
    Camera, Command, Config, Event, Message, Refusal, Request, Rival, Token, TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};

use super::member;

/// Node 1 of a mesh, by hand.
pub(super) struct First {
    pub(super) driver: Driver<Camera>,
    rng: chacha20::ChaCha8Rng,
}

impl First {
    /// It knows the nodes 2 to `nodes`.
    pub(super) fn new(nodes: usize, config: Config) -> Self {
        Self::at(0, nodes, config)
    }

    /// Another node in its place.
    pub(super) fn at(place: usize, nodes: usize, config: Config) -> Self {
        let mut first = Self {
            driver: Driver::new(Camera::new(member(place), config).unwrap()),
            rng: chacha20::ChaCha8Rng::from_seed([0; 32]),
        };
        for node in (0..nodes).filter(|&it| it != place) {
            first.step(Input::Membership(Delta::Joined(member(node))));
        }
        first
    }

    pub(super) fn step(&mut self, input: Input<Camera>) -> Vec<Effect<Camera>> {
        let mut effects = Vec::new();
        self.driver
            .step_into(Time::ZERO, &mut self.rng, input, &mut effects)
            .unwrap();
        effects
    }

    pub(super) fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    pub(super) fn receives(&mut self, node: usize, message: Message) -> Vec<Effect<Camera>> {
        let from = member(node);
        self.step(Input::Message { from, message })
    }

    pub(super) fn waits_for(&self) -> Vec<Member> {
        self.driver.machine().waits_for().collect()
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.driver.machine().token().map(|it| it.number)
    }
}

/// An OK without rivals; the highest token that its sender knows of has this number.
pub(super) fn ok(number: u64, floor: u64) -> Message {
    let holder = member(9);
    Message::Ok {
        life: 0,
        number,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor: Token {
            number: floor,
            by: holder,
        },
    }
}

/// The list of an OK to a request.
fn part_of(number: u64, rivals: &[usize]) -> Message {
    let mut message = part(None, rivals, false);
    if let Message::Ok { number: of, .. } = &mut message {
        *of = number;
    }
    message
}

/// A part of the list of an OK to request 1.
pub(super) fn part(after: Option<usize>, rivals: &[usize], more: bool) -> Message {
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

/// A permission that was kept is good up to a number. Beyond it its giver may have let others enter,
/// and so may the nodes that gave their OK to the former number.
#[test]
fn no_ok_counts_for_a_request_that_is_issued_again() {
    let config = Config::new(3).with_keep(true).with_slack(4);
    let mut node = First::new(3, config);
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.receives(2, ok(1, 0));
    node.command(Command::Exit);
    let request = Request {
        number: 2,
        up_to: 2,
        last: 0,
    };
    let after = None;
    node.receives(1, Message::Request { request, after });
    node.command(Command::Enter);
    // 3's permission is still there.
    assert_eq!(node.waits_for(), [member(1)]);
    let effects = node.receives(1, ok(3, 9));
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
        node.receives(late, ok(number, 0));
        assert_eq!(node.waits_for(), [member(1), member(2)]);
    }
    node.receives(1, ok(10, 0));
    node.receives(2, ok(10, 0));
    assert_eq!(node.number(), Some(10));
}

/// Frames of 127 bytes hold few rivals. A part that comes late, or twice, would hide the
/// rivals of the parts between.
#[test]
fn a_part_of_a_list_counts_in_its_turn_only() {
    let mut node = First::new(3, Config::radio(7));
    node.command(Command::SetMaxLives(3));
    node.command(Command::Enter);
    let effects = node.receives(1, part(None, &[3], true));
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
        assert_eq!(node.receives(1, late), []);
        assert_eq!(node.waits_for(), awaited);
    }
    node.receives(1, part(Some(3), &[4], false));
    assert_eq!(node.waits_for(), [member(2), member(3), member(4)]);
}

/// The OKs of more than half of the list are needed, even if the bound asks for fewer.
#[test]
fn a_list_that_is_longer_than_the_bound_counts() {
    let config = Config::new(2).with_eager(true);
    let mut node = First::new(5, config);
    node.command(Command::Enter);
    assert_eq!(node.receives(1, ok(1, 0)), []);
    let effects = node.receives(2, ok(1, 0));
    assert!(matches!(effects[..], [Effect::Event(Event::Entered(_))]));
}

/// Node 4, which membership has not reported, asks, and is outside again: its RELEASE names the token up
/// to which its requests are over.
fn visit_of_a_stranger(node: &mut First, over: u64) {
    let request = Request {
        number: 1,
        up_to: 1,
        last: 0,
    };
    let after = None;
    node.receives(3, Message::Request { request, after });
    node.receives(3, out(over));
}

fn out(over: u64) -> Message {
    Message::Release {
        number: 1,
        last: 1,
        over,
    }
}

/// The sender of the OK did not know of the RELEASE yet. The stranger may have left, and membership
/// does not report it.
#[test]
fn an_older_ok_names_nobody_whose_release_was_heard() {
    let mut node = First::new(3, Config::new(3));
    visit_of_a_stranger(&mut node, 1);
    node.command(Command::Enter);
    node.receives(1, part_of(2, &[3]));
    assert_eq!(node.waits_for(), [member(2)]);
    node.receives(2, ok(2, 0));
    // Its token was 1, as its RELEASE reported.
    assert_eq!(node.number(), Some(2));
}

/// With `keep` a request goes on while a RELEASE ends an earlier one under the same token.
#[test]
fn a_rival_is_awaited_whose_release_does_not_cover_its_token() {
    let mut node = First::new(3, Config::new(3));
    visit_of_a_stranger(&mut node, 0);
    node.command(Command::Enter);
    node.receives(1, part_of(2, &[3]));
    assert_eq!(node.waits_for(), [member(2), member(3)]);
}

/// Its RELEASE came, and its OK was lost.
#[test]
fn who_is_waited_for_and_is_out_is_not_waited_for_any_more() {
    for is_listed in [false, true] {
        let mut node = First::new(2, Config::new(3));
        node.command(Command::Enter);
        if is_listed {
            node.step(Input::Membership(Delta::Joined(member(3))));
        }
        node.receives(1, part(None, &[3], false));
        assert_eq!(node.waits_for(), [member(3)]);
        node.receives(3, out(0));
        assert_eq!(node.waits_for(), [member(3)], "that is not all");
        node.receives(3, out(1));
        if is_listed {
            // Membership reports its failure, and it is no rival any more.
            assert_eq!(node.waits_for(), [member(3)]);
            node.step(Input::Membership(Delta::Failed(member(3))));
        }
        assert_eq!(node.number(), Some(2), "listed: {is_listed}");
    }
}

/// Kept permissions are good up to one token for all entries, so the next request may have a higher
/// token only when they were given back.
#[test]
fn no_request_has_a_token_that_was_said_to_be_over() {
    let config = Config::new(2).with_keep(true).with_slack(4);
    let mut node = First::new(2, config);
    let up_to = |node: &mut First| {
        let effects = node.step(Input::Command(Command::Enter));
        effects.iter().find_map(|effect| match effect {
            Effect::Send {
                message: Message::Request { request, .. },
                ..
            } => Some(request.up_to),
            _ => None,
        })
    };
    assert_eq!(up_to(&mut node), Some(5));
    node.receives(1, ok(1, 0));
    node.command(Command::Exit);
    let effects = node.step(Input::Command(Command::GiveBack));
    let is_over = |it: &Effect<Camera>| {
        matches!(
            it,
            Effect::Multicast {
                message: Message::Release { over: 5, .. }
            }
        )
    };
    assert!(effects.iter().any(is_over), "{effects:?}");
    assert_eq!(up_to(&mut node), Some(6));
}

/// Membership reported its failure before its RELEASE came, and reports it only once.
#[test]
fn who_failed_and_is_out_is_not_waited_for_any_more() {
    let mut node = First::new(2, Config::new(3));
    node.command(Command::Enter);
    node.step(Input::Membership(Delta::Joined(member(3))));
    node.step(Input::Membership(Delta::Failed(member(3))));
    node.receives(1, part(None, &[3], false));
    assert_eq!(node.waits_for(), [member(3)]);
    node.receives(3, out(1));
    assert_eq!(node.number(), Some(2));
}

/// A node that was passed over is a rival again when it is back, unless it is outside.
#[test]
fn who_was_passed_over_is_awaited_when_it_is_back_unless_it_is_out() {
    for is_out in [true, false] {
        let config = Config::new(3).with_takeover(Some(Span::secs(1)));
        let mut node = First::new(3, config);
        node.command(Command::Enter);
        node.step(Input::Membership(Delta::Joined(member(3))));
        node.step(Input::Membership(Delta::Failed(member(3))));
        let (number, holder) = (1, member(9));
        let token = Token { number, by: holder };
        node.receives(1, Message::Fence { token });
        node.receives(1, part(None, &[3], false));
        assert_eq!(node.waits_for(), [member(2)], "others have passed it over");
        if is_out {
            node.receives(3, out(1));
        }
        node.step(Input::Membership(Delta::Refuted(member(3))));
        let awaited = [member(2), member(3)];
        assert_eq!(node.waits_for(), awaited[..if is_out { 1 } else { 2 }]);
    }
}

#[test]
fn the_ok_of_a_stranger_that_is_out_counts_on() {
    let mut node = First::new(3, Config::new(5));
    node.command(Command::Enter);
    node.receives(1, part(None, &[3], false));
    node.receives(3, ok(1, 0));
    node.receives(3, out(1));
    // Three of five are a majority.
    node.step(Input::Membership(Delta::Failed(member(2))));
    assert!(node.number().is_some());
}

/// On the slow path nothing else is asked of it.
#[test]
fn a_rival_that_is_out_is_not_waited_for_on_the_slow_path() {
    let mut node = First::new(3, Config::new(7));
    node.command(Command::Enter);
    let rival = |node| Rival {
        member: member(node),
        up_to: 1,
    };
    let tree = TreeId {
        root: member(0),
        number: 1,
        attempt: 1,
    };
    let up = Message::Up {
        life: 0,
        tree,
        oks: 3,
        after: None,
        rivals: [rival(2)].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    node.receives(1, up);
    assert_eq!(node.waits_for(), [member(2)]);
    node.receives(2, out(1));
    assert_eq!(node.waits_for(), []);
}

#[test]
fn who_is_out_and_asks_again_is_told_of_again() {
    let mut node = First::new(3, Config::new(3));
    node.command(Command::Enter);
    node.receives(1, part(None, &[3], false));
    node.receives(3, out(1));
    assert_eq!(node.waits_for(), [member(2)]);
    let effects = node.receives(3, request(2, 7));
    assert!(effects.contains(&Effect::Event(Event::Waiting(member(3)))));
    assert_eq!(node.waits_for(), [member(2), member(3)]);
}

pub(super) fn request(number: u64, up_to: u64) -> Message {
    let request = Request {
        number,
        up_to,
        last: 0,
    };
    let after = None;
    Message::Request { request, after }
}

/// A RELEASE may overtake another one, or the next request.
#[test]
fn a_late_release_takes_nothing_back() {
    let release = |number, over| {
        let last = number;
        Message::Release { number, last, over }
    };
    let mut node = First::new(3, Config::new(3));
    node.receives(3, request(2, 7));
    node.receives(3, release(1, 5));
    let granted = |node: &First| node.driver.machine().granted().count();
    assert_eq!(granted(&node), 1, "its latest request goes on");
    node.receives(3, release(2, 7));
    node.receives(3, release(1, 5));
    assert_eq!(node.receives(3, request(2, 7)), []);
    assert_eq!(granted(&node), 0);
    node.command(Command::Enter);
    let mut named = part_of(3, &[]);
    if let Message::Ok { rivals, .. } = &mut named {
        let (member, up_to) = (member(3), 7);
        rivals.push(Rival { member, up_to });
    }
    node.receives(1, named);
    assert_eq!(node.waits_for(), [member(2)]);
}

/// A RELEASE may report only the tokens that its sender will not have.
#[test]
fn a_release_without_a_number_says_which_tokens_are_over() {
    let mut node = First::new(3, Config::new(3));
    let (number, last, over) = (0, 0, 1);
    node.receives(3, Message::Release { number, last, over });
    node.command(Command::Enter);
    node.receives(1, part(None, &[3], false));
    assert_eq!(node.waits_for(), [member(2)]);
}

/// Two nodes may keep a permission of the same third node, and each has to know of the other.
#[test]
fn nothing_is_over_while_permissions_are_kept() {
    let config = Config::new(2).with_keep(true);
    let mut node = First::new(2, config);
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.command(Command::Exit);
    assert_eq!(node.receives(1, ok(1, 0)), []);
    node.command(Command::GiveBack);
    assert_eq!(node.receives(1, ok(1, 0)).len(), 1);
}

/// If more nodes are on the list than the bound allows, an eager node needs more than half of the list
/// and itself.
#[test]
fn an_eager_quorum_is_of_the_list_where_that_is_longer_than_the_bound() {
    let config = Config::new(2).with_eager(true).with_slow_path(false);
    for (nodes, needed) in [(2, 1), (4, 2), (5, 2), (6, 3), (7, 3)] {
        let mut first = First::new(nodes, config);
        first.command(Command::Enter);
        for node in 1..=needed {
            assert_eq!(first.number(), None, "{nodes} nodes, {node} of {needed}");
            first.receives(node, ok(1, 0));
        }
        assert_eq!(first.number(), Some(1), "{nodes} nodes");
    }
}

/// A node that waits and loses its last neighbour is refused at once: there is no slow path without
/// neighbours.
#[test]
fn a_node_that_is_left_alone_while_it_waits_takes_no_slow_path() {
    let mut first = First::new(2, Config::new(2));
    first.command(Command::Enter);
    let effects = first.step(Input::Membership(Delta::Left(member(1))));
    let events = effects.iter().filter_map(|it| match it {
        Effect::Event(event) => Some(*event),
        Effect::Send { .. } | Effect::Multicast { .. } => None,
    });
    let (answered, max_lives) = (1, 2);
    let refused = Event::Refused(Refusal::TooFew {
        answered,
        max_lives,
    });
    assert_eq!(events.collect::<Vec<_>>(), [refused]);
}
