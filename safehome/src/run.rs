//! A routine and its progress.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Time, Untracked};
use smallvec::SmallVec;

use crate::{AbortReason, Placed, Routine, Step, Terms, Urgency};

/// A routine that the hub has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Run<V> {
    pub(crate) routine: Routine<V>,
    /// The devices that it needs, in the order of their first use.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) devices: Needed,
    /// A number that is the same for all routines that need the same devices and ask for no state,
    /// and for few others; 0 for routines that ask.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) sets: u32,
    pub(crate) stage: Stage,
    /// The number of the command in progress, or else of the next one.
    pub(crate) at: u16,
    /// The condition of the next command holds.
    pub(crate) tested: bool,
    /// The device that has a command of this routine in flight, or is held for it.
    pub(crate) busy: Option<NodeId>,
    /// True if it has waited for its first command for longer than
    /// [`Config::patience`](crate::Config::patience).
    pub(crate) late: bool,
    /// The application has received an event that a change of this routine is hidden.
    pub(crate) hidden: bool,
    /// If it is committed and stands for several: these routines, with itself, and the events
    /// between them, in the serial order.
    pub(crate) order: Vec<Placed<V>>,
    /// The terms of its submission.
    pub(crate) terms: Terms,
    /// It superseded others.
    pub(crate) took: bool,
    /// The start of its current wait: only for the reasons why it waits.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) since: Untracked<Time>,
}

/// The devices that a routine needs; most routines need few.
pub(crate) type Needed = SmallVec<[NodeId; 4]>;

/// The progress of a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Stage {
    /// It has no place yet.
    Waiting,
    /// It has its place in the order of each device that it still needs; in a weak hub it takes
    /// them one by one.
    Placed,
    /// A command of it was issued. Before, it may have read states and skipped commands.
    Running,
    /// Its command in flight is awaited, and then it is undone.
    Aborting(AbortReason),
    /// Done; a routine before it in the order is not.
    Committed,
    /// It is held back until others are finished, and has no place.
    Queued,
}

impl<V> Run<V> {
    pub(crate) fn new(routine: Routine<V>, terms: Terms) -> Self {
        let mut run = Self {
            routine,
            devices: Needed::new(),
            sets: 0,
            stage: Stage::Waiting,
            at: 0,
            tested: false,
            busy: None,
            late: false,
            hidden: false,
            order: Vec::new(),
            terms,
            took: false,
            since: Untracked::default(),
        };
        run.find_devices();
        run
    }

    /// Finds the devices that it needs.
    pub(crate) fn find_devices(&mut self) {
        self.devices.clear();
        let mut asks = false;
        for step in &self.routine.steps {
            if let Some(condition) = &step.condition {
                asks = true;
                condition
                    .devices()
                    .for_each(|it| need(&mut self.devices, it));
            }
            need(&mut self.devices, step.device);
        }
        self.sets = if asks { 0 } else { mark(&self.devices) };
    }

    /// Returns true if both set the same devices, and neither asks for a state: the second one is
    /// submitted to win, so they keep their order.
    pub(crate) fn keeps_order_with(&self, other: &Self) -> bool {
        let has = |it: &NodeId| other.devices.contains(it);
        self.sets != 0
            && self.sets == other.sets
            && self.devices.len() == other.devices.len()
            && self.devices.iter().all(has)
    }

    /// A committed routine that has places on these devices, by id. Its commands are not needed.
    pub(crate) fn committed(devices: Needed, order: Vec<Placed<V>>) -> Self {
        Self {
            routine: Routine { steps: Vec::new() },
            devices,
            sets: 0,
            stage: Stage::Committed,
            at: 0,
            tested: false,
            busy: None,
            late: false,
            hidden: false,
            order,
            terms: Terms::default(),
            took: false,
            since: Untracked::default(),
        }
    }

    /// The routine without its commands, its list of joined routines, and the fields that follow
    /// from these.
    pub(crate) fn without_lists(&self) -> Self {
        Self {
            routine: Routine { steps: Vec::new() },
            devices: Needed::new(),
            sets: 0,
            stage: self.stage,
            at: self.at,
            tested: self.tested,
            busy: self.busy,
            late: self.late,
            hidden: self.hidden,
            order: Vec::new(),
            terms: self.terms.clone(),
            took: self.took,
            since: Untracked::default(),
        }
    }

    /// Returns true if it is the same except for fields that follow from the rest.
    pub(crate) fn is_same(&self, other: &Self) -> bool
    where
        V: Eq,
    {
        let Self {
            routine,
            devices: _,
            sets: _,
            stage,
            at,
            tested,
            busy,
            late,
            hidden,
            order,
            terms,
            took,
            since: _,
        } = other;
        self.stage == *stage
            && self.at == *at
            && self.tested == *tested
            && self.busy == *busy
            && self.late == *late
            && self.hidden == *hidden
            && self.order == *order
            && self.terms == *terms
            && self.took == *took
            && self.routine == *routine
    }

    pub(crate) fn step(&self) -> Option<&Step<V>> {
        self.routine.steps.get(usize::from(self.at))
    }

    /// Returns true if this or a later command needs the device.
    pub(crate) fn still_needs(&self, device: NodeId) -> bool {
        self.routine.needs(device, self.at.into())
    }

    /// Returns true if it waits for this device now.
    pub(crate) fn waits_for(&self, device: NodeId) -> bool {
        let needs = |step: &Step<V>| step.devices().any(|it| it == device);
        self.busy.is_none() && self.at > 0 && self.step().is_some_and(needs)
    }

    /// Returns true if its next command is one to this device.
    pub(crate) fn waits_here(&self, device: NodeId) -> bool {
        self.busy.is_none() && self.step().is_some_and(|step| step.device == device)
    }

    /// The command to name if this device ends the routine: the next command that needs the device,
    /// or else the last one. `None` if no command needs it.
    pub(crate) fn blame(&self, device: NodeId) -> Option<u16> {
        let needs = |it: &(u16, &Step<V>)| it.1.devices().any(|at| at == device);
        let steps = || (0_u16..).zip(&self.routine.steps).filter(needs);
        let next = steps().find(|it| it.0 >= self.at);
        next.or_else(|| steps().last()).map(|it| it.0)
    }

    pub(crate) const fn urgency(&self) -> Urgency {
        self.terms.urgency
    }

    /// Returns true if a device is not restored before this routine sets it: it superseded others,
    /// or is urgent.
    pub(crate) const fn takes_over(&self) -> bool {
        self.took || self.terms.urgency.0 > 0
    }

    /// Returns true if a device goes directly from any state to the one into which this routine
    /// sets it: no condition asks for the state before.
    pub(crate) fn goes_straight(&self, device: NodeId) -> bool {
        if !self.takes_over() || self.is_over() {
            return false;
        }
        let left = self.routine.steps.iter().skip(usize::from(self.at));
        let mut is_tested = self.tested;
        for step in left {
            let asks = step.condition.as_ref().is_some_and(|it| it.asks(device));
            if asks && !core::mem::take(&mut is_tested) {
                return false;
            }
            is_tested = false;
            if step.device == device {
                return true;
            }
        }
        false
    }

    /// Returns true if it is committed, or about to be undone.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Committed | Stage::Aborting(_))
    }

    /// Returns true if it has no place yet.
    pub(crate) const fn is_placeless(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Queued)
    }

    /// Returns true if it has a place and is not finished.
    pub(crate) const fn is_active(&self) -> bool {
        matches!(
            self.stage,
            Stage::Placed | Stage::Running | Stage::Aborting(_)
        )
    }
}

fn need(devices: &mut Needed, device: NodeId) {
    if !devices.contains(&device) {
        devices.push(device);
    }
}

/// A number above 0 that does not depend on the order of these.
fn mark(devices: &[NodeId]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = |it: &NodeId| {
        let half = it.0.wrapping_mul(ODD);
        (half ^ half >> 32).wrapping_mul(ODD) >> 32
    };
    let sum = devices.iter().map(mixed).fold(0, u64::wrapping_add);
    ((sum & u64::from(u32::MAX)) as u32).max(1)
}
