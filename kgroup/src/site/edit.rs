//! Edits of a site, and its next generation.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_groups::{Cluster, Node, Place};

use super::Site;
use crate::ConfigError;
use crate::routines::Definition;

/// The nodes that are remembered after their removal. Each is replaced in its groups within an epoch or
/// so, and more than that many are not removed meanwhile.
pub(super) const FORMER_MAX: usize = 64;

/// The bytes of a frame that are not a definition's when it is sent to its group: header, sender, the
/// message of a replica and the names of nodes in it, whose ids may have any length. As for the
/// [states of devices](Site::with_frame_budget).
const AROUND_DEFINITION: usize = 190;

impl Site {
    /// The same site with one more routine. Its number is the lowest that none has had: from 0, one more for
    /// each. Its group is [`Site::routine`] of the number.
    ///
    /// # Errors
    /// The routine cannot work, or needs a device that the site does not have, or is
    /// [too long](ConfigError::TooLong) after generation 0.
    pub fn with_routine(self, definition: Definition) -> Result<Self, ConfigError> {
        let number = self.next.1;
        let mut site = self.define(number, definition)?;
        site.next.1 = following(number, "numbers of routines")?;
        site.found();
        Ok(site)
    }

    /// The same site with this routine in place of the one that has the number.
    ///
    /// # Errors
    /// No routine has the number, or as for [`with_routine`](Self::with_routine).
    pub fn with_routine_changed(
        self,
        number: u32,
        definition: Definition,
    ) -> Result<Self, ConfigError> {
        self.routines.get(&number).ok_or_else(|| absent(number))?;
        self.define(number, definition)
    }

    /// The same site without a routine. No other one gets its number.
    ///
    /// # Errors
    /// No routine has the number.
    pub fn without_routine(mut self, number: u32) -> Result<Self, ConfigError> {
        let removed = self.routines.remove(&number);
        removed.ok_or_else(|| absent(number))?;
        Ok(self)
    }

    /// The same site with one more device, in the cluster with the nearest centre of those that have fewer
    /// devices than [`new`](Self::new) was given as `cluster`; without such a cluster, in a new one. A
    /// device that the site has gets this place, and stays in its cluster.
    ///
    /// O(n log n).
    ///
    /// # Errors
    /// [`ConfigError::Exhausted`]
    pub fn with_device(mut self, device: NodeId, place: Place) -> Result<Self, ConfigError> {
        let known = self.devices.get(&device).map(|it| it.0);
        let cluster = match known.or_else(|| self.nearest_with_room(place)) {
            Some(number) => number,
            None => {
                let number = self.next.0;
                self.next.0 = following(number, "numbers of clusters")?;
                self.found();
                number
            }
        };
        self.devices.insert(device, (cluster, place));
        self.clusters = grouped(&self.devices);
        Ok(self)
    }

    /// The same site without a device, and without its cluster if it was the last one there.
    ///
    /// O(n log n).
    ///
    /// # Errors
    /// The site does not have it, or a routine [needs](ConfigError::Needed) it.
    pub fn without_device(mut self, device: NodeId) -> Result<Self, ConfigError> {
        let mut routines = self.routines.iter();
        let needing = routines.find(|it| it.1.devices().binary_search(&device).is_ok());
        if let Some((&routine, _)) = needing {
            return Err(ConfigError::Needed { device, routine });
        }
        let (kind, id) = ("device", device.0);
        let removed = self.devices.remove(&device);
        removed.ok_or(ConfigError::Absent { kind, id })?;
        self.wake_intervals.remove(&device);
        self.clusters = grouped(&self.devices);
        Ok(self)
    }

    /// The same site with one more node, or with this place and weight for a node that it has.
    ///
    /// # Errors
    /// Frames have no room for the names of a group's members.
    pub fn with_node(self, node: Node) -> Result<Self, ConfigError> {
        let others = self.nodes.iter().copied().filter(|it| it.id != node.id);
        let nodes = others.chain([node]).collect();
        self.with_nodes(nodes)
    }

    /// The same site without a node, which it lists as a [former](Self::former_nodes) one.
    ///
    /// # Errors
    /// The site does not have it, or too few are left for a group.
    pub fn without_node(self, id: NodeId) -> Result<Self, ConfigError> {
        let nodes = self.nodes.iter().copied();
        let others: Vec<Node> = nodes.filter(|it| it.id != id).collect();
        if others.len() == self.nodes.len() {
            let (kind, id) = ("node", id.0);
            return Err(ConfigError::Absent { kind, id });
        }
        self.with_nodes(others)
    }

    /// The next generation of this site: it has the nodes, devices, places, wake intervals and routines of `wanted`. What
    /// this site has as well keeps its number here: clusters of devices stay together, and routines are
    /// the same if their numbers are. The clusters of `wanted` do not count.
    ///
    /// Its generation is that of `wanted` if this is later, else one more than the present one. Equal
    /// sites give an equal site.
    ///
    /// # Errors
    /// A setting differs that [stays](ConfigError::Fixed) while groups run: the origin, the selection, the
    /// limits, the frame budget, the size of clusters. A routine has the number of one that was
    /// [removed](ConfigError::Removed), or is new or changed, and [too long](ConfigError::TooLong).
    /// [`ConfigError::Exhausted`].
    pub fn changed_to(&self, wanted: &Self) -> Result<Self, ConfigError> {
        self.check_settings(wanted)?;
        let mut next = self.clone();
        next.generation = match wanted.generation > self.generation {
            true => wanted.generation,
            false => following(self.generation, "generations")?,
        };
        next = next.with_nodes(wanted.nodes.clone())?;
        next.devices.retain(|it, _| wanted.devices.contains_key(it));
        next.clusters = grouped(&next.devices);
        // Devices move before others join the nearest ones.
        let (known, new): (Vec<_>, Vec<_>) =
            (wanted.devices.iter()).partition(|it| next.devices.contains_key(it.0));
        for (&device, &(_, place)) in known.into_iter().chain(new) {
            if next.devices.get(&device).is_none_or(|it| it.1 != place) {
                next = next.with_device(device, place)?;
            }
        }
        next.wake_intervals.clone_from(&wanted.wake_intervals);
        next.routines
            .retain(|it, _| wanted.routines.contains_key(it));
        for (&routine, definition) in &wanted.routines {
            let known = self.routines.get(&routine);
            if known.is_none() && routine < self.next.1 {
                let next = self.next.1.max(wanted.next.1);
                return Err(ConfigError::Removed { routine, next });
            }
            if known != Some(definition) {
                next = next.define(routine, definition.clone())?;
            }
        }
        next.next.1 = self.next.1.max(wanted.next.1);
        Ok(next)
    }

    /// The kind and the id of the first part that differs from another site with the same settings.
    pub(crate) fn difference(&self, other: &Self) -> Option<(&'static str, u64)> {
        let nodes = |it: &Self| it.nodes.iter().map(|it| (it.id.0, *it)).collect();
        let devices = |site: &Self| {
            let devices = site.devices.iter();
            let all = devices.map(|it| (it.0.0, (it.1.1, site.wake_interval(*it.0))));
            all.collect()
        };
        let one = self.routines.iter().map(|it| ((*it.0).into(), it.1));
        let routines = other.routines.iter().map(|it| ((*it.0).into(), it.1));
        let node = first_difference(&nodes(self), &nodes(other)).map(|it| ("node", it));
        let device = || Some(("device", first_difference(&devices(self), &devices(other))?));
        let routine = || {
            let found = first_difference(&one.collect(), &routines.collect());
            Some(("routine", found?))
        };
        node.or_else(device).or_else(routine)
    }

    /// Checks nodes, settings and routines.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.plan_of(self.nodes.iter().copied())?;
        self.check_wake_intervals()?;
        self.routines.iter().try_for_each(|(&number, it)| {
            self.check_routine(number, it)?;
            match number < self.founding.1 {
                true => Ok(()),
                false => self.check_length(number, it),
            }
        })
    }

    fn check_settings(&self, wanted: &Self) -> Result<(), ConfigError> {
        let settings = |it: &Self| {
            [
                ("origin", it.origin.into()),
                ("frame_budget", it.frame_budget.into()),
                ("cluster", it.cluster_size.into()),
                ("queue", it.limits.queue.into()),
                ("routines", it.limits.routines.into()),
                ("watchers", it.limits.watchers.into()),
                ("word", it.limits.word.into()),
            ]
        };
        for ((setting, running), (_, found)) in settings(self).into_iter().zip(settings(wanted)) {
            if found != running {
                return Err(ConfigError::Fixed {
                    setting,
                    found,
                    running,
                });
            }
        }
        let (found, running) = (wanted.selection, self.selection);
        match found == running {
            true => Ok(()),
            false => Err(ConfigError::Selection { found, running }),
        }
    }

    fn check_routine(&self, routine: u32, definition: &Definition) -> Result<(), ConfigError> {
        let checked = definition.check();
        checked.map_err(|error| ConfigError::Routine { routine, error })?;
        let mut devices = definition.devices().into_iter();
        match devices.find(|it| !self.devices.contains_key(it)) {
            Some(device) => Err(ConfigError::NoDevice { routine, device }),
            None => Ok(()),
        }
    }

    fn check_length(&self, routine: u32, definition: &Definition) -> Result<(), ConfigError> {
        let length = postcard::to_allocvec(definition).map_or(usize::MAX, |it| it.len());
        let limit = usize::from(self.frame_budget).saturating_sub(AROUND_DEFINITION);
        match length > limit {
            true => Err(ConfigError::TooLong {
                routine,
                length,
                limit,
            }),
            false => Ok(()),
        }
    }

    /// Founding routines are not sent: each node begins with them.
    fn define(mut self, routine: u32, definition: Definition) -> Result<Self, ConfigError> {
        self.check_routine(routine, &definition)?;
        if self.generation > 0 {
            self.check_length(routine, &definition)?;
        }
        self.routines.insert(routine, definition);
        Ok(self)
    }

    fn with_nodes(mut self, nodes: Vec<Node>) -> Result<Self, ConfigError> {
        let nodes = self.plan_of(nodes)?.nodes().to_vec();
        self.former.extend(self.nodes.iter().map(|it| it.id));
        let is_here = |id: &NodeId| nodes.binary_search_by_key(id, |it| it.id).is_ok();
        self.former.retain(|it| !is_here(it));
        self.nodes = nodes;
        let dropped = self.former.len().saturating_sub(FORMER_MAX);
        self.former.drain(..dropped);
        Ok(self)
    }

    fn nearest_with_room(&self, place: Place) -> Option<u32> {
        let has_room = |it: &Cluster| (it.devices.len() as u64) < self.cluster_size.into();
        let open = self.clusters.iter().filter(|it| has_room(it.1));
        let nearest = open.min_by_key(|it| it.1.centre.distance_squared(place))?;
        Some(*nearest.0)
    }
}

/// Devices by the numbers of their clusters.
pub(super) fn grouped(devices: &BTreeMap<NodeId, (u32, Place)>) -> BTreeMap<u32, Cluster> {
    let mut members: BTreeMap<u32, Vec<(NodeId, Place)>> = BTreeMap::new();
    for (&device, &(cluster, place)) in devices {
        members.entry(cluster).or_default().push((device, place));
    }
    let clusters = members.into_iter();
    clusters.map(|(it, all)| (it, Cluster::of(all))).collect()
}

fn first_difference<T: PartialEq>(one: &BTreeMap<u64, T>, other: &BTreeMap<u64, T>) -> Option<u64> {
    let all = one.keys().chain(other.keys()).copied();
    all.filter(|it| one.get(it) != other.get(it)).min()
}

fn absent(routine: u32) -> ConfigError {
    let (kind, id) = ("routine", routine.into());
    ConfigError::Absent { kind, id }
}

fn following(number: u32, kind: &'static str) -> Result<u32, ConfigError> {
    let next = number.checked_add(1);
    next.ok_or(ConfigError::Exhausted { kind })
}
