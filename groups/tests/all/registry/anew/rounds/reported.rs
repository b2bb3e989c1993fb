//! Reports of losses, at the leader of the registry.

use super::*;

#[test]
fn the_leader_asks_about_no_map_and_no_unknown_group() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.report(MAP, 0);
    rounds.report(GroupId(99), 0);
    rounds.run(Span::secs(10), |it| Some(lost(it, &members)));
    assert!(rounds.rounds.is_empty());
    rounds.begin_anew();
}

#[test]
fn a_report_of_a_former_beginning_is_answered_with_the_present_one() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.rounds.clear();
    rounds.town.wire.clear();
    rounds.report(FIRST, 5);
    let is_born = |it: &Item<Change, u64>| matches!(it, Item::Born { group: FIRST, .. });
    let mut items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
    assert!(items.any(is_born));
    rounds.run(Span::secs(5), |_| None);
    assert!(rounds.rounds.is_empty());
    rounds.report(FIRST, END + 1);
    rounds.run(Span::secs(5), |_| None);
    assert_eq!(rounds.counts(), (1, 0));
}

#[test]
fn another_node_answers_a_report_with_the_place_of_the_registry() {
    let mut rounds = Rounds::new();
    let is_place = |it: &Item<Change, u64>| {
        matches!(
            it,
            Item::Where {
                group: GroupId::REGISTRY,
                leader: Some(_),
                ..
            }
        )
    };
    let (group, number) = (FIRST, 0);
    let others = rounds.others.clone();
    let mut places = 0;
    for to in others {
        rounds.town.wire.clear();
        let from = rounds.town.nodes[&rounds.leader].machine().me();
        rounds.send(from, to, Item::Lost { group, number });
        let items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
        places += items.filter(|it| is_place(it)).count();
    }
    assert!(
        places >= 2,
        "the other members of the registry know its leader"
    );
}

/// Its founders may not have got the news yet.
#[test]
fn a_group_that_has_just_begun_is_not_lost() {
    let mut rounds = Rounds::new();
    rounds.is_mute = true;
    let members = members_of(&rounds.others);
    rounds.report(FIRST, 0);
    while rounds.birth().is_none() {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
    }
    rounds.rounds.clear();
    rounds.report(FIRST, END + 1);
    rounds.run(Span::millis(50), |_| None);
    assert!(rounds.rounds.is_empty());
    rounds.run(Span::secs(60), |_| None);
    // Its founders may have been silent for other reasons: those of the former beginning count no more.
    rounds.report(FIRST, END + 1);
    rounds.run(Span::secs(30), |it| Some(lost_or_new(it, &members)));
    assert_eq!(rounds.counts(), (1, 0));
}

/// The founders of the present beginning count, and no members of a former one.
#[test]
fn a_later_beginning_ends_after_its_founders_are_lost() {
    for is_lost in [false, true] {
        let mut rounds = Rounds::new();
        rounds.begin_anew();
        rounds.rounds.clear();
        let former = members_of(&rounds.others);
        let registry = rounds.town.nodes[&rounds.leader].machine().registry();
        let birth = registry.unwrap().birth(FIRST).unwrap();
        let founders: Vec<u64> = birth.founders.iter().map(|it| it.id.0).collect();
        rounds.report(FIRST, END + 1);
        rounds.run(Span::secs(30), |it| {
            assert_eq!(it.end, 2 * END);
            let answer = match founders.contains(&it.to) && !is_lost {
                true => Answer::voter(it.to, END + 1),
                false => Answer {
                    number: 5,
                    members: former.clone(),
                    from: life(it.to, 2),
                    since: 2,
                    ..Answer::nothing(it.to)
                },
            };
            Some(answer.promise(it))
        });
        assert_eq!(rounds.counts(), if is_lost { (3, 2) } else { (1, 0) });
    }
}

/// A number of a beginning that was not decided begins nothing.
#[test]
fn nobody_begins_a_beginning_after_one_that_was_not_decided() {
    for lost in [END + 1, 5 * END + 1] {
        let mut rounds = Rounds::new();
        let from = rounds.town.nodes[&rounds.others[0]].machine().me();
        rounds.send(from, rounds.leader, Item::Find { group: FIRST, lost });
        rounds.run(Span::secs(5), |_| None);
        assert_eq!(rounds.birth(), None);
    }
}

#[test]
fn the_leader_asks_about_no_group_that_is_to_begin_anew() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.run_to_promises(&members);
    rounds.rounds.clear();
    rounds.report(FIRST, 0);
    rounds.run(Span::millis(500), |_| None);
    assert_eq!(rounds.birth(), None);
    assert_eq!(rounds.rounds, []);
}

/// Its sender may have the former site.
#[test]
fn a_report_of_a_group_that_the_site_has_no_more_gets_no_answer() {
    let second = GroupId(8);
    let mut rounds = Rounds::new();
    let with = Land {
        groups: vec![FIRST.0, second.0],
        ..rounds.land.next()
    };
    rounds.change(&with);
    rounds.town.ask(1, MAP, 1);
    let registry = rounds.town.nodes[&rounds.leader].machine().registry();
    assert!(
        [second, MAP]
            .iter()
            .all(|it| registry.unwrap().birth(*it).is_some())
    );
    let without = Land {
        groups: vec![FIRST.0],
        ..with.next()
    };
    rounds.change(&without);
    // A map can never begin anew by itself.
    for group in [second, MAP] {
        rounds.town.wire.clear();
        rounds.report(group, 0);
        let items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
        let items: Vec<_> = items.collect();
        assert_eq!(items, Vec::<&Item<Change, u64>>::new());
    }
}

/// As a founder does that has had no news of the group in its life.
#[test]
fn a_node_that_reports_a_group_that_is_not_lost_learns_its_place() {
    let mut rounds = Rounds::new();
    let members = members(&rounds.town, FIRST);
    let knows = |rounds: &Rounds, id: u64| {
        rounds.town.nodes[&id]
            .machine()
            .whereabouts(FIRST)
            .is_some()
    };
    let mut ids = (1..=7).filter(|it| !members.contains(it));
    let by = ids
        .find(|it| *it != rounds.leader && !knows(&rounds, *it))
        .unwrap();
    assert!(!knows(&rounds, rounds.leader));
    let from = rounds.town.nodes[&by].machine().me();
    for _ in 0..2 {
        assert!(!knows(&rounds, by));
        let (group, number) = (FIRST, 0);
        rounds.send(from, rounds.leader, Item::Lost { group, number });
        rounds.town.run(Span::secs(10));
    }
    assert!(knows(&rounds, by));
}
