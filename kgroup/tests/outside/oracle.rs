//! The promises, compared with the reports, the states and the acts of nodes.

mod commands;
mod runs;
mod sites;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use selvedge_core::{Member, NodeId};
use selvedge_groups::{self as groups, GroupId};
use selvedge_kgroup::devices::{Devices, Ticket};
use selvedge_kgroup::routines::{Report, RoutineEvent, RoutineState};
use selvedge_kgroup::{Event, GroupState, Kgroup, LeaderEvent, Reject, Site};
use selvedge_replica::Replica;

pub(crate) use self::commands::Given;
pub(crate) use self::runs::word_of;
use self::sites::is_alike;
use crate::maps::Maps;
use crate::world::is_misbehaviour;

/// The latest state of a group that any node has shown.
pub(crate) struct Latest {
    /// The beginning of the group, and the version in it.
    pub(crate) at: (u64, u64),
    pub(crate) state: GroupState,
    /// The number and the members of its configuration.
    pub(crate) number: u64,
    pub(crate) members: Vec<Member>,
}

/// The visible state of a node after a step.
#[derive(Default)]
pub(crate) struct Glimpse {
    site: Option<Site>,
    groups: Vec<(GroupId, Latest)>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) runs: u64,
    pub(crate) completed: u64,
    pub(crate) commands: u64,
    pub(crate) sites: u64,
    pub(crate) refused_sites: u64,
    pub(crate) other_sites: u64,
    pub(crate) configurations: u64,
    pub(crate) begun_anew: u64,
}

#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) failures: Vec<String>,
    pub(crate) latest: BTreeMap<GroupId, Latest>,
    /// The latest configuration of each group that any node has known: its number, and its members.
    pub(crate) named: BTreeMap<GroupId, (u64, Vec<NodeId>)>,
    hashes: BTreeMap<(GroupId, u64, u64), u64>,
    seen: BTreeMap<(NodeId, GroupId), (u64, u64, u64)>,
    /// Of each group of a node, after its last step: the number of the configuration, the version of the state.
    parts: BTreeMap<NodeId, Vec<(GroupId, u64, Option<u64>)>>,
    pub(crate) sites: BTreeMap<u32, Vec<u8>>,
    /// The site of the latest generation in `sites`.
    pub(crate) last_site: Option<Arc<Site>>,
    generations: BTreeMap<NodeId, u32>,
    shown: BTreeMap<NodeId, u32>,
    proposed: Vec<Site>,
    /// Set to see failures: it takes note of no proposal, no trigger and no beginning anew.
    pub(crate) is_deaf: bool,
    pub(crate) waiting: BTreeMap<(NodeId, u32, u64), Site>,
    given: BTreeMap<Ticket, Given>,
    once: BTreeMap<(GroupId, u64, u16), Ticket>,
    done: BTreeSet<(GroupId, u64, u16)>,
    highest: BTreeMap<NodeId, u64>,
    reports: BTreeMap<(GroupId, u64), Report>,
    pub(crate) definitions: BTreeMap<(GroupId, u64), String>,
    decided_words: BTreeSet<String>,
    /// The clusters and routines of the latest site.
    present: BTreeSet<GroupId>,
    devices: BTreeSet<NodeId>,
    /// Devices that were removed: a run that held one goes on, and the device may come back meanwhile.
    removed: BTreeSet<NodeId>,
    triggers: BTreeMap<GroupId, BTreeSet<u64>>,
    pub(crate) with_clause: BTreeSet<GroupId>,
    /// Groups that begin anew, and runs and devices that this concerns.
    pub(crate) anew: BTreeMap<GroupId, u64>,
    /// The last members of its beginning before the present one.
    former: BTreeMap<GroupId, Vec<NodeId>>,
    /// Nodes that began again without memory, or that a site has no more.
    pub(crate) lost: BTreeSet<NodeId>,
    nodes: BTreeSet<NodeId>,
    tainted: BTreeSet<(GroupId, u64)>,
    pub(crate) maps: Maps,
    pub(crate) counts: Counts,
    /// Outcomes of proposals that no node had taken: the time, the node, the generation, the site.
    pub(crate) later: Vec<(u64, NodeId, u32, Site)>,
}

impl Oracle {
    pub(crate) fn fail(&mut self, now: u64, what: String) {
        if self.failures.len() < 200 {
            self.failures
                .push(format!("{:.6} s: {what}", now as f64 / 1e6));
        }
    }

    pub(crate) fn expect(&mut self, now: u64, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(now, what());
        }
    }

    pub(crate) fn refused(&mut self, now: u64, node: NodeId, refused: Option<Reject>) {
        let Some(reject) = refused else {
            return;
        };
        self.expect(now, !is_misbehaviour(&reject), || {
            format!("{node}: {reject}")
        });
    }

    /// A node begins a life.
    pub(crate) fn started(&mut self, now: u64, node: NodeId, machine: &Kgroup, is_stored: bool) {
        self.seen.retain(|it, _| it.0 != node);
        self.parts.remove(&node);
        self.shown.remove(&node);
        let generation = machine.groups().generation();
        if !is_stored {
            self.generations.insert(node, 0);
        } else if let Some(before) = self.generations.get(&node).copied() {
            let _ = before;
            self.expect(
                now,
                generation >= before || !machine.groups().has_site(),
                || format!("{node} begins with site {generation} and had {before}"),
            );
        }
    }

    pub(crate) fn stopped(&mut self, _now: u64, node: NodeId, life: u32) {
        self.waiting.retain(|it, _| it.0 != node || it.1 != life);
        self.maps.stopped(node, life);
    }

    /// The visible state of a node after a step, as far as it is new.
    pub(crate) fn glimpse(&mut self, node: NodeId, machine: &Kgroup) -> Option<Box<Glimpse>> {
        let groups = machine.groups();
        let mut seen = Glimpse::default();
        if groups.has_site() {
            let generation = groups.generation();
            let is_known = self.shown.insert(node, generation) == Some(generation);
            if !is_known || !self.sites.contains_key(&generation) {
                seen.site = Some(machine.site().clone());
            }
        }
        let mut parts = std::mem::take(self.parts.entry(node).or_default());
        let mut count = 0;
        for group in groups.groups() {
            let Some(replica) = groups.replica(group) else {
                continue;
            };
            let version = replica.state().map(|_| replica.version());
            let part = (group, replica.configuration().number, version);
            count += 1;
            match parts.get_mut(count - 1) {
                Some(before) if *before == part => continue,
                Some(before) => *before = part,
                None => parts.push(part),
            }
            let shown = self.glimpse_of(node, group, replica);
            seen.groups.extend(shown.map(|it| (group, it)));
        }
        parts.truncate(count);
        self.parts.insert(node, parts);
        (seen.site.is_some() || !seen.groups.is_empty()).then(|| Box::new(seen))
    }

    /// The state of a node's part in a group, if the node has not shown it.
    fn glimpse_of(
        &mut self,
        node: NodeId,
        group: GroupId,
        replica: &Replica<GroupState>,
    ) -> Option<Latest> {
        let configuration = replica.configuration();
        let number = configuration.number;
        let named = self.named.entry(group).or_default();
        if number > named.0 {
            let members = configuration.members().map(|it| it.member.id);
            let last = std::mem::replace(named, (number, members.collect()));
            if last.0 >> 22 < number >> 22 {
                self.former.insert(group, last.1);
            }
        }
        let state = replica.state()?;
        let at = (number >> 22, replica.version());
        let shown = (at.0, at.1, number);
        if self.seen.insert((node, group), shown) == Some(shown) {
            return None;
        }
        // Most states were shown by another node before, and are the same. After a failure they may not be.
        let latest = self.latest.get(&group);
        let latest = latest.filter(|_| self.failures.is_empty());
        let latest = latest.filter(|it| (at, number) <= (it.at, it.number));
        let is_known = latest.is_some_and(|latest| match latest.at == at {
            true => latest.state == *state,
            false => self.hashes.get(&(group, at.0, at.1)) == Some(&hash_of(state)),
        });
        if is_known {
            return None;
        }
        let members = configuration.members().map(|it| it.member).collect();
        Some(Latest {
            at,
            state: state.clone(),
            number,
            members,
        })
    }

    /// Takes what a node has shown, and has stored where it stores.
    pub(crate) fn look(&mut self, now: u64, node: NodeId, seen: Glimpse) {
        if let Some(site) = seen.site {
            self.look_at_site(now, node, &site);
        }
        let mut moved = Vec::new();
        for (group, latest) in seen.groups {
            let at = (group, latest.at.0, latest.at.1);
            let hash = hash_of(&latest.state);
            let known = *self.hashes.entry(at).or_insert(hash);
            self.expect(now, known == hash, || {
                format!(
                    "{node}: {group:?} has two states at {:?}: {:?}",
                    latest.at, latest.state
                )
            });
            if self.newest(now, node, group, latest) {
                moved.push(group);
            }
        }
        // One step may move several groups.
        for group in moved {
            let state = self
                .latest
                .get(&group)
                .and_then(|it| routine_of(&it.state))
                .cloned();
            if let Some(state) = state {
                self.routine_moved(now, node, group, &state);
            }
        }
    }

    fn newest(&mut self, now: u64, node: NodeId, group: GroupId, latest: Latest) -> bool {
        let (at, number) = (latest.at, latest.number);
        let before = self.latest.get(&group).map(|it| (it.at, it.number));
        if before.is_some_and(|it| (at, number) <= it) {
            return false;
        }
        if before.is_some_and(|it| number > it.1) {
            self.counts.configurations += 1;
        }
        if before.is_some_and(|it| at.0 > it.0.0) {
            self.counts.begun_anew += 1;
            // Where half of their members have lost their memory, all groups but maps begin anew by themselves.
            let members: &[NodeId] = self.former.get(&group).map_or(&[], |it| it);
            let lost = members.iter().filter(|it| self.lost.contains(it)).count();
            let is_lost = 2 * lost >= members.len() && !group.is_map() && !self.is_deaf;
            let is_asked = self.anew.contains_key(&group) || is_lost;
            self.expect(now, is_asked, || {
                format!("{node}: {group:?} begins anew without a command")
            });
            self.begins_anew(group);
        }
        self.latest.insert(group, latest);
        before.is_none_or(|it| at > it.0)
    }

    /// The application begins a group anew: its runs, and those that use its devices, may meet.
    pub(crate) fn begins_anew(&mut self, group: GroupId) {
        if self.is_deaf {
            return;
        }
        *self.anew.entry(group).or_default() += 1;
        self.maps.lost(group);
        for (id, latest) in &self.latest {
            if let GroupState::Routine(state) = &latest.state {
                for instance in [state.instance(), state.instance() + 1] {
                    self.tainted.insert((*id, instance));
                }
            }
        }
    }

    /// Returns true if the latest site has the routine: else its run has ended, and releases what it held.
    fn is_present(&self, routine: GroupId) -> bool {
        self.present.contains(&routine)
    }

    /// An event reaches the application.
    pub(crate) fn event(&mut self, now: u64, node: NodeId, life: u32, event: &Event) {
        match event {
            Event::Leader {
                group,
                event: LeaderEvent::Routine(RoutineEvent::Reports(report)),
            } => {
                self.reported(now, *group, report);
            }
            Event::Map { map, event } => {
                if let Err(error) = self.maps.event(now, node, life, *map, event) {
                    self.fail(now, error);
                }
            }
            Event::OtherSite { .. } => self.counts.other_sites += 1,
            Event::Groups(groups::Event::Proposed {
                number,
                generation,
                is_decided,
            }) => {
                // A node proposes the file with which it began, too.
                let Some(site) = self.waiting.remove(&(node, life, *number)) else {
                    return;
                };
                let decided = self
                    .sites
                    .get(generation)
                    .and_then(|it| Site::decode(it).ok());
                match decided {
                    Some(decided) => {
                        let is_it = is_alike(&decided, &site);
                        // Another node may have proposed the same.
                        let equal = self.proposed.iter().filter(|it| is_alike(it, &site));
                        let is_shared = equal.count() != 1;
                        self.expect(now, is_it == *is_decided || is_shared && !*is_decided, || {
                            format!(
                                "{node}: proposal {number} of {generation}: decided {is_decided}"
                            )
                        });
                    }
                    // No node has taken it yet.
                    None if *is_decided => {
                        self.later.push((now, node, *generation, site));
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

fn hash_of(state: &GroupState) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn devices_of(state: &GroupState) -> Option<&Devices> {
    match state {
        GroupState::Devices(state) => Some(state),
        _ => None,
    }
}

pub(crate) fn routine_of(state: &GroupState) -> Option<&RoutineState> {
    match state {
        GroupState::Routine(state) => Some(state),
        _ => None,
    }
}
