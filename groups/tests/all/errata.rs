//! Cases in which the paper's rule breaks a promise, and this crate's keeps it.

use std::collections::BTreeMap;

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::{Chooser, Locality, Node, Place, Policy, Selection};

use crate::{grid, nodes, target};

const NEAR: Selection = Selection::new().with_policy(Policy::Near(Locality::for_spacing(1)));
const GROUPS: usize = 12;

/// A node that chooses groups, epoch after epoch.
struct Observer {
    is_published: bool,
    /// The mean place of the devices that each node looked after in the last epoch.
    history: BTreeMap<NodeId, Place>,
}

impl Observer {
    const fn new(is_published: bool) -> Self {
        Self {
            is_published,
            history: BTreeMap::new(),
        }
    }

    fn groups(&mut self, epoch: u64, nodes: &[Node]) -> Vec<Vec<NodeId>> {
        let before = |it: &Node| {
            let own = it.place.unwrap();
            (*it, self.history.get(&it.id).copied().unwrap_or(own))
        };
        let chooser = match self.is_published {
            true => Chooser::published(NEAR, &Sha256Sortition, epoch, nodes.iter().map(before)),
            false => Chooser::new(NEAR, &Sha256Sortition, epoch, nodes.iter().copied()),
        };
        let chooser = chooser.unwrap();
        let mut sums: BTreeMap<NodeId, ([i32; 3], i32)> = BTreeMap::new();
        let mut groups = Vec::new();
        for at in 0..GROUPS {
            let place = nodes[at * 8].place.unwrap();
            let group = chooser.choose(target(at as u64, place)).unwrap();
            for &member in &group {
                let (sum, count) = sums.entry(member).or_default();
                for (sum, at) in sum.iter_mut().zip(place.0) {
                    *sum += at;
                }
                *count += 1;
            }
            groups.push(group);
        }
        self.history = sums
            .into_iter()
            .map(|(id, (sum, count))| (id, Place(sum.map(|it| it / count))))
            .collect();
        groups
    }
}

/// The most groups that differ in one of the epochs after the one in which one of two observers
/// does not see one node.
fn differ(is_published: bool) -> usize {
    let all = nodes(&grid(100, 1));
    let (mut one, mut other) = (Observer::new(is_published), Observer::new(is_published));
    // Only one observer sees it: it is in a group.
    let first = one.groups(1, &all);
    let unseen = first[0][0];
    let without: Vec<Node> = all.iter().filter(|it| it.id != unseen).copied().collect();
    assert_ne!(first[0], other.groups(1, &without)[0]);
    let later = (2..12).map(|epoch| {
        let pairs = one
            .groups(epoch, &all)
            .into_iter()
            .zip(other.groups(epoch, &all));
        pairs.filter(|(one, other)| one != other).count()
    });
    later.max().unwrap()
}

#[test]
fn g10_history_keeps_nodes_apart_that_differed_once() {
    let published = differ(true);
    assert!(published > 0, "{published}: the published rule must break");
    assert_eq!(differ(false), 0, "ours agrees again at once");
}
