//! A cluster that has begun anew finds out which claims hold its devices.
//!
//! The memory of its former beginning is lost, and that beginning can decide nothing more. Runs go on: a
//! run that executes holds its devices, and its cluster does not know it any more. So a device is closed
//! at first: no claim gets it, and it gets no command. The leader asks each routine, which answers from
//! a state that is up to date:
//!
//! - its run executes: its claim holds the device, as before. Commands that may have been given, and may not be
//!   given twice, are over;
//! - it rests, or gives its devices back: all its claims so far are over;
//! - it gets its devices: the former beginning may have granted this one. So the leader has it try again, and
//!   the next try, which begins after the former beginning has ended, needs a grant of this one.
//!
//! When each routine has answered, the device opens. A host of the former beginning may carry a command out
//! late, so the device is held first, as after a takeover.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_routine::State;

use super::act::Act;
use super::decision::Decision;
use super::device::Device;
use super::edits::Listed;
use super::lock::Around;
use super::machine::{DeviceLeader, Out};
use super::state::Devices;
use super::update::Update;
use crate::effect::Effect;
use crate::message::Progress;
use crate::{Answer, Claim, Delivery, Outcome, Request};

/// The most routines that are asked at once about a device.
const ASKED: usize = 32;

/// The answers of routines about a closed device, in a leader's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reclaim {
    answered: BTreeSet<GroupId>,
    /// The tries that a former beginning may have granted.
    superseded: BTreeMap<GroupId, Claim>,
}

impl DeviceLeader {
    /// Asks the routines of the site that have not answered, for each closed device, or for this one: when it
    /// begins to lead, when its node has another site, when a device enters, and at each
    /// [`Timer::Ping`](super::Timer::Ping).
    ///
    /// It asks about an open device whose holder does not name it any more, too: the memory of its routine may
    /// have been lost.
    pub fn ask_routines(
        &mut self,
        state: &Devices,
        (cluster, site): (GroupId, &Listed<'_>),
        only: Option<NodeId>,
        out: &mut Out,
    ) {
        let is_asked = |it: &NodeId| only.is_none_or(|only| only == *it);
        for device in state.ids().filter(is_asked) {
            let silent: Vec<GroupId> = match state.is_open(device) {
                true => {
                    let holder = state.holder(device).map(|it| it.routine);
                    let is_lost = |it: &GroupId| !(site.names)(*it, device);
                    holder.filter(is_lost).into_iter().collect()
                }
                false => self.silent(device, site),
            };
            let since = state.since(device).unwrap_or_default();
            let request = Request::Progress {
                cluster,
                device,
                since,
            };
            let asks = silent.into_iter().take(ASKED).map(|group| Effect::Ask {
                group,
                request: request.clone(),
            });
            out.extend(asks);
            self.open(state, device, site, out);
        }
    }

    fn silent(&mut self, device: NodeId, site: &Listed<'_>) -> Vec<GroupId> {
        let Some(probe) = self.probe(device) else {
            return Vec::new();
        };
        let answered = &probe.reclaim.answered;
        let mut routines = (site.routines_of)(device);
        routines.retain(|it| !answered.contains(it));
        routines
    }

    /// Opens a device once all routines of the site have answered.
    pub fn open(&mut self, state: &Devices, device: NodeId, site: &Listed<'_>, out: &mut Out) {
        let generation = site.generation;
        let open = Update::Open { generation, device };
        // A later site may have more routines.
        let is_behind = generation < state.generation();
        let is_closed = state.status(device).is_some() && !state.is_open(device);
        if is_closed && !is_behind && self.silent(device, site).is_empty() {
            let may_open = state.judge(&open).is_none();
            out.extend(may_open.then_some(Effect::Propose(open)));
        }
    }

    /// A routine answers.
    pub fn on_progress(
        &mut self,
        state: &Devices,
        (routine, answer): (GroupId, &Answer),
        site: &Listed<'_>,
        out: &mut Out,
    ) {
        let &Answer::Progress {
            device,
            since,
            progress,
            watches,
            ..
        } = answer
        else {
            return;
        };
        let claim = progress.claim();
        let is_right = claim.routine == routine && (site.routines_of)(device).contains(&routine);
        if state.since(device) != Some(since) || !is_right {
            return; // It is about a former time, or the site has changed.
        }
        let generation = site.generation;
        if state.is_open(device) {
            let holder = state.holder(device);
            let holder = holder.filter(|it| it.routine == routine && *it <= claim);
            if let (Progress::Over { .. }, Some(claim)) = (progress, holder) {
                out.push(Effect::Propose(Update::Release {
                    device,
                    claim,
                    generation,
                }));
            }
            return;
        }
        if generation < state.generation() {
            return; // It is asked again.
        }
        let watch = Update::Watch {
            device,
            routine,
            generation,
        };
        if watches && state.judge(&watch).is_none() {
            // It counts as an answer when that is decided: it is asked again.
            return out.push(Effect::Propose(watch));
        }
        let Some(probe) = self.probe(device) else {
            return;
        };
        // It needs no mark: a late lock of a claim that is over is given back by the question about holders.
        let is_stranger = !(site.names)(routine, device)
            && state.holder(device).is_none_or(|it| it.routine != routine);
        let given = match progress {
            Progress::Over { .. } if is_stranger => {
                probe.reclaim.answered.insert(routine);
                return;
            }
            Progress::Over { .. } => None,
            Progress::Executes { given, .. } => Some(given),
            Progress::Acquires { .. } => {
                let first = *probe.reclaim.superseded.entry(routine).or_insert(claim);
                if claim > first {
                    probe.reclaim.answered.insert(routine);
                } else {
                    let answer = Answer::Over { device, claim };
                    let group = routine;
                    out.push(Effect::Inform { group, answer });
                }
                return;
            }
        };
        let update = Update::Reclaim {
            device,
            since,
            claim,
            given,
        };
        match state.judge(&update) {
            Some(verdict) => self.on_reclaimed(device, verdict.decision),
            None => out.push(Effect::Propose(update)),
        }
    }

    pub(super) fn on_opened(&mut self, device: NodeId) {
        if let Some(probe) = self.probe(device) {
            probe.reclaim = Reclaim::default();
        }
    }

    /// The group has decided a routine's answer.
    pub(super) fn on_reclaimed(&mut self, device: NodeId, decision: Decision) {
        if let (Decision::Reclaimed(routine), Some(probe)) = (decision, self.probe(device)) {
            probe.reclaim.answered.insert(routine);
        }
    }
}

impl Device {
    /// A device of a cluster that has begun anew: closed, and held for a command of the former beginning.
    pub(super) fn closed(mut self) -> Self {
        self.is_open = false;
        // No routine has this claim. Its turn is not the first: another leader may have given it.
        let nobody = Claim {
            routine: GroupId(0),
            instance: 0,
            attempt: 0,
        };
        self.act = Some(Act {
            number: self.base(),
            claim: nobody,
            step: 0,
            value: State::Word(String::new()),
            delivery: Delivery::AtMostOnce,
            by: Member::new(0, 0),
            turn: 1,
            waited: Span::ZERO,
            outcome: Some(Outcome::Unknown),
            is_settled: false,
        });
        self
    }

    /// The outcome of a routine's answer that would change nothing.
    pub(super) fn judge_reclaim(
        &self,
        since: u64,
        claim: Claim,
        given: Option<u16>,
    ) -> Option<Decision> {
        let is_held = self.lock.holder == Some(claim);
        let is_other = self.lock.holder.is_some_and(|it| it != claim);
        let is_known = self.lock.is_over(claim) || given.is_some() && is_held;
        match is_known {
            _ if self.is_open || since != self.since => Some(Decision::Nothing),
            true => Some(Decision::Reclaimed(claim.routine)),
            // A routine that lies.
            false if given.is_some() && is_other => Some(Decision::Nothing),
            false => None,
        }
    }

    /// Takes a routine's answer: the claim holds the device, and steps before `given` are over, or the claim
    /// is over.
    pub(super) fn reclaim(&mut self, claim: Claim, given: Option<u16>, around: Around) -> Decision {
        let Some(given) = given else {
            self.lock.end(claim, around);
            return Decision::Reclaimed(claim.routine);
        };
        self.lock.regain(claim, around);
        if let (Some(last), Some(act)) = (given.checked_sub(1), &mut self.act) {
            act.claim = claim;
            act.step = last;
        }
        Decision::Reclaimed(claim.routine)
    }
}
