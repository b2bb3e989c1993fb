//! Calculus units: small groups of followers that run a function together (PCM, section 4.3.2).

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::clustering::{
    Class, Formed, Seat, Slot, Standing, class_of, cluster, performant_places,
};

/// The counts of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Unit {
    /// The number of its followers.
    present: u32,
    /// The number of them, its orchestrator included, that have a performant place.
    performant: u32,
    /// The number of tasks that it runs.
    tasks: u32,
}

/// The order in which units are given tasks; the least is the best (section 4.3.2: units with their whole
/// performant quorum first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Preference {
    lacks_quorum: bool,
    tasks: u32,
    unit: u32,
}

/// All units.
///
/// Joining, leaving, and beginning and ending a task take O(log u) for u units, and O(m) for a unit of
/// m.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Units {
    /// The number of followers that a unit should have.
    size: u16,
    /// The number of places of each unit in `seats`.
    width: u32,
    /// The followers by seat, unit by unit.
    seats: Vec<Option<Slot>>,
    units: Vec<Unit>,
    /// The units with an orchestrator, the best first.
    ready: BTreeSet<Preference>,
    /// The units with room, by their number of followers.
    roomy: BTreeSet<(u32, u32)>,
    /// The number of units that have fewer than an orchestrator and a performant follower.
    broken: u32,
    /// The number of followers that have a seat.
    seated: u32,
}

impl Units {
    /// An empty set of units, for `size` followers each.
    pub(crate) const fn new(size: u16) -> Self {
        Self {
            size,
            width: 0,
            seats: Vec::new(),
            units: Vec::new(),
            ready: BTreeSet::new(),
            roomy: BTreeSet::new(),
            broken: 0,
            seated: 0,
        }
    }

    /// Forms the units again, without tasks. Returns the followers that have another seat now. O(n) for n
    /// followers; see [`cluster`].
    pub(crate) fn recluster(
        &mut self,
        followers: impl Iterator<Item = Standing> + Clone,
        margin: u32,
    ) -> Vec<(Slot, Seat)> {
        let Formed {
            shape,
            seats,
            moved,
        } = cluster(followers, self.size, margin);
        self.width = shape.width() as u32;
        self.seats = seats;
        self.units = vec![Unit::default(); shape.units];
        (self.broken, self.seated) = (0, 0);
        let (mut ready, mut roomy) = (Vec::new(), Vec::new());
        for unit in 0..shape.units as u32 {
            let counted = self.count(unit);
            ready.extend(self.preference(unit, counted));
            roomy.extend(self.room(unit, counted));
            self.broken += u32::from(is_broken(counted));
            self.seated += counted.present;
            if let Some(it) = self.units.get_mut(unit as usize) {
                *it = counted;
            }
        }
        // Sorted already, or nearly: collecting takes O(n).
        self.ready = ready.into_iter().collect();
        self.roomy = roomy.into_iter().collect();
        moved
    }

    /// Gives a follower a seat in the unit with the fewest followers; `None` if all units are full.
    pub(crate) fn join(&mut self, slot: Slot) -> Option<Seat> {
        let &(_, unit) = self.roomy.first()?;
        let place = self.places(unit).iter().position(Option::is_none)?;
        let seat = Seat {
            unit,
            place: u16::try_from(place).ok()?,
        };
        self.change(unit, |units| units.put(seat, Some(slot)));
        Some(seat)
    }

    /// Removes a follower. If it was the orchestrator, the most available follower of its unit takes its seat:
    /// returns that follower and the seat.
    pub(crate) fn leave(
        &mut self,
        seat: Seat,
        availability: impl Fn(Slot) -> u32,
    ) -> Option<(Slot, Seat)> {
        let mut moved = None;
        self.change(seat.unit, |units| {
            units.put(seat, None);
            if seat.place != 0 {
                return;
            }
            let places = units.places(seat.unit).iter().enumerate();
            let others = places.filter_map(|(place, slot)| Some((place, (*slot)?)));
            // Among equals it is the follower with the first place.
            let best = others.min_by_key(|&(_, slot)| core::cmp::Reverse(availability(slot)));
            let Some((place, slot)) = best else { return };
            let former = Seat {
                place: place as u16,
                ..seat
            };
            units.put(former, None);
            units.put(seat, Some(slot));
            moved = Some((slot, seat));
        });
        moved
    }

    /// Counts a task that this unit gets, or that has ended there.
    pub(crate) fn count_task(&mut self, unit: u32, begins: bool) {
        self.change(unit, |units| {
            if let Some(it) = units.units.get_mut(unit as usize) {
                it.tasks = match begins {
                    true => it.tasks.saturating_add(1),
                    false => it.tasks.saturating_sub(1),
                };
            }
        });
    }

    /// The unit that should run a task, and another one than `except` if possible.
    pub(crate) fn best(&self, except: Option<u32>) -> Option<u32> {
        let mut ready = self.ready.iter().map(|it| it.unit);
        let best = ready.next()?;
        match except == Some(best) {
            true => ready.next().or(Some(best)),
            false => Some(best),
        }
    }

    /// The units that are as good for a task as the best one, without `except` unless it is the only unit.
    pub(crate) fn alike(&self, except: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let best = self.best(except);
        let best = best.and_then(|it| self.preference(it, *self.units.get(it as usize)?));
        let from = best.into_iter().flat_map(|best| {
            let alike = self.ready.range(best..);
            alike.take_while(move |it| {
                (it.lacks_quorum, it.tasks) == (best.lacks_quorum, best.tasks)
            })
        });
        let is_best = move |it: u32| best.is_some_and(|best| best.unit == it);
        from.map(|it| it.unit)
            .filter(move |it| except != Some(*it) || is_best(*it))
    }

    /// The number of tasks of a unit.
    pub(crate) fn tasks(&self, unit: u32) -> u32 {
        self.units.get(unit as usize).map_or(0, |it| it.tasks)
    }

    /// The followers of a unit, the orchestrator first.
    pub(crate) fn members(&self, unit: u32) -> impl Iterator<Item = Slot> + '_ {
        self.places(unit).iter().copied().flatten()
    }

    /// The number of units.
    pub(crate) const fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if forming the units of these followers again mends a defect (section 4.3.2, a and b;
    /// erratum Q9): a unit without an orchestrator and a performant follower, fewer than three followers for
    /// each unit, or enough followers without a seat for another unit.
    pub(crate) fn want_clustering(&self, followers: usize) -> bool {
        let unseated = followers.saturating_sub(self.seated as usize);
        let is_broken = self.broken > 0 && followers >= 2;
        let are_few = self.units.len() > 1 && followers < self.units.len() * 3;
        let has_none = self.units.is_empty() && followers > 0;
        is_broken || are_few || has_none || unseated >= usize::from(self.size)
    }

    /// All followers that have a seat.
    #[cfg(feature = "check")]
    pub(crate) fn seats(&self) -> impl Iterator<Item = (Slot, Seat)> + '_ {
        let width = (self.width as usize).max(1);
        let seats = self.seats.iter().enumerate();
        seats.filter_map(move |(at, slot)| {
            let unit = (at / width) as u32;
            let place = (at % width) as u16;
            Some(((*slot)?, Seat { unit, place }))
        })
    }

    /// The first contradiction, if there is one. `tasks` are the units of all tasks that count for a unit.
    /// O(u (m + t)) for u units of m, and t tasks.
    #[cfg(feature = "check")]
    pub(crate) fn broken_invariant(&self, tasks: &[u32]) -> Option<&'static str> {
        let all = || (0..).zip(&self.units);
        let counted = |(unit, it): (u32, &Unit)| {
            let of_it = tasks.iter().filter(|task| **task == unit).count();
            *it == self.count(unit) && it.tasks as usize == of_it
        };
        let has_first = |(unit, it): (u32, &Unit)| {
            it.present == 0 || self.places(unit).first().is_some_and(Option::is_some)
        };
        let ready = all().filter_map(|(unit, it)| self.preference(unit, *it));
        let roomy = all().filter_map(|(unit, it)| self.room(unit, *it));
        let broken = self.units.iter().filter(|it| is_broken(**it)).count();
        let promises = [
            (
                self.seats.len() == self.units.len() * self.width as usize,
                "seats lie outside units",
            ),
            (all().all(counted), "a unit is miscounted"),
            (all().all(has_first), "a unit has no orchestrator"),
            (
                ready.eq(self.sorted_ready()) && roomy.collect::<BTreeSet<_>>() == self.roomy,
                "a unit is missing from the order of units",
            ),
            (
                self.broken as usize == broken && self.seated as usize == self.seats().count(),
                "broken units or seats are miscounted",
            ),
        ];
        promises.into_iter().find(|it| !it.0).map(|it| it.1)
    }

    /// The units with an orchestrator, by number.
    #[cfg(feature = "check")]
    fn sorted_ready(&self) -> Vec<Preference> {
        let mut ready: Vec<Preference> = self.ready.iter().copied().collect();
        ready.sort_by_key(|it| it.unit);
        ready
    }

    fn places(&self, unit: u32) -> &[Option<Slot>] {
        let width = self.width as usize;
        let from = (unit as usize).saturating_mul(width);
        self.seats.get(from..from + width).unwrap_or_default()
    }

    fn put(&mut self, seat: Seat, slot: Option<Slot>) {
        let at = seat.unit as usize * self.width as usize + usize::from(seat.place);
        let place = self.seats.get_mut(at);
        debug_assert!(place.is_some(), "seats lie in units");
        if let Some(place) = place {
            *place = slot;
        }
    }

    /// Changes a unit, and updates its counts and its place in the orders.
    fn change(&mut self, unit: u32, change: impl FnOnce(&mut Self)) {
        let Some(&before) = self.units.get(unit as usize) else {
            return;
        };
        if let Some(preference) = self.preference(unit, before) {
            self.ready.remove(&preference);
        }
        if let Some(room) = self.room(unit, before) {
            self.roomy.remove(&room);
        }
        change(self);
        let after = self.count(unit);
        self.ready.extend(self.preference(unit, after));
        self.roomy.extend(self.room(unit, after));
        self.broken += u32::from(is_broken(after));
        self.broken -= u32::from(is_broken(before));
        self.seated += after.present;
        self.seated -= before.present;
        if let Some(it) = self.units.get_mut(unit as usize) {
            *it = after;
        }
    }

    fn count(&self, unit: u32) -> Unit {
        let places = self.places(unit).iter().enumerate();
        let taken = places.filter(|(_, slot)| slot.is_some());
        let (mut present, mut performant) = (0, 0);
        for (place, _) in taken {
            present += 1;
            performant += u32::from(class_of(place as u16, self.size) > Class::Low);
        }
        let tasks = self.units.get(unit as usize).map_or(0, |it| it.tasks);
        Unit {
            present,
            performant,
            tasks,
        }
    }

    fn preference(&self, unit: u32, counted: Unit) -> Option<Preference> {
        let quorum = 1 + performant_places(usize::from(self.size));
        let preference = Preference {
            lacks_quorum: (counted.performant as usize) < quorum,
            tasks: counted.tasks,
            unit,
        };
        (counted.present > 0).then_some(preference)
    }

    fn room(&self, unit: u32, counted: Unit) -> Option<(u32, u32)> {
        (counted.present < self.width).then_some((counted.present, unit))
    }
}

fn is_broken(unit: Unit) -> bool {
    unit.performant < 2
}
