//! The devices of a cluster in the state of a group.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_groups::GroupId;
use serde::{Deserialize, Serialize};

use super::act::Act;
use super::config::Limits;
use super::decision::{Decision, Verdict};
use super::device::{Device, Terms, known_as};
#[cfg(feature = "check")]
use super::published::Published;
use super::published::Rules;
use super::update::Update;
use crate::{Claim, Status};

/// The devices of a cluster.
///
/// An update costs O(log n) for n devices, and O(log r + q) for r routines and a queue of q claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Devices {
    limits: Limits,
    /// In order of ids.
    devices: Vec<Device>,
    /// The highest generation of a site by which it was changed.
    generation: u32,
    /// The number of beginnings before, of which the memory was lost.
    before: u32,
    #[serde(skip)]
    rules: Rules,
}

impl Devices {
    /// Devices that no routine has asked for, and of which nothing is known. A repeated id names
    /// one device. O(n log n).
    #[must_use]
    pub fn new(devices: impl IntoIterator<Item = NodeId>, limits: Limits) -> Self {
        let mut ids: Vec<NodeId> = devices.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self {
            limits,
            devices: ids.into_iter().map(|it| Device::new(it, 0)).collect(),
            generation: 0,
            before: 0,
            rules: Rules::default(),
        }
    }

    /// A cluster without devices, after so many beginnings of which the memory was lost, the last one in
    /// this generation of the site or a former one. Commands and statuses have higher numbers than all before,
    /// and devices are [closed](Self::is_open) when they enter.
    #[must_use]
    pub fn begun_again(limits: Limits, before: u64, generation: u32) -> Self {
        Self {
            before: u32::try_from(before).unwrap_or(u32::MAX),
            generation: if before > 0 { generation } else { 0 },
            ..Self::new([], limits)
        }
    }

    /// The same under rules that break promises.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn published(mut self, rules: &[Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// The devices, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.devices.iter().map(|it| it.id)
    }

    /// The limits for each device.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The highest generation of a site by which it was changed; 0 before the first change.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The routines of which a device remembers a claim or a watch; one may come twice.
    pub fn routines(&self, device: NodeId) -> impl Iterator<Item = GroupId> {
        self.device(device).into_iter().flat_map(Device::routines)
    }

    /// The known status of a device; `None` where the cluster has no such device. O(log n).
    #[must_use]
    pub fn status(&self, device: NodeId) -> Option<&Status> {
        Some(&self.device(device)?.status)
    }

    /// Returns false for a device of a cluster that has begun anew, until its routines have answered whether
    /// they hold it. No claim gets it before that. O(log n).
    #[must_use]
    pub fn is_open(&self, device: NodeId) -> bool {
        self.device(device).is_some_and(|it| it.is_open)
    }

    /// Distinguishes the times at which a device entered the cluster.
    pub(super) fn since(&self, device: NodeId) -> Option<u64> {
        Some(self.device(device)?.since)
    }

    /// The claim that holds a device. O(log n).
    #[must_use]
    pub fn holder(&self, device: NodeId) -> Option<Claim> {
        self.device(device)?.lock.holder
    }

    /// The claims that wait for a device, the first one first.
    pub fn queue(&self, device: NodeId) -> impl Iterator<Item = Claim> {
        let device = self.device(device);
        device
            .into_iter()
            .flat_map(|it| it.lock.queue.iter().copied())
    }

    /// The last command to a device. O(log n).
    #[must_use]
    pub fn act(&self, device: NodeId) -> Option<&Act> {
        self.device(device)?.act.as_ref()
    }

    /// The routines that watch a device, in order.
    pub fn watchers(&self, device: NodeId) -> impl Iterator<Item = GroupId> {
        let device = self.device(device);
        device
            .into_iter()
            .flat_map(|it| it.watchers.iter().copied())
    }

    /// The time for which a device that sleeps has not reported, as far as it was decided. O(log n).
    #[must_use]
    pub fn silent(&self, device: NodeId) -> Span {
        self.device(device).map_or(Span::ZERO, |it| it.silent)
    }

    /// Returns true if a claim was released at a device, or is earlier than another one of its
    /// routine: it never holds the device again, and never waits for it. O(log n + log r).
    #[must_use]
    pub fn is_over(&self, device: NodeId, claim: Claim) -> bool {
        let device = self.device(device);
        device.is_some_and(|it| it.lock.is_over(claim))
    }

    /// The verdict on an update that would change nothing. A leader may answer it without a
    /// decision of its group: no decision of another leader makes it false for the routine that
    /// asks, and [`Busy`](Decision::Busy) and the like cost time at worst.
    #[must_use]
    pub fn judge(&self, update: &Update) -> Option<Verdict> {
        let id = update.device();
        if update
            .edits()
            .is_some_and(|it| it < self.terms().generation)
        {
            return Some(Verdict::new(id, Decision::Outdated));
        }
        let decision = match (update, self.device(id)) {
            // A host may still carry the command out: no claim has the device elsewhere meanwhile.
            (Update::Exit { .. }, Some(device)) if device.acts() || !device.is_open => {
                Decision::Waits
            }
            (Update::Enter { .. }, None) | (Update::Exit { .. }, Some(_)) => return None,
            (Update::Enter { .. }, Some(_)) | (Update::Exit { .. }, None) => Decision::Nothing,
            (_, None) => Decision::NoDevice,
            (_, Some(device)) => device.judge(update, self.terms())?,
        };
        Some(Verdict::new(id, decision))
    }

    /// Returns true if a claim holds a device, under the identity that the rules give it. O(log n).
    pub(super) fn is_held_by(&self, device: NodeId, claim: Claim) -> bool {
        self.holder(device) == Some(known_as(claim, self.rules))
    }

    pub(super) const fn rules(&self) -> Rules {
        self.rules
    }

    const fn terms(&self) -> Terms {
        Terms {
            limits: self.limits,
            rules: self.rules,
            generation: match self.rules.any_generation() {
                true => 0,
                false => self.generation,
            },
        }
    }

    fn device(&self, id: NodeId) -> Option<&Device> {
        let at = self.place(id).ok()?;
        self.devices.get(at)
    }

    fn place(&self, id: NodeId) -> Result<usize, usize> {
        self.devices.binary_search_by_key(&id, |it| it.id)
    }

    /// Follows a later generation of the site.
    fn edit(&mut self, generation: u32, update: &Update) -> Verdict {
        let terms = self.terms();
        let id = update.device();
        self.generation = self.generation.max(generation);
        match (self.place(id), update) {
            (Err(at), Update::Enter { .. }) => {
                let since = since(generation, self.before);
                let device = Device::new(id, since);
                let device = match self.before == 0 || self.rules.forgets_locks() {
                    true => device,
                    false => device.closed(),
                };
                self.devices.insert(at, device);
                Verdict::new(id, Decision::Entered)
            }
            (Ok(at), Update::Exit { .. }) => {
                self.devices.remove(at);
                Verdict::new(id, Decision::Exited)
            }
            (at, _) => match at.ok().and_then(|at| self.devices.get_mut(at)) {
                Some(device) => device.apply(update, terms),
                None => Verdict::new(id, Decision::NoDevice),
            },
        }
    }
}

/// Rises with each later entry of a device, in any cluster.
fn since(generation: u32, before: u32) -> u64 {
    let (generation, before) = (u64::from(generation), u64::from(before));
    generation.min((1 << 26) - 1) << 6 | before.min((1 << 6) - 1)
}

impl selvedge_replica::State for Devices {
    type Update = Update;
    type Outcome = Verdict;

    fn apply(&mut self, update: &Update) -> Verdict {
        if let Some(generation) = update.edits() {
            let verdict = self.judge(update);
            return verdict.unwrap_or_else(|| self.edit(generation, update));
        }
        let id = update.device();
        let terms = self.terms();
        let at = self.place(id).ok();
        let Some(device) = at.and_then(|at| self.devices.get_mut(at)) else {
            return Verdict::new(id, Decision::NoDevice);
        };
        let verdict = device.apply(update, terms);
        if let (Update::Lock { generation, .. }, Decision::Granted(_) | Decision::Queued(_)) =
            (update, verdict.decision)
        {
            // A leader with an older site may not have the routine: it does not forget it.
            self.generation = self.generation.max(*generation);
        }
        verdict
    }
}
