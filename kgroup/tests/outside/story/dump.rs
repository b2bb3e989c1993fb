//! A print of what each node holds.

use selvedge_core::Member;
use selvedge_groups::GroupId;
use selvedge_kgroup::GroupState;

use super::{Story, maps, outline};

impl Story {
    /// Prints what each node holds.
    pub(super) fn dump(&self) {
        for node in self.world.nodes.keys() {
            let Some(machine) = self.world.machine(*node) else {
                eprintln!("{node}: stopped");
                continue;
            };
            let groups = machine.groups();
            let (me, generation, has) = (machine.me(), groups.generation(), groups.has_site());
            eprintln!("{me}: site {generation} {has}, epoch {}", groups.epoch());
            for group in groups.groups() {
                let Some(it) = groups.replica(group) else {
                    continue;
                };
                let members: Vec<Member> =
                    it.configuration().members().map(|it| it.member).collect();
                eprintln!(
                    "  {group:?}: configuration {} {members:?}, version {}, {}{}{}leader {:?}",
                    it.configuration().number,
                    it.version(),
                    if it.votes() { "votes, " } else { "" },
                    if it.leads() { "leads, " } else { "" },
                    if it.state().is_some() { "state, " } else { "" },
                    it.leader(),
                );
            }
        }
        let Some(site) = self.latest() else {
            return;
        };
        eprintln!("{}", outline(&site));
        let registry = self.world.oracle.latest.get(&GroupId::REGISTRY);
        if let Some(GroupState::Registry(registry)) = registry.map(|it| &it.state) {
            for group in site.groups().chain(maps()) {
                eprintln!("  {group:?} began as {:?}", registry.birth(group));
            }
        }
    }
}
