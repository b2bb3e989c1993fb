//! Receivers of queries and of LEADER at the limits of c and f, and inputs that are ignored there.

use selvedge_core::roster::OwnEnd;

use super::*;

/// Returns the receivers and the messages on the wire from this node.
fn sent(mesh: &Mesh, from: u64) -> Vec<(u64, &Message)> {
    let from = mesh.wire.iter().filter(|it| it.0.id.0 == from);
    from.map(|(_, to, message)| (to.id.0, message)).collect()
}

fn leaders_notified(mesh: &Mesh, from: u64) -> Vec<u64> {
    let sent = sent(mesh, from).into_iter();
    sent.filter(|(_, message)| matches!(message, Message::Leader { .. }))
        .map(|(to, _)| to)
        .collect()
}

fn leader_is(id: u64, notified: &[u64]) -> Message {
    Message::Leader {
        ballot: Ballot {
            epoch: 1,
            initiator: member(id),
            step: 1,
        },
        leader: member(id),
        renewal: 0,
        lease: Span::ZERO,
        state: selvedge_celect::LeaderState::Leading,
        covered: notified.iter().copied().map(member).collect(),
    }
}

fn receive(mesh: &mut Mesh, id: u64, from: u64, message: Message) {
    let from = member(from);
    mesh.step(id, Input::Message { from, message }).unwrap();
}

/// An election asks c + f + 1, after a change of either.
#[test]
fn what_is_to_be_tolerated_is_taken_from_the_command() {
    for (c, f, asked) in [(1, 0, 2), (1, 2, 4), (3, 0, 4), (2, 1, 4)] {
        let mut mesh = Mesh::new(7, Config::new(1, 0));
        mesh.command(
            3,
            Command::SetBounds {
                missing_from: c,
                failures: f,
            },
        );
        mesh.elect(3);
        let queries = sent(&mesh, 3);
        assert_eq!(queries.len(), asked, "c = {c}, f = {f}: {queries:?}");
    }
}

#[test]
fn an_answer_that_nobody_waits_for_is_counted() {
    let mut mesh = Mesh::new(6, Config::new(1, 0));
    let answer = |ballot| Message::Response {
        ballot,
        candidates: [].into_iter().collect(),
        unhealthy: [].into_iter().collect(),
        known: [].into_iter().collect(),
    };
    let never = Ballot {
        epoch: 7,
        initiator: member(3),
        step: 0,
    };
    receive(&mut mesh, 3, 1, answer(never));
    let stale = |mesh: &Mesh| mesh.nodes[2].machine().counters().stale;
    assert_eq!(stale(&mesh), 1, "no election");
    mesh.elect(3);
    receive(&mut mesh, 3, 1, answer(never));
    assert_eq!(stale(&mesh), 2, "another election");
    let asked: Vec<u64> = sent(&mesh, 3).into_iter().map(|it| it.0).collect();
    let ballot = sent(&mesh, 3).into_iter().find_map(|it| match it.1 {
        Message::Query { ballot, .. } => Some(*ballot),
        _ => None,
    });
    let other = (1..=6).find(|id| *id != 3 && !asked.contains(id)).unwrap();
    receive(&mut mesh, 3, other, answer(ballot.unwrap()));
    assert_eq!(stale(&mesh), 3, "it was not asked");
}

/// A delta that ends the present life is refused; the end of a former life is ignored.
#[test]
fn only_the_end_of_this_very_life_is_refused() {
    let mut mesh = Mesh::new(2, Config::new(0, 0));
    let former = Member::new(1, u32::MAX);
    for end in [Delta::Left, Delta::Confirmed] {
        let own = end(member(1));
        let refused = Err(Reject::OwnEnd(OwnEnd(own)));
        assert_eq!(mesh.step(1, Input::Membership(own)), refused);
        assert_eq!(mesh.step(1, Input::Membership(end(former))), Ok(()));
    }
    for hint in [Delta::Joined, Delta::Suspected, Delta::Failed] {
        assert_eq!(mesh.step(1, Input::Membership(hint(member(1)))), Ok(()));
    }
}

/// The sender itself repeats LEADER to its receivers, until they acknowledge it.
#[test]
fn a_leader_is_passed_on_to_those_whom_nobody_told() {
    let mut mesh = Mesh::new(6, Config::new(1, 1));
    receive(&mut mesh, 2, 1, leader_is(1, &[2, 3, 5]));
    assert_eq!(leaders_notified(&mesh, 2), [4, 6]);
    // A faulty node may send it like this.
    let mut mesh = Mesh::new(6, Config::new(1, 1));
    receive(&mut mesh, 2, 1, leader_is(1, &[5, 3, 2]));
    assert_eq!(leaders_notified(&mesh, 2), [4, 6]);
}

/// At most c of the lower nodes lack the newcomer, and f are dead, so one of c + f + 2 notifies it.
#[test]
fn a_newcomer_is_told_by_those_that_are_among_the_lowest() {
    for (c, f, notify) in [(0, 0, 2), (1, 0, 3), (0, 1, 3), (1, 1, 4)] {
        let mut mesh = Mesh::new(6, Config::new(c, f));
        mesh.elect(3);
        mesh.pass(Span::secs(3));
        assert_eq!(mesh.leaders(), [Some(1); 6]);
        for id in 1..=6 {
            mesh.notify(id, Delta::Joined(member(9)));
        }
        let notified: Vec<u64> = (1..=6)
            .filter(|&id| leaders_notified(&mesh, id) == [9])
            .collect();
        let expected: Vec<u64> = (1..=notify).collect();
        assert_eq!(notified, expected, "c = {c}, f = {f}");
    }
}

/// The leader knows that it leads, and a reliable multicast is sent once.
#[test]
fn a_newcomer_that_leads_or_heard_a_multicast_is_told_nothing() {
    let mut mesh = Mesh::with_lists(&[vec![], vec![3], vec![2]], Config::new(1, 1));
    receive(&mut mesh, 2, 1, leader_is(1, &[2, 3]));
    mesh.wire.clear();
    mesh.notify(2, Delta::Joined(member(1)));
    assert!(leaders_notified(&mesh, 2).is_empty());

    let mut mesh = Mesh::new(3, multicast(Protocol::Base, 0, 0));
    mesh.elect(3);
    mesh.pass(Span::secs(3));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    mesh.notify(1, Delta::Joined(member(9)));
    assert!(leaders_notified(&mesh, 1).is_empty());
}
