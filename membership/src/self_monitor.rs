//! The rate at which this node is probed, and the neighbours that report a low rate.

use selvedge_core::{BoundedQueue, Full, NodeId};

use crate::ActiveFeedback;

/// Fixed point: this many units are one period.
const PERIOD: u32 = 256;

/// The average interval between incoming probes, in our own periods (thesis, section 3.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SelfMonitor {
    /// The average interval, in [`PERIOD`]ths.
    interval: u32,
    /// Periods since the last probe came.
    gap: u16,
    /// Periods until another report may be made.
    quiet: u16,
}

/// Senders of UNLUCKY reports that wait for the end of a period, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reports(BoundedQueue<NodeId>);

impl Default for SelfMonitor {
    fn default() -> Self {
        Self {
            interval: PERIOD,
            gap: 0,
            quiet: 0,
        }
    }
}

impl SelfMonitor {
    /// Notes an incoming probe.
    pub(crate) fn on_ping(&mut self, active: Option<ActiveFeedback>) {
        if let Some(active) = active {
            self.interval = self.averaged(active);
            self.gap = 0;
        }
    }

    /// Ends a period. Returns true if this node is unlucky and has to report it.
    pub(crate) fn end_period(&mut self, active: ActiveFeedback, on_arrival_only: bool) -> bool {
        self.gap = self.gap.saturating_add(1);
        self.quiet = self.quiet.saturating_sub(1);
        // The average moves only when a probe comes, so a node that none reaches would never
        // notice: the running gap counts as if it ended now.
        let interval = if on_arrival_only {
            self.interval
        } else {
            self.averaged(active)
        };
        if self.quiet > 0 || interval <= u32::from(active.timeout) * PERIOD {
            return false;
        }
        self.quiet = active.timeout;
        true
    }

    /// The exponential average with the running gap taken in.
    fn averaged(&self, active: ActiveFeedback) -> u32 {
        let smoothing = i64::from(active.smoothing.max(1));
        let (old, new) = (
            i64::from(self.interval),
            i64::from(self.gap) * i64::from(PERIOD),
        );
        u32::try_from(old + (new - old) / smoothing).unwrap_or(u32::MAX)
    }
}

impl Default for Reports {
    fn default() -> Self {
        Self(BoundedQueue::new(8))
    }
}

impl Reports {
    /// Adds a report to the waiting ones, once.
    pub(crate) fn add(&mut self, id: NodeId) -> Result<(), Full> {
        if self.0.iter().any(|&other| other == id) {
            return Ok(());
        }
        self.0.push(id).map(drop)
    }

    pub(crate) fn pop(&mut self) -> Option<NodeId> {
        self.0.pop()
    }
}
