//! The configuration that is equal on all nodes of a building, a farm or a yard: the nodes that can
//! look after others, the devices, and the routines.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_groups::{
    self as groups, Begins, Cluster, GroupId, Node, Place, Plan, Selection, clusters, store::Store,
};
use serde::Serialize;

use crate::ConfigError;
use crate::devices::{Devices, Limits};
use crate::routines::{Definition, RoutineState};
use crate::state::GroupState;

/// The lowest bits of an id name the kind of a group's state, as in [`GroupId`].
const KIND_BITS: u32 = 2;
const KIND: u64 = (1 << KIND_BITS) - 1;
const CLUSTER: u64 = 0;
const ROUTINE: u64 = 1;

pub(crate) const fn is_routine(group: GroupId) -> bool {
    group.0 & KIND == ROUTINE
}

fn number(group: GroupId) -> usize {
    usize::try_from(group.0 >> KIND_BITS).unwrap_or(usize::MAX)
}

/// The configuration that is equal on all nodes. Nodes whose sites differ refuse each other's
/// messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    nodes: Vec<Node>,
    selection: Selection,
    clusters: Vec<Cluster>,
    places: Vec<(NodeId, Place)>,
    limits: Limits,
    routines: Vec<Definition>,
    generation: u32,
    frame_budget: u16,
}

impl Site {
    /// A site with these nodes and devices, without routines. Devices that are near each other share a
    /// group: there are about as many groups as `devices` divided by `cluster` (the paper: 25).
    ///
    /// # Errors
    /// The reason why it cannot work.
    pub fn new(
        selection: Selection,
        nodes: impl IntoIterator<Item = Node>,
        devices: impl IntoIterator<Item = (NodeId, Place)>,
        cluster: usize,
    ) -> Result<Self, ConfigError> {
        let plan = Plan::new(selection, nodes)?;
        let mut places: Vec<(NodeId, Place)> = devices.into_iter().collect();
        places.sort_by_key(|it| it.0);
        let mut pairs = places.iter().zip(places.iter().skip(1));
        if let Some((twice, _)) = pairs.find(|(one, next)| one.0 == next.0) {
            return Err(ConfigError::Twice(twice.0));
        }
        let count = places.len().div_ceil(cluster.max(1));
        Ok(Self {
            nodes: plan.nodes().to_vec(),
            selection,
            clusters: clusters(places.iter().copied(), count),
            places,
            limits: Limits::new(),
            routines: Vec::new(),
            generation: 0,
            frame_budget: plan.frame_budget(),
        })
    }

    /// The group of a cluster, by its place in [`clusters`](Self::clusters).
    #[must_use]
    pub const fn cluster(number: u32) -> GroupId {
        GroupId((number as u64) << KIND_BITS | CLUSTER)
    }

    /// The group of a routine, by its place in [`routines`](Self::routines).
    #[must_use]
    pub const fn routine(number: u32) -> GroupId {
        GroupId((number as u64) << KIND_BITS | ROUTINE)
    }

    /// The same site with one more routine. Its group is [`Site::routine`] of its number, from 0.
    ///
    /// # Errors
    /// The routine cannot work, or needs a device that the site does not have.
    pub fn with_routine(mut self, definition: Definition) -> Result<Self, ConfigError> {
        let routine = self.routines.len();
        definition
            .check()
            .map_err(|error| ConfigError::Routine { routine, error })?;
        for device in definition.devices() {
            if self.cluster_of(device).is_none() {
                return Err(ConfigError::NoDevice { routine, device });
            }
        }
        self.routines.push(definition);
        Ok(self)
    }

    /// The same site in another generation: all groups begin from nothing. For a site in which a
    /// group lost its memory for good.
    #[must_use]
    pub const fn with_generation(mut self, generation: u32) -> Self {
        self.generation = generation;
        self
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    /// The same site with this limit in bytes for a frame, header and sender included: from 145, and no
    /// less than the names of a group's members need. Default 1,400.
    ///
    /// Decisions have to fit as well. A frame has room for a state of a device that is 130 bytes
    /// shorter where the ids of nodes and devices are below 128, and 190 bytes shorter for any ids. A
    /// longer one may never be decided: [`too_long`](selvedge_groups::Counters::too_long) counts it, and its
    /// routine waits.
    ///
    /// # Errors
    /// The number is out of its range, or frames have no room for the names of a group's members.
    pub fn with_frame_budget(mut self, frame_budget: u16) -> Result<Self, ConfigError> {
        self.frame_budget = frame_budget;
        self.plan()?;
        Ok(self)
    }

    /// The longest frame, in bytes.
    #[must_use]
    pub const fn frame_budget(&self) -> u16 {
        self.frame_budget
    }

    /// The same site, with these limits for each device.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The nodes that can be members of its groups, with a digest of all of the site.
    ///
    /// # Errors
    /// The reason why it cannot work.
    pub fn plan(&self) -> Result<Plan, groups::ConfigError> {
        let plan = Plan::new(self.selection, self.nodes.iter().copied())?;
        let plan = plan.with_frame_budget(self.frame_budget)?;
        let plan = plan.with(self.generation.into());
        let devices = self.clusters.iter().flat_map(|it| {
            let ids = it.devices.iter().map(|it| it.0);
            ids.chain([u64::MAX])
        });
        let places = self.places.iter().flat_map(|it| it.1.0);
        let places = places.map(|axis| u64::from(axis.cast_unsigned()));
        let routines = self.routines.iter().flat_map(words);
        let limits = words(&self.limits);
        let words = devices.chain(places).chain(routines).chain(limits);
        Ok(words.fold(plan, Plan::with))
    }

    /// The nodes, by id.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The clusters of devices; the group of each is [`Site::cluster`] of its number.
    #[must_use]
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The routines; the group of each is [`Site::routine`] of its number.
    #[must_use]
    pub fn routines(&self) -> &[Definition] {
        &self.routines
    }

    /// The routine of a group.
    pub(crate) fn definition(&self, group: GroupId) -> Option<&Definition> {
        let at = is_routine(group).then(|| number(group))?;
        self.routines.get(at)
    }

    /// The group that looks after a device. O(clusters * log n).
    #[must_use]
    pub fn cluster_of(&self, device: NodeId) -> Option<GroupId> {
        let holds = |it: &Cluster| it.devices.binary_search(&device).is_ok();
        let number = self.clusters.iter().position(holds)?;
        u32::try_from(number).ok().map(Site::cluster)
    }

    /// The devices of a cluster, or those that a routine needs, with their places; none for a map.
    /// In each epoch one of them is drawn, and the members of the group are near it.
    #[must_use]
    pub fn devices(&self, group: GroupId) -> Vec<(NodeId, Place)> {
        let number = number(group);
        let cluster = self.clusters.get(number).map(|it| it.devices.clone());
        let ids = match group.0 & KIND {
            CLUSTER => cluster,
            ROUTINE => self.routines.get(number).map(|it| it.devices()),
            _ => None,
        };
        let ids = ids.unwrap_or_default().into_iter();
        ids.filter_map(|it| Some((it, self.place(it)?))).collect()
    }

    fn place(&self, device: NodeId) -> Option<Place> {
        let at = self.places.binary_search_by_key(&device, |it| it.0).ok()?;
        self.places.get(at).map(|it| it.1)
    }

    /// The state with which a group begins; nothing for a group that the site does not have.
    #[must_use]
    pub fn begin(&self, group: GroupId) -> Option<GroupState> {
        let number = number(group);
        match group.0 & KIND {
            CLUSTER => {
                let devices = self.clusters.get(number)?.devices.iter().copied();
                Some(GroupState::Devices(Devices::new(devices, self.limits)))
            }
            ROUTINE => {
                let definition = self.routines.get(number)?.clone();
                let state = RoutineState::new(definition);
                debug_assert!(state.is_ok(), "definitions were checked");
                state.ok().map(|it| GroupState::Routine(it.into()))
            }
            _ => group.is_map().then(|| GroupState::Map(Store::default())),
        }
    }

    /// All groups that begin with the site: clusters and routines. Maps begin when they are used.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        let count = |it: usize| 0..u32::try_from(it).unwrap_or(u32::MAX);
        let clusters = count(self.clusters.len()).map(Site::cluster);
        clusters.chain(count(self.routines.len()).map(Site::routine))
    }
}

/// The encoding of a part of a site, with its length.
fn words(part: &impl Serialize) -> Vec<u64> {
    let bytes = postcard::to_allocvec(part).unwrap_or_default();
    let length = bytes.len() as u64;
    let chunks = bytes.chunks(8).map(|chunk| {
        let digits = chunk.iter().rev();
        digits.fold(0, |word, &byte| word << 8 | u64::from(byte))
    });
    [length].into_iter().chain(chunks).collect()
}

impl Begins for GroupState {
    type Site = Site;

    fn groups(site: &Site) -> Vec<GroupId> {
        site.groups().collect()
    }

    fn devices(site: &Site, group: GroupId) -> Vec<(NodeId, Place)> {
        site.devices(group)
    }

    /// The other devices of its cluster.
    fn neighbours(site: &Site, device: NodeId) -> Vec<Place> {
        let cluster = site.cluster_of(device);
        let all = cluster.map(|it| site.devices(it)).unwrap_or_default();
        let others = all.into_iter().filter(|it| it.0 != device);
        others.map(|it| it.1).collect()
    }

    fn begin(site: &Site, group: GroupId) -> Option<Self> {
        site.begin(group)
    }
}
