//! One node of a slow path's tree, by hand: the messages that it passes on, the nodes that it adopts,
//! and the messages that it accepts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{
    Branch, Camera, Command, Config, Counters, Event, Message, Request, Rival, Token, TreeId,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// Another node that wants to enter, and is our parent.
const ROOT: usize = 1;
/// A neighbour, below us.
const CHILD: usize = 2;

/// Node 0 of a mesh.
struct Node {
    driver: Driver<Camera>,
    rng: ChaCha8Rng,
    now: Time,
    entered: bool,
}

impl Node {
    /// Its neighbours are these.
    fn new(config: Config, neighbours: &[usize]) -> Self {
        let mut node = Self {
            driver: Driver::new(Camera::new(member(0), config).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            entered: false,
        };
        for &it in neighbours {
            node.learns(Delta::Joined(member(it)));
        }
        node
    }

    /// In the tree of `ROOT`, with `CHILD` below it.
    fn in_tree(config: Config) -> Self {
        let mut node = Self::new(config, &[ROOT, CHILD]);
        assert_eq!(node.receives(ROOT, join(1)), [(CHILD, join(1))]);
        node
    }

    fn step(&mut self, input: Input<Camera>) -> Vec<(usize, Message)> {
        let mut effects = Vec::new();
        self.driver
            .step_into(self.now, &mut self.rng, input, &mut effects)
            .unwrap();
        self.sent(effects)
    }

    fn sent(&mut self, effects: Vec<Effect<Camera>>) -> Vec<(usize, Message)> {
        let mut sent = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => sent.push((to.id.0 as usize - 1, message)),
                Effect::Event(Event::Entered(_)) => self.entered = true,
                Effect::Event(_) | Effect::Multicast { .. } => {}
            }
        }
        sent
    }

    fn receives(&mut self, from: usize, message: Message) -> Vec<(usize, Message)> {
        let from = member(from);
        self.step(Input::Message { from, message })
    }

    fn learns(&mut self, delta: Delta) -> Vec<(usize, Message)> {
        self.step(Input::Membership(delta))
    }

    fn command(&mut self, command: Command) -> Vec<(usize, Message)> {
        self.step(Input::Command(command))
    }

    /// The messages that it sends when its next timer is due.
    fn tick(&mut self) -> Vec<(usize, Message)> {
        self.now = self.driver.deadline().unwrap();
        let mut effects = Vec::new();
        let now = self.now;
        self.driver.expire_into(now, &mut self.rng, &mut effects);
        self.sent(effects)
    }

    fn counters(&self) -> Counters {
        *self.driver.machine().counters()
    }

    fn waits_for(&self) -> Vec<Member> {
        self.driver.machine().waits_for().collect()
    }
}

fn tree_of(root: usize, number: u64, attempt: u32) -> TreeId {
    TreeId {
        root: member(root),
        number,
        attempt,
    }
}

/// The tree of `ROOT`.
fn tree(attempt: u32) -> TreeId {
    tree_of(ROOT, 1, attempt)
}

fn join(attempt: u32) -> Message {
    join_of(tree(attempt))
}

fn join_of(tree: TreeId) -> Message {
    Message::Join {
        tree,
        up_to: 65,
        last: 0,
    }
}

fn adopt(tree: TreeId, after: Option<usize>) -> Message {
    Message::Adopt {
        tree,
        up_to: 65,
        last: 0,
        after: after.map(member),
    }
}

/// An ECHO with this number of known levels below the sender, and these nodes with their depths.
fn echo(tree: TreeId, levels: u8, below: &[(u8, usize)]) -> Message {
    let branch = |&(depth, node): &(u8, usize)| Branch {
        depth,
        member: member(node),
    };
    Message::Echo {
        life: 0,
        tree,
        levels,
        branches: below.iter().map(branch).collect(),
    }
}

/// An UP: all nodes below gave their OK, and name these rivals.
fn up(tree: TreeId, after: Option<usize>, rivals: &[usize], more: bool) -> Message {
    let rival = |&node: &usize| Rival {
        member: member(node),
        up_to: 9,
    };
    Message::Up {
        life: 0,
        tree,
        oks: 3,
        after: after.map(member),
        rivals: rivals.iter().map(rival).collect(),
        more,
        floor: Token::default(),
    }
}

/// The nodes to which it reports that it is the new parent.
fn adopts(sent: &[(usize, Message)]) -> Vec<usize> {
    let is_adopt = |it: &&(usize, Message)| matches!(it.1, Message::Adopt { .. });
    sent.iter().filter(is_adopt).map(|it| it.0).collect()
}

fn breaks(sent: &[(usize, Message)]) -> bool {
    let broken = Message::Broken { tree: tree(1) };
    sent.contains(&(ROOT, broken))
}

/// A parent learns of all rivals that the nodes below name, except the root.
#[test]
fn rivals_from_below_are_named_to_the_parent() {
    let mut node = Node::in_tree(Config::new(9));
    let sent = node.receives(CHILD, up(tree(1), None, &[ROOT, 4, 5], false));
    let [(ROOT, Message::Up { oks: 4, rivals, .. })] = &sent[..] else {
        panic!("{sent:?}");
    };
    let named: Vec<Member> = rivals.iter().map(|it| it.member).collect();
    assert_eq!(named, [member(4), member(5)]);
}

/// A child may be asked for both at once, and its answers overtake each other.
#[test]
fn a_list_goes_on_where_it_was_when_the_child_says_again_who_is_below() {
    let mut node = Node::in_tree(Config::new(9));
    let sent = node.receives(CHILD, up(tree(1), None, &[4], true));
    assert!(sent.contains(&(CHILD, adopt(tree(1), Some(4)))));
    node.receives(CHILD, echo(tree(1), 0, &[]));
    let sent = node.receives(CHILD, up(tree(1), Some(4), &[5], false));
    assert!(matches!(sent[..], [(ROOT, Message::Up { .. })]), "{sent:?}");
}

/// The nodes keep a tree until they learn that it has ended.
#[test]
fn who_works_on_a_request_that_is_over_is_told_so() {
    let mut node = Node::new(Config::new(9), &[CHILD]);
    let release = |number| {
        // The highest number that a token of the request might have had.
        let message = Message::Release {
            number,
            last: 0,
            over: 65,
        };
        (CHILD, message)
    };
    let old = |number, attempt| tree_of(0, number, attempt);
    node.command(Command::Enter);
    node.command(Command::Cancel);
    for late in [
        echo(old(1, 1), 0, &[]),
        up(old(1, 1), None, &[], false),
        Message::Broken { tree: old(1, 1) },
    ] {
        assert_eq!(node.receives(CHILD, late), [release(1)]);
    }
    assert_eq!(node.counters().stale, 3);
    // No request has a number that we never used, so nothing is over.
    let never = || Message::Broken { tree: old(9, 1) };
    assert_eq!(node.receives(CHILD, never()), []);
    // While the next one waits, only the former ones are over.
    node.command(Command::Enter);
    assert_eq!(node.receives(CHILD, echo(old(1, 1), 0, &[])), [release(1)]);
    assert_eq!(node.receives(CHILD, never()), []);
    assert_eq!(node.counters().stale, 6);
    // Of another node's tree we know nothing.
    assert_eq!(node.receives(CHILD, echo(tree(1), 0, &[])), []);
    assert_eq!(node.counters().stale, 7);
}

#[test]
fn a_tree_is_built_anew_once_for_each_attempt_that_broke() {
    let mut node = Node::new(Config::new(4), &[CHILD]);
    node.command(Command::Enter);
    let broken = |attempt| Message::Broken {
        tree: tree_of(0, 1, attempt),
    };
    let again = |attempt| join_of(tree_of(0, 1, attempt));
    assert_eq!(node.receives(CHILD, broken(7)), [], "not ours yet");
    assert_eq!(node.receives(CHILD, broken(1)), [(CHILD, again(2))]);
    assert_eq!(node.receives(CHILD, broken(1)), [], "late");
    assert_eq!(node.receives(CHILD, broken(2)), [(CHILD, again(3))]);
    assert_eq!((node.counters().rebuilt, node.counters().stale), (2, 0));
    // While we are inside, a lost part does not matter any more.
    node.receives(CHILD, up(tree_of(0, 1, 3), None, &[], false));
    assert!(node.entered);
    assert_eq!(node.receives(CHILD, broken(3)), []);
    assert_eq!(node.counters().rebuilt, 2);
    node.command(Command::Exit);
    // Nor of what others do for the request by which it is inside; former ones are over.
    node.command(Command::Enter);
    node.receives(CHILD, up(tree_of(0, 2, 1), None, &[], false));
    assert!(node.driver.machine().token().is_some());
    let (number, last, over) = (1, 2, 65);
    let release = Message::Release { number, last, over };
    assert_eq!(node.receives(CHILD, broken(1)), [(CHILD, release)]);
}

/// A message to a former life is about a tree of that life.
#[test]
fn only_what_is_said_to_this_life_counts() {
    let mut node = Node::new(Config::new(4), &[CHILD]);
    node.command(Command::Enter);
    let Message::Up {
        tree,
        oks,
        after,
        rivals,
        more,
        floor,
        ..
    } = up(tree_of(0, 1, 1), None, &[], false)
    else {
        panic!("it is an UP");
    };
    let said_to = |life| Message::Up {
        life,
        tree,
        oks,
        after,
        rivals: rivals.clone(),
        more,
        floor,
    };
    node.receives(CHILD, said_to(1));
    assert!(!node.entered);
    assert_eq!(node.counters().stale, 1);
    node.receives(CHILD, said_to(0));
    assert!(node.entered);
}

#[test]
fn a_node_takes_part_in_the_latest_attempt_and_follows_its_parents() {
    let other = 3;
    let mut node = Node::new(Config::new(9), &[ROOT, CHILD, other]);
    node.receives(ROOT, join(2));
    for below in [CHILD, other] {
        node.receives(below, echo(tree(2), 0, &[]));
    }
    // A former attempt is declined, and changes no parent.
    let nack = Message::Nack { tree: tree(1) };
    assert_eq!(node.receives(other, adopt(tree(1), None)), [(other, nack)]);
    // The same attempt has a new parent, which gets our report.
    let notified = node.receives(other, adopt(tree(2), None));
    assert!(
        matches!(notified[..], [(to, Message::Echo { .. })] if to == other),
        "{notified:?}"
    );
    // A later attempt begins again.
    let sent = node.receives(ROOT, adopt(tree(3), None));
    assert!(sent.contains(&(CHILD, join(3))), "{sent:?}");
}

/// The root has no parent.
#[test]
fn a_root_is_nobodys_child() {
    let mut node = Node::new(Config::new(9), &[CHILD]);
    node.command(Command::Enter);
    let ours = tree_of(0, 1, 1);
    let nack = Message::Nack { tree: ours };
    assert_eq!(node.receives(CHILD, adopt(ours, None)), [(CHILD, nack)]);
    assert_eq!(node.waits_for(), []);
}

#[test]
fn a_refusal_counts_for_its_own_attempt() {
    let mut node = Node::new(Config::new(9), &[ROOT, CHILD]);
    node.receives(ROOT, join(2));
    let refusal = |attempt| Message::Nack {
        tree: tree(attempt),
    };
    assert_eq!(node.receives(CHILD, refusal(1)), []);
    let sent = node.receives(CHILD, refusal(2));
    assert!(
        matches!(sent[..], [(ROOT, Message::Up { oks: 1, .. })]),
        "{sent:?}"
    );
}

/// The limit counts only the trees of other nodes.
#[test]
fn our_own_tree_takes_no_place_of_others() {
    let config = Config::new(9).with_tree_limit(1);
    let mut node = Node::new(config, &[ROOT, CHILD]);
    node.command(Command::Enter);
    assert!(node.receives(ROOT, join(1)).contains(&(CHILD, join(1))));
    let second = tree_of(CHILD, 1, 1);
    let nack = Message::Nack { tree: second };
    assert_eq!(node.receives(CHILD, join_of(second)), [(CHILD, nack)]);
    assert_eq!(node.counters().no_room, 1);
}

/// A node has one request at a time.
#[test]
fn a_later_request_of_the_root_ends_its_tree() {
    let mut node = Node::in_tree(Config::new(9));
    let request = Request {
        number: 2,
        up_to: 66,
        last: 0,
    };
    let after = None;
    node.receives(ROOT, Message::Request { request, after });
    let stale = node.counters().stale;
    assert_eq!(node.receives(CHILD, echo(tree(1), 0, &[])), []);
    assert_eq!(node.counters().stale, stale + 1);
}

/// A node that fails is left out. The known nodes below it go on under us; if they are not known,
/// the root has to begin again.
#[test]
fn those_below_a_child_that_fails_are_adopted_as_far_as_they_are_known() {
    let lose = |levels, below: &[(u8, usize)], failed: &[usize]| {
        let mut node = Node::in_tree(Config::new(9));
        for &it in failed {
            node.learns(Delta::Joined(member(it)));
            node.learns(Delta::Failed(member(it)));
        }
        node.receives(CHILD, echo(tree(1), levels, below));
        let sent = node.learns(Delta::Failed(member(CHILD)));
        (adopts(&sent), breaks(&sent))
    };
    assert_eq!(lose(0, &[], &[]), (vec![], true));
    assert_eq!(lose(1, &[], &[]), (vec![], false), "nobody is below");
    assert_eq!(lose(1, &[(1, 5)], &[]), (vec![5], false));
    assert_eq!(lose(1, &[(1, 5)], &[5]), (vec![], true));
    assert_eq!(lose(2, &[(1, 5), (2, 6)], &[5]), (vec![6], false));
    // Neither the root nor we are below.
    let below = [(1, 0), (1, ROOT), (1, 5)];
    assert_eq!(lose(1, &below, &[]), (vec![5], false));
}

/// Each failed node leaves the nodes below it to us, one level nearer.
#[test]
fn a_line_of_nodes_may_fail_one_after_the_other() {
    let mut node = Node::in_tree(Config::new(9));
    let line = [(1, 5), (2, 6), (3, 7)];
    node.receives(CHILD, echo(tree(1), 3, &line));
    for (lost, next) in [(CHILD, 5), (5, 6), (6, 7)] {
        node.learns(Delta::Joined(member(lost)));
        let sent = node.learns(Delta::Failed(member(lost)));
        assert_eq!((adopts(&sent), breaks(&sent)), (vec![next], false));
    }
}

/// Membership reports no failure of a node that is not on the list.
#[test]
fn who_is_not_on_the_list_is_asked_in_vain_so_often() {
    let lost_after = |tree_patience| {
        let config = Config::new(9).with_tree_patience(tree_patience);
        let mut node = Node::in_tree(config);
        node.receives(CHILD, echo(tree(1), 1, &[(1, 5)]));
        node.learns(Delta::Failed(member(CHILD)));
        let mut asked = 0;
        for _ in 0..100 {
            let sent = node.tick();
            if breaks(&sent) {
                return Some(asked);
            }
            asked += adopts(&sent).len();
        }
        None
    };
    assert_eq!(lost_after(1), Some(1));
    assert_eq!(lost_after(3), Some(3));
    assert_eq!(lost_after(0), None, "for ever");
    // A node on the list is asked until the membership service reports on it.
    let config = Config::new(9).with_tree_patience(1);
    let mut node = Node::in_tree(config);
    for _ in 0..100 {
        let sent = node.tick();
        assert!(!breaks(&sent));
    }
}

/// The end of a request is passed on down a tree, and is never that of our own request.
#[test]
fn an_end_that_is_passed_on_is_that_of_another() {
    let mut node = Node::new(Config::new(9), &[CHILD]);
    let request = Request {
        number: 1,
        up_to: 65,
        last: 0,
    };
    let after = None;
    node.receives(4, Message::Request { request, after });
    let over = |root| Message::Over {
        root: member(root),
        number: 1,
        last: 0,
        over: 65,
    };
    node.command(Command::Enter);
    assert_eq!(node.waits_for(), [member(4)], "it has our OK");
    node.command(Command::Cancel);
    node.receives(CHILD, over(4));
    node.command(Command::Enter);
    assert_eq!(node.waits_for(), []);
    let own = Message::Over {
        root: member(0),
        number: 99,
        last: 0,
        over: 99,
    };
    assert_eq!(node.receives(CHILD, own), []);
    let goes_on = |it: &(usize, Message)| matches!(it.1, Message::Join { .. });
    assert!(node.tick().iter().any(goes_on), "the tree is still there");
    // A node that names it now does not know that yet.
    node.receives(CHILD, up(tree_of(0, 3, 1), None, &[4, 5], true));
    assert_eq!(node.waits_for(), [member(5)]);
}

#[test]
fn the_end_of_a_request_is_passed_on_as_it_was_said() {
    let config = Config::new(9).with_multicast(false);
    let mut node = Node::in_tree(config);
    let (number, last, over) = (1, 1, 65);
    let root = member(ROOT);
    let passed_on = Message::Over {
        root,
        number,
        last,
        over,
    };
    let sent = node.receives(ROOT, Message::Release { number, last, over });
    assert_eq!(sent, [(CHILD, passed_on)]);
}

/// A node that names it has not received its RELEASE yet.
#[test]
fn a_rival_that_is_out_is_not_named_to_the_parent() {
    let mut node = Node::in_tree(Config::new(9));
    let (number, last, over) = (1, 1, 9);
    node.receives(4, Message::Release { number, last, over });
    let sent = node.receives(CHILD, up(tree(1), None, &[4, 5], false));
    let [(ROOT, Message::Up { rivals, .. })] = &sent[..] else {
        panic!("{sent:?}");
    };
    let named: Vec<Member> = rivals.iter().map(|it| it.member).collect();
    assert_eq!(named, [member(5)]);
}

#[test]
fn who_finds_no_room_as_a_child_is_counted_and_breaks_the_tree() {
    let config = Config::new(9).with_peer_limit(2);
    let mut node = Node::in_tree(config);
    let below = [(1, 5), (1, 6), (1, 7), (1, 8), (1, 9), (1, 10)];
    node.receives(CHILD, echo(tree(1), 1, &below));
    let sent = node.learns(Delta::Failed(member(CHILD)));
    assert_eq!((adopts(&sent).len(), breaks(&sent)), (4, true));
    assert_eq!(node.counters().no_room, 2);
}

/// An OK to a late request takes the place of the request that waits. So a node in the tree gives its
/// OK when its parent asks again.
#[test]
fn a_late_request_of_the_root_costs_its_tree_no_ok() {
    let mut node = Node::new(Config::new(9), &[ROOT, CHILD]);
    let (number, holder) = (3, member(5));
    let token = Token { number, by: holder };
    node.receives(CHILD, Message::Floor { token });
    // The number of its own request is 4.
    node.command(Command::Enter);
    let tree = tree_of(ROOT, 5, 1);
    let nack = Message::Nack { tree };
    node.receives(ROOT, join_of(tree));
    node.receives(CHILD, nack);
    let request = Request {
        number: 3,
        up_to: 65,
        last: 0,
    };
    let after = None;
    let sent = node.receives(ROOT, Message::Request { request, after });
    assert!(matches!(sent[..], [(ROOT, Message::Ok { number: 3, .. })]));
    let reports_ok = |sent: &[(usize, Message)]| {
        let is_up = |it: &(usize, Message)| matches!(it, (ROOT, Message::Up { oks: 1, .. }));
        sent.iter().any(is_up)
    };
    assert!(!reports_ok(&node.receives(ROOT, join_of(tree))), "it waits");
    node.command(Command::Cancel);
    let sent = node.receives(ROOT, join_of(tree));
    assert!(reports_ok(&sent), "{sent:?}");
}
