//! Cuts of the network between two sides of nodes.

use std::collections::BTreeSet;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;

use super::{Act, SECOND, Story};
use crate::world::MS;

impl Story {
    fn sides(&mut self, side: &[NodeId]) -> BTreeSet<(NodeId, NodeId)> {
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let is_one_way = self.dice().percent(15);
        let mut pairs = BTreeSet::new();
        for one in &ids {
            for other in &ids {
                if side.contains(one) && !side.contains(other) {
                    pairs.insert((*one, *other));
                    if !is_one_way {
                        pairs.insert((*other, *one));
                    }
                }
            }
        }
        pairs
    }

    pub(super) fn cut(&mut self) {
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let side: Vec<NodeId> = ids
            .into_iter()
            .filter(|_| self.world.dice.percent(40))
            .collect();
        let pairs = self.sides(&side);
        let time = self.dice().range(500 * MS, 12 * SECOND);
        self.world.cut(pairs, time);
    }

    /// A leader and a follower are cut off while others change the site.
    pub(super) fn exile(&mut self, changes: usize) {
        let led: Vec<(NodeId, GroupId)> = self
            .world
            .alive()
            .into_iter()
            .flat_map(|it| {
                let machine = self.world.machine(it).unwrap();
                machine.leads().map(|group| (it, group)).collect::<Vec<_>>()
            })
            .collect();
        let Some((leader, group)) = self.dice().pick(&led) else {
            return;
        };
        let members = self
            .world
            .oracle
            .latest
            .get(&group)
            .map(|it| it.members.clone());
        let mut side = vec![leader];
        let others: Vec<NodeId> = members
            .unwrap_or_default()
            .iter()
            .map(|it| it.id)
            .filter(|it| *it != leader)
            .collect();
        side.extend(self.dice().pick(&others));
        let rest: Vec<NodeId> = self
            .world
            .alive()
            .into_iter()
            .filter(|it| !side.contains(it))
            .collect();
        let pairs = self.sides(&side);
        let time = self.dice().range(4 * SECOND, 15 * SECOND);
        self.world.cut(pairs, time);
        for change in 0..changes {
            let after = time * (change as u64) / (changes as u64) + self.dice().below(SECOND);
            let _ = rest;
            let at = self.world.now + after;
            self.later(at, Act::Propose(3));
        }
    }
}
