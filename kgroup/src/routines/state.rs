//! The replicated state of a routine's group.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_routine::Priority;
use serde::{Deserialize, Serialize};

use super::published::Rules;
use super::update::{Decided, Taken, Update};
use super::{ConfigError, Definition, End, Report, Retrigger, StepOutcome};
use crate::{Status, TriggerId, message::Claim};

/// The number of triggers that a group remembers. A trigger that is repeated after this number of
/// other triggers starts another run.
pub const TRIGGERS_MAX: usize = 64;

/// The stage of a routine (section 4.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stage {
    /// It waits for a trigger.
    NotTriggered,
    /// It gets its devices.
    AcquiringLocks {
        /// The number of the try, from 1.
        attempt: u32,
    },
    /// All its devices are held by this try.
    Executing {
        /// The try that got them.
        attempt: u32,
        /// The outcomes of the steps before the present one.
        outcomes: Vec<StepOutcome>,
        /// The condition of the present step holds: it is done, whichever node leads.
        is_cleared: bool,
    },
    /// It gives its devices back.
    ReleasingLocks {
        /// The try that got them, or was about to.
        attempt: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Observed {
    device: NodeId,
    status: Status,
}

/// The first knowledge of the devices of a clause: none.
pub(super) fn observes(definition: &Definition) -> Vec<Observed> {
    let observe = |device| Observed {
        device,
        status: Status::default(),
    };
    definition.watches().into_iter().map(observe).collect()
}

/// The state of a routine's group: replicated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RoutineState {
    pub(super) definition: Definition,
    /// The generation of the site that brought the definition.
    pub(super) since: u32,
    /// The definition that follows after the present run, and its generation.
    pub(super) pending: Option<Box<(u32, Definition)>>,
    /// The present run, or the last one: 0 before the first.
    pub(super) instance: u64,
    pub(super) stage: Stage,
    /// The decided time for which the command of the present step has held its device.
    held: Span,
    /// A run follows the present one.
    is_queued: bool,
    /// The devices of the clause, in the order of their ids.
    pub(super) observed: Vec<Observed>,
    /// True if the clause is known to be true.
    pub(super) is_true: bool,
    /// The last triggers, the oldest first.
    triggers: Vec<TriggerId>,
    /// The last decided occurrence of each trigger of time.
    pub(super) marks: Vec<Option<u64>>,
    report: Option<Report>,
    #[serde(skip)]
    pub(super) rules: Rules,
}

impl RoutineState {
    /// A routine that waits for its first trigger.
    ///
    /// # Errors
    /// The reason why a group cannot run it.
    pub fn new(definition: Definition) -> Result<Self, ConfigError> {
        definition.check()?;
        Ok(Self::begin_with(definition))
    }

    pub(super) fn begin_with(definition: Definition) -> Self {
        Self {
            observed: observes(&definition),
            marks: vec![None; definition.triggers.len()],
            definition,
            since: 0,
            pending: None,
            instance: 0,
            stage: Stage::NotTriggered,
            held: Span::ZERO,
            is_queued: false,
            is_true: false,
            triggers: Vec::new(),
            report: None,
            rules: Rules::default(),
        }
    }

    /// The same under rules that do not hold up. For checks only.
    #[cfg(feature = "check")]
    #[must_use]
    pub(crate) fn published(mut self, rules: &[super::Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// The definition that it runs.
    #[must_use]
    pub const fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The number of the present run, or of the last one; 0 before the first.
    #[must_use]
    pub const fn instance(&self) -> u64 {
        self.instance
    }

    /// The stage of the present run.
    #[must_use]
    pub const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns true if another run follows the present one.
    #[must_use]
    pub const fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// The report of the last run whose steps are over.
    #[must_use]
    pub const fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Returns true if a trigger was taken, as far as that is remembered.
    #[must_use]
    pub fn has(&self, trigger: TriggerId) -> bool {
        self.triggers.contains(&trigger)
    }

    /// The last observed status of a device of the clause.
    #[must_use]
    pub fn observed(&self, device: NodeId) -> Option<&Status> {
        let at = self.place(device)?;
        self.observed.get(at).map(|it| &it.status)
    }

    /// The claim under which the present run holds its devices, or asks for them or gives them back.
    #[must_use]
    pub const fn claim(&self, routine: GroupId) -> Option<Claim> {
        let attempt = match self.stage {
            Stage::NotTriggered => return None,
            Stage::AcquiringLocks { attempt }
            | Stage::Executing { attempt, .. }
            | Stage::ReleasingLocks { attempt } => attempt,
        };
        Some(Claim {
            routine,
            instance: self.instance,
            attempt,
        })
    }

    /// The present step, counted from 0, while it executes.
    #[must_use]
    pub fn step(&self) -> Option<u16> {
        match &self.stage {
            Stage::Executing { outcomes, .. } => u16::try_from(outcomes.len()).ok(),
            Stage::NotTriggered | Stage::AcquiringLocks { .. } | Stage::ReleasingLocks { .. } => {
                None
            }
        }
    }

    /// The decided time for which the command of the present step has held its device.
    #[must_use]
    pub const fn held(&self) -> Span {
        self.held
    }

    /// Returns true if the present step is cut short: another run is about to begin.
    pub(super) fn is_cut(&self) -> bool {
        self.is_queued && self.definition.retrigger == Retrigger::Restart
    }

    /// Returns true if an update changes anything.
    pub(crate) fn is_due(&self, update: &Update) -> bool {
        match *update {
            Update::Define {
                generation,
                ref definition,
            } => self.judge_define(generation, definition).is_some(),
            // What is asked before is asked again.
            _ if !self.is_defined() => false,
            Update::Observed { device, ref status } => {
                let known = self.observed(device);
                known.is_some_and(|it| it.version < status.version)
            }
            Update::Trigger(id) => !self.has(id),
            Update::Due(due) => self.has_not_come(due) || self.rules.each_leader_starts(),
            Update::Locked { instance, attempt }
            | Update::Retry { instance, attempt }
            | Update::NoDevice {
                instance, attempt, ..
            } => instance == self.instance && self.stage == Stage::AcquiringLocks { attempt },
            Update::Cleared { instance, step } => self.is_at(instance, step, false),
            Update::StepDone {
                instance,
                step,
                is_cleared,
                ..
            } => self.is_at(instance, step, is_cleared),
            Update::Held {
                instance,
                step,
                held,
            } => instance == self.instance && self.step() == Some(step) && self.held < held,
            Update::Released { instance } => {
                let is_releasing = matches!(self.stage, Stage::ReleasingLocks { .. });
                instance == self.instance && is_releasing
            }
        }
    }

    fn is_at(&self, instance: u64, step: u16, cleared: bool) -> bool {
        let is_cleared = match self.stage {
            Stage::Executing { is_cleared, .. } => is_cleared == cleared,
            Stage::NotTriggered | Stage::AcquiringLocks { .. } | Stage::ReleasingLocks { .. } => {
                false
            }
        };
        instance == self.instance && self.step() == Some(step) && is_cleared
    }

    fn place(&self, device: NodeId) -> Option<usize> {
        let found = self.observed.binary_search_by_key(&device, |it| it.device);
        found.ok()
    }

    fn on_observed(&mut self, device: NodeId, status: &Status) -> Decided {
        let at = self.place(device);
        if let Some(observed) = at.and_then(|at| self.observed.get_mut(at)) {
            observed.status.clone_from(status);
        }
        let value = |device| self.observed(device).and_then(|it| it.value.as_ref());
        let clause = self.definition.clause.as_ref();
        let is_true = clause.and_then(|it| it.holds(&value)) == Some(true);
        let becomes = is_true && !self.is_true;
        self.is_true = is_true;
        Decided::Observed {
            device,
            taken: becomes.then(|| self.start()),
        }
    }

    fn on_trigger(&mut self, id: TriggerId) -> Decided {
        if self.triggers.len() >= TRIGGERS_MAX {
            self.triggers.remove(0);
        }
        self.triggers.push(id);
        let taken = Some(self.start());
        Decided::Triggered { id, taken }
    }

    pub(super) fn start(&mut self) -> Taken {
        let is_idle = self.stage == Stage::NotTriggered;
        if is_idle || self.rules.retriggers_anew() {
            return self.begin();
        }
        let is_acquiring = matches!(self.stage, Stage::AcquiringLocks { .. });
        match self.definition.retrigger {
            Retrigger::Ignore => Taken::Ignored,
            Retrigger::Restart if is_acquiring => Taken::Runs {
                instance: self.instance,
            },
            Retrigger::QueueOnce | Retrigger::Restart => {
                self.is_queued = true;
                Taken::Queued
            }
        }
    }

    fn begin(&mut self) -> Taken {
        self.instance = self.instance.saturating_add(1);
        self.stage = Stage::AcquiringLocks { attempt: 1 };
        let instance = self.instance;
        Taken::Runs { instance }
    }

    fn on_step_done(&mut self, outcome: StepOutcome) -> Decided {
        let is_cut = self.is_cut();
        self.held = Span::ZERO;
        let Stage::Executing {
            attempt,
            outcomes,
            is_cleared,
        } = &mut self.stage
        else {
            debug_assert!(false, "no step is over before the steps begin");
            return Decided::Nothing;
        };
        let attempt = *attempt;
        let step = outcomes.len();
        let steps = &self.definition.routine.steps;
        let is_must = (steps.get(step)).is_some_and(|it| it.priority == Priority::Must);
        outcomes.push(outcome);
        *is_cleared = false;
        let has_failed = matches!(outcome, StepOutcome::Failed | StepOutcome::Unknown);
        let end = if is_must && has_failed {
            let step = u16::try_from(step).unwrap_or(u16::MAX);
            End::Failed { step }
        } else if outcomes.len() >= steps.len() {
            End::Completed
        } else if is_cut {
            End::Restarted
        } else {
            return Decided::Steps;
        };
        let outcomes = core::mem::take(outcomes);
        self.end(attempt, end, outcomes)
    }

    fn end(&mut self, attempt: u32, end: End, mut steps: Vec<StepOutcome>) -> Decided {
        let count = self.definition.routine.steps.len();
        steps.resize(count.max(steps.len()), StepOutcome::NotReached);
        self.report = Some(Report {
            instance: self.instance,
            end,
            steps,
        });
        self.stage = Stage::ReleasingLocks { attempt };
        Decided::Releases
    }

    fn on_released(&mut self) -> Decided {
        let instance = self.instance;
        self.stage = Stage::NotTriggered;
        self.take_pending();
        if core::mem::take(&mut self.is_queued) {
            self.begin();
        }
        Decided::Ends { instance }
    }
}

impl selvedge_replica::State for RoutineState {
    type Update = Update;
    type Outcome = Decided;

    /// Takes time in proportion to the clause for an observation; else to the steps.
    fn apply(&mut self, update: &Update) -> Decided {
        if !self.is_due(update) {
            return match *update {
                _ if !self.is_defined() => Decided::Nothing,
                Update::Trigger(id) => Decided::Triggered { id, taken: None },
                Update::Due(due) => Decided::Due {
                    due,
                    taken: None,
                    left_out: 0,
                },
                Update::Observed { .. }
                | Update::Locked { .. }
                | Update::Retry { .. }
                | Update::NoDevice { .. }
                | Update::Cleared { .. }
                | Update::StepDone { .. }
                | Update::Held { .. }
                | Update::Released { .. }
                | Update::Define { .. } => Decided::Nothing,
            };
        }
        match *update {
            Update::Observed { device, ref status } => self.on_observed(device, status),
            Update::Trigger(id) => self.on_trigger(id),
            Update::Due(due) => self.on_due(due),
            Update::Locked { attempt, .. } => {
                self.stage = Stage::Executing {
                    attempt,
                    outcomes: vec![],
                    is_cleared: false,
                };
                Decided::Executes
            }
            Update::Retry { attempt, .. } => {
                let attempt = attempt.saturating_add(1);
                self.stage = Stage::AcquiringLocks { attempt };
                Decided::Retries
            }
            Update::NoDevice {
                attempt, device, ..
            } => self.end(attempt, End::NoDevice { device }, vec![]),
            Update::Cleared { .. } => {
                if let Stage::Executing { is_cleared, .. } = &mut self.stage {
                    *is_cleared = true;
                }
                Decided::Cleared
            }
            Update::StepDone { outcome, .. } => self.on_step_done(outcome),
            Update::Held { held, .. } => {
                self.held = held;
                Decided::Held
            }
            Update::Released { .. } => self.on_released(),
            Update::Define {
                generation,
                ref definition,
            } => self.on_define(generation, definition),
        }
    }
}
