//! The state of a follower, and its queries.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Untracked};

use super::job::Job;
use super::{Config, Counters, Phase, Reject};
use crate::gateway_list::GatewayList;
use crate::published::Rules;
use crate::{DutyCycle, Libraries, Library};

/// A follower. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower {
    pub(super) config: Config,
    pub(super) me: Member,
    /// The gateways that it can attach to, and the present one.
    pub(super) gateways: GatewayList,
    /// The number of gateways that turned it away in this period.
    pub(super) refusals: u8,
    /// The number of its attachment.
    pub(super) number: u32,
    pub(super) duty: DutyCycle,
    /// The duty cycle from the next period on, if that changes.
    pub(super) next_duty: Option<DutyCycle>,
    /// The present phase; `None` before it is started.
    pub(super) phase: Option<Phase>,
    /// True if the active phase goes on only because a function runs.
    pub(super) is_late: bool,
    /// The tasks, in order of arrival.
    pub(super) jobs: Vec<Job>,
    /// The libraries, in order of arrival.
    pub(super) libraries: VecDeque<Library>,
    /// The libraries that its present attachment reports.
    pub(super) notified: Libraries,
    /// The library that the host is getting.
    pub(super) loads: Option<Library>,
    pub(super) counters: Untracked<Counters>,
    pub(super) rules: Rules,
}

impl Follower {
    /// A follower that can go to these gateways, the first one first.
    ///
    /// # Errors
    /// [`Reject::Config`] and [`Reject::NoGateway`].
    pub fn new(
        me: Member,
        config: Config,
        gateways: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        config.check()?;
        let gateways = GatewayList::new(gateways).ok_or(Reject::NoGateway)?;
        Ok(Self {
            config,
            me,
            gateways,
            refusals: 0,
            number: 1,
            duty: config.duty,
            next_duty: None,
            phase: None,
            is_late: false,
            jobs: Vec::new(),
            libraries: VecDeque::new(),
            notified: Libraries::new(),
            loads: None,
            counters: Untracked(Counters::default()),
            rules: Rules::default(),
        })
    }

    /// The same follower under rules that break a promise.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn published(mut self, rules: &[crate::Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// The state of a task here: its returned value, the verdict of its orchestrator, and its electors.
    #[cfg(feature = "check")]
    pub(crate) fn work_on(
        &self,
        task: crate::TaskId,
    ) -> Option<(Option<&crate::Returned>, Option<&crate::Answer>, &[Member])> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some((job.returned(), job.verdict.as_ref(), &job.electors))
    }

    /// The attempt of a task, and the votes on it that this follower has counted.
    #[cfg(feature = "check")]
    pub(crate) fn votes(&self, task: crate::TaskId) -> Option<crate::poll::Votes> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some((job.attempt, job.poll.votes()))
    }

    /// The attempt and term in which it takes part in a task, and the orchestrator.
    #[cfg(feature = "check")]
    pub(crate) fn seat(&self, task: crate::TaskId) -> Option<((u16, u16), Member)> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some(((job.attempt, job.term), job.orchestrator()?))
    }

    /// The size of its memory: the number of jobs, and the greatest number of votes of a job.
    #[cfg(feature = "check")]
    pub(crate) fn kept(&self) -> (usize, usize) {
        let votes = self.jobs.iter().map(|it| it.poll.len());
        (self.jobs.len(), votes.max().unwrap_or_default())
    }

    /// Its settings.
    #[cfg(feature = "check")]
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// The tasks that it knows, in a few lines.
    #[cfg(feature = "check")]
    pub(crate) fn show_jobs(&self) -> alloc::string::String {
        let jobs = self.jobs.iter();
        jobs.map(|it| alloc::format!("\n    {it:?}")).collect()
    }

    /// The tasks that it knows.
    #[cfg(feature = "check")]
    pub(crate) fn tasks(&self) -> impl Iterator<Item = crate::TaskId> + '_ {
        self.jobs.iter().map(|it| it.task)
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The phase of its duty cycle; `None` before it is started.
    #[must_use]
    pub const fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// The gateway that it is at.
    #[must_use]
    pub fn attached_to(&self) -> NodeId {
        self.gateway().id
    }

    /// The libraries that it has, from the first to be dropped to the last.
    pub fn libraries(&self) -> impl Iterator<Item = Library> + '_ {
        self.libraries.iter().copied()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }
}
