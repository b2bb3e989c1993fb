//! The orders that explain the end of a run.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::{Placed, Routine, RoutineId, SkipReason};

/// The first state of all devices.
pub(super) const FIRST: u8 = 255;

/// The most situations that are visited when all orders are tried.
const SITUATIONS: usize = 50_000;

/// An external event on a device. Events are listed in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Failed,
    Restarted,
    /// A manual change. It may also have been undone, with the changes of a routine to the device
    /// at that time.
    Set(u8),
}

/// The observations of a home.
#[derive(Default)]
pub(super) struct Witness {
    pub(super) routines: BTreeMap<RoutineId, Routine<u8>>,
    pub(super) committed: Vec<RoutineId>,
    pub(super) skipped: BTreeMap<(RoutineId, u16), SkipReason>,
    /// The reported order.
    pub(super) order: Vec<Placed<u8>>,
    /// The events on each device.
    pub(super) chains: Vec<Vec<Link>>,
    /// The last states of the devices.
    pub(super) end: Vec<u8>,
}

/// A home in which routines run one by one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Serial {
    states: Vec<u8>,
    is_up: Vec<bool>,
}

/// The result of trying all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// An order explains the end.
    Explained,
    /// No order explains it.
    Unexplained,
    /// There are too many orders.
    TooMany,
}

fn at(device: NodeId) -> usize {
    usize::try_from(device.0).unwrap_or(usize::MAX)
}

impl Serial {
    fn new(devices: usize) -> Self {
        Self {
            states: vec![FIRST; devices],
            is_up: vec![true; devices],
        }
    }

    fn set(&mut self, device: NodeId, state: u8) {
        if let Some(it) = self.states.get_mut(at(device)) {
            *it = state;
        }
    }

    fn put_up(&mut self, device: NodeId, is_up: bool) {
        if let Some(it) = self.is_up.get_mut(at(device)) {
            *it = is_up;
        }
    }

    /// Does the routine's commands except the skipped ones; each condition must have the same
    /// result.
    fn routine(&mut self, id: RoutineId, witness: &Witness) -> Result<(), String> {
        let Some(routine) = witness.routines.get(&id) else {
            return Err(format!("{id:?} was never submitted"));
        };
        for (step, nth) in routine.steps.iter().zip(0_u16..) {
            let skip = witness.skipped.get(&(id, nth)).copied();
            if let Some(condition) = &step.condition {
                let state = |device| self.states.get(at(device));
                let holds = condition.holds(&state) == Some(true);
                let is_wrong = match skip {
                    Some(SkipReason::Condition) => holds,
                    None => !holds,
                    Some(
                        SkipReason::Down(_)
                        | SkipReason::Refused
                        | SkipReason::Unknown
                        | SkipReason::StateUnknown(_),
                    ) => false,
                };
                if is_wrong {
                    return Err(format!("{id:?} saw what it should not, command {nth}"));
                }
            }
            if skip.is_none() {
                if self.is_up.get(at(step.device)) == Some(&false) {
                    let device = step.device;
                    return Err(format!("{id:?} commanded {device} while it was down"));
                }
                self.set(step.device, step.value);
            }
        }
        Ok(())
    }
}

impl Witness {
    /// Checks that the reported order explains the end.
    pub(super) fn follow_notified(&self) -> Result<(), String> {
        let mut serial = Serial::new(self.end.len());
        for placed in &self.order {
            match placed {
                Placed::Routine(id) => serial.routine(*id, self)?,
                Placed::Failed(device) => serial.put_up(*device, false),
                Placed::Restarted(device) => serial.put_up(*device, true),
                Placed::Set { device, state } => {
                    if let Some(state) = state {
                        serial.set(*device, *state);
                    }
                }
            }
        }
        let (notified, end) = (&serial.states, &self.end);
        if notified != end {
            return Err(format!(
                "the order that was told ends in {notified:?}, not {end:?}"
            ));
        }
        Ok(())
    }

    /// Checks that some order of the committed routines and the events on devices explains the end.
    /// Tries all of them.
    pub(super) fn try_all(&self) -> Verdict {
        // The remaining routines, the number of events of each chain that are done, and the
        // resulting state.
        type Situation = (Vec<RoutineId>, Vec<usize>, Serial);
        let first: Situation = (
            self.committed.clone(),
            vec![0; self.chains.len()],
            Serial::new(self.end.len()),
        );
        let mut seen = BTreeSet::new();
        let mut open = vec![first];
        while let Some(situation) = open.pop() {
            if seen.len() >= SITUATIONS {
                return Verdict::TooMany;
            }
            if seen.contains(&situation) {
                continue;
            }
            let (left, notified, serial) = &situation;
            let is_all_notified = self
                .chains
                .iter()
                .zip(notified)
                .all(|(it, at)| it.len() == *at);
            if left.is_empty() && is_all_notified && serial.states == self.end {
                return Verdict::Explained;
            }
            for (device, (chain, &next)) in self.chains.iter().zip(notified).enumerate() {
                let Some(link) = chain.get(next) else {
                    continue;
                };
                let mut notified = notified.clone();
                if let Some(it) = notified.get_mut(device) {
                    *it += 1;
                }
                let id = NodeId(device as u64);
                let mut after = serial.clone();
                match link {
                    Link::Failed => after.put_up(id, false),
                    Link::Restarted => after.put_up(id, true),
                    Link::Set(state) => {
                        open.push((left.clone(), notified.clone(), after.clone()));
                        after.set(id, *state);
                    }
                }
                open.push((left.clone(), notified, after));
            }
            for &id in left {
                let mut after = serial.clone();
                if after.routine(id, self).is_ok() {
                    let left = left.iter().filter(|it| **it != id).copied().collect();
                    open.push((left, notified.clone(), after));
                }
            }
            seen.insert(situation);
        }
        Verdict::Unexplained
    }
}
