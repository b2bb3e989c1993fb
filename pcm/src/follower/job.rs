//! A task at a follower.

use alloc::vec::Vec;

use selvedge_core::Member;

use crate::poll::Poll;
use crate::{Answer, Function, Returned, Run, TaskId};

/// The progress of a follower with a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It waits to be run.
    Waits(Function),
    /// The host gets a library for it.
    Loads(Function),
    /// The host runs it.
    Runs,
    /// It has returned.
    Returned(Returned),
    /// It was stopped.
    Stopped,
}

/// A task at a follower.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) task: TaskId,
    pub(super) attempt: u16,
    pub(super) term: u16,
    /// The followers that run the task, the orchestrator first.
    pub(super) electors: Vec<Member>,
    /// True if the gateway counts the votes.
    pub(super) to_gateway: bool,
    pub(super) stage: Stage,
    /// True if nothing is left to send: the vote is counted, the verdict recorded, or the task over.
    pub(super) is_over: bool,
    /// The number of times that the same vote, or verdict, was sent.
    pub(super) sent: u8,
    /// The votes, at the orchestrator.
    pub(super) poll: Poll,
    /// The result of the votes.
    pub(super) verdict: Option<Answer>,
}

impl Job {
    pub(super) fn new(run: Run) -> Self {
        Self {
            task: run.task,
            attempt: run.attempt,
            term: run.term,
            electors: run.electors.into_iter().collect(),
            to_gateway: run.to_gateway,
            stage: Stage::Waits(run.function),
            is_over: false,
            sent: 0,
            poll: Poll::default(),
            verdict: None,
        }
    }

    /// Takes out the function that waits. The caller must set another stage.
    pub(super) fn take_waiting(&mut self) -> Option<Function> {
        match core::mem::replace(&mut self.stage, Stage::Stopped) {
            Stage::Waits(function) => Some(function),
            other @ (Stage::Loads(_) | Stage::Runs | Stage::Returned(_) | Stage::Stopped) => {
                self.stage = other;
                None
            }
        }
    }

    /// Takes out the function that waits for a library. The caller must set another stage.
    pub(super) fn take_loading(&mut self) -> Option<Function> {
        match core::mem::replace(&mut self.stage, Stage::Stopped) {
            Stage::Loads(function) => Some(function),
            other @ (Stage::Waits(_) | Stage::Runs | Stage::Returned(_) | Stage::Stopped) => {
                self.stage = other;
                None
            }
        }
    }

    /// The follower that counts the votes.
    pub(super) fn orchestrator(&self) -> Option<Member> {
        self.electors.first().copied()
    }

    /// The result of the function here.
    #[cfg(feature = "check")]
    pub(super) const fn returned(&self) -> Option<&Returned> {
        match &self.stage {
            Stage::Returned(it) => Some(it),
            Stage::Waits(_) | Stage::Loads(_) | Stage::Runs | Stage::Stopped => None,
        }
    }

    /// Returns true if a request is newer than this job: a later attempt, a later orchestrator, or fewer
    /// followers.
    pub(super) fn is_renewed_by(&self, run: &Run) -> bool {
        let (known, named) = ((self.attempt, self.term), (run.attempt, run.term));
        let has_fewer = named == known && run.electors.len() < self.electors.len();
        named > known || has_fewer
    }

    /// Continues the same function for another attempt, orchestrator or unit. Its result here stays valid.
    pub(super) fn renew(&mut self, run: Run) {
        if run.attempt != self.attempt {
            self.poll = Poll::default();
        }
        if matches!(self.stage, Stage::Stopped) {
            self.stage = Stage::Waits(run.function);
        }
        self.attempt = run.attempt;
        self.term = run.term;
        self.electors = run.electors.into_iter().collect();
        self.to_gateway = run.to_gateway;
        self.verdict = None;
        self.is_over = false;
        self.sent = 0;
    }
}
