//! The announcement of the leader: its receivers and its repeats.

use super::*;

/// The list of 1, which leads, names 2 alone; 3 is on no list but 2's, and 4 on no list but 3's. The
/// first LEADER from each to each is lost.
#[test]
fn leader_reaches_all_from_list_to_list_in_spite_of_loss() {
    let lists = [vec![2], vec![1, 3], vec![1, 4], vec![1]];
    let mut mesh = Mesh::with_lists(&lists, Config::new(3, 0));
    let lost = mesh.lose_first_leaders();
    mesh.elect(2);
    mesh.pass(Span::secs(5));
    assert_eq!(mesh.leaders(), [Some(1); 4]);
    let path = [(1, 2), (2, 3), (3, 4)];
    let lost = lost.borrow();
    assert!(path.iter().all(|it| lost.contains(it)), "{lost:?}");
    assert!(
        mesh.nodes
            .iter()
            .all(|it| it.machine().counters().unanswered == 0)
    );
}

/// News of other nodes must not postpone the repeat of a lost LEADER.
#[test]
fn refutations_do_not_put_off_a_leader_that_was_not_heard() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    mesh.lose_first_leaders();
    mesh.elect(3);
    mesh.deliver();
    assert_ne!(mesh.leaders(), [Some(1); 3]);
    let sent = |mesh: &Mesh| mesh.unicasts;
    for _ in 0..20 {
        let before = sent(&mesh);
        for delta in [Delta::Suspected, Delta::Refuted] {
            mesh.notify(1, delta(member(2)));
        }
        assert_eq!(sent(&mesh), before, "it was on the list all along");
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}

/// Nodes that come and go must not, either.
#[test]
fn newcomers_do_not_put_off_a_leader_that_was_not_heard() {
    let mut mesh = Mesh::new(4, Config::new(0, 0));
    mesh.lose_first_leaders();
    mesh.elect(3);
    mesh.deliver();
    assert_eq!(mesh.leader(2), None);
    for _ in 0..6 {
        for delta in [Delta::Failed, Delta::Refuted] {
            mesh.notify(1, delta(member(4)));
        }
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leader(2), Some(1));
}

/// A cut outlasts all retries, and no node is declared failed meanwhile.
#[test]
fn who_was_told_in_vain_is_told_when_there_is_news_of_it() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    mesh.cut.push(2);
    mesh.elect(3);
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.nodes[0].machine().counters().unanswered, 1);
    mesh.cut.clear();
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    mesh.notify(1, Delta::Refuted(member(2)));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}

/// Node 5 joins when all others know the leader. All know it but the leader, and each first LEADER is
/// lost.
#[test]
fn who_joins_later_hears_of_a_leader_that_does_not_know_it() {
    for c in [0, 1] {
        let mut lists: Vec<Vec<u64>> = (1..=4).map(|_| (1..=4).collect()).collect();
        lists.push((1..=4).collect());
        let mut mesh = Mesh::with_lists(&lists, Config::new(c, 0));
        mesh.elect(4);
        mesh.pass(Span::secs(10));
        assert_eq!(
            mesh.leaders()[..],
            [Some(1), Some(1), Some(1), Some(1), None]
        );
        mesh.lose_first_leaders();
        let before = mesh.unicasts;
        for id in 2..=4 {
            mesh.notify(id, Delta::Joined(member(5)));
        }
        mesh.pass(Span::secs(1));
        assert_eq!(mesh.leaders(), [Some(1); 5], "c = {c}");
        // Of the nodes that know it, c + 1 others than the lowest send LEADER twice, and it acknowledges.
        let sent = mesh.unicasts - before;
        assert!(sent <= 3 * (usize::from(c) + 1), "{sent} messages");
    }
}

/// Returns a mesh in which node 1 led and restarted, and receives a LEADER about its former life.
fn restarted(config: Config) -> Mesh {
    let mut mesh = Mesh::new(2, config);
    for _ in 0..2 {
        mesh.elect(2);
        mesh.pass(Span::secs(1));
    }
    assert_eq!(mesh.leaders(), [Some(1); 2]);
    let machine = Celect::new(Member::new(1, 1), config, ById).unwrap();
    mesh.nodes[0] = Driver::new(machine);
    mesh.notify(1, Delta::Joined(member(2)));
    let (leader, ballot) = mesh.nodes[1].machine().leader().unwrap();
    assert_eq!(leader, member(1));
    let (from, notified) = (member(2), [].into_iter().collect());
    let message = Message::Leader {
        ballot,
        leader,
        renewal: 0,
        lease: Span::ZERO,
        state: selvedge_celect::LeaderState::Leading,
        covered: notified,
    };
    mesh.step(1, Input::Message { from, message }).unwrap();
    mesh
}

#[test]
fn who_restarts_does_not_follow_its_own_former_life() {
    let config = Config::new(0, 0);
    let mut mesh = restarted(config);
    assert_eq!(mesh.leader(1), None);
    mesh.pass(Span::secs(10));
    let (leader, ballot) = mesh.nodes[0].machine().leader().unwrap();
    assert_eq!(leader, Member::new(1, 1));
    assert_eq!(mesh.nodes[1].machine().leader(), Some((leader, ballot)));
    // Nor if the other node dies before it can send anything.
    let mut mesh = restarted(config);
    mesh.cut.push(2);
    mesh.notify(1, Delta::Failed(member(2)));
    mesh.pass(Span::secs(10));
    assert!(mesh.nodes[0].machine().leads().is_some());
    // If no node begins by itself, it follows no leader.
    let mut mesh = restarted(config.with_reelect(false));
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(1), None);
}

/// A node that learns of a later life does not announce the former life to it as leader.
#[test]
fn who_joins_in_a_later_life_is_not_told_of_its_former_one() {
    let mut mesh = restarted(Config::new(0, 0).with_reelect(false));
    mesh.deliver();
    mesh.notify(2, Delta::Joined(Member::new(1, 1)));
    assert!(mesh.wire.is_empty(), "{:?}", mesh.wire);
    assert_eq!(mesh.leader(2), None);
}
