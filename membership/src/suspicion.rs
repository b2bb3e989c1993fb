//! Suspicion and failure of other members.

use selvedge_core::{Context, Delta, Member, NodeId, Span};

use crate::list::Standing;
use crate::message::Age;
use crate::{Membership, Timer};

impl Membership {
    /// Makes `target` suspect, after our probe found no answer.
    pub(crate) fn on_probe_failed(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        let Some((slot, entry)) = self.list.get(target.id) else {
            debug_assert!(false, "the probe of a forgotten member is cancelled");
            return;
        };
        // It may be suspected already.
        if entry.member() != target || entry.standing() != Standing::Alive {
            return;
        }
        let revision = entry.revision();
        let limit = self.config.health_limit;
        self.list.note(slot, |entry| entry.note_missed(limit));
        if self.config.publish_after <= 1 {
            self.suspect(slot, target, revision, self.suspicion_periods(), cx);
        } else {
            self.list
                .set_standing(slot, Standing::Doubted, revision, self.period);
            self.verify(target, cx);
        }
    }

    /// Asks a member itself, directly and through relays, and waits a period for the answer.
    pub(crate) fn verify(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        cx.arm(Timer::Suspicion(member.id), self.config.period);
        self.ping(member, cx);
        self.request_pings(member, cx);
    }

    /// Sends the suspicion to others; the suspect receives it first.
    fn suspect(
        &mut self,
        slot: usize,
        member: Member,
        revision: u32,
        periods: u16,
        cx: &mut Context<'_, Self>,
    ) {
        self.counters.suspicions += 1;
        self.enter_suspicion(slot, member, revision, periods, cx);
        self.ping(member, cx);
        // Where nearly all messages stay near, the news of a suspicion takes long to reach a far
        // suspect, and so does its refutation: relays bring both.
        if self.config.round_trip_unit.is_some() {
            self.request_pings(member, cx);
        }
    }

    pub(crate) fn enter_suspicion(
        &mut self,
        slot: usize,
        member: Member,
        revision: u32,
        periods: u16,
        cx: &mut Context<'_, Self>,
    ) {
        self.list
            .set_standing(slot, Standing::Suspect, revision, self.period);
        let limit = self.config.health_limit;
        self.list.note(slot, |entry| entry.note_suspicion(limit));
        self.announce(member.id);
        let time = Span(self.config.period.0.saturating_mul(periods.into()));
        cx.arm(Timer::Suspicion(member.id), time);
        Self::emit(cx, Delta::Suspected(member));
    }

    /// Ends a suspect's time. A stray tick finds no suspect.
    pub(crate) fn on_suspicion_over(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some((slot, entry)) = self.list.get(id) else {
            return;
        };
        let (member, revision) = (entry.member(), entry.revision());
        match entry.standing() {
            Standing::Doubted if self.suspicion_periods() > 1 => {
                let periods = self.suspicion_periods() - 1;
                self.suspect(slot, member, revision, periods, cx);
            }
            Standing::Alive if self.rules.refuted_timer_acts() => {
                self.declare(slot, Standing::Failed, revision, Age::default(), cx);
            }
            Standing::Doubted | Standing::Hearsay | Standing::Suspect => {
                self.counters.failures += 1;
                self.declare(slot, Standing::Failed, revision, Age::default(), cx);
            }
            // Only we asked, so only we know that it was silent.
            Standing::Unmet => self.end(slot, Standing::Failed, revision, Age::default(), cx),
            Standing::Alive | Standing::Failed | Standing::Left => {}
        }
    }

    /// Ends a member's presence, `age` periods ago, and reports that. For any `age`, a member that
    /// was live here until now is remembered for at least half the time: news of its life may still
    /// be on the way.
    pub(crate) fn declare(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        age: Age,
        cx: &mut Context<'_, Self>,
    ) {
        self.end(slot, standing, revision, age, cx);
        if let Some(entry) = self.list.entry(slot) {
            self.announce(entry.id());
        }
    }

    fn end(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        Age(age): Age,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(entry) = self.list.entry(slot) else {
            debug_assert!(false, "no member has slot {slot}");
            return;
        };
        let member = entry.member();
        if entry.standing().is_timed() {
            cx.disarm(Timer::Suspicion(member.id));
        }
        let ended = self.ended(Age(age.min(self.config.tombstone_periods / 2)));
        self.list.set_standing(slot, standing, revision, ended);
        self.cancel_probe_of(member.id, cx);
        Self::emit(cx, end_of(member, standing));
    }

    /// The period in which a member ended, `age` periods ago.
    pub(crate) fn ended(&self, Age(age): Age) -> u16 {
        self.period
            .wrapping_sub(age.min(self.config.tombstone_periods))
    }

    pub(crate) fn cancel_probe_of(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        if self.probing.cancel(id) {
            cx.disarm(Timer::Probe);
        }
    }
}

/// The delta of a member that is no longer here.
pub(crate) const fn end_of(member: Member, standing: Standing) -> Delta {
    match standing {
        Standing::Left => Delta::Left(member),
        Standing::Alive
        | Standing::Doubted
        | Standing::Hearsay
        | Standing::Unmet
        | Standing::Suspect
        | Standing::Failed => Delta::Failed(member),
    }
}
