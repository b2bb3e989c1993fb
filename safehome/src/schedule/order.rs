//! The test whether places agree with one order of all routines.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::schedule::place::Need;
#[cfg(any(test, feature = "check"))]
use crate::schedule::plain::Plain;
use crate::schedule::ranks::{Neighbour, Rank, Slot};
use crate::schedule::reach::{Reach, Side};
use crate::{Hub, RoutineId, Value};

/// The range of places for a new routine on each device that it needs, given the places that it has
/// chosen on others.
///
/// "Before" is transitive (erratum H1: looking at direct neighbours alone is not enough). So in the
/// order of each device the routines before the new one are in front, the routines after it are
/// behind, and it may go anywhere between. Committed routines count as long as a routine before
/// them is unfinished (errata H2, H3).
pub(crate) enum Sides<'a, V> {
    Ranked(Ranked<'a, V>),
    /// For published rules and comparison.
    #[cfg(any(test, feature = "check"))]
    Plain(Plain<'a, V>),
}

/// The result of the test of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    /// It is in front of a routine that comes before the new one on another device.
    TooEarly,
    /// It is behind a routine that comes after the new one.
    TooLate,
}

impl<'a, V: Value> Sides<'a, V> {
    /// The state for a routine that has not chosen any place.
    pub(crate) fn new(
        hub: &'a Hub<V>,
        new: &Run<V>,
        needs: &[Need],
        memory: &'a mut Memory,
    ) -> Self {
        #[cfg(any(test, feature = "check"))]
        if !hub.keeps_ranks() {
            return Self::plain(hub, new, needs);
        }
        Self::Ranked(Ranked::new(hub, new, needs, memory))
    }

    /// The same by the plain rule.
    #[cfg(any(test, feature = "check"))]
    pub(crate) fn plain(hub: &'a Hub<V>, new: &Run<V>, needs: &[Need]) -> Self {
        Self::Plain(Plain::new(hub, new, needs))
    }

    /// The first possible place on the device with this number.
    pub(crate) fn first(&self, number: usize) -> usize {
        match self {
            Self::Ranked(it) => it.first(number),
            #[cfg(any(test, feature = "check"))]
            Self::Plain(it) => it.first(number),
        }
    }

    /// Tests whether the place in front of the entry `at`, on the device with this number, agrees
    /// with the choices for the devices before.
    pub(crate) fn judge(&mut self, number: usize, at: usize) -> Verdict {
        match self {
            Self::Ranked(it) => it.judge(number, at),
            #[cfg(any(test, feature = "check"))]
            Self::Plain(it) => it.judge(number, at),
        }
    }

    /// Takes a place that fits. Choices for this device and later ones are dropped. Returns true if
    /// it leaves room on all later devices.
    pub(crate) fn choose(&mut self, number: usize, at: usize) -> bool {
        match self {
            Self::Ranked(it) => it.choose(number, at),
            #[cfg(any(test, feature = "check"))]
            Self::Plain(it) => it.choose(number, at),
        }
    }
}

/// The implementation by the [ranks](crate::schedule::ranks::Ranks) of the routines with places.
///
/// Of the routines before a place on a device only the nearest is examined, and likewise of the
/// routines after it, because all further ones are on the same side of it. The existing orders
/// agree with each other, so a routine comes both before and after the new one only if a place was
/// chosen where it does not fit. The remaining question about later devices is whether a routine
/// that must stay in front there comes after.
pub(crate) struct Ranked<'a, V> {
    hub: &'a Hub<V>,
    memory: &'a mut Memory,
}

/// Results that are remembered during a search for places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    spots: Vec<Spot>,
    /// All choices that were tried, and the indexes of the current ones, one for each device.
    choices: Vec<Choice>,
    chosen: Vec<usize>,
    /// The choice for each place, one device after the other.
    tried: Vec<Option<u32>>,
    /// The results for each choice and each device, row by row.
    known: Vec<Known>,
    /// The choices in the current search: their cells of `known`, and their neighbours.
    open: Vec<(usize, Slot)>,
    pub(crate) reach: Reach,
}

/// The number of cells of `known` that are kept, besides one for each pair of devices. Tests keep
/// few.
const CELLS: usize = if cfg!(test) { 16 } else { 4_096 };

/// A place between these neighbours.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// Its number among the places of all devices.
    place: usize,
    before: Option<Neighbour>,
    after: Option<Neighbour>,
    /// True if no routine that must stay in front on a later device comes after the new one.
    leaves_room: bool,
}

/// The places on a device that do not agree with a choice on another one, as far as they were
/// tested: a result for a place holds for all places in front of it, or behind it.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Places below are too early.
    early_below: u32,
    /// From here on none are too early.
    early_up_to: u32,
    /// From here on all are too late.
    late_from: u32,
    /// Up to here none are too late.
    late_behind: u32,
}

/// A device that is needed.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// Its number at the hub.
    device: usize,
    /// The number of places on the devices before.
    begin: usize,
    /// The place behind all routines that have touched it or must not be overtaken there.
    first: usize,
    /// The last routine in front of `first`.
    stays: Option<Neighbour>,
    /// The highest rank of the routines that stay on later devices.
    later: Option<Rank>,
}

impl<'a, V: Value> Ranked<'a, V> {
    fn new(hub: &'a Hub<V>, new: &Run<V>, needs: &[Need], memory: &'a mut Memory) -> Self {
        let mut places = 0;
        memory.clear();
        memory.spots.clear();
        for need in needs {
            let Some((number, device)) = hub.devices.find(need.device) else {
                debug_assert!(false, "the device is at the hub");
                continue;
            };
            let lineage = device.lineage.as_slice();
            let first = hub.first_place(need.device, device, new, true);
            memory.spots.push(Spot {
                device: number,
                begin: places,
                first,
                stays: in_front(lineage, first).map(|it| hub.ranks.neighbour(it)),
                later: None,
            });
            places += lineage.len() + 1;
        }
        let mut later = None;
        for spot in memory.spots.iter_mut().rev() {
            spot.later = later;
            later = later.max(spot.stays.map(|it| it.rank));
        }
        memory.tried.resize(places, None);
        Self { hub, memory }
    }

    fn first(&self, number: usize) -> usize {
        self.memory.spots.get(number).map_or(0, |it| it.first)
    }

    /// The entries on the device with this number.
    fn lineage(&self, number: usize) -> &'a [Entry<V>] {
        let spot = self.memory.spots.get(number);
        let device = spot.and_then(|it| self.hub.devices.at(it.device));
        device.map_or(&[][..], |it| it.lineage.as_slice())
    }

    fn judge(&mut self, number: usize, at: usize) -> Verdict {
        if number == 0 {
            // There is no choice yet that it could contradict.
            return Verdict::Fits;
        }
        let lineage = self.lineage(number);
        let (before, after) = (in_front(lineage, at), behind(lineage, at));
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if after.is_some_and(|it| self.is_too_early(number, at, it)) {
            Verdict::TooEarly
        } else if before.is_some_and(|it| self.is_too_late(number, at, it)) {
            Verdict::TooLate
        } else {
            Verdict::Fits
        }
    }

    fn choose(&mut self, number: usize, at: usize) -> bool {
        let memory = &mut *self.memory;
        let width = memory.spots.len();
        memory.chosen.truncate(number);
        if memory.known.len() > width * width + CELLS {
            memory.forget(width);
        }
        let place = memory.spots.get(number).map_or(0, |it| it.begin) + at;
        let tried = self.memory.tried.get(place).copied().flatten();
        let nth = tried.map_or_else(
            || {
                let choice = self.choice(number, at, place);
                self.memory.add(choice, width)
            },
            |it| it as usize,
        );
        self.memory.chosen.push(nth);
        let choice = self.memory.choices.get(nth);
        choice.is_some_and(|it| it.leaves_room)
    }

    /// The consequences of this choice alone.
    fn choice(&mut self, number: usize, at: usize, place: usize) -> Choice {
        let (ranks, lineage) = (&self.hub.ranks, self.lineage(number));
        let before = in_front(lineage, at).map(|it| ranks.neighbour(it));
        let after = behind(lineage, at).map(|it| ranks.neighbour(it));
        let Memory { spots, reach, .. } = &mut *self.memory;
        let later = spots.get(number).and_then(|it| it.later);
        let leaves_room = match (after, later) {
            // Most rank above all routines that stay.
            (Some(after), Some(later)) if after.rank <= later => {
                let stays = spots.iter().skip(number + 1);
                let stays = stays.filter_map(|it| Some(it.stays?.slot));
                let found = reach.finds(ranks, after.slot, Side::After, later, stays);
                found.is_none()
            }
            _ => true,
        };
        Choice {
            place,
            before,
            after,
            leaves_room,
        }
    }

    /// Returns true if the next routine behind this place comes before the new one because of a
    /// choice.
    fn is_too_early(&mut self, number: usize, at: u32, next: Slot) -> bool {
        let (ranks, memory) = (&self.hub.ranks, &mut *self.memory);
        let rank = ranks.rank_of(next);
        let mut highest = rank;
        memory.open.clear();
        for &nth in memory.chosen.get(..number).unwrap_or(&memory.chosen) {
            let cell = nth * memory.spots.len() + number;
            let (Some(choice), Some(known)) = (memory.choices.get(nth), memory.known.get_mut(cell))
            else {
                continue;
            };
            if at < known.early_below {
                return true;
            }
            if at >= known.early_up_to {
                continue;
            }
            match choice.before {
                Some(it) if it.rank >= rank => {
                    highest = highest.max(it.rank);
                    memory.open.push((cell, it.slot));
                }
                // A routine that ranks below it does not come after it.
                Some(_) | None => known.early_up_to = at,
            }
        }
        if memory.open.is_empty() {
            return false;
        }
        let (open, reach) = (memory.open.iter().map(|it| it.1), &mut memory.reach);
        let found = reach.finds(ranks, next, Side::After, highest, open);
        for &(cell, slot) in &memory.open {
            if let Some(it) = memory.known.get_mut(cell) {
                if found.is_none() {
                    it.early_up_to = at;
                } else if found == Some(slot) {
                    it.early_below = at.saturating_add(1);
                }
            }
        }
        found.is_some()
    }

    /// Returns true if the next routine in front of this place comes after the new one because of a
    /// choice.
    fn is_too_late(&mut self, number: usize, at: u32, next: Slot) -> bool {
        let (ranks, memory) = (&self.hub.ranks, &mut *self.memory);
        let rank = ranks.rank_of(next);
        let mut lowest = rank;
        memory.open.clear();
        for &nth in memory.chosen.get(..number).unwrap_or(&memory.chosen) {
            let cell = nth * memory.spots.len() + number;
            let (Some(choice), Some(known)) = (memory.choices.get(nth), memory.known.get_mut(cell))
            else {
                continue;
            };
            if at >= known.late_from {
                return true;
            }
            if at <= known.late_behind {
                continue;
            }
            match choice.after {
                Some(it) if it.rank <= rank => {
                    lowest = lowest.min(it.rank);
                    memory.open.push((cell, it.slot));
                }
                // A routine that ranks above it does not come before it.
                Some(_) | None => known.late_behind = at,
            }
        }
        if memory.open.is_empty() {
            return false;
        }
        let (open, reach) = (memory.open.iter().map(|it| it.1), &mut memory.reach);
        let found = reach.finds(ranks, next, Side::Before, lowest, open);
        for &(cell, slot) in &memory.open {
            if let Some(it) = memory.known.get_mut(cell) {
                if found.is_none() {
                    it.late_behind = at;
                } else if found == Some(slot) {
                    it.late_from = at;
                }
            }
        }
        found.is_some()
    }
}

impl Memory {
    /// Adds a choice without results on `width` devices. Returns its number.
    fn add(&mut self, choice: Choice, width: usize) -> usize {
        let nth = self.choices.len();
        if let Some(tried) = self.tried.get_mut(choice.place) {
            *tried = u32::try_from(nth).ok();
        }
        self.choices.push(choice);
        self.known.resize(self.known.len() + width, Known::NOTHING);
        nth
    }

    /// Drops the results of all choices except the current ones, which are computed again.
    fn forget(&mut self, width: usize) {
        let choices = core::mem::take(&mut self.choices);
        let chosen = core::mem::take(&mut self.chosen);
        let places = self.tried.len();
        self.clear();
        self.tried.resize(places, None);
        for &choice in chosen.iter().filter_map(|it| choices.get(*it)) {
            let nth = self.add(choice, width);
            self.chosen.push(nth);
        }
    }

    fn clear(&mut self) {
        self.choices.clear();
        self.chosen.clear();
        self.tried.clear();
        self.known.clear();
        self.open.clear();
    }
}

impl Known {
    /// No result yet.
    const NOTHING: Self = Self {
        early_below: 0,
        early_up_to: u32::MAX,
        late_from: u32::MAX,
        late_behind: 0,
    };
}

impl<V: Value> Hub<V> {
    /// The first possible place of a new routine on a device: behind all routines that have touched
    /// it, and all that must not be overtaken there. O(entries), with the notes of the ranks or
    /// without.
    pub(crate) fn first_place(
        &self,
        id: NodeId,
        device: &Device<V>,
        new: &Run<V>,
        by_notes: bool,
    ) -> usize {
        let (sets, urgency) = (new.sets, new.urgency());
        let may_stay = |slot| self.ranks.may_stay(slot, sets, urgency);
        let must_stay = |it| self.must_stay(it, id, new);
        let stays = |entry: &Entry<V>| entry.routine().is_some_and(must_stay);
        let mut entries = device.lineage.iter();
        let last = if by_notes {
            entries.rposition(|it| it.touched || it.slot.is_some_and(may_stay) && stays(it))
        } else {
            entries.rposition(|it| it.touched || stays(it))
        };
        last.map_or(0, |at| at + 1)
    }

    /// Returns true if a new routine must not overtake this one on a device.
    fn must_stay(&self, routine: RoutineId, at: NodeId, new: &Run<V>) -> bool {
        let Some(run) = self.runs.get(&routine) else {
            debug_assert!(false, "a place keeps its routine");
            return false;
        };
        let has_to = match run.stage {
            Stage::Queued | Stage::Waiting | Stage::Placed => run.late,
            // It waits for this device: no routine goes before it (erratum H18).
            Stage::Running => !self.config.pre_leases || run.late || run.waits_for(at),
            Stage::Aborting(_) | Stage::Committed => true,
        };
        let is_alike = || run.keeps_order_with(new) && !self.rules.any_gap();
        has_to || run.urgency() > new.urgency() || is_alike()
    }

    /// Returns true if a routine that has started is behind this place.
    pub(crate) fn leases(&self, device: &Device<V>, at: usize) -> bool {
        let is_known = self.keeps_ranks();
        let mut behind = device.lineage.iter().skip(at);
        behind.any(|entry| {
            let has_begun = |slot| self.ranks.note(slot).has_begun;
            let run = || self.runs.get(&entry.routine()?);
            (!is_known || entry.slot.is_some_and(has_begun))
                && run().is_some_and(|it| it.stage == Stage::Running)
        })
    }
}

/// The next routine in front of this place.
fn in_front<V>(lineage: &[Entry<V>], at: usize) -> Option<Slot> {
    let before = lineage.get(..at).unwrap_or(lineage);
    before.iter().rev().find_map(|it| *it.slot)
}

/// The next routine behind this place.
fn behind<V>(lineage: &[Entry<V>], at: usize) -> Option<Slot> {
    lineage.iter().skip(at).find_map(|it| *it.slot)
}
