//! Calm: all must come to its end, and work.

use selvedge_core::NodeId;
use selvedge_groups as groups;
use selvedge_groups::store::StoreCommand;
use selvedge_groups::{GroupId, SiteError};
use selvedge_kgroup::routines::{End, Stage};
use selvedge_kgroup::{GroupState, Reject, Site};

use super::edits::place;
use super::{Break, SECOND, Story, maps};
use crate::oracle::{devices_of, routine_of};
use crate::world::{Faults, MS};

impl Story {
    pub(super) fn calm(&mut self) {
        self.world.note(|| "== calm".into());
        let faults = &mut self.world.faults;
        *faults = Faults {
            loss: faults.loss.min(2),
            double: faults.double.min(5),
            delay: 30 * MS,
            slow: 0,
            ages: 0,
            storage: faults.storage.min(2 * MS),
            act: 0,
            ..faults.clone()
        };
        self.world.epoch_length = self.world.epoch_length.max(5 * SECOND);
        for node in self.world.nodes.values_mut() {
            node.asleep_until = 0;
        }
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        for node in ids {
            if self.world.nodes[&node].driver.is_none() && self.world.nodes[&node].has_begun {
                self.world.start(node, None);
            }
        }
        self.world.calm();
    }

    pub(super) fn settle(&mut self) {
        let limit = match self.world.broken {
            Some(Break::Cut) => 60,
            Some(_) => 5,
            None => 240,
        };
        let limit = self.world.now + limit * SECOND;
        let mut why = String::from("nothing was looked at");
        let mut calls = 0;
        while self.world.now < limit && self.goes_on() {
            let to = self.world.now + SECOND;
            self.until(to);
            calls += 1;
            // A report from before may come after the calm began.
            if calls == 4 {
                self.world.calm();
            }
            if calls < 6 {
                continue;
            }
            if calls % 20 == 0 {
                let listed = self.latest().into_iter().flat_map(|it| it.nodes().to_vec());
                for node in listed.collect::<Vec<_>>() {
                    self.world.start(node.id, None);
                }
                self.world.calm();
                self.anew_where_lost();
            }
            if calls == 60 {
                self.anew_where_unborn();
            }
            match self.unsettled() {
                None => {
                    self.end.converged = true;
                    break;
                }
                Some(reason) => why = reason,
            }
        }
        if !self.goes_on() {
            return;
        }
        if !self.end.converged {
            if self.setting.is_roomy() {
                let now = self.world.now;
                self.world.oracle.fail(now, format!("no end: {why}"));
            }
            return;
        }
        if self.setting.is_roomy() {
            self.probe();
        }
    }

    /// The first thing that has not come to its end.
    fn unsettled(&self) -> Option<String> {
        let site = self.latest()?;
        if self.open > 0 {
            return Some("a site is rolled out".into());
        }
        let generation = site.generation();
        for node in site.nodes() {
            let Some(machine) = self.world.machine(node.id) else {
                return Some(format!("{} does not run", node.id));
            };
            let groups = machine.groups();
            if !groups.has_site() || groups.generation() != generation {
                return Some(format!(
                    "{} has site {} of {generation}",
                    node.id,
                    groups.generation()
                ));
            }
            let is_same = machine.site() == &*site || machine.site().encode() == site.encode();
            if !is_same {
                return Some(format!("{} has another site", node.id));
            }
            for group in groups.groups() {
                let is_there = site.groups().any(|it| it == group);
                if !is_there && !group.is_map() && group != GroupId::REGISTRY {
                    return Some(format!(
                        "{} holds {group:?}, which the site does not have",
                        node.id
                    ));
                }
            }
        }
        let mut wanted: Vec<GroupId> = site.groups().collect();
        wanted.extend(
            self.maps
                .iter()
                .filter(|it| self.world.oracle.latest.contains_key(it)),
        );
        for group in wanted {
            if let Some(why) = self.unsettled_group(&site, group) {
                return Some(why);
            }
        }
        if let Some(asked) = self.world.oracle.maps.pending.first_key_value() {
            return Some(format!("a map does not answer: {asked:?}"));
        }
        if let Some((who, _)) = self.world.oracle.waiting.first_key_value() {
            return Some(format!("a proposal has no outcome: {who:?}"));
        }
        None
    }

    fn unsettled_group(&self, site: &Site, group: GroupId) -> Option<String> {
        let mut leaders = self.world.alive().into_iter().filter(|it| {
            let machine = self.world.machine(*it).unwrap();
            machine.groups().leads(group)
        });
        if leaders.next().is_none() {
            return Some(format!("{group:?} has no leader"));
        }
        let Some(latest) = self.world.oracle.latest.get(&group) else {
            return Some(format!("{group:?} has no state"));
        };
        for member in &latest.members {
            if !site.nodes().iter().any(|it| it.id == member.id) {
                return Some(format!("{group:?} names {member}, which was removed"));
            }
        }
        match &latest.state {
            GroupState::Routine(state) => {
                if !matches!(state.stage(), Stage::NotTriggered) || state.is_queued() {
                    let (run, stage) = (state.instance(), state.stage());
                    return Some(format!("{group:?} run {run} does not end: {stage:?}"));
                }
                let is_same = site.definition(group) == Some(state.definition());
                if !state.is_defined() || !is_same || state.pending().is_some() {
                    return Some(format!("{group:?} has another definition"));
                }
            }
            GroupState::Devices(state) => {
                let mut listed: Vec<NodeId> = site.devices(group).iter().map(|it| it.0).collect();
                listed.sort_unstable();
                if !state.ids().eq(listed.iter().copied()) {
                    return Some(format!("{group:?} has other devices"));
                }
                for device in listed {
                    if let Some(claim) = state.holder(device) {
                        return Some(format!("{device} is held by {claim:?}"));
                    }
                    if state.queue(device).next().is_some() {
                        return Some(format!("{device} is waited for"));
                    }
                    let gone = state
                        .watchers(device)
                        .find(|it| site.definition(*it).is_none());
                    if let Some(gone) = gone {
                        return Some(format!("{gone:?} watches {device}, and was removed"));
                    }
                    if state
                        .status(device)
                        .is_none_or(|it| !it.is_up || it.value.is_none())
                    {
                        return Some(format!("{device} has no status"));
                    }
                }
            }
            _ => {}
        }
        None
    }

    /// All works: runs, maps, another site.
    fn probe(&mut self) {
        let Some(site) = self.latest() else {
            return;
        };
        let routines: Vec<u32> = site.routines().map(|it| it.0).collect();
        for number in routines {
            // A run may fail where a leader changes in the middle of a step.
            let is_complete = (0..6).any(|_| self.probe_routine(Site::routine(number)));
            let now = self.world.now;
            self.world.oracle.expect(now, is_complete, || {
                format!("routine {number} never completes")
            });
        }
        for map in maps() {
            for node in site.nodes() {
                self.tickets += 1;
                let ticket = self.tickets;
                let get = StoreCommand::Get {
                    ticket,
                    key: "a".into(),
                };
                self.map_command(node.id, map, get);
            }
        }
        self.wait("maps do not answer", 60, |story| {
            story.world.oracle.maps.pending.is_empty() && story.are_watches_right()
        });
        self.probe_clauses(&site);
        self.probe_site();
    }

    fn are_watches_right(&self) -> bool {
        let maps = &self.world.oracle.maps;
        maps.watched
            .iter()
            .all(|((node, life, map, key), version)| {
                let is_there = self.world.nodes.get(node);
                let is_there = is_there.is_some_and(|it| it.driver.is_some() && it.life == *life);
                // A node outside of the site may ask, and is refused.
                let is_listed = self
                    .latest()
                    .is_some_and(|it| it.nodes().iter().any(|it| it.id == *node));
                let is_there = is_there && is_listed;
                let last = maps.last(*map, key);
                // A change that was not answered may be the last one.
                !is_there || maps.is_lost(*map) || version.is_some_and(|it| it >= last)
            })
    }

    fn wait(&mut self, what: &str, seconds: u64, done: impl Fn(&Self) -> bool) {
        let limit = self.world.now + seconds * SECOND;
        while self.goes_on() {
            if done(self) {
                self.end.probes += 1;
                return;
            }
            if self.world.now >= limit {
                let now = self.world.now;
                let why = self.unsettled();
                self.world.oracle.fail(now, format!("{what}; {why:?}"));
                return;
            }
            let to = self.world.now + 500 * MS;
            self.until(to);
        }
    }

    fn instance(&self, routine: GroupId) -> u64 {
        let latest = self.world.oracle.latest.get(&routine);
        latest
            .and_then(|it| routine_of(&it.state))
            .map_or(0, |it| it.instance())
    }

    fn probe_routine(&mut self, routine: GroupId) -> bool {
        let before = self.instance(routine);
        let id = self.unique();
        let Some(site) = self.latest() else {
            return false;
        };
        let ids: Vec<NodeId> = site.nodes().iter().map(|it| it.id).collect();
        let node = self.dice().pick(&ids).unwrap();
        if !self.trigger(node, routine, id) {
            let now = self.world.now;
            self.world
                .oracle
                .fail(now, format!("{node} refuses to trigger {routine:?}"));
            return false;
        }
        self.wait(&format!("{routine:?} does not run"), 60, |story| {
            let latest = story.world.oracle.latest.get(&routine);
            let state = latest.and_then(|it| routine_of(&it.state));
            state.is_some_and(|it| {
                let is_done = it.report().is_some_and(|it| it.instance > before);
                is_done && matches!(it.stage(), Stage::NotTriggered)
            })
        });
        self.wait("a device is held", 60, |story| {
            let mut all = story
                .world
                .oracle
                .latest
                .values()
                .filter_map(|it| devices_of(&it.state));
            all.all(|it| it.ids().all(|device| it.holder(device).is_none()))
                || !story.is_site_whole()
        });
        let latest = self.world.oracle.latest.get(&routine);
        let report = latest
            .and_then(|it| routine_of(&it.state))
            .and_then(|it| it.report());
        report.is_some_and(|it| it.end == End::Completed)
    }

    fn is_site_whole(&self) -> bool {
        let site = self.latest();
        site.is_some_and(|site| {
            self.world.oracle.latest.iter().all(|(group, latest)| {
                devices_of(&latest.state).is_none() || site.groups().any(|it| it == *group)
            })
        })
    }

    fn probe_clauses(&mut self, site: &Site) {
        let watching: Vec<GroupId> = site
            .routines()
            .filter(|it| it.1.clause.is_some())
            .map(|it| Site::routine(it.0))
            .collect();
        if watching.is_empty() {
            return;
        }
        self.world.device_states.insert(self.sensor, "shut".into());
        let to = self.world.now + 40 * SECOND;
        self.until(to);
        let before: Vec<u64> = watching.iter().map(|it| self.instance(*it)).collect();
        self.world.device_states.insert(self.sensor, "open".into());
        self.wait("a clause does not trigger", 60, |story| {
            watching
                .iter()
                .zip(&before)
                .all(|(it, before)| story.instance(*it) > *before)
        });
        self.wait("runs do not end", 60, |story| story.unsettled().is_none());
    }

    fn probe_site(&mut self) {
        let Some(site) = self.latest() else {
            return;
        };
        let generation = site.generation();
        let ids: Vec<NodeId> = site.nodes().iter().map(|it| it.id).collect();
        let node = self.dice().pick(&ids).unwrap();
        let unique = self.unique();
        let first = site
            .clusters()
            .next()
            .map(|it| site.devices(Site::cluster(it.0)));
        let Some(device) = first.and_then(|it| it.first().map(|it| it.0)) else {
            return;
        };
        let Ok(wanted) = Site::clone(&site).with_device(device, place(unique)) else {
            return;
        };
        // A file of this node may be under way.
        let mut refused = self.propose_site(node, wanted.clone());
        for _ in 0..60 {
            if !matches!(
                refused,
                Some(Reject::Groups(groups::Reject::Site(SiteError::Proposing)))
            ) {
                break;
            }
            let to = self.world.now + SECOND;
            self.until(to);
            refused = self.propose_site(node, wanted.clone());
        }
        if let Some(why) = refused {
            let now = self.world.now;
            let is_frame = matches!(
                why,
                Reject::Groups(groups::Reject::Site(SiteError::Frame { .. }))
            );
            self.world.oracle.expect(now, is_frame, || {
                format!("{node} refuses a change of the present site: {why}")
            });
            return;
        }
        self.wait("no other site is decided", 60, |story| {
            story
                .latest()
                .is_some_and(|it| it.generation() > generation)
                && story.unsettled().is_none()
        });
    }
}
