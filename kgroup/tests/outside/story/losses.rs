//! Nodes that forget, and groups that begin anew.

use std::collections::BTreeSet;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_groups::registry::Birth;
use selvedge_kgroup::{Command, GroupState};

use super::{Act, Disks, SECOND, Story, maps};
use crate::world::Ev;

impl Story {
    /// Returns true if these nodes may stop: without what they forget, a quorum of the latest configuration
    /// of each of their groups still runs, with the state.
    pub(super) fn may_stop(&self, nodes: &[NodeId]) -> bool {
        let forgetful: Vec<NodeId> = nodes
            .iter()
            .copied()
            .filter(|it| !self.world.nodes[it].has_disk)
            .collect();
        // The registry names no node again before it is first needed.
        let has_registry = self.world.oracle.latest.contains_key(&GroupId::REGISTRY);
        let alive = self.world.alive();
        let replicas: Vec<_> = alive
            .iter()
            .filter_map(|it| Some((*it, self.world.machine(*it)?.groups())))
            .flat_map(|(node, it)| {
                it.groups()
                    .filter_map(move |id| Some((node, id, it.replica(id)?)))
            })
            .collect();
        let is_changing = |group: GroupId| {
            let mut groups = alive
                .iter()
                .filter_map(|it| Some(self.world.machine(*it)?.groups()));
            groups.any(|it| it.is_changing(group))
        };
        let is_unborn = self
            .unborn()
            .any(|it| it.founders.iter().any(|it| forgetful.contains(&it.id)));
        // A configuration under way may name a node in a life that has ended.
        let is_whole = self.world.nodes.values().all(|it| {
            let is_first = it.life % 1_000 == 0 && it.driver.is_some();
            it.has_disk || is_first || !it.has_begun
        });
        let is_one = self.setting.failures > 0 && nodes.len() == 1;
        forgetful.is_empty()
            || has_registry
                && !is_unborn
                && self
                    .world
                    .oracle
                    .named
                    .iter()
                    .all(|(group, (number, members))| {
                        let mine = replicas.iter().filter(|it| it.1 == *group);
                        let concerns = mine.clone().any(|it| forgetful.contains(&it.0))
                            || members.iter().any(|it| forgetful.contains(it));
                        let rest = mine.filter(|(node, _, it)| {
                            !forgetful.contains(node)
                                && it.configuration().number == *number
                                && it.votes()
                                && it.state().is_some()
                        });
                        // A node that has just been named counts as a member.
                        let (rest, members) = (rest.count(), members.len());
                        match is_changing(*group) {
                            true => is_one && is_whole && rest + 1 >= members,
                            false => !concerns || 2 * rest > members,
                        }
                    })
    }

    /// The beginnings of groups that no node is known to have begun.
    fn unborn(&self) -> impl Iterator<Item = &Birth> {
        let latest = self.world.oracle.latest.get(&GroupId::REGISTRY);
        let registry = latest.and_then(|it| match &it.state {
            GroupState::Registry(registry) => Some(registry),
            _ => None,
        });
        let births = registry.into_iter().flat_map(|it| it.births());
        births
            .filter(|it| !self.world.oracle.named.contains_key(&it.0))
            .map(|it| it.1)
    }

    /// Up to f nodes without disks stop at once, and begin again without memory.
    pub(super) fn forget(&mut self) {
        let forgetful: Vec<NodeId> = self
            .world
            .alive()
            .into_iter()
            .filter(|it| !self.world.nodes[it].has_disk)
            .collect();
        let mut chosen = Vec::new();
        for _ in 0..self.setting.failures.max(1) {
            chosen.extend(
                self.dice()
                    .pick(&forgetful)
                    .filter(|it| !chosen.contains(it)),
            );
        }
        if !chosen.is_empty() && self.may_stop(&chosen) {
            for node in chosen {
                self.crash(node);
            }
        }
    }

    /// More nodes lose their disks than some groups survive; the registry survives.
    pub(super) fn lose(&mut self) {
        let site = self.latest();
        if self.setting.disks != Disks::All || self.has_lost || site.is_none() {
            return;
        }
        let registry = self
            .world
            .oracle
            .latest
            .get(&GroupId::REGISTRY)
            .map(|it| it.members.clone());
        let Some(registry) = registry else {
            return;
        };
        let most = (registry.len() - 1) / 2;
        let count = (usize::from(self.setting.failures) + 1).min(most);
        let mut lost: Vec<NodeId> = Vec::new();
        let ids: Vec<NodeId> = registry.iter().map(|it| it.id).collect();
        while lost.len() < count {
            let id = self.dice().pick(&ids).unwrap();
            if !lost.contains(&id) {
                lost.push(id);
            }
        }
        // A change of the registry's members that is under way could need them.
        let is_quiet = self.world.alive().into_iter().all(|it| {
            let groups = self.world.machine(it).unwrap().groups();
            let registry = groups.replica(GroupId::REGISTRY);
            !groups.is_changing(GroupId::REGISTRY)
                && registry.is_none_or(|it| {
                    it.configuration()
                        .members()
                        .map(|it| it.member.id)
                        .eq(ids.iter().copied())
                })
        });
        if !is_quiet {
            return;
        }
        self.has_lost = true;
        self.world.note(|| format!("-- lost for good: {lost:?}"));
        for node in &lost {
            self.world.stop(*node);
            let found = self.world.nodes.get_mut(node).unwrap();
            found.disk.clear();
            found.has_lost = true;
            let after = self.dice().range(SECOND, 8 * SECOND);
            self.world.after(
                after,
                Ev::Start {
                    node: *node,
                    file: None,
                },
            );
        }
        let at = self.world.now + 4 * self.setting.act_timeout + self.dice().below(5 * SECOND);
        self.later(at, Act::Anew(self.groups_of(&lost)));
    }

    /// The groups that cannot go on without these nodes, in a configuration that any node knows.
    fn groups_of(&self, lost: &[NodeId]) -> Vec<GroupId> {
        let mut found = BTreeSet::new();
        for (group, latest) in &self.world.oracle.latest {
            let gone = latest
                .members
                .iter()
                .filter(|it| lost.contains(&it.id))
                .count();
            if 2 * gone >= latest.members.len() && *group != GroupId::REGISTRY {
                found.insert(*group);
            }
        }
        found.into_iter().collect()
    }

    pub(super) fn anew(&mut self, groups: &[GroupId]) {
        for group in groups {
            let times = self.dice().range(1, 2);
            for _ in 0..times {
                let Some(node) = self.some_node() else {
                    return;
                };
                let refused = self.world.command(node, Command::BeginAnew(*group));
                self.world
                    .note(|| format!("{node}: begin {group:?} anew: {refused:?}"));
                if refused.is_none() {
                    self.world.oracle.begins_anew(*group);
                }
            }
        }
    }

    /// A group that lost its memory, and that no one had begin anew, does now.
    pub(super) fn anew_where_lost(&mut self) {
        let Some(site) = self.latest().filter(|_| self.has_lost) else {
            return;
        };
        let all = site.groups().chain(maps());
        let known = all.filter(|it| self.world.oracle.latest.contains_key(it));
        let lost: Vec<GroupId> = known.filter(|it| !self.has_leader(*it)).collect();
        self.anew(&lost);
    }

    fn has_leader(&self, group: GroupId) -> bool {
        let mut alive = self.world.alive().into_iter();
        alive.any(|it| self.world.machine(it).unwrap().groups().leads(group))
    }

    /// A group must begin anew if its founders failed before they could begin it.
    pub(super) fn anew_where_unborn(&mut self) {
        let registry = self.world.oracle.latest.get(&GroupId::REGISTRY);
        let Some(GroupState::Registry(registry)) = registry.map(|it| &it.state) else {
            return;
        };
        let Some(site) = self.latest() else {
            return;
        };
        let unborn = site.groups().chain(maps()).filter(|group| {
            let birth = registry
                .birth(*group)
                .filter(|_| !self.world.oracle.latest.contains_key(group));
            birth.is_some_and(|birth| {
                let failed = birth.founders.iter().filter(|it| {
                    let node = self.world.nodes.get(&it.id);
                    node.is_none_or(|node| node.driver.is_none() || node.life != it.incarnation.0)
                });
                2 * failed.count() >= birth.founders.len()
            })
        });
        let unborn: Vec<GroupId> = unborn.collect();
        self.unborn += unborn.len() as u64;
        self.anew(&unborn);
    }

    pub(super) fn poll(&mut self) {
        // A removed node stops when no group names it any more.
        let Some(site) = self.latest() else {
            return;
        };
        for node in self.world.alive() {
            let is_listed = site.nodes().iter().any(|it| it.id == node);
            // A member that hands its state over is needed until the next ones have it.
            let has_part = self
                .world
                .machine(node)
                .unwrap()
                .groups()
                .groups()
                .next()
                .is_some();
            let is_named = has_part || self.is_named(node);
            if !is_listed && !is_named && self.dice().percent(10) && self.may_stop(&[node]) {
                self.world.note(|| format!("{node} is retired"));
                self.world.stop(node);
            }
        }
    }

    /// Returns true if the latest configuration of a group that any node knows names the node.
    fn is_named(&self, node: NodeId) -> bool {
        let is_changing = self.world.alive().into_iter().any(|it| {
            let groups = self.world.machine(it).unwrap().groups();
            groups.groups().any(|it| groups.is_changing(it))
        });
        let mut named = self.world.oracle.named.values();
        is_changing || named.any(|it| it.1.contains(&node))
    }
}
