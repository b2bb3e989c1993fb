//! Groups by hash alone.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::NodeId;
use selvedge_groups::{Node, Place};

use crate::{UNIFORM, chooser, grid, nodes, target};

fn group(nodes: &[Node], epoch: u64, id: u64) -> BTreeSet<NodeId> {
    let chooser = chooser(UNIFORM, epoch, nodes);
    chooser
        .choose(target(id, Place::default()))
        .unwrap()
        .into_iter()
        .collect()
}

#[test]
fn a_node_that_leaves_changes_one_member_of_the_groups_that_it_was_in() {
    let all = nodes(&grid(40, 1));
    let ended = all[17].id;
    let left: Vec<Node> = all.iter().filter(|it| it.id != ended).copied().collect();
    let mut was_in = 0;
    for id in 0..200 {
        let (before, after) = (group(&all, 1, id), group(&left, 1, id));
        if before.contains(&ended) {
            was_in += 1;
            assert_eq!(before.difference(&after).collect::<Vec<_>>(), [&ended]);
        } else {
            assert_eq!(before, after);
        }
    }
    assert!(was_in > 10, "{was_in}");
}

/// 100 nodes, 5 of them in each of 2,000 groups: 100 groups a node. The number of groups of a node
/// is binomial with a deviation of 9.7, and the leader's with 4.4.
#[test]
fn load_is_spread_over_nodes_by_targets_and_by_epochs() {
    let nodes = nodes(&grid(100, 1));
    let by_targets = (0..2_000).map(|id| (1, id));
    let by_epochs = (0..2_000).map(|epoch| (epoch, 1));
    for draws in [by_targets.collect::<Vec<_>>(), by_epochs.collect()] {
        let (mut load, mut leads) = (BTreeMap::new(), BTreeMap::new());
        for (epoch, id) in draws {
            let chooser = chooser(UNIFORM, epoch, &nodes);
            let group = chooser.choose(target(id, Place::default())).unwrap();
            *leads.entry(group[0]).or_insert(0) += 1;
            for member in group {
                *load.entry(member).or_insert(0) += 1;
            }
        }
        assert_eq!(load.len(), 100);
        let square: f64 = load
            .values()
            .map(|it| (f64::from(*it) - 100.0).powi(2))
            .sum();
        let deviation = (square / 100.0).sqrt();
        assert!((7.5..12.5).contains(&deviation), "{deviation}");
        assert!(leads.values().all(|it| (3..=45).contains(it)), "{leads:?}");
    }
}

/// Two groups of 5 of 100 share 0.25 members on average if they are drawn independently.
#[test]
fn groups_of_two_targets_or_two_epochs_share_no_more_than_chance() {
    let nodes = nodes(&grid(100, 1));
    let shared = |one: (u64, u64), other: (u64, u64)| {
        let one = group(&nodes, one.0, one.1);
        one.intersection(&group(&nodes, other.0, other.1)).count()
    };
    let targets: usize = (0..1_000).map(|id| shared((1, id), (1, id + 1))).sum();
    let epochs: usize = (0..1_000)
        .map(|epoch| shared((epoch, 1), (epoch + 1, 1)))
        .sum();
    assert!((190..310).contains(&targets), "{targets}");
    assert!((190..310).contains(&epochs), "{epochs}");
}
