//! A device, and the order of its changes.

use alloc::vec::Vec;

use selvedge_core::{Incarnation, NodeId, Span, Time, Untracked};

use crate::schedule::Slot;
use crate::{Placed, RoutineId};

/// A device, as far as the hub knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Device<V> {
    pub(crate) is_up: bool,
    /// Its incarnation, if the membership service has reported one.
    pub(crate) life: Option<Incarnation>,
    /// The state after all finished and final entries; `None` if it is unknown.
    pub(crate) base: Option<V>,
    /// The current state; `None` if it is unknown.
    pub(crate) actual: Option<V>,
    /// The changes after `base`, in the serial order.
    pub(crate) lineage: Vec<Entry<V>>,
    pub(crate) flight: Option<Flight<V>>,
    /// The time for which a command may still act after its outcome was reported as unknown.
    pub(crate) lateness: Span,
    /// A command with an unknown outcome that may still act. Until then nothing is sent to the
    /// device, and its state is unknown.
    pub(crate) late: Option<Late<V>>,
    /// The routine with the long command in progress.
    pub(crate) held: Option<RoutineId>,
    /// The number of failed attempts since a rollback was last done.
    pub(crate) attempts: u8,
    /// A rollback failed, and is tried again later.
    pub(crate) rests: bool,
    /// It refused all rollbacks, and is left as it is.
    pub(crate) is_stuck: bool,
    /// The application knows that it is being restored, and not yet the result.
    pub(crate) is_announced: bool,
    /// The start of its current activity: only for the reasons why routines wait.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) since: Untracked<Time>,
    /// The state to restore at the time of an abort: in published rules only (errata H6, H8).
    #[cfg(feature = "check")]
    #[cfg_attr(feature = "serde", serde(skip, default = "no_target"))]
    pub(crate) target: Option<V>,
}

#[cfg(all(feature = "check", feature = "serde"))]
const fn no_target<V>() -> Option<V> {
    None
}

/// A command in flight to a device. There is one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Flight<V> {
    pub(crate) token: u64,
    pub(crate) value: V,
    /// The routine of the command; `None` for a rollback.
    pub(crate) routine: Option<RoutineId>,
    /// The device has reported this state. The command brought it there or, if the command is
    /// refused, a person did.
    pub(crate) is_reported: bool,
    /// A question about it is sent later, by a timer: this follows from the restart of the hub.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) is_asked_later: Untracked<bool>,
}

impl<V> Flight<V> {
    pub(crate) const fn new(token: u64, value: V, routine: Option<RoutineId>) -> Self {
        Self {
            token,
            value,
            routine,
            is_reported: false,
            is_asked_later: Untracked(false),
        }
    }
}

/// A command with an unknown outcome that may still act.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Late<V> {
    pub(crate) token: u64,
    pub(crate) value: V,
    /// The time for which it may still act after its outcome was reported.
    pub(crate) span: Span,
}

/// A place in the order of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Entry<V> {
    pub(crate) owner: Owner,
    /// A command to the device was issued, or its state was asked for: the place is fixed.
    pub(crate) touched: bool,
    /// The device is free for the next routine.
    pub(crate) released: bool,
    /// The last state into which the owner brought it.
    pub(crate) wrote: Option<V>,
    /// The state of the undo handler, if that is not the state before.
    pub(crate) undo: Option<V>,
    /// A command of the owner had no known outcome, and the state before was unknown.
    pub(crate) doubtful: bool,
    /// True if it went before a routine that had started.
    pub(crate) leased: bool,
    /// The lease is over; the owner is aborted as soon as its command has an outcome.
    pub(crate) revoked: bool,
    /// The plan: from when, and for how long.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) start: Time,
    pub(crate) length: Span,
    /// Where the ranks keep the owner.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) slot: Untracked<Option<Slot>>,
}

/// The owner of a place in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Owner {
    Routine(RoutineId),
    /// The device failed.
    Failed,
    /// It restarted.
    Restarted,
    /// Its state was changed by hand, or by an undo handler.
    Hand,
}

impl<V> Entry<V> {
    /// A place in the plan.
    pub(crate) const fn new(routine: RoutineId, start: Time, length: Span) -> Self {
        Self {
            owner: Owner::Routine(routine),
            touched: false,
            released: false,
            wrote: None,
            undo: None,
            doubtful: false,
            leased: false,
            revoked: false,
            start,
            length,
            slot: Untracked(None),
        }
    }

    /// An entry for an event that has happened.
    pub(crate) const fn happened(owner: Owner, wrote: Option<V>) -> Self {
        Self {
            owner,
            touched: true,
            released: true,
            wrote,
            undo: None,
            doubtful: false,
            leased: false,
            revoked: false,
            start: Time::ZERO,
            length: Span::ZERO,
            slot: Untracked(None),
        }
    }

    /// The entry of the serial order for an event on this device, if this is not a place of a
    /// routine.
    pub(crate) fn happening(&self, device: NodeId) -> Option<Placed<V>>
    where
        V: Clone,
    {
        let state = self.wrote.clone();
        match self.owner {
            Owner::Routine(_) => None,
            Owner::Failed => Some(Placed::Failed(device)),
            Owner::Restarted => Some(Placed::Restarted(device)),
            Owner::Hand => Some(Placed::Set { device, state }),
        }
    }

    pub(crate) const fn routine(&self) -> Option<RoutineId> {
        match self.owner {
            Owner::Routine(routine) => Some(routine),
            Owner::Failed | Owner::Restarted | Owner::Hand => None,
        }
    }

    /// Marks the place as touched; the first time this returns the duration of a lease that begins
    /// (erratum H12).
    pub(crate) fn begin(&mut self, leniency: u16) -> Option<Span> {
        let is_first = !core::mem::replace(&mut self.touched, true);
        (is_first && self.leased).then(|| self.lease(leniency))
    }

    /// The longest duration of a lease.
    pub(crate) fn lease(&self, leniency: u16) -> Span {
        Span(self.length.0.saturating_mul(leniency.into()) / 100)
    }

    /// Returns true if a lease runs.
    pub(crate) const fn is_lease(&self) -> bool {
        self.leased && self.touched && !self.released
    }

    /// The planned end.
    pub(crate) fn end(&self) -> Time {
        self.start + self.length
    }
}

impl<V: Clone + Eq> Entry<V> {
    /// Returns true if it is the same except for the clock.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            owner,
            touched,
            released,
            wrote,
            undo,
            doubtful,
            leased,
            revoked,
            start: _,
            length,
            slot: _,
        } = other;
        self.owner == *owner
            && self.touched == *touched
            && self.released == *released
            && self.wrote == *wrote
            && self.undo == *undo
            && self.doubtful == *doubtful
            && self.leased == *leased
            && self.revoked == *revoked
            && self.length == *length
    }

    /// For another clock, and another hub.
    pub(crate) fn timeless(&self) -> Self {
        Self {
            start: Time::ZERO,
            slot: Untracked(None),
            ..self.clone()
        }
    }
}

impl<V: Clone + Eq> Device<V> {
    pub(crate) fn new(state: Option<V>) -> Self {
        Self {
            is_up: true,
            life: None,
            base: state.clone(),
            actual: state,
            lineage: Vec::new(),
            flight: None,
            lateness: Span::ZERO,
            late: None,
            held: None,
            attempts: 0,
            rests: false,
            is_stuck: false,
            is_announced: false,
            since: Untracked::default(),
            #[cfg(feature = "check")]
            target: None,
        }
    }

    /// The device without its lineage.
    pub(crate) fn without_lineage(&self) -> Self {
        Self {
            is_up: self.is_up,
            life: self.life,
            base: self.base.clone(),
            actual: self.actual.clone(),
            lineage: Vec::new(),
            flight: self.flight.clone(),
            lateness: self.lateness,
            late: self.late.clone(),
            held: self.held,
            attempts: self.attempts,
            rests: self.rests,
            is_stuck: self.is_stuck,
            is_announced: self.is_announced,
            since: Untracked::default(),
            #[cfg(feature = "check")]
            target: None,
        }
    }

    /// Returns true if it is the same except for the clock and the fields of published rules.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            is_up,
            life,
            base,
            actual,
            lineage,
            flight,
            lateness,
            late,
            held,
            attempts,
            rests,
            is_stuck,
            is_announced,
            since: _,
            #[cfg(feature = "check")]
                target: _,
        } = other;
        let mut pairs = self.lineage.iter().zip(lineage);
        self.is_up == *is_up
            && self.life == *life
            && self.base == *base
            && self.actual == *actual
            && self.flight == *flight
            && self.lateness == *lateness
            && self.late == *late
            && self.held == *held
            && self.attempts == *attempts
            && self.rests == *rests
            && self.is_stuck == *is_stuck
            && self.is_announced == *is_announced
            && self.lineage.len() == lineage.len()
            && pairs.all(|(ours, theirs)| ours.is_same(theirs))
    }

    /// Where a routine stands in the order.
    pub(crate) fn position(&self, routine: RoutineId) -> Option<usize> {
        let mut entries = self.lineage.iter();
        entries.position(|entry| entry.routine() == Some(routine))
    }

    pub(crate) fn entry(&self, routine: RoutineId) -> Option<&Entry<V>> {
        let mut entries = self.lineage.iter();
        entries.find(|entry| entry.routine() == Some(routine))
    }

    pub(crate) fn entry_mut(&mut self, routine: RoutineId) -> Option<&mut Entry<V>> {
        let mut entries = self.lineage.iter_mut();
        entries.find(|entry| entry.routine() == Some(routine))
    }

    /// The place before which no routine can go: behind all that have touched it.
    pub(crate) fn first_free(&self) -> usize {
        let touched = self.lineage.iter().rposition(|entry| entry.touched);
        touched.map_or(0, |at| at + 1)
    }

    /// The routine that has its turn.
    pub(crate) fn head(&self) -> Option<RoutineId> {
        let mut entries = self.lineage.iter();
        entries.find(|entry| !entry.released)?.routine()
    }

    /// Returns true if the next routine can use it at once: no routine has it, and no rollback is
    /// due before. Commands to a device that is down fail at once.
    pub(crate) fn is_free(&self) -> bool {
        let mut entries = self.lineage.iter();
        let is_sent = self.flight.is_some() || self.late.is_some();
        let is_used = entries.any(|it| it.touched && !it.released);
        let is_restored = self.is_up && (is_sent || self.needs_rollback());
        !is_used && !is_restored
    }

    /// Returns true if no routine has it and no command to it may still act. A rollback that is due
    /// does not count.
    pub(crate) fn is_idle(&self) -> bool {
        let mut entries = self.lineage.iter();
        let is_sent = self.flight.is_some() || self.late.is_some();
        !is_sent && !entries.any(|it| it.touched && !it.released)
    }

    /// The state in which it should be: the one of the last entry in the order that changed it
    /// (figure 8).
    pub(crate) fn desired(&self) -> Option<&V> {
        let mut written = self.lineage.iter().rev().filter_map(|it| it.wrote.as_ref());
        written.next().or(self.base.as_ref())
    }

    /// The state that the entry at this place finds, or leaves.
    pub(crate) fn state_at(&self, at: usize) -> Option<&V> {
        let before = self.lineage.get(..=at).unwrap_or(&self.lineage);
        let mut written = before.iter().rev().filter_map(|it| it.wrote.as_ref());
        written.next().or(self.base.as_ref())
    }

    /// Returns true if a rollback is due before any other command (errata H6 to H10).
    pub(crate) fn needs_rollback(&self) -> bool {
        #[cfg(feature = "check")]
        if self.target.is_some() {
            return true;
        }
        let desired = self.desired();
        !self.is_stuck && desired.is_some() && self.actual.as_ref() != desired
    }

    /// Something has happened to it, behind all that have touched it.
    pub(crate) fn happen(&mut self, owner: Owner, wrote: Option<V>) {
        let at = self.first_free();
        match owner {
            Owner::Hand => self.set_by_hand(at, wrote),
            Owner::Failed | Owner::Restarted | Owner::Routine(_) => {
                self.lineage.insert(at, Entry::happened(owner, wrote));
            }
        }
    }

    /// Merges manual changes after an entry before this place was removed. Of two that are now
    /// neighbours the second one is kept, so there are never more manual changes than other
    /// entries.
    pub(crate) fn merge_manual(&mut self, at: usize) {
        let is_hand = |at| {
            let entry: Option<&Entry<V>> = self.lineage.get(at);
            entry.is_some_and(|it| it.owner == Owner::Hand)
        };
        if let Some(before) = at.checked_sub(1).filter(|it| is_hand(*it))
            && is_hand(at)
        {
            self.lineage.remove(before);
        }
    }

    /// It was brought into a state at this place, by hand or by an undo handler. Of several one
    /// after the other the last one counts, so that no more are kept than there are others.
    pub(crate) fn set_by_hand(&mut self, at: usize, wrote: Option<V>) {
        let before = at.checked_sub(1).and_then(|at| self.lineage.get_mut(at));
        match before.filter(|it| it.owner == Owner::Hand) {
            Some(before) => before.wrote = wrote.or(before.wrote.take()),
            None => self.lineage.insert(at, Entry::happened(Owner::Hand, wrote)),
        }
    }
}
