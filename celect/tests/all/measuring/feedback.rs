//! Initiators' reports to the leader.

use super::*;

#[test]
fn feedback_of_initiators_becomes_a_bound_and_is_forgotten_with_the_leader() {
    let feedback = usual()
        .with_source(Source::Feedback)
        .with_pool(20)
        .with_valid(Span::secs(10_000));
    // 4 of 20 lists lack node 1, which leads.
    let lacks = [(2, 1), (3, 1), (4, 1), (5, 1)];
    for protocol in [Protocol::Base, Protocol::Optimistic, Protocol::Lean] {
        let config = config(feedback).with_protocol(protocol);
        let mut mesh = Mesh::missing(20, config, &lacks);
        mesh.fate = Box::new(|(_, _, message), _| {
            1 + usize::from(matches!(message, Message::Feedback { .. }))
        });
        for nth in 0..20 {
            assert_eq!(mesh.bound(1), (9, None), "{nth} of 20");
            mesh.command(1 + nth % 20, Command::Elect);
            mesh.pass(Span::secs(5));
        }
        let (c, miss) = mesh.bound(1);
        assert!(
            (5..=9).contains(&c) && miss == Some(MISS),
            "{protocol:?} {c}"
        );
        for id in 2..=20 {
            assert_eq!(mesh.bound(id), (c, miss), "{id}");
        }
        // Each of the 19 others reported twice and counted once; the leader does not report.
        assert!(mesh.nodes[0].machine().counters().stale >= 19);
        for id in 2..=20 {
            mesh.notify(id, Delta::Failed(member(1)));
            assert_eq!(mesh.bound(id), (9, None), "{id}");
        }
    }
}

/// Reports about one leader: an election that ends with another leader uses them, but gives no
/// confidence.
#[test]
fn feedback_says_nothing_of_an_election_that_replaces_the_leader() {
    let feedback = usual()
        .with_source(Source::Feedback)
        .with_pool(1)
        .with_valid(Span::secs(10_000));
    let mut mesh = Mesh::missing(12, config(feedback), &[]);
    mesh.command(5, Command::Elect);
    mesh.pass(Span::secs(5));
    assert!(mesh.bound(5).1.is_some());
    // 1 has failed, and no node knows.
    mesh.fate = Box::new(|(_, _, message), _| {
        usize::from(!matches!(message, Message::Leader { leader, .. } if leader.id.0 == 1))
    });
    for id in 2..=12 {
        mesh.notify(id, Delta::Suspected(member(1)));
    }
    mesh.command(5, Command::Elect);
    mesh.pass(Span::secs(30));
    assert_eq!(mesh.nodes[4].machine().leader().unwrap().0, member(2));
    let misses = mesh.notified(|it| match it {
        (5, Event::Concluded { miss, .. }) => Some(miss.is_some()),
        _ => None,
    });
    assert_eq!(misses, [false, false]);
}
