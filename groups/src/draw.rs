//! Draws of a hash: the same on every node.

use selvedge_core::{NodeId, Rank, Sortition};

/// A slope is in units of 2^-10: twelve parts of ten bits are in one hash.
pub(crate) const SLOPE_BITS: u32 = 10;

/// One epoch's draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw<'a, H> {
    hash: &'a H,
    epoch: u64,
}

/// The purpose of a draw. Draws for different purposes are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Node = 1,
    Target = 2,
    Representative = 3,
    Slope = 4,
    Offset = 5,
}

/// The result of one draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Drawn(u64, u64);

impl<'a, H: Sortition> Draw<'a, H> {
    pub(crate) const fn new(hash: &'a H, epoch: u64) -> Self {
        Self { hash, epoch }
    }

    pub(crate) fn draw(&self, purpose: Use, id: u64) -> Drawn {
        let mut label = [0; 9];
        let (first, rest) = label.split_at_mut(1);
        first.fill(purpose as u8);
        rest.copy_from_slice(&self.epoch.to_be_bytes());
        let Rank(rank) = self.hash.rank(&label, NodeId(id));
        Drawn((rank >> 64) as u64, rank as u64)
    }

    /// A number of the normal distribution with deviation 1, in units of 2^-10: a sum of twelve
    /// uniform ones. It lies within 6 deviations.
    pub(crate) fn normal(&self, id: u64) -> i64 {
        let Drawn(high, low) = self.draw(Use::Slope, id);
        let uniform =
            |bits: u64, at: u32| ((bits >> (SLOPE_BITS * at)) & ((1 << SLOPE_BITS) - 1)) as i64;
        let sum: i64 = (0..6).map(|at| uniform(high, at) + uniform(low, at)).sum();
        sum - (6 << SLOPE_BITS)
    }

    /// A number below `bound`, each with equal probability.
    pub(crate) fn below(&self, id: u64, bound: u64) -> u64 {
        let Drawn(high, _) = self.draw(Use::Offset, id);
        ((u128::from(high) * u128::from(bound)) >> 64) as u64
    }
}

impl Drawn {
    /// The place of a node in the order of one target. A draw for each pair would cost a hash each;
    /// this costs one a node and one a target.
    /// 4,000 nodes and 400 groups take 4,400 hashes an epoch, and not 1.6 million as in the paper.
    pub(crate) const fn rank_for(self, target: Self) -> u64 {
        mix(self.0 ^ mix(target.0 ^ self.1).wrapping_add(target.1))
    }
}

/// Spreads each bit over all bits: the last steps of MurmurHash3 for 64 bits (A. Appleby).
pub(crate) const fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

#[cfg(test)]
mod tests {
    use selvedge_core::Sha256Sortition;

    use super::*;

    /// The mean of 10,000 has a deviation of 0.01, the square's of 0.014.
    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let draw = Draw::new(&Sha256Sortition, 1);
        let drawn = (0..10_000).map(|id| draw.normal(id) as f64 / 1_024.0);
        let (mut sum, mut squares, mut beyond) = (0.0, 0.0, 0);
        for it in drawn {
            sum += it;
            squares += it * it;
            beyond += usize::from(it.abs() > 1.0);
        }
        assert!((sum / 10_000.0_f64).abs() < 0.04, "{sum}");
        assert!((squares / 10_000.0_f64 - 1.0).abs() < 0.06, "{squares}");
        // 31.7% of the normal distribution.
        assert!((3_000..3_350).contains(&beyond), "{beyond}");
    }

    #[test]
    fn numbers_below_a_bound_reach_it_and_do_not_pass() {
        let draw = Draw::new(&Sha256Sortition, 1);
        let mut seen = [0; 4];
        for id in 0..4_000 {
            if let Some(count) = seen.get_mut(draw.below(id, 4) as usize) {
                *count += 1;
            }
        }
        assert_eq!(seen.iter().sum::<i32>(), 4_000);
        assert!(seen.iter().all(|it| (850..1_150).contains(it)), "{seen:?}");
    }
}
