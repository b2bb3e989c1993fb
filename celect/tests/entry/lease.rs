//! A leader that is cut off, and when it ends.

use super::*;

#[test]
fn a_leader_that_is_cut_off_ends_before_those_who_heard_it_give_it_up() {
    let config = Config {
        lease: Some(Span::secs(9)),
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    let ended = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (1, Event::Ended(_))))
    };
    let given_up = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (_, Event::LeaseOver { .. })))
    };
    assert!(!ended(&mesh) && !given_up(&mesh), "it is renewed");
    mesh.cut.push(1);
    let mut order = Vec::new();
    for _ in 0..300 {
        mesh.pass(Span::millis(100));
        // What is lost goes on being lost.
        order.push((ended(&mesh), given_up(&mesh)));
    }
    let first = |what: fn(&(bool, bool)) -> bool| order.iter().position(what).unwrap();
    assert!(first(|it| it.0) <= first(|it| it.1));
    assert!(first(|it| it.1) <= 95);
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// Nobody is left on its list before its lease is over, and still nobody acknowledges it.
#[test]
fn a_leader_that_believes_all_others_failed_is_not_renewed_by_nobody() {
    let config = Config {
        lease: Some(Span::secs(9)),
        reelect: false,
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert!(mesh.nodes[0].machine().leads().is_some());
    mesh.cut.push(1);
    for id in 2..=3 {
        mesh.tell(1, Delta::Failed(member(id)));
    }
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    // With c = 0 a leader that knows nobody needs nobody.
    let mut alone = Mesh::new(1, Config { c: 0, ..config });
    alone.elect(1);
    alone.pass(Span::secs(20));
    assert!(alone.nodes[0].machine().leads().is_some());
}

#[test]
fn a_lease_that_ran_out_is_renewed_by_the_leader_alone() {
    let config = Config {
        lease: Some(Span::secs(9)),
        reelect: false,
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    // What the leader sends to 2 is lost for a while, and 3 still acknowledges.
    mesh.cut.push(2);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.leader(1), Some(1));
    mesh.tell(2, Delta::Suspected(member(1)));
    mesh.tell(2, Delta::Refuted(member(1)));
    assert_eq!(mesh.leader(2), None);
    mesh.cut.clear();
    mesh.events.clear();
    mesh.pass(Span::secs(4));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    // Who follows events is told, too.
    let again = |it: &(u64, Event)| matches!(it, (2, Event::Regained { leader, .. }) if *leader == member(1));
    assert!(mesh.events.iter().any(again), "{:?}", mesh.events);
}

/// Whether node 1 says within 30 s that its leadership has ended, while `happens` every second.
fn ends(mesh: &mut Mesh, mut happens: impl FnMut(&mut Mesh)) -> bool {
    for _ in 0..30 {
        mesh.pass(Span::secs(1));
        happens(mesh);
    }
    let is_end = |it: &(u64, Event)| matches!(it, (1, Event::Ended(_)));
    mesh.events.iter().any(is_end)
}

#[test]
fn a_leader_that_holds_all_others_failed_ends() {
    let leased = |c| Config {
        lease: Some(Span::secs(9)),
        ..Config::new(c, 0)
    };
    for (c, expected) in [(1, true), (0, false)] {
        let mut mesh = Mesh::new(3, leased(c));
        mesh.elect(3);
        mesh.pass(Span::secs(1));
        mesh.cut.push(1);
        mesh.tell(1, Delta::Failed(member(2)));
        mesh.tell(1, Delta::Failed(member(3)));
        assert_eq!(ends(&mut mesh, |_| ()), expected, "c = {c}");
    }
}

#[test]
fn one_who_acknowledges_twice_is_one() {
    let config = Config {
        lease: Some(Span::secs(9)),
        ..Config::new(2, 0)
    };
    let mut mesh = Mesh::new(4, config);
    mesh.elect(4);
    mesh.pass(Span::secs(1));
    mesh.cut.extend([3, 4]);
    let flaps = |mesh: &mut Mesh| {
        mesh.tell(1, Delta::Failed(member(2)));
        mesh.tell(1, Delta::Refuted(member(2)));
    };
    assert!(ends(&mut mesh, flaps));
}
