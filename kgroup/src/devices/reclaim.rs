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
use super::device::{Device, Terms};
use super::edits::Listed;
use super::machine::{DeviceLeader, Out};
use super::state::Devices;
use super::update::Update;
use crate::effect::Effect;
use crate::message::Progress;
use crate::{Answer, Claim, Delivery, Outcome, Request};

/// The answers of routines about a closed device, in a leader's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reclaim {
    answered: BTreeSet<GroupId>,
    /// The tries that a former beginning may have granted.
    superseded: BTreeMap<GroupId, Claim>,
}

impl DeviceLeader {
    /// Asks the routines of the site that have not answered, for each closed device. Opens a device of which
    /// all have.
    pub(super) fn reclaim(&mut self, state: &Devices, site: &Listed<'_>, out: &mut Out) {
        let generation = site.generation;
        if generation < state.generation() {
            return; // A later site may have more routines.
        }
        let closed: Vec<NodeId> = state.ids().filter(|it| !state.is_open(*it)).collect();
        for device in closed {
            let Some(probe) = self.probe(device) else {
                continue;
            };
            let answered = &probe.reclaim.answered;
            let routines = (site.routines_of)(device).into_iter();
            let silent: Vec<GroupId> = routines.filter(|it| !answered.contains(it)).collect();
            let open = Update::Open { generation, device };
            if silent.is_empty() && state.judge(&open).is_none() {
                out.push(Effect::Propose(open));
            }
            let asks = silent.into_iter().map(|group| Effect::Ask {
                group,
                request: Request::Progress { device },
            });
            out.extend(asks);
        }
    }

    /// A routine answers.
    pub fn on_progress(
        &mut self,
        state: &Devices,
        (routine, device): (GroupId, NodeId),
        progress: Progress,
        out: &mut Out,
    ) {
        let is_closed = state.status(device).is_some() && !state.is_open(device);
        let Some(probe) = self.probe(device).filter(|_| is_closed) else {
            return;
        };
        let (claim, given) = match progress {
            Progress::Over { claim } => (claim, None),
            Progress::Executes { claim, given } => (claim, Some(given)),
            Progress::Acquires { claim } => {
                let first = *probe.reclaim.superseded.entry(routine).or_insert(claim);
                if claim > first {
                    probe.reclaim.answered.insert(routine);
                    return;
                }
                let answer = Answer::Over { device, claim };
                return out.push(Effect::Inform {
                    group: routine,
                    answer,
                });
            }
        };
        let update = Update::Reclaim {
            device,
            claim,
            given,
        };
        match state.judge(&update) {
            Some(verdict) => self.on_reclaimed(device, verdict.decision),
            None => out.push(Effect::Propose(update)),
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
    pub(super) fn judge_reclaim(&self, claim: Claim, given: Option<u16>) -> Option<Decision> {
        let is_known = match given {
            None => self.lock.is_over(claim),
            Some(_) => self.lock.is_over(claim) || self.lock.holder == Some(claim),
        };
        match is_known {
            _ if self.is_open => Some(Decision::Nothing),
            true => Some(Decision::Reclaimed(claim.routine)),
            false => None,
        }
    }

    /// Takes a routine's answer: the claim holds the device, and steps before `given` are over, or the claim
    /// is over.
    pub(super) fn reclaim(&mut self, claim: Claim, given: Option<u16>, terms: Terms) -> Decision {
        let around = self.around(terms);
        let Some(given) = given else {
            self.lock.release(claim, around);
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
