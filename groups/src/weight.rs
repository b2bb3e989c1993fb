//! The share of the groups that a node takes.

use serde::{Deserialize, Serialize};

/// The share of the groups that a node takes, in comparison with other nodes: from 0 to 255, 16 by
/// default. A node of weight 32 is in about twice as many groups as one of 16, and leads twice as
/// many of those in which both are. A node of weight 0 is chosen where too few others are here, and
/// leads where no other member can.
///
/// The application knows the worth of a node: its power supply, its memory, its links. The weight is
/// part of the [plan](crate::Plan), so all nodes have the same one, and choose without a message. A node
/// that runs low while it runs asks for weight 0 by a message to each other node, which counts from the
/// next epoch on: [`Command::SetSpared`](crate::Command::SetSpared).
///
/// ```
/// use selvedge_groups::{Node, Place, Weight};
///
/// let plugged_in = Node::new(1, Place([0; 3])).with_weight(Weight(32));
/// let on_battery = Node::new(2, Place([0; 3])).with_weight(Weight(4));
/// assert!(plugged_in.weight > on_battery.weight);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Weight(pub u8);

/// The bits behind the point of a logarithm.
const BITS: u32 = 32;

impl Default for Weight {
    fn default() -> Self {
        Self(16)
    }
}

impl Weight {
    /// The position of a node in the order of a target, from its uniform rank: an exponential
    /// variable divided by the weight, -log2(1 - rank / 2^64) / w. The lowest of all belongs to a
    /// node with a probability in proportion to its weight (P. Efraimidis and P. Spirakis,
    /// "Weighted random sampling with a reservoir", 2006). It never falls while the rank rises.
    pub(crate) const fn position(self, rank: u64) -> u64 {
        let whole = 64 << BITS;
        let exponential = match rank {
            0 => 0,
            _ => whole - log2(rank.wrapping_neg()),
        };
        match (exponential << 24).checked_div(self.0 as u64) {
            Some(position) => position,
            None => u64::MAX,
        }
    }
}

/// The logarithm to base 2, rounded down, in units of 2^-32. The argument is above zero.
const fn log2(of: u64) -> u64 {
    let zeros = of.leading_zeros();
    // From 1 to below 2, in units of 2^-31.
    let mut rest = (of << zeros) >> 32;
    let mut log = (63 - zeros) as u64;
    let mut bit = 0;
    while bit < BITS {
        let square = rest * rest;
        let is_above_2 = square >> 63;
        rest = square >> (31 + is_above_2);
        log = log << 1 | is_above_2;
        bit += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_exact_for_powers_and_near_for_others() {
        for power in 0..64_u64 {
            assert_eq!(log2(1 << power), power << BITS);
        }
        let unit = f64::from(2).powi(32);
        for of in [3, 5, 1_000, 12_345_678_901_234_567, u64::MAX] {
            let log = log2(of) as f64 / unit;
            // The square of a number that was rounded down 32 times.
            assert!(((of as f64).log2() - log).abs() < 1e-8, "{of}: {log}");
        }
    }

    #[test]
    fn a_position_never_falls_while_the_rank_rises_and_is_the_highest_without_a_weight() {
        let steps = |from: u64| (0..1_000).map(move |it| from.saturating_add(it << 22));
        for weight in [1, 16, 255].map(Weight) {
            let mut before = 0;
            for rank in steps(0)
                .chain(steps(1 << 63))
                .chain([u64::MAX - 1, u64::MAX])
            {
                let position = weight.position(rank);
                assert!(position >= before, "{weight:?} {rank}");
                before = position;
            }
            assert!(before < u64::MAX);
        }
        assert_eq!(Weight(0).position(0), u64::MAX);
    }
}
