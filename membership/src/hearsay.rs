//! Hearsay: claims about others are believed within bounds, so that a single liar changes little.
//!
//! A member's claim about itself is first-hand. Its claim about another is hearsay. Hearsay that
//! would change the entry of a member that this node does not doubt is paid for from its sender's
//! allowance for the period. Only a live member itself can claim that it has begun a later life: it
//! is asked.

use selvedge_core::{Context, Member, serial_newer};

use crate::Membership;
use crate::digest::key;
use crate::list::Standing;
use crate::merge::Source;
use crate::message::{Body, Claim, Message, Record};
use crate::own_life::LEAP;

impl Membership {
    /// Returns true if a sender may introduce a node that is not on the list.
    pub(crate) fn may_introduce(&mut self, from: Member, about: Member, source: Source) -> bool {
        self.is_beyond_doubt(from, about, source) || self.is_within_allowance(from, 1)
    }

    /// Returns true if a claim is believed about a member that we list in this very life.
    pub(crate) fn may_claim(
        &mut self,
        from: Member,
        record: &Record,
        slot: usize,
        source: Source,
    ) -> bool {
        // A member is believed about itself.
        let Some(entry) = self.list.entry(slot).filter(|_| from != record.member) else {
            return true;
        };
        let (standing, revision) = (entry.standing(), entry.revision());
        let ahead = record.revision.wrapping_sub(revision);
        let is_newer = serial_newer(record.revision, revision);
        if is_newer && ahead > LEAP {
            self.counters.hearsay_refused += 1;
            return false;
        }
        let is_doubted = !matches!(standing, Standing::Alive | Standing::Doubted);
        let is_other_word = ahead == 0
            && (record.claim.stated_metadata())
                .is_some_and(|it| self.list.metadata(slot) != Some(it));
        let cost = match record.claim {
            Claim::Left(_) if standing.is_live() => self.cost_of_an_end(),
            // This is final, and after a partition many live members are listed as failed.
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

    /// Returns true if a claim is believed that a member has a later life than `known`. If not, the
    /// member is asked: only a later life itself can claim that.
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
            self.pull_record_of(later, cx);
        }
        is_within && !known.is_live()
    }

    /// Asks a node for its own record.
    pub(crate) fn pull_record_of(&self, member: Member, cx: &mut Context<'_, Self>) {
        let key = key(member.id);
        let (first, last) = (key, key);
        cx.send(member, Message::bare(Body::Pull { first, last }));
    }

    /// Returns true if a sender may read the list, given its slot: members may, dead ones too,
    /// because they may be alive.
    pub(crate) fn may_read(&mut self, slot: Option<usize>) -> bool {
        self.counters.readers_refused += u64::from(slot.is_none());
        slot.is_some()
    }

    /// Returns true for a first-hand claim, or one from a sender that is believed in everything.
    fn is_beyond_doubt(&self, from: Member, about: Member, source: Source) -> bool {
        from == about || source == Source::Fetched || self.config.hearsay_limit == 0
    }

    /// Returns true if another protocol may inquire about one more life in this period, which it
    /// learned of from other nodes.
    pub(crate) fn may_inquire(&mut self) -> bool {
        let allowance = self.config.hearsay_limit;
        let may = allowance == 0 || self.allowances.spend(self.own.id(), 1, allowance);
        self.counters.hearsay_refused += u64::from(!may);
        may
    }

    fn is_within_allowance(&mut self, from: Member, cost: u16) -> bool {
        let allowance = self.config.hearsay_limit;
        let is_within = self.allowances.spend(from.id, cost, allowance);
        if !is_within {
            self.counters.hearsay_refused += 1;
            // If it is true, the lists differ now.
            self.agreement.expect_difference();
        }
        is_within
    }

    /// The cost of the claim that a member left, half an allowance: it is final, and if it is false
    /// the member needs another life.
    fn cost_of_an_end(&self) -> u16 {
        (self.config.hearsay_limit / 2).max(1)
    }
}
