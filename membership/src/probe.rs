//! Probing: one target a period, directly and then through relays.

use selvedge_core::{Context, Member, NodeId, Span, Weights};

use crate::list::Standing;
use crate::message::Body;
use crate::{Membership, Phase, Reject, Timer};

/// The probe of this period.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Probe {
    pub(crate) target: Member,
    pub(crate) answered: bool,
}

/// Who was heard from in this period. Whoever finds no room is probed nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Heard([Option<NodeId>; 8]);

impl Heard {
    fn contains(&self, id: NodeId) -> bool {
        self.0.contains(&Some(id))
    }

    fn note(&mut self, id: NodeId) {
        if !self.contains(id)
            && let Some(vacant) = self.0.iter_mut().find(|it| it.is_none())
        {
            *vacant = Some(id);
        }
    }
}

impl Membership {
    /// The period is over: judge its probe, keep house, begin the next one.
    pub(crate) fn end_period(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.phase {
            Phase::Idle => return Err(Reject::UnexpectedTick(Timer::Period)),
            Phase::Joining => {
                self.waited = true;
                self.ask_seeds(cx);
            }
            Phase::Joined => {
                self.judge_probe(cx);
                self.keep_house(cx);
                self.begin_probe(cx);
                self.reconnect(cx);
            }
            Phase::Leaving => {
                if self.say_farewell(cx) {
                    return Ok(());
                }
            }
        }
        self.arm_period(cx);
        Ok(())
    }

    pub(crate) fn arm_period(&mut self, cx: &mut Context<'_, Self>) {
        let jitter = Span(cx.below(self.config.jitter.0));
        let stretched = self.config.period * (u64::from(self.stretch) + 1);
        cx.arm(Timer::Period, stretched + jitter);
    }

    /// A probe that found no answer makes its target suspect.
    fn judge_probe(&mut self, cx: &mut Context<'_, Self>) {
        let Some(probe) = self.probe.take() else {
            return;
        };
        cx.disarm(Timer::Probe);
        if probe.answered {
            self.stretch = self.stretch.saturating_sub(1);
            return;
        }
        self.counters.failed_probes += 1;
        self.stretch = (self.stretch + 1).min(self.config.stretch_limit);
        self.doubt(probe.target, cx);
    }

    /// What needs doing once a period, away from any message.
    fn keep_house(&mut self, cx: &mut Context<'_, Self>) {
        if self.config.passive.is_some() || self.config.tombstone_periods > 0 {
            self.period = self.period.wrapping_add(1);
            self.refresh_stamps();
        }
        self.renew_allowances();
        self.forget_the_dead();
        self.rest
            .end_period(self.list.digest(), self.config.sync_after);
        self.heed_unlucky();
        self.monitor_self(cx);
        self.fetch_again(cx);
    }

    fn forget_the_dead(&mut self) {
        let age = self.config.tombstone_periods;
        while let Some(id) = self.list.forget_overdue(self.period, age) {
            self.turn.leave(id);
        }
        let limit = usize::from(self.config.tombstone_limit);
        while self.list.tombstones().len() > limit && self.displace_tombstone() {}
    }

    /// Forgets a dead member before its time, for want of room. Says whether there was one.
    pub(crate) fn displace_tombstone(&mut self) -> bool {
        let forgotten = self.list.forget_first();
        if let Some(id) = forgotten {
            self.counters.tombstones_displaced += 1;
            self.turn.leave(id);
        }
        forgotten.is_some()
    }

    /// Keeps ages from wrapping: every member of a list of up to 65,536 has its turn in a quarter
    /// of so many periods, and an age beyond the passive timeout needs no precision.
    fn refresh_stamps(&mut self) {
        let now = self.period;
        for quarter in 0..4 {
            let slot = usize::from(now.wrapping_add(quarter << 14));
            if self.list.weights().weight(slot) > 0 {
                self.list.note(slot, |entry| {
                    if now.wrapping_sub(entry.stamp) > 1 << 15 {
                        entry.stamp = now.wrapping_sub(1 << 15);
                    }
                });
            }
        }
    }

    fn begin_probe(&mut self, cx: &mut Context<'_, Self>) {
        let chosen = self.choose_target(cx);
        let needless = chosen.is_some_and(|slot| self.is_needless(slot));
        self.heard = Heard::default();
        let Some((slot, entry)) = chosen.and_then(|slot| Some((slot, self.list.entry(slot)?)))
        else {
            return;
        };
        if needless {
            self.counters.probes_suppressed += 1;
            return;
        }
        let target = entry.member();
        self.counters.probes += 1;
        self.probe = Some(Probe {
            target,
            answered: false,
        });
        let digest = self.list.digest();
        let origin = None;
        self.tell_listed(Some(slot), target, Body::Ping { digest, origin }, cx);
        if self.config.relays > 0 {
            let stretched = self.config.probe_timeout * (u64::from(self.stretch) + 1);
            cx.arm(Timer::Probe, stretched);
        }
    }

    /// Whether a probe would tell nobody anything: its target just showed that it lives, nobody
    /// doubts that, and there is no news.
    fn is_needless(&self, slot: usize) -> bool {
        self.config.suppress_probes
            && self.news.is_empty()
            && self.broadcaster.is_empty()
            && self.list.entry(slot).is_some_and(|entry| {
                entry.standing == Standing::Alive && self.heard.contains(entry.member().id)
            })
    }

    pub(crate) fn ping(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        let digest = self.list.digest();
        let origin = None;
        self.tell(target, Body::Ping { digest, origin }, cx);
    }

    /// The direct acknowledgement is overdue: ask relays.
    pub(crate) fn ask_relays(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(Probe {
            target,
            answered: false,
        }) = self.probe
        else {
            return Err(Reject::UnexpectedTick(Timer::Probe));
        };
        self.request_pings(target, cx);
        Ok(())
    }

    pub(crate) fn request_pings(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        self.draw_relays(
            self.config.relays,
            Some(target.id),
            cx,
            |machine, relay, cx| {
                machine.tell(relay, Body::PingRequest { target }, cx);
            },
        );
    }

    /// Probes `target` for `origin`, without keeping anything: the target's answer says for whom.
    pub(crate) fn relay(&mut self, origin: Member, target: Member, cx: &mut Context<'_, Self>) {
        if target.id == self.me.id {
            self.tell(origin, Body::Ack { origin: None }, cx);
            return;
        }
        let digest = self.list.digest();
        let origin = Some(origin);
        self.tell(target, Body::Ping { digest, origin }, cx);
    }

    /// A sign of life of this very life. It answers the probe, and settles what only we doubted;
    /// a suspicion that others know of needs the suspect's own word.
    pub(crate) fn heard_from(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(slot) = self.list.find(member.id)
            && let Some(entry) = self.list.entry(slot)
            && entry.member() == member
        {
            self.heard_in(slot, cx);
        }
    }

    /// The same, of the very life in `slot`.
    pub(crate) fn heard_in(&mut self, slot: usize, cx: &mut Context<'_, Self>) {
        let Some(entry) = self.list.entry(slot) else {
            return;
        };
        if !entry.standing.is_live() {
            return;
        }
        let member = entry.member();
        let (standing, revision) = (entry.standing, entry.revision);
        let now = self.period;
        self.list.note(slot, |entry| entry.stamp = now);
        if self.config.suppress_probes {
            self.heard.note(member.id);
        }
        if matches!(standing, Standing::Doubted | Standing::Hearsay) {
            self.list.set_standing(slot, Standing::Alive, revision, now);
            cx.disarm(Timer::Suspicion(member.id));
        }
        if let Some(probe) = &mut self.probe
            && probe.target == member
            && !probe.answered
        {
            probe.answered = true;
            cx.disarm(Timer::Probe);
        }
    }

    /// After a message of someone we do not know (or know in a former life only), ask who it is.
    pub(crate) fn meet(&mut self, from: Member, body: &Body, cx: &mut Context<'_, Self>) {
        let known = self
            .list
            .find(from.id)
            .and_then(|slot| self.list.entry(slot));
        if known.is_some_and(|entry| !from.supersedes(entry.member())) {
            return;
        }
        self.counters.unknown_senders += 1;
        if body.is_question() {
            self.ask_who_it_is(from, cx);
        }
    }
}

impl Body {
    /// Whether it asks for an answer. Only questions may be answered by a question.
    pub(crate) const fn is_question(&self) -> bool {
        matches!(
            self,
            Self::Ping { .. } | Self::PingRequest { .. } | Self::Join
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::message::Metadata;

    /// Whoever was silent for 65,536 periods was not heard from just now.
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
            let stamp = machine.list.entry(slot).unwrap().stamp;
            let shown = u32::from(machine.period.wrapping_sub(stamp));
            assert!(shown >= age.min(1 << 15), "{shown} after {age} periods");
            assert!(shown <= age, "{shown} after {age} periods");
        }
    }
}
