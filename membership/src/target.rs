//! The choice of the member to probe: by weight 1/r^m, by the thesis' bag, or by a bounded mix of
//! weight and turn.

use selvedge_core::{Context, Member, NodeId};

use crate::list::Entry;
use crate::{Membership, PassiveFeedback, Selection};

/// The weight of the unit distance: far above 1, so that distant members keep some precision.
const UNIT_WEIGHT: u64 = 1 << 40;

/// The weight of a member at `distance`, (unit / distance)^exponent of the largest; from 1.
pub(crate) fn weight(distance: u32, unit: u32, exponent: u8) -> u64 {
    let distance = u64::from(distance.max(unit).max(1));
    let unit = u64::from(unit);
    let mut weight = UNIT_WEIGHT;
    for _ in 0..exponent {
        // weight * unit / distance, in two parts, so that 64 bits are enough.
        weight = weight / distance * unit + weight % distance * unit / distance;
    }
    weight.max(1)
}

impl Membership {
    /// The slot of the next probe's target; `None` when there is no other member.
    pub(crate) fn choose_target(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        // A turn is taken when it is due, before all other choices: the bound depends on it.
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

    /// The member that is next in turn, in a period that is for turns.
    fn take_turn(&mut self) -> Option<usize> {
        let Selection::BoundedMix { every } = self.config.selection else {
            return None;
        };
        if !self.round_robin.is_due(every) {
            return None;
        }
        let list = &self.list;
        let slot_of = |id| list.find(id).filter(|&slot| list.draws().has(slot));
        self.round_robin.draw(slot_of)
    }

    /// The thesis' bag: a drawn member loses the smallest weight; when all weights are 0, all are
    /// restored.
    fn choose_from_bag(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        let draws = self.list.draws_mut();
        draws.refill_bag();
        let slot = cx.weighted(draws.bag())?;
        draws.take_from_bag(slot);
        Some(slot)
    }

    /// Passive feedback: with probability p_passive, a member that was silent for long, any of them
    /// alike.
    fn choose_silent(&mut self, cx: &mut Context<'_, Self>) -> Option<usize> {
        let passive = self.config.passive?;
        if !cx.chance(passive.chance) {
            return None;
        }
        self.choose_any(cx, &|slot| self.is_silent(slot, passive))
    }

    /// One of the slots that `is_one` accepts, any of them alike. Where many are, as in a large
    /// mesh, a few tries find one; else one pass over the list does.
    fn choose_any(
        &self,
        cx: &mut Context<'_, Self>,
        is_one: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        const TRIES: u8 = 8;
        let slots = self.list.slots();
        for _ in 0..TRIES {
            let slot = cx.below(slots as u64) as usize;
            if is_one(slot) {
                return Some(slot);
            }
        }
        let accepted = || (0..slots).filter(|&slot| is_one(slot));
        let count = accepted().count();
        if count == 0 {
            return None;
        }
        let chosen = cx.below(count as u64) as usize;
        accepted().nth(chosen)
    }

    fn is_silent(&self, slot: usize, passive: PassiveFeedback) -> bool {
        let entry = self.list.entry(slot);
        entry.is_some_and(|entry| entry.age(self.period) > passive.timeout)
            && self.list.draws().has(slot)
    }

    /// Calls `visit` for up to `count` members other than `except`, at most 16, drawn without
    /// replacement: the last `alike` of them uniformly, and the others before by weight. O(count log
    /// N), and O(alike N) where few members are live.
    pub(crate) fn draw_relays(
        &mut self,
        count_alike: (u8, u8),
        except: Option<NodeId>,
        cx: &mut Context<'_, Self>,
        mut visit: impl FnMut(&mut Self, Member, &mut Context<'_, Self>),
    ) {
        let drawn = self.draw_slots(count_alike, except, cx);
        for &slot in drawn.iter().flatten() {
            if let Some(member) = self.list.entry(slot).map(Entry::member) {
                visit(self, member, cx);
            } else {
                debug_assert!(false, "no member has slot {slot}");
            }
        }
    }

    /// The slots of the members that [`draw_relays`](Self::draw_relays) visits.
    fn draw_slots(
        &mut self,
        (count, alike): (u8, u8),
        except: Option<NodeId>,
        cx: &mut Context<'_, Self>,
    ) -> [Option<usize>; 16] {
        let mut drawn = [None; 16];
        let except = except.and_then(|id| self.list.find(id));
        let except = except.filter(|&slot| self.list.draws().has(slot));
        if let Some(slot) = except {
            self.list.draws_mut().hide(slot);
        }
        let by_weight = usize::from(count.saturating_sub(alike));
        for (nth, place) in drawn.iter_mut().take(count.into()).enumerate() {
            let slot = if nth < by_weight {
                cx.weighted(self.list.weights())
            } else {
                self.choose_any(cx, &|slot| self.list.draws().has(slot))
            };
            let Some(slot) = slot else {
                break;
            };
            *place = Some(slot);
            self.list.draws_mut().hide(slot);
        }
        for &slot in drawn.iter().chain([&except]).flatten() {
            self.list.draws_mut().show(slot);
        }
        drawn
    }
}
