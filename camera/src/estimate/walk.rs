//! The length of a walk's stay at a node.

use selvedge_core::{Context, Machine};

/// The means of the eighths of the exponential distribution with mean 1, in units of 1 / 256: in
/// the k-th of m parts it is m times the integral of -ln(1 - u) from (k - 1) / m to k / m. They are
/// rounded so that their sum is 8 * 256: only a mean of exactly 1 makes all nodes alike.
const STAYS: [u64; 8] = [17, 53, 96, 148, 213, 299, 434, 788];

/// Bits after the binary point: of a budget, and of [`STAYS`].
const BUDGET_BITS: u32 = 32;
const STAY_BITS: u32 = 8;

/// The largest budget that any settings give: the longest walk, from a node with one neighbour.
pub(super) const MOST_BUDGET: u64 = 1 << (10 + BUDGET_BITS);

/// The budget of a walk that begins at a node of this degree.
pub(super) fn budget(length: u16, degree: u64) -> u64 {
    ((u64::from(length) << BUDGET_BITS) / degree.max(1)).max(1)
}

/// The part of a budget that one stay at a node of this degree takes, drawn from eight equally likely
/// values.
pub(super) fn stay<M: Machine>(degree: u64, cx: &mut Context<'_, M>) -> u64 {
    let drawn = usize::try_from(cx.below(STAYS.len() as u64)).unwrap_or(0);
    let stay = STAYS.get(drawn).copied().unwrap_or(1 << STAY_BITS);
    (stay << (BUDGET_BITS - STAY_BITS)) / degree.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_are_the_means_of_the_eighths_of_an_exponential() {
        // The integral of -ln(1 - u) is (1 - u) (ln(1 - u) - 1).
        let integral = |u: f64| {
            if u < 1.0 {
                (1.0 - u) * ((1.0 - u).ln() - 1.0)
            } else {
                0.0
            }
        };
        for (at, &stay) in (0_u8..).zip(&STAYS) {
            let (low, high) = (f64::from(at) / 8.0, f64::from(at + 1) / 8.0);
            let mean = 8.0 * (integral(high) - integral(low)) * 256.0;
            assert!((mean - stay as f64).abs() < 1.0, "{stay}, not {mean}");
        }
        assert_eq!(STAYS.iter().sum::<u64>(), 8 << STAY_BITS);
    }

    #[test]
    fn a_walk_of_the_least_length_leaves_home() {
        let longest = STAYS[7] << (BUDGET_BITS - STAY_BITS);
        for degree in [1, 2, 3, 48, 1 << 20] {
            assert!(budget(4, degree) > longest / degree, "{degree}");
        }
        assert_eq!(budget(1 << 10, 1), MOST_BUDGET);
    }
}
