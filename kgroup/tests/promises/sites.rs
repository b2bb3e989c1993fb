//! Sites that change while they run: the edits of users, the sites that are decided, and the nodes
//! and devices that come and go with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_core::{Choose, Effect, Member, NodeId};
use selvedge_groups::{GroupId, Node};
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Command, Event, GroupState, Kgroup, Site};
use selvedge_replica::Replica;
use selvedge_sim::histories::{Choices, History, Step, What};

use crate::site::{definition, place, timed_definition, weight};
use crate::story::another_node;
use crate::world::{Own, World};

/// The most nodes of a site.
const NODES: usize = 9;

pub(crate) struct Sites {
    /// True in histories with sites that change.
    pub(crate) is_on: bool,
    /// The site with which the building begins.
    first: Arc<Site>,
    /// The sites that were decided, by generation.
    decided: BTreeMap<u32, Arc<Site>>,
    /// The sites of programs that have a later one.
    programs: BTreeMap<u64, Arc<Site>>,
    /// The latest generation that a host which stores has reported.
    reported: BTreeMap<u64, u32>,
    /// Devices that a site had, and a later one did not have.
    lacked: BTreeSet<NodeId>,
    /// The highest id of a node so far.
    nodes: u64,
    /// Sites that came too late.
    pub(crate) overtaken: u64,
    pub(crate) rolled: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl Sites {
    pub(crate) fn of(first: &Arc<Site>) -> Self {
        Self {
            is_on: false,
            first: Arc::clone(first),
            decided: BTreeMap::from([(0, Arc::clone(first))]),
            programs: BTreeMap::new(),
            reported: BTreeMap::new(),
            lacked: BTreeSet::new(),
            nodes: first.nodes().iter().map(|it| it.id.0).max().unwrap_or(0),
            overtaken: 0,
            rolled: 0,
            added: 0,
            removed: 0,
        }
    }

    /// The number of generations after the first one.
    pub(crate) fn generations(&self) -> u64 {
        self.decided.len() as u64 - 1
    }

    /// The site of a node's program.
    pub(crate) fn program(&self, id: u64) -> Arc<Site> {
        Arc::clone(self.programs.get(&id).unwrap_or(&self.first))
    }

    /// Returns true if a site lacked a device after one that had it.
    pub(crate) fn lacked(&self, device: NodeId) -> bool {
        self.lacked.contains(&device)
    }

    /// A life begins from what the node has stored.
    pub(crate) fn begins_again(&self, machine: &Kgroup) {
        let id = machine.me().id.0;
        let before = self.reported.get(&id).copied().unwrap_or(0);
        let now = machine.site().generation();
        let is_known = !machine.groups().has_site();
        assert!(now >= before || is_known, "{id} goes back: {before}, {now}");
    }

    /// Returns true if the site is later than all others that were decided.
    fn decides(&mut self, site: &Arc<Site>) -> bool {
        let generation = site.generation();
        let known = self.decided.entry(generation);
        let known = known.or_insert_with(|| Arc::clone(site));
        assert_eq!(known, site, "two sites of generation {generation}");
        let sites: Vec<&Arc<Site>> = self.decided.values().collect();
        for pair in sites.windows(2) {
            let devices = pair[0].clusters().flat_map(|it| &it.1.devices);
            let left = devices.filter(|it| pair[1].cluster_of(**it).is_none());
            self.lacked.extend(left);
        }
        self.decided.last_key_value().unwrap().0 == &generation
    }
}

impl World {
    /// The nodes that the present site has, by id.
    pub(crate) fn nodes_of_the_site(&self) -> Vec<u64> {
        self.site.nodes().iter().map(|it| it.id.0).collect()
    }

    pub(crate) fn a_node_of_the_site(&mut self) -> u64 {
        let ids = self.nodes_of_the_site();
        self.pick(&ids)
    }

    pub(crate) fn devices_of_the_site(&self) -> Vec<NodeId> {
        let clusters = self.site.clusters();
        clusters.flat_map(|it| it.1.devices.clone()).collect()
    }

    /// Keeps the sites of a step's events until its facts are stored.
    pub(crate) fn note_sites(&mut self, step: &Step<'_, Self>) {
        for effect in step.effects {
            if let Effect::Event(Event::Site { .. }) = effect {
                let site = self.machine(step.me.id.0).unwrap().site().clone();
                self.life(step.me.id.0).sites.push_back(Arc::new(site));
            }
        }
    }

    /// A node has another site.
    pub(crate) fn site_is(&mut self, me: Member, generation: u32) {
        let id = me.id.0;
        let site = self.life(id).sites.pop_front().unwrap();
        let before = self.sites.reported.insert(id, generation);
        let is_later = before.is_none_or(|it| generation > it) || !self.nodes[&id].stores;
        assert!(is_later, "{id}: {before:?} to {generation}");
        // A step that took several sites has the last one only.
        if site.generation() == generation {
            self.is_decided(site);
        }
    }

    /// A life begins with this site, which a former one may have stored without reporting it.
    pub(crate) fn has_stored(&mut self, site: &Site) {
        if self.sites.is_on && site.generation() > self.site.generation() {
            self.is_decided(Arc::new(site.clone()));
        }
    }

    fn is_decided(&mut self, site: Arc<Site>) {
        if self.sites.decides(&site) {
            self.site = site;
            self.nodes_come();
        }
    }

    /// Nodes that a site has and that have no host yet get one.
    fn nodes_come(&mut self) {
        for id in self.nodes_of_the_site() {
            if !self.nodes.contains_key(&id) {
                let site = Arc::clone(&self.site);
                self.installs(id, site);
            }
        }
    }

    /// A node gets a host, with this site in its program.
    fn installs(&mut self, id: u64, site: Arc<Site>) {
        let node = another_node(self, id);
        self.nodes.insert(id, node);
        self.sites.programs.insert(id, site);
        let after = self.below(3_000_000);
        self.after(after, What::Restart(id));
        self.has_a_clock(id);
    }

    /// A node begins again with this site in its program.
    pub(crate) fn begins_with(&mut self, id: u64, site: Arc<Site>) {
        let node = &self.nodes[&id];
        let began = !node.stores || !node.disk.facts.is_empty();
        let may_forget = node.stores || self.may_forget(id);
        if node.host.is_none() || !began || !may_forget {
            return;
        }
        self.sites.programs.insert(id, site);
        self.crash(id, 0, true);
        self.sites.rolled += 1;
    }

    /// A user, or two at once, change the site; or a program brings a later one.
    pub(crate) fn site_changes(&mut self) {
        let id = self.a_node_of_the_site();
        match self.below(10) {
            0..6 => self.propose(id),
            6..8 => {
                let other = self.a_node_of_the_site();
                self.propose(id);
                self.propose(other);
            }
            8 => self.rolls(id),
            _ => self.retires(),
        }
    }

    fn propose(&mut self, id: u64) {
        let Some(machine) = self.machine(id) else {
            return;
        };
        let present = machine.site().clone();
        let wanted = self.edited(present.clone());
        for device in wanted.clusters().flat_map(|it| &it.1.devices) {
            self.devices.install(*device);
        }
        let new: Vec<u64> = wanted.nodes().iter().map(|it| it.id.0).collect();
        let new: Vec<u64> = (new.into_iter())
            .filter(|it| !self.nodes.contains_key(it))
            .collect();
        // Some begin before the others have the site.
        if let Ok(next) = present.changed_to(&wanted)
            && self.percent(40)
        {
            for id in new {
                self.installs(id, Arc::new(next.clone()));
            }
        }
        self.command(id, Command::ChangeSite(Box::new(wanted)));
    }

    /// The programs of all nodes get a later site, one after another.
    fn rolls(&mut self, id: u64) {
        let Some(machine) = self.machine(id) else {
            return;
        };
        let present = machine.site().clone();
        let wanted = self.edited(present.clone());
        let Ok(next) = present.changed_to(&wanted) else {
            return;
        };
        for device in next.clusters().flat_map(|it| it.1.devices.clone()) {
            self.devices.install(device);
        }
        let next = Arc::new(next);
        let gap = self.pick(&[0, 100_000, 3_000_000]);
        for (nth, node) in (0..).zip(next.nodes()) {
            if self.nodes.contains_key(&node.id.0) {
                let what = Own::Program(node.id.0, Arc::clone(&next));
                self.after(nth * gap, What::Own(what));
            }
        }
    }

    /// A node that the site does not have, and that is in no group any more, is switched off for good.
    fn retires(&mut self) {
        let present = self.nodes_of_the_site();
        let is_former = |it: &u64| {
            let machine = self.machine(*it);
            !present.contains(it) && machine.is_some_and(|it| it.groups().groups().next().is_none())
        };
        let former: Vec<u64> = self.ids().into_iter().filter(is_former).collect();
        let Some(&id) = former.first().filter(|it| self.may_forget(**it)) else {
            return;
        };
        self.spent.insert(id);
        self.stop(id, 0);
        self.nodes.get_mut(&id).unwrap().never = true;
    }

    fn edited(&mut self, mut site: Site) -> Site {
        for _ in 0..1 + self.below(3) {
            let before = site.clone();
            let next = self.sites.nodes + 1;
            let is_timed = self.times.is_on;
            site = edit(&mut self.hosts.choices, site, next, is_timed).unwrap_or(before);
            let most = site.nodes().iter().map(|it| it.id.0).max();
            self.sites.nodes = self.sites.nodes.max(most.unwrap_or(0));
        }
        site
    }

    /// No command reaches a device that another claim holds.
    pub(crate) fn is_not_held_by_another(&self, ticket: Ticket) {
        if self.runs.is_off || self.runs.is_late || self.states.forgets_parts {
            return;
        }
        let Some(cluster) = self.site.cluster_of(ticket.device) else {
            return;
        };
        let claim = self.runs.claim_of(ticket);
        let holder = self.states.holder(cluster, ticket.device);
        assert!(
            holder.is_none() || holder == claim,
            "{ticket:?} of {claim:?} arrives, and {holder:?} holds the device"
        );
    }

    /// The members of groups with a leader that the site does not have.
    fn former_members(&self) -> Vec<(GroupId, u64)> {
        let present = self.nodes_of_the_site();
        let mut former = Vec::new();
        for machine in self.nodes.values().filter_map(|it| it.machine()) {
            for group in machine.leads() {
                let replica = machine.groups().replica(group).unwrap();
                let members = replica.configuration().members().map(|it| it.member.id.0);
                let gone = members.filter(|it| !present.contains(it));
                former.extend(gone.map(|it| (group, it)));
            }
        }
        former
    }

    /// Faults are over: all nodes have one site, and all groups follow it.
    pub(crate) fn sites_are_equal(&mut self) {
        if !self.sites.is_on {
            return;
        }
        let present = self.nodes_of_the_site();
        for (&id, node) in &self.nodes {
            if let Some(machine) = node.machine().filter(|_| present.contains(&id)) {
                assert_eq!(machine.site(), &*self.site, "{id} has another site");
            }
        }
        if self.is_whole() && !self.former_members().is_empty() {
            // A node that was removed late is a member until the next epoch, also for clocks that lead.
            self.epoch += 60;
            self.begin_epoch(self.epoch, 1_000_000, 0);
            self.run_for(60_000_000);
            assert_eq!(self.former_members(), [], "they are in groups");
        }
        for group in self.site.groups() {
            self.follows(group);
        }
        let groups = self.groups();
        let replicas = self.machines().flat_map(|it| {
            let of = groups.iter();
            of.filter_map(|group| it.groups().replica(*group))
        });
        let members: BTreeSet<u64> = replicas
            .map(Replica::configuration)
            .flat_map(|it| it.members().map(|it| it.member.id.0).collect::<Vec<_>>())
            .collect();
        let first = self.sites.first.nodes().iter().map(|it| it.id.0);
        let first: BTreeSet<u64> = first.collect();
        let added = members.difference(&first).count() as u64;
        self.sites.added = self.sites.added.max(added);
        let removed = first.iter().filter(|it| !present.contains(it)).count() as u64;
        self.sites.removed = self.sites.removed.max(removed);
    }

    fn follows(&self, group: GroupId) {
        let leaders = self.leaders(group);
        let &[leader] = &leaders[..] else {
            panic!("{group:?} is led by {leaders:?}");
        };
        match self.machine(leader).unwrap().held(group) {
            Some(GroupState::Devices(held)) => {
                let ids: Vec<NodeId> = held.ids().collect();
                let listed = self.site.devices(group).into_iter();
                let listed: Vec<NodeId> = listed.map(|it| it.0).collect();
                assert_eq!(ids, listed, "{group:?}");
                for device in ids {
                    let is_gone = |it: &GroupId| self.site.definition(*it).is_none();
                    let gone = held.routines(device).find(is_gone);
                    assert_eq!(gone, None, "{device:?} remembers a routine");
                }
            }
            Some(GroupState::Routine(_)) if self.is_starved(group) => {}
            Some(GroupState::Routine(held)) => {
                assert!(held.is_defined(), "{group:?} has no definition");
                assert_eq!(held.pending(), None, "{group:?}");
                assert_eq!(Some(held.definition()), self.site.definition(group));
            }
            other => panic!("{group:?} holds {other:?}"),
        }
    }
}

/// The site after an edit; nothing if it cannot be done.
fn edit(rng: &mut Choices, site: Site, next: u64, is_timed: bool) -> Option<Site> {
    let devices: Vec<NodeId> = site
        .clusters()
        .flat_map(|it| it.1.devices.clone())
        .collect();
    let routines: Vec<u32> = site.routines().map(|it| it.0).collect();
    let nodes: Vec<NodeId> = site.nodes().iter().map(|it| it.id).collect();
    let define = match is_timed {
        true => timed_definition,
        false => definition,
    };
    let edited = match rng.below(12) {
        0..2 => {
            // One that was there before, perhaps.
            let device = NodeId(101 + rng.below(8));
            let at = place(rng);
            site.with_device(device, at)
        }
        2 => {
            let device = rng.pick(&devices.iter().copied().map(Some).collect::<Vec<_>>())?;
            let at = place(rng);
            site.with_device(device, at)
        }
        3..5 => {
            let device = rng.pick(&devices.iter().copied().map(Some).collect::<Vec<_>>())?;
            let needs = |it: &u32| {
                let definition = site.definition(Site::routine(*it));
                definition.is_some_and(|it| it.devices().contains(&device))
            };
            let needing: Vec<u32> = routines.into_iter().filter(needs).collect();
            let without = needing
                .into_iter()
                .try_fold(site, |site, it| site.without_routine(it));
            without.and_then(|it| it.without_device(device))
        }
        5..7 if !devices.is_empty() => site.with_routine(define(rng, &devices)),
        7..9 if !devices.is_empty() => {
            let routine = rng.pick(&routines.iter().copied().map(Some).collect::<Vec<_>>())?;
            site.with_routine_changed(routine, define(rng, &devices))
        }
        9 => {
            let routine = rng.pick(&routines.iter().copied().map(Some).collect::<Vec<_>>())?;
            site.without_routine(routine)
        }
        10 if nodes.len() < NODES => {
            let id = next - u64::from(rng.percent(20) && next > 1);
            let mut node = Node::new(id, place(rng));
            if is_timed && rng.below(3) == 0 {
                node = node.with_weight(weight(rng));
            }
            site.with_node(node)
        }
        _ => {
            let id = rng.pick(&nodes);
            site.without_node(id)
        }
    };
    edited.ok()
}
