//! The difference between two states of a hub, and its application to the older one.
//!
//! The hub does not take part: two states are compared after the step, so no change can be
//! forgotten. Two other ways were rejected. Stored inputs are hardly shorter, and depend on the
//! clock: every version would have to decide as the one before did. Changes that the hub emits and
//! folds would be a second way to change the state. The comparison takes time in proportion to the
//! state: with 10 to 200 devices a step takes three to four times as long, up to 30 us, and a
//! difference has some 120 bytes (`verify/benches/storing.rs`). A write to flash takes a hundred
//! times as long.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::config::Visibility;
use crate::lineage::{Device, Entry};
use crate::run::{Needed, Run};
use crate::save::VERSION;
use crate::{Damage, Hub, Placed, Routine, RoutineId, Saved, Step, Value};

/// The changes of a hub since a state was stored: a few devices and routines, and the new parts of
/// their lists.
///
/// # Duties of the host
/// It stores [`Hub::save`] as the base, and keeps it in memory. After each step it appends the
/// result of [`Hub::difference`] to storage. When the differences have grown longer than a base it
/// replaces the stored base by [`Hub::save`] or by the state that it keeps, in one write, and
/// deletes the differences after that, in any order. When it starts again it reads the base,
/// [applies](Saved::apply) the differences in order, and restores the hub from the result.
///
/// It may stop between any two of these writes. Steps are numbered over all restarts, so a
/// difference that the base already contains is recognized, and changes nothing; a difference
/// before which another is missing is refused. A last difference that was only partly written is
/// dropped, because nothing of its step has been carried out. A hub that is created with
/// [`Hub::new`] counts from the beginning: drop all stored differences of an earlier hub before
/// storing its first base.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Difference<V> {
    version: u16,
    /// The number of the state that it changes.
    after: u64,
    /// The number of the state that results.
    number: u64,
    visibility: Visibility,
    last: RoutineId,
    token: u64,
    gone_devices: Vec<NodeId>,
    gone_runs: Vec<RoutineId>,
    devices: Vec<(NodeId, DeviceChange<V>)>,
    runs: Vec<(RoutineId, RunChange<V>)>,
}

/// A device, without its lineage, and the changes of its lineage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct DeviceChange<V> {
    device: Device<V>,
    lineage: Splice<Entry<V>>,
}

/// A routine, without its lists, and the changes of its lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct RunChange<V> {
    run: Run<V>,
    steps: Splice<Step<V>>,
    order: Splice<Placed<V>>,
}

/// A part of a list that is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Splice<T> {
    /// The first replaced item.
    at: u64,
    /// The number of replaced items.
    ended: u64,
    /// The items in their place.
    new: Vec<T>,
}

impl<V: Value> Hub<V> {
    /// The changes since `last`, an earlier state of this hub, was stored; `last` becomes the
    /// current state. Takes time in proportion to the state, and memory in proportion to the
    /// changes.
    #[must_use = "what is not stored is lost"]
    pub fn difference(&self, last: &mut Saved<V>) -> Difference<V> {
        let mut found = Difference {
            version: VERSION,
            after: last.number,
            number: *self.number,
            visibility: self.config.visibility,
            last: self.last,
            token: self.token,
            gone_devices: Vec::new(),
            gone_runs: Vec::new(),
            devices: Vec::new(),
            runs: Vec::new(),
        };
        let mut old = last.devices.iter().peekable();
        for (&id, device) in self.devices.iter() {
            while let Some(ended) = old.next_if(|it| it.0 < id) {
                found.gone_devices.push(ended.0);
            }
            let before = old.next_if(|it| it.0 == id).map(|it| &it.1);
            if before.is_none_or(|before| !device.is_same(before)) {
                found.devices.push((id, DeviceChange::of(before, device)));
            }
        }
        found.gone_devices.extend(old.map(|it| it.0));
        let mut old = last.runs.iter().peekable();
        for (&id, run) in self.runs.iter() {
            while let Some(ended) = old.next_if(|it| it.0 < id) {
                found.gone_runs.push(ended.0);
            }
            let before = old.next_if(|it| it.0 == id).map(|it| &it.1);
            if before.is_none_or(|before| !run.is_same(before)) {
                found.runs.push((id, RunChange::of(before, run)));
            }
        }
        found.gone_runs.extend(old.map(|it| it.0));
        let taken = last.take_in(found.clone());
        debug_assert_eq!(taken, Ok(()), "it belongs to this state");
        found
    }
}

impl<V: Value> Saved<V> {
    /// The state after this difference; unchanged, if it contains the difference already. Takes
    /// time in proportion to the state.
    ///
    /// # Errors
    /// When a difference before it is missing, or it belongs to another state. [`Hub::restore`]
    /// detects other damage.
    pub fn apply(mut self, difference: Difference<V>) -> Result<Self, Damage> {
        let found = difference.version;
        if found != VERSION {
            return Err(Damage::DifferenceVersion { found });
        }
        let (expected, found) = (self.number, difference.after);
        if difference.number < found {
            return Err(Damage::OtherBase);
        }
        if found == expected {
            self.take_in(difference)?;
        } else if difference.number > expected {
            return Err(Damage::Gap { expected, found });
        }
        Ok(self)
    }

    fn take_in(&mut self, difference: Difference<V>) -> Result<(), Damage> {
        self.number = difference.number;
        self.visibility = difference.visibility;
        (self.last, self.token) = (difference.last, difference.token);
        for id in &difference.gone_devices {
            let at = self.devices.binary_search_by_key(id, |it| it.0);
            self.devices.remove(at.map_err(|_| Damage::OtherBase)?);
        }
        for id in &difference.gone_runs {
            let at = self.runs.binary_search_by_key(id, |it| it.0);
            self.runs.remove(at.map_err(|_| Damage::OtherBase)?);
        }
        for (id, change) in difference.devices {
            let known = self.devices.binary_search_by_key(&id, |it| it.0);
            let at = known.unwrap_or_else(|at| {
                self.devices.insert(at, (id, Device::new(None)));
                at
            });
            if let Some((_, device)) = self.devices.get_mut(at) {
                change.apply(device)?;
            }
        }
        for (id, change) in difference.runs {
            let known = self.runs.binary_search_by_key(&id, |it| it.0);
            let at = known.unwrap_or_else(|at| {
                let nothing = Run::committed(Needed::new(), Vec::new());
                self.runs.insert(at, (id, nothing));
                at
            });
            if let Some((_, run)) = self.runs.get_mut(at) {
                change.apply(run)?;
            }
        }
        Ok(())
    }
}

impl<V: Value> DeviceChange<V> {
    fn of(before: Option<&Device<V>>, device: &Device<V>) -> Self {
        let before = before.map(|it| it.lineage.as_slice()).unwrap_or_default();
        Self {
            lineage: Splice::of(before, &device.lineage, Entry::is_same, Entry::timeless),
            device: device.without_lineage(),
        }
    }

    fn apply(self, device: &mut Device<V>) -> Result<(), Damage> {
        let mut lineage = core::mem::replace(device, self.device).lineage;
        self.lineage.apply(&mut lineage)?;
        device.lineage = lineage;
        Ok(())
    }
}

impl<V: Value> RunChange<V> {
    fn of(before: Option<&Run<V>>, run: &Run<V>) -> Self {
        let steps = before.map(|it| it.routine.steps.as_slice());
        let order = before.map(|it| it.order.as_slice());
        Self {
            steps: Splice::of(
                steps.unwrap_or_default(),
                &run.routine.steps,
                Step::eq,
                Step::clone,
            ),
            order: Splice::of(
                order.unwrap_or_default(),
                &run.order,
                Placed::eq,
                Placed::clone,
            ),
            run: run.without_lists(),
        }
    }

    fn apply(self, run: &mut Run<V>) -> Result<(), Damage> {
        let before = core::mem::replace(run, self.run);
        let (mut steps, mut order) = (before.routine.steps, before.order);
        self.steps.apply(&mut steps)?;
        self.order.apply(&mut order)?;
        (run.routine, run.order) = (Routine { steps }, order);
        Ok(())
    }
}

impl<T> Splice<T> {
    /// Keeps the items that two lists have in common at their beginnings and ends.
    fn of(old: &[T], new: &[T], is_same: impl Fn(&T, &T) -> bool, copy: impl Fn(&T) -> T) -> Self {
        let both = new.iter().zip(old);
        let at = both.take_while(|it| is_same(it.0, it.1)).count();
        let (old, new) = (old.iter().skip(at), new.iter().skip(at));
        let both = new.clone().rev().zip(old.clone().rev());
        let end = both.take_while(|it| is_same(it.0, it.1)).count();
        let stays = new.len() - end;
        Self {
            at: at as u64,
            ended: (old.len() - end) as u64,
            new: new.take(stays).map(copy).collect(),
        }
    }

    fn apply(self, list: &mut Vec<T>) -> Result<(), Damage> {
        let place = |it| usize::try_from(it).map_err(|_| Damage::OtherBase);
        let (at, ended) = (place(self.at)?, place(self.ended)?);
        let end = at.checked_add(ended).filter(|end| *end <= list.len());
        let end = end.ok_or(Damage::OtherBase)?;
        drop(list.splice(at..end, self.new));
        Ok(())
    }
}
