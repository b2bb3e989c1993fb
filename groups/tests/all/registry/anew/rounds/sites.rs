//! Changes of the site.

use super::*;

/// It may still be a member.
#[test]
fn a_node_that_the_site_has_no_more_has_to_answer_while_it_is_here() {
    for answers in [false, true] {
        let mut rounds = Rounds::new();
        let former = rounds.others[5];
        let next = Land {
            nodes: (1..=7).filter(|it| *it != former).collect(),
            former: vec![former],
            ..rounds.land.next()
        };
        rounds.change(&next);
        let members = members_of(&rounds.others);
        rounds.report(FIRST, 0);
        rounds.run(Span::secs(60), |it| {
            (answers || it.to != former).then(|| lost(it, &members))
        });
        assert_eq!(rounds.birth().is_some(), answers);
    }
}

/// The nodes that were asked are those of the former site.
#[test]
fn the_leader_asks_again_after_a_change_of_the_site() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.report(FIRST, 0);
    while rounds.rounds.len() < 3 {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
    }
    rounds.town.change(rounds.leader, &rounds.land.next());
    rounds.run(Span::secs(30), |it| Some(lost(it, &members)));
    assert_eq!(rounds.birth(), Some(END + 1));
    assert_eq!(rounds.counts(), (6, 2), "{:?}", rounds.rounds);
}

#[test]
fn the_leader_asks_again_after_a_change_of_the_site_behind_all_promises() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.run_to_promises(&members);
    assert_eq!(rounds.birth(), None);
    rounds.town.change(rounds.leader, &rounds.land.next());
    let leader = rounds.leader;
    while rounds.town.nodes[&leader].machine().generation() < 2 {
        rounds.run(Span::millis(10), |_| None);
    }
    assert_eq!(rounds.birth(), None);
    rounds.are_absent = false;
    rounds.run(Span::millis(500), |_| None);
    assert_eq!(rounds.birth(), None);
    rounds.run(Span::secs(30), |it| Some(lost(it, &members)));
    assert_eq!(rounds.birth(), Some(END + 1));
}

/// Its founders follow from the first site alone, and all but as many as may fail answer: none of them has a vote.
#[test]
fn a_group_that_no_node_remembers_is_ended_after_a_change_of_the_site() {
    let mut rounds = Rounds::new();
    let machine = rounds.town.nodes[&rounds.leader].machine();
    assert!(machine.replica(FIRST).is_none());
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(30), |it| Some(Answer::forgot(it.to).promise(it)));
    assert_eq!(rounds.counts(), (3, 2));
    assert_eq!(rounds.birth(), Some(END + 1));
}

/// More than are asked about at once.
#[test]
fn groups_that_wait_are_asked_about_after_a_change_of_the_site() {
    let groups: Vec<u64> = (1..=17).map(|it| 4 * it).collect();
    let mut rounds = Rounds::with(&groups);
    for group in &groups {
        rounds.report(GroupId(*group), 0);
    }
    rounds.town.change(rounds.leader, &rounds.land.next());
    let leader = rounds.leader;
    while rounds.town.nodes[&leader].machine().generation() < 2 {
        rounds.run(Span::millis(10), |_| None);
    }
    let mut asked = BTreeSet::new();
    for _ in 0..3_000 {
        rounds.town.run(Span::millis(10));
        let items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
        asked.extend(items.filter_map(|it| match it {
            Item::End { group, .. } => Some(group.0),
            _ => None,
        }));
        rounds.questions();
    }
    assert_eq!(asked, groups.into_iter().collect());
}
