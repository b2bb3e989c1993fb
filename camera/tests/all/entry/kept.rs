//! Permissions that are kept, and their assumptions.

use selvedge_camera::{Camera, Command, Config, Event, Message, Reject, Timer};
use selvedge_core::{Delta, Effect, Input, Member, Span};
use selvedge_sim::network::{CallError, Network};

use super::answers::{First, ok, request};
use super::{DELAY, entered, member, mesh, mesh_of};

fn keeping(nodes: u32) -> Config {
    Config::new(nodes).with_keep(true)
}

fn visit(mesh: &mut Network<Camera>, node: usize) {
    mesh.command(node, Command::Enter).unwrap();
    mesh.run_for(Span::secs(1));
    mesh.command(node, Command::Exit).unwrap();
    mesh.run_for(Span::secs(1));
}

fn kept(mesh: &Network<Camera>, node: usize) -> Vec<Member> {
    mesh.machine(node).unwrap().kept().collect()
}

#[test]
fn what_is_kept_is_seen_and_given_back() {
    let mut mesh = mesh(3, keeping(3));
    mesh.command(0, Command::GiveBack).unwrap();
    visit(&mut mesh, 0);
    assert_eq!(kept(&mesh, 0), [member(1), member(2)]);
    mesh.command(0, Command::GiveBack).unwrap();
    mesh.run_for(Span::secs(1));
    assert_eq!(kept(&mesh, 0), [] as [Member; 0]);
    // No node names it any more, so the next node does not wait for it.
    mesh.drain_events();
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(Span::secs(1));
    let waited = mesh
        .drain_events()
        .any(|it| matches!(it.2, Event::Waiting(_)));
    assert!(!waited);
    mesh.command(1, Command::Exit).unwrap();
}

fn releases(effects: &[Effect<Camera>]) -> usize {
    let is_release = |it: &&Effect<Camera>| {
        let message = Message::Release {
            number: 1,
            last: 1,
            over: 65,
        };
        **it == Effect::Multicast { message }
    };
    effects.iter().filter(is_release).count()
}

/// The other node waited, and has the permission at the exit. It still names this node.
#[test]
fn a_request_of_which_nothing_is_kept_is_open_until_it_is_given_back() {
    let mut node = First::new(2, keeping(2));
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.receives(1, request(2, 2));
    assert_eq!(releases(&node.step(Input::Command(Command::Exit))), 0);
    assert_eq!(node.driver.machine().kept().count(), 0);
    let back = node.step(Input::Command(Command::GiveBack));
    assert_eq!(releases(&back), 1, "{back:?}");
    let again = node.step(Input::Command(Command::GiveBack));
    assert_eq!(again, []);
}

/// A node that abstains gives up its kept permissions, and the nodes that granted them learn it.
#[test]
fn an_abstention_gives_permissions_back() {
    let mut node = First::new(2, keeping(2).with_peer_limit(1));
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.command(Command::Exit);
    assert!(node.driver.machine().kept().eq([member(1)]));
    let effects = node.receives(2, request(2, 2));
    assert_eq!(releases(&effects), 1, "{effects:?}");
    assert_eq!(node.driver.machine().kept().count(), 0);
    let effects = node.receives(2, request(2, 2));
    assert_eq!(releases(&effects), 0, "{effects:?}");
}

/// Node 2 gives its OK and ends. Its later life, which wants to enter, and node 3 give an OK as well:
/// that is one OK more than there is room for nodes.
#[test]
fn the_permission_of_a_life_that_ended_before_the_entry_is_not_kept() {
    let mut node = First::new(3, keeping(3).with_peer_limit(2));
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.step(Input::Membership(Delta::Confirmed(member(1))));
    let later = Member::new(2, 1);
    for message in [request(5, 5), ok(1, 0)] {
        let from = later;
        node.step(Input::Message { from, message });
    }
    node.receives(2, ok(1, 0));
    let machine = node.driver.machine();
    assert!(machine.token().is_some());
    assert!(machine.kept().eq([later, member(2)]));
    assert_eq!(machine.counters().no_room, 0);
}

/// The later life makes room for node 4, and this node forgets that the former life ended.
#[test]
fn a_permission_for_which_there_is_no_room_is_counted() {
    let mut node = First::new(3, keeping(3).with_peer_limit(2));
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    let (from, message) = (Member::new(2, 1), Message::Wait { number: 1 });
    node.step(Input::Membership(Delta::Confirmed(member(1))));
    node.step(Input::Message { from, message });
    for message in [request(5, 5), ok(1, 0)] {
        node.receives(3, message);
    }
    node.receives(2, ok(1, 0));
    let machine = node.driver.machine();
    assert!(machine.token().is_some());
    assert_eq!((machine.kept().count(), machine.counters().no_room), (2, 1));
}

/// Node 1 enters by the OKs of 2 and 3 and keeps them. Membership reports wrongly that 2 has
/// failed; node 1 exits, and enters again; its request to 4 is lost. The REQUEST of 2 makes 2's
/// permission count again, and that is the quorum.
#[test]
fn a_kept_permission_that_counts_again_lets_its_node_in() {
    let usual = Config::new(4);
    let hasty = usual.with_keep(true).with_eager(true);
    let mut mesh = mesh_of(&[hasty, usual, usual, usual]);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.membership(0, Delta::Failed(member(1))).unwrap();
    mesh.command(0, Command::Exit).unwrap();
    assert_eq!(kept(&mesh, 0), [member(1), member(2)]);
    mesh.partition(&[&[0][..], &[1, 2, 3]]).unwrap();
    mesh.command(0, Command::Enter).unwrap();
    mesh.heal();
    assert!(mesh.machine(0).unwrap().waits_for().eq([member(3)]));
    mesh.drain_events();
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(Span::secs(600));
    let nodes: Vec<usize> = entered(&mut mesh).iter().map(|it| it.1).collect();
    assert_eq!(nodes, [0], "600 seconds later");
    mesh.command(0, Command::Exit).unwrap();
    mesh.run_for(Span::secs(1));
    let nodes: Vec<usize> = entered(&mut mesh).iter().map(|it| it.1).collect();
    assert_eq!(nodes, [1]);
}

#[test]
fn nothing_is_given_back_while_it_is_used() {
    let mut mesh = mesh(2, keeping(2));
    mesh.command(0, Command::Enter).unwrap();
    let refused = mesh.command(0, Command::GiveBack);
    let why = Reject::AlreadyWaiting;
    assert_eq!(refused, Err(CallError::Refused { node: 0, why }));
    mesh.run_for(Span::secs(1));
    let refused = mesh.command(0, Command::GiveBack);
    let why = Reject::AlreadyInside;
    assert_eq!(refused, Err(CallError::Refused { node: 0, why }));
}

/// Node 1 keeps the permissions of 2 and 3 and is cut off; both restart, and 2 enters with 3's OK.
/// Five lives were present while node 1's request was open, and the bound is three.
#[test]
fn permissions_of_lives_that_are_over_let_two_in_unless_they_are_given_back() {
    for gives_back in [false, true] {
        let mut mesh = mesh(3, keeping(3));
        visit(&mut mesh, 0);
        if gives_back {
            mesh.command(0, Command::GiveBack).unwrap();
            mesh.run_for(Span::secs(1));
        }
        mesh.partition(&[&[0][..], &[1, 2]]).unwrap();
        for (node, other) in [(1, 2), (2, 1)] {
            let heir = Member::new(node as u64 + 1, 1);
            let machine = Camera::new(heir, keeping(3)).unwrap();
            mesh.restart(node, heir, machine).unwrap();
            let joined = Delta::Joined(Member::new(other as u64 + 1, 1));
            mesh.membership(node, joined).unwrap();
        }
        mesh.drain_events();
        mesh.command(1, Command::Enter).unwrap();
        mesh.run_for(Span::secs(1));
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(Span::secs(1));
        let inside = entered(&mut mesh).len();
        assert_eq!(inside, if gives_back { 1 } else { 2 });
    }
}

/// The node `failed` gave its OK to an earlier request and was declared failed; the third one sends
/// nothing.
fn with_one_kept(place: usize, failed: usize, config: Config) -> First {
    let mut node = First::at(place, 3, config.with_eager(true));
    node.command(Command::Enter);
    node.receives(failed, ok(1, 0));
    assert_eq!(node.number(), Some(1));
    node.command(Command::Exit);
    assert!(node.driver.machine().kept().eq([member(failed)]));
    node.step(Input::Membership(Delta::Failed(member(failed))));
    node.command(Command::Enter);
    assert_eq!(node.number(), None);
    node
}

/// The request names a rival whose permission is kept, and with it there is a quorum.
#[test]
fn a_request_of_another_node_may_be_all_that_was_missing() {
    let mut node = with_one_kept(0, 1, keeping(3));
    node.receives(1, request(5, 5));
    assert_eq!(node.number(), Some(2));
}

/// It was declared failed while its permission was kept, and membership reports that once.
#[test]
fn a_failed_node_whose_permission_ends_is_awaited_for_the_time_of_a_takeover() {
    let takeover = Some(Span::secs(3));
    let mut node = with_one_kept(2, 0, keeping(3).with_takeover(takeover));
    node.receives(0, request(1, 5));
    assert!(node.waits_for().contains(&member(0)));
    let timers: Vec<Timer> = node.driver.timers().map(|it| it.0).collect();
    assert!(timers.contains(&Timer::Takeover(member(0))), "{timers:?}");
}
