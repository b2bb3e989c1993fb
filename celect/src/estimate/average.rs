//! The running average of estimates.

use selvedge_core::Ratio;

use super::share;

/// A running average, in which the latest estimate has a fixed share: c2 = alpha c1 + (1 - alpha) c2
/// (formula 7.1). Over [`Feedback`](super::Feedback) it is the Feedback Protocol, over
/// [`Tally`](super::Tally) the Sample-Window Protocol.
///
/// The average is kept unrounded and rounded up where it is used. Rounded at each step, it would
/// get stuck: rounded up, at alpha = 0.1, up to 9 above the estimates, and rounded down at 0
/// (erratum F1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    value: f64,
    alpha: f64,
}

impl Average {
    /// Returns an average that begins with the estimate `first`. `alpha` is 0.1 in the thesis, and 0.2
    /// in its figure 7.4.
    #[must_use]
    pub fn new(first: f64, alpha: Ratio) -> Self {
        Self {
            value: first,
            alpha: share(alpha),
        }
    }

    /// Adds another estimate.
    pub fn add(&mut self, estimate: f64) {
        self.value = self.alpha * estimate + (1.0 - self.alpha) * self.value;
    }

    /// The average.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// Returns the c to use, in a mesh of `nodes` nodes of which `f` may be dead: rounded up, at
    /// least 1, and no more than an election can ask for (erratum F1).
    #[must_use]
    pub fn churn(&self, nodes: u32, f: u16) -> u16 {
        let most = nodes.saturating_sub(1 + u32::from(f)).max(1);
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        libm::ceil(self.value).clamp(1.0, f64::from(most)) as u16
    }
}
