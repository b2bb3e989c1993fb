//! Claims of other nodes about this node: it refutes them in a new revision, or gives way in a new life.

use selvedge_core::{Context, Incarnation, Member, serial_newer};

use crate::list::Standing;
use crate::message::{Claim, Record};
use crate::own_life::{is_beyond, is_leap};
use crate::{Event, Membership};

impl Membership {
    /// Takes in a claim about us: it is wrong whenever it is not our latest one.
    pub(crate) fn on_own_record(&mut self, record: &Record, cx: &mut Context<'_, Self>) {
        // A node that is leaving refutes nothing.
        if !self.presence.is_joined() {
            return;
        }
        let life = record.member.incarnation;
        if self.own.is_behind(life) {
            self.give_way(life, cx);
            return;
        }
        // A former life.
        if life != self.own.incarnation() {
            return;
        }
        let Some((_, own)) = self.list.get(self.own.id()) else {
            debug_assert!(false, "this node is on its own list");
            return;
        };
        let revision = own.revision();
        let is_ours = !is_beyond(record.revision, revision);
        match record.claim {
            // No other node may claim this; it was another life under our number, or an operator.
            Claim::Left(_) => self.give_way(life, cx),
            // We never claimed that: another life had our number.
            Claim::Alive(_) if !is_ours => self.give_way(life, cx),
            _ if is_leap(record.revision, revision) => self.give_way(life, cx),
            Claim::Suspect(_) | Claim::Failed(..) if !is_ours || record.revision == revision => {
                self.counters.refutations += 1;
                self.probing.stretch(self.config.stretch_limit);
                self.raise_revision(Some(record.revision));
            }
            // Refuted before; the sender has missed our record, and perhaps no node passes it on
            // any more.
            Claim::Suspect(_) | Claim::Failed(..) if !self.rules.old_claim_is_ignored() => {
                self.announce(self.own.id());
            }
            Claim::Suspect(_) | Claim::Failed(..) => {}
            Claim::Alive(ref metadata) if record.revision == revision => {
                self.on_own_metadata(metadata);
            }
            Claim::Alive(_) => {}
        }
    }

    /// Takes in that a node knows a later life of this node.
    pub(crate) fn on_id_taken(&mut self, life: Member, cx: &mut Context<'_, Self>) {
        let is_ours = life.id == self.own.id();
        if self.presence.is_joined() && is_ours && self.own.is_behind(life.incarnation) {
            self.give_way(life.incarnation, cx);
        }
    }

    /// Announces again that we live, in a revision above our last one, or above `received`, which is
    /// no earlier.
    pub(crate) fn raise_revision(&mut self, received: Option<u32>) {
        let Some((slot, own)) = self.list.get(self.own.id()) else {
            debug_assert!(false, "this node is on its own list");
            return;
        };
        let own = own.revision();
        let above = received.unwrap_or(own);
        debug_assert!(!serial_newer(own, above), "an old claim is refuted already");
        self.list
            .set_standing(slot, Standing::Alive, above.wrapping_add(1), self.period);
        self.announce(self.own.id());
    }

    /// Continues above a life that another node names: once a period, because the node may be
    /// wrong, and far ahead only when our last leap has reached all members.
    fn give_way(&mut self, life: Incarnation, cx: &mut Context<'_, Self>) {
        let once = self.config.hearsay_limit > 0;
        if self.own.give_way(life, once, self.suspicion_periods()) {
            self.on_new_incarnation(cx);
        } else {
            self.counters.hearsay_refused += 1;
        }
    }

    /// Reports the new incarnation of this life.
    pub(crate) fn on_new_incarnation(&mut self, cx: &mut Context<'_, Self>) {
        self.counters.identity_changes += 1;
        let incarnation = self.own.incarnation();
        if let Some(slot) = self.own_slot() {
            let metadata = self.list.metadata(slot).cloned().unwrap_or_default();
            self.list
                .supersede(slot, incarnation, 0, metadata, self.period);
            debug_assert_eq!(self.list.draws().own(slot), 0, "no node probes itself");
        } else {
            debug_assert!(false, "this node is on its own list");
        }
        if self.presence.is_joined() {
            self.announce(self.own.id());
            cx.event(Event::Identified(self.own.member()));
        }
    }
}
