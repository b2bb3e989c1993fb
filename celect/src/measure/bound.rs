//! The c that elections use, configured or measured last, and its announcement to all nodes.

use selvedge_core::{Context, Member, Ratio};

use super::state::{Bound, Known};
use crate::config::{MILLION, millionths};
use crate::message::Message;
use crate::{Attribute, Ballot, Celect, Event, Source, Timer};

impl<A: Attribute> Celect<A> {
    /// Returns the c of an election that begins now, and the probability that the real c is larger.
    /// Without that probability c is [`Config::missing_from`](crate::Config::missing_from), or was cut short.
    #[must_use]
    pub fn bound(&self) -> (u16, Option<Ratio>) {
        let (Some(known), Some(estimation)) = (self.measured.known, self.config.estimation) else {
            return (self.config.missing_from, None);
        };
        // A node that is alone can ask no other, for any floor: it may elect itself if the
        // configured c is 0.
        let is_alone = self.peers.len() == 0;
        let floor = if is_alone {
            estimation.floor.min(self.config.missing_from)
        } else {
            estimation.floor
        };
        // Some of the nodes that were listed when c was measured may have left or failed.
        let c = known.c.min(self.most()).max(floor);
        (c, known.miss.filter(|_| c >= known.c))
    }

    /// Returns the largest c that can be used: the number of others, less f that may be dead.
    fn most(&self) -> u16 {
        let others = self.peers.len();
        let others = u16::try_from(others).unwrap_or(u16::MAX);
        others.saturating_sub(self.config.failures)
    }

    /// Uses another bound from now on.
    pub(super) fn rest_on(&mut self, bound: Bound, cx: &mut Context<'_, Self>) {
        let Some(estimation) = self.config.estimation else {
            debug_assert!(false, "a node that does not measure has no bound");
            return;
        };
        let before = self.bound();
        self.measured.recent.push_over(bound.upper_bound);
        let upper_bound = self.measured.recent.iter().copied().max();
        let upper_bound = upper_bound.unwrap_or(bound.upper_bound);
        let c = upper_bound
            .saturating_add(estimation.margin)
            .min(estimation.ceiling)
            .min(self.most())
            .max(estimation.floor);
        self.measured.known = Some(Known {
            c,
            // The miss is rounded as in messages, to be the same on all nodes. The largest number
            // means that the bound may be larger still.
            miss: (c >= upper_bound && upper_bound < u16::MAX)
                .then_some(Ratio::new(millionths(bound.miss), MILLION)),
            source: bound.source,
        });
        cx.arm(Timer::Stale, estimation.valid);
        self.emit_tolerance(before, cx);
    }

    /// Returns true if a measured bound is in force.
    pub(crate) const fn has_bound(&self) -> bool {
        self.measured.known.is_some()
    }

    /// Forgets a bound that is too old.
    pub(super) fn forget_bound(&mut self, cx: &mut Context<'_, Self>) {
        let before = self.bound();
        self.measured.known = None;
        self.measured.recent.retain(|_| false);
        cx.disarm(Timer::Stale);
        self.emit_tolerance(before, cx);
    }

    /// Forgets the results of feedback, which hold for the lost leader only.
    pub(crate) fn forget_leader(&mut self, cx: &mut Context<'_, Self>) {
        self.measured.reports.clear();
        if let Some(known) = self.measured.known
            && known.source == Source::Feedback
        {
            self.forget_bound(cx);
        }
    }

    fn emit_tolerance(&self, before: (u16, Option<Ratio>), cx: &mut Context<'_, Self>) {
        let now = self.bound();
        if now != before {
            let (c, miss) = now;
            cx.event(Event::BoundChanged {
                missing_from: c,
                miss,
            });
        }
    }

    /// Sends the leader's bound to the nodes in `to`, if we lead.
    pub(super) fn send_estimate(
        &mut self,
        bound: Bound,
        to: impl IntoIterator<Item = Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(ballot) = self.leads() else {
            return; // Only a leader sends estimates.
        };
        let number = match self.measured.notified {
            Some((notified, number)) if notified == ballot => number.saturating_add(1),
            Some(_) | None => 1,
        };
        self.measured.notified = Some((ballot, number));
        for member in to {
            if member.id != self.me.id {
                let Bound {
                    source,
                    upper_bound,
                    miss,
                } = bound;
                let message = Message::Estimate {
                    ballot,
                    number,
                    source,
                    upper_bound,
                    miss: millionths(miss),
                };
                cx.send(member, message);
            }
        }
    }

    /// Handles the leader's estimate of c.
    pub(super) fn on_estimate(
        &mut self,
        (ballot, number): (Ballot, u32),
        bound: Bound,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.estimation.is_none() {
            return;
        }
        let is_old = self.measured.notified >= Some((ballot, number));
        // A bound from any node but our leader cannot be verified.
        let follows = self.leader().is_some_and(|(_, by)| by == ballot);
        if is_old || !follows {
            self.counters.stale += 1;
            return;
        }
        self.measured.notified = Some((ballot, number));
        self.rest_on(bound, cx);
    }
}
