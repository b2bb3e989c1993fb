//! The task tracking table (PCM, section 4.4).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::poll::Poll;
use crate::task::{Answer, Assignment, Bytes, Digest, Function, Returned, TaskId, Voters};

/// An open task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    /// The function.
    pub function: Function,
    /// The number of times that it was given to a unit.
    pub attempts: u16,
    /// The followers that run it; `None` while it waits for a unit.
    pub assignment: Option<Assignment>,
    /// The votes of the present attempt, where gateways count them.
    pub(crate) poll: Poll,
    /// The unit that it counts for: the orchestrator's.
    pub(crate) unit: Option<u32>,
}

impl Open {
    /// The result of the votes that gateways have counted, if more cannot change it.
    pub(crate) fn verdict(&self) -> Option<Done> {
        let assignment = self.assignment.as_ref()?;
        let orchestrator = assignment.orchestrator()?;
        let answer = self.poll.verdict(&assignment.electors, orchestrator)?;
        let voters = self.poll.voters(&assignment.electors, &answer);
        Some(Done { answer, voters })
    }
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The answer.
    pub(crate) answer: Answer,
    /// The followers that voted for it.
    pub(crate) voters: Voters,
}

impl From<Answer> for Done {
    /// An answer without voters.
    fn from(answer: Answer) -> Self {
        let voters = Voters::new();
        Self { answer, voters }
    }
}

/// The former result of a function, with its voters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Cached {
    value: Bytes,
    voters: Voters,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Task {
    Open(Open),
    Done(Done),
}

/// The tasks of a client that the table has forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Forgotten {
    client: Member,
    /// The highest number of them.
    number: u64,
    /// The value of [`Tasks::count`] when it was forgotten.
    nth: u64,
}

/// All open tasks, and the tasks that ended last.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Tasks {
    limits: Limits,
    tasks: BTreeMap<TaskId, Task>,
    /// The followers that take part in each task.
    electors: BTreeSet<(NodeId, TaskId)>,
    open: u32,
    /// The ended tasks, in the order in which they ended.
    done: VecDeque<TaskId>,
    forgotten: BTreeMap<NodeId, Forgotten>,
    /// The clients of `forgotten`, by [`Forgotten::nth`].
    order: BTreeMap<u64, NodeId>,
    /// The number of tasks that were forgotten.
    count: u64,
    results: BTreeMap<Digest, Cached>,
    /// The keys of `results`, in the order in which they were added.
    cached: VecDeque<Digest>,
}

/// The record of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    New,
    Open(&'a Open),
    Done(&'a Done),
    /// It has ended, and its answer is forgotten.
    Forgotten,
}

impl Tasks {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            tasks: BTreeMap::new(),
            electors: BTreeSet::new(),
            open: 0,
            done: VecDeque::new(),
            forgotten: BTreeMap::new(),
            order: BTreeMap::new(),
            count: 0,
            results: BTreeMap::new(),
            cached: VecDeque::new(),
        }
    }

    /// Returns the record of a task. O(log n).
    pub(crate) fn get(&self, id: TaskId) -> Known<'_> {
        match self.tasks.get(&id) {
            Some(Task::Done(done)) => Known::Done(done),
            Some(Task::Open(open)) => Known::Open(open),
            None => {
                let forgotten = self.forgotten.get(&id.client.id);
                let is_over = forgotten.is_some_and(|it| {
                    let is_same_life = it.client == id.client;
                    it.client.supersedes(id.client) || is_same_life && id.number <= it.number
                });
                match is_over {
                    true => Known::Forgotten,
                    false => Known::New,
                }
            }
        }
    }

    /// The former result of a function. O(log n).
    pub(crate) fn cached(&self, digest: &Digest) -> Option<Done> {
        let Cached { value, voters } = self.results.get(digest)?.clone();
        let answer = Answer::Value(value);
        Some(Done { answer, voters })
    }

    /// Returns true if no further task can be open.
    pub(crate) const fn is_full(&self) -> bool {
        self.open >= self.limits.open
    }

    /// Adds a new task, which no unit runs yet.
    pub(crate) fn begin(&mut self, id: TaskId, function: Function) {
        debug_assert_eq!(self.get(id), Known::New, "a task begins once");
        let open = Open {
            function,
            attempts: 0,
            assignment: None,
            poll: Poll::default(),
            unit: None,
        };
        self.tasks.insert(id, Task::Open(open));
        self.open += 1;
    }

    /// Adds a new task that has ended already.
    pub(crate) fn begin_done(&mut self, id: TaskId, done: Done) {
        debug_assert_eq!(self.get(id), Known::New, "a task begins once");
        self.tasks.insert(id, Task::Done(done));
        self.retire(id);
    }

    /// Gives an open task to the followers of a unit, or to none. Returns the unit that it counted for.
    pub(crate) fn assign(&mut self, id: TaskId, to: Option<(u32, Assignment)>) -> Option<u32> {
        let Some(Task::Open(open)) = self.tasks.get_mut(&id) else {
            return None;
        };
        let former = open.unit.take();
        open.poll = Poll::default();
        let electors = open.assignment.take().map(|it| it.electors);
        for elector in electors.iter().flat_map(|it| it.iter()) {
            self.electors.remove(&(elector.id, id));
        }
        if let Some((unit, assignment)) = to {
            let electors = assignment.electors.iter();
            self.electors.extend(electors.map(|it| (it.id, id)));
            open.attempts = assignment.attempt;
            open.unit = Some(unit);
            open.assignment = Some(assignment);
        }
        former
    }

    /// Ends an open task. Returns the unit that it counted for.
    pub(crate) fn end(&mut self, id: TaskId, done: Done) -> Option<u32> {
        let unit = self.assign(id, None);
        let Some(task) = self.tasks.get_mut(&id) else {
            return unit;
        };
        if let Task::Open(open) = task {
            let digest = open.function.digest();
            self.open = self.open.saturating_sub(1);
            let cached = match &done.answer {
                Answer::Value(value) => Some(Cached {
                    value: value.clone(),
                    voters: done.voters.clone(),
                }),
                Answer::Failed(_) | Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => {
                    None
                }
            };
            *task = Task::Done(done);
            if let Some(cached) = cached {
                self.cache(digest, cached);
            }
            self.retire(id);
        }
        unit
    }

    /// Casts the vote of a follower of the present attempt. Returns the result of the votes, if more votes
    /// cannot change it.
    pub(crate) fn vote(&mut self, id: TaskId, by: Member, returned: Returned) -> Option<Done> {
        let Some(Task::Open(open)) = self.tasks.get_mut(&id) else {
            return None;
        };
        let assignment = open.assignment.as_ref()?;
        open.poll.cast(&assignment.electors, by, returned);
        open.verdict()
    }

    /// Replaces the answer of a task that has ended. Under a published rule only.
    pub(crate) fn replace(&mut self, id: TaskId, done: Done) {
        self.tasks.insert(id, Task::Done(done));
    }

    /// The tasks in which a follower takes part, by id. O(log n) for each.
    pub(crate) fn of(&self, elector: NodeId) -> impl Iterator<Item = TaskId> + '_ {
        let from = self.electors.range((elector, FIRST)..);
        from.take_while(move |it| it.0 == elector).map(|it| it.1)
    }

    /// Removes a follower from a task. If it was the orchestrator, the next follower is. If no follower is
    /// left, no unit runs the task, and the unit that it counted for is returned.
    pub(crate) fn remove_elector(&mut self, id: TaskId, elector: Member) -> Option<u32> {
        let Some(Task::Open(open)) = self.tasks.get_mut(&id) else {
            return None;
        };
        let assigned = open.assignment.as_mut()?;
        if assigned.orchestrator() == Some(elector) {
            assigned.term = assigned.term.saturating_add(1);
        }
        assigned.electors.retain(|it| *it != elector);
        self.electors.remove(&(elector.id, id));
        if !assigned.electors.is_empty() {
            return None;
        }
        open.assignment = None;
        open.unit.take()
    }

    /// Changes the unit that an open task counts for.
    pub(crate) fn count_for(&mut self, id: TaskId, unit: Option<u32>) {
        if let Some(Task::Open(open)) = self.tasks.get_mut(&id) {
            open.unit = unit;
        }
    }

    /// All open tasks, by id. O(n) for n tasks that are kept.
    pub(crate) fn open(&self) -> impl Iterator<Item = (TaskId, &Open)> {
        self.tasks.iter().filter_map(|(&id, task)| match task {
            Task::Open(open) => Some((id, open)),
            Task::Done(_) => None,
        })
    }

    /// The first contradiction in the table, if there is one. O(n log n).
    #[cfg(feature = "check")]
    pub(crate) fn broken_invariant(&self) -> Option<&'static str> {
        let open = || self.open();
        let electors = |(id, open): (TaskId, &Open)| -> alloc::vec::Vec<(NodeId, TaskId)> {
            let of_it = open.assignment.iter().flat_map(|it| it.electors.iter());
            of_it.map(|it| (it.id, id)).collect()
        };
        let is_empty = |it: &crate::Assignment| it.electors.is_empty();
        let is_over = |id: &TaskId| matches!(self.tasks.get(id), Some(Task::Done(_)));
        let is_ordered = |(nth, node): (&u64, &NodeId)| {
            let of_it = self.forgotten.get(node);
            of_it.is_some_and(|it| it.nth == *nth)
        };
        let limits = &self.limits;
        let promises = [
            (
                self.open as usize == open().count(),
                "open tasks are miscounted",
            ),
            (
                open().flat_map(electors).collect::<BTreeSet<_>>() == self.electors,
                "the tasks of a follower differ from the tasks that name it",
            ),
            (
                !open()
                    .filter_map(|it| it.1.assignment.as_ref())
                    .any(is_empty),
                "a task of a unit has no followers",
            ),
            (
                self.done.iter().all(is_over)
                    && self.done.len() + open().count() == self.tasks.len(),
                "a task is neither open nor ended",
            ),
            (
                self.cached.len() == self.results.len()
                    && self.cached.iter().all(|it| self.results.contains_key(it)),
                "a result is not in its order",
            ),
            (
                self.forgotten.len() == self.order.len() && self.order.iter().all(is_ordered),
                "a client is not in its order",
            ),
            (
                self.open <= limits.open
                    && self.done.len() <= limits.done as usize
                    && self.cached.len() <= limits.cache as usize
                    && self.forgotten.len() <= limits.clients as usize,
                "tasks are beyond their limits",
            ),
        ];
        promises.into_iter().find(|it| !it.0).map(|it| it.1)
    }

    fn cache(&mut self, digest: Digest, cached: Cached) {
        if self.results.insert(digest, cached).is_none() {
            self.cached.push_back(digest);
        }
        if self.cached.len() > self.limits.cache as usize
            && let Some(oldest) = self.cached.pop_front()
        {
            self.results.remove(&oldest);
        }
    }

    /// Puts an ended task at the end of the queue, and forgets the first one if the queue is full.
    fn retire(&mut self, id: TaskId) {
        self.done.push_back(id);
        if self.done.len() > self.limits.done as usize
            && let Some(oldest) = self.done.pop_front()
        {
            self.tasks.remove(&oldest);
            self.forget(oldest);
        }
    }

    /// Remembers for the client that this task is forgotten. O(log n) for n clients.
    fn forget(&mut self, id: TaskId) {
        self.count += 1;
        let (node, nth) = (id.client.id, self.count);
        let known = self.forgotten.get(&node).copied();
        let number = match known {
            Some(known) if known.client.supersedes(id.client) => return,
            Some(known) if known.client == id.client => known.number.max(id.number),
            _ => id.number,
        };
        if let Some(known) = known {
            self.order.remove(&known.nth);
        }
        let client = id.client;
        let forgotten = Forgotten {
            client,
            number,
            nth,
        };
        self.forgotten.insert(node, forgotten);
        self.order.insert(nth, node);
        if self.order.len() > self.limits.clients as usize
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.forgotten.remove(&oldest);
        }
    }
}

const FIRST: TaskId = TaskId {
    client: Member::new(0, 0),
    number: 0,
};
