//! The measurement of c, and the results of other nodes.
//!
//! `state.rs` has the state, `sample.rs` asks for lists, `feedback.rs` takes reports of initiators,
//! and `bound.rs` has the c that elections use. Without the feature `estimate`
//! `unmeasured.rs` takes the place of all of them.

mod bound;
mod feedback;
mod sample;
mod state;

use selvedge_core::{Context, Member, Ratio};

use self::state::Bound;
pub(crate) use self::state::Measured;
use crate::config::MILLION;
use crate::message::Message;
use crate::{Attribute, Celect, Source, Timer};

impl<A: Attribute> Celect<A> {
    /// Handles a message of the estimation.
    pub(crate) fn on_measurement(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) {
        match message {
            Message::SampleResponse {
                run,
                life,
                from: first,
                members,
                more,
            } => self.on_sample_response(from, (run, life, first), (&members, more), cx),
            Message::Feedback {
                ballot,
                answers,
                missing,
            } => self.on_feedback(ballot, answers, missing, cx),
            Message::Estimate {
                ballot,
                number,
                source,
                upper_bound,
                miss,
            } => {
                let bound = Bound {
                    source,
                    upper_bound,
                    miss: Ratio::new(miss, MILLION),
                };
                self.on_estimate((ballot, number), bound, cx);
            }
            Message::Query { .. }
            | Message::Response { .. }
            | Message::Appoint { .. }
            | Message::Leader { .. }
            | Message::LeaderAck { .. }
            | Message::SampleQuery { .. } => {
                debug_assert!(false, "it goes elsewhere: {message:?}");
            }
        }
    }

    /// Handles a tick of the estimation's timers.
    pub(crate) fn on_measure_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Sample => self.on_lists_overdue(cx),
            Timer::Measure => self.on_measure(cx),
            Timer::Stale => self.forget_bound(cx),
            Timer::Answer
            | Timer::Watch
            | Timer::Start
            | Timer::Resend
            | Timer::Majority
            | Timer::Renew
            | Timer::Lease
            | Timer::Expiry(_) => debug_assert!(false, "it goes elsewhere: {timer:?}"),
        }
    }

    /// Begins to measure, when this node begins to lead.
    pub(crate) fn begin_to_measure(&self, cx: &mut Context<'_, Self>) {
        let source = self.config.estimation.map(|it| it.source);
        if source == Some(Source::Sampling) {
            cx.arm(Timer::Measure, self.config.timeout);
        }
    }

    /// Returns true if this node reports to the leaders that it appoints.
    pub(crate) const fn reports(&self) -> bool {
        self.config.estimation.is_some()
    }
}
