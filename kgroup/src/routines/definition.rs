//! A routine as a group runs it, and its triggers.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_routine::trigger::{Clause, SUN_OFFSET, Trigger};
use selvedge_routine::{LONGEST_LATENESS, Routine, State, Step};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{clause, times};
use crate::Delivery;

/// The number of commands that a routine may have.
pub const STEPS_MAX: usize = 256;

/// The number of devices that a routine may lock and watch, each counted once.
pub const DEVICES_MAX: usize = 128;

/// The number of parts that a clause may have.
pub const CLAUSE_MAX: usize = 64;

/// The number of triggers of time that a routine may have.
pub const TIMES_MAX: usize = 16;

/// The shortest interval of a trigger: a group has to decide about each.
pub const INTERVAL_LEAST: Span = Span::secs(1);

/// The way in which a run gets its devices (section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Locking {
    /// Locks one device after the other, in the order of their ids; it waits its turn at each. Two
    /// runs never wait for each other.
    #[default]
    Sequential,
    /// All at once. If one is held by another run, it gives all of them back and tries again after
    /// a while. Faster where runs seldom meet; two that meet may hold each other up for long.
    Optimistic,
}

/// The effect of a trigger while the routine runs (the paper is silent: erratum G9). A routine runs
/// from the trigger until all devices are given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Retrigger {
    /// Nothing.
    #[default]
    Ignore,
    /// Adds a run after this one, however many triggers there are.
    QueueOnce,
    /// The command under way is waited for, but not the time for which it holds its device, nor a device that
    /// [sleeps](crate::devices#devices-that-sleep); the others
    /// are left out, the devices are given back, and a run begins. A run that has not got its devices
    /// yet goes on instead: it has done nothing.
    Restart,
}

/// A routine as its group runs it. Checked once, by [`RoutineState::new`](super::RoutineState::new).
///
/// A command that fails, or with an unknown outcome, ends the run if its
/// [priority](selvedge_routine::Priority) is `Must`. Earlier commands are not undone: groups
/// promise order and isolation, not atomicity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// The commands. [`Step::undo`] has to be `None`: nothing is undone.
    pub routine: Routine<State>,
    /// Triggers the routine whenever it becomes true, also when it was unknown before. For a device
    /// that does not answer, its last report counts.
    #[serde(with = "clause")]
    pub clause: Option<Clause<State>>,
    /// The times at which it is triggered: times of day, times of the sun, and intervals, which count
    /// from 1970-01-01 00:00 UTC. By the clocks of the group's members ([`WallClock`](crate::WallClock)).
    #[serde(with = "times")]
    pub triggers: Vec<Trigger<State>>,
    /// The time after which an occurrence of a trigger is left out: up to [`LONGEST_LATENESS`]. Default
    /// one hour, so that times which the local clock steps over in spring come after the step.
    pub lateness: Span,
    /// The way in which it gets its devices.
    pub locking: Locking,
    /// The effect of a trigger while it runs.
    pub retrigger: Retrigger,
    /// The deliveries of the commands, one for each step.
    pub deliveries: Vec<Delivery>,
    /// The time for which a leader waits for the outcome of a command that has no timeout of its
    /// own, and for the state that a condition asks for: above zero. Default 10 s. The time for which a
    /// device [sleeps](crate::devices#devices-that-sleep) does not count, here and in a step's own timeout.
    pub command_timeout: Span,
}

impl Definition {
    /// A routine without a clause, with sequential locks, that ignores triggers while it runs, and
    /// all of whose commands may be given twice.
    #[must_use]
    pub fn new(routine: Routine<State>) -> Self {
        let deliveries = vec![Delivery::default(); routine.steps.len()];
        Self {
            routine,
            clause: None,
            triggers: vec![],
            lateness: Span::secs(3_600),
            locking: Locking::default(),
            retrigger: Retrigger::default(),
            deliveries,
            command_timeout: Span::secs(10),
        }
    }

    /// The same with this clause.
    #[must_use]
    pub fn with_clause(mut self, clause: Clause<State>) -> Self {
        self.clause = Some(clause);
        self
    }

    /// The same with one more trigger of time.
    #[must_use]
    pub fn with_trigger(mut self, trigger: Trigger<State>) -> Self {
        self.triggers.push(trigger);
        self
    }

    /// The same with this lateness.
    #[must_use]
    pub const fn with_lateness(mut self, lateness: Span) -> Self {
        self.lateness = lateness;
        self
    }

    /// The same with one delivery for each step.
    #[must_use]
    pub fn with_deliveries(mut self, deliveries: impl Into<Vec<Delivery>>) -> Self {
        self.deliveries = deliveries.into();
        self
    }

    /// The same with these locks.
    #[must_use]
    pub const fn with_locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// The same with this policy.
    #[must_use]
    pub const fn with_retrigger(mut self, retrigger: Retrigger) -> Self {
        self.retrigger = retrigger;
        self
    }

    /// The same with this timeout.
    #[must_use]
    pub const fn with_command_timeout(mut self, timeout: Span) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Checks that a group can run it.
    ///
    /// # Errors
    /// The first reason why it cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let steps = &self.routine.steps;
        let (found, listed) = (steps.len(), self.deliveries.len());
        if found == 0 {
            return Err(ConfigError::NoStep);
        }
        if found > STEPS_MAX {
            return Err(ConfigError::Steps { found });
        }
        if listed != found {
            return Err(ConfigError::Deliveries {
                found: listed,
                steps: found,
            });
        }
        if self.command_timeout == Span::ZERO {
            return Err(ConfigError::Timeout);
        }
        if let Some(step) = steps.iter().position(|it| it.undo.is_some()) {
            return Err(ConfigError::Undo { step });
        }
        if let Some(step) = steps.iter().position(|it| it.timeout == Some(Span::ZERO)) {
            return Err(ConfigError::StepTimeout { step });
        }
        let asks_several = |it: &Step<State>| {
            let condition = it.condition.as_ref();
            condition.is_some_and(|it| it.single().is_none())
        };
        if let Some(step) = steps.iter().position(asks_several) {
            return Err(ConfigError::Condition { step });
        }
        let found = self.clause.as_ref().map_or(0, Clause::size);
        if found > CLAUSE_MAX {
            return Err(ConfigError::Clause { found });
        }
        let found = self.devices().len();
        if found > DEVICES_MAX {
            return Err(ConfigError::Devices { found });
        }
        self.check_triggers()
    }

    fn check_triggers(&self) -> Result<(), ConfigError> {
        let found = self.triggers.len();
        if found > TIMES_MAX {
            return Err(ConfigError::Times { found });
        }
        if self.lateness > LONGEST_LATENESS {
            return Err(ConfigError::Lateness {
                found: self.lateness,
            });
        }
        for (trigger, it) in self.triggers.iter().enumerate() {
            match *it {
                Trigger::Every(found) if found < INTERVAL_LEAST => {
                    return Err(ConfigError::Interval { trigger, found });
                }
                Trigger::Sun {
                    offset_ms: found, ..
                } if found.unsigned_abs() > SUN_OFFSET.unsigned_abs() => {
                    return Err(ConfigError::Offset { trigger, found });
                }
                Trigger::When(_) | Trigger::Manual => {
                    return Err(ConfigError::NoTime { trigger });
                }
                Trigger::At(_) | Trigger::On { .. } | Trigger::Sun { .. } | Trigger::Every(_) => {}
            }
        }
        Ok(())
    }

    /// The devices that a run locks: those of its commands and of its conditions. In the order of
    /// their ids, each once.
    #[must_use]
    pub fn locks(&self) -> Vec<NodeId> {
        let mut devices = self.routine.devices();
        devices.sort_unstable();
        devices
    }

    /// The devices of the clause, in the order of their ids, each once.
    #[must_use]
    pub fn watches(&self) -> Vec<NodeId> {
        let mut devices = Vec::new();
        let mut waiting: Vec<_> = self.clause.iter().collect();
        while let Some(clause) = waiting.pop() {
            match clause {
                Clause::Is(condition) => devices.push(condition.device),
                Clause::Not(inner) => waiting.push(inner),
                Clause::All(all) | Clause::Any(all) => waiting.extend(all),
            }
        }
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// All devices, in the order of their ids, each once.
    #[must_use]
    pub fn devices(&self) -> Vec<NodeId> {
        let mut devices = self.locks();
        devices.extend(self.watches());
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    pub(super) fn step(&self, step: u16) -> Option<&Step<State>> {
        self.routine.steps.get(usize::from(step))
    }

    /// The wait for the outcome of a step.
    pub(super) fn timeout(&self, step: &Step<State>) -> Span {
        step.timeout.unwrap_or(self.command_timeout)
    }

    pub(super) fn delivery(&self, step: u16) -> Delivery {
        let listed = self.deliveries.get(usize::from(step));
        listed.copied().unwrap_or_default()
    }
}

/// The reason why a group cannot run a routine. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The routine has no step.
    #[error("the routine has no step: add a step")]
    NoStep,
    /// The routine has too many commands.
    #[error("the routine has {found} steps, the limit is {STEPS_MAX}: remove some")]
    Steps {
        /// The number of steps.
        found: usize,
    },
    /// The routine has too many devices.
    #[error(
        "the routine locks and watches {found} devices, the limit is {DEVICES_MAX}: remove some"
    )]
    Devices {
        /// The number of devices.
        found: usize,
    },
    /// Not each command has a delivery.
    #[error("{found} deliveries are listed for {steps} steps: list one for each step")]
    Deliveries {
        /// The number of deliveries.
        found: usize,
        /// The number of commands.
        steps: usize,
    },
    /// The clause has too many parts.
    #[error("the clause has {found} parts, the limit is {CLAUSE_MAX}: remove some")]
    Clause {
        /// The number of parts.
        found: usize,
    },
    /// The routine has too many triggers of time.
    #[error("the routine has {found} triggers of time, the limit is {TIMES_MAX}: remove some")]
    Times {
        /// The number of triggers.
        found: usize,
    },
    /// An occurrence would be followed by the next one before it is too late.
    #[error("lateness is {found:?}: set it to a day at most")]
    Lateness {
        /// The lateness.
        found: Span,
    },
    /// A group cannot decide that often.
    #[error(
        "trigger {trigger}, counted from 0, comes every {found:?}: set the interval to {INTERVAL_LEAST:?} or more"
    )]
    Interval {
        /// The index of the trigger, from 0.
        trigger: usize,
        /// The interval.
        found: Span,
    },
    /// Too far from sunrise or sunset.
    #[error(
        "trigger {trigger}, counted from 0, is {found} ms away from sunrise or sunset: give half a day at most"
    )]
    Offset {
        /// The index of the trigger, from 0.
        trigger: usize,
        /// The offset in milliseconds.
        found: i32,
    },
    /// Not a trigger of time.
    #[error(
        "trigger {trigger}, counted from 0, is a clause or a button: give a clause by `with_clause`; Command::Trigger needs nothing"
    )]
    NoTime {
        /// The index of the trigger, from 0.
        trigger: usize,
    },
    /// No leader would wait for a command.
    #[error("command_timeout is 0 us: set it above zero")]
    Timeout,
    /// No leader would wait for this command.
    #[error("the timeout of step {step}, counted from 0, is 0 us: set it above zero, or to none")]
    StepTimeout {
        /// The index of the step, from 0.
        step: usize,
    },
    /// A group asks one device for each command.
    /// That takes a round to the device's group; with several devices, one could change between two rounds.
    #[error(
        "the condition of step {step}, counted from 0, is more than one comparison: give one, or ask in the clause"
    )]
    Condition {
        /// The index of the step, from 0.
        step: usize,
    },
    /// Groups undo nothing.
    #[error("step {step}, counted from 0, has an undo, which groups do not support: remove it")]
    Undo {
        /// The index of the step, from 0.
        step: usize,
    },
}
