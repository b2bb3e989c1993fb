//! Places on a list, and nodes without a place.

use super::*;

/// Returns settings with `peer_limit` places.
fn limited(peer_limit: u32) -> Config {
    Config::new(0, 0).with_peer_limit(peer_limit)
}

fn listed(mesh: &Mesh, id: u64) -> Vec<u64> {
    let members = mesh.nodes[id as usize - 1].machine().members();
    members.map(|it| it.id.0).collect()
}

/// Forwards a LEADER about another node.
fn passes_on(mesh: &mut Mesh, (from, to): (u64, u64), leader: Member) {
    let ballot = Ballot {
        epoch: 9,
        initiator: leader,
        step: 1,
    };
    let message = Message::Leader {
        ballot,
        leader,
        renewal: 0,
        lease: Span::ZERO,
        state: selvedge_celect::LeaderState::Leading,
        covered: [].into_iter().collect(),
    };
    let from = member(from);
    mesh.step(to, Input::Message { from, message }).unwrap();
}

/// Nodes come and go, each with an id of its own. The last node is listed and learns of the
/// leader.
#[test]
fn the_dead_take_no_place_of_the_living() {
    for end in [Delta::Failed, Delta::Left, Delta::Confirmed] {
        let mut mesh = Mesh::with_lists(&[vec![2], vec![1], vec![1, 2]], limited(2));
        mesh.cut.extend(100..120);
        mesh.elect(2);
        mesh.pass(Span::secs(1));
        for dead in 100..120 {
            for id in [1, 2] {
                mesh.notify(id, Delta::Joined(member(dead)));
                mesh.notify(id, end(member(dead)));
            }
        }
        for id in [1, 2] {
            mesh.notify(id, Delta::Joined(member(3)));
        }
        mesh.pass(Span::secs(1));
        assert_eq!(listed(&mesh, 1), [2, 3]);
        assert_eq!(listed(&mesh, 2), [1, 3]);
        assert_eq!(mesh.leaders(), [Some(1); 3]);
        assert_eq!(mesh.nodes[0].machine().counters().no_room, 0);
    }
}

/// Membership reports the end of each life that it learns of, even if it never reported its beginning.
#[test]
fn ends_of_those_who_were_never_here_take_no_place() {
    for end in [Delta::Failed, Delta::Left, Delta::Confirmed] {
        let mut mesh = Mesh::with_lists(&[vec![], vec![1]], limited(1));
        for stranger in 100..120 {
            mesh.notify(1, end(member(stranger)));
        }
        mesh.elect(1);
        mesh.notify(1, Delta::Joined(member(2)));
        mesh.pass(Span::secs(1));
        assert_eq!(listed(&mesh, 1), [2]);
        assert_eq!(mesh.leaders(), [Some(1); 2]);
    }
}

/// The leader holds the only place of node 3, and node 1 waits for it. When the leader has failed, the
/// election that begins at once asks node 1.
#[test]
fn who_gets_the_place_of_the_leader_is_in_the_election_for_it() {
    for end in [Delta::Failed, Delta::Left, Delta::Confirmed] {
        let config = limited(1).with_spread(Span::ZERO);
        let mut mesh = Mesh::with_lists(&[vec![3], vec![3], vec![2]], config);
        mesh.notify(3, Delta::Joined(member(1)));
        mesh.elect(3);
        mesh.pass(Span::secs(1));
        assert_eq!((listed(&mesh, 3), mesh.leader(3)), (vec![2], Some(2)));
        mesh.cut.push(2);
        mesh.events.clear();
        mesh.notify(3, end(member(2)));
        assert_eq!(listed(&mesh, 3), [1]);
        mesh.pass(Span::secs(1));
        let elected = mesh.events.iter().filter_map(|(id, it)| match it {
            Event::Elected { leader, .. } if *id == 3 => Some(leader.id.0),
            _ => None,
        });
        assert_eq!(
            elected.collect::<Vec<u64>>(),
            [1],
            "nobody else, not even for a moment"
        );
    }
}

/// Node 2 lists 3 and 4, and no more. No node lists node 1.
fn led_by_a_stranger() -> Mesh {
    let lists = [vec![2], vec![3, 4], vec![2, 4], vec![2, 3]];
    let mut mesh = Mesh::with_lists(&lists, limited(2));
    mesh.notify(2, Delta::Joined(member(1)));
    assert_eq!(listed(&mesh, 2), [3, 4]);
    assert_eq!(mesh.nodes[1].machine().counters().no_room, 1);
    passes_on(&mut mesh, (3, 2), member(1));
    mesh.cut.push(1);
    mesh.wire.clear();
    assert_eq!(mesh.leader(2), Some(1));
    mesh
}

#[test]
fn a_leader_without_a_place_that_fails_is_replaced() {
    for end in [Delta::Failed, Delta::Left, Delta::Confirmed] {
        let mut mesh = led_by_a_stranger();
        mesh.notify(2, end(member(1)));
        assert_eq!(mesh.leader(2), None);
        mesh.pass(Span::secs(10));
        assert_eq!(mesh.leaders(), [Some(2); 3]);
    }
}

/// Its later life finds no place either.
#[test]
fn a_leader_without_a_place_that_restarts_is_replaced() {
    let mut mesh = led_by_a_stranger();
    mesh.notify(2, Delta::Joined(Member::new(1, 1)));
    assert_eq!(mesh.leader(2), None);
}

/// Its end is reported once, and LEADER arrives later.
#[test]
fn a_leader_that_failed_without_a_place_is_not_followed() {
    for end in [Delta::Failed, Delta::Left, Delta::Confirmed] {
        let mut mesh = Mesh::with_lists(&[vec![], vec![3], vec![2]], limited(1));
        mesh.cut.push(1);
        mesh.notify(2, end(member(1)));
        passes_on(&mut mesh, (3, 2), member(1));
        assert_eq!(mesh.leader(2), None);
        mesh.pass(Span::secs(10));
        assert_eq!(mesh.leaders(), [Some(2); 2]);
    }
}

/// Node 1 was declared failed and itself sends LEADER: it is followed until patience ends. News of
/// others does not make nodes forget it meanwhile.
#[test]
fn a_leader_that_is_taken_for_failed_is_remembered() {
    let mut mesh = Mesh::with_lists(&[vec![], vec![3], vec![2]], limited(1));
    mesh.cut.push(1);
    mesh.notify(2, Delta::Failed(member(1)));
    passes_on(&mut mesh, (1, 2), member(1));
    assert_eq!(mesh.leader(2), Some(1));
    for stranger in 100..120 {
        mesh.notify(2, Delta::Failed(member(stranger)));
    }
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// Dead nodes hold their places until they are declared failed. Then the nodes that were refused get
/// the places, in turn.
#[test]
fn who_found_no_place_gets_the_next_one() {
    let mut mesh = Mesh::with_lists(&[vec![8, 9], vec![1], vec![1]], limited(2));
    mesh.cut.extend([8, 9]);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    for id in [2, 3] {
        mesh.notify(1, Delta::Joined(member(id)));
    }
    assert_eq!(listed(&mesh, 1), [8, 9]);
    assert_eq!(mesh.nodes[0].machine().counters().no_room, 2);
    mesh.wire.clear();
    mesh.notify(1, Delta::Failed(member(9)));
    assert_eq!(listed(&mesh, 1), [2, 8]);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leader(2), Some(1));
    mesh.notify(1, Delta::Failed(member(8)));
    assert_eq!(listed(&mesh, 1), [2, 3]);
    // A node that fails while it waits gets none.
    for id in [8, 9] {
        mesh.notify(1, Delta::Refuted(member(id)));
    }
    mesh.notify(1, Delta::Failed(member(8)));
    mesh.notify(1, Delta::Left(member(3)));
    assert_eq!(listed(&mesh, 1), [2, 9]);
}

/// A node without a place is notified of the leader nevertheless, once: it cannot be awaited.
#[test]
fn who_finds_no_place_hears_who_leads() {
    let mut mesh = Mesh::with_lists(&[vec![2], vec![1], vec![1]], limited(1));
    mesh.elect(1);
    mesh.pass(Span::secs(1));
    let before = mesh.unicasts;
    mesh.notify(1, Delta::Joined(member(3)));
    mesh.pass(Span::secs(10));
    assert_eq!(listed(&mesh, 1), [2]);
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    assert_eq!(mesh.nodes[0].machine().counters().unanswered, 0);
    assert!(mesh.unicasts - before <= 8, "{}", mesh.unicasts - before);
}
