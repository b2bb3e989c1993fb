//! The claim that holds a device, and the claims that wait for it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_groups::GroupId;
use serde::{Deserialize, Serialize};

use super::config::Limits;
use super::decision::Decision;
use super::published::Rules;
use crate::{Claim, Patience};

/// The lock of a device. While a command of a released claim is not settled, no claim holds the
/// device, and it is not free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Lock {
    pub(super) holder: Option<Claim>,
    /// The claims that wait, first come, first served.
    pub(super) queue: VecDeque<Claim>,
    /// In order of routines, one for each routine that ever asked.
    marks: Vec<Mark>,
}

/// The latest claim of a routine: all earlier ones are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Mark {
    latest: Claim,
    is_over: bool,
}

impl Mark {
    /// Returns true for a routine that has not asked since the cluster began anew.
    const fn rests(&self) -> bool {
        self.latest.attempt == RESTS
    }
}

/// The attempt of a claim behind all tries of a run.
pub(crate) const RESTS: u32 = u32::MAX;

/// The parts of a device's state on which a lock depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) limits: Limits,
    pub(super) rules: Rules,
    /// A command to the device is not settled.
    pub(super) acts: bool,
    /// The generation of the site that the state follows.
    pub(super) generation: u32,
}

/// A request for the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asks {
    pub(super) claim: Claim,
    pub(super) patience: Patience,
    /// The generation of the site from which it asks.
    pub(super) generation: u32,
}

impl Lock {
    /// A claim asks: the decision, and the claim to which the lock passes on because an earlier
    /// claim of the routine is over. O(log(routines) + queue).
    pub(super) fn lock(&mut self, asks: Asks, around: Around) -> (Decision, Option<Claim>) {
        if let Some(decision) = self.judge_lock(asks, around) {
            return (decision, None);
        }
        let Asks {
            claim, patience, ..
        } = asks;
        self.mark(claim, false, around);
        // A routine asks again only after it has released all earlier claims.
        self.drop_where(|it| it.routine == claim.routine && it < claim);
        let granted = self.pass(around.acts);
        let decision = match patience {
            _ if self.is_free(around) => {
                self.holder = Some(claim);
                Decision::Granted(claim)
            }
            Patience::Leaves => Decision::Busy(claim),
            Patience::Queues if self.is_queue_full(around) => Decision::Full(claim),
            Patience::Queues => {
                self.queue.push_back(claim);
                Decision::Queued(claim)
            }
        };
        (decision, granted)
    }

    /// A claim is given back: the claim to which the lock passes on. O(log(routines) + queue).
    pub(super) fn release(&mut self, claim: Claim, around: Around) -> Option<Claim> {
        if self.is_released(claim, around) {
            return None;
        }
        self.mark(claim, true, around);
        self.drop_where(|it| it.routine == claim.routine && it <= claim);
        self.pass(around.acts)
    }

    /// A claim is over, as its routine reports to a cluster that has begun anew. O(log(routines)).
    pub(super) fn end(&mut self, claim: Claim, around: Around) {
        self.mark(claim, true, around);
        self.drop_where(|it| it.routine == claim.routine && it <= claim);
    }

    /// A claim of a former beginning of the cluster holds the device again, unless another one does.
    /// O(log(routines)).
    pub(super) fn regain(&mut self, claim: Claim, around: Around) {
        self.holder.get_or_insert(claim);
        self.mark(claim, false, around);
    }

    /// Releases all that a routine has here, without a mark: the claim to which the lock passes on.
    /// O(routines + queue).
    pub(super) fn forget(&mut self, routine: GroupId, around: Around) -> Option<Claim> {
        self.marks.retain(|it| it.latest.routine != routine);
        self.drop_where(|it| it.routine == routine);
        self.pass(around.acts)
    }

    /// The routines that asked and are not forgotten, in order.
    pub(super) fn routines(&self) -> impl Iterator<Item = GroupId> {
        self.marks.iter().map(|it| it.latest.routine)
    }

    /// Gives a lock that no claim holds to the first claim that waits, unless the device is still
    /// at a command. O(1).
    pub(super) fn pass(&mut self, acts: bool) -> Option<Claim> {
        if self.holder.is_some() || acts {
            return None;
        }
        self.holder = self.queue.pop_front();
        self.holder
    }

    /// The decision about a claim that asks, if that changes nothing.
    pub(super) fn judge_lock(&self, asks: Asks, around: Around) -> Option<Decision> {
        let Asks {
            claim,
            patience,
            generation,
        } = asks;
        let is_earlier = |it: &Claim| it.routine == claim.routine && *it < claim;
        if self.is_over(claim) {
            return Some(Decision::Over(claim));
        }
        if self.holder == Some(claim) {
            return Some(Decision::Granted(claim));
        }
        if self.holder.iter().chain(&self.queue).any(is_earlier) {
            return None;
        }
        if self.queue.contains(&claim) {
            return Some(Decision::Queued(claim));
        }
        if self.is_outdated(claim.routine, generation, around) {
            return Some(Decision::Outdated);
        }
        if self.is_one_too_many(claim.routine, around) {
            return Some(Decision::Full(claim));
        }
        match patience {
            _ if self.is_free(around) => None,
            Patience::Leaves => Some(Decision::Busy(claim)),
            Patience::Queues if self.is_queue_full(around) => Some(Decision::Full(claim)),
            Patience::Queues => None,
        }
    }

    /// Returns true if a claim neither holds nor waits, and never will. O(log(routines)).
    pub(super) fn is_released(&self, claim: Claim, around: Around) -> bool {
        self.is_over(claim) || self.is_one_too_many(claim.routine, around)
    }

    /// Returns true if a routine without a mark asks from an older site than the state's. The mark of a
    /// routine that was forgotten is gone, so its late requests are known by this.
    pub(super) fn is_outdated(&self, routine: GroupId, generation: u32, around: Around) -> bool {
        generation < around.generation && self.mark_of(routine).is_none()
    }

    /// Returns true if a claim was released, or is earlier than another one of its routine.
    pub(super) fn is_over(&self, claim: Claim) -> bool {
        self.mark_of(claim.routine)
            .is_some_and(|it| claim < it.latest || claim == it.latest && it.is_over)
    }

    const fn is_free(&self, around: Around) -> bool {
        self.holder.is_none() && !around.acts
    }

    fn is_queue_full(&self, around: Around) -> bool {
        self.queue.len() >= around.limits.queue.into()
    }

    /// Returns true if the mark of this routine has no room: then it never gets the device.
    fn is_one_too_many(&self, routine: GroupId, around: Around) -> bool {
        let limit = usize::from(around.limits.routines);
        let has_room = || self.marks.iter().filter(|it| !it.rests()).count() < limit;
        self.marks.len() >= limit && self.mark_of(routine).is_none_or(Mark::rests) && !has_room()
    }

    fn mark_of(&self, routine: GroupId) -> Option<&Mark> {
        let at = self.place_of(routine);
        let mark = self.marks.get(at)?;
        (mark.latest.routine == routine).then_some(mark)
    }

    fn place_of(&self, routine: GroupId) -> usize {
        self.marks.partition_point(|it| it.latest.routine < routine)
    }

    fn mark(&mut self, latest: Claim, is_over: bool, around: Around) {
        if around.rules.unnumbered() || around.rules.unlabelled() {
            return;
        }
        let mark = Mark { latest, is_over };
        let at = self.place_of(latest.routine);
        match self.marks.get_mut(at) {
            Some(place) if place.latest.routine == latest.routine => *place = mark,
            _ => self.marks.insert(at, mark),
        }
    }

    fn drop_where(&mut self, is_over: impl Fn(Claim) -> bool) {
        self.holder = self.holder.filter(|it| !is_over(*it));
        self.queue.retain(|it| !is_over(*it));
    }
}
