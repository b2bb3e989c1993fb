//! What a node says about others: believed within bounds, so that a single liar changes little.
//!
//! A member's word about itself is first-hand. What it says about others is hearsay. Hearsay that
//! would change the entry of a member that nobody here doubts is paid for out of an allowance of its
//! sender for the period. That a live member has begun a later life only that member can say: it is
//! asked.

use selvedge_core::{Context, Incarnation, Member, NodeId, serial_newer};

use crate::Membership;
use crate::list::Standing;
use crate::message::{Body, Claim, Message, Record};
use crate::suspicion::Source;

/// How far ahead of what we know the revision in a hearsay may be. A member that was cut off for
/// longer than so many changes of another's is told by that one itself.
const REVISION_LEAP: u32 = 1 << 20;

/// How far a member moves its incarnation at once, to give way to a life that somebody tells of.
/// All that list the former one can follow, whatever was told: they compare within 2^31.
const INCARNATION_LEAP: u32 = 1 << 30;

/// What each sender has spent in this period, and whether we gave way to another life in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Hearsay {
    spent: [Option<(NodeId, u16)>; Self::SENDERS],
    gave_way: bool,
    /// For how many periods more our last leap is on its way to all. A node that missed one of two
    /// leaps could not compare.
    leaping: u16,
}

impl Hearsay {
    /// The hearsay of so many senders a period is believed.
    const SENDERS: usize = 16;

    /// A sender that spends `cost` of `allowance`; says whether it has as much left.
    fn spend(&mut self, sender: NodeId, cost: u16, allowance: u16) -> bool {
        let mine = |it: &&mut Option<(NodeId, u16)>| it.is_none_or(|(id, _)| id == sender);
        let Some(place) = self.spent.iter_mut().find(mine) else {
            return false;
        };
        let (_, spent) = place.get_or_insert((sender, 0));
        let is_affordable = cost <= allowance.saturating_sub(*spent);
        if is_affordable {
            *spent += cost;
        }
        is_affordable
    }
}

impl Membership {
    /// Begins a period with full allowances.
    pub(crate) fn renew_allowances(&mut self) {
        self.hearsay = Hearsay {
            leaping: self.hearsay.leaping.saturating_sub(1),
            ..Hearsay::default()
        };
    }

    /// Whether a sender may tell us of somebody new.
    pub(crate) fn may_introduce(&mut self, from: Member, about: Member, source: Source) -> bool {
        self.is_beyond_doubt(from, about, source) || self.is_within_allowance(from, 1)
    }

    /// Whether a claim about a member that we list in this very life is to be believed.
    pub(crate) fn may_tell(
        &mut self,
        from: Member,
        record: &Record,
        slot: usize,
        source: Source,
    ) -> bool {
        let Some(entry) = self.list.entry(slot).filter(|_| from != record.member) else {
            return true;
        };
        let (standing, revision) = (entry.standing, entry.revision);
        let ahead = record.revision.wrapping_sub(revision);
        let is_newer = serial_newer(record.revision, revision);
        if is_newer && ahead > REVISION_LEAP {
            self.counters.hearsay_refused += 1;
            return false;
        }
        let is_doubted = !matches!(standing, Standing::Alive | Standing::Doubted);
        let is_other_word = ahead == 0
            && (record.claim.told()).is_some_and(|it| self.list.metadata(slot) != Some(it));
        let cost = match record.claim {
            Claim::Left(_) if standing.is_live() => self.cost_of_an_end(),
            // It is final, and after a partition many are failed that live.
            Claim::Left(_) => 1,
            Claim::Alive(_) => u16::from(is_other_word || (is_newer && !is_doubted)),
            Claim::Suspect(_) | Claim::Failed(..) => {
                u16::from(is_other_word || ((is_newer || ahead == 0) && !is_doubted))
            }
        };
        cost == 0
            || self.is_beyond_doubt(from, record.member, source)
            || self.is_within_allowance(from, cost)
    }

    /// Whether a claim that a member has a later life than `known` is to be believed. If not, the
    /// member is asked: a later life says so itself.
    pub(crate) fn may_supersede(
        &mut self,
        from: Member,
        later: Member,
        known: Standing,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        if self.is_beyond_doubt(from, later, source) {
            return true;
        }
        let is_within = self.is_within_allowance(from, 1);
        if is_within && known.is_live() {
            self.ask_who_it_is(later, cx);
        }
        is_within && !known.is_live()
    }

    /// Asks a node for its own record.
    pub(crate) fn ask_who_it_is(&self, member: Member, cx: &mut Context<'_, Self>) {
        let key = crate::digest::key(member.id);
        let (first, last) = (key, key);
        cx.send(member, Message::bare(Body::Pull { first, last }));
    }

    /// Whether a sender may read the list, given its slot: members may, dead ones too, for they may
    /// be alive.
    pub(crate) fn may_read(&mut self, slot: Option<usize>) -> bool {
        self.counters.readers_refused += u64::from(slot.is_none());
        slot.is_some()
    }

    /// First-hand, or from a sender that is believed in everything.
    fn is_beyond_doubt(&self, from: Member, about: Member, source: Source) -> bool {
        from == about || source == Source::Fetched || self.config.hearsay_limit == 0
    }

    /// Whether another protocol may have one more life asked after in this period: what it waits for
    /// was told by others.
    pub(crate) fn may_inquire(&mut self) -> bool {
        let allowance = self.config.hearsay_limit;
        let may = allowance == 0 || self.hearsay.spend(self.me.id, 1, allowance);
        self.counters.hearsay_refused += u64::from(!may);
        may
    }

    fn is_within_allowance(&mut self, from: Member, cost: u16) -> bool {
        let allowance = self.config.hearsay_limit;
        let is_within = self.hearsay.spend(from.id, cost, allowance);
        if !is_within {
            self.counters.hearsay_refused += 1;
            // Were it true, lists would differ, and its sender may not say it again.
            self.disagreements = u8::MAX;
        }
        is_within
    }

    /// Half an allowance: an end is final, and a member of which it is told falsely needs another
    /// life.
    fn cost_of_an_end(&self) -> u16 {
        (self.config.hearsay_limit / 2).max(1)
    }

    /// Goes on above a life that somebody tells of: once a period, for what is told may be wrong,
    /// and far ahead only when our last leap has reached all.
    pub(crate) fn give_way(&mut self, life: Incarnation, cx: &mut Context<'_, Self>) {
        let is_far = life.0.wrapping_sub(self.me.incarnation.0) > REVISION_LEAP;
        if self.hearsay.gave_way || (is_far && self.hearsay.leaping > 0) {
            self.counters.hearsay_refused += 1;
            return;
        }
        self.hearsay.gave_way = self.config.hearsay_limit > 0;
        if is_far {
            self.hearsay.leaping = self.suspicion_periods();
        }
        self.take_identity(beyond(self.me.incarnation, life), cx);
    }
}

/// Whether a number that is told of us is one that we have not come to: later than our own, or
/// opposite on the circle, where neither is later. A list that has us under that one cannot follow
/// us.
pub(crate) const fn is_beyond_us(told: u32, own: u32) -> bool {
    told != own && !serial_newer(own, told)
}

/// Whether a revision that is told of our life is so far above our own that it never was ours.
pub(crate) const fn is_leap(told: u32, own: u32) -> bool {
    is_beyond_us(told, own) && told.wrapping_sub(own) > REVISION_LEAP
}

/// The number after `life`, or as far in its direction as one may go at once.
pub(crate) fn beyond(me: Incarnation, life: Incarnation) -> Incarnation {
    let ahead = life.0.wrapping_sub(me.0).min(INCARNATION_LEAP - 1);
    Incarnation(me.0.wrapping_add(ahead + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_its_allowance_and_later_ones_none() {
        let mut hearsay = Hearsay::default();
        assert!(hearsay.spend(NodeId(1), 4, 8));
        assert!(!hearsay.spend(NodeId(1), 5, 8), "nothing is taken then");
        assert!(hearsay.spend(NodeId(1), 4, 8));
        assert!(!hearsay.spend(NodeId(1), 1, 8));
        for id in 2..17 {
            assert!(hearsay.spend(NodeId(id), 1, 8));
        }
        assert!(!hearsay.spend(NodeId(17), 1, 8));
        assert!(hearsay.spend(NodeId(16), 7, 8));
    }

    #[test]
    fn a_leap_is_followed_in_steps_that_all_can_compare() {
        let told = Incarnation(7_u32.wrapping_add((1 << 31) - 1));
        let mut me = Incarnation(7);
        let mut steps = 0;
        while !me.newer_than(told) {
            let next = beyond(me, told);
            assert!(next.newer_than(me));
            me = next;
            steps += 1;
        }
        assert_eq!((me, steps), (told.next(), 2));
        assert_eq!(beyond(Incarnation(5), Incarnation(5)), Incarnation(6));
        assert_eq!(
            beyond(Incarnation(u32::MAX), Incarnation(3)),
            Incarnation(4)
        );
    }
}
