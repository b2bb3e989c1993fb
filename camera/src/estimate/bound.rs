//! The computation of an estimate and an upper bound from hits and new nodes, in whole numbers.
//!
//! The [module's page](super) derives both.

use alloc::vec;

use selvedge_core::Ratio;

/// The largest number of nodes that is considered.
pub(super) const MOST_NODES: u32 = 1 << 24;

/// A probability of 1. With [`MOST_NODES`] a product fits 64 bits.
const ONE: u64 = 1 << 39;

/// Bits after the binary point in [`Tally::likeliest`].
const POINT: u32 = 24;

/// The result of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    /// The number of nodes in the collection at the beginning.
    pub(super) known: u32,
    /// The number of samples that were in the collection already.
    pub(super) hits: u32,
    /// The number of samples that were not.
    pub(super) fresh: u32,
}

impl Tally {
    /// The number of nodes of greatest likelihood, at most [`MOST_NODES`]. O(fresh).
    pub(super) fn likeliest(self) -> u32 {
        let samples = u64::from(self.hits) + u64::from(self.fresh);
        // The logarithm's slope is zero where the sum of N / (N - known - i) over all i below
        // `fresh` is the number of samples; the sum falls with N. The nearest whole number is the
        // largest with the zero at or above half a node less.
        largest(self.least(), |nodes| {
            let twice = 2 * u64::from(nodes) - 1;
            let sum: u64 = (0..u64::from(self.fresh))
                .map(|nth| {
                    let unseen = twice.saturating_sub(2 * (u64::from(self.known) + nth));
                    (twice << POINT) / unseen.max(1)
                })
                .sum();
            sum >= samples << POINT
        })
    }

    /// The largest number of nodes with which an end like this one or earlier, which is at least as
    /// many hits in as many samples, is likelier than `miss`; `None` when it is above
    /// [`MOST_NODES`]. O(samples * hits).
    pub(super) fn max_lives(self, miss: Ratio) -> Option<u32> {
        let miss = ONE * u64::from(miss.numerator) / u64::from(miss.denominator).max(1);
        let max_lives = largest(self.least(), |nodes| {
            self.fewer_hits(nodes) < ONE.saturating_sub(miss)
        });
        (max_lives < MOST_NODES).then_some(max_lives)
    }

    /// All nodes that were met.
    const fn least(self) -> u32 {
        let met = self.known.saturating_add(self.fresh);
        if met == 0 { 1 } else { met }
    }

    /// The probability, out of [`ONE`], of fewer hits than in this tally in as many samples among
    /// `nodes` nodes. At most samples times hits units of 1 / [`ONE`] too low, never too high.
    fn fewer_hits(self, nodes: u32) -> u64 {
        let nodes = u64::from(nodes).max(1);
        // Indexed by the number of hits.
        let mut likely = vec![0_u64; self.hits as usize];
        if let Some(none) = likely.first_mut() {
            *none = ONE;
        }
        for sample in 0..u64::from(self.hits) + u64::from(self.fresh) {
            let mut one_less = 0;
            for (hits, likely) in (0_u64..).zip(&mut likely) {
                if hits > sample + 1 {
                    break;
                }
                let here = *likely;
                // The collection is as large after one hit less and the same samples.
                let met = u64::from(self.known) + sample - hits.min(sample);
                let met_before = met + u64::from(hits <= sample);
                *likely =
                    (here * nodes.saturating_sub(met) + one_less * met_before.min(nodes)) / nodes;
                one_less = here;
            }
        }
        likely.iter().sum()
    }
}

/// `bound` plus its share `skew`, rounded up.
pub(super) fn widened(bound: u32, skew: Ratio) -> u32 {
    let more =
        (u64::from(bound) * u64::from(skew.numerator)).div_ceil(u64::from(skew.denominator).max(1));
    u32::try_from(u64::from(bound) + more).unwrap_or(u32::MAX)
}

/// The largest number from `least` to [`MOST_NODES`] for which `holds` is true; `least` if it is true
/// for none. It must be true up to some number and false above.
fn largest(least: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (least, MOST_NODES.max(least));
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

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::vec::Vec;

    const MISS: Ratio = Ratio::new(1, 1_000);

    /// The probability of each number of new nodes when `hits` hits were reached among `nodes`,
    /// with an end at `limit` samples: pairs of tally and probability. In floats, and by new
    /// nodes and samples, unlike the code above.
    fn ends(nodes: u32, known: u32, hits: u32, limit: u32) -> Vec<(Tally, f64)> {
        let mut ends = Vec::new();
        // Indexed by the number of new nodes.
        let mut likely = Vec::from([1.0]);
        for sample in 1..=limit {
            let mut next = Vec::from_iter((0..=likely.len()).map(|_| 0.0));
            for (fresh, &p) in (0_u32..).zip(&likely) {
                let hit = f64::from((known + fresh).min(nodes)) / f64::from(nodes);
                let so_far = sample - fresh.min(sample);
                if so_far == hits {
                    let tally = Tally { known, hits, fresh };
                    ends.push((tally, p * hit));
                } else {
                    next[fresh as usize] += p * hit;
                }
                next[fresh as usize + 1] += p * (1.0 - hit);
            }
            likely = next;
        }
        for (fresh, &p) in (0_u32..).zip(&likely) {
            if fresh <= limit {
                let hits = limit - fresh;
                ends.push((Tally { known, hits, fresh }, p));
            }
        }
        ends.retain(|&(_, p)| p > 0.0);
        ends
    }

    /// The exact probability that the bound misses, and the mean of the bound over N.
    fn exact(nodes: u32, known: u32, hits: u32, limit: u32, miss: Ratio) -> (f64, f64) {
        let ends = ends(nodes, known, hits, limit);
        let total: f64 = ends.iter().map(|&(_, p)| p).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        let (mut missed, mut mean) = (0.0, 0.0);
        for (tally, p) in ends {
            // Ends too rare to matter are left out, for speed.
            if p < 1e-9 {
                continue;
            }
            let max_lives = tally.max_lives(miss).unwrap_or(MOST_NODES);
            missed += if nodes > max_lives { p } else { 0.0 };
            mean += p * f64::from(max_lives) / f64::from(nodes);
        }
        (missed, mean)
    }

    #[test]
    fn the_bound_misses_as_often_as_stated_and_hardly_less() {
        // Among few nodes, or with few unknown ones, the possible ends are few and each is likely;
        // then it misses less often than it might.
        for (nodes, known, hits, limit, share) in [
            (49, 0, 20, 400, 0.5),
            (49, 25, 20, 400, 0.4),
            (49, 44, 100, 400, 0.05),
            (256, 0, 20, 400, 0.9),
            (256, 230, 20, 400, 0.0),
            (256, 230, 200, 400, 0.3),
            // Ends at the limit in most cases.
            (256, 0, 20, 90, 0.5),
        ] {
            for (miss, of) in [(1, 10), (1, 100)] {
                let (missed, mean) = exact(nodes, known, hits, limit, Ratio::new(miss, of));
                let stated = f64::from(miss) / f64::from(of);
                let case =
                    std::format!("N {nodes}, known {known}, hits {hits}, limit {limit}, {stated}");
                std::println!("{case}: misses {missed:.4}, mean {mean:.3} N");
                assert!(missed <= stated, "{case}: misses {missed}");
                assert!(missed >= stated * share, "{case}: misses {missed}");
            }
        }
    }

    #[test]
    fn one_hit_among_two_samples_is_a_birthday() {
        // Two of N are the same with a probability of 1 / N. At 1,000 that is the miss itself, and
        // rounding goes to the larger bound.
        let pair = Tally {
            known: 0,
            hits: 1,
            fresh: 1,
        };
        assert_eq!(pair.max_lives(MISS), Some(1_000));
        // 23 people: the first number of days at which a common birthday is not likelier than not.
        let class = Tally {
            known: 0,
            hits: 1,
            fresh: 22,
        };
        assert_eq!(class.max_lives(Ratio::new(1, 2)), Some(372));
    }

    #[test]
    fn only_hits_from_a_full_list_bound_by_a_power() {
        // (100 / N)^64 > 1 / 1,000 up to N = 111.39.
        let all = Tally {
            known: 100,
            hits: 64,
            fresh: 0,
        };
        assert_eq!((all.likeliest(), all.max_lives(MISS)), (100, Some(111)));
        // Without a hit no bound exists.
        let none = Tally {
            known: 10,
            hits: 0,
            fresh: 90,
        };
        assert_eq!((none.likeliest(), none.max_lives(MISS)), (MOST_NODES, None));
    }

    #[test]
    fn the_estimate_is_the_likeliest_number() {
        for known in [0, 1, 7, 40] {
            for hits in [1, 2, 9, 30] {
                for fresh in [0, 1, 5, 33] {
                    let tally = Tally { known, hits, fresh };
                    let score = |nodes: u32| {
                        let n = f64::from(nodes);
                        let unseen = (0..fresh).map(|i| f64::from(nodes - known - i).ln());
                        unseen.sum::<f64>() - f64::from(hits + fresh) * n.ln()
                    };
                    let best = (tally.least()..20_000)
                        .max_by(|&a, &b| score(a).total_cmp(&score(b)).then(b.cmp(&a)))
                        .unwrap();
                    let found = tally.likeliest();
                    assert!(
                        found.abs_diff(best) <= 1 && score(best) - score(found) < 1e-4,
                        "{tally:?}: {found}, not {best}"
                    );
                }
            }
        }
    }

    #[test]
    fn widening_rounds_up() {
        assert_eq!(widened(100, Ratio::new(1, 50)), 102);
        assert_eq!(widened(101, Ratio::new(1, 50)), 104);
        assert_eq!(widened(7, Ratio::NEVER), 7);
        assert_eq!(widened(MOST_NODES, Ratio::ALWAYS), 2 * MOST_NODES);
    }
}
