//! Active feedback: this node reports that it is seldom probed, and probes members more often that
//! report the same.

use selvedge_core::{Context, Member, Weights};

use crate::Membership;
use crate::message::{Body, Message};

/// The largest number of neighbours that receive a report.
const REPORTS: usize = 16;

impl Membership {
    /// Once a period: reports to the neighbours when this node is unlucky. It goes through the list
    /// only when there is something to report.
    pub(crate) fn monitor_self(&mut self, cx: &mut Context<'_, Self>) {
        // Switched off.
        let Some(active) = self.config.active else {
            return;
        };
        let on_arrival_only = self.rules.average_on_arrival();
        if !self.monitor.end_period(active, on_arrival_only) {
            return;
        }
        self.counters.unlucky_sent += 1;
        let reach = self.reach();
        let neighbours = self
            .list
            .all()
            .filter(|&slot| self.list.draws().has(slot) && self.is_neighbour(slot, reach))
            .filter_map(|slot| self.list.entry(slot));
        for neighbour in neighbours.take(REPORTS) {
            cx.send(neighbour.member(), Message::bare(Body::Unlucky));
        }
    }

    /// Takes a report of a neighbour; the change of weights takes a pass over the list, so it waits
    /// for the end of the period.
    pub(crate) fn on_unlucky(&mut self, from: Member) {
        if self.config.active.is_some() && self.reports.add(from.id).is_err() {
            self.counters.unlucky_dropped += 1;
        }
    }

    /// Acts on one report a period.
    pub(crate) fn boost_reporter(&mut self) {
        if let Some(id) = self.reports.pop()
            && let Some(slot) = self.list.find(id)
            && self.list.draws().has(slot)
        {
            self.counters.unlucky_heeded += 1;
            self.boost(slot);
        }
    }

    /// Algorithm 1 of the thesis, in integers: the member gets the mean weight of the members that
    /// weigh more (itself included), and the members above that mean give it, each in proportion to
    /// its excess. The weight given equals the weight taken, so the probabilities keep summing to
    /// one. O(N log N).
    fn boost(&mut self, unlucky: usize) {
        let own = self.list.draws().own(unlucky);
        let weight_of = |slot| {
            let weight = self.list.weights().weight(slot);
            (weight > own || slot == unlucky).then_some(weight)
        };
        let (count, sum) = self
            .list
            .all()
            .filter_map(weight_of)
            .fold((0, 0), |(count, sum), weight| (count + 1, sum + weight));
        // No member weighs more.
        if count <= 1 {
            return;
        }
        let target = sum / count;
        let excess_of = |slot| self.list.weights().weight(slot).saturating_sub(target);
        let excess: u64 = self.list.all().map(excess_of).sum();
        let wanted = target - own;
        let mut given = 0;
        for nth in 0..self.list.len() {
            let Some(slot) = self.list.nth(nth) else {
                debug_assert!(false, "the list has the members that were counted");
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
