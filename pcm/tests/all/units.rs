//! When units are to be formed anew, which of them gets a task, and who joins them.

use std::collections::BTreeMap;

use selvedge_core::NodeId;
use selvedge_pcm::{Attachment, Limits, Tables, Update};
use selvedge_replica::State as _;

use super::tables::{follower, submit, tables, task, units};

/// So many followers that are alike, in units of five.
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
    let gone = [ids(&tables, 1)[4], ids(&tables, 2)[3], ids(&tables, 2)[4]];
    for id in gone {
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
    let (lacking, low) = (ids(&tables, 0)[1], ids(&tables, 1)[4]);
    purge(&mut tables, low);
    purge(&mut tables, lacking);
    let unit = |tables: &Tables, number| {
        let assignment = tables.assignment(task(number)).unwrap();
        tables.unit_of(assignment.electors[0].id)
    };
    for number in 1..=3 {
        tables.apply(&submit(number, &[number as u8]));
        assert_eq!(unit(&tables, number), Some(1));
    }
    // One that comes back fills the quorum: from then on the unit with fewer tasks is the better one.
    tables.apply(&Update::Attach(Attachment {
        number: 2,
        ..follower(lacking, 1_000)
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
