//! A leader's part in changes of the site: its group follows the site that its node has.
//!
//! Nodes adopt a later generation of the site one after another, so two leaders may follow two
//! generations. A group's state never goes back: an update of a lower generation than the state's changes
//! nothing, nor does the first lock of a routine that asks from a lower one. So a routine that was forgotten
//! needs no mark, and a device that comes back is not held by a request from before.
//!
//! The leader proposes one update at a time, the next one when that is applied, and again at each
//! [`Timer::Ping`](super::Timer::Ping).

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};
use selvedge_groups::GroupId;

use super::event::{Event, Timer};
use super::machine::{DeviceLeader, Out};
use super::probe::Probe;
use super::state::Devices;
use super::update::Update;
use crate::effect::Effect;
use crate::{Answer, Request};

/// The part of a site on which a cluster depends.
pub struct Listed<'a> {
    /// The generation of the site.
    pub generation: u32,
    /// The devices of the cluster.
    pub devices: &'a [NodeId],
    /// Returns true for a routine of the site.
    pub has_routine: &'a dyn Fn(GroupId) -> bool,
    /// Returns the routines of which a run may hold a device, or that watch it.
    pub routines_of: &'a dyn Fn(NodeId) -> Vec<GroupId>,
    /// Returns true if the present definition of a routine names a device.
    pub names: &'a dyn Fn(GroupId, NodeId) -> bool,
}

/// The first update by which a state would follow a site more closely.
pub(super) fn next_edit(state: &Devices, site: &Listed<'_>) -> Option<Update> {
    let generation = site.generation;
    let left = state.ids().find(|it| !site.devices.contains(it));
    let exit = left.map(|device| Update::Exit { generation, device });
    let came = |it: &&NodeId| state.status(**it).is_none();
    let enter = || {
        let device = *site.devices.iter().find(came)?;
        Some(Update::Enter { generation, device })
    };
    let forget = || {
        state.ids().find_map(|device| {
            let routine = state.routines(device).find(|it| !(site.has_routine)(*it))?;
            Some(Update::Forget {
                generation,
                device,
                routine,
            })
        })
    };
    exit.or_else(enter).or_else(forget)
}

impl DeviceLeader {
    /// Compares the state with the site of this node, and proposes what is missing: when it begins to
    /// lead, when the node adopts another site, when such an update is applied, and at each
    /// [`Timer::Ping`].
    pub fn sync(&mut self, state: &Devices, site: &Listed<'_>, out: &mut Out) {
        self.generation = site.generation;
        let awaited = site.devices.iter().copied();
        self.awaited = awaited.filter(|it| state.status(*it).is_none()).collect();
        if site.generation >= state.generation() {
            out.extend(next_edit(state, site).map(Effect::Propose));
        }
    }

    /// The site of this node does not have the routine that asks. If the routine is of a later site, it
    /// asks again; else its run ends, and its group will.
    pub fn refuse(&self, from: Member, request: &Request, out: &mut Out) {
        if let (Some(device), Some(routine)) = (request.device(), request.routine()) {
            self.lacks(from, (routine, device), out);
        }
    }

    /// The group has no such device. It may be about to get it: then the routine asks again.
    pub(super) fn lacks(&self, to: Member, (routine, device): (GroupId, NodeId), out: &mut Out) {
        if self.awaited.contains(&device) {
            return;
        }
        let generation = self.generation;
        let answer = Answer::NoDevice {
            device,
            routine,
            generation,
        };
        out.push(Effect::Answer { to, answer });
    }

    /// A device came or left.
    pub(super) fn on_listed(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        // It may have left and come back at once: then nothing holds that was known of it.
        if let Ok(at) = self.place(device) {
            self.probes.remove(at);
            out.push(Effect::Disarm(Timer::Act(device)));
            self.on_left(device, out);
        }
        self.awaited.retain(|it| *it != device);
        if state.status(device).is_none() {
            return;
        }
        if let Err(at) = self.place(device) {
            self.probes.insert(at, (device, Probe::default()));
        }
        if self.sleepers.contains_key(&device) {
            self.count_anew(device, out);
        } else {
            if let Some(probe) = self.probe(device) {
                probe.is_asked = true;
            }
            out.push(Effect::Event(Event::Ping { device }));
            self.arm(Timer::Unanswered, out);
        }
        // The device is held for a command of a former beginning.
        if let Some(act) = state.act(device) {
            self.on_found(device, act, out);
        }
    }

    /// A routine was removed.
    pub(super) fn on_forgotten(&mut self, routine: GroupId, device: NodeId) {
        if let Some(probe) = self.probe(device) {
            probe.on_seen(routine);
        }
    }
}
