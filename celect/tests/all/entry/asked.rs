//! The nodes that are asked, the number of messages, and the resulting leader.

use super::*;

#[test]
fn base_sends_as_many_messages_as_lemma_1_says_and_lean_fewer() {
    for (c, f) in [(0, 0), (1, 0), (2, 1), (4, 3), (9, 0)] {
        for (protocol, expected) in [
            (Protocol::Base, 2 * (c + f + 1) + 1),
            (Protocol::Lean, 2 * (c + f) + 1),
        ] {
            let mut mesh = Mesh::new(12, multicast(protocol, c, f));
            mesh.elect(12);
            mesh.deliver();
            assert_eq!(mesh.leaders(), [Some(1); 12]);
            let sent = (mesh.unicasts, mesh.multicasts);
            assert_eq!(sent, (usize::from(expected), 1), "{protocol:?} {c} {f}");
        }
    }
}

/// Section 5.2.4, with ids one higher: the nodes 1, 2 and 5 answer, and 3 leads.
#[test]
fn the_worked_example_of_hybrid_ends_with_its_leader() {
    let suspicions: [&[(u64, usize)]; 5] = [
        &[(2, 2), (3, 1), (4, 4)],
        &[(1, 5), (4, 2), (5, 1)],
        &[(1, 2), (2, 2), (4, 3), (5, 1)],
        &[(1, 3), (3, 2), (5, 1)],
        &[(2, 1), (4, 2)],
    ];
    let config = multicast(Protocol::Hybrid, 2, 0)
        .with_lowest(2)
        .with_suspected(2);
    // Node 5 asks the nodes that it knows: its own list is one of three.
    let mut lists: Vec<Vec<u64>> = (1..=5).map(|_| (1..=5).collect()).collect();
    lists[4] = vec![1, 2];
    let mut mesh = Mesh::with_lists(&lists, config);
    for (nth, suspicions) in suspicions.iter().enumerate() {
        for &(id, count) in *suspicions {
            for _ in 0..count {
                mesh.notify(nth as u64 + 1, Delta::Suspected(member(id)));
            }
        }
    }
    mesh.elect(5);
    // The lowest x of its own list are 1 and 5, for it suspects 2 and does not know 3.
    assert!(matches!(mesh.wire.last(), Some((_, to, Message::Appoint { .. })) if *to == member(1)));
    mesh.deliver();
    assert_eq!(mesh.leaders(), [Some(3); 5]);
    // Node 1 led for a moment: 3 leads by its ballot, not by its rank.
    assert!(
        mesh.events
            .iter()
            .any(|(id, event)| { *id == 1 && matches!(event, Event::Deposed { .. }) })
    );
}

#[test]
fn who_gave_way_begins_again_when_no_leader_comes() {
    let mut mesh = Mesh::new(3, Config::new(1, 1));
    mesh.elect(1);
    mesh.elect(2);
    // Only the query of 1 reaches 2, and its crash is not reported.
    let is_meant = |it: &&(Member, Member, Message)| (it.0, it.1) == (member(1), member(2));
    let (from, _, message) = mesh.wire.iter().find(is_meant).unwrap().clone();
    mesh.wire.clear();
    mesh.step(2, Input::Message { from, message }).unwrap();
    let yielded = |it: &(u64, Event)| matches!(it, (2, Event::Yielded { .. }));
    assert!(mesh.events.iter().any(yielded) && !mesh.nodes[1].machine().is_electing());
    mesh.cut.push(1);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// A first leader is announced before all have answered; nodes that know it must still answer.
#[test]
fn who_heard_of_a_runs_first_leader_still_answers_it() {
    for retries in [0, 5] {
        let config = multicast(Protocol::Optimistic, 1, 0).with_retries(retries);
        // 2 does not know 1, and both are asked.
        let mut mesh = Mesh::with_lists(&[vec![2, 3], vec![3], vec![1, 2]], config);
        mesh.elect(3);
        let is_late = |(_, to, message): &(Member, Member, Message)| {
            *to == member(1) && matches!(message, Message::Query { .. })
        };
        let at = mesh.wire.iter().position(is_late).unwrap();
        let late = mesh.wire.remove(at);
        mesh.deliver();
        assert_eq!(mesh.leaders(), [Some(2); 3]);
        mesh.wire.push(late);
        mesh.pass(Span::secs(3));
        assert_eq!(mesh.leaders(), [Some(1); 3], "{retries} retries");
        assert!(!mesh.nodes[2].machine().is_electing());
    }
}

/// Two nodes, of which one does not answer for a long time, and a c that needs both lists.
#[test]
fn who_was_passed_over_is_asked_where_there_are_no_others() {
    let mut mesh = Mesh::new(2, Config::new(1, 0));
    mesh.elect(2);
    mesh.deliver();
    assert_eq!(mesh.leader(2), Some(1));
    // It answers the query, and then no attempt reaches it.
    mesh.elect(2);
    let query = mesh.wire.remove(0);
    mesh.wire.push(query);
    let (from, to, message) = mesh.wire.remove(0);
    mesh.step(to.id.0, Input::Message { from, message })
        .unwrap();
    let (from, to, message) = mesh.wire.remove(0);
    mesh.step(to.id.0, Input::Message { from, message })
        .unwrap();
    mesh.cut.push(1);
    mesh.pass(Span::secs(5));
    assert!(mesh.nodes[1].machine().is_electing());
    mesh.cut.clear();
    mesh.pass(Span::secs(5));
    assert!(!mesh.nodes[1].machine().is_electing());
    assert_eq!(mesh.leader(2), Some(1));
    // One round without it, and one with it again.
    assert_eq!(mesh.nodes[1].machine().counters().rounds, 2);
}

/// 1 and 2 are dead, 3 lists them for ever, and 4, which is asked, knows 3 alone and never knew
/// them.
#[test]
fn an_election_ends_where_a_list_names_dead_nodes_that_the_initiator_never_knew() {
    let lists = [vec![], vec![], vec![1, 2, 4], vec![3]];
    let mut mesh = Mesh::with_lists(&lists, Config::new(1, 0));
    mesh.cut.extend([1, 2]);
    mesh.elect(4);
    mesh.pass(Span::secs(30));
    assert!(!mesh.nodes[3].machine().is_electing());
    assert_eq!(mesh.leaders(), [Some(3); 2]);
    mesh.elect(4);
}

/// 5 needs a third list, and 4 names three dead nodes before the node that has it.
#[test]
fn dead_nodes_do_not_hide_a_live_one_for_ever() {
    let lists = [
        vec![],
        vec![],
        vec![],
        vec![1, 2, 3, 5, 6],
        vec![4],
        vec![4, 5],
    ];
    let mut mesh = Mesh::with_lists(&lists, Config::new(2, 0));
    mesh.cut.extend([1, 2, 3]);
    mesh.elect(5);
    mesh.pass(Span::secs(200));
    assert_eq!(mesh.leaders(), [Some(4); 3]);
}

/// The lowest are dead and on all lists, and more than a query may name.
#[test]
fn an_election_ends_however_few_a_query_may_name() {
    let protocols = [Protocol::Base, Protocol::Lean, Protocol::Optimistic];
    for (exclude_limit, dead) in (1..=3).flat_map(|limit| (0..=4).map(move |dead| (limit, dead))) {
        for protocol in protocols {
            let config = Config::new(1, dead)
                .with_protocol(protocol)
                .with_exclude_limit(exclude_limit)
                .with_frame_budget(127);
            let dead = u64::from(dead);
            let mut mesh = Mesh::new(dead + 2, config);
            mesh.cut.extend(1..=dead);
            mesh.elect(dead + 2);
            mesh.pass(Span::secs(20));
            let what = format!("{protocol:?}, {exclude_limit} named, {dead} dead");
            assert_eq!(mesh.leaders(), [Some(dead + 1); 2], "{what}");
            assert!(
                !mesh.nodes[dead as usize + 1].machine().is_electing(),
                "{what}"
            );
        }
    }
}

/// 1 knows 2 to 4, of which 2 and 3 are dead, and 5 is on the list of 4 alone: with its own these are
/// three lists. More are dead than f, and no failure is reported.
#[test]
fn an_election_ends_where_more_are_dead_than_f() {
    for protocol in [Protocol::Base, Protocol::Lean, Protocol::Optimistic] {
        let config = Config::new(2, 0).with_protocol(protocol);
        let lists = [vec![2, 3, 4], vec![], vec![], vec![1, 5], vec![1, 4]];
        let mut mesh = Mesh::with_lists(&lists, config);
        mesh.cut.extend([2, 3]);
        mesh.elect(1);
        mesh.pass(Span::secs(30));
        assert_eq!(mesh.leaders(), [Some(1); 3], "{protocol:?}");
        assert!(!mesh.nodes[0].machine().is_electing(), "{protocol:?}");
    }
}
