//! Requests for others' lists. Each list arrives in parts, one after the other: when a part has
//! arrived, the next is requested by the id with which it begins. So that id identifies a part that
//! arrives twice or late, and the owner of a list needs no state.

use alloc::vec::Vec;

use selvedge_core::{Context, Full, Member, NodeId, Pending};

use super::state::{Asked, Bound, Sample};
use crate::estimate::Tally;
use crate::message::Message;
use crate::{Attribute, Celect, Event, NotMeasured, Reject, Source, Timer};

impl<A: Attribute> Celect<A> {
    /// Draws some nodes of our list and asks them. O(n log n).
    pub(crate) fn measure(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let estimation = self.config.estimation.ok_or(Reject::NoEstimation)?;
        if self.measured.sample.is_some() {
            return Err(Reject::AlreadyMeasuring);
        }
        if self.peers.len() == 0 {
            return Err(Reject::Alone);
        }
        self.begin_sample(estimation.sample, cx);
        Ok(())
    }

    fn begin_sample(&mut self, count: u16, cx: &mut Context<'_, Self>) {
        let mut drawn: Vec<Member> = self.peers.iter().collect();
        let limit = self.config.peer_limit as usize;
        // The limit counts others.
        let tally = Tally::new(self.me, drawn.iter().copied(), limit.saturating_add(1));
        let Ok(tally) = tally else {
            self.no_room(cx);
            return;
        };
        let count = usize::from(count).min(drawn.len());
        for at in 0..count {
            let other = at + usize::try_from(cx.below((drawn.len() - at) as u64)).unwrap_or(0);
            drawn.swap(at, other);
        }
        drawn.truncate(count);
        self.measured.samples = self.measured.samples.wrapping_add(1);
        self.measured.sample = Some(Sample {
            run: self.measured.samples,
            waiting: drawn,
            strangers: false,
            asked: Vec::new(),
            tally,
        });
        cx.arm(Timer::Sample, self.config.timeout);
        self.sample_more(cx);
    }

    /// Begins the leader's periodic sample.
    pub(super) fn on_measure(&mut self, cx: &mut Context<'_, Self>) {
        if let (Some(estimation), Some(_)) = (self.config.estimation, self.leads()) {
            cx.arm(Timer::Measure, estimation.period);
            if self.measured.sample.is_none() && self.peers.len() > 0 {
                self.begin_sample(estimation.sample, cx);
            }
        }
    }

    /// Handles a part of a list, which is in order.
    pub(super) fn on_sample_response(
        &mut self,
        sender: Member,
        (run, life, from): (u32, u32, NodeId),
        (members, more): (&[Member], bool),
        cx: &mut Context<'_, Self>,
    ) {
        let limit = self.config.peer_limit as usize;
        let is_meant = life == self.me.incarnation.0;
        let sample = self.measured.sample.as_mut();
        let Some(sample) = sample.filter(|it| is_meant && it.run == run) else {
            self.counters.stale += 1;
            return;
        };
        let is_expected = |it: &Asked| it.member == sender && it.part.is_answered_by(&from);
        let Some(nth) = sample.asked.iter().position(is_expected) else {
            self.counters.stale += 1;
            return;
        };
        let Some(asked) = sample.asked.get_mut(nth) else {
            debug_assert!(false, "the position was found a moment ago");
            return;
        };
        if asked.list.len().saturating_add(members.len()) > limit.saturating_add(1) {
            sample.asked.remove(nth);
            self.counters.unlisted += 1;
            self.sample_more(cx);
            return;
        }
        asked.list.extend_from_slice(members);
        asked.received = true;
        let behind = members.last().and_then(|it| it.id.0.checked_add(1));
        if let (true, Some(next)) = (more, behind) {
            let from = NodeId(next);
            asked.part.ask(from);
            cx.send(sender, Message::SampleQuery { run, from });
            return;
        }
        let Asked { member, list, .. } = sample.asked.remove(nth);
        match sample.tally.add(member, list) {
            Ok(()) => self.sample_more(cx),
            Err(Full { .. }) => {
                self.end_sample(cx);
                self.no_room(cx);
            }
        }
    }

    /// Handles overdue parts.
    pub(super) fn on_lists_overdue(&mut self, cx: &mut Context<'_, Self>) {
        let repeats = self.config.attempts.saturating_sub(1);
        let Some(sample) = &mut self.measured.sample else {
            return; // A stray tick.
        };
        let run = sample.run;
        let before = sample.asked.len();
        sample.asked.retain_mut(|asked| {
            if core::mem::take(&mut asked.received) {
                return true;
            }
            if !asked.part.again(repeats) {
                return false;
            }
            let from = *asked.part.question();
            cx.send(asked.member, Message::SampleQuery { run, from });
            true
        });
        let silent = before - sample.asked.len();
        self.counters.unlisted += silent as u64;
        cx.arm(Timer::Sample, self.config.timeout);
        self.sample_more(cx);
    }

    /// Asks the next of the drawn nodes; when none is left, concludes the sample.
    fn sample_more(&mut self, cx: &mut Context<'_, Self>) {
        let at_once = self.config.estimation.map_or(1, |it| it.at_once);
        let Some(sample) = &mut self.measured.sample else {
            debug_assert!(false, "a sample asks");
            return;
        };
        let (run, from) = (sample.run, NodeId(0));
        while sample.asked.len() < usize::from(at_once) {
            let Some(member) = sample.waiting.pop() else {
                break;
            };
            cx.send(member, Message::SampleQuery { run, from });
            sample.asked.push(Asked {
                member,
                part: Pending::new(from),
                list: Vec::new(),
                // The timer may tick at any moment.
                received: true,
            });
        }
        if !sample.asked.is_empty() {
            return;
        }
        if !sample.strangers {
            // Nodes that answers name and that we do not know were in no draw: all of them are
            // asked.
            sample.strangers = true;
            sample.waiting.extend(sample.tally.strangers());
            if !sample.waiting.is_empty() {
                self.sample_more(cx);
                return;
            }
        }
        self.conclude_sample(cx);
    }

    fn conclude_sample(&mut self, cx: &mut Context<'_, Self>) {
        let (Some(sample), Some(estimation)) = (self.end_sample(cx), self.config.estimation) else {
            debug_assert!(false, "a sample is concluded once");
            return;
        };
        let miss = estimation.miss;
        let is_listed = |member| member == self.me || self.peers.is_listed(member);
        let estimate = match sample.tally.estimate(is_listed, miss) {
            Ok(estimate) => estimate,
            Err(too_few) => {
                cx.event(Event::Unmeasured(too_few.into()));
                return;
            }
        };
        // All nodes that lists name are notified, also nodes that we do not know.
        let all: Vec<Member> = sample.tally.members(&is_listed, miss).collect();
        cx.event(Event::Measured(estimate));
        let bound = Bound {
            source: Source::Sampling,
            upper_bound: u16::try_from(estimate.upper_bound).unwrap_or(u16::MAX),
            miss,
        };
        self.rest_on(bound, cx);
        self.send_estimate(bound, all, cx);
    }

    fn end_sample(&mut self, cx: &mut Context<'_, Self>) -> Option<Sample> {
        cx.disarm(Timer::Sample);
        self.measured.sample.take()
    }

    fn no_room(&self, cx: &mut Context<'_, Self>) {
        let limit = self.config.peer_limit;
        cx.event(Event::Unmeasured(NotMeasured::NoRoom { limit }));
    }
}
