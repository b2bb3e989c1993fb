//! The configuration that is equal on all nodes of a building, a farm or a yard: the nodes that can
//! look after others, the devices, and the routines.

mod bytes;
mod edit;
mod wake;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_groups::registry::{Registration, Registry};
use selvedge_groups::{
    self as groups, Begins, Cluster, GroupId, Node, Place, Plan, Selection, clusters, store::Store,
};

use self::edit::grouped;
use crate::ConfigError;
use crate::devices::{Devices, Limits};
use crate::routines::{Definition, RoutineState};
use crate::state::{GroupState, Update};

/// The lowest bits of an id name the kind of a group's state, as in [`GroupId`].
const KIND_BITS: u32 = 2;
const KIND: u64 = (1 << KIND_BITS) - 1;
const CLUSTER: u64 = 0;
const ROUTINE: u64 = 1;

pub(crate) const fn is_routine(group: GroupId) -> bool {
    group.0 & KIND == ROUTINE
}

fn number(group: GroupId) -> Option<u32> {
    u32::try_from(group.0 >> KIND_BITS).ok()
}

/// The configuration that is equal on all nodes. Nodes whose sites differ refuse each other's
/// messages.
///
/// A site is a value: each edit returns another one. Routines and clusters have numbers that stay and
/// are not used again after a removal, so that the group of each stays, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    origin: u32,
    generation: u32,
    selection: Selection,
    frame_budget: u16,
    limits: Limits,
    /// The wanted number of devices in a cluster, above zero.
    cluster_size: u32,
    /// In order of ids.
    nodes: Vec<Node>,
    /// In order of their removal.
    former: Vec<NodeId>,
    /// Each device's cluster and place.
    devices: BTreeMap<NodeId, (u32, Place)>,
    /// The same devices by their clusters, none of which is empty.
    clusters: BTreeMap<u32, Cluster>,
    routines: BTreeMap<u32, Definition>,
    /// Those of the devices that sleep.
    wake_intervals: BTreeMap<NodeId, Span>,
    /// The lowest numbers that no cluster and no routine has had.
    next: (u32, u32),
    /// These numbers at the end of generation 0.
    founding: (u32, u32),
}

impl Site {
    /// A site of generation 0 with these nodes and devices, without routines. Devices that are near each
    /// other share a group: there are about as many groups as `devices` divided by `cluster` (the paper:
    /// 25).
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
        let mut places = BTreeMap::new();
        for (device, place) in devices {
            if places.insert(device, place).is_some() {
                return Err(ConfigError::Twice(device));
            }
        }
        let cluster_size = u32::try_from(cluster.max(1)).unwrap_or(u32::MAX);
        let count = places.len().div_ceil(cluster.max(1));
        let clusters = clusters(places.iter().map(|(&id, &at)| (id, at)), count);
        let many = u32::try_from(clusters.len()).unwrap_or(u32::MAX);
        let numbered = (0..).zip(&clusters).flat_map(|(number, it)| {
            let ids = it.devices.iter();
            ids.map(move |id| (*id, number))
        });
        let located = |(id, number)| Some((id, (number, *places.get(&id)?)));
        let devices = numbered.filter_map(located).collect();
        Ok(Self {
            origin: 0,
            generation: 0,
            selection,
            frame_budget: plan.frame_budget(),
            limits: Limits::new(),
            cluster_size,
            nodes: plan.nodes().to_vec(),
            former: Vec::new(),
            clusters: grouped(&devices),
            devices,
            routines: BTreeMap::new(),
            wake_intervals: BTreeMap::new(),
            next: (many, 0),
            founding: (many, 0),
        })
    }

    /// The group of a cluster, by its number in [`clusters`](Self::clusters).
    #[must_use]
    pub const fn cluster(number: u32) -> GroupId {
        GroupId((number as u64) << KIND_BITS | CLUSTER)
    }

    /// The group of a routine, by its number in [`routines`](Self::routines).
    #[must_use]
    pub const fn routine(number: u32) -> GroupId {
        GroupId((number as u64) << KIND_BITS | ROUTINE)
    }

    /// The same site as another version: from 0, and higher than that of all earlier versions. Clusters and
    /// routines that the site has in generation 0 are [founding](Self::is_founding). So set it after the
    /// devices and routines with which the site begins.
    #[must_use]
    pub const fn with_generation(mut self, generation: u32) -> Self {
        self.generation = generation;
        self.found();
        self
    }

    /// The same site with another origin, any number: all groups begin from nothing. For a building whose
    /// registry has lost its memory for good; any other group begins again by itself or by
    /// [`Command::BeginAnew`](crate::Command::BeginAnew). Default 0.
    #[must_use]
    pub const fn with_origin(mut self, origin: u32) -> Self {
        self.origin = origin;
        self
    }

    /// The same site with this limit in bytes for a frame, header and sender included: from 150, and no
    /// less than the names of a group's members need. Default 1,400.
    ///
    /// Decisions have to fit as well. A frame has room for a state of a device that is 130 bytes
    /// shorter where the ids of nodes and devices are below 128, and 190 bytes shorter for any ids. A
    /// longer one may never be decided: [`too_long`](selvedge_groups::Counters::too_long) counts it, and its
    /// routine waits.
    ///
    /// # Errors
    /// The number is out of its range, or frames have no room for the names of a group's members, or for a
    /// routine that is not [founding](Self::is_founding).
    pub fn with_frame_budget(mut self, frame_budget: u16) -> Result<Self, ConfigError> {
        self.frame_budget = frame_budget;
        self.check()?;
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
        let plan = self.plan_of(self.nodes.iter().copied())?;
        let plan = words(&self.encode()).fold(plan, Plan::with);
        let plan = plan.with_generation(self.generation);
        Ok(plan.with_former(self.former.iter().copied()))
    }

    /// The nodes, by id.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The last 64 nodes that were [removed](Self::without_node), in order of their removal. One of them may
    /// be a member of a group until it is replaced there.
    #[must_use]
    pub fn former_nodes(&self) -> &[NodeId] {
        &self.former
    }

    /// The clusters of devices with their numbers; the group of each is [`Site::cluster`] of its number.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = (u32, &Cluster)> {
        self.clusters.iter().map(|(number, it)| (*number, it))
    }

    /// The routines with their numbers; the group of each is [`Site::routine`] of its number.
    pub fn routines(&self) -> impl ExactSizeIterator<Item = (u32, &Definition)> {
        self.routines.iter().map(|(number, it)| (*number, it))
    }

    /// The routine of a group; `None` for a group of another kind, or one that the site does not have.
    #[must_use]
    pub fn definition(&self, group: GroupId) -> Option<&Definition> {
        let number = number(group).filter(|_| is_routine(group))?;
        self.routines.get(&number)
    }

    /// The routines of which a run may hold a device, or that watch it: those that name it. After a change of
    /// the site all, as a run ends under the definition with which it began. O(routines).
    pub(crate) fn routines_of(&self, device: NodeId) -> Vec<GroupId> {
        let names = |it: &Definition| self.generation > 0 || it.devices().contains(&device);
        let all = self.routines.iter().filter(|it| names(it.1));
        all.map(|it| Self::routine(*it.0)).collect()
    }

    /// Returns true if a routine was removed. O(log n).
    pub(crate) fn is_removed(&self, routine: GroupId) -> bool {
        let was_here = number(routine).is_some_and(|it| it < self.next.1);
        is_routine(routine) && was_here && self.definition(routine).is_none()
    }

    /// The number of this version: 0 when a building begins, higher in each later one.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns true if the site had this cluster or routine in generation 0, also if it was removed
    /// since. False for maps.
    #[must_use]
    pub fn is_founding(&self, group: GroupId) -> bool {
        let many = match group.0 & KIND {
            CLUSTER => self.founding.0,
            ROUTINE => self.founding.1,
            _ => 0,
        };
        number(group).is_some_and(|it| it < many)
    }

    /// The group that looks after a device. O(log n).
    #[must_use]
    pub fn cluster_of(&self, device: NodeId) -> Option<GroupId> {
        self.devices.get(&device).map(|it| Self::cluster(it.0))
    }

    /// The devices of a cluster, by id; none for another group.
    pub(crate) fn devices_of_cluster(&self, group: GroupId) -> &[NodeId] {
        let number = number(group).filter(|_| group.0 & KIND == CLUSTER);
        let cluster = number.and_then(|it| self.clusters.get(&it));
        cluster.map_or(&[], |it| &it.devices)
    }

    /// The devices of a cluster, or those that a routine needs, with their places; none for a map.
    /// In each epoch one of them is drawn, and the members of the group are near it.
    #[must_use]
    pub fn devices(&self, group: GroupId) -> Vec<(NodeId, Place)> {
        let ids = number(group).and_then(|it| match group.0 & KIND {
            CLUSTER => self.clusters.get(&it).map(|it| it.devices.clone()),
            ROUTINE => self.routines.get(&it).map(Definition::devices),
            _ => None,
        });
        let ids = ids.unwrap_or_default().into_iter();
        ids.filter_map(|it| Some((it, self.devices.get(&it)?.1)))
            .collect()
    }

    /// The state with which a group of generation 0 begins; nothing for a group that the site does not
    /// have.
    #[must_use]
    pub fn begin(&self, group: GroupId) -> Option<GroupState> {
        match group.0 & KIND {
            CLUSTER => {
                let devices = self.clusters.get(&number(group)?)?.devices.iter().copied();
                Some(GroupState::Devices(Devices::new(devices, self.limits)))
            }
            ROUTINE => {
                let state = RoutineState::new(self.definition(group)?.clone());
                debug_assert!(state.is_ok(), "definitions were checked");
                state.ok().map(|it| GroupState::Routine(it.into()))
            }
            _ if group == GroupId::REGISTRY => Some(GroupState::Registry(Box::default())),
            _ => group.is_map().then(|| GroupState::Map(Store::default())),
        }
    }

    /// The state with which a group begins later, after so many beginnings before: without devices, or
    /// without a definition. Its leader brings it up to the site.
    fn begin_later(&self, group: GroupId, before: u64, generation: u32) -> Option<GroupState> {
        match group.0 & KIND {
            _ if !self.has(group) => None,
            CLUSTER => {
                let devices = Devices::begun_again(self.limits, before, generation);
                Some(GroupState::Devices(devices))
            }
            ROUTINE => Some(GroupState::Routine(RoutineState::undefined(before).into())),
            _ if group.is_map() => Some(GroupState::Map(Store::after(before))),
            _ => self.begin(group),
        }
    }

    /// Returns true if the site has a group, or the group is a map or the registry. O(log n).
    fn has(&self, group: GroupId) -> bool {
        let number = number(group);
        match group.0 & KIND {
            CLUSTER => number.is_some_and(|it| self.clusters.contains_key(&it)),
            ROUTINE => number.is_some_and(|it| self.routines.contains_key(&it)),
            _ => group.is_map() || group == GroupId::REGISTRY,
        }
    }

    /// All groups that the site has: clusters and routines. Maps begin when they are used.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        let clusters = self.clusters.keys().copied().map(Self::cluster);
        clusters.chain(self.routines.keys().copied().map(Self::routine))
    }

    /// In generation 0 all numbers are of founding clusters and routines.
    const fn found(&mut self) {
        if self.generation == 0 {
            self.founding = self.next;
        }
    }

    /// A plan of these nodes under the settings of the site.
    fn plan_of(&self, nodes: impl IntoIterator<Item = Node>) -> Result<Plan, groups::ConfigError> {
        Plan::new(self.selection, nodes)?.with_frame_budget(self.frame_budget)
    }
}

/// Bytes as words, behind their number.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let chunks = bytes.chunks(8).map(|chunk| {
        let digits = chunk.iter().rev();
        digits.fold(0, |word, &byte| word << 8 | u64::from(byte))
    });
    [bytes.len() as u64].into_iter().chain(chunks)
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

    const HAS_REGISTRY: bool = true;

    fn begin_later(site: &Site, group: GroupId, before: u64, generation: u32) -> Option<Self> {
        site.begin_later(group, before, generation)
    }

    /// Maps hold what cannot be found out again.
    fn begins_anew(site: &Site, group: GroupId) -> bool {
        !group.is_map() && group != GroupId::REGISTRY && site.has(group)
    }

    fn is_founding(site: &Site, group: GroupId) -> bool {
        site.is_founding(group)
    }

    fn exists(site: &Site, group: GroupId) -> bool {
        site.has(group)
    }

    fn registry(&self) -> Option<&Registry> {
        match self {
            Self::Registry(registry) => Some(registry),
            Self::Devices(_) | Self::Routine(_) | Self::Map(_) => None,
        }
    }

    fn register(registration: Registration) -> Option<Update> {
        Some(Update::Registry(registration))
    }

    fn encode(site: &Site) -> Vec<u8> {
        site.encode()
    }

    fn decode(bytes: &[u8]) -> Option<(Site, Plan)> {
        let site = Site::decode(bytes).ok()?;
        let plan = site.plan().ok()?;
        Some((site, plan))
    }
}
