//! The groups that nodes report as lost, and when.

use super::*;

fn is_reported(town: &Town, by: u64, group: GroupId) -> bool {
    let is_it = |it: &(u64, Event<Held, u64>)| {
        it.0 == by && matches!(it.1, Event::QuorumLost(of) if of == group)
    };
    town.events.iter().any(is_it)
}

/// A town whose group has answered all nodes.
fn town() -> Town {
    let mut town = Town::new(&Land::first(7, &[FIRST.0]));
    town.run(Span::secs(2));
    for id in 1..=7 {
        town.ask(id, FIRST, id);
    }
    town
}

fn set_epoch(town: &mut Town, id: u64, number: u64) {
    town.events.clear();
    town.input(id, Input::Command(Command::SetEpoch(number)));
}

#[test]
fn a_member_reports_the_loss_when_most_members_failed() {
    let mut town = town();
    let members = members(&town, FIRST);
    town.stop(members[0]);
    set_epoch(&mut town, members[2], 2);
    assert!(!is_reported(&town, members[2], FIRST));
    town.stop(members[1]);
    set_epoch(&mut town, members[2], 3);
    assert!(is_reported(&town, members[2], FIRST));
}

#[test]
fn a_member_reports_the_loss_after_it_stood_in_vain_for_long() {
    let mut town = town();
    let leader = town.leaders(FIRST)[0];
    let member = members(&town, FIRST).into_iter().find(|it| *it != leader);
    let member = member.unwrap();
    town.cut.insert(member);
    let last = town.nodes[&leader].machine().me();
    town.input(member, Input::Membership(Delta::Failed(last)));
    town.run(Span::millis(800));
    set_epoch(&mut town, member, 2);
    assert!(!is_reported(&town, member, FIRST));
    town.run(Span::secs(120));
    set_epoch(&mut town, member, 3);
    assert!(is_reported(&town, member, FIRST));
}

fn ask_in_vain(town: &mut Town, id: u64) {
    for _ in 0..4 {
        let (group, payload) = (FIRST, 3);
        town.input(id, Input::Command(Command::Ask { group, payload }));
        town.run(Span::millis(100));
    }
}

#[test]
fn a_node_that_asked_in_vain_reports_the_loss_of_members_that_failed() {
    let mut town = town();
    let members = members(&town, FIRST);
    let mut others = (1..=7).filter(|it| !members.contains(it));
    let (asker, other) = (others.next().unwrap(), others.next().unwrap());
    town.stop(members[0]);
    town.stop(members[1]);
    town.cut.insert(members[2]);
    set_epoch(&mut town, other, 2);
    assert!(!is_reported(&town, other, FIRST), "it did not ask");
    ask_in_vain(&mut town, asker);
    set_epoch(&mut town, asker, 2);
    assert!(is_reported(&town, asker, FIRST));
    // The group may have moved on since.
    set_epoch(&mut town, asker, 3);
    assert!(!is_reported(&town, asker, FIRST));
}

/// It knows no members that failed.
#[test]
fn a_node_that_is_cut_off_reports_no_group_that_it_never_found() {
    let mut town = Town::new(&Land::first(7, &[FIRST.0]));
    let founders = town.nodes[&1].machine().founders(FIRST);
    let asker = (1..=7).find(|it| !founders.contains(&NodeId(*it))).unwrap();
    town.cut.insert(asker);
    ask_in_vain(&mut town, asker);
    set_epoch(&mut town, asker, 2);
    assert!(!is_reported(&town, asker, FIRST));
    town.cut.clear();
    town.run(Span::secs(5));
    town.ask(asker, FIRST, 1);
}

/// Its reports are lost until the wait of the epoch before would be over.
#[test]
fn each_epoch_reports_a_loss_from_the_start() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    lose_all_but_the_leader(&mut town, &land);
    town.change(1, &land.next());
    town.run(Span::secs(10));
    town.cut = (1..=7).collect();
    epochs(&mut town, 2..=3);
    town.run(Span::secs(60));
    assert!(!has_begun_anew(&town, FIRST));
    epochs(&mut town, 4..=4);
    town.cut.clear();
    town.run(Span::secs(30));
    assert!(has_begun_anew(&town, FIRST));
}

#[test]
fn a_loss_is_reported_at_growing_intervals_until_the_group_begins_anew() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    let leader = lose_all_but_the_leader(&mut town, &land);
    let away = (1..=7).filter(|it| *it != leader);
    let away: Vec<u64> = away
        .filter(|it| !members(&town, FIRST).contains(it))
        .collect();
    for id in &away[..2] {
        town.stop(*id);
    }
    epochs(&mut town, 2..=3);
    let mut times = BTreeSet::new();
    for id in town.nodes.keys().copied().collect::<Vec<u64>>() {
        town.input(id, Input::Command(Command::SetEpoch(4)));
    }
    for _ in 0..3_000 {
        for it in town.wire.iter().filter(|it| it.2.id.0 == leader) {
            if it.3.items.iter().any(|it| matches!(it, Item::Lost { .. })) {
                times.insert(it.0);
            }
        }
        town.run(Span::millis(10));
    }
    assert!((3..=8).contains(&times.len()), "{times:?}");
    assert!(!has_begun_anew(&town, FIRST));
}

/// A site that was decided may be adopted before the answer of the registry.
#[test]
fn a_proposer_reports_its_site_without_an_answer_of_the_registry() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.change(2, &land.next());
    for _ in 0..1_000 {
        town.run(Span::millis(10));
        for it in town.wire.iter_mut().filter(|it| it.1 == 2) {
            let is_answer = |it: &&Item<_, _>| {
                !matches!(
                    it,
                    Item::Registered {
                        is_decided: true,
                        ..
                    }
                )
            };
            it.3.items = it.3.items.iter().filter(is_answer).cloned().collect();
        }
        town.wire.retain(|it| !it.3.items.is_empty());
    }
    assert_eq!(town.generations(), [1; 7]);
    let is_it = |it: &(u64, Event<Held, u64>)| {
        it.0 == 2
            && matches!(
                it.1,
                Event::Proposed {
                    is_decided: true,
                    ..
                }
            )
    };
    assert_eq!(town.events.iter().filter(|it| is_it(it)).count(), 1);
}

#[test]
fn a_proposer_that_the_site_has_no_more_reports_that_its_site_was_not_decided() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.cut.insert(7);
    let other = Land {
        groups: vec![FIRST.0, 8],
        ..land.next()
    };
    town.change(7, &other);
    let next = Land {
        nodes: (1..=6).collect(),
        former: vec![7],
        ..land.next()
    };
    town.change(2, &next);
    town.run(Span::secs(10));
    town.cut.clear();
    // The registry has no answer for a node that the site does not have.
    for _ in 0..1_000 {
        town.run(Span::millis(10));
        town.wire.retain(|it| {
            let is_answer = |it: &Item<_, _>| matches!(it, Item::Registered { .. });
            it.1 != 7 || !it.3.items.iter().any(is_answer)
        });
    }
    assert_eq!(town.generations(), [1; 7]);
    let is_it = |it: &(u64, Event<Held, u64>)| {
        it.0 == 7
            && matches!(
                it.1,
                Event::Proposed {
                    is_decided: false,
                    ..
                }
            )
    };
    assert_eq!(town.events.iter().filter(|it| is_it(it)).count(), 1);
}

/// Returns true if the node reports the group to the registry when the epoch begins.
fn sends_report(town: &mut Town, id: u64, number: u64) -> bool {
    town.wire.clear();
    town.input(id, Input::Command(Command::SetEpoch(number)));
    let own = town.wire.iter().filter(|it| it.2.id.0 == id);
    let mut items = own.flat_map(|it| it.3.items.iter());
    items.any(|it| matches!(it, Item::Lost { group: FIRST, .. }))
}

/// A town, a founder that is no member and has news of the group, and the next epoch.
fn founder_outside() -> (Town, u64, u64) {
    let mut town = town();
    for number in 2..20 {
        epochs(&mut town, number..=number);
        let members = members(&town, FIRST);
        let founders = town.nodes[&1].machine().founders(FIRST);
        let mut outside = founders.iter().map(|it| it.0);
        if let Some(id) = outside.find(|it| !members.contains(it)) {
            return (town, id, number + 1);
        }
    }
    panic!("the members stay the same");
}

#[test]
fn a_founder_without_news_for_two_epochs_reports_the_loss() {
    let (mut town, id, epoch) = founder_outside();
    assert!(!sends_report(&mut town, id, epoch));
    town.cut = members(&town, FIRST).into_iter().collect();
    let later = epoch + 1..epoch + 4;
    let reports: Vec<bool> = later.map(|it| sends_report(&mut town, id, it)).collect();
    assert!(reports[2], "{reports:?}");
    assert!(!reports[0], "{reports:?}");
}

#[test]
fn a_founder_that_asked_in_vain_reports_the_loss() {
    let (mut town, id, epoch) = founder_outside();
    town.cut = members(&town, FIRST).into_iter().collect();
    ask_in_vain(&mut town, id);
    assert!(sends_report(&mut town, id, epoch));
}

#[test]
fn a_founder_that_knows_no_leader_reports_the_loss() {
    let (mut town, id, epoch) = founder_outside();
    let members = members(&town, FIRST);
    let replica = town.nodes[&members[0]].machine().replica(FIRST).unwrap();
    let item = Item::Where {
        group: FIRST,
        number: replica.configuration().number + 1,
        leader: None,
        members: members.iter().map(|it| life(*it, 1)).collect(),
    };
    let message = Message {
        plan: Land::first(7, &[FIRST.0]).plan().digest(),
        generation: 0,
        items: [item].into_iter().collect(),
    };
    let from = life(members[0], 1);
    town.input(id, Input::Message { from, message });
    assert!(sends_report(&mut town, id, epoch));
}

/// It is a guess of a node that asked in vain as well.
#[test]
fn a_guess_is_no_news_for_a_founder() {
    let (mut town, id, epoch) = founder_outside();
    let members = members(&town, FIRST);
    town.cut = members.iter().copied().collect();
    for later in epoch..epoch + 3 {
        sends_report(&mut town, id, later);
    }
    let item = Item::Where {
        group: FIRST,
        number: 0,
        leader: Some(NodeId(members[0])),
        members: members.iter().map(|it| life(*it, 1)).collect(),
    };
    let message = Message {
        plan: Land::first(7, &[FIRST.0]).plan().digest(),
        generation: 0,
        items: [item].into_iter().collect(),
    };
    let from = life((1..=7).find(|it| *it != id).unwrap(), 1);
    town.input(id, Input::Message { from, message });
    assert!(sends_report(&mut town, id, epoch + 3));
}

/// The registry keeps its quorum.
#[test]
fn a_group_begins_anew_as_often_as_its_members_lose_their_memory() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.change(1, &land.next());
    town.run(Span::secs(10));
    let land = land.next();
    for time in 1..=3_u32 {
        town.ask(1, FIRST, u64::from(time));
        let registry = members(&town, GroupId::REGISTRY);
        let mut lost = members(&town, FIRST);
        lost.sort_by_key(|it| registry.contains(it));
        for id in &lost[..2] {
            forget(&mut town, *id, 2 * time, &land);
        }
        town.run(Span::secs(10));
        let first = u64::from(time) * 10;
        epochs(&mut town, first..first + 4);
        town.ask(1, FIRST, 9);
        let leader = town.leaders(FIRST)[0];
        let replica = town.nodes[&leader].machine().replica(FIRST).unwrap();
        assert_eq!(replica.configuration().number >> 22, u64::from(time));
    }
}

/// Its leader reports the loss.
#[test]
fn a_map_does_not_begin_anew_by_itself() {
    let land = Land::first(7, &[]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, MAP, 1);
    assert!(!has_begun_anew(&town, MAP), "it has begun once");
    let leader = town.leaders(MAP)[0];
    for id in members(&town, MAP).into_iter().filter(|it| *it != leader) {
        forget(&mut town, id, 2, &land);
    }
    town.run(Span::secs(5));
    town.events.clear();
    epochs(&mut town, 2..=6);
    let is_lost = |it: &(u64, Event<Held, u64>)| matches!(it.1, Event::QuorumLost(MAP));
    assert!(town.events.iter().any(is_lost));
    assert!(!has_begun_anew(&town, MAP));
    town.input(leader, Input::Command(Command::BeginAnew(MAP)));
    town.run(Span::secs(5));
    assert!(has_begun_anew(&town, MAP));
}
