//! The assignment of followers to seats in units (PCM, section 4.3.2).
//!
//! Each gateway computes the same units: the arithmetic is in integers.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use serde::{Deserialize, Serialize};

/// The place of a follower in the table of followers.
pub(crate) type Slot = u32;

/// A place in a unit. Place 0 is the orchestrator's; then come the performant followers, then the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Seat {
    pub(crate) unit: u32,
    pub(crate) place: u16,
}

/// The class of a follower among all of them, by its availability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// The least available ones.
    Low,
    /// The next ones: with the orchestrator they are half of a unit.
    Performant,
    /// The most available ones, of which each unit has one. It counts the votes.
    Orchestrator,
}

/// A follower, as clustering sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) slot: Slot,
    pub(crate) id: NodeId,
    /// The availability, in parts per million.
    pub(crate) availability: u32,
    pub(crate) seat: Option<Seat>,
}

/// The number of units, and of followers of each class in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) units: usize,
    /// The number of places of a unit for performant followers.
    performant_places: usize,
    performant: usize,
    low: usize,
}

impl Shape {
    /// The shape for this number of followers, and units of `size`, from 1. Units have three followers or more
    /// if there are at least three in all, so few followers make few units. A remainder that is too small for
    /// a unit makes some units larger than `size`.
    pub(crate) fn of(followers: usize, size: u16) -> Self {
        let size = usize::from(size.max(1));
        let units = followers.div_ceil(size).min(followers / 3);
        let units = units.max(usize::from(followers > 0));
        let others = followers.saturating_sub(units);
        let performant_places = performant_places(size);
        let performant = others.min(performant_places.saturating_mul(units));
        Self {
            units,
            performant_places,
            performant,
            low: others.saturating_sub(performant),
        }
    }

    /// The number of places of a unit; some of them may stay empty.
    pub(crate) fn width(self) -> usize {
        1 + self.performant_places + self.low.div_ceil(self.units.max(1))
    }

    /// The places of a unit that are for followers of this class.
    fn places(self, class: Class, unit: usize) -> core::ops::Range<usize> {
        let share = |all: usize| {
            let each = all.checked_div(self.units).unwrap_or(0);
            each + usize::from(unit < all - each * self.units)
        };
        match class {
            Class::Orchestrator => 0..1,
            Class::Performant => 1..1 + share(self.performant),
            Class::Low => {
                let from = 1 + self.performant_places;
                from..from + share(self.low)
            }
        }
    }
}

/// Half of a unit is performant, with its orchestrator: of five, two more.
pub(crate) fn performant_places(size: usize) -> usize {
    size.saturating_sub(1).div_ceil(2)
}

/// The purpose of a place.
pub(crate) fn class_of(place: u16, size: u16) -> Class {
    let performant = 1..=performant_places(usize::from(size));
    match usize::from(place) {
        0 => Class::Orchestrator,
        place if performant.contains(&place) => Class::Performant,
        _ => Class::Low,
    }
}

/// The result of forming units.
#[derive(Clone, Debug)]
pub(crate) struct Formed {
    pub(crate) shape: Shape,
    /// The follower in each seat, unit by unit and place by place.
    pub(crate) seats: Vec<Option<Slot>>,
    /// The followers that have another seat than before.
    pub(crate) moved: Vec<(Slot, Seat)>,
}

/// Gives each follower a seat.
///
/// A follower keeps its class unless others are more available by `margin` (in parts per million), and
/// its seat unless its class, or the number of units, changes. The other followers take the free seats by
/// class and availability, place by place: through the units in order for one place and in reverse order
/// for the next, so that units are alike. O(n), and O(c log c) for the c followers that get another seat.
pub(crate) fn cluster(
    followers: impl Iterator<Item = Standing> + Clone,
    size: u16,
    margin: u32,
) -> Formed {
    let key = |it: &Standing| key(it, size, margin);
    let mut keys: Vec<u128> = followers.clone().map(|it| key(&it)).collect();
    let shape = Shape::of(keys.len(), size);
    let [orchestrators, performant] = limits(&mut keys, shape);
    let class = |key: u128| match key {
        _ if key < orchestrators => Class::Orchestrator,
        _ if key < performant => Class::Performant,
        _ => Class::Low,
    };
    let width = shape.width();
    let mut seats = vec![None; shape.units.saturating_mul(width)];
    // The keys are not needed any more; their memory is.
    let mut unseated = keys;
    unseated.clear();
    for follower in followers {
        let key = key(&follower);
        let kept = follower.seat.filter(|seat| {
            let places = shape.places(class(key), seat.unit as usize);
            (seat.unit as usize) < shape.units && places.contains(&usize::from(seat.place))
        });
        let kept = kept.map(|seat| seat.unit as usize * width + usize::from(seat.place));
        match kept.and_then(|at| seats.get_mut(at)) {
            Some(seat) => *seat = Some(follower.slot),
            None => unseated.push(key),
        }
    }
    unseated.sort_unstable();
    let moved = fill(&mut seats, shape, &unseated);
    Formed {
        shape,
        seats,
        moved,
    }
}

/// Gives the free seats to these followers. The order of keys is the order of classes, as is the order of
/// places.
fn fill(seats: &mut [Option<Slot>], shape: Shape, unseated: &[u128]) -> Vec<(Slot, Seat)> {
    let width = shape.width();
    let mut moved = Vec::with_capacity(unseated.len());
    let mut unseated = unseated.iter().map(|&it| slot(it));
    for class in [Class::Orchestrator, Class::Performant, Class::Low] {
        let places = shape.places(class, 0);
        for (turn, place) in places.enumerate() {
            for nth in 0..shape.units {
                // In turn forwards and backwards, so that units are alike.
                let unit = if turn % 2 == 0 {
                    nth
                } else {
                    shape.units - 1 - nth
                };
                if !shape.places(class, unit).contains(&place) {
                    continue;
                }
                let left = seats.get_mut(unit * width + place);
                if let Some(left) = left.filter(|it| it.is_none())
                    && let Some(slot) = unseated.next()
                {
                    *left = Some(slot);
                    let (unit, place) = (unit as u32, place as u16);
                    moved.push((slot, Seat { unit, place }));
                }
            }
        }
    }
    debug_assert!(unseated.next().is_none(), "there is a seat for each");
    moved
}

/// The order of followers: by availability from the highest, then by id from the lowest.
fn key(follower: &Standing, size: u16, margin: u32) -> u128 {
    let held = follower.seat.map(|it| class_of(it.place, size));
    let bonus = match held {
        Some(Class::Orchestrator) => margin.saturating_mul(2),
        Some(Class::Performant) => margin,
        Some(Class::Low) | None => 0,
    };
    let score = follower.availability.saturating_add(bonus);
    u128::from(u32::MAX - score) << 96 | u128::from(follower.id.0) << 32 | u128::from(follower.slot)
}

/// The slot in a key.
const fn slot(key: u128) -> Slot {
    key as u32
}

/// The keys at which orchestrators, and then performant followers, end.
fn limits(keys: &mut [u128], shape: Shape) -> [u128; 2] {
    let mut limit = |at: usize| match at < keys.len() {
        true => *keys.select_nth_unstable(at).1,
        false => u128::MAX,
    };
    // The second limit lies behind the first, but a second pass over all keys is as simple, and cheap.
    [limit(shape.units), limit(shape.units + shape.performant)]
}
