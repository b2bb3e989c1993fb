//! What others say about this node: refuted by a new revision, or given way to by a new life.

use selvedge_core::{Context, Incarnation, serial_newer};

use crate::hearsay::{is_beyond_us, is_leap};
use crate::list::Standing;
use crate::message::{Claim, Record};
use crate::{Event, Membership, Phase};

impl Membership {
    /// What others say about us: wrong whenever it is not what we said last.
    pub(crate) fn hear_about_self(&mut self, record: &Record, cx: &mut Context<'_, Self>) {
        if self.phase != Phase::Joined {
            return;
        }
        let life = record.member.incarnation;
        if is_beyond_us(life.0, self.me.incarnation.0) {
            self.give_way(life, cx);
            return;
        }
        if life != self.me.incarnation {
            return;
        }
        let Some(own) = self.own_slot().and_then(|slot| self.list.entry(slot)) else {
            return;
        };
        let is_ours = !is_beyond_us(record.revision, own.revision);
        match record.claim {
            // Nobody but us may say so; it was another life under our number, or an operator.
            Claim::Left(_) => self.give_way(life, cx),
            // We never said that: another life had our number.
            Claim::Alive(_) if !is_ours => self.give_way(life, cx),
            _ if is_leap(record.revision, own.revision) => self.give_way(life, cx),
            Claim::Suspect(_) | Claim::Failed(..)
                if !is_ours || record.revision == own.revision =>
            {
                self.counters.refutations += 1;
                self.stretch = (self.stretch + 1).min(self.config.stretch_limit);
                self.raise_revision(Some(record.revision));
            }
            // Refuted before; the node that says it now has missed our word, and nobody may be
            // passing it on any more.
            Claim::Suspect(_) | Claim::Failed(..) if !self.rules.old_claim_is_ignored() => {
                self.add_news(self.me.id);
            }
            Claim::Suspect(_) | Claim::Failed(..) => {}
            Claim::Alive(ref metadata) if record.revision == own.revision => {
                self.hear_own_metadata(metadata);
            }
            Claim::Alive(_) => {}
        }
    }

    /// Says anew that we live, above our last word, or above `heard`, which is no earlier.
    pub(crate) fn raise_revision(&mut self, heard: Option<u32>) {
        let Some(slot) = self.own_slot() else {
            return;
        };
        let Some(own) = self.list.entry(slot).map(|entry| entry.revision) else {
            return;
        };
        let above = heard.unwrap_or(own);
        debug_assert!(!serial_newer(own, above), "an old claim is refuted already");
        self.list
            .set_standing(slot, Standing::Alive, above.wrapping_add(1), self.period);
        self.add_news(self.me.id);
    }

    /// Goes on under a later incarnation.
    pub(crate) fn take_identity(&mut self, incarnation: Incarnation, cx: &mut Context<'_, Self>) {
        self.counters.identity_changes += 1;
        self.me.incarnation = incarnation;
        if let Some(slot) = self.own_slot() {
            let metadata = self.list.metadata(slot).cloned().unwrap_or_default();
            self.list
                .supersede(slot, incarnation, 0, metadata, self.period);
            debug_assert_eq!(self.list.own_weight(slot), 0, "nobody probes itself");
        }
        if self.phase == Phase::Joined {
            self.add_news(self.me.id);
            cx.event(Event::Identity(self.me));
        }
    }
}
