//! A bound that the real c does not exceed, with stated confidence. The [module's page](super)
//! derives it.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::Ratio;

use super::share;

/// Returns the largest number of lists, of `lists` in all, that may lack a node when `drawn` of
/// them were drawn and `missing` of these lack it: with a larger number, the draw would have
/// `missing` or fewer with a probability of at most `miss`. Returns `lists` when nothing was drawn.
/// O(drawn log lists).
///
/// ```
/// use selvedge_celect::estimate::largest_churn;
/// use selvedge_core::Ratio;
///
/// // 50 of 127 lists, 5 of which lack the node: an estimate of 13, and at most 26, with a miss of 1%.
/// assert_eq!(largest_churn(127, 50, 5, Ratio::new(1, 100)), 26);
/// // All lists were seen.
/// assert_eq!(largest_churn(127, 127, 5, Ratio::new(1, 100)), 5);
/// ```
#[must_use]
pub fn largest_churn(lists: u32, drawn: u32, missing: u32, miss: Ratio) -> u32 {
    largest(lists, drawn, missing, share(miss))
}

pub(super) fn largest(lists: u32, drawn: u32, missing: u32, miss: f64) -> u32 {
    let (drawn, missing) = (drawn.min(lists), missing.min(lists));
    last_that_holds(missing, lists, |churn| {
        so_few(lists, churn, drawn, missing) > cautious(miss)
    })
}

/// Lowers `miss` a little: rounding must not make a bound smaller.
fn cautious(miss: f64) -> f64 {
    miss * (1.0 - 1e-9)
}

/// Returns the largest number from `low` to `high` for which `holds` is true, where `holds` is true up to
/// some number and not beyond; `low` when there is no such number.
fn last_that_holds(low: u32, high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Returns the fewest and the most marked items in a draw.
const fn range(all: u32, marked: u32, drawn: u32) -> (u32, u32) {
    let most = if drawn < marked { drawn } else { marked };
    (drawn.saturating_sub(all.saturating_sub(marked)), most)
}

/// Returns the ratio of the probabilities of `count` + 1 and of `count` marked items in a draw.
fn rise(all: u32, marked: u32, drawn: u32, count: u32) -> f64 {
    let [all, marked, drawn, count] = [all, marked, drawn, count].map(f64::from);
    (marked - count) * (drawn - count) / ((count + 1.0) * (all - marked - drawn + count + 1.0))
}

/// Returns the probability of at most `count` marked items among `drawn` of `all`, without
/// replacement. O(drawn).
pub(super) fn so_few(all: u32, marked: u32, drawn: u32, count: u32) -> f64 {
    let (least, most) = range(all, marked, drawn);
    if count < least {
        return 0.0;
    }
    if count >= most {
        return 1.0;
    }
    // Each probability is relative to the one of `count`, so neither side can underflow to zero.
    let (mut weight, mut up_to) = (1.0, 1.0);
    for at in (least..count).rev() {
        weight /= rise(all, marked, drawn, at);
        up_to += weight;
    }
    if up_to == f64::INFINITY {
        return 1.0;
    }
    let (mut weight, mut above) = (1.0, 0.0);
    for at in count..most {
        weight *= rise(all, marked, drawn, at);
        above += weight;
    }
    up_to / (up_to + above)
}

/// The initiators' reports: for each run, the number of answers and of those without the leader.
///
/// Each run draws again the nodes that it asks, so runs with the same lists are independent draws.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Misses {
    runs: Vec<(u16, u16)>,
}

impl Misses {
    /// Returns a pool without runs.
    #[must_use]
    pub const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Adds a run with `answers` answers, of which `missing` lacked the leader.
    pub fn add(&mut self, answers: u16, missing: u16) {
        self.runs.push((answers, missing.min(answers)));
    }

    /// Returns the mean number of lists, of `lists`, from which the leader is missing, rounded up;
    /// `None` without an answer. O(runs).
    #[must_use]
    pub fn churn(&self, lists: u32) -> Option<u32> {
        let sum = |of: fn(&(u16, u16)) -> u16| self.runs.iter().map(|it| u64::from(of(it))).sum();
        let (answers, missing): (u64, u64) = (sum(|it| it.0), sum(|it| it.1));
        let mean = (missing * u64::from(lists)).div_ceil((answers > 0).then_some(answers)?);
        u32::try_from(mean).ok()
    }

    /// Returns the bound of [`largest_churn`] for all runs together: the runs are independent draws
    /// of their answers from `lists` lists. O(runs answers missing log lists), where `missing` is the sum of
    /// all runs.
    #[must_use]
    pub fn largest_churn(&self, lists: u32, miss: Ratio) -> u32 {
        let missing: u32 = self.runs.iter().map(|it| u32::from(it.1)).sum();
        let least = self.runs.iter().map(|it| u32::from(it.1)).max();
        let miss = cautious(share(miss));
        last_that_holds(least.unwrap_or(0).min(lists), lists, |churn| {
            self.so_few(lists, churn, missing) > miss
        })
    }

    /// Returns the probability of at most `count` marked items in all draws together.
    fn so_few(&self, all: u32, marked: u32, count: u32) -> f64 {
        // Indexed by the number of marked items in the draws up to now.
        let mut likely = vec![0.0; count as usize + 1];
        if let Some(none) = likely.first_mut() {
            *none = 1.0;
        }
        for &(answers, _) in &self.runs {
            let answers = u32::from(answers).min(all);
            let (least, most) = range(all, marked, answers);
            let mut before = 0.0;
            let chances: Vec<f64> = (0..=most.min(count))
                .map(|it| {
                    let up_to = so_few(all, marked, answers, it);
                    let chance = up_to - before;
                    before = up_to;
                    if it < least { 0.0 } else { chance.max(0.0) }
                })
                .collect();
            let next = (0..likely.len()).map(|sum| {
                let terms = chances.iter().take(sum + 1).enumerate();
                terms
                    .map(|(here, chance)| chance * likely.get(sum - here).copied().unwrap_or(0.0))
                    .sum()
            });
            likely = next.collect();
        }
        likely.iter().sum()
    }
}
