//! The leader of a routine's group.
//!
//! The work to be done follows from the state ([`At`]). The memory ([`Task`]) only holds the
//! answers since that work began, so another leader can begin without it: each request may be
//! repeated.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Member, NodeId, Span};
use selvedge_groups::GroupId;

use super::progress::Question;
use super::published::Rules;
use super::{
    Decided, RoutineConfig, RoutineEvent, RoutineState, RoutineTimer, Stage, StepOutcome, Update,
};
use crate::effect::{Effect, Effects};
use crate::message::{Answer, Claim, Request};
use crate::{Due, Status, TriggerId};

/// The number of nodes that wait at once for the decision about their triggers. Others ask again.
pub(super) const ASKERS_MAX: usize = 64;

pub(super) type Out = Effects<Update, RoutineTimer, RoutineEvent>;

/// The work that the state requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Rest,
    Acquiring(Claim),
    Step {
        claim: Claim,
        step: u16,
        is_cleared: bool,
    },
    Releasing(Claim),
}

/// The progress of that work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Rest,
    /// Gives back the devices of the try before, and waits.
    BacksOff {
        released: BTreeSet<NodeId>,
        is_over: bool,
    },
    Acquires {
        granted: BTreeSet<NodeId>,
    },
    /// Asks for the state that a condition needs.
    Reads,
    Acts,
    /// The command is done, and holds its device: the time that has passed, and the timer's
    /// interval.
    Holds {
        held: Span,
        next: Span,
    },
    Releases {
        released: BTreeSet<NodeId>,
    },
}

/// The leader's memory. Another leader begins without it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoutineLeader {
    pub(super) config: RoutineConfig,
    pub(super) routine: GroupId,
    /// The generation of its node's site.
    pub(super) generation: u32,
    /// The generation of the definition by which it leads.
    pub(super) since: u32,
    groups: BTreeMap<NodeId, GroupId>,
    /// The devices that a run locks, in the order of ids.
    pub(super) locks: Vec<NodeId>,
    /// Devices of the clause that have not answered since it leads.
    unwatched: BTreeSet<NodeId>,
    pub(super) at: At,
    pub(super) task: Task,
    /// The proposals that would still change something.
    pub(super) proposed: Vec<Update>,
    /// The clocks of voters, for each trigger of time: reports of which nothing is decided.
    pub(super) clocks: BTreeMap<(u16, NodeId), Due>,
    pub(super) askers: Vec<(Member, TriggerId)>,
    /// The leaders of clusters that ask for the run's progress, and their devices.
    pub(super) questions: BoundedMap<u64, Question>,
    /// The number of the last question.
    pub(crate) last: u64,
    is_armed: bool,
    pub(super) rules: Rules,
    /// Under published rules: the devices that the last try is known to have got.
    pub(super) acquired: BTreeSet<NodeId>,
    /// Under published rules: the steps that are over and not replicated.
    pub(super) ahead: Vec<super::StepOutcome>,
    /// Under published rules: commands of a later leader are others than those of the first one.
    pub(super) relabelled: u16,
}

impl RoutineLeader {
    /// The leader of `routine`'s group. `group_of` returns the group that looks after a device.
    pub fn new(
        config: RoutineConfig,
        routine: GroupId,
        state: &RoutineState,
        group_of: impl Fn(NodeId) -> Option<GroupId>,
    ) -> Self {
        let definition = state.definition();
        let known = |device| Some((device, group_of(device)?));
        Self {
            config,
            routine,
            generation: 0,
            since: state.since(),
            groups: definition.devices().into_iter().filter_map(known).collect(),
            locks: definition.locks(),
            unwatched: definition.watches().into_iter().collect(),
            at: At::Rest,
            task: Task::Rest,
            proposed: Vec::new(),
            clocks: BTreeMap::new(),
            askers: Vec::new(),
            questions: BoundedMap::new(ASKERS_MAX),
            last: 0,
            is_armed: false,
            rules: Rules::default(),
            acquired: BTreeSet::new(),
            ahead: Vec::new(),
            relabelled: 0,
        }
    }

    /// The same under rules that do not hold up, at the first leader or at a later one. For checks only.
    #[cfg(feature = "check")]
    pub fn published(mut self, rules: &[super::Published], is_first: bool) -> Self {
        self.rules = Rules::published(rules);
        if self.rules.sees_at_once() && !is_first {
            self.unwatched.clear();
        }
        if self.rules.progress_in_memory() && !is_first {
            self.relabelled = super::STEPS_MAX as u16;
        }
        self
    }

    /// This node leads now.
    pub fn on_leads(&mut self, state: &RoutineState, out: &mut Out) {
        if self.generation < state.since() {
            return; // It begins anew with the site of its definition.
        }
        self.unwatched.retain(|device| {
            let has_group = self.groups.contains_key(device);
            if !has_group {
                let device = *device;
                out.push(Effect::Event(RoutineEvent::NoDevice { device }));
            }
            has_group
        });
        self.watch(out);
        self.follow(state, out);
    }

    /// An update was applied.
    pub fn on_applied(&mut self, state: &RoutineState, decided: &Decided, out: &mut Out) {
        self.proposed.retain(|it| state.is_due(it));
        match *decided {
            Decided::Observed { device, .. } => self.seen(state, device, out),
            Decided::Triggered { id, .. } => {
                self.askers.retain(|&(from, asked)| {
                    if asked == id {
                        notify(from, id, out);
                    }
                    asked != id
                });
            }
            Decided::Due { due, left_out, .. } => self.on_due_decided(due, left_out, out),
            Decided::Executes => out.push(Effect::Event(RoutineEvent::Executes {
                instance: state.instance(),
            })),
            Decided::Releases => {
                let report = state.report().cloned();
                out.extend(report.map(|it| Effect::Event(RoutineEvent::Reports(it))));
            }
            Decided::Nothing
            | Decided::Retries
            | Decided::Cleared
            | Decided::Held
            | Decided::Steps
            | Decided::Ends { .. }
            | Decided::Defined => {}
        }
        if self.is_outdated(state) {
            // The run of a queued trigger has begun, under another definition: the node renews the leader.
            if matches!(decided, Decided::Ends { .. }) && state.claim(self.routine).is_some() {
                let instance = state.instance();
                out.push(Effect::Event(RoutineEvent::Triggered { instance }));
            }
            return;
        }
        let before = self.at;
        self.follow(state, out);
        if let At::Acquiring(Claim {
            instance,
            attempt: 1,
            ..
        }) = self.at
            && before != self.at
        {
            out.push(Effect::Event(RoutineEvent::Triggered { instance }));
        }
    }

    /// A node asks.
    pub fn on_asked(
        &mut self,
        state: &RoutineState,
        from: Member,
        request: &Request,
        out: &mut Out,
    ) {
        if !state.is_defined() {
            return; // It is asked again.
        }
        let id = match *request {
            Request::Trigger(id) => id,
            Request::Progress {
                cluster,
                device,
                since,
            } => return self.on_question((from, cluster, device, since), out),
            // Meant for a group of another kind: the plans differ.
            Request::Lock { .. }
            | Request::Release { .. }
            | Request::Act { .. }
            | Request::Watch { .. }
            | Request::Seen { .. }
            | Request::Read { .. }
            | Request::Store(_)
            | Request::Due(_) => return,
        };
        if !state.is_due(&Update::Trigger(id)) {
            return notify(from, id, out);
        }
        if self.askers.len() < ASKERS_MAX && !self.askers.contains(&(from, id)) {
            self.askers.push((from, id));
        }
        self.propose(state, Update::Trigger(id), out);
        self.arm(out);
    }

    /// Another group's leader answers.
    pub fn on_answered(
        &mut self,
        state: &RoutineState,
        group: GroupId,
        answer: &Answer,
        out: &mut Out,
    ) {
        let Some(device) = device_of(answer) else {
            return; // Meant for another part of the node.
        };
        if let Answer::Status {
            routine, status, ..
        } = answer
            && *routine == self.routine
            && state.observed(device).is_none()
        {
            return self.is_watched_no_more(group, device, status.version, out);
        }
        if self.groups.get(&device) != Some(&group) {
            return; // From before the plan changed.
        }
        match *answer {
            Answer::Granted { claim, .. } => self.on_granted(state, device, claim, out),
            Answer::Busy { claim, .. } => self.on_busy(state, claim, out),
            Answer::Over { claim, .. } => self.on_over(state, device, claim, out),
            Answer::Released { claim, .. } => self.on_released(state, device, claim, out),
            Answer::Acted {
                claim,
                step,
                outcome,
                ..
            } => self.on_acted(state, claim, step, outcome, out),
            Answer::Read {
                claim,
                step,
                ref status,
                ..
            } => self.on_read(state, device, claim, step, status, out),
            Answer::Asleep { claim, step, .. } => self.on_asleep(state, claim, step, out),
            Answer::Status {
                routine,
                ref status,
                ..
            } if routine == self.routine => self.on_status(state, device, status, out),
            Answer::NoDevice { generation, .. } if generation < self.generation => {} // It asks again.
            Answer::NoDevice { .. } => self.on_no_device(state, device, out),
            // A claim that waits asks again on each tick: the grant may be lost.
            Answer::Queued { .. }
            | Answer::Status { .. }
            | Answer::Triggered(_)
            | Answer::Counted(_)
            | Answer::Store(_)
            | Answer::Progress { .. } => {}
        }
        self.arm(out);
    }

    /// A timer has expired.
    pub fn on_tick(&mut self, state: &RoutineState, timer: RoutineTimer, out: &mut Out) {
        match timer {
            RoutineTimer::Resend => {
                self.is_armed = false;
                for update in self.proposed.clone() {
                    out.push(Effect::Propose(update));
                }
                self.watch(out);
                self.ask(state, out);
            }
            RoutineTimer::Backoff => self.on_backoff(state, out),
            RoutineTimer::Command => self.on_timeout(state, out),
            RoutineTimer::Hold => self.on_held(state, out),
        }
        self.arm(out);
    }

    fn on_status(&mut self, state: &RoutineState, device: NodeId, status: &Status, out: &mut Out) {
        self.unwatched.remove(&device);
        let status = status.clone();
        let update = Update::Observed { device, status };
        if !state.is_due(&update) {
            return self.seen(state, device, out);
        }
        if self.rules.sees_at_once()
            && let Update::Observed { status, .. } = &update
        {
            self.say_seen(device, status.version, out);
        }
        self.propose(state, update, out);
    }

    fn on_no_device(&mut self, state: &RoutineState, device: NodeId, out: &mut Out) {
        if self.unwatched.remove(&device) {
            out.push(Effect::Event(RoutineEvent::NoDevice { device }));
        }
        self.lacks(state, device, out);
    }

    /// The clause does not have the device any more, and its group goes on to send its status.
    fn is_watched_no_more(&self, group: GroupId, device: NodeId, version: u64, out: &mut Out) {
        let routine = self.routine;
        let request = Request::Seen {
            device,
            routine,
            version,
        };
        out.push(Effect::Ask { group, request });
    }

    fn seen(&self, state: &RoutineState, device: NodeId, out: &mut Out) {
        if let Some(status) = state.observed(device) {
            self.say_seen(device, status.version, out);
        }
    }

    fn say_seen(&self, device: NodeId, version: u64, out: &mut Out) {
        let routine = self.routine;
        let seen = Request::Seen {
            device,
            routine,
            version,
        };
        self.ask_of(device, seen, out);
    }

    fn watch(&self, out: &mut Out) {
        let routine = self.routine;
        for &device in &self.unwatched {
            let watch = Request::Watch {
                device,
                routine,
                generation: self.generation,
            };
            self.ask_of(device, watch, out);
        }
    }

    /// Does the work that the state requires, if that has changed.
    pub(super) fn follow(&mut self, state: &RoutineState, out: &mut Out) {
        let at = self.place(state);
        if at != self.at {
            self.leave(out);
            self.at = at;
            self.begin(state, out);
        } else if matches!(self.task, Task::Holds { .. }) && state.is_cut() {
            self.end_step(state, StepOutcome::Done, out);
        }
        self.arm(out);
    }

    fn place(&mut self, state: &RoutineState) -> At {
        // A site before the definition's may lack its devices.
        let is_behind = self.generation < state.since();
        let claim = state.claim(self.routine).filter(|_| !is_behind);
        let Some(claim) = claim else {
            return At::Rest;
        };
        match state.stage() {
            Stage::NotTriggered => At::Rest,
            Stage::AcquiringLocks { .. } => At::Acquiring(claim),
            Stage::ReleasingLocks { .. } => At::Releasing(claim),
            Stage::Executing {
                is_cleared,
                outcomes,
                ..
            } => {
                let over = outcomes.len().max(self.ahead.len());
                At::Step {
                    claim,
                    step: u16::try_from(over).unwrap_or(u16::MAX),
                    is_cleared: *is_cleared,
                }
            }
        }
    }

    fn leave(&mut self, out: &mut Out) {
        let timer = match &mut self.task {
            Task::BacksOff { .. } => Some(RoutineTimer::Backoff),
            Task::Reads | Task::Acts => Some(RoutineTimer::Command),
            Task::Holds { .. } => Some(RoutineTimer::Hold),
            Task::Acquires { granted } if self.rules.releases_acquired() => {
                self.acquired = core::mem::take(granted);
                None
            }
            Task::Rest | Task::Acquires { .. } | Task::Releases { .. } => None,
        };
        out.extend(timer.map(Effect::Disarm));
        self.task = Task::Rest;
    }

    fn begin(&mut self, state: &RoutineState, out: &mut Out) {
        match self.at {
            At::Rest => {}
            At::Acquiring(claim) => self.begin_acquiring(state, claim, out),
            At::Step { .. } => self.begin_step(state, out),
            At::Releasing(_) => self.begin_releasing(state, out),
        }
    }

    /// Asks for the answers that are missing.
    pub(super) fn ask(&self, state: &RoutineState, out: &mut Out) {
        match &self.task {
            Task::Rest | Task::Holds { .. } => {}
            Task::BacksOff { released, .. } | Task::Releases { released } => {
                self.ask_back(released, out);
            }
            Task::Acquires { granted } => self.ask_locks(state, granted, out),
            Task::Reads | Task::Acts => self.ask_step(state, out),
        }
    }

    pub(super) fn ask_of(&self, device: NodeId, request: Request, out: &mut Out) {
        let group = self.groups.get(&device).copied();
        out.extend(group.map(|group| Effect::Ask { group, request }));
    }

    pub(super) fn has_group(&self, device: NodeId) -> bool {
        self.groups.contains_key(&device)
    }

    pub(super) fn propose(&mut self, state: &RoutineState, update: Update, out: &mut Out) {
        if state.is_due(&update) && !self.proposed.contains(&update) {
            self.proposed.push(update.clone());
            out.push(Effect::Propose(update));
        }
    }

    /// Arms the timer that repeats requests while an answer is missing.
    pub(super) fn arm(&mut self, out: &mut Out) {
        let is_asking = !matches!(self.task, Task::Rest | Task::Holds { .. });
        let waits = is_asking || !self.proposed.is_empty() || !self.unwatched.is_empty();
        if waits && !self.is_armed {
            self.is_armed = true;
            out.push(Effect::Arm {
                timer: RoutineTimer::Resend,
                after: self.config.resend,
            });
        }
    }
}

fn notify(to: Member, id: TriggerId, out: &mut Out) {
    let answer = Answer::Triggered(id);
    out.push(Effect::Answer { to, answer });
}

/// The device that an answer is about.
const fn device_of(answer: &Answer) -> Option<NodeId> {
    match *answer {
        Answer::Granted { device, .. }
        | Answer::Queued { device, .. }
        | Answer::Busy { device, .. }
        | Answer::Over { device, .. }
        | Answer::Released { device, .. }
        | Answer::Acted { device, .. }
        | Answer::Read { device, .. }
        | Answer::Status { device, .. }
        | Answer::NoDevice { device, .. }
        | Answer::Asleep { device, .. } => Some(device),
        Answer::Triggered(_) | Answer::Counted(_) | Answer::Store(_) | Answer::Progress { .. } => {
            None
        }
    }
}
