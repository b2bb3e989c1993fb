//! The replicated tables of the gateways: followers, with their units, and tasks.

mod tasks;
mod units;

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};
use selvedge_replica::State;
use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::clustering::{Class, class_of};
use crate::followers::{Attachment, Followers};
use crate::published::Rules;
use crate::task::{Answer, Assignment, Function, Returned, TaskId, Voters};
use crate::tasks::{Known, Open, Tasks};
use crate::topology::{Hops, Topology};
use crate::units::Units;

/// A change of the tables. Each update is total, and changes nothing a second time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Update {
    /// A follower attached itself to a gateway, or reported a change.
    Attach(Attachment),
    /// A gateway has received nothing from a follower for too long. Later messages from it count.
    Purge(Attachment),
    /// Forms the units again.
    Cluster {
        /// The number of times that they were formed before: a second request made meanwhile does nothing.
        after: u64,
    },
    /// A client submits a task.
    Submit {
        /// The task.
        task: TaskId,
        /// The function to run.
        function: Function,
    },
    /// No unit answers in time: the task goes to another unit.
    Retry {
        /// The task.
        task: TaskId,
        /// The number of times that it was given to a unit before.
        after: u16,
    },
    /// The answer of a unit.
    Answer {
        /// The task.
        task: TaskId,
        /// The attempt; only the present one counts (erratum Q4).
        attempt: u16,
        /// The number of the orchestrator in the attempt; only the present one counts.
        term: u16,
        /// The answer.
        answer: Answer,
        /// The followers that voted for it: present electors only, and enough of them.
        voters: Voters,
    },
    /// The result of a follower, where gateways count the votes ([`Limits::counts_votes`]).
    Vote {
        /// The task.
        task: TaskId,
        /// The attempt; only the present one counts.
        attempt: u16,
        /// The follower.
        by: Member,
        /// Its result.
        returned: Returned,
    },
    /// The client cancels a task.
    Cancel(TaskId),
    /// The distance between two gateways.
    Hops(Hops),
}

/// The outcome of an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing changed: the tables contain as new a state, or a newer one.
    Stale,
    /// Nothing changed: the limit of followers excludes this one.
    NoRoom(NodeId),
    /// Nothing changed: the limit of open tasks excludes this one.
    Full(TaskId),
    /// A follower is new, or a later report of it is known.
    Attached {
        /// The follower.
        follower: NodeId,
        /// The tasks in which its former life took part, and from which it is removed.
        tasks: Vec<TaskId>,
        /// True if forming the units again may improve them.
        is_other: bool,
    },
    /// A follower was purged, and does not take part in these tasks any more.
    Purged {
        /// The follower.
        follower: NodeId,
        /// The tasks.
        tasks: Vec<TaskId>,
    },
    /// The units were formed again.
    Clustered,
    /// The distance between two gateways is known.
    Measured,
    /// A task is given to a unit, or waits for one.
    Assigned {
        /// The task.
        task: TaskId,
        /// The followers that it was given to before.
        former: Option<Assignment>,
    },
    /// A vote is counted.
    Voted {
        /// The task.
        task: TaskId,
        /// The attempt.
        attempt: u16,
        /// The voter.
        by: Member,
    },
    /// Nothing changed: the task is open.
    Open(TaskId),
    /// A task has ended.
    Ended {
        /// The task.
        task: TaskId,
        /// The followers that it was given to.
        former: Option<Assignment>,
    },
    /// Nothing changed: the task has ended before.
    Done(TaskId),
    /// Nothing changed: the task ended long ago, and its answer is forgotten.
    Forgotten(TaskId),
}

/// The tables.
///
/// An update takes O(log n) for n followers and tasks, and O(m) for a unit of m;
/// [`Cluster`](Update::Cluster) takes O(n), and O(c log c) for the c followers that get another seat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tables {
    limits: Limits,
    followers: Followers,
    units: Units,
    /// The number of times that the units were formed.
    clustered: u64,
    tasks: Tasks,
    hops: Topology,
    #[serde(skip)]
    rules: Rules,
}

impl Tables {
    /// Tables without a follower and a task.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            followers: Followers::new(limits.followers, limits.tombstones),
            units: Units::new(limits.unit),
            clustered: 0,
            tasks: Tasks::new(limits),
            hops: Topology::new(limits.gateways),
            rules: Rules::default(),
        }
    }

    /// The same tables under rules that break promises.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn published(mut self, rules: &[crate::Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// The limits of the tables.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The attachment of a follower. O(log n).
    #[must_use]
    pub fn follower(&self, id: NodeId) -> Option<&Attachment> {
        self.followers.get(id)
    }

    /// All followers, in no particular order.
    pub fn followers(&self) -> impl Iterator<Item = &Attachment> {
        self.followers.iter()
    }

    /// The life of a follower and the number of its last known attachment, even if it has left. O(log n).
    #[must_use]
    pub fn last_attachment(&self, id: NodeId) -> Option<(Member, u32)> {
        let last = self.followers.get(id).or_else(|| self.followers.left(id));
        last.map(|it| (it.member, it.number))
    }

    /// The tasks that a follower runs, by id. O(log n) for each.
    pub fn tasks_of(&self, id: NodeId) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.of(id)
    }

    /// The gateway that should be the resource manager (PCM, section 4.2): it reaches all followers over
    /// the fewest links. Among equals it is the gateway that reaches all gateways over the fewest links,
    /// then the present manager, then the gateway with the lowest id. O(g^2) for g gateways.
    #[must_use]
    pub fn best_manager(&self, gateways: &[NodeId], present: NodeId) -> Option<NodeId> {
        let followers: Vec<(NodeId, u32)> = self.followers.gateways().collect();
        self.hops.best(gateways, &followers, present)
    }

    /// The number of followers of each gateway that has any, by id.
    pub fn gateways(&self) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        self.followers.gateways()
    }

    /// The number of units.
    #[must_use]
    pub const fn units(&self) -> usize {
        self.units.len()
    }

    /// The unit of a follower; `None` while it waits for one. O(log n).
    #[must_use]
    pub fn unit_of(&self, id: NodeId) -> Option<u32> {
        Some(self.followers.seat_of(id)?.unit)
    }

    /// The class of a follower in its unit; `None` while it waits for one. O(log n).
    #[must_use]
    pub fn class_of(&self, id: NodeId) -> Option<Class> {
        let seat = self.followers.seat_of(id)?;
        Some(class_of(seat.place, self.limits.unit))
    }

    /// The followers of a unit, its orchestrator first. O(m).
    pub fn members(&self, unit: u32) -> impl Iterator<Item = Member> + '_ {
        let slots = self.units.members(unit);
        slots.filter_map(|slot| Some(self.followers.at(slot)?.member))
    }

    /// The number of times that the units were formed.
    #[must_use]
    pub const fn clustered(&self) -> u64 {
        self.clustered
    }

    /// Returns true if the units should be formed again at once, and not only at the next review.
    #[must_use]
    pub fn want_clustering(&self) -> bool {
        let followers = self.followers.len();
        let are_few = self.rules.always_few() && followers < self.units.len() * 3;
        are_few || self.units.want_clustering(followers)
    }

    /// The answer of a task; `None` while it is open or unknown. O(log n).
    #[must_use]
    pub fn answer(&self, task: TaskId) -> Option<&Answer> {
        match self.tasks.get(task) {
            Known::Done(done) => Some(&done.answer),
            Known::New | Known::Forgotten | Known::Open(_) => None,
        }
    }

    /// The followers that voted for a task's answer, by id; empty while it is open or unknown. If the answer
    /// was kept from another task, these are the voters of that task. O(log n).
    #[must_use]
    pub fn voters(&self, task: TaskId) -> &[NodeId] {
        match self.tasks.get(task) {
            Known::Done(done) => &done.voters,
            Known::New | Known::Forgotten | Known::Open(_) => &[],
        }
    }

    /// The present attempt of a task, and the votes that gateways have counted in it.
    #[cfg(feature = "check")]
    pub(crate) fn votes(&self, task: TaskId) -> Option<crate::poll::Votes> {
        let open = self.open_task(task)?;
        Some((open.attempts, open.poll.votes()))
    }

    /// The followers that run a task; `None` if no unit has it. O(log n).
    #[must_use]
    pub fn assignment(&self, task: TaskId) -> Option<&Assignment> {
        match self.tasks.get(task) {
            Known::Open(open) => open.assignment.as_ref(),
            Known::New | Known::Forgotten | Known::Done(_) => None,
        }
    }

    /// The number of tasks of the unit that runs this one; 0 if no unit has it. O(log n).
    #[must_use]
    pub fn load_of(&self, task: TaskId) -> u32 {
        let unit = self.open_task(task).and_then(|it| it.unit);
        unit.map_or(0, |it| self.units.tasks(it))
    }

    /// The record of an open task. O(log n).
    #[must_use]
    pub fn open_task(&self, task: TaskId) -> Option<&Open> {
        match self.tasks.get(task) {
            Known::Open(open) => Some(open),
            Known::New | Known::Forgotten | Known::Done(_) => None,
        }
    }

    /// Returns true if an attempt of a task has ended. O(log n).
    #[must_use]
    pub fn is_past(&self, task: TaskId, attempt: u16) -> bool {
        match self.tasks.get(task) {
            Known::New => false,
            Known::Open(open) => attempt < open.attempts,
            Known::Done(_) | Known::Forgotten => true,
        }
    }

    /// All open tasks, by id. O(n) for n tasks that are kept.
    pub fn open(&self) -> impl Iterator<Item = (TaskId, &Open)> {
        self.tasks.open()
    }

    /// All pairs of gateways that are not one link from each other, by id.
    pub(crate) fn far(&self) -> impl Iterator<Item = Hops> + '_ {
        self.hops.far()
    }

    /// Returns true if the limit of gateways excludes the distance between these. O(g^2) for g gateways.
    pub(crate) fn lacks_room_for(&self, hops: Hops) -> bool {
        !self.hops.knows(hops) && !self.hops.has_room(hops)
    }

    /// The outcome of an update that would change nothing, so that it need not be proposed; `None` if it would
    /// change the tables. O(log n); for [`Hops`](Update::Hops) O(g^2) for g gateways, and O(length) for a
    /// function if no further task can be open.
    #[must_use]
    pub fn known(&self, update: &Update) -> Option<Outcome> {
        let stale = |is_stale: bool| is_stale.then_some(Outcome::Stale);
        match *update {
            Update::Attach(ref follower) => {
                let id = follower.member.id;
                let present = self.followers.get(id);
                let known = present.or_else(|| self.followers.left(id));
                if known.is_some_and(|it| !follower.is_later(it)) {
                    return Some(Outcome::Stale);
                }
                let has_room = present.is_some() || !self.followers.is_full();
                (!has_room).then_some(Outcome::NoRoom(id))
            }
            Update::Purge(ref follower) => {
                let known = self.followers.get(follower.member.id);
                stale(known.is_none_or(|it| it.is_later(follower)))
            }
            Update::Cluster { after } => stale(after != self.clustered),
            Update::Submit { task, ref function } => match self.tasks.get(task) {
                Known::New => (!self.has_room_for(function)).then_some(Outcome::Full(task)),
                Known::Open(_) => Some(Outcome::Open(task)),
                Known::Done(_) => Some(Outcome::Done(task)),
                Known::Forgotten => Some(Outcome::Forgotten(task)),
            },
            Update::Retry { task, after } => stale(!self.can_retry(task, after)),
            Update::Answer {
                task,
                attempt,
                term,
                ref answer,
                ref voters,
            } => {
                let is_taken = self.is_present(task, attempt, term)
                    && self.believes(answer)
                    && self.can_have_made(task, answer, voters);
                stale(!is_taken)
            }
            Update::Vote {
                task,
                attempt,
                by,
                ref returned,
            } => match self.open_task(task) {
                Some(_) if self.is_long(returned) => Some(Outcome::Stale),
                Some(open) if self.takes_vote(task, attempt, by) => {
                    // When an elector has left, the votes of the others may be enough. No update ends the
                    // task then but a repeated vote, so a vote that was counted before is not known.
                    let is_counted = open.poll.vote(by).is_some() && open.verdict().is_none();
                    is_counted.then_some(Outcome::Voted { task, attempt, by })
                }
                Some(_) | None => Some(Outcome::Stale),
            },
            Update::Cancel(task) => match self.tasks.get(task) {
                Known::Open(_) | Known::New => None,
                Known::Done(_) => Some(Outcome::Done(task)),
                Known::Forgotten => Some(Outcome::Forgotten(task)),
            },
            Update::Hops(hops) => stale(self.hops.knows(hops) || !self.hops.has_room(hops)),
        }
    }

    /// The first contradiction in the tables, if there is one.
    #[cfg(feature = "check")]
    pub(crate) fn broken_invariant(&self) -> Option<&'static str> {
        let tasks: Vec<u32> = self.tasks.open().filter_map(|it| it.1.unit).collect();
        let seats: alloc::collections::BTreeMap<crate::clustering::Slot, _> =
            self.units.seats().collect();
        let is_seated = |it: crate::clustering::Standing| seats.get(&it.slot) == it.seat.as_ref();
        let seated = self.followers.standings().filter(|it| it.seat.is_some());
        let is_one = self.followers.standings().all(is_seated)
            && seats.len() == self.units.seats().count()
            && seats.len() == seated.count();
        let of_units = self.units.broken_invariant(&tasks);
        let broken = self.followers.broken_invariant().or(of_units);
        let broken = broken.or_else(|| self.tasks.broken_invariant());
        broken.or((!is_one).then_some("a follower has not the one seat that it is in"))
    }
}

impl State for Tables {
    type Update = Update;
    type Outcome = Outcome;

    fn apply(&mut self, update: &Update) -> Outcome {
        match *update {
            Update::Attach(ref follower) => self.attach(follower.clone()),
            Update::Purge(ref follower) => self.purge(follower),
            Update::Cluster { after } => self.cluster(after),
            Update::Submit { task, ref function } => self.submit(task, function),
            Update::Retry { task, after } => self.retry(task, after),
            Update::Answer {
                task,
                attempt,
                term,
                ref answer,
                ref voters,
            } => self.answer_of(task, (attempt, term), (answer, voters)),
            Update::Vote {
                task,
                attempt,
                by,
                ref returned,
            } => self.vote((task, attempt), by, returned),
            Update::Cancel(task) => self.cancel(task),
            Update::Hops(hops) => match self.hops.learn(hops) {
                true => Outcome::Measured,
                false => Outcome::Stale,
            },
        }
    }
}
