//! A leader that fails, and its successor.

use super::*;

#[test]
fn a_new_leader_is_elected_when_the_leader_fails() {
    let mut mesh = Mesh::new(5, Config::new(1, 1));
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    mesh.cut.push(1);
    for id in 2..=5 {
        mesh.notify(id, Delta::Failed(member(1)));
        assert_eq!(mesh.leader(id), None);
        mesh.pass(Span::millis(10));
    }
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leaders(), [Some(2); 4]);
    // A leader that comes back learns that it was replaced, and stops.
    mesh.cut.clear();
    mesh.notify(2, Delta::Refuted(member(1)));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(2); 5]);
    let deposed = |(id, event): &(u64, Event)| *id == 1 && matches!(event, Event::Deposed { .. });
    assert!(mesh.events.iter().any(deposed));
}

/// A leader that was falsely declared failed, and refutes it before another node is elected.
#[test]
fn a_leader_that_is_declared_failed_is_asked_and_goes_on() {
    let config = Config::new(1, 1).with_keep_leader(true);
    let mut mesh = Mesh::new(5, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    mesh.events.clear();
    mesh.notify(2, Delta::Failed(member(1)));
    assert_eq!(mesh.leader(2), None);
    // Also if it is not refuted for a long time.
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    let elects = |(_, event): &(u64, Event)| matches!(event, Event::Electing(_));
    assert!(!mesh.events.iter().any(elects));
}

/// Other nodes still list the dead leader, and name it. It gets as many APPOINTs as usual, but within
/// one timeout: a node that was declared failed is hardly alive.
#[test]
fn a_leader_that_failed_holds_up_the_next_election_for_one_timeout() {
    let config = Config::new(1, 1).with_spread(Span::ZERO);
    let mut mesh = Mesh::new(5, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    mesh.cut.push(1);
    mesh.notify(2, Delta::Failed(member(1)));
    mesh.pass(config.timeout - Span::millis(10));
    let follows_two = |mesh: &Mesh| (2..=5).all(|id| mesh.leader(id) == Some(2));
    assert!(!follows_two(&mesh));
    mesh.pass(Span::millis(20));
    assert!(follows_two(&mesh), "{:?}", mesh.leaders());
    // The same holds for a leader whose lease ran out, before membership reports it.
    let leased = config.with_lease(Some(Span::secs(9)));
    let mut other = Mesh::new(5, leased);
    other.elect(3);
    other.pass(Span::secs(1));
    other.cut.push(1);
    let given_up = |mesh: &Mesh| {
        let it = |it: &(u64, Event)| matches!(it, (_, Event::LeaseExpired { .. }));
        mesh.events.iter().any(it)
    };
    while !given_up(&other) {
        other.pass(Span::millis(1));
    }
    other.pass(config.timeout + Span::millis(10));
    assert!(follows_two(&other), "{:?}", other.leaders());
    // A node that was not declared failed has its full time.
    mesh.cut.push(2);
    mesh.elect(5);
    mesh.pass(config.timeout * u64::from(config.attempts) - Span::millis(10));
    assert!(follows_two(&mesh));
    // And so has the other dead node, which is named next.
    mesh.pass(config.timeout * 10);
    assert!(
        (3..=5).all(|id| mesh.leader(id) == Some(3)),
        "{:?}",
        mesh.leaders()
    );
}

#[test]
fn who_hears_that_its_leader_did_not_fail_is_told_that_it_leads_again() {
    let mut mesh = Mesh::new(3, Config::new(1, 1));
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    let leader = mesh.nodes[1].machine().leader();
    mesh.events.clear();
    mesh.notify(2, Delta::Failed(member(1)));
    mesh.notify(2, Delta::Refuted(member(1)));
    assert_eq!(mesh.nodes[1].machine().leader(), leader);
    let (leader, ballot) = leader.unwrap();
    let notified = [
        Event::Lost { leader, ballot },
        Event::Regained { leader, ballot },
    ];
    assert_eq!(mesh.events, notified.map(|event| (2, event)));
}

/// 3 joins when 1, which led, has failed, and learns of 1 from 2 alone. No node will report to 3 that
/// 1 failed, for 1 is not on its list; and 2 fails too before it has elected another node.
#[test]
fn who_hears_of_a_leader_from_one_that_gave_it_up_does_not_follow_it() {
    let lists = [vec![2], vec![1], vec![]];
    let mut mesh = Mesh::with_lists(&lists, Config::new(1, 0));
    mesh.elect(1);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1), Some(1), None]);
    mesh.cut.push(1);
    mesh.notify(2, Delta::Failed(member(1)));
    mesh.notify(2, Delta::Joined(member(3)));
    mesh.notify(3, Delta::Joined(member(2)));
    mesh.elect(3);
    mesh.deliver();
    assert_eq!(mesh.leader(3), None, "{:?}", mesh.events);
    mesh.cut.push(2);
    mesh.notify(3, Delta::Failed(member(2)));
    mesh.command(
        3,
        Command::SetBounds {
            missing_from: 0,
            failures: 0,
        },
    );
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leader(3), Some(3));
    // Its ballot is above the ballot of 1, which it knows.
    let ballot = |id: usize| mesh.nodes[id - 1].machine().leader().unwrap().1;
    assert!(ballot(3) > ballot(1));
}
