//! Random choices, from a source that the caller lends: a generator in production, an odometer in a
//! model check.

use rand_core::Rng;

/// A probability: `numerator` in `denominator`.
///
/// A denominator of 0 means never; a numerator of at least the denominator means always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Ratio {
    /// The number of outcomes in which the event happens.
    pub numerator: u32,
    /// The number of all outcomes.
    pub denominator: u32,
}

impl Ratio {
    /// Probability 0.
    pub const NEVER: Self = Self::new(0, 1);
    /// Probability 1.
    pub const ALWAYS: Self = Self::new(1, 1);

    /// `numerator` in `denominator`.
    #[must_use]
    pub const fn new(numerator: u32, denominator: u32) -> Self {
        Self {
            numerator,
            denominator,
        }
    }
}

/// Integer weights to draw from.
pub trait Weights {
    /// The number of outcomes, including outcomes of weight 0.
    fn len(&self) -> usize;
    /// Returns true if there are no outcomes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The sum of all weights.
    fn total(&self) -> u64;
    /// The weight of one outcome; 0 beyond the end.
    fn weight(&self, outcome: usize) -> u64;
    /// The outcome that covers `point`, where the weights lie one after another from the first
    /// outcome on. `point` is below [`total`](Self::total).
    fn locate(&self, point: u64) -> usize;
}

/// A source of choices.
///
/// Machines never see random bits, only the outcome of a choice among few, so that a checker can
/// explore every outcome. Every [`rand_core::Rng`] is such a source; its choices depend on its
/// stream alone and are the same on every platform.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no source of choices",
    label = "not a generator of `rand_core` 0.10",
    note = "a generator of another version of `rand` does not implement this trait: take one of `chacha20` 0.10 or `rand` 0.10, which share `rand_core` 0.10"
)]
pub trait Choose {
    /// A number below `bound`, all equally likely; 0 without a draw when `bound` is 0 or 1.
    fn below(&mut self, bound: u64) -> u64;

    /// Returns true with this probability.
    fn chance(&mut self, ratio: Ratio) -> bool;

    /// An outcome, drawn with probabilities in proportion to the weights; `None` when all weights
    /// are 0.
    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize>;
}

impl<R: Rng> Choose for R {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        // Lemire's multiply and reject: exact, and one multiplication nearly always.
        let reject_below = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if (product as u64) >= reject_below {
                return (product >> 64) as u64;
            }
        }
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        if ratio.numerator == 0 || ratio.denominator == 0 {
            return false;
        }
        if ratio.numerator >= ratio.denominator {
            return true;
        }
        self.below(u64::from(ratio.denominator)) < u64::from(ratio.numerator)
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        match weights.total() {
            0 => None,
            total => Some(weights.locate(self.below(total))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[usize::try_from(rng.below(6)).unwrap()] += 1;
        }
        // 10,000 expected in each, with a standard deviation of 91.
        assert!(
            seen.iter().all(|&n| (9_500..10_500).contains(&n)),
            "seed 1: {seen:?}"
        );
    }

    #[test]
    fn below_of_nothing_draws_nothing() {
        let mut used = ChaCha8Rng::seed_from_u64(2);
        let mut fresh = ChaCha8Rng::seed_from_u64(2);
        assert_eq!((used.below(0), used.below(1)), (0, 0));
        assert!(!used.chance(Ratio::NEVER) && used.chance(Ratio::ALWAYS));
        assert_eq!(used.next_u64(), fresh.next_u64());
    }

    #[test]
    fn a_ratio_without_a_denominator_never_happens() {
        assert!(!ChaCha8Rng::seed_from_u64(3).chance(Ratio::new(1, 0)));
    }
}
