//! Routines: commands to devices, in order.

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
    /// The commands in order: at least one.
    pub steps: Vec<Step<V>>,
}

/// A command of a routine: brings a device into a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Step<V> {
    /// The device.
    pub device: NodeId,
    /// The state to bring it into.
    pub value: V,
    /// The effect of its failure.
    pub priority: Priority,
    /// The time for which the device is needed after it has reached the state: a long command
    /// (section 1). Zero for a short one.
    pub hold: Span,
    /// The longest wait for the outcome: above zero. `None` for as long as the protocol waits.
    pub timeout: Option<Span>,
    /// The state that undoes it. `None` for the state before.
    pub undo: Option<V>,
    /// Done only if this holds when its turn comes; otherwise skipped, which is no failure. Up to
    /// [`Clause::MOST`] parts. An answer that depends on an unknown state, or on a device that is
    /// down, is a failure of the command.
    pub condition: Option<Clause<V>>,
    /// True if a more [urgent](crate::Urgency) routine may end the hold early: the command then
    /// counts as done. No effect where `hold` is zero, and for a protocol without urgencies.
    pub preemptible: bool,
}

/// The effect on a routine when this command fails (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Priority {
    /// The routine is aborted: its effects are undone.
    #[default]
    Must,
    /// The routine continues, and the application is notified.
    BestEffort,
}

/// A comparison of the state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Condition<V> {
    /// The device.
    pub device: NodeId,
    /// The comparison.
    pub comparison: Comparison,
    /// The value to compare with.
    pub value: V,
}

/// A comparison of states.
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
    /// Returns true if a device in this state satisfies it.
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

    /// Returns true if the step commands the device, or its condition names it.
    fn needs(&self, device: NodeId) -> bool {
        let asks = |it: &Clause<V>| it.asks(device);
        self.device == device || self.condition.as_ref().is_some_and(asks)
    }

    /// The devices that the step needs: the devices in its condition, then the one that it
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

    /// Returns true if the step with this number, counted from 0, or a later one needs `device`.
    /// O(steps).
    #[must_use]
    pub fn needs(&self, device: NodeId, from: usize) -> bool {
        let mut left = self.steps.iter().skip(from);
        left.any(|step| step.needs(device))
    }

    /// Returns true if a command to `device` must succeed. O(steps).
    #[must_use]
    pub fn must_command(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must && step.device == device;
        self.steps.iter().any(is_must)
    }

    /// Returns true if a command to `device`, or a command with a condition that names it, must
    /// succeed. O(steps).
    #[must_use]
    pub fn must_reach(&self, device: NodeId) -> bool {
        let is_must = |step: &Step<V>| step.priority == Priority::Must;
        let mut all = self.steps.iter();
        all.any(|step| is_must(step) && step.needs(device))
    }
}
