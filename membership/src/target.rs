//! Whom to probe: by weight 1/r^m, by the thesis' bag, or a bounded mix of weight and turn.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId, Weights};

use crate::list::MemberList;
use crate::{Membership, PassiveFeedback, Selection};

/// The weight of the unit distance: far above 1, so that distant members keep some precision.
const UNIT_WEIGHT: u64 = 1 << 40;

/// The weight of a member at `distance`, (unit / distance)^exponent of the largest; from 1.
pub(crate) fn weight(distance: u32, unit: u32, exponent: u8) -> u64 {
    let distance = u128::from(distance.max(unit).max(1));
    let mut weight = u128::from(UNIT_WEIGHT);
    for _ in 0..exponent {
        weight = weight * u128::from(unit) / distance;
    }
    u64::try_from(weight).unwrap_or(UNIT_WEIGHT).max(1)
}

/// The part of [`Selection::BoundedMix`] that goes through the list in turn. Members enter at a
/// random place and keep it, so nobody waits longer than one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Turn {
    order: Vec<NodeId>,
    next: usize,
    /// Probes since the last one in turn.
    since: u16,
}

impl Turn {
    /// Lets a new member in, at a random place. Moves 8 bytes a member behind it.
    pub(crate) fn enter(&mut self, id: NodeId, cx: &mut Context<'_, Membership>) {
        let place = cx.below(self.order.len() as u64 + 1) as usize;
        self.order.insert(place, id);
        if place < self.next {
            self.next += 1;
        }
    }

    /// Takes a forgotten member out. O(N): at the end of a period, or where the list is full and a
    /// newcomer takes the place of a dead member.
    pub(crate) fn leave(&mut self, id: NodeId) {
        if let Some(place) = self.order.iter().position(|&other| other == id) {
            self.order.remove(place);
            if place < self.next {
                self.next -= 1;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The next member in turn that can be probed; dead ones are passed over.
    fn draw(&mut self, list: &MemberList) -> Option<usize> {
        for _ in 0..self.order.len() {
            if self.next >= self.order.len() {
                self.next = 0;
            }
            let &id = self.order.get(self.next)?;
            self.next += 1;
            if let Some(slot) = list.find(id)
                && list.weights().weight(slot) > 0
            {
                return Some(slot);
            }
        }
        None
    }
}

impl Membership {
    /// The slot of the next probe's target; `None` when nobody is there.
    pub(crate) fn choose_target(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        // A turn comes when it is due, whatever else a period is for: the bound rests on it.
        match self.take_turn() {
            Some(slot) => Some(slot),
            None => match (self.choose_silent(cx), self.config.selection) {
                (Some(slot), _) => Some(slot),
                (None, Selection::TimeBounded) => self.choose_from_bag(cx),
                (None, Selection::Plain | Selection::BoundedMix { .. }) => {
                    cx.weighted(self.list.weights())
                }
            },
        }
    }

    /// The member whose turn it is, in a period that is for turns.
    fn take_turn(&mut self) -> Option<usize> {
        let Selection::BoundedMix { every } = self.config.selection else {
            return None;
        };
        self.turn.since += 1;
        if self.turn.since < every {
            return None;
        }
        self.turn.since = 0;
        self.turn.draw(&self.list)
    }

    /// The thesis' bag: what was drawn loses the smallest weight; when all is gone, all returns.
    fn choose_from_bag(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        if self.list.bag().total() == 0 {
            self.list.fill_bag();
            self.bag_step = self
                .list
                .all()
                .map(|slot| self.list.bag().weight(slot))
                .filter(|&weight| weight > 0)
                .min()
                .unwrap_or(1);
        }
        let slot = cx.weighted(self.list.bag())?;
        self.list.take_from_bag(slot, self.bag_step);
        Some(slot)
    }

    /// Passive feedback: now and then a member that was silent for long, any of them alike. Where
    /// many are, as in a large mesh, a few tries find one; else one pass over the list does, in
    /// one of 1 / p_passive periods.
    fn choose_silent(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        const TRIES: u8 = 8;
        let passive = self.config.passive?;
        if !cx.chance(passive.chance) {
            return None;
        }
        let slots = self.list.slots();
        for _ in 0..TRIES {
            let slot = cx.below(slots as u64) as usize;
            if self.is_silent(slot, passive) {
                return Some(slot);
            }
        }
        let silent = (0..slots)
            .filter(|&slot| self.is_silent(slot, passive))
            .count();
        if silent == 0 {
            return None;
        }
        let chosen = cx.below(silent as u64) as usize;
        (0..slots)
            .filter(|&slot| self.is_silent(slot, passive))
            .nth(chosen)
    }

    fn is_silent(&self, slot: usize, passive: PassiveFeedback) -> bool {
        self.list
            .entry(slot)
            .is_some_and(|entry| self.period.wrapping_sub(entry.stamp) > passive.timeout)
            && self.list.weights().weight(slot) > 0
    }

    /// Calls `visit` for up to `count` members other than `except`, drawn by weight without
    /// replacement. O(count log N).
    pub(crate) fn draw_relays(
        &mut self,
        count: u8,
        except: Option<NodeId>,
        cx: &mut Context<'_, Self>,
        mut visit: impl FnMut(&mut Self, Member, &mut Context<'_, Self>),
    ) {
        let mut hidden = [usize::MAX; 17];
        let mut places = hidden.iter_mut();
        if let Some(slot) = except.and_then(|id| self.list.find(id))
            && self.list.weights().weight(slot) > 0
            && let Some(place) = places.next()
        {
            *place = slot;
            self.list.hide(slot);
        }
        for place in places.take(count.into()) {
            let Some(slot) = cx.weighted(self.list.weights()) else {
                break;
            };
            *place = slot;
            self.list.hide(slot);
        }
        let first = usize::from(hidden.first().is_some_and(|&slot| {
            self.list
                .entry(slot)
                .is_some_and(|entry| Some(entry.member().id) == except)
        }));
        for &slot in hidden.iter().take_while(|&&slot| slot != usize::MAX) {
            self.list.show(slot);
        }
        for &slot in hidden
            .iter()
            .skip(first)
            .take_while(|&&slot| slot != usize::MAX)
        {
            if let Some(member) = self.list.entry(slot).map(crate::list::Entry::member) {
                visit(self, member, cx);
            }
        }
    }
}
