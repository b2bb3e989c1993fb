//! Followers that arrive and leave, and the units that they form.

use alloc::vec::Vec;

use selvedge_core::Member;

use super::{Outcome, Tables};
use crate::clustering::Slot;
use crate::followers::{Attached, Attachment};
use crate::task::{Function, TaskId};

impl Tables {
    pub(super) fn attach(&mut self, follower: Attachment) -> Outcome {
        let id = follower.member.id;
        let member = follower.member;
        let (former, is_other) = match self.followers.attach(follower) {
            Attached::Stale => return Outcome::Stale,
            Attached::Full => return Outcome::NoRoom(id),
            Attached::Changed { former, is_other } => (Some(former), is_other),
            Attached::Joined(slot) => {
                let seat = self.units.join(slot);
                self.followers.seat(slot, seat);
                (None, true)
            }
        };
        // A new life has lost the tasks of its former one.
        let former = former.filter(|it| *it != member);
        let tasks = former.map(|it| self.withdraw(it)).unwrap_or_default();
        Outcome::Attached {
            follower: id,
            tasks,
            is_other,
        }
    }

    /// Removes a follower from its tasks, and returns these.
    fn withdraw(&mut self, elector: Member) -> Vec<TaskId> {
        let tasks: Vec<TaskId> = self.tasks.of(elector.id).collect();
        for &task in &tasks {
            if let Some(unit) = self.tasks.remove_elector(task, elector) {
                self.units.count_task(unit, false);
            }
        }
        tasks
    }

    pub(super) fn purge(&mut self, follower: &Attachment) -> Outcome {
        let Some((member, seat)) = self.followers.purge(follower) else {
            return Outcome::Stale;
        };
        if let Some(seat) = seat {
            let followers = &self.followers;
            let availability =
                |slot: Slot| followers.at(slot).map_or(0, |it| it.duty.availability());
            if let Some((slot, seat)) = self.units.leave(seat, availability) {
                self.followers.seat(slot, Some(seat));
            }
        }
        Outcome::Purged {
            follower: member.id,
            tasks: self.withdraw(member),
        }
    }

    pub(super) fn cluster(&mut self, after: u64) -> Outcome {
        if after != self.clustered {
            return Outcome::Stale;
        }
        self.clustered += 1;
        let margin = self.limits.margin;
        let moved = self.units.recluster(self.followers.standings(), margin);
        for (slot, seat) in moved {
            self.followers.seat(slot, Some(seat));
        }
        // Tasks stay with the followers that have them.
        // So a follower need not know its unit, and each message to it has all that its vote depends on. The
        // update has a few bytes for a million followers, because each gateway computes the units alike.
        let open: Vec<(TaskId, Option<Member>)> = self
            .tasks
            .open()
            .filter_map(|(task, open)| Some((task, open.assignment.as_ref()?.orchestrator())))
            .collect();
        for (task, orchestrator) in open {
            let seat = orchestrator.and_then(|it| self.followers.seat_of(it.id));
            let unit = seat.map(|it| it.unit);
            self.tasks.count_for(task, unit);
            if let Some(unit) = unit {
                self.units.count_task(unit, true);
            }
        }
        Outcome::Clustered
    }

    /// The unit that should run a function. Among equals it is the unit in which followers keep most of the
    /// libraries that the function needs.
    pub(super) fn best_unit(&self, function: &Function, except: Option<u32>) -> Option<u32> {
        if function.libraries.is_empty() {
            return self.units.best(except);
        }
        let keeps = |unit: u32| -> usize {
            let members = self.units.members(unit);
            let members = members.filter_map(|it| self.followers.at(it));
            members.map(|it| it.keeps(&function.libraries)).sum()
        };
        let alike = self.units.alike(except).take(ALIKE);
        alike.min_by_key(|&it| core::cmp::Reverse(keeps(it)))
    }
}

/// The greatest number of equal units among which the libraries of followers decide.
const ALIKE: usize = 8;
