//! The formation of units: their members, the time, the unit that gets a task, and later members.

use std::collections::BTreeMap;

use proptest::prelude::*;
use selvedge_core::NodeId;
use selvedge_pcm::{Attachment, Class, Limits, Tables, Update};
use selvedge_replica::State as _;

use super::sample::{attached, check, follower, submit, tables, task, units};

/// `followers` followers that are alike, in units of five.
fn alike(followers: u64) -> Tables {
    tables((0..followers).map(|id| (id, 1_000)))
}

/// The followers of a unit, the orchestrator first.
fn ids(tables: &Tables, unit: u32) -> Vec<u64> {
    tables.members(unit).map(|it| it.id.0).collect()
}

fn purge(tables: &mut Tables, id: u64) {
    let known = tables.follower(NodeId(id)).unwrap().clone();
    tables.apply(&Update::Purge(known));
}

#[test]
fn the_most_available_followers_are_orchestrators_and_each_unit_has_two_performant_and_two_others()
{
    let tables = tables((0..20).map(|id| (id, 1_000 * id as u32)));
    let units = units(&tables);
    assert_eq!(units.len(), 4);
    for unit in units {
        let ids: Vec<u64> = unit.iter().map(|it| it.id.0).collect();
        let [orchestrator, performant @ .., _, _] = &ids[..] else {
            panic!("{ids:?}");
        };
        assert!((16..20).contains(orchestrator), "{ids:?}");
        assert_eq!(performant.len(), 2);
        assert!(performant.iter().all(|it| (8..16).contains(it)), "{ids:?}");
        assert!(ids[3..].iter().all(|it| *it < 8), "{ids:?}");
    }
}

#[test]
fn a_follower_that_is_little_better_moves_nobody() {
    let mut tables = tables((0..20).map(|id| (id, 1_000 * id as u32)));
    let before = units(&tables);
    // The best performant one would be an orchestrator by half a percent.
    let better = Attachment {
        number: 2,
        ..follower(15, 16_500)
    };
    assert_eq!(tables.apply(&Update::Attach(better)), attached(15));
    tables.apply(&Update::Cluster { after: 1 });
    assert_eq!(units(&tables), before);
    let much_better = Attachment {
        number: 3,
        ..follower(15, 30_000)
    };
    tables.apply(&Update::Attach(much_better));
    tables.apply(&Update::Cluster { after: 2 });
    let unit = tables.unit_of(NodeId(15)).unwrap();
    assert_eq!(
        tables.members(unit).next().map(|it| it.id),
        Some(NodeId(15))
    );
    let moved = units(&tables)
        .concat()
        .iter()
        .zip(before.concat())
        .filter(|(a, b)| **a != *b)
        .count();
    assert_eq!(moved, 2, "the two change their seats");
}

#[test]
fn the_most_available_followers_are_orchestrators_and_the_next_ones_performant() {
    let tables = tables((0..10).map(|id| (id, 1_000 * id as u32)));
    let class = |id| tables.class_of(NodeId(id)).unwrap();
    assert!((8..10).all(|id| class(id) == Class::Orchestrator));
    assert!((4..8).all(|id| class(id) == Class::Performant));
    assert!((0..4).all(|id| class(id) == Class::Low));
}

#[test]
fn an_orchestrator_that_goes_is_followed_by_the_most_available_one_of_its_unit() {
    let mut tables = tables((0..10).map(|id| (id, 1_000 * id as u32)));
    let unit = tables.unit_of(NodeId(9)).unwrap();
    let best = tables.members(unit).skip(1).map(|it| it.id).max();
    tables.apply(&Update::Purge(follower(9, 0)));
    assert_eq!(tables.members(unit).next().map(|it| it.id), best);
    check(&tables);
}

#[test]
fn few_followers_want_no_clustering_for_ever() {
    for count in 1..40 {
        let mut tables = Tables::new(Limits::new());
        for id in 0..count {
            tables.apply(&Update::Attach(follower(id, 1_000)));
        }
        tables.apply(&Update::Cluster { after: 0 });
        assert!(!tables.want_clustering(), "{count}");
        for left in 0..count {
            tables.apply(&Update::Purge(follower(left, 1_000)));
            if tables.want_clustering() {
                let after = tables.clustered();
                tables.apply(&Update::Cluster { after });
                assert!(!tables.want_clustering(), "{count} without {left}");
            }
            check(&tables);
        }
    }
}

#[test]
fn the_first_follower_wants_a_unit() {
    let mut tables = Tables::new(Limits::new());
    assert!(!tables.want_clustering());
    tables.apply(&Update::Attach(follower(1, 1_000)));
    assert!(tables.want_clustering());
    tables.apply(&Update::Cluster { after: 0 });
    assert!(!tables.want_clustering());
}

#[test]
fn a_unit_without_a_performant_follower_is_to_be_formed_anew() {
    let mut tables = alike(10);
    let unit = ids(&tables, 0);
    purge(&mut tables, unit[1]);
    assert!(!tables.want_clustering(), "there is another one");
    purge(&mut tables, unit[2]);
    assert!(tables.want_clustering());
}

#[test]
fn fewer_than_three_followers_for_each_unit_want_fewer_units() {
    let mut tables = alike(20);
    // All four units keep an orchestrator and two performant followers.
    let low: Vec<u64> = (0..4)
        .flat_map(|it| ids(&tables, it)[3..].to_vec())
        .collect();
    for &id in &low {
        purge(&mut tables, id);
    }
    assert!(!tables.want_clustering(), "three for each");
    let performant = ids(&tables, 0)[2];
    purge(&mut tables, performant);
    assert!(tables.want_clustering());
}

#[test]
fn as_many_followers_without_a_seat_as_make_a_unit_want_one() {
    let mut tables = alike(10);
    for id in 10..15 {
        assert!(!tables.want_clustering(), "{id}");
        tables.apply(&Update::Attach(follower(id, 1_000)));
        assert_eq!(tables.unit_of(NodeId(id)), None, "units are full");
    }
    assert!(tables.want_clustering());
}

#[test]
fn a_newcomer_joins_the_smallest_unit_that_has_room() {
    let mut tables = alike(15);
    let ended = [ids(&tables, 1)[4], ids(&tables, 2)[3], ids(&tables, 2)[4]];
    for id in ended {
        purge(&mut tables, id);
    }
    let mut joined = BTreeMap::new();
    for id in 20..24 {
        tables.apply(&Update::Attach(follower(id, 1_000)));
        joined.insert(id, tables.unit_of(NodeId(id)));
    }
    let expected = [(20, Some(2)), (21, Some(1)), (22, Some(2)), (23, None)];
    assert_eq!(joined, BTreeMap::from(expected));
    let sizes: Vec<usize> = units(&tables).iter().map(Vec::len).collect();
    assert_eq!(sizes, [5, 5, 5]);
}

#[test]
fn tasks_go_to_units_with_all_their_performant_followers_before_they_go_to_free_ones() {
    let mut tables = alike(10);
    let (missing, low) = (ids(&tables, 0)[1], ids(&tables, 1)[4]);
    purge(&mut tables, low);
    purge(&mut tables, missing);
    let unit = |tables: &Tables, number| {
        let assignment = tables.assignment(task(number)).unwrap();
        tables.unit_of(assignment.electors[0].id)
    };
    for number in 1..=3 {
        tables.apply(&submit(number, &[number as u8]));
        assert_eq!(unit(&tables, number), Some(1));
    }
    // A follower that comes back fills the quorum: from then on the unit with fewer tasks is the better one.
    tables.apply(&Update::Attach(Attachment {
        number: 2,
        ..follower(missing, 1_000)
    }));
    tables.apply(&Update::Attach(Attachment {
        number: 2,
        ..follower(low, 1_000)
    }));
    tables.apply(&submit(4, b"4"));
    assert_eq!(unit(&tables, 4), Some(0));
}

#[test]
fn an_orchestrator_that_goes_is_followed_and_others_leave_their_place_alone() {
    let mut tables = tables((0..5).map(|id| (id, 1_000 * (id as u32 + 1))));
    assert_eq!(ids(&tables, 0)[0], 4);
    let before = ids(&tables, 0);
    purge(&mut tables, before[1]);
    let rest: Vec<u64> = before
        .iter()
        .copied()
        .filter(|it| *it != before[1])
        .collect();
    assert_eq!(ids(&tables, 0), rest);
    purge(&mut tables, 4);
    assert_eq!(ids(&tables, 0)[0], *rest[1..].iter().max().unwrap());
}

proptest! {
    #[test]
    fn units_are_alike_and_none_is_small(count in 0..200_u64, size in 3..16_u16) {
        let limits = Limits::new().with_unit(size);
        let mut tables = Tables::new(limits);
        for id in 0..count {
            tables.apply(&Update::Attach(follower(id, (id * 7_919 % 100_000) as u32)));
        }
        tables.apply(&Update::Cluster { after: 0 });
        check(&tables);
        let sizes: Vec<usize> = units(&tables).iter().map(Vec::len).collect();
        prop_assert_eq!(sizes.iter().sum::<usize>() as u64, count);
        let [least, most] = [sizes.iter().min(), sizes.iter().max()].map(|it| it.copied().unwrap_or(0));
        prop_assert!(most - least <= 2, "{:?}", sizes);
        prop_assert!(most <= usize::from(size) + 2, "{:?}", sizes);
        prop_assert!(count < 3 || least >= 3, "{:?}", sizes);
        prop_assert!(!tables.want_clustering());
    }
}

/// Gateways of one release and of the next form the same units.
#[test]
fn units_stay_as_they_are() {
    let ids = |tables: &Tables| -> Vec<Vec<u64>> {
        let units = units(tables).into_iter();
        units
            .map(|it| it.iter().map(|it| it.id.0).collect())
            .collect()
    };
    assert_eq!(tables([]).units(), 0);
    // The first ones are the most available.
    let all = (1..=12).map(|id| (id, 50_000 - 1_000 * id as u32));
    assert_eq!(
        ids(&tables(all)),
        [vec![1, 4, 9, 10], vec![2, 5, 8, 11], vec![3, 6, 7, 12]]
    );
}
