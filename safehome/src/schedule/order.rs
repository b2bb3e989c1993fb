//! Whether places agree with one order of all routines.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::schedule::Need;
use crate::{Hub, RoutineId, Value};

/// Where a new routine may go on each device that it needs, by the places that it has chosen on
/// others.
///
/// Whoever comes before somebody before it comes before it, by way of any others (erratum H1:
/// looking at direct neighbours alone is not enough). So in the order of each device those before
/// are in front, those after are behind, and the new routine may go anywhere between. Those that are
/// committed count as long as somebody before them is unfinished (errata H2, H3).
///
/// How far a routine reaches on these devices is found once, when it is first a neighbour: that
/// takes O(e (l + k)) for all, with e the entries of those on either side, l those of one device and
/// k the devices needed. A choice takes O(k), and to take it back costs nothing.
pub(crate) struct Sides<'a, V> {
    hub: &'a Hub<V>,
    /// The devices needed, sorted, with their numbers.
    needed: Vec<(NodeId, usize)>,
    /// All live routines, by id.
    live: Vec<Live<'a, V>>,
    after: Reach,
    before: Reach,
    /// As many as devices are needed, before each choice and after the last one.
    rooms: Vec<Room>,
}

struct Live<'a, V> {
    id: RoutineId,
    run: &'a Run<V>,
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
    /// For each live routine, and each device needed: the place nearest to the new one of those that
    /// are on this side of the routine, itself included.
    nearest: Vec<Option<usize>>,
    /// Whose neighbours are to be looked at; and who is known when these are, with where its edges
    /// begin.
    stack: Vec<(usize, Option<usize>)>,
    edges: Vec<usize>,
}

impl<'a, V: Value> Sides<'a, V> {
    /// Of a routine that has chosen nothing yet.
    pub(crate) fn new(hub: &'a Hub<V>, needs: &[Need]) -> Self {
        let mut live = Vec::with_capacity(hub.runs.len());
        live.extend(hub.runs.iter().map(|(&id, run)| Live { id, run }));
        let mut needed: Vec<(NodeId, usize)> = needs.iter().map(|it| it.device).zip(0..).collect();
        needed.sort_unstable();
        let mut rooms = Vec::with_capacity(needs.len() * (needs.len() + 1));
        let cells = live.len() * needs.len();
        let mut sides = Self {
            hub,
            needed,
            after: Reach::new(Side::After, live.len(), cells),
            before: Reach::new(Side::Before, live.len(), cells),
            live,
            rooms: Vec::new(),
        };
        rooms.extend(needs.iter().map(|need| sides.room_at_first(need.device)));
        sides.rooms = rooms;
        sides
    }

    /// Where it may go on the device with this number, after the choices for those before.
    pub(crate) fn room(&self, number: usize) -> Option<Room> {
        let row = number * self.needed.len();
        self.rooms.get(row + number).copied()
    }

    /// Takes a place on the device with this number, in front of the entry with this one. Choices
    /// for this device and later ones are taken back. Returns whether it leaves room on all later
    /// devices.
    pub(crate) fn choose(&mut self, number: usize, device: &Device<V>, at: usize) -> bool {
        let width = self.needed.len();
        self.rooms.truncate((number + 1) * width);
        self.rooms.extend_from_within(number * width..);
        let (left, right) = device
            .lineage
            .split_at_checked(at)
            .unwrap_or((&device.lineage, &[]));
        // Of those further away on this device all neighbours know.
        let count = if self.hub.rules.direct_order() {
            usize::MAX
        } else {
            1
        };
        for after in right.iter().filter_map(Entry::routine).take(count) {
            self.narrow(number + 1, after, Side::After);
        }
        let left = left.iter().rev().filter_map(Entry::routine);
        for before in left.take(count) {
            self.narrow(number + 1, before, Side::Before);
        }
        let later = self.rooms.iter().skip((number + 1) * width + number + 1);
        later.copied().all(|room| room.first <= room.last)
    }

    /// Whether somebody who has started comes behind this place.
    pub(crate) fn leases(&self, device: &Device<V>, at: usize) -> bool {
        let behind = device.lineage.iter().skip(at).filter_map(Entry::routine);
        let mut behind = behind.filter_map(|it| self.live.get(self.index(it)?));
        behind.any(|it| it.run.stage == Stage::Running)
    }

    /// Behind all that have touched a device, and all that must not be overtaken there.
    fn room_at_first(&self, id: NodeId) -> Room {
        let lineage = self.hub.devices.get(&id).map(|it| it.lineage.as_slice());
        let lineage = lineage.unwrap_or_default();
        let stays = |entry: &Entry<V>| {
            let live = entry
                .routine()
                .and_then(|it| self.live.get(self.index(it)?));
            entry.touched
                || live.is_some_and(|Live { run, .. }| match run.stage {
                    Stage::Waiting | Stage::Placed => run.late,
                    // It waits for this one: nobody goes in front (erratum H18).
                    Stage::Running => !self.hub.config.pre_leases || run.late || run.waits_for(id),
                    Stage::Aborting(_) | Stage::Committed => true,
                })
        };
        Room {
            first: lineage.iter().rposition(stays).map_or(0, |at| at + 1),
            last: lineage.len(),
        }
    }

    /// Leaves room on this side of somebody only.
    fn narrow(&mut self, choices: usize, id: RoutineId, side: Side) {
        let Some(at) = self.index(id) else {
            return;
        };
        let width = self.needed.len();
        let reach = match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        reach.find(at, self.hub, &self.live, &self.needed);
        let nearest = reach.nearest.get(at * width..).unwrap_or_default();
        let rooms = self.rooms.get_mut(choices * width..).unwrap_or_default();
        for (room, nearest) in rooms.iter_mut().zip(nearest) {
            match (side, *nearest) {
                (_, None) => {}
                (Side::Before, Some(place)) => room.first = room.first.max(place + 1),
                (Side::After, Some(place)) => room.last = room.last.min(place),
            }
        }
    }

    fn index(&self, id: RoutineId) -> Option<usize> {
        index(&self.live, id)
    }
}

impl Reach {
    fn new(side: Side, live: usize, cells: usize) -> Self {
        Self {
            side,
            is_known: vec![false; live],
            nearest: vec![None; cells],
            stack: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Finds how far this one reaches, and all beyond it.
    fn find<V: Value>(
        &mut self,
        at: usize,
        hub: &Hub<V>,
        live: &[Live<'_, V>],
        needed: &[(NodeId, usize)],
    ) {
        self.stack.push((at, None));
        while let Some((at, edges)) = self.stack.pop() {
            if let Some(first) = edges {
                // All beyond it are known.
                for beyond in self.edges.drain(first..) {
                    take_in(&mut self.nearest, at, beyond, needed.len(), self.side);
                }
                continue;
            }
            match self.is_known.get_mut(at) {
                Some(is_known) if !*is_known => *is_known = true,
                Some(_) | None => continue,
            }
            let first = self.edges.len();
            self.stack.push((at, Some(first)));
            let Some(&Live { id, run }) = live.get(at) else {
                continue;
            };
            for &node in &run.devices {
                let Some(device) = hub.devices.get(&node) else {
                    continue;
                };
                let Some(place) = device.position(id) else {
                    continue;
                };
                if let Ok(found) = needed.binary_search_by_key(&node, |it| it.0)
                    && let Some(&(_, number)) = needed.get(found)
                    && let Some(cell) = self.nearest.get_mut(at * needed.len() + number)
                {
                    *cell = Some(place);
                }
                if hub.rules.direct_order() {
                    continue;
                }
                let (left, right) = device.lineage.split_at_checked(place).unwrap_or_default();
                let next = match self.side {
                    Side::Before => left.iter().rev().find_map(Entry::routine),
                    Side::After => right.iter().skip(1).find_map(Entry::routine),
                };
                if let Some(next) = next.and_then(|it| index(live, it)) {
                    self.edges.push(next);
                    if self.is_known.get(next) == Some(&false) {
                        self.stack.push((next, None));
                    }
                }
            }
        }
    }
}

/// Who reaches another one reaches as far as that one.
fn take_in(nearest: &mut [Option<usize>], at: usize, beyond: usize, width: usize, side: Side) {
    for number in 0..width {
        let Some(&Some(theirs)) = nearest.get(beyond * width + number) else {
            continue;
        };
        if let Some(ours) = nearest.get_mut(at * width + number) {
            *ours = Some(match (side, *ours) {
                (_, None) => theirs,
                (Side::Before, Some(ours)) => ours.max(theirs),
                (Side::After, Some(ours)) => ours.min(theirs),
            });
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
