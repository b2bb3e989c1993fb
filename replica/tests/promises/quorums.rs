//! The assumption that enough members keep their memory.

use selvedge_core::Member;

use selvedge_sim::histories::Node;

use crate::world::World;

/// Returns true if a node's memory, as it is or would be, holds all votes under this name.
fn answers_to(node: &Node<World>, named: Member) -> bool {
    let life = named.incarnation.0;
    named.id.0 == node.id
        && match life {
            0 => node.born == node.begins,
            _ => (node.born..=node.life).contains(&life),
        }
}

impl World {
    /// Returns true if a node, as a configuration names it, has its memory or would have it.
    pub(crate) fn keeps(&self, voter: Member, without: Option<u64>, up: bool) -> bool {
        let node = &self.nodes[&voter.id.0];
        let named = answers_to(node, voter) && !node.never;
        named && (node.stores || without != Some(node.id)) && (!up || node.host.is_some())
    }

    /// Returns true if each configuration that may count has a quorum that keeps its memory.
    pub(crate) fn keeps_quorums(&self, without: Option<u64>, up: bool) -> bool {
        let active = self.active();
        self.configurations
            .range(active..)
            .flat_map(|it| it.1)
            .all(|it| {
                let enough = |voters: &[selvedge_replica::Voter]| {
                    let keep = voters
                        .iter()
                        .filter(|voter| self.keeps(voter.member, without, up))
                        .count();
                    let least = match it.quorum {
                        selvedge_replica::QuorumRule::AtLeast(least) => usize::from(least),
                        selvedge_replica::QuorumRule::Majority => voters.len() / 2 + 1,
                    };
                    voters.is_empty() || keep >= least
                };
                // An entry that only a witness and one more member accepted is lost with that
                // member.
                let witness = it.members().any(|it| it.is_witness);
                let lost = it
                    .members()
                    .any(|it| !self.keeps(it.member, without, up) && !it.is_witness);
                enough(&it.voters) && enough(&it.also) && !(witness && lost)
            })
    }

    /// Returns true if a quorum of the newest configuration is up and votes, and a member of it can
    /// lead. Until then members of former configurations invite it.
    pub(crate) fn newest_can_decide(&self) -> bool {
        let machines = || self.nodes.keys().filter_map(|&id| self.machine(id));
        let newest = machines().max_by_key(|it| it.configuration().number);
        newest.is_some_and(|newest| {
            let number = newest.configuration().number;
            let may_lead = |it: &crate::world::Machine| {
                it.configuration().number == number && it.votes() && it.state().is_some()
            };
            machines().any(may_lead)
                && newest.could_decide(|id| {
                    let machine = self.nodes.get(&id.0).and_then(|_| self.machine(id.0));
                    machine.is_some_and(|it| it.votes() && it.configuration().number == number)
                })
        })
    }

    /// The latest configuration of which a quorum has installed the state: all earlier ones have
    /// ended.
    pub(crate) fn active(&self) -> u64 {
        let mut active = 1;
        for (&number, all) in &self.configurations {
            let installed = all.iter().any(|it| {
                let there = |voters: &[selvedge_replica::Voter]| {
                    let have = voters.iter().filter(|voter| {
                        let host = self.nodes[&voter.member.id.0].host.as_ref();
                        host.is_some_and(|host| {
                            let machine = host.driver.machine();
                            machine.configuration().number >= number && machine.votes()
                        })
                    });
                    have.count() == voters.len()
                };
                there(&it.voters) && there(&it.also)
            });
            if installed {
                active = number;
            }
        }
        active
    }
}
