//! An estimate of c from the share of runs whose answers agree.

/// A pool of initiators' reports whether all answers to a run named one candidate (Algorithm 7),
/// from many runs with one c.
///
/// From a single run, or from few, the formula is useless: with N = 128 and a real c of 13 it gives
/// a mean of 99 from one initiator and 44 from five, 14.4 from 20, 13.1 from 100 (erratum F1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Feedback {
    single: u32,
    several: u32,
}

impl Feedback {
    /// Returns an empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            single: 0,
            several: 0,
        }
    }

    /// Adds a run. `single` is true if all its answers named a single candidate.
    pub const fn add(&mut self, single: bool) {
        if single {
            self.single = self.single.saturating_add(1);
        } else {
            self.several = self.several.saturating_add(1);
        }
    }

    /// The number of runs.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.single.saturating_add(self.several)
    }

    /// Returns the number of lists, of `nodes`, from which the lowest node is missing, by runs with
    /// `c` + 1 answers each: N (1 - (2 - d)^(1 / (c + 1))), where d is the mean of the values 1 and
    /// 2. N if all runs had several candidates. `None` without a run. O(1).
    #[must_use]
    pub fn churn(&self, nodes: u32, c: u16) -> Option<f64> {
        if self.runs() == 0 {
            return None;
        }
        let agree = f64::from(self.single) / f64::from(self.runs());
        let listed = libm::pow(agree, 1.0 / (f64::from(c) + 1.0));
        Some(f64::from(nodes) * (1.0 - listed))
    }
}
