//! What a user wants done: commands to devices, in order.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use crate::Clause;

/// The longest time for which a command to a device may still act after its outcome came back
/// unknown: a day.
pub const LONGEST_LATENESS: Span = Span::secs(86_400);

/// Commands that are done one after the other, all or none (section 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Routine<V> {
    /// In this order: at least one.
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
    /// How long to wait for the outcome: above zero. `None` for as long as the protocol
    /// waits.
    pub timeout: Option<Span>,
    /// The state that undoes it. `None` for the state before.
    pub undo: Option<V>,
    /// Done only if this holds when its turn comes; otherwise passed over, which is no failure. Up
    /// to [`Clause::MOST`] parts. An answer that depends on a state which is unknown, or on a device
    /// that is down, is a failure of the command.
    pub condition: Option<Clause<V>>,
    /// Whether a more [urgent](crate::Urgency) routine may end the hold early: the command then
    /// counts as done. Means nothing where `hold` is zero, and to a protocol without urgencies.
    pub preemptible: bool,
}

/// What becomes of a routine when this command fails (section 2.2).
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
            preemptible: false,
        }
    }

    /// Whether the step commands the device, or its condition asks about it.
    fn needs(&self, device: NodeId) -> bool {
        let asks = |it: &Clause<V>| it.asks(device);
        self.device == device || self.condition.as_ref().is_some_and(asks)
    }

    /// The devices that the step needs: those that its condition asks about, then the one that it
    /// commands. May name one device twice.
    pub fn devices(&self) -> impl Iterator<Item = NodeId> + '_ {
        let asked = Clause::conditions_of(self.condition.as_ref());
        asked.map(|it| it.device).chain([self.device])
    }
}

impl<V> Routine<V> {
    /// The devices that the routine needs, in the order in which it first needs them, each once.
    /// Takes O(n d), with n the steps and d the devices.
    #[must_use]
    pub fn devices(&self) -> Vec<NodeId> {
        let mut devices = Vec::with_capacity(self.steps.len());
        let mut need = |device| {
            if !devices.contains(&device) {
                devices.push(device);
            }
        };
        for step in &self.steps {
            if let Some(condition) = &step.condition {
                condition.devices().for_each(&mut need);
            }
            need(step.device);
        }
        devices
    }

    /// Whether the step with this number, counted from 0, or a later one needs `device`. O(steps).
    #[must_use]
    pub fn needs(&self, device: NodeId, from: usize) -> bool {
        let mut left = self.steps.iter().skip(from);
        left.any(|step| step.needs(device))
    }

    /// Whether a command to `device` must succeed. O(steps).
    #[must_use]
    pub fn must_command(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must && step.device == device;
        self.steps.iter().any(is_must)
    }

    /// Whether a command to `device`, or a command with a condition that asks about it, must
    /// succeed. O(steps).
    #[must_use]
    pub fn must_reach(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must;
        let mut all = self.steps.iter();
        all.any(|step| is_must(step) && step.needs(device))
    }
}
