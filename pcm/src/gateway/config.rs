//! The settings of a gateway.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

use crate::DutyCycle;

/// The gateways that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voting {
    /// More than half of all gateways (erratum Q1).
    Static,
    /// More than half of the connected gateways. They change by a decision of more than half of the former
    /// ones, and act when more than half of the next ones have the tables (erratum Q2). The first configuration
    /// decides by majority, without [`also`](selvedge_replica::Configuration::also). Links must work both ways
    /// or not at all: otherwise a gateway that sends, and receives nothing, may be left as one of two voters.
    /// Gateways must store facts: otherwise a gateway that lost its memory may still be named in its former
    /// life, and few remaining voters may need its vote.
    Dynamic,
}

/// The settings of a gateway. All gateways have the same `voting`, and the `timeout` of each is above
/// twice the longest `heartbeat` of any; otherwise a correct manager counts as failed again and again. They
/// may differ in the other settings. All other settings that must be equal are [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The settings of the replica of the tables.
    pub replica: selvedge_replica::Config,
    /// The gateways that decide. Default [`Voting::Static`].
    pub voting: Voting,
    /// The time between heartbeats of the resource manager, which the others answer. Default 1 s. Zero:
    /// never. Then a membership service reports failed gateways, and the host of a gateway that is removed
    /// from the configuration stops it: no node notifies the gateway.
    pub heartbeat: Span,
    /// The time after which a silent gateway counts as failed (the paper's RM timeout): above twice
    /// `heartbeat`. Default 5 s.
    pub timeout: Span,
    /// The tenths of its period after which a silent follower is purged: from 11. Default 35;
    /// the paper's is 15, under which one lost keep-alive purges its follower (erratum Q8). No follower is
    /// purged within a second.
    pub purge_after: u16,
    /// The tenths of the longest period among its followers after which a unit counts as silent, in addition
    /// to the time that its functions may run: from 10. Default 40. The periods are the followers' periods at
    /// the moment when the unit gets the task.
    pub offload_after: u16,
    /// The longest time that a function may run at any follower: above zero. Default 5 s, as for
    /// [followers](crate::follower::Config::time). A unit has this time for each task that it was given.
    pub function_time: Span,
    /// The time that passes between the first broken unit and the next forming of units, so that more
    /// followers may arrive or leave: above zero. Default 1 s.
    pub settle: Span,
    /// The period of the review, which forms units again where followers have changed, checks the place
    /// of the resource manager, and retries failed work: above zero. Default 10 s. It should be longer than
    /// twice `replica.resend` for each gateway: without a leader each gateway stands for election at its
    /// review, and gateways whose reviews fall together would prevent each other's election.
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
            // Has room for the largest tables of the default limits.
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

    /// The time after which a silent follower is purged.
    pub(super) fn patience(&self, duty: DutyCycle) -> Span {
        tenths(duty.period(), self.purge_after).max(Span::secs(1))
    }

    /// The time after which a unit with this longest period, and this number of tasks, counts as silent.
    pub(super) fn offload(&self, period: Span, tasks: u32) -> Span {
        let runs = self.function_time.0.saturating_mul(tasks.max(1).into());
        let periods = tenths(period, self.offload_after);
        Span(periods.0.saturating_add(runs))
    }
}

/// A number of tenths of a period. Cannot overflow: a period is two minutes at most, and there are fewer
/// than 2^16 tenths.
const fn tenths(period: Span, tenths: u16) -> Span {
    Span(period.0.saturating_mul(tenths as u64) / 10)
}
