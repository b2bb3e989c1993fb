//! The settings of a gateway.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

use crate::DutyCycle;

/// The gateways that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voting {
    /// More than half of all gateways (erratum Q1).
    Static,
    /// More than half of the connected gateways. They change by a decision of more than half of the
    /// former ones, and act when more than half of the next ones have the tables (erratum Q2). For a
    /// first configuration of a majority, without [`also`](selvedge_replica::Configuration::also). Links work
    /// both ways or not at all: a gateway that can send, and receives nothing, may be left as one of two. And
    /// gateways store facts: one that forgot may be named in its former life, and is needed where few are
    /// left.
    Dynamic,
}

/// The settings of a gateway. All gateways have the same `voting`, and the `timeout` of each is above
/// twice the longest `heartbeat` of any, or a manager that works well counts as failed again and again. They
/// may differ in the others; what else they have to agree in stands in [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The settings of the replica of the tables.
    pub replica: selvedge_replica::Config,
    /// The gateways that decide. Default [`Voting::Static`].
    pub voting: Voting,
    /// The time between heartbeats of the resource manager, which the others answer. Default 1 s. Zero:
    /// never; then a membership service reports which gateways are here, and the host of a gateway that
    /// is taken off the list stops it: no node notifies it.
    pub heartbeat: Span,
    /// The time after which a silent gateway counts as failed (the paper's RM timeout): above twice
    /// `heartbeat`. Default 5 s.
    pub timeout: Span,
    /// The tenths of its period after which a silent follower is purged: from 11. Default 35;
    /// the paper's is 15, which takes one keep-alive that is lost for the end of its follower (erratum
    /// Q8). No follower is purged within a second.
    pub purge_after: u16,
    /// After how many tenths of the longest period among its followers a unit is taken not to answer, on
    /// top of the time that its functions may run: from 10. Default 40. The periods are those that the
    /// followers have when the unit gets the task.
    pub offload_after: u16,
    /// The longest time that a function may run at any follower: above zero. Default 5 s, as that of
    /// [followers](crate::follower::Config::time). A unit has this time for each task that it was given.
    pub function_time: Span,
    /// The time for which followers come and go before units are formed again because some are broken:
    /// above zero. Default 1 s.
    pub settle: Span,
    /// The period of the review, which forms units again where followers have changed, checks the place
    /// of the resource manager, and retries failed work: above zero. Default 10 s. It should be longer than
    /// twice `replica.resend` for each gateway: where none leads, each stands at its review at once, and
    /// those that are reviewed together would keep each other from it.
    pub review: Span,
    /// The greatest number of tasks whose clients wait at this gateway: from 1. Default 256.
    pub clients: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            // What the default limits allow fits.
            replica: selvedge_replica::Config::new().with_state_limit(8 << 20),
            voting: Voting::Static,
            heartbeat: Span::secs(1),
            timeout: Span::secs(5),
            purge_after: 35,
            offload_after: 40,
            function_time: Span::secs(5),
            settle: Span::secs(1),
            review: Span::secs(10),
            clients: 256,
        }
    }

    selvedge_core::with_settings! {
        with_replica replica: selvedge_replica::Config,
        with_voting voting: Voting,
        with_heartbeat heartbeat: Span,
        with_timeout timeout: Span,
        with_purge_after purge_after: u16,
        with_offload_after offload_after: u16,
        with_function_time function_time: Span,
        with_settle settle: Span,
        with_review review: Span,
        with_clients clients: u16,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        if let Err(error) = self.replica.check() {
            return Err(error);
        }
        let most = u16::MAX as u64;
        let least = Span(self.heartbeat.0.saturating_mul(2).saturating_add(1));
        settings::check(&[
            Setting::time("timeout", self.timeout, least, Span(u64::MAX)),
            Setting::number("purge_after", self.purge_after as u64, 11, most).counts("tenths"),
            Setting::number("offload_after", self.offload_after as u64, 10, most).counts("tenths"),
            Setting::time("function_time", self.function_time, Span(1), Span(u64::MAX)),
            Setting::time("settle", self.settle, Span(1), Span(u64::MAX)),
            Setting::time("review", self.review, Span(1), Span(u64::MAX)),
            Setting::number("clients", self.clients as u64, 1, most).counts("tasks"),
        ])
    }

    /// After how long a follower that says nothing is purged.
    pub(super) fn patience(&self, duty: DutyCycle) -> Span {
        tenths(duty.period(), self.purge_after).max(Span::secs(1))
    }

    /// After how long a unit whose longest period this is, and that has so many tasks, does not answer.
    pub(super) fn offload(&self, period: Span, tasks: u32) -> Span {
        let runs = self.function_time.0.saturating_mul(tasks.max(1).into());
        let periods = tenths(period, self.offload_after);
        Span(periods.0.saturating_add(runs))
    }
}

/// A period is no more than two minutes, and there are no more than 2^16 tenths.
const fn tenths(period: Span, tenths: u16) -> Span {
    Span(period.0.saturating_mul(tenths as u64) / 10)
}
