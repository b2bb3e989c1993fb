//! Tasks, their votes, and their outcomes.

use selvedge_core::{Member, NodeId};

use super::{Outcome, Tables};
use crate::task::{Answer, Assignment, Function, Returned, TaskId, Voters};
use crate::tasks::{Done, Known};

impl Tables {
    pub(super) fn submit(&mut self, task: TaskId, function: &Function) -> Outcome {
        match self.tasks.get(task) {
            Known::New => {}
            Known::Open(_) => return Outcome::Open(task),
            Known::Done(_) => return Outcome::Done(task),
            Known::Forgotten => return Outcome::Forgotten(task),
        }
        if !self.has_room_for(function) {
            return Outcome::Full(task);
        }
        if let Some(done) = self.tasks.cached(&function.digest()) {
            self.tasks.begin_done(task, done);
            return Outcome::Ended { task, former: None };
        }
        self.tasks.begin(task, function.clone());
        self.assign(task, None)
    }

    /// Returns true if another task can be open, or this one need not be, because its function's result is
    /// known.
    pub(super) fn has_room_for(&self, function: &Function) -> bool {
        !self.tasks.is_full() || self.tasks.cached(&function.digest()).is_some()
    }

    /// Gives a task to the best unit, and to another one than `except` if possible.
    fn assign(&mut self, task: TaskId, except: Option<u32>) -> Outcome {
        let Known::Open(open) = self.tasks.get(task) else {
            return Outcome::Stale;
        };
        let unit = self.best_unit(&open.function, except);
        let former_assignment = open.assignment.clone();
        let attempt = open.attempts.saturating_add(1);
        let to = unit.map(|unit| {
            let electors = self.members(unit).collect();
            let assignment = Assignment {
                attempt,
                term: 0,
                electors,
            };
            (unit, assignment)
        });
        let former = self.tasks.assign(task, to);
        if let Some(former) = former {
            self.units.count_task(former, false);
        }
        if let Some(unit) = unit {
            self.units.count_task(unit, true);
        }
        Outcome::Assigned {
            task,
            former: former_assignment,
        }
    }

    /// Returns true if this is the last attempt of an open task, and a unit has it or can get it.
    pub(super) fn can_retry(&self, task: TaskId, after: u16) -> bool {
        self.open_task(task).is_some_and(|open| {
            let has_unit = open.assignment.is_some() || self.units.best(None).is_some();
            open.attempts == after && has_unit
        })
    }

    pub(super) fn retry(&mut self, task: TaskId, after: u16) -> Outcome {
        if !self.can_retry(task, after) {
            return Outcome::Stale;
        }
        if after >= self.limits.attempts {
            return self.end(task, Answer::Unanswered.into());
        }
        let except = self.open_task(task).and_then(|it| it.unit);
        self.assign(task, except)
    }

    pub(super) fn is_present(&self, task: TaskId, attempt: u16, term: u16) -> bool {
        if self.rules.any_attempt() {
            return !matches!(self.tasks.get(task), Known::New | Known::Forgotten);
        }
        let present = self.assignment(task);
        present.is_some_and(|it| (it.attempt, it.term) == (attempt, term))
    }

    /// Returns true if each answer of any attempt ends a task: a published rule.
    pub(crate) const fn takes_any_attempt(&self) -> bool {
        self.rules.any_attempt()
    }

    pub(super) fn answer_of(
        &mut self,
        task: TaskId,
        nth: (u16, u16),
        (answer, voters): (&Answer, &Voters),
    ) -> Outcome {
        let (attempt, term) = nth;
        let done = || Done {
            answer: answer.clone(),
            voters: voters.clone(),
        };
        if self.rules.any_attempt() && self.answer(task).is_some() {
            self.tasks.replace(task, done());
            return Outcome::Ended { task, former: None };
        }
        let is_taken = self.is_present(task, attempt, term)
            && self.believes(answer)
            && self.can_have_made(task, answer, voters);
        match is_taken {
            true => self.end(task, done()),
            false => Outcome::Stale,
        }
    }

    /// Returns true if these are enough of the followers that have an open task now, so that their votes can
    /// have made this answer. Only the orchestrator knows if they did.
    pub(crate) fn can_have_made(&self, task: TaskId, answer: &Answer, voters: &[NodeId]) -> bool {
        let has_other_rules =
            self.rules.any_attempt() || self.rules.any_vote() || self.rules.first_half();
        let present = self.assignment(task);
        has_other_rules || present.is_some_and(|it| it.can_have_made(answer, voters))
    }

    /// Returns true if an orchestrator's answer counts: gateways do not count votes themselves, and the answer
    /// is not longer than a result may be.
    pub(super) fn believes(&self, answer: &Answer) -> bool {
        let is_long = matches!(answer, Answer::Value(it) if it.len() > self.limits.result.into());
        !self.limits.counts_votes && !is_long
    }

    /// Returns true if a follower's result is longer than a result may be.
    pub(super) fn is_long(&self, returned: &Returned) -> bool {
        matches!(returned, Returned::Value(it) if it.len() > self.limits.result.into())
    }

    /// Returns true if a vote counts: gateways count, and the follower takes part in the present attempt.
    pub(super) fn takes_vote(&self, task: TaskId, attempt: u16, by: Member) -> bool {
        let assignment = self.assignment(task);
        let takes_part = |it: &Assignment| it.attempt == attempt && it.electors.contains(&by);
        self.limits.counts_votes && assignment.is_some_and(takes_part)
    }

    pub(super) fn vote(
        &mut self,
        (task, attempt): (TaskId, u16),
        by: Member,
        returned: &Returned,
    ) -> Outcome {
        if self.is_long(returned) || !self.takes_vote(task, attempt, by) {
            return Outcome::Stale;
        }
        match self.tasks.vote(task, by, returned.clone()) {
            Some(done) => self.end(task, done),
            None => Outcome::Voted { task, attempt, by },
        }
    }

    pub(super) fn cancel(&mut self, task: TaskId) -> Outcome {
        match self.tasks.get(task) {
            // Its submission may arrive later, and must not run it.
            Known::New => self.tasks.begin_done(task, Answer::Cancelled.into()),
            Known::Open(_) => return self.end(task, Answer::Cancelled.into()),
            Known::Done(_) => return Outcome::Done(task),
            Known::Forgotten => return Outcome::Forgotten(task),
        }
        Outcome::Ended { task, former: None }
    }

    fn end(&mut self, task: TaskId, done: Done) -> Outcome {
        let former = self.assignment(task).cloned();
        if let Some(unit) = self.tasks.end(task, done) {
            self.units.count_task(unit, false);
        }
        Outcome::Ended { task, former }
    }
}
