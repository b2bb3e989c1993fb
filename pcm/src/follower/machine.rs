//! Where each input goes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_core::{Context, Input, Machine, Member, NodeId, Untracked};

use super::Config;
use super::event::{Command, Counters, Event, Misbehaviour, Phase, Reject, Timer};
use super::job::Job;
use crate::gateway_list::GatewayList;
use crate::published::Rules;
use crate::{DutyCycle, Libraries, Library, Limits, Message};

/// A follower. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower {
    pub(super) config: Config,
    pub(super) me: Member,
    /// Where it can go, and where it is.
    pub(super) gateways: GatewayList,
    /// How many gateways turned it away in this period.
    pub(super) refusals: u8,
    /// Of its attachment.
    pub(super) number: u32,
    pub(super) duty: DutyCycle,
    /// How it spends its time from the next period on, if that changes.
    pub(super) next_duty: Option<DutyCycle>,
    /// None before it is started.
    pub(super) phase: Option<Phase>,
    /// Whether the active phase goes on only because a function runs.
    pub(super) is_late: bool,
    /// In the order in which they came.
    pub(super) jobs: Vec<Job>,
    /// In the order in which they came.
    pub(super) libraries: VecDeque<Library>,
    /// As they were when its attachment got its number.
    pub(super) told: Libraries,
    /// Which library the host gets.
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
            told: Libraries::new(),
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

    /// What a task has come to here: what it returned, and what an orchestrator says.
    #[cfg(feature = "check")]
    pub(crate) fn work_on(
        &self,
        task: crate::TaskId,
    ) -> Option<(Option<&crate::Returned>, Option<&crate::Answer>, &[Member])> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some((job.returned(), job.verdict.as_ref(), &job.electors))
    }

    /// The votes on a task that it has counted, in which attempt.
    #[cfg(feature = "check")]
    pub(crate) fn votes(&self, task: crate::TaskId) -> Option<crate::poll::Votes> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some((job.attempt, job.poll.votes()))
    }

    /// In which attempt, and under which orchestrator of it, it takes part in a task; and that orchestrator.
    #[cfg(feature = "check")]
    pub(crate) fn seat(&self, task: crate::TaskId) -> Option<((u16, u16), Member)> {
        let job = self.jobs.iter().find(|it| it.task == task)?;
        Some(((job.attempt, job.term), job.orchestrator()?))
    }

    /// How much it keeps: jobs, and the most votes of one of them.
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

    /// What it does with its time now; nothing before it is started.
    #[must_use]
    pub const fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// The gateway that it is at.
    #[must_use]
    pub fn attached_to(&self) -> NodeId {
        self.gateway().id
    }

    /// The libraries that it has, the one that goes first at first.
    pub fn libraries(&self) -> impl Iterator<Item = Library> + '_ {
        self.libraries.iter().copied()
    }

    /// What is counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        match message {
            Message::Vote {
                task,
                attempt,
                returned,
            } => self.on_vote(from, (task, attempt), returned, cx),
            Message::Counted { task, attempt } => self.on_counted(from, task, attempt),
            Message::Run(run) => {
                let count = run.electors.len();
                if count > Limits::UNIT_MOST.into() {
                    return Err(Misbehaviour::TooMany(from, count).into());
                }
                if !run.electors.contains(&self.me) {
                    // The request waited in the mailbox, or the gateway does not know the present life yet.
                    if run.electors.iter().any(|it| self.me.supersedes(*it)) {
                        self.counters.0.stale += 1;
                        return Ok(());
                    }
                    return Err(Misbehaviour::NotElected(from).into());
                }
                self.meet_gateway(from)?;
                self.on_run(*run, cx);
            }
            Message::Over { task, attempt } => {
                self.meet_gateway(from)?;
                self.on_over(task, attempt, cx);
            }
            Message::Purged { number } => {
                self.meet_gateway(from)?;
                self.on_purged(number, cx);
            }
            Message::Elsewhere => {
                self.meet_gateway(from)?;
                if from.id == self.gateway().id {
                    self.go_elsewhere(cx);
                }
            }
            Message::Tables(_)
            | Message::Heartbeat { .. }
            | Message::Here
            | Message::KeepAlive { .. }
            | Message::Verdict { .. }
            | Message::Submit { .. }
            | Message::Cancel { .. }
            | Message::Taken { .. }
            | Message::Answer { .. }
            | Message::Refused { .. } => return Err(Misbehaviour::Misdirected(from).into()),
        }
        Ok(())
    }

    /// A gateway of the list speaks, in this life.
    fn meet_gateway(&mut self, from: Member) -> Result<(), Misbehaviour> {
        match self.gateways.meet(from) {
            true => Ok(()),
            false => Err(Misbehaviour::NoGateway(from)),
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.phase.is_none() && !matches!(command, Command::Start) {
            return Err(Reject::NotStarted);
        }
        match command {
            Command::Start if self.phase.is_some() => return Err(Reject::Started),
            Command::Start => self.begin_period(cx),
            Command::Unreachable => self.go_elsewhere(cx),
            Command::Emptied => self.on_emptied(cx),
            Command::Duty(duty) => {
                duty.check()?;
                self.next_duty = (duty != self.duty).then_some(duty);
            }
            Command::Returned { task, returned } => return self.on_returned(task, returned, cx),
            Command::Loaded(library) => return self.on_loaded(library, cx),
            Command::Missing(library) => return self.on_missing(library, cx),
        }
        Ok(())
    }
}

impl Machine for Follower {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer::Phase) => {
                self.end_phase(cx);
                Ok(())
            }
            Input::Tick(Timer::Run) => {
                self.on_run_tick(cx);
                Ok(())
            }
            // It learns from its gateway which followers are here.
            Input::Membership(_) => Ok(()),
            Input::Command(command) => self.command(command, cx),
        }
    }
}
