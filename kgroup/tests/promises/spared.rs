//! Nodes that ask the others to spare them, and take their share again.

use selvedge_groups::Weight;
use selvedge_kgroup::Command;

use crate::world::World;

impl World {
    /// A node runs low, or does not any more.
    pub(crate) fn asks_to_be_spared(&mut self, id: u64) {
        if !self.is_awake(id) {
            return;
        }
        let life = self.life(id);
        life.is_spared = !life.is_spared;
        let is_spared = life.is_spared;
        self.spared += 1;
        self.command(id, Command::SetSpared(is_spared));
    }

    /// Faults are over, and an epoch has begun: where enough other nodes are here, no spared one is in a
    /// group.
    pub(crate) fn spared_nodes_are_in_no_group(&self) {
        let is_spared = |id: u64| {
            let host = self.nodes[&id].host.as_ref();
            host.is_some_and(|it| it.own.is_spared)
        };
        let others = self.site.nodes().iter().filter(|it| {
            it.weight > Weight(0) && self.me(it.id.0).is_some() && !is_spared(it.id.0)
        });
        if others.count() <= 2 * usize::from(self.failures()) {
            return;
        }
        for group in self.groups() {
            let leader = self.leaders(group)[0];
            let replica = self.machine(leader).unwrap().groups().replica(group);
            let members = replica.unwrap().configuration().members();
            let spared: Vec<u64> = (members.map(|it| it.member.id.0))
                .filter(|it| is_spared(*it))
                .collect();
            assert!(spared.is_empty(), "{spared:?} are in {group:?}");
        }
    }
}
