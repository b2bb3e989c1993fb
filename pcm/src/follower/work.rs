//! Running functions, voting, and counting votes (PCM, section 4.4).

use selvedge_core::{Context, Member};

use super::Follower;
use super::event::{Event, Phase, Reject, Timer};
use super::job::{Job, Stage};
use crate::{Failure, Function, Library, Message, Returned, Run, TaskId};

impl Follower {
    /// Handles a gateway's request to the unit to run a task.
    pub(super) fn on_run(&mut self, run: Run, cx: &mut Context<'_, Self>) {
        let task = run.task;
        let says_once = self.rules.votes_once();
        let is_too_much = run.function.code.len() > self.config.code.into()
            || run.function.libraries.len() > self.config.libraries.into();
        match self.job_mut(task) {
            Some(job) if job.is_renewed_by(&run) => {
                let sent = job.sent;
                job.renew(run);
                if says_once {
                    job.sent = sent;
                }
            }
            Some(_) => return, // A duplicate, or an earlier request that is late.
            None => {
                if !self.make_room() {
                    self.counters.0.no_room += 1;
                    return;
                }
                self.jobs.push(Job::new(run));
            }
        }
        // A function beyond the limits fails at once, because there may be no memory to keep it.
        if is_too_much
            && let Some(job) = self.job_mut(task)
            && job.take_waiting().is_some()
        {
            job.stage = Stage::Returned(Returned::Failed(Failure::TooLong));
            self.counters.0.beyond_limits += 1;
        }
        self.look_at(task, cx);
        self.run_next(cx);
    }

    /// Makes room for a task, by forgetting the first ended one if necessary. Returns false if there is none.
    fn make_room(&mut self) -> bool {
        if self.jobs.len() < self.config.jobs.into() {
            return true;
        }
        let over = self.jobs.iter().position(|it| it.is_over);
        over.map(|at| self.jobs.remove(at)).is_some()
    }

    pub(super) fn job_mut(&mut self, task: TaskId) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|it| it.task == task)
    }

    /// Begins the first function that waits, if the follower is active and runs no other function.
    pub(super) fn run_next(&mut self, cx: &mut Context<'_, Self>) {
        let is_at_work = |it: &Job| matches!(it.stage, Stage::Loads(_) | Stage::Runs);
        if self.phase != Some(Phase::Active) || self.is_late || self.jobs.iter().any(is_at_work) {
            return;
        }
        let mut jobs = self.jobs.iter_mut();
        let next = jobs.find_map(|it| Some((it.task, it.take_waiting()?)));
        if let Some((task, function)) = next {
            self.begin(task, function, cx);
        }
    }

    /// Gets the first library that a function lacks, or has the host run it.
    fn begin(&mut self, task: TaskId, function: Function, cx: &mut Context<'_, Self>) {
        let lacks = function
            .libraries
            .iter()
            .find(|it| !self.libraries.contains(it));
        if let Some(&library) = lacks {
            self.loads = Some(library);
            cx.event(Event::Load(library));
            return self.set_stage(task, Stage::Loads(function));
        }
        self.set_stage(task, Stage::Runs);
        cx.arm(Timer::Run, self.config.time);
        let memory = self.config.memory;
        cx.event(Event::Run {
            task,
            function,
            memory,
        });
    }

    fn set_stage(&mut self, task: TaskId, stage: Stage) {
        if let Some(job) = self.job_mut(task) {
            job.stage = stage;
        }
    }

    /// Takes out the function that waits for this library. The caller must set another stage.
    fn take_loading(&mut self, library: Library) -> Result<Option<(TaskId, Function)>, Reject> {
        self.loads
            .take_if(|it| *it == library)
            .ok_or(Reject::NotAsked(library))?;
        let mut jobs = self.jobs.iter_mut();
        Ok(jobs.find_map(|it| Some((it.task, it.take_loading()?))))
    }

    pub(super) fn on_loaded(
        &mut self,
        library: Library,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let loading = self.take_loading(library)?;
        if self.libraries.len() >= self.config.libraries.into() {
            let is_needed = |it: &Library| {
                let needs = loading.as_ref().map(|it| &it.1.libraries);
                needs.is_some_and(|needs| needs.contains(it))
            };
            // One is found: a function that needs more libraries than are kept has failed before.
            let oldest = self.libraries.iter().position(|it| !is_needed(it));
            if let Some(oldest) = oldest.and_then(|at| self.libraries.remove(at)) {
                cx.event(Event::Unload(oldest));
            }
        }
        self.libraries.push_back(library);
        // None if the function was stopped. It runs now, or waits again if the active phase has ended.
        if let Some((task, function)) = loading {
            self.set_stage(task, Stage::Waits(function));
        }
        self.run_next(cx);
        Ok(())
    }

    pub(super) fn on_missing(
        &mut self,
        library: Library,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if let Some((task, _)) = self.take_loading(library)? {
            self.set_returned(task, Returned::Failed(Failure::NoLibrary), cx);
        }
        self.run_next(cx);
        Ok(())
    }

    pub(super) fn on_returned(
        &mut self,
        task: TaskId,
        returned: Returned,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let job = self.job_mut(task);
        if !job.is_some_and(|it| matches!(it.stage, Stage::Runs)) {
            return Err(Reject::NotRunning(task));
        }
        let is_long = is_longer(&returned, self.config.result);
        self.counters.0.beyond_limits += u64::from(is_long);
        let returned = match is_long {
            true => Returned::Failed(Failure::Result),
            false => returned,
        };
        cx.disarm(Timer::Run);
        self.end_run(task, returned, cx);
        Ok(())
    }

    /// Stops a function that has reached its time limit.
    pub(super) fn on_run_tick(&mut self, cx: &mut Context<'_, Self>) {
        let running = self.jobs.iter().find(|it| matches!(it.stage, Stage::Runs));
        if let Some(task) = running.map(|it| it.task) {
            self.counters.0.beyond_limits += 1;
            cx.event(Event::Stop(task));
            self.end_run(task, Returned::Failed(Failure::Time), cx);
        }
    }

    fn end_run(&mut self, task: TaskId, returned: Returned, cx: &mut Context<'_, Self>) {
        self.set_returned(task, returned, cx);
        self.go_on(cx);
    }

    /// Continues after a function: begins the next one, or ends the phase that waited for it.
    fn go_on(&mut self, cx: &mut Context<'_, Self>) {
        if self.is_late {
            self.next_phase(cx);
        } else {
            self.run_next(cx);
        }
    }

    fn set_returned(&mut self, task: TaskId, returned: Returned, cx: &mut Context<'_, Self>) {
        self.set_stage(task, Stage::Returned(returned));
        self.look_at(task, cx);
    }

    /// Handles the vote of a follower of the unit.
    pub(super) fn on_vote(
        &mut self,
        from: Member,
        (task, attempt): (TaskId, u16),
        returned: Returned,
        cx: &mut Context<'_, Self>,
    ) {
        let (me, takes_any) = (self.me, self.rules.any_vote());
        if is_longer(&returned, self.config.result) {
            // There may be no memory for it, and the tables would refuse it.
            self.counters.0.beyond_limits += 1;
            return;
        }
        let Some(job) = self.job_mut(task) else {
            return; // Perhaps the request is late. The follower votes again.
        };
        if takes_any {
            job.poll.cast_by_any(from, returned.clone());
        }
        if attempt > job.attempt {
            return; // Perhaps the request of that attempt is late. The follower votes again.
        }
        let counts = takes_any || job.orchestrator() == Some(me) && !job.to_gateway;
        if attempt == job.attempt && !counts {
            return; // Perhaps the request that makes it the orchestrator is late. The vote is repeated.
        }
        let is_new =
            attempt == job.attempt && !job.is_over && job.poll.cast(&job.electors, from, returned);
        // A vote for an earlier attempt is acknowledged too, so that the follower stops repeating it.
        cx.send(from, Message::Counted { task, attempt });
        // A vote that changes nothing is no reason to send again before the next period.
        if is_new || takes_any {
            self.look_at(task, cx);
        }
    }

    /// Handles the acknowledgement of this follower's vote.
    pub(super) fn on_counted(&mut self, from: Member, task: TaskId, attempt: u16) {
        let (me, gateway) = (self.me, self.gateway());
        if let Some(job) = self.job_mut(task) {
            let counts = match job.to_gateway {
                true => gateway.id == from.id,
                false => job.orchestrator() == Some(from),
            };
            let is_notified = job.attempt == attempt && counts;
            let has_voted = matches!(job.stage, Stage::Returned(_));
            job.is_over |= is_notified && has_voted && from != me;
        }
    }

    /// Handles the end of a task here: it has ended, or another unit has it.
    pub(super) fn on_over(&mut self, task: TaskId, attempt: u16, cx: &mut Context<'_, Self>) {
        let Some(job) = self.job_mut(task).filter(|it| it.attempt <= attempt) else {
            return;
        };
        job.is_over = true;
        match job.stage {
            // Another function may run meanwhile.
            Stage::Waits(_) => job.stage = Stage::Stopped,
            Stage::Loads(_) => {
                job.stage = Stage::Stopped;
                self.run_next(cx);
            }
            Stage::Runs => {
                job.stage = Stage::Stopped;
                cx.disarm(Timer::Run);
                cx.event(Event::Stop(task));
                self.go_on(cx);
            }
            Stage::Returned(_) | Stage::Stopped => {}
        }
    }

    /// Sends this follower's vote on a task, or counts the votes as the orchestrator and sends a new verdict.
    fn look_at(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        let (me, rules) = (self.me, self.rules);
        let Some(job) = self.job_mut(task).filter(|it| !it.is_over) else {
            return;
        };
        let counts = job.orchestrator() == Some(me) && !job.to_gateway;
        if counts {
            if job.verdict.is_some() && !rules.any_vote() {
                return; // Later votes do not change a verdict.
            }
            if let Stage::Returned(returned) = &job.stage
                && job.poll.vote(me).is_none()
            {
                let returned = returned.clone();
                job.poll.cast(&job.electors, me, returned);
            }
            let verdict = match (rules.any_vote(), rules.first_half()) {
                (true, _) => job.poll.verdict(&job.poll.with_all(&job.electors), me),
                (_, true) => job.poll.first_half(&job.electors, me),
                _ => job.poll.verdict(&job.electors, me),
            };
            if verdict.is_none() || verdict == job.verdict {
                return;
            }
            job.verdict = verdict;
            job.sent = 0;
        }
        self.say(task, cx);
    }

    /// Sends the vote, or the verdict, if there is one.
    fn say(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        let (me, gateway, rules) = (self.me, self.gateway(), self.rules);
        let says_once = rules.votes_once();
        let may_say = |it: &Job| !(it.is_over || says_once && it.sent > 0);
        let Some(job) = self.job_mut(task).filter(|it| may_say(it)) else {
            return;
        };
        let attempt = job.attempt;
        let to = match job.to_gateway {
            true => Some(gateway),
            false => job.orchestrator(),
        };
        match (to, &job.stage) {
            (Some(to), _) if to == me => {
                let Some(answer) = job.verdict.clone() else {
                    return;
                };
                let voters = match rules.any_vote() {
                    true => job.poll.voters(&job.poll.with_all(&job.electors), &answer),
                    false => job.poll.voters(&job.electors, &answer),
                };
                let term = job.term;
                let verdict = Message::Verdict {
                    task,
                    attempt,
                    term,
                    answer,
                    voters,
                };
                cx.send(gateway, verdict);
            }
            (Some(to), Stage::Returned(returned)) => {
                let vote = Message::Vote {
                    task,
                    attempt,
                    returned: returned.clone(),
                };
                cx.send(to, vote);
            }
            _ => return,
        }
        job.sent = job.sent.saturating_add(1);
    }

    /// Repeats messages that are not acknowledged (erratum Q6).
    pub(super) fn repeat(&mut self, cx: &mut Context<'_, Self>) {
        if self.rules.votes_once() {
            return;
        }
        let repeats = self.config.repeats;
        for at in 0..self.jobs.len() {
            let Some(job) = self.jobs.get_mut(at).filter(|it| !it.is_over) else {
                continue;
            };
            if job.sent > repeats {
                job.is_over = true;
                self.counters.0.given_up += 1;
            } else {
                let task = job.task;
                self.say_again(task, cx);
            }
        }
    }

    /// Repeats messages that are not acknowledged after a mailbox has lost them. This does not count as one of
    /// the repetitions that are allowed.
    pub(super) fn repeat_lost(&mut self, cx: &mut Context<'_, Self>) {
        if self.rules.votes_once() {
            return;
        }
        for at in 0..self.jobs.len() {
            let Some(job) = self.jobs.get(at).filter(|it| !it.is_over) else {
                continue;
            };
            let (task, sent) = (job.task, job.sent);
            self.say_again(task, cx);
            if let Some(job) = self.job_mut(task) {
                job.sent = sent;
            }
        }
    }

    fn say_again(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        match self.job_mut(task).is_some_and(|it| it.sent > 0) {
            true => self.say(task, cx),
            false => self.ask_whether_over(task, cx),
        }
    }

    /// Sends an orchestrator's own vote to its gateway while it waits for other votes. The gateway answers if
    /// the task has ended: its first message about that may be lost, and then the orchestrator, which has no
    /// other message to repeat, would wait for ever.
    fn ask_whether_over(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        let (me, gateway) = (self.me, self.gateway());
        let job = self.job_mut(task);
        if let Some(job) = job.filter(|it| it.orchestrator() == Some(me))
            && let Stage::Returned(returned) = &job.stage
        {
            let vote = Message::Vote {
                task,
                attempt: job.attempt,
                returned: returned.clone(),
            };
            cx.send(gateway, vote);
        }
    }
}

fn is_longer(returned: &Returned, most: u16) -> bool {
    matches!(returned, Returned::Value(it) if it.len() > most.into())
}
