//! Which orders explain the end.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::{Placed, Routine, RoutineId, SkipReason};

/// In which state all devices are at first.
pub(super) const FIRST: u8 = 255;

/// At most so many situations are looked at when all orders are tried.
const SITUATIONS: usize = 50_000;

/// What happened to a device, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Failed,
    Restarted,
    /// By hand. It may also have been taken back, with what a routine did to the device then.
    Set(u8),
}

/// What was seen of a home.
#[derive(Default)]
pub(super) struct Witness {
    pub(super) routines: BTreeMap<RoutineId, Routine<u8>>,
    pub(super) committed: Vec<RoutineId>,
    pub(super) skipped: BTreeMap<(RoutineId, u16), SkipReason>,
    /// The order that was told.
    pub(super) order: Vec<Placed<u8>>,
    /// What happened to each device.
    pub(super) chains: Vec<Vec<Link>>,
    /// In which states the devices are in the end.
    pub(super) end: Vec<u8>,
}

/// A home in which all is done one by one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Serial {
    states: Vec<u8>,
    is_up: Vec<bool>,
}

/// What all orders together say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One explains the end.
    Explained,
    /// None does.
    Unexplained,
    /// There are too many.
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

    /// Does the routine's commands but those that were passed over; each must find what it found.
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
    /// Whether the order that was told explains the end.
    pub(super) fn follow_told(&self) -> Result<(), String> {
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
        let (told, end) = (&serial.states, &self.end);
        if told != end {
            return Err(format!(
                "the order that was told ends in {told:?}, not {end:?}"
            ));
        }
        Ok(())
    }

    /// Whether some order of the committed routines and of what happened to devices explains the
    /// end. Tries all of them.
    pub(super) fn try_all(&self) -> Verdict {
        // Which routines are left, how much of each chain is told, and what that leads to.
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
            let (left, told, serial) = &situation;
            let is_all_told = self.chains.iter().zip(told).all(|(it, at)| it.len() == *at);
            if left.is_empty() && is_all_told && serial.states == self.end {
                return Verdict::Explained;
            }
            for (device, (chain, &next)) in self.chains.iter().zip(told).enumerate() {
                let Some(link) = chain.get(next) else {
                    continue;
                };
                let mut told = told.clone();
                if let Some(it) = told.get_mut(device) {
                    *it += 1;
                }
                let id = NodeId(device as u64);
                let mut after = serial.clone();
                match link {
                    Link::Failed => after.put_up(id, false),
                    Link::Restarted => after.put_up(id, true),
                    Link::Set(state) => {
                        open.push((left.clone(), told.clone(), after.clone()));
                        after.set(id, *state);
                    }
                }
                open.push((left.clone(), told, after));
            }
            for &id in left {
                let mut after = serial.clone();
                if after.routine(id, self).is_ok() {
                    let left = left.iter().filter(|it| **it != id).copied().collect();
                    open.push((left, told.clone(), after));
                }
            }
            seen.insert(situation);
        }
        Verdict::Unexplained
    }
}
