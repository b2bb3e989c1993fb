//! A summary of many times.

use core::time::Duration;

/// Times in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The least time that `percent` percent of them do not exceed. With fewer than a hundred of
    /// them, 99 percent is the largest.
    pub(super) fn percent(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        let found = self.0.get(rank.saturating_sub(1));
        found.copied().unwrap_or_default()
    }

    pub(super) fn mean(&self) -> Duration {
        let sum: Duration = self.0.iter().sum();
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        sum.checked_div(count).unwrap_or_default()
    }
}

/// A time as milliseconds.
pub(super) const fn ms(time: Duration) -> u128 {
    time.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let of = |count: u64| Times::of((1..=count).rev().map(Duration::from_millis).collect());
        let figures = |it: &Times| [50, 99, 100].map(|percent| ms(it.percent(percent)));
        assert_eq!(figures(&of(0)), [0, 0, 0]);
        assert_eq!(figures(&of(1)), [1, 1, 1]);
        assert_eq!(figures(&of(4)), [2, 4, 4]);
        assert_eq!(figures(&of(200)), [100, 198, 200]);
        assert_eq!(of(3).mean(), Duration::from_millis(2));
        assert_eq!(of(0).mean(), Duration::ZERO);
    }
}
