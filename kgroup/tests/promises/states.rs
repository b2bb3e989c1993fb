//! The states of groups that are stored: one state a version, one configuration a number, and all
//! devices of a routine that executes are its own.

use std::collections::BTreeMap;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::{Act, Ticket};
use selvedge_kgroup::routines::{RoutineState, Stage};
use selvedge_kgroup::{Claim, GroupState, Site};
use selvedge_replica::Configuration;
use selvedge_sim::histories::Step;

use crate::sites::Sites;
use crate::world::World;

/// The numbers of configurations that a beginning of a group can have, as a power of two.
const BEGINNING_BITS: u32 = 22;

/// A beginning of a group, and the version since.
type Version = (u64, u64);

/// A group at a node, after a step that changed it.
#[derive(Debug)]
pub(crate) struct Observed {
    group: GroupId,
    configuration: Configuration,
    version: u64,
    held: Option<GroupState>,
}

impl Observed {
    /// Returns true for a group of one.
    pub(crate) fn is_alone(&self) -> bool {
        self.configuration.voters.len() < 2
    }

    /// The state of a routine.
    pub(crate) fn routine(&self) -> Option<(GroupId, &RoutineState)> {
        match &self.held {
            Some(GroupState::Routine(state)) => Some((self.group, state)),
            _ => None,
        }
    }

    /// The version, behind those of former beginnings of the group: a group of devices or of a routine counts its
    /// versions from 0 again.
    const fn version(&self) -> Version {
        (self.configuration.number >> BEGINNING_BITS, self.version)
    }
}

/// The version and the configuration of a group that a host saw last.
pub(crate) type Places = BTreeMap<GroupId, (u64, u64)>;

#[derive(Default)]
pub(crate) struct States {
    by_version: BTreeMap<(GroupId, Version), Vec<u8>>,
    by_number: BTreeMap<(GroupId, u64), Configuration>,
    acts: BTreeMap<Ticket, Act>,
    latest: BTreeMap<GroupId, (Version, GroupState)>,
    /// A host of a group of one may lose a part of a step in which several groups decided, and then know
    /// an older state of one than of another.
    pub(crate) forgets_parts: bool,
    /// The number of moments at which a routine executed.
    pub(crate) executing: u64,
}

impl States {
    /// Checks states that a node has stored.
    pub(crate) fn see(&mut self, site: &Site, sites: &Sites, all: Vec<Observed>) {
        let mut is_new = false;
        for it in all {
            let number = it.configuration.number;
            if !it.configuration.voters.is_empty() {
                let first = self.by_number.entry((it.group, number));
                let first = first.or_insert_with(|| it.configuration.clone());
                assert_eq!(*first, it.configuration, "{:?}: two at {number}", it.group);
            }
            let version = it.version();
            if let Some(held) = it.held {
                is_new |= self.state(it.group, version, held);
            }
        }
        if is_new && !self.forgets_parts {
            self.check_locks(site, sites);
        }
    }

    fn state(&mut self, group: GroupId, version: Version, held: GroupState) -> bool {
        let bytes = postcard::to_allocvec(&held).unwrap();
        let known = self.by_version.entry((group, version));
        let known = known.or_insert_with(|| bytes.clone());
        assert_eq!(*known, bytes, "{group:?}: two states at {version:?}");
        if (self.latest.get(&group)).is_some_and(|it| it.0 >= version) {
            return false;
        }
        if let GroupState::Devices(devices) = &held {
            for device in devices.ids() {
                if let Some(act) = devices.act(device) {
                    let number = act.number;
                    self.act(Ticket { device, number }, act);
                }
            }
        }
        self.latest.insert(group, (version, held));
        true
    }

    fn act(&mut self, ticket: Ticket, act: &Act) {
        let known = self.acts.entry(ticket).or_insert_with(|| act.clone());
        let is_same = (known.claim, known.step, &known.value) == (act.claim, act.step, &act.value);
        assert!(is_same, "two commands of {ticket:?}: {known:?}, {act:?}");
    }

    /// Theorem 3.
    fn check_locks(&mut self, site: &Site, sites: &Sites) {
        for (&group, (_, held)) in &self.latest {
            let GroupState::Routine(routine) = held else {
                continue;
            };
            if !matches!(routine.stage(), Stage::Executing { .. }) {
                continue;
            }
            if site.definition(group).is_none() {
                continue; // Removed: its devices are free.
            }
            let claim = routine.claim(group).unwrap();
            self.executing += 1;
            for device in routine.definition().locks() {
                let Some(cluster) = site.cluster_of(device).filter(|_| !sites.lacked(device))
                else {
                    continue;
                };
                match self.latest.get(&cluster) {
                    Some((_, GroupState::Devices(devices))) => {
                        assert_eq!(devices.holder(device), Some(claim), "{group:?} {device:?}");
                    }
                    other => panic!("{group:?} executes, and {cluster:?} is {other:?}"),
                }
            }
        }
    }
}

impl States {
    /// The claim that holds a device in the latest state of a cluster that is known.
    pub(crate) fn holder(&self, cluster: GroupId, device: NodeId) -> Option<Claim> {
        match self.latest.get(&cluster) {
            Some((_, GroupState::Devices(it))) => it.holder(device),
            _ => None,
        }
    }
}

impl World {
    /// Lists the groups that a step changed, for the moment when its facts are stored.
    pub(crate) fn observe(&mut self, step: &Step<'_, Self>) -> Vec<Vec<Observed>> {
        if self.liars {
            return Vec::new();
        }
        let node = self.hosts.nodes.get_mut(&step.me.id.0).unwrap();
        let host = node.host.as_mut().unwrap();
        let groups = host.driver.machine().groups();
        let mut all = Vec::new();
        for group in groups.groups() {
            let Some(replica) = groups.replica(group) else {
                continue;
            };
            let configuration = replica.configuration();
            let place = (replica.version(), configuration.number);
            if host.own.places.insert(group, place) != Some(place) {
                all.push(Observed {
                    group,
                    configuration: configuration.clone(),
                    version: place.0,
                    held: replica.state().cloned(),
                });
            }
        }
        let (alone, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Observed::is_alone);
        let mut notes = vec![others, alone];
        notes.retain(|it| !it.is_empty());
        notes
    }
}
