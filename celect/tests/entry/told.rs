//! Who is told of the leader, and until when.

use super::*;

/// The list of 1, who leads, names 2 alone; 3 is on no list but 2's, and 4 on no list but 3's. The
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
            .all(|it| it.machine().counters().unheard == 0)
    );
}

/// News of others must not put off what a lost LEADER waits for.
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
            mesh.tell(1, delta(member(2)));
        }
        assert_eq!(sent(&mesh), before, "it was on the list all along");
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}

/// Who comes and goes may not either.
#[test]
fn newcomers_do_not_put_off_a_leader_that_was_not_heard() {
    let mut mesh = Mesh::new(4, Config::new(0, 0));
    mesh.lose_first_leaders();
    mesh.elect(3);
    mesh.deliver();
    assert_eq!(mesh.leader(2), None);
    for _ in 0..6 {
        for delta in [Delta::Failed, Delta::Refuted] {
            mesh.tell(1, delta(member(4)));
        }
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leader(2), Some(1));
}

/// A cut outlasts all retries, and nobody is declared failed meanwhile.
#[test]
fn who_was_told_in_vain_is_told_when_there_is_news_of_it() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    mesh.cut.push(2);
    mesh.elect(3);
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.nodes[0].machine().counters().unheard, 1);
    mesh.cut.clear();
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    mesh.tell(1, Delta::Refuted(member(2)));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}
