//! Groups that begin anew by themselves, once their memory is certainly lost.

use selvedge_groups::registry::{Birth, Registration, Registry};

use super::town::{Change, Held, Land, Town};
use super::{FIRST, MAP};
use crate::mesh::*;

mod answers;
mod bound;
mod commands;
mod decisions;
mod founders;
mod histories;
mod reports;
mod rounds;
mod stored;

fn members(town: &Town, group: GroupId) -> Vec<u64> {
    let latest = town
        .nodes
        .values()
        .filter_map(|it| it.machine().replica(group));
    let latest = latest
        .map(|it| it.configuration())
        .max_by_key(|it| it.number);
    latest.unwrap().members().map(|it| it.member.id.0).collect()
}

/// The node loses its memory, and starts again.
fn forget(town: &mut Town, id: u64, life_number: u32, land: &Land) {
    town.stop(id);
    town.facts.remove(&id);
    town.start(life(id, life_number), land, Start::Restarted);
}

fn epochs(town: &mut Town, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let ids: Vec<u64> = town.nodes.keys().copied().collect();
        for id in ids {
            town.input(id, Input::Command(Command::SetEpoch(number)));
        }
        town.run(Span::secs(10));
    }
}

fn has_begun_anew(town: &Town, group: GroupId) -> bool {
    let is_it = |it: &(u64, Event<Held, u64>)| matches!(it.1, Event::BegunAnew(of) if of == group);
    town.events.iter().any(is_it)
}

#[test]
fn a_group_whose_members_have_lost_their_memory_begins_anew_by_itself() {
    for (lost, loss) in [(2, u64::MAX), (3, u64::MAX), (2, 7), (3, 5)] {
        let land = Land::first(7, &[FIRST.0]);
        let mut town = Town::new(&land);
        town.loss = loss;
        town.run(Span::secs(2));
        town.ask(1, FIRST, 1);
        for id in members(&town, FIRST).into_iter().take(lost) {
            forget(&mut town, id, 2, &land);
        }
        town.run(Span::secs(10));
        assert!(town.leaders(FIRST).is_empty());
        epochs(&mut town, 2..=5);
        assert!(has_begun_anew(&town, FIRST), "{lost} {loss}");
        town.ask(1, FIRST, 5);
        assert_eq!(town.set(FIRST), 1 << 5);
    }
}

/// The nodes that remember the last members are others.
#[test]
fn a_group_whose_last_members_have_all_lost_their_memory_begins_anew_by_itself() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let first = members(&town, FIRST);
    town.stop(first[0]);
    town.run(Span::secs(5));
    town.start(life(first[0], 2), &land, Start::Fresh);
    town.run(Span::secs(5));
    let last = members(&town, FIRST);
    assert_ne!(first, last);
    for id in last {
        forget(&mut town, id, 3, &land);
    }
    town.run(Span::secs(5));
    assert!(town.leaders(FIRST).is_empty());
    epochs(&mut town, 2..=6);
    assert!(has_begun_anew(&town, FIRST));
    town.ask(1, FIRST, 5);
    assert_eq!(town.set(FIRST), 1 << 5);
}

/// Nodes that asked in vain send each other guesses, and remember the last members all the same.
#[test]
fn a_group_that_was_long_away_and_lost_its_memory_begins_anew_by_itself() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let land = land.next();
    town.change(1, &land);
    town.run(Span::secs(5));
    town.ask(1, FIRST, 1);
    let away = members(&town, FIRST);
    let others: Vec<u64> = (1..=7).filter(|it| !away.contains(it)).collect();
    for id in &others {
        town.ask(*id, FIRST, 2);
    }
    for id in &away {
        town.stop(*id);
    }
    for number in 2..=5 {
        for _ in 0..6 {
            for id in &others {
                let (group, payload) = (FIRST, 3);
                town.input(*id, Input::Command(Command::Ask { group, payload }));
            }
            town.run(Span::secs(1));
        }
        epochs(&mut town, number..=number);
    }
    for id in away {
        town.facts.remove(&id);
        town.start(life(id, 2), &land, Start::Restarted);
    }
    town.run(Span::secs(5));
    epochs(&mut town, 6..=9);
    assert!(has_begun_anew(&town, FIRST));
    town.ask(1, FIRST, 5);
    assert_eq!(town.set(FIRST) & 1 << 5, 1 << 5);
}

/// The site has its former members no more, which were cut off with a quorum of their own. When they are back, they
/// look for other members, all of which have promised to take no part in that beginning.
#[test]
fn former_members_that_were_cut_off_leave_a_group_that_has_begun_anew() {
    let land = Land::first(9, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let former = members(&town, FIRST);
    let others: Vec<u64> = (1..=9).filter(|it| !former.contains(it)).collect();
    let report = |town: &mut Town, delta: fn(Member) -> Delta| {
        for (one, other) in former
            .iter()
            .flat_map(|one| others.iter().map(move |it| (*one, *it)))
        {
            town.input(one, Input::Membership(delta(life(other, 1))));
            town.input(other, Input::Membership(delta(life(one, 1))));
        }
    };
    let land = Land {
        nodes: others.clone(),
        former: former.clone(),
        ..land.next()
    };
    town.change(others[0], &land);
    town.run(Span::millis(40));
    town.cut.extend(&former);
    report(&mut town, Delta::Failed);
    epochs(&mut town, 2..=5);
    assert!(has_begun_anew(&town, FIRST));
    town.cut.clear();
    report(&mut town, Delta::Refuted);
    epochs(&mut town, 6..=8);
    let is_in = |id: &u64| town.nodes[id].machine().replica(FIRST).is_some();
    assert!(!former.iter().any(is_in));
    town.ask(others[0], FIRST, 5);
    assert_eq!(town.set(FIRST), 1 << 5);
}

/// Each node learns of it once, and none reports a loss later.
#[test]
fn a_group_that_has_begun_anew_is_reported_no_more() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    for id in members(&town, FIRST).into_iter().take(2) {
        forget(&mut town, id, 2, &land);
    }
    epochs(&mut town, 2..=6);
    let is_it = |it: &&(u64, _)| matches!(it.1, Event::BegunAnew(FIRST));
    let reports = |id: u64| {
        town.events
            .iter()
            .filter(is_it)
            .filter(|it| it.0 == id)
            .count()
    };
    let reported: Vec<usize> = (1..=7).map(reports).collect();
    assert_eq!(reported, [1; 7]);
    town.events.clear();
    for number in 7..=10 {
        for id in 1..=7 {
            town.input(id, Input::Command(Command::SetEpoch(number)));
        }
        for _ in 0..1_000 {
            let items = town.wire.iter().flat_map(|it| it.3.items.iter());
            let is_about = |it: &Item<_, _>| matches!(it, Item::Lost { .. } | Item::End { .. });
            assert!(!items.into_iter().any(is_about));
            town.run(Span::millis(10));
        }
    }
    assert!(!has_begun_anew(&town, FIRST));
}

#[test]
fn the_registry_outlives_founders_that_lose_their_memory_one_after_another() {
    for is_lost in [false, true] {
        let land = Land::first(7, &[FIRST.0]);
        let mut town = Town::new(&land);
        town.run(Span::secs(2));
        for id in 1..=7 {
            forget(&mut town, id, 2, &land);
            if is_lost {
                // The first question of the new life. The next epoch repeats it.
                town.wire.clear();
                town.input(id, Input::Command(Command::SetEpoch(2)));
            }
            town.run(Span::secs(10));
        }
        town.change(1, &land.next());
        town.run(Span::secs(10));
        assert_eq!(town.generations(), [1; 7]);
    }
}

/// The members of a group but its leader lose their memory.
fn lose_all_but_the_leader(town: &mut Town, land: &Land) -> u64 {
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let leader = town.leaders(FIRST)[0];
    let mut others = members(town, FIRST);
    others.retain(|it| *it != leader);
    for id in others {
        forget(town, id, 2, land);
    }
    leader
}

#[test]
fn three_rounds_bind_nobody_and_two_more_find_the_same_promises() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    lose_all_but_the_leader(&mut town, &land);
    let mut rounds = BTreeSet::new();
    for number in 2..=5 {
        for id in 1..=7 {
            town.input(id, Input::Command(Command::SetEpoch(number)));
        }
        for _ in 0..1_000 {
            let items = town.wire.iter().flat_map(|it| it.3.items.iter());
            rounds.extend(items.filter_map(|it| match *it {
                Item::End {
                    call, is_binding, ..
                } => Some((is_binding, call)),
                _ => None,
            }));
            town.run(Span::millis(10));
        }
    }
    assert!(has_begun_anew(&town, FIRST));
    let binding: Vec<u64> = rounds.iter().filter(|it| it.0).map(|it| it.1).collect();
    assert_eq!(binding.len(), 2, "{rounds:?}");
    let trials = binding[0] - 3..binding[0];
    assert!(
        trials.into_iter().all(|it| rounds.contains(&(false, it))),
        "{rounds:?}"
    );
}

/// The first reports are lost, and no other epoch begins.
#[test]
fn a_loss_is_reported_again_within_the_epoch() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    lose_all_but_the_leader(&mut town, &land);
    town.change(1, &land.next()); // The registry begins, and has a leader.
    town.run(Span::secs(10));
    town.cut = (1..=7).collect();
    epochs(&mut town, 2..=3);
    town.cut.clear();
    town.run(Span::secs(30));
    assert!(has_begun_anew(&town, FIRST));
}

#[test]
fn a_leader_without_an_answer_of_its_members_reports_the_loss() {
    let is_lost = |town: &Town| {
        let is_it = |it: &(u64, Event<Held, u64>)| matches!(it.1, Event::QuorumLost(FIRST));
        town.events.iter().any(is_it)
    };
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    lose_all_but_the_leader(&mut town, &land);
    assert!(!is_lost(&town));
    epochs(&mut town, 2..=3);
    assert!(is_lost(&town));
}

/// The nodes that were asked are those of another site.
#[test]
fn a_beginning_of_another_generation_is_not_registered() {
    let birth = |generation| Registration::Birth {
        group: FIRST,
        birth: Birth {
            number: 1,
            generation,
            founders: [life(1, 1)].into_iter().collect(),
        },
    };
    let mut registry = Registry::default();
    registry.apply(&birth(1));
    assert_eq!(registry.birth(FIRST), None);
    registry.apply(&birth(0));
    assert!(registry.birth(FIRST).is_some());
}

/// Nodes that are away may go on elsewhere, until the site has them no more.
#[test]
fn a_group_does_not_begin_anew_while_too_many_nodes_are_away() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let lost: Vec<u64> = members(&town, FIRST).into_iter().take(2).collect();
    for id in &lost {
        town.stop(*id);
    }
    epochs(&mut town, 2..=6);
    assert!(town.leaders(FIRST).is_empty());
    assert!(!has_begun_anew(&town, FIRST));
    let next = Land {
        nodes: (1..=7).filter(|it| !lost.contains(it)).collect(),
        former: lost.clone(),
        ..land.next()
    };
    let by = next.nodes[0];
    town.change(by, &next);
    town.run(Span::secs(5));
    epochs(&mut town, 7..=10);
    town.ask(by, FIRST, 2);
    assert_eq!(town.set(FIRST), 0b100);
}

#[test]
fn a_group_of_which_members_are_back_in_time_goes_on() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let away: Vec<u64> = members(&town, FIRST).into_iter().take(2).collect();
    for id in &away {
        town.stop(*id);
    }
    epochs(&mut town, 2..=5);
    for id in &away {
        town.start(life(*id, 2), &land, Start::Fresh);
    }
    epochs(&mut town, 6..=7);
    town.ask(1, FIRST, 2);
    assert_eq!(town.set(FIRST), 0b110);
}

/// All promise, and lose power before the group begins anew.
#[test]
fn a_promise_outlives_a_restart() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    town.ask(1, FIRST, 1);
    let members = members(&town, FIRST);
    for id in &members[..2] {
        forget(&mut town, *id, 2, &land);
    }
    town.run(Span::secs(5));
    let has_ended = |town: &Town| {
        let ended = |it: &Vec<Fact<Held>>| it.iter().any(|it| matches!(it, Fact::Ended { .. }));
        town.facts.values().filter(|it| ended(it)).count()
    };
    for number in 2..=10 {
        for id in 1..=7 {
            town.input(id, Input::Command(Command::SetEpoch(number)));
        }
        for _ in 0..1_000 {
            if has_ended(&town) < 7 {
                town.run(Span::millis(10));
            }
        }
    }
    assert!(has_ended(&town) == 7 && !has_begun_anew(&town, FIRST));
    for id in 1..=7 {
        let machine = town.nodes[&id].machine();
        let stored: Vec<Fact<Held>> = machine.stored().collect();
        let base = machine.base(Some(FIRST));
        assert!(matches!(base, Some(Fact::Ended { .. })), "{base:?}");
        town.stop(id);
        town.facts.insert(id, stored);
    }
    town.wire.clear();
    for id in 1..=7 {
        town.start(life(id, 3), &land, Start::Fresh);
        assert!(town.nodes[&id].machine().replica(FIRST).is_none());
    }
    town.run(Span::secs(5));
    epochs(&mut town, 11..=15);
    town.ask(members[2], FIRST, 3);
    assert_eq!(town.set(FIRST), 0b1000);
}
