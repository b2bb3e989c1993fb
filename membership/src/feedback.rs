//! Active feedback: noticing that we are seldom probed, and probing those who say so.

use selvedge_core::{Context, Member, Weights};

use crate::message::{Body, Message};
use crate::{ActiveFeedback, Membership};

/// Fixed point: this many units are one period.
const PERIOD: u32 = 256;

/// At most so many neighbours hear a report.
const REPORTS: usize = 16;

/// Watches how often probes come in, in our own periods (thesis, section 3.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SelfMonitor {
    /// The average interval, in [`PERIOD`]ths.
    interval: u32,
    /// Periods since the last probe came.
    gap: u16,
    /// Periods until another report may be made.
    quiet: u16,
}

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
    /// A probe came in.
    pub(crate) fn pinged(&mut self, active: Option<ActiveFeedback>) {
        if let Some(active) = active {
            self.interval = self.averaged(active);
            self.gap = 0;
        }
    }

    /// A period is over. Says whether we are unlucky and have to report it.
    fn end_period(&mut self, active: ActiveFeedback, on_arrival_only: bool) -> bool {
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

impl Membership {
    /// Once a period: reports to the neighbours when we are unlucky. The list is passed over only
    /// when there is something to report.
    pub(crate) fn monitor_self(&mut self, cx: &mut Context<'_, Self>) {
        let Some(active) = self.config.active else {
            return;
        };
        let on_arrival_only = self.rules.average_on_arrival();
        if !self.monitor.end_period(active, on_arrival_only) {
            return;
        }
        self.counters.unlucky_sent += 1;
        let neighbours = self
            .list
            .all()
            .filter(|&slot| self.list.weights().weight(slot) > 0)
            .filter_map(|slot| self.list.entry(slot))
            .filter(|entry| entry.neighbour);
        for neighbour in neighbours.take(REPORTS) {
            cx.send(neighbour.member(), Message::bare(Body::Unlucky));
        }
    }

    /// A neighbour reports; the change of weights takes a pass over the list, so it waits for the
    /// end of the period.
    pub(crate) fn hear_unlucky(&mut self, from: Member) {
        if self.config.active.is_none() || self.unlucky.iter().any(|&id| id == from.id) {
            return;
        }
        if self.unlucky.push(from.id).is_err() {
            self.counters.unlucky_dropped += 1;
        }
    }

    /// Acts on one report a period.
    pub(crate) fn heed_unlucky(&mut self) {
        if let Some(id) = self.unlucky.pop()
            && let Some(slot) = self.list.find(id)
            && self.list.weights().weight(slot) > 0
        {
            self.counters.unlucky_heeded += 1;
            self.boost(slot);
        }
    }

    /// Algorithm 1 of the thesis, in integers: the member gets the mean weight of those that weigh
    /// more (itself included), and those above that mean give it, each in proportion to its excess.
    /// What is given is exactly what is taken, so the probabilities keep summing to one. O(N log N).
    fn boost(&mut self, unlucky: usize) {
        let own = self.list.own_weight(unlucky);
        let weight_of = |slot| {
            let weight = self.list.weights().weight(slot);
            (weight > own || slot == unlucky).then_some(weight)
        };
        let (count, sum) = self
            .list
            .all()
            .filter_map(weight_of)
            .fold((0, 0), |(count, sum), weight| (count + 1, sum + weight));
        if count <= 1 {
            return;
        }
        let target = sum / count;
        let excess_of = |slot| self.list.weights().weight(slot).saturating_sub(target);
        let excess: u64 = self.list.all().map(excess_of).sum();
        let wanted = target - own;
        let mut given = 0;
        for nth in 0..self.list.keys_len() {
            let Some(slot) = self.list.nth(nth) else {
                continue;
            };
            let weight = self.list.weights().weight(slot);
            if weight > target {
                let share = u128::from(weight - target) * u128::from(wanted) / u128::from(excess);
                let share = u64::try_from(share).unwrap_or_default();
                self.list.set_own_weight(slot, weight - share);
                given += share;
            }
        }
        self.list.set_own_weight(unlucky, own + given);
    }
}
