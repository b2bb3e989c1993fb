//! Whether places agree with one order of all routines.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::schedule::place::Need;
use crate::{Hub, RoutineId, Value};

/// Where a new routine may go on each device that it needs, by the places that it has chosen on
/// others.
///
/// What comes before a routine before it comes before it, by way of any others (erratum H1: looking
/// at direct neighbours alone is not enough). So in the order of each device those before are in
/// front, those after are behind, and the new routine may go anywhere between. Those that are
/// committed count as long as a routine before them is unfinished (errata H2, H3).
///
/// How far a routine reaches on these devices is found once, when it is first a neighbour that may
/// limit something: that takes O(d + (n + e) k) for all, with d the devices, n the live routines, e
/// their entries and k the devices needed, and O(n) where no routine limits anything. A choice
/// takes O(k), and to take it back costs nothing.
pub(crate) struct Sides<'a, V> {
    hub: &'a Hub<V>,
    needs: &'a [Need],
    /// All live routines, by id: one that waits for a place has none.
    live: Vec<Live<'a, V>>,
    /// This and what follows, but the rooms, is empty until a routine may limit something.
    links: Vec<Link>,
    after: Reach,
    before: Reach,
    /// As many as devices are needed, before each choice and after the last one.
    rooms: Vec<Room>,
}

struct Live<'a, V> {
    id: RoutineId,
    run: &'a Run<V>,
    /// The last link to a routine on this side.
    before: Option<usize>,
    after: Option<usize>,
}

/// Two live routines that are neighbours on a device.
struct Link {
    /// Those on this side, and the former link of the other one to a routine there.
    before: (usize, Option<usize>),
    after: (usize, Option<usize>),
}

/// The places on a device between which a routine may choose, both ends included; none if `first`
/// is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// How far live routines reach on one side.
struct Reach {
    side: Side,
    is_known: Vec<bool>,
    /// For each live routine a row, with a cell for each device needed: the number of entries in
    /// front of the new routine's last place there, or its first, that it leaves.
    rows: Vec<u32>,
    /// Routines with neighbours to be looked at; and those with neighbours that are known then.
    stack: Vec<(usize, bool)>,
}

impl<'a, V: Value> Sides<'a, V> {
    /// Of a routine that has chosen nothing yet.
    pub(crate) fn new(hub: &'a Hub<V>, new: &'a Run<V>, needs: &'a [Need]) -> Self {
        let live = |(&id, run)| Live {
            id,
            run,
            before: None,
            after: None,
        };
        let mut all = Vec::with_capacity(hub.runs.len());
        let runs = hub.runs.iter();
        all.extend(runs.filter(|it| !it.1.is_placeless()).map(live));
        let run = |id| Some(all.get(index(&all, id)?)?.run);
        let mut rooms = Vec::with_capacity(needs.len() * (needs.len() + 1));
        rooms.extend(needs.iter().map(|need| hub.room(need.device, new, run)));
        Self {
            hub,
            needs,
            live: all,
            links: Vec::new(),
            after: Reach::new(Side::After, 0, 0),
            before: Reach::new(Side::Before, 0, 0),
            rooms,
        }
    }

    /// Prepares to find how far others reach, when that is first asked.
    fn begin(&mut self) {
        if !self.after.rows.is_empty() {
            return;
        }
        let count = self.live.len() * self.needs.len();
        self.after = Reach::new(Side::After, self.live.len(), count);
        self.before = Reach::new(Side::Before, self.live.len(), count);
        self.lay_out();
    }

    /// Links neighbours, and notes which routines have a place on a device that is needed.
    fn lay_out(&mut self) {
        let (hub, width) = (self.hub, self.needs.len());
        let is_direct = hub.rules.direct_order();
        let numbers = Numbers::of(&self.live);
        let devices = self.needs.iter().map(|it| it.device);
        let mut needed: Vec<(NodeId, usize)> = devices.zip(0..).collect();
        needed.sort_unstable();
        let mut needed = needed.into_iter().peekable();
        for (node, device) in hub.devices.iter() {
            // Both are in order of their ids.
            let number = needed.next_if(|it| it.0 == *node).map(|it| it.1);
            if number.is_none() && (is_direct || device.lineage.len() < 2) {
                continue;
            }
            let mut former = None;
            for (entry, place) in device.lineage.iter().zip(0..) {
                let live = entry.routine().and_then(|it| numbers.get(it, &self.live));
                let Some(at) = live else {
                    continue;
                };
                if let Some(number) = number {
                    self.before.note(at * width + number, place + 1);
                    self.after.note(at * width + number, place);
                }
                if let Some(before) = former.replace(at).filter(|_| !is_direct) {
                    self.link(before, at);
                }
            }
        }
    }

    fn link(&mut self, before: usize, after: usize) {
        let new = Some(self.links.len());
        let sibling =
            |it: Option<&mut Option<usize>>| it.and_then(|last| core::mem::replace(last, new));
        let of_after = sibling(self.live.get_mut(after).map(|it| &mut it.before));
        let of_before = sibling(self.live.get_mut(before).map(|it| &mut it.after));
        self.links.push(Link {
            before: (before, of_after),
            after: (after, of_before),
        });
    }

    /// Where it may go on the device with this number, after the choices for those before.
    pub(crate) fn room(&self, number: usize) -> Option<Room> {
        let row = number * self.needs.len();
        self.rooms.get(row + number).copied()
    }

    /// Takes a place on the device with this number, in front of the entry with this one. Choices
    /// for this device and later ones are taken back. Returns whether it leaves room on all later
    /// devices.
    pub(crate) fn choose(&mut self, number: usize, device: &Device<V>, at: usize) -> bool {
        let width = self.needs.len();
        self.rooms.truncate((number + 1) * width);
        self.rooms.extend_from_within(number * width..);
        let (left, right) = device
            .lineage
            .split_at_checked(at)
            .unwrap_or((&device.lineage, &[]));
        // Where no routine is, and where it goes behind all anyway, others limit nothing.
        let firsts = self.rooms.iter().take(width).skip(number + 1);
        let rooms = self.rooms.iter().skip((number + 1) * width + number + 1);
        let mut both = firsts.zip(rooms);
        let is_front_open = both.clone().any(|(first, room)| room.first < first.last);
        let is_anybody_there = both.any(|(first, _)| first.last > 0);
        // Of those further away on this device all neighbours know.
        let count = if self.hub.rules.direct_order() {
            usize::MAX
        } else {
            1
        };
        if is_anybody_there {
            for after in right.iter().filter_map(Entry::routine).take(count) {
                self.narrow(number + 1, after, Side::After);
            }
        }
        if is_front_open {
            let left = left.iter().rev().filter_map(Entry::routine);
            for before in left.take(count) {
                self.narrow(number + 1, before, Side::Before);
            }
        }
        let later = self.rooms.iter().skip((number + 1) * width + number + 1);
        later.copied().all(|room| room.first <= room.last)
    }

    /// Whether a routine that has started comes behind this place.
    pub(crate) fn leases(&self, device: &Device<V>, at: usize) -> bool {
        let behind = device.lineage.iter().skip(at).filter_map(Entry::routine);
        let mut behind = behind.filter_map(|it| self.live.get(self.index(it)?));
        behind.any(|it| it.run.stage == Stage::Running)
    }

    /// Leaves room on this side of one routine only.
    fn narrow(&mut self, choices: usize, id: RoutineId, side: Side) {
        self.begin();
        let Some(at) = self.index(id) else {
            debug_assert!(false, "a routine that has a place is live");
            return;
        };
        let width = self.needs.len();
        let reach = match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        reach.find(at, &self.live, &self.links, width);
        let row = reach.rows.get(at * width..).unwrap_or_default();
        let rooms = self.rooms.get_mut(choices * width..).unwrap_or_default();
        for (room, &limit) in rooms.iter_mut().zip(row) {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            match side {
                Side::Before => room.first = room.first.max(limit),
                Side::After => room.last = room.last.min(limit),
            }
        }
    }

    fn index(&self, id: RoutineId) -> Option<usize> {
        index(&self.live, id)
    }
}

impl<V: Value> Hub<V> {
    /// Where a new routine may go on a device: behind all that have touched it, and all that must
    /// not be overtaken there.
    pub(crate) fn room<'a>(
        &self,
        id: NodeId,
        new: &Run<V>,
        run: impl Fn(RoutineId) -> Option<&'a Run<V>>,
    ) -> Room
    where
        V: 'a,
    {
        let lineage = self.devices.get(&id).map(|it| it.lineage.as_slice());
        let lineage = lineage.unwrap_or_default();
        let must_stay = |run: &Run<V>| match run.stage {
            Stage::Queued | Stage::Waiting | Stage::Placed => run.late,
            // It waits for this one: no routine goes in front (erratum H18).
            Stage::Running => !self.config.pre_leases || run.late || run.waits_for(id),
            Stage::Aborting(_) | Stage::Committed => true,
        };
        let must_stay = |run: &Run<V>| {
            let is_alike = || run.keeps_order_with(new) && !self.rules.any_gap();
            must_stay(run) || run.urgency() > new.urgency() || is_alike()
        };
        let stays = |entry: &Entry<V>| {
            entry.touched || entry.routine().and_then(&run).is_some_and(must_stay)
        };
        Room {
            first: lineage.iter().rposition(stays).map_or(0, |at| at + 1),
            last: lineage.len(),
        }
    }
}

impl Reach {
    fn new(side: Side, live: usize, cells: usize) -> Self {
        // No limit.
        let all = match side {
            Side::Before => 0,
            Side::After => u32::MAX,
        };
        Self {
            side,
            is_known: vec![false; live],
            rows: vec![all; cells],
            stack: Vec::with_capacity(2 * live),
        }
    }

    /// A live routine has this limit by itself: the cell is that of its row and a device.
    fn note(&mut self, cell: usize, limit: u32) {
        if let Some(cell) = self.rows.get_mut(cell) {
            *cell = match self.side {
                Side::Before => limit.max(*cell),
                Side::After => limit.min(*cell),
            };
        }
    }

    /// Finds how far this one reaches, and all beyond it.
    fn find<V>(&mut self, at: usize, live: &[Live<'_, V>], links: &[Link], width: usize) {
        let side = self.side;
        self.stack.push((at, false));
        while let Some((at, is_beyond_known)) = self.stack.pop() {
            match self.is_known.get_mut(at) {
                Some(is_known) if is_beyond_known || !*is_known => *is_known = true,
                Some(_) | None => continue,
            }
            if !is_beyond_known {
                self.stack.push((at, true));
            }
            let mut next = live.get(at).and_then(|it| match side {
                Side::Before => it.before,
                Side::After => it.after,
            });
            while let Some(link) = next.and_then(|it| links.get(it)) {
                let beyond;
                (beyond, next) = match side {
                    Side::Before => link.before,
                    Side::After => link.after,
                };
                if is_beyond_known {
                    self.take_in(at, beyond, width);
                } else if self.is_known.get(beyond) == Some(&false) {
                    self.stack.push((beyond, false));
                }
            }
        }
    }

    /// A routine that reaches another one reaches as far as that one.
    fn take_in(&mut self, at: usize, beyond: usize, width: usize) {
        let (low, high) = (at.min(beyond) * width, at.max(beyond) * width);
        let Some((first, second)) = self.rows.split_at_mut_checked(high) else {
            debug_assert!(false, "each live routine has a row");
            return;
        };
        let first = first.get_mut(low..).unwrap_or_default();
        let (ours, theirs) = if at < beyond {
            (first, second)
        } else {
            (second, first)
        };
        let both = ours.iter_mut().zip(theirs).take(width);
        match self.side {
            Side::Before => both.for_each(|(ours, theirs)| *ours = (*ours).max(*theirs)),
            Side::After => both.for_each(|(ours, theirs)| *ours = (*ours).min(*theirs)),
        }
    }
}

/// Where those are among the live ones whose ids are not far below the last one's.
struct Numbers {
    last: RoutineId,
    /// By how far below; past the end if it is not live.
    numbers: Vec<usize>,
}

impl Numbers {
    fn of<V>(live: &[Live<'_, V>]) -> Self {
        let last = live.last().map_or(RoutineId(0), |it| it.id);
        let mut numbers = vec![usize::MAX; 4 * live.len()];
        for (number, it) in live.iter().enumerate() {
            let below = usize::try_from(last.0 - it.id.0).unwrap_or(usize::MAX);
            if let Some(place) = numbers.get_mut(below) {
                *place = number;
            }
        }
        Self { last, numbers }
    }

    fn get<V>(&self, id: RoutineId, live: &[Live<'_, V>]) -> Option<usize> {
        let below = usize::try_from(self.last.0.checked_sub(id.0)?).unwrap_or(usize::MAX);
        match self.numbers.get(below) {
            Some(&number) => Some(number).filter(|&it| it < live.len()),
            None => index(live, id),
        }
    }
}

fn index<V>(live: &[Live<'_, V>], id: RoutineId) -> Option<usize> {
    // Numbers are given in a row, so most are found where they would be if all were live.
    let first = live.first()?.id;
    let guess = usize::try_from(id.0.checked_sub(first.0)?).unwrap_or(usize::MAX);
    if live.get(guess).is_some_and(|it| it.id == id) {
        return Some(guess);
    }
    live.binary_search_by_key(&id, |it| it.id).ok()
}
