//! A replacement for `measure` without measurements: elections use the configured c.

use selvedge_core::{Context, Member, Ratio};

use crate::message::Message;
use crate::{Attribute, Ballot, Celect, Config, Reject, Timer};

/// An empty measurement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Measured;

impl Measured {
    pub(crate) const fn new(_: &Config) -> Self {
        Self
    }
}

impl<A: Attribute> Celect<A> {
    /// Returns the c of an election that begins now. With the feature `estimate` also the probability
    /// that the real c is larger, where c was measured.
    #[must_use]
    pub const fn bound(&self) -> (u16, Option<Ratio>) {
        (self.config.missing_from, None)
    }

    pub(crate) const fn has_bound(&self) -> bool {
        false
    }

    pub(crate) const fn reports(&self) -> bool {
        false
    }

    pub(crate) const fn report(
        &self,
        _leader: Member,
        _run: (Ballot, u16, u16),
        _cx: &mut Context<'_, Self>,
    ) {
    }

    pub(crate) const fn forget_leader(&self, _cx: &mut Context<'_, Self>) {}

    pub(crate) const fn begin_to_measure(&self, _cx: &mut Context<'_, Self>) {}

    pub(crate) const fn measure(&self, _cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        Err(Reject::NoEstimation)
    }

    /// Ignores answers and estimates of other nodes: this node did not ask.
    pub(crate) fn on_measurement(
        &mut self,
        _from: Member,
        _message: Message,
        _cx: &mut Context<'_, Self>,
    ) {
        self.counters.stale += 1;
    }

    /// Ignores a stray tick: this node arms no such timer.
    pub(crate) const fn on_measure_tick(&self, _timer: Timer, _cx: &mut Context<'_, Self>) {}
}
