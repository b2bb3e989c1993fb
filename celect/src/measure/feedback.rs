//! Initiators' reports to the leader: the number of answers that lacked it.

use alloc::vec::Vec;

use selvedge_core::{Context, Member};

use super::state::{Bound, Report};
use crate::estimate::Misses;
use crate::message::Message;
use crate::{Attribute, Ballot, Celect, Estimation, Source};

impl<A: Attribute> Celect<A> {
    /// Reports the result of our run to the node that it appointed.
    pub(crate) fn report(
        &mut self,
        leader: Member,
        (ballot, answers, missing): (Ballot, u16, u16),
        cx: &mut Context<'_, Self>,
    ) {
        let is_wanted = |it: Estimation| it.source == Source::Feedback;
        if !self.config.estimation.is_some_and(is_wanted)
            || self.config.protocol.prefers()
            || answers == 0
        {
            return;
        }
        if leader == self.me {
            self.on_feedback(ballot, answers, missing, cx);
        } else {
            cx.send(
                leader,
                Message::Feedback {
                    ballot,
                    answers,
                    missing,
                },
            );
        }
    }

    /// Handles an initiator's report of its run. Each run counts once. O(1) until the pool is full.
    pub(super) fn on_feedback(
        &mut self,
        ballot: Ballot,
        answers: u16,
        missing: u16,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(estimation) = self.config.estimation else {
            return; // This node does not measure.
        };
        let tolerance = &mut self.measured;
        let same = |it: &Report| it.ballot == ballot;
        let leads = self
            .leader
            .is_some_and(|it| it.member == self.me && !it.lost);
        if !leads
            || estimation.source != Source::Feedback
            || tolerance.reported >= Some(ballot)
            || tolerance.reports.iter().any(same)
        {
            self.counters.stale += 1;
            return;
        }
        tolerance.reports.push(Report {
            ballot,
            answers,
            missing,
        });
        if tolerance.reports.len() < usize::from(estimation.pool) {
            return;
        }
        let last = tolerance.reports.iter().map(|it| it.ballot).max();
        tolerance.reported = tolerance.reported.max(last);
        let mut misses = Misses::new();
        for report in tolerance.reports.drain(..) {
            misses.add(report.answers, report.missing);
        }
        // An initiator does not draw its own list, which may lack us too: 1 is added below.
        let others = u32::try_from(self.peers.len()).unwrap_or(u32::MAX);
        let upper_bound = misses.largest_churn(others, estimation.miss);
        let bound = Bound {
            source: Source::Feedback,
            upper_bound: u16::try_from(upper_bound.saturating_add(1)).unwrap_or(u16::MAX),
            miss: estimation.miss,
        };
        self.rest_on(bound, cx);
        let all: Vec<Member> = self.peers.iter().collect();
        self.send_estimate(bound, all, cx);
    }
}
