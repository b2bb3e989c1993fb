//! Integer weights that can be drawn from, read and changed in O(log n).

use alloc::vec::Vec;

use crate::Weights;

/// A Fenwick tree of weights: 8 bytes an outcome; draw, read and change take O(log n).
///
/// The sum of all weights must stay below 2^64; a change that would leave that range is refused.
///
/// ```
/// use selvedge_core::{WeightTree, Weights};
/// let mut tree = WeightTree::default();
/// tree.push(3);
/// tree.push(0);
/// tree.push(5);
/// assert_eq!((tree.total(), tree.locate(2), tree.locate(3)), (8, 0, 2));
/// assert!(tree.set(0, 1));
/// assert_eq!(tree.locate(1), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WeightTree {
    /// `nodes[i]` sums the `lowest_bit(i + 1)` weights that end with weight `i`.
    nodes: Vec<u64>,
    total: u64,
}

impl WeightTree {
    /// An empty tree with room for `capacity` weights.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(capacity),
            total: 0,
        }
    }

    /// Appends an outcome. Says whether the sum still fits; if not, nothing changed.
    pub fn push(&mut self, weight: u64) -> bool {
        let Some(total) = self.total.checked_add(weight) else {
            return false;
        };
        let position = self.nodes.len() + 1;
        let covered = position - lowest_bit(position);
        let before = self.prefix(position - 1) - self.prefix(covered);
        self.nodes.push(before + weight);
        self.total = total;
        true
    }

    /// Removes the last outcome and returns its weight.
    pub fn pop(&mut self) -> Option<u64> {
        let weight = self.weight(self.nodes.len().checked_sub(1)?);
        self.nodes.pop();
        self.total -= weight;
        Some(weight)
    }

    /// Gives `outcome` another weight. Says whether it exists and the sum still fits; if not,
    /// nothing changed.
    pub fn set(&mut self, outcome: usize, weight: u64) -> bool {
        if outcome >= self.nodes.len() {
            return false;
        }
        let old = self.weight(outcome);
        let Some(total) = (self.total - old).checked_add(weight) else {
            return false;
        };
        let mut position = outcome + 1;
        while let Some(node) = self.nodes.get_mut(position - 1) {
            *node = *node - old + weight;
            position += lowest_bit(position);
        }
        self.total = total;
        true
    }

    /// The sum of the first `count` weights.
    fn prefix(&self, count: usize) -> u64 {
        let mut sum = 0;
        let mut position = count;
        while position > 0 {
            sum += self.nodes.get(position - 1).copied().unwrap_or_default();
            position -= lowest_bit(position);
        }
        sum
    }
}

impl Weights for WeightTree {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn weight(&self, outcome: usize) -> u64 {
        if outcome >= self.nodes.len() {
            return 0;
        }
        // Walk down from the node that ends here until both paths meet: O(log n), and one step
        // for half of all outcomes.
        let mut position = outcome + 1;
        let mut weight = self.nodes.get(outcome).copied().unwrap_or_default();
        let meet = position - lowest_bit(position);
        position -= 1;
        while position != meet {
            weight -= self.nodes.get(position - 1).copied().unwrap_or_default();
            position -= lowest_bit(position);
        }
        weight
    }

    fn locate(&self, point: u64) -> usize {
        let mut step = self
            .nodes
            .len()
            .checked_ilog2()
            .map_or(0, |log| 1_usize << log);
        let mut position = 0;
        let mut rest = point;
        while step > 0 {
            if let Some(&sum) = self.nodes.get(position + step - 1)
                && sum <= rest
            {
                rest -= sum;
                position += step;
            }
            step >>= 1;
        }
        position
    }
}

const fn lowest_bit(position: usize) -> usize {
    position & position.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Change {
        Push(u64),
        Pop,
        Set(usize, u64),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            3 => (0_u64..50).prop_map(Change::Push),
            1 => Just(Change::Pop),
            3 => (0_usize..40, 0_u64..50).prop_map(|(i, w)| Change::Set(i, w)),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_plain_list(changes in proptest::collection::vec(change(), 0..80)) {
            let mut tree = WeightTree::default();
            let mut list: Vec<u64> = Vec::new();
            for change in changes {
                match change {
                    Change::Push(w) => { prop_assert!(tree.push(w)); list.push(w); }
                    Change::Pop => prop_assert_eq!(tree.pop(), list.pop()),
                    Change::Set(i, w) => {
                        prop_assert_eq!(tree.set(i, w), i < list.len());
                        if let Some(slot) = list.get_mut(i) { *slot = w; }
                    }
                }
                prop_assert_eq!(tree.total(), list.iter().sum::<u64>());
                prop_assert_eq!(tree.len(), list.len());
            }
            let mut point = 0;
            for (i, &w) in list.iter().enumerate() {
                prop_assert_eq!(tree.weight(i), w);
                for _ in 0..w {
                    prop_assert_eq!(tree.locate(point), i);
                    point += 1;
                }
            }
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        let mut tree = WeightTree::default();
        assert!(tree.push(u64::MAX));
        let before = tree.clone();
        assert!(!tree.push(1));
        assert_eq!(tree, before);
        assert!(tree.set(0, 5) && tree.push(1));
        assert!(!tree.set(0, u64::MAX));
        assert_eq!((tree.total(), tree.weight(0)), (6, 5));
    }
}
