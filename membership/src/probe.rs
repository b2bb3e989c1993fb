//! Probing: one target a period, directly and then through relays.

use selvedge_core::{Context, Member, Span};

use crate::list::Standing;
use crate::message::Body;
use crate::probing::Probe;
use crate::{Membership, Phase, Timer};

impl Membership {
    /// Ends a period: evaluates its probe, tidies tables and begins the next period.
    pub(crate) fn on_period(&mut self, cx: &mut Context<'_, Self>) {
        match self.phase() {
            // A stray tick.
            Phase::Idle => return,
            Phase::Joining => {
                self.bootstrap.note_silence();
                self.ask_seeds(cx);
            }
            Phase::Joined => {
                self.end_probe(cx);
                self.housekeep(cx);
                self.begin_probe(cx);
                self.reconnect(cx);
            }
            Phase::Leaving => {
                if self.send_farewell(cx) {
                    return;
                }
            }
        }
        self.arm_period(cx);
    }

    pub(crate) fn arm_period(&mut self, cx: &mut Context<'_, Self>) {
        let jitter = Span(cx.below(self.config.jitter.0));
        let period = self.probing.stretched(self.config.period);
        cx.arm(Timer::Period, period + jitter);
    }

    /// Ends the probe. If it found no answer, its target becomes suspect.
    fn end_probe(&mut self, cx: &mut Context<'_, Self>) {
        // There was no probe if there was no member to probe, or it was left out.
        let Some(probe) = self.probing.end() else {
            return;
        };
        cx.disarm(Timer::Probe);
        self.end_measuring(probe.target);
        if probe.is_answered {
            self.probing.relax();
            return;
        }
        self.counters.failed_probes += 1;
        self.probing.stretch(self.config.stretch_limit);
        self.on_probe_failed(probe.target, cx);
    }

    /// Work that is done once a period, and not for each message.
    fn housekeep(&mut self, cx: &mut Context<'_, Self>) {
        if self.config.passive.is_some() || self.config.tombstone_periods > 0 {
            self.period = self.period.wrapping_add(1);
            self.refresh_stamps();
        }
        self.allowances.renew();
        self.own.end_period();
        self.forget_the_dead();
        self.agreement
            .end_period(self.list.digest(), self.config.sync_after);
        self.boost_reporter();
        self.monitor_self(cx);
        self.fetch_again(cx);
    }

    fn forget_the_dead(&mut self) {
        let age = self.config.tombstone_periods;
        while let Some(id) = self.list.forget_overdue(self.period, age) {
            self.round_robin.leave(id);
        }
        let limit = usize::from(self.config.tombstone_limit);
        while self.list.tombstones().len() > limit && self.displace_tombstone() {}
        // Within this time a tombstone blocks reports of other nodes, and so does a probe in its
        // place.
        let is_past = |&forgot: &u16| age > 0 && self.period.wrapping_sub(forgot) >= age;
        self.forgot = self.forgot.filter(|forgot| !is_past(forgot));
    }

    /// Forgets a dead member before its time, for want of room. Returns true if there was one.
    pub(crate) fn displace_tombstone(&mut self) -> bool {
        let forgotten = self.list.forget_first();
        if let Some(id) = forgotten {
            self.counters.tombstones_displaced += 1;
            self.forgot = Some(self.period);
            self.round_robin.leave(id);
        }
        forgotten.is_some()
    }

    /// Keeps ages from wrapping: each member of a list of up to 65,536 has its turn within 2^14
    /// periods, and an age beyond the passive timeout needs no precision.
    fn refresh_stamps(&mut self) {
        let now = self.period;
        for quarter in 0..4 {
            let slot = usize::from(now.wrapping_add(quarter << 14));
            if self.list.draws().has(slot) {
                self.list.note(slot, |entry| entry.limit_age(now, 1 << 15));
            }
        }
    }

    fn begin_probe(&mut self, cx: &mut Context<'_, Self>) {
        let chosen = self.choose_target(cx);
        let is_needless = chosen.is_some_and(|slot| self.is_needless(slot));
        self.probing.forget_heard();
        // There is no other member.
        let Some((slot, entry)) = chosen.and_then(|slot| Some((slot, self.list.entry(slot)?)))
        else {
            return;
        };
        if is_needless {
            self.counters.probes_suppressed += 1;
            return;
        }
        let target = entry.member();
        self.counters.probes += 1;
        self.probing.begin(target);
        self.begin_measuring(target, cx.now());
        let digest = self.list.digest();
        let origin = None;
        self.send_listed(Some(slot), target, Body::Ping { digest, origin }, cx);
        if self.config.relays > 0 {
            let timeout = self.probing.stretched(self.config.probe_timeout);
            cx.arm(Timer::Probe, timeout);
        }
    }

    /// Returns true if a probe would carry no information: its target just showed that it lives, no
    /// node doubts that, and there is no news.
    fn is_needless(&self, slot: usize) -> bool {
        self.config.suppress_probes
            && self.updates.is_empty()
            && self.broadcasting.is_empty()
            && self.list.entry(slot).is_some_and(|entry| {
                entry.standing() == Standing::Alive && self.probing.was_heard(entry.id())
            })
    }

    pub(crate) fn ping(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        self.note_another_ping(target);
        let digest = self.list.digest();
        let origin = None;
        self.send(target, Body::Ping { digest, origin }, cx);
    }

    /// Asks relays when the direct acknowledgement is overdue. A stray tick finds no open probe.
    pub(crate) fn on_probe_overdue(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(Probe {
            target,
            is_answered: false,
        }) = self.probing.probe()
        {
            self.request_pings(target, cx);
        }
    }

    pub(crate) fn request_pings(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        let relays = self.config.relays;
        self.draw_relays(
            (relays, self.relays_alike(target.id)),
            Some(target.id),
            cx,
            |machine, relay, cx| {
                machine.send(relay, Body::PingRequest { target }, cx);
            },
        );
    }

    /// Probes `target` for `origin`, and keeps nothing: the target's answer names the origin.
    pub(crate) fn on_ping_request(
        &mut self,
        origin: Member,
        target: Member,
        cx: &mut Context<'_, Self>,
    ) {
        if target.id == self.own.id() {
            self.send(origin, Body::Ack { origin: None }, cx);
            return;
        }
        let digest = self.list.digest();
        let origin = Some(origin);
        self.send(target, Body::Ping { digest, origin }, cx);
    }

    /// Takes a relay's report that a member is there.
    pub(crate) fn on_relayed_ack(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some((slot, entry)) = self.list.get(member.id)
            && entry.member() == member
        {
            self.on_contact(slot, cx);
        }
    }

    /// Notes a sign of life of the life in `slot`. It answers the probe, and ends a doubt that only
    /// this node has; a suspicion that others know of has to be refuted by the suspect itself.
    pub(crate) fn on_contact(&mut self, slot: usize, cx: &mut Context<'_, Self>) {
        // A dead member has to refute first.
        let Some(entry) = self.list.entry(slot).filter(|entry| entry.is_live()) else {
            return;
        };
        let (member, standing, revision) = (entry.member(), entry.standing(), entry.revision());
        let now = self.period;
        self.list.note(slot, |entry| entry.note_contact(now));
        if self.config.suppress_probes {
            self.probing.note_heard(member.id);
        }
        if matches!(
            standing,
            Standing::Doubted | Standing::Hearsay | Standing::Unmet
        ) {
            self.list.set_standing(slot, Standing::Alive, revision, now);
            cx.disarm(Timer::Suspicion(member.id));
        }
        if standing == Standing::Unmet {
            self.announce(member.id);
        }
        if self.probing.on_answer(member) {
            cx.disarm(Timer::Probe);
        }
    }

    /// Takes a message of a node that is not on the list (or only in a former life): a question is
    /// answered by asking for the node's own record.
    pub(crate) fn on_stranger(&mut self, from: Member, body: &Body, cx: &mut Context<'_, Self>) {
        let known = self.list.get(from.id);
        // Its own record came with the message.
        if known.is_some_and(|(_, entry)| !from.supersedes(entry.member())) {
            return;
        }
        self.counters.unknown_senders += 1;
        if body.is_question() {
            self.pull_record_of(from, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::message::Metadata;

    /// The age of a member that was silent for 65,536 periods does not start again at 0.
    #[test]
    fn a_silent_member_never_looks_young_again() {
        let me = Member::new(1, 0);
        let mut machine = Membership::new(me, Config::default()).unwrap();
        let silent = Member::new(2, 0);
        let slot = machine.list.insert(silent, 0, Metadata::default(), 1, 0);
        let slot = slot.unwrap();
        for age in 1..400_000_u32 {
            machine.period = machine.period.wrapping_add(1);
            machine.refresh_stamps();
            let entry = machine.list.entry(slot).unwrap();
            let shown = u32::from(entry.age(machine.period));
            assert!(shown >= age.min(1 << 15), "{shown} after {age} periods");
            assert!(shown <= age, "{shown} after {age} periods");
        }
    }
}
