//! Requests that are issued again or take the slow path, and the nodes that learn of it.

use selvedge_camera::{Command, Config, Event, Message, TreeId};
use selvedge_core::{Delta, Effect, Input, Span};

use super::answers::{First, ok, part, request};
use super::member;

/// Node 2 fails in the middle of its list. When the request gets a higher number, its list begins
/// again.
#[test]
fn the_list_of_a_failed_node_begins_anew_when_the_request_is_issued_again() {
    let config = Config::new(5).with_slack(0).with_slow_path(false);
    let mut node = First::new(3, config);
    node.command(Command::Enter);
    node.receives(1, part(None, &[3], true));
    node.step(Input::Membership(Delta::Failed(member(1))));
    node.receives(3, ok(1, 0));
    node.receives(2, ok(1, 9));
    // The nodes that were asked are asked again.
    assert_eq!(node.waits_for(), [member(2), member(3)]);
    node.receives(1, ok(10, 0));
    node.step(Input::Membership(Delta::Failed(member(2))));
    assert_eq!(node.waits_for(), [member(3)]);
    node.receives(3, ok(10, 0));
    // With this node, three of five gave their OK.
    assert_eq!(node.number(), Some(10));
}

/// The request of node 2 waited because its number was the higher one.
#[test]
fn a_request_that_is_issued_again_lets_in_those_that_it_no_longer_precedes() {
    let mut node = First::new(3, Config::new(3).with_slack(0));
    node.command(Command::Enter);
    node.receives(1, request(5, 5));
    node.receives(1, ok(1, 0));
    let effects = node.receives(2, ok(1, 9));
    let reports_ok = |it: &Effect<_>| matches!(it, Effect::Send { to, message: Message::Ok { number: 5, .. } } if *to == member(1));
    assert!(effects.iter().any(reports_ok), "{effects:?}");
    assert_eq!(node.driver.machine().counters().issued_again, 1);
}

/// Two of four others fail, so the remaining nodes are too few for the fast path.
#[test]
fn a_request_goes_the_slow_path_when_too_few_are_left_to_answer() {
    let mut node = First::new(4, Config::new(5));
    node.command(Command::Enter);
    assert_eq!(node.step(Input::Membership(Delta::Failed(member(1)))), []);
    let effects = node.step(Input::Membership(Delta::Failed(member(2))));
    let joins = |it: &Effect<_>| matches!(it, Effect::Send { to, message: Message::Join { .. } } if *to == member(3));
    assert!(effects.iter().any(joins), "{effects:?}");
    assert!(node.driver.machine().is_waiting());
}

/// A suspicion replaces the OK of a node that is only on the list, but not the OK of a rival.
#[test]
fn a_failed_node_is_awaited_again_when_it_is_named_as_a_rival() {
    let mut node = First::new(3, Config::new(3));
    node.command(Command::Enter);
    node.step(Input::Membership(Delta::Failed(member(2))));
    assert_eq!(node.waits_for(), [member(1)]);
    node.receives(1, part(None, &[2], false));
    assert_eq!(node.waits_for(), [member(2)]);
    assert_eq!(node.number(), None);
}

/// The rival enters after this node, as its OK showed.
#[test]
fn a_node_that_said_ok_and_asks_later_is_no_news() {
    let mut node = First::new(3, Config::new(3));
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    let effects = node.receives(1, request(5, 5));
    assert!(!effects.contains(&Effect::Event(Event::Waiting(member(1)))));
    let effects = node.receives(2, request(5, 5));
    assert!(effects.contains(&Effect::Event(Event::Waiting(member(2)))));
}

#[test]
fn a_holder_sends_no_fence_to_a_node_that_it_did_not_pass_over() {
    let config = Config::new(3).with_takeover(Some(Span::secs(1)));
    let mut node = First::new(3, config);
    node.command(Command::Enter);
    node.receives(1, ok(1, 0));
    node.receives(2, ok(1, 0));
    assert_eq!(node.number(), Some(1));
    node.step(Input::Membership(Delta::Failed(member(1))));
    let effects = node.step(Input::Membership(Delta::Refuted(member(1))));
    let is_fence = |it: &Effect<_>| {
        let message = Message::Fence {
            token: node.driver.machine().token().unwrap(),
        };
        *it == Effect::Send {
            to: member(1),
            message,
        }
    };
    assert!(!effects.iter().any(is_fence), "{effects:?}");
}

/// An OK that is sent up a tree is remembered like an OK that is sent directly, and as one OK if the
/// root asked for both.
#[test]
fn an_ok_to_a_root_is_remembered_whichever_way_it_asked() {
    for is_direct in [false, true] {
        let mut node = First::new(3, Config::new(3));
        node.command(Command::Enter);
        node.receives(1, ok(1, 0));
        node.receives(2, ok(1, 0));
        let tree = TreeId {
            root: member(1),
            number: 5,
            attempt: 1,
        };
        let (up_to, last) = (5, 0);
        node.receives(1, Message::Join { tree, up_to, last });
        if is_direct {
            node.receives(1, request(5, 5));
        }
        assert_eq!(node.driver.machine().granted().count(), 0);
        node.command(Command::Exit);
        let granted = node.driver.machine().granted();
        assert!(granted.eq([member(1)]), "direct: {is_direct}");
    }
}
