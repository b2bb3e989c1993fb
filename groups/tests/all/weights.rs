//! Nodes that differ in weight.

use std::collections::BTreeMap;

use selvedge_core::NodeId;
use selvedge_groups::{Leader, Node, Place, Selection, Weight};

use crate::{UNIFORM, chooser, grid, nodes, target};

/// The number of groups of the nodes of each weight, and the number that they lead.
fn shares(config: Selection, nodes: &[Node], groups: u64) -> BTreeMap<u8, [f64; 2]> {
    let weights: BTreeMap<NodeId, u8> = nodes.iter().map(|it| (it.id, it.weight.0)).collect();
    let mut shares: BTreeMap<u8, [f64; 2]> = BTreeMap::new();
    for epoch in 0..groups / 100 {
        let chooser = chooser(config, epoch, nodes);
        for id in 0..100 {
            let centre = nodes[(100 * epoch + id) as usize * 7 % nodes.len()];
            let group = chooser.choose(target(id, centre.place.unwrap()));
            for (nth, member) in group.unwrap().into_iter().enumerate() {
                let [all, led] = shares.entry(weights[&member]).or_default();
                *all += 1.0;
                *led += f64::from(nth == 0);
            }
        }
    }
    shares
}

fn weighted(count: usize, weights: &[u8]) -> Vec<Node> {
    let nodes = nodes(&grid(count, 1))
        .into_iter()
        .zip(weights.iter().cycle());
    nodes
        .map(|(node, &weight)| node.with_weight(Weight(weight)))
        .collect()
}

/// 30 nodes of each weight. Of 20,000 groups those of weight 8 lead one of seven: 2,857 with a
/// deviation of 49. A node of weight 32 is in a fifteenth of the groups, and can be there once: it
/// gets a little less than its share.
#[test]
fn a_node_is_in_groups_and_leads_in_proportion_to_its_weight() {
    let nodes = weighted(90, &[8, 16, 32]);
    let shares = shares(UNIFORM, &nodes, 20_000);
    for (weight, [all, led]) in shares {
        let share = f64::from(weight) / 56.0;
        let (all, led) = (all / 100_000.0 / share, led / 20_000.0 / share);
        println!("weight {weight}: {all:.3} of its share as member, {led:.3} as leader");
        assert!((all - 1.0).abs() < 0.05, "{weight}: {all}");
        assert!((led - 1.0).abs() < 0.06, "{weight}: {led}");
    }
}

/// The near members are three of the nearest nodes that together weigh as much as three of 32: one
/// of 16 is a member of half the groups around it, or of more where all of these are needed.
#[test]
fn near_nodes_of_more_weight_are_in_more_groups_and_lead_more() {
    let nodes = weighted(343, &[16, 32, 16]);
    let shares = shares(Selection::new(), &nodes, 20_000);
    let [one, two] = [16, 32].map(|it| shares[&it]);
    // There are twice as many nodes of weight 16.
    let [all, led] = [0, 1].map(|at| 2.0 * two[at] / one[at]);
    println!("a node of twice the weight: {all:.2} times the groups, {led:.2} times as leader");
    assert!((1.65..1.85).contains(&all), "{all}");
    assert!((1.9..2.1).contains(&led), "{led}");
}

#[test]
fn equal_weights_choose_the_same_groups_as_no_weights() {
    for config in [
        UNIFORM,
        Selection::new(),
        Selection::new().with_leader(Leader::Nearest),
    ] {
        let all = [0, 1, 16, 255].map(|weight| {
            let nodes = weighted(100, &[weight]);
            let chooser = chooser(config, 3, &nodes);
            let groups = (0..200).map(|id| chooser.choose(target(id, Place([1, 2, 3]))).unwrap());
            groups.collect::<Vec<_>>()
        });
        assert!(all.iter().all(|it| *it == all[0]), "{config:?}");
    }
    // One more node, which is never chosen, makes the others' weights count: the order stays.
    for weight in [1, 16, 255] {
        let nodes = weighted(100, &[weight]);
        let mut more = nodes.clone();
        more.push(Node::new(101, Place([1, 2, 3])).with_weight(Weight(0)));
        for id in 0..200 {
            for config in [UNIFORM, Selection::new()] {
                let group = |nodes| chooser(config, 3, nodes).choose(target(id, Place([1, 2, 3])));
                assert_eq!(group(&nodes), group(&more));
            }
        }
    }
}

#[test]
fn a_node_without_weight_is_a_member_where_too_few_others_are_here_and_leads_last() {
    let place = Place([1, 1, 1]);
    for config in [
        UNIFORM,
        Selection::new(),
        Selection::new().with_leader(Leader::Nearest),
    ] {
        let spared = |count: usize| {
            let mut nodes = weighted(count, &[16]);
            nodes[0].weight = Weight(0);
            let chooser = chooser(config, 1, &nodes);
            let groups = (0..100).map(move |id| chooser.choose(target(id, place)).unwrap());
            groups
                .filter(|it| it.contains(&NodeId(1)))
                .collect::<Vec<_>>()
        };
        assert_eq!(spared(6), Vec::<Vec<NodeId>>::new());
        let needed = spared(5);
        assert_eq!(needed.len(), 100);
        assert!(needed.iter().all(|it| it.last() == Some(&NodeId(1))));
    }
}
