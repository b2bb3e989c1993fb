//! Holders that are passed over.

use selvedge_camera::{Camera, Command, Config, Event, Message, Timer, Token};
use selvedge_core::{Delta, Effect, Input, Member, Span};
use selvedge_sim::network::Network;

use super::answers::{First, request};
use super::{DELAY, entered, member, mesh};

/// The holder is cut off and declared failed. With a takeover another node enters with a higher
/// token; when they can reach each other again, the first is notified.
#[test]
fn a_holder_that_was_passed_over_is_fenced() {
    let config = Config::new(3).with_takeover(Some(Span::secs(5)));
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
    let notified = |event| {
        mesh.events()
            .iter()
            .any(|(_, node, it)| (*node, *it) == event)
    };
    assert!(notified((1, Event::PassedOver(member(0)))));
    assert!(notified((0, Event::Fenced(later))));
}

/// Later messages of others about the holder bring nothing new: no node waits for it again.
#[test]
fn who_was_passed_over_is_not_awaited_again() {
    let takeover = Span::secs(1);
    let base = Config::new(3).with_takeover(Some(takeover));
    for slack in [0, 64] {
        let config = base.with_slack(slack);
        // Both ask with number 1, so the second one's token has to be above what its request may
        // have: it issues the request again, and gets the holder's name again.
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

/// Without a takeover no node enters until it is certain that the holder is dead.
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

/// One node waits for a dead holder, and not each node that enters later.
#[test]
fn a_takeover_is_waited_for_once() {
    let config = Config::new(4).with_takeover(Some(Span::secs(1)));
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

/// A node that passes a holder over cannot reach it then, and may have failed when others can.
#[test]
fn who_was_passed_over_is_told_by_whoever_heard_of_it() {
    let config = Config::new(4).with_takeover(Some(Span::secs(1)));
    // It may be known again when it is back on a list, or when an OK is refreshed.
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
        assert_eq!(by.by, member(1));
        mesh.crash(1).unwrap();
        mesh.heal();
        if is_refuted {
            mesh.membership(2, Delta::Refuted(member(0))).unwrap();
            mesh.run_for(DELAY * 2);
        } else {
            mesh.run_for(config.refresh);
        }
        let notified: Vec<_> = mesh
            .drain_events()
            .map(|(_, node, event)| (node, event))
            .collect();
        assert_eq!(notified, [(0, Event::Fenced(by))]);
    }
}

/// A host may report a holder's failure more than once.
#[test]
fn a_failure_that_is_told_again_begins_no_takeover_anew() {
    let config = Config::new(3).with_takeover(Some(Span::secs(5)));
    let mut mesh = mesh(3, config);
    mesh.command(0, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.crash(0).unwrap();
    mesh.command(1, Command::Enter).unwrap();
    mesh.run_for(DELAY * 3);
    mesh.membership(1, Delta::Failed(member(0))).unwrap();
    mesh.run_for(Span::secs(4));
    assert_eq!(mesh.machine(1).unwrap().token(), None);
    mesh.membership(1, Delta::Failed(member(0))).unwrap();
    mesh.run_for(Span::secs(2));
    assert!(mesh.machine(1).unwrap().token().is_some());
}

/// Node 2 passes node 1 over, and sends node 1 its token. Then node 2 is cut off inside, and
/// node 1 wants to enter again.
#[test]
fn a_holder_that_passed_another_one_over_has_its_time_there_too() {
    for slack in [0, 64] {
        let base = Config::new(3).with_takeover(Some(Span::secs(5)));
        let mut mesh = mesh(3, base.with_slack(slack));
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(DELAY * 3);
        mesh.partition(&[vec![0], vec![1, 2]]).unwrap();
        mesh.command(1, Command::Enter).unwrap();
        mesh.membership(1, Delta::Failed(member(0))).unwrap();
        mesh.run_for(Span::secs(6));
        let token = mesh.machine(1).unwrap().token().unwrap();
        mesh.heal();
        mesh.membership(1, Delta::Refuted(member(0))).unwrap();
        mesh.run_for(DELAY * 3);
        let mut notified = mesh.drain_events().map(|(_, node, it)| (node, it));
        assert!(notified.any(|it| it == (0, Event::Fenced(token))));
        drop(notified);
        mesh.command(0, Command::Exit).unwrap();
        mesh.run_for(DELAY * 3);

        mesh.partition(&[vec![1], vec![0, 2]]).unwrap();
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(Span::secs(1));
        mesh.membership(0, Delta::Failed(member(1))).unwrap();
        mesh.run_for(Span::secs(4));
        let inside = |node| mesh.machine(node).and_then(Camera::token);
        assert_eq!((inside(0), inside(1)), (None, Some(token)), "slack {slack}");
        mesh.run_for(Span::secs(2));
        let later = mesh.machine(0).unwrap().token();
        assert!(later > Some(token), "slack {slack}");
    }
}

/// Membership does not report the end of the holder, so its request stays open, and each entry passes
/// it over.
#[test]
fn a_life_that_is_passed_over_again_and_again_is_told_once() {
    let config = Config::new(3).with_takeover(Some(Span::secs(1)));
    let mut mesh = mesh(3, config);
    let fails_inside = |mesh: &mut Network<Camera>, life: Member| {
        mesh.command(0, Command::Enter).unwrap();
        mesh.run_for(DELAY * 4);
        assert!(mesh.machine(0).unwrap().token().is_some());
        mesh.crash(0).unwrap();
        for node in [1, 2] {
            mesh.membership(node, Delta::Failed(life)).unwrap();
        }
    };
    let enters = |mesh: &mut Network<Camera>, life: Member| {
        let mut notified = [0; 2];
        for entry in 0..6 {
            let node = 1 + entry % 2;
            mesh.command(node, Command::Enter).unwrap();
            mesh.run_for(Span::secs(2));
            mesh.command(node, Command::Exit).unwrap();
            mesh.run_for(DELAY * 4);
            for (_, node, event) in mesh.drain_events() {
                if event == Event::PassedOver(life) {
                    notified[node - 1] += 1;
                }
            }
        }
        notified
    };
    let first = member(0);
    fails_inside(&mut mesh, first);
    assert_eq!(enters(&mut mesh, first), [1, 1]);
    // It was alive after all, and is declared failed once more: only node 1 learned that.
    mesh.membership(1, Delta::Refuted(first)).unwrap();
    mesh.membership(1, Delta::Failed(first)).unwrap();
    assert_eq!(enters(&mut mesh, first), [1, 0]);
    // A later life is another one.
    let second = Member::new(first.id.0, 1);
    let machine = Camera::new(second, config).unwrap();
    mesh.restart(0, second, machine).unwrap();
    for node in [1, 2] {
        mesh.membership(node, Delta::Joined(second)).unwrap();
        mesh.membership(0, Delta::Joined(member(node))).unwrap();
    }
    fails_inside(&mut mesh, second);
    assert_eq!(enters(&mut mesh, second), [1, 1]);
}

/// A third node passed both over, each learned that the other has failed, and no OK arrives. A
/// request to one of them is not answered with a request that makes the other ask again.
#[test]
fn two_that_hold_each_other_for_failed_do_not_ask_in_turn() {
    let config = Config::new(3).with_takeover(Some(Span::secs(1)));
    let mut nodes = [0, 1].map(|place| First::at(place, 3, config));
    for (place, node) in nodes.iter_mut().enumerate() {
        node.command(Command::Enter);
        node.step(Input::Membership(Delta::Failed(member(1 - place))));
        let (number, by) = (99, member(2));
        let token = Token { number, by };
        node.receives(2, Message::Fence { token });
    }
    let mut wire = vec![(1, request(1, 65))];
    let mut arrived = 0;
    while let Some((place, message)) = wire.pop() {
        arrived += 1;
        assert!(arrived < 100, "a storm");
        for effect in nodes[place].receives(1 - place, message) {
            if let Effect::Send { to, message } = effect
                && to == member(1 - place)
                && matches!(message, Message::Request { .. })
            {
                wire.push((1 - place, message));
            }
        }
    }
    assert_eq!(arrived, 1);
    assert!(nodes.iter().all(|it| it.waits_for() == [member(2)]));
}

/// Node 2 wanted to enter, had no room for our request, and failed. A request that it sent before
/// that comes late.
#[test]
fn a_failed_node_that_abstained_before_is_passed_over_as_well() {
    let config = Config::new(3).with_takeover(Some(Span::secs(5)));
    let mut node = First::new(3, config);
    node.command(Command::Enter);
    node.receives(1, request(5, 5));
    let abstains = Message::Abstain {
        life: 0,
        number: 1,
        over: 5,
        floor: Token {
            number: 0,
            by: member(1),
        },
    };
    node.receives(1, abstains);
    assert_eq!(node.waits_for(), [member(2)]);
    node.step(Input::Membership(Delta::Failed(member(1))));
    node.receives(1, request(9, 9));
    assert_eq!(node.waits_for(), [member(1), member(2)]);
    let timers: Vec<Timer> = node.driver.timers().map(|it| it.0).collect();
    assert!(timers.contains(&Timer::Takeover(member(1))), "{timers:?}");
}
