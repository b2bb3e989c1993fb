//! The time for which routines wait for free devices, by the states of leaders after each step.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{NodeId, Span, Time};
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::Devices;
use selvedge_kgroup::routines::Stage;
use selvedge_kgroup::{Claim, GroupState, Kgroup};
use selvedge_sim::network::Happened;

use super::house::House;
use super::spot::Spot;

/// The waits of runs for devices that other runs held.
#[derive(Default)]
pub(super) struct Waits {
    /// From the moment at which a run gives a device back, as its group decides, to the moment at
    /// which the device's group gives it to the next run in its queue.
    pub(super) locks: Vec<Span>,
    /// From the moment at which the last device of a run becomes free to its first step.
    pub(super) syncs: Vec<Span>,
    /// The number of runs that began.
    pub(super) runs: u64,
    /// The claim that held a device last.
    holders: BTreeMap<NodeId, Claim>,
    /// Claims that hold or held a device: a leader that is behind shows some of them again.
    known: BTreeSet<(NodeId, Claim)>,
    queued: BTreeSet<(NodeId, Claim)>,
    triggered: BTreeMap<Claim, Time>,
    begun: BTreeSet<Claim>,
    over: BTreeMap<Claim, Time>,
    /// For a run, the last moment at which one of its devices became free.
    free: BTreeMap<Claim, Time>,
}

impl Waits {
    /// Runs until then, and records changes of the leaders' states.
    pub(super) fn run_until(&mut self, house: &mut House, until: Time) {
        while house.net.next_at().is_some_and(|at| at <= until) {
            if let Some(step) = house.net.step() {
                match step.happened {
                    Happened::Delivered { node } | Happened::Ticked { node, .. } => {
                        self.look_at(house, node, step.at);
                    }
                    Happened::Lost { .. } | Happened::Stored { .. } | Happened::Acted { .. } => {}
                }
            }
            house.net.drain_events();
        }
        house.net.run_until(until);
    }

    fn look_at(&mut self, house: &House, node: usize, now: Time) {
        let Some(node) = house.net.machine(node).and_then(Spot::node) else {
            return;
        };
        for group in node.leads() {
            self.look_in(node, group, now);
        }
    }

    fn look_in(&mut self, node: &Kgroup, group: GroupId, now: Time) {
        match node.held(group) {
            Some(GroupState::Devices(held)) => {
                for device in held.ids() {
                    self.on_device(held, device, now);
                }
            }
            Some(GroupState::Routine(routine)) => {
                if let Some(claim) = routine.claim(group) {
                    self.on_run(claim, routine.stage(), now);
                }
            }
            Some(GroupState::Map(_)) | None | Some(_) => {}
        }
    }

    fn on_device(&mut self, held: &Devices, device: NodeId, now: Time) {
        self.queued
            .extend(held.queue(device).map(|it| (device, it)));
        let Some(claim) = held.holder(device) else {
            return;
        };
        if !self.known.insert((device, claim)) {
            return;
        }
        let before = self.holders.insert(device, claim);
        let Some(free) = before.and_then(|it| self.over.get(&it)).copied() else {
            return; // The first one.
        };
        if self.queued.contains(&(device, claim)) {
            self.locks.push(now.since(free));
        }
        let last = self.free.entry(claim).or_insert(free);
        *last = free.max(*last);
    }

    fn on_run(&mut self, claim: Claim, stage: &Stage, now: Time) {
        match stage {
            Stage::AcquiringLocks { .. } => {
                self.triggered.entry(claim).or_insert(now);
            }
            Stage::Executing { .. } => {
                if !self.begun.insert(claim) {
                    return;
                }
                self.runs += 1;
                let triggered = self.triggered.get(&claim);
                let free = self.free.get(&claim);
                // A run that found all devices free waited for none.
                if let Some(free) = free.filter(|it| triggered.is_some_and(|from| *it >= from)) {
                    self.syncs.push(now.since(*free));
                }
            }
            Stage::ReleasingLocks { .. } => {
                self.over.entry(claim).or_insert(now);
            }
            Stage::NotTriggered => {}
        }
    }
}
