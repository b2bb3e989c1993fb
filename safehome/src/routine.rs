//! What a user wants done: commands to devices, in order.

use alloc::vec::Vec;
use core::fmt;

use selvedge_core::{NodeId, Span};

/// A routine, by the order in which the hub took them: from 1, and never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct RoutineId(pub u64);

impl fmt::Display for RoutineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Commands that are done one after the other, all or none (section 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Routine<V> {
    /// In this order: from 1 of them to [`Config::step_limit`](crate::Config::step_limit).
    pub steps: Vec<Step<V>>,
}

/// One command of a routine: brings a device into a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Step<V> {
    /// Which device.
    pub device: NodeId,
    /// Into which state.
    pub value: V,
    /// What its failure means.
    pub priority: Priority,
    /// How long the device is needed after it has reached the state: a long command (section 1).
    /// Zero for a short one.
    pub hold: Span,
    /// How long to wait for the outcome: above zero. `None` for [`Config::timeout`](crate::Config::timeout).
    pub timeout: Option<Span>,
    /// The state that undoes it. `None` for the state before.
    pub undo: Option<V>,
    /// Done only if this holds when its turn comes; otherwise passed over, which is no failure.
    pub condition: Option<Condition<V>>,
}

/// What becomes of a routine one of whose commands fails (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Priority {
    /// It is aborted: what it did is undone.
    #[default]
    Must,
    /// It goes on, and the application is told.
    BestEffort,
}

/// A question about the state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Condition<V> {
    /// Which device.
    pub device: NodeId,
    /// How its state is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: V,
}

/// How states are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Comparison {
    /// The same.
    Equal,
    /// Another.
    NotEqual,
    /// Less, by the order of states.
    Less,
    /// More, by the order of states.
    Greater,
}

impl<V: Ord> Condition<V> {
    /// Whether a device in this state satisfies it.
    pub fn holds(&self, state: &V) -> bool {
        match self.comparison {
            Comparison::Equal => *state == self.value,
            Comparison::NotEqual => *state != self.value,
            Comparison::Less => *state < self.value,
            Comparison::Greater => *state > self.value,
        }
    }
}

impl<V> Step<V> {
    /// A short command that must succeed.
    pub const fn new(device: NodeId, value: V) -> Self {
        Self {
            device,
            value,
            priority: Priority::Must,
            hold: Span::ZERO,
            timeout: None,
            undo: None,
            condition: None,
        }
    }

    /// The devices that it needs: the one that it asks about, and the one that it changes.
    pub(crate) fn devices(&self) -> impl Iterator<Item = NodeId> + '_ {
        let asked = self.condition.iter().map(|condition| condition.device);
        asked.chain([self.device])
    }
}

impl<V> Routine<V> {
    /// The devices that it needs, in the order in which it first does.
    pub(crate) fn devices(&self) -> Vec<NodeId> {
        let mut devices = Vec::with_capacity(self.steps.len());
        for device in self.steps.iter().flat_map(Step::devices) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        devices
    }

    /// Whether `device` is needed at the step with this number, or later.
    pub(crate) fn needs(&self, device: NodeId, from: usize) -> bool {
        let mut left = self.steps.iter().skip(from);
        left.any(|step| step.devices().any(|it| it == device))
    }

    /// Whether a command to `device` must succeed.
    pub(crate) fn must_command(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must && step.device == device;
        self.steps.iter().any(is_must)
    }

    /// Whether a command to `device`, or one whose condition asks about it, must succeed.
    pub(crate) fn must(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must;
        let mut all = self.steps.iter();
        all.any(|step| is_must(step) && step.devices().any(|it| it == device))
    }
}
