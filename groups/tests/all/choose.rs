//! Properties of every policy.

use proptest::prelude::*;
use selvedge_core::{NodeId, Sha256Sortition, SipSortition};
use selvedge_groups::{
    Chooser, GroupId, Leader, Locality, Node, Place, Policy, Selection, Target, Unplaceable,
};

use crate::{UNIFORM, chooser, grid, ids, nodes, target};

const NEAR: Policy = Policy::Near(Locality {
    functions: 2,
    tables: 2,
    width: 4,
});

/// Nodes of two versions must agree. Computed apart, with SHA-256 of another library.
#[test]
fn groups_are_these() {
    let nodes = nodes(&grid(20, 1));
    let place = Place([1, 1, 1]);
    let uniform = chooser(UNIFORM, 3, &nodes);
    assert_eq!(
        uniform.choose(target(9, place)).unwrap(),
        ids(&[7, 8, 14, 11, 9])
    );
    let near = chooser(Selection::new().with_policy(NEAR), 3, &nodes);
    assert_eq!(
        near.choose(target(9, place)).unwrap(),
        ids(&[14, 11, 17, 7, 8])
    );
    let nearest = Selection::new()
        .with_policy(NEAR)
        .with_leader(Leader::Nearest);
    let nearest = chooser(nearest, 3, &nodes);
    assert_eq!(
        nearest.choose(target(9, place)).unwrap(),
        ids(&[14, 11, 17, 8, 7])
    );
    let devices = nodes.iter().take(5).map(|it| (it.id, it.place.unwrap()));
    let drawn = [8, 9, 10].map(|group| {
        let drawn = near.representative(GroupId(group), devices.clone());
        drawn.map(|it| it.0)
    });
    assert_eq!(drawn, [3, 2, 1].map(|id| Some(NodeId(id))));
    assert_eq!(near.representative(GroupId(9), []), None);
}

#[test]
fn other_epochs_targets_and_hashes_give_other_groups() {
    let nodes = nodes(&grid(100, 1));
    let place = Place([1, 1, 1]);
    for policy in [Policy::Uniform, NEAR] {
        let config = Selection::new().with_policy(policy);
        let group = chooser(config, 1, &nodes).choose(target(1, place)).unwrap();
        let epoch = chooser(config, 2, &nodes).choose(target(1, place)).unwrap();
        let other = chooser(config, 1, &nodes).choose(target(2, place)).unwrap();
        let sip = SipSortition::new([1; 16]);
        let sip = Chooser::new(config, &sip, 1, nodes.iter().copied()).unwrap();
        let keyed = sip.choose(target(1, place)).unwrap();
        assert!(
            group != epoch && group != other && group != keyed,
            "{policy:?}"
        );
    }
}

#[test]
fn a_target_without_a_group_says_why() {
    let few = nodes(&grid(4, 1));
    let uniform = chooser(UNIFORM, 1, &few);
    let refused = uniform.choose(target(1, Place::default())).unwrap_err();
    assert_eq!(
        refused,
        Unplaceable::TooFewNodes {
            found: 4,
            needed: 5
        }
    );
}

#[test]
fn a_target_without_a_place_gets_members_by_hash() {
    let nodes = nodes(&grid(30, 1));
    let near = chooser(Selection::new().with_policy(NEAR), 1, &nodes);
    let uniform = chooser(UNIFORM, 1, &nodes);
    for id in 0..20 {
        let nowhere = Target {
            place: None,
            ..target(id, Place::default())
        };
        assert_eq!(near.choose(nowhere), uniform.choose(nowhere));
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let with = |functions, tables, width| {
        Selection::new().with_policy(Policy::Near(Locality {
            functions,
            tables,
            width,
        }))
    };
    for good in [
        Selection::new().with_failures(0),
        Selection::new().with_failures(15),
        with(1, 1, 1),
        with(16, 16, u32::MAX),
    ] {
        assert!(good.check().is_ok(), "{good:?}");
    }
    for bad in [
        Selection::new().with_failures(16),
        with(0, 1, 1),
        with(17, 1, 1),
        with(1, 0, 1),
        with(1, 17, 1),
        with(1, 1, 0),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
        assert!(Chooser::new(bad, &Sha256Sortition, 1, []).is_err());
    }
}

#[test]
fn of_two_nodes_with_one_id_the_last_counts() {
    let place = Place([0; 3]);
    let mut twice = nodes(&grid(30, 1));
    twice.insert(0, Node::new(5, Place([1_000_000; 3])));
    let near = Selection::new().with_policy(NEAR);
    let once = chooser(near, 1, &twice[1..]);
    for id in 0..50 {
        let group = once.choose(target(id, place)).unwrap();
        assert_eq!(
            chooser(near, 1, &twice).choose(target(id, place)).unwrap(),
            group
        );
    }
}

fn places() -> impl Strategy<Value = Vec<Option<Place>>> {
    let at = prop_oneof![3 => -20..20_i32, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    let place = prop::array::uniform3(at).prop_map(Place);
    prop::collection::vec(prop::option::weighted(0.9, place), 0..40)
}

fn configs() -> impl Strategy<Value = Selection> {
    let locality =
        (1..=3_u8, 1..=3_u8, 1..=20_u32).prop_map(|(functions, tables, width)| Locality {
            functions,
            tables,
            width,
        });
    let policy = prop_oneof![
        Just(Policy::ByPlaces),
        Just(Policy::Uniform),
        locality.prop_map(Policy::Near),
    ];
    let leader = prop_oneof![Just(Leader::LowestHash), Just(Leader::Nearest)];
    (0..4_u8, policy, leader).prop_map(|(failures, policy, leader)| {
        Selection::new()
            .with_failures(failures)
            .with_policy(policy)
            .with_leader(leader)
    })
}

proptest! {
    #[test]
    fn a_group_has_its_members_whatever_the_order_of_the_list(
        config in configs(),
        places in places(),
        neighbours in prop::collection::vec(prop::array::uniform3(-20..20_i32).prop_map(Place), 0..3),
        epoch in any::<u64>(),
        id in any::<u64>(),
    ) {
        let nodes: Vec<Node> = (1..).zip(&places)
            .map(|(id, &place)| Node { place, ..Node::new(id, Place::default()) })
            .collect();
        let target = Target { neighbours: &neighbours, ..target(id, Place([3, 2, 1])) };
        let group = chooser(config, epoch, &nodes).choose(target);
        let reversed: Vec<Node> = nodes.iter().rev().copied().collect();
        prop_assert_eq!(&group, &chooser(config, epoch, &reversed).choose(target));
        let Ok(group) = group else {
            prop_assert!(nodes.len() < config.members());
            return Ok(());
        };
        prop_assert_eq!(group.len(), config.members());
        let mut distinct = group.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), group.len());
        prop_assert!(group.iter().all(|id| nodes.iter().any(|it| it.id == *id)));
    }
}
