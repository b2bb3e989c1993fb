//! Membership's reports, late and in part false until calm.

use selvedge_core::{Delta, Member, NodeId};

use super::{Ev, MS, World};
use crate::story::Break;

impl World {
    pub(super) fn report(&mut self, node: NodeId, life: u32, delta: Delta, within: u64) {
        let after = self.dice.below(within);
        self.after(after, Ev::Member { node, life, delta });
    }

    /// Membership reports a node as failed, to all nodes that can hear of it.
    pub(crate) fn suspect(&mut self, node: NodeId, life: u32) {
        let subject = Member::new(node.0, life);
        for other in self.alive() {
            if other != node && !self.dice.percent(10) {
                let their_life = self.nodes[&other].life;
                let within = self.faults.detection;
                self.report(other, their_life, Delta::Failed(subject), within);
            }
        }
    }

    pub(crate) fn refute(&mut self, about: NodeId, to: NodeId) {
        let (Some(a), Some(b)) = (self.nodes.get(&about), self.nodes.get(&to)) else {
            return;
        };
        let (subject, life) = (Member::new(about.0, a.life), b.life);
        let delta = match a.driver.is_some() {
            true => Delta::Refuted(subject),
            false => Delta::Failed(subject),
        };
        self.report(to, life, delta, 500 * MS);
    }

    /// Ends all faults: what runs reaches all others, and lists become exact.
    pub(crate) fn calm(&mut self) {
        self.blocked.clear();
        if self.broken == Some(Break::Cut) {
            let others = self.nodes.keys().copied().filter(|it| it.0 != 1);
            self.blocked = others
                .flat_map(|it| [(it, NodeId(1)), (NodeId(1), it)])
                .collect();
        }
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for about in &ids {
            for to in ids.iter().filter(|it| *it != about) {
                if !self.nodes[about].has_begun || self.nodes[to].driver.is_none() {
                    continue;
                }
                let life = self.nodes[to].life;
                if self.nodes[about].driver.is_some() {
                    let subject = Member::new(about.0, self.nodes[about].life);
                    self.report(*to, life, Delta::Joined(subject), 200 * MS);
                }
                self.refute(*about, *to);
            }
        }
    }
}
