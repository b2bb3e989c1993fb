//! Integer weights that can be drawn from, read and changed in O(log n).

use alloc::vec::Vec;

use crate::Weights;

/// The number of weights, or sums of weights, that are summed into one: as many as a cache line
/// holds.
const FAN_OUT: usize = 8;

/// A tree of sums over weights: some 9 bytes an outcome. Reading takes O(1), draw and change take
/// O(log n), and touch one cache line for each eightfold of outcomes.
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
    weights: Vec<u64>,
    /// Each level holds the sums of [`FAN_OUT`] neighbours of the level before, the first level
    /// those of the weights. The last level has at most as many sums as fit into one.
    levels: Vec<Vec<u64>>,
    total: u64,
}

impl WeightTree {
    /// An empty tree with room for `capacity` weights.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            weights: Vec::with_capacity(capacity),
            levels: Vec::new(),
            total: 0,
        }
    }

    /// Appends an outcome. Returns true if the sum still fits; if not, nothing changed.
    pub fn push(&mut self, weight: u64) -> bool {
        let Some(total) = self.total.checked_add(weight) else {
            return false;
        };
        self.total = total;
        self.weights.push(weight);
        let mut len = self.weights.len();
        let mut place = len - 1;
        for level in &mut self.levels {
            place /= FAN_OUT;
            match level.get_mut(place) {
                Some(sum) => *sum += weight,
                None => level.push(weight),
            }
            len = level.len();
        }
        if len > FAN_OUT {
            // One more level: the topmost has grown beyond one line.
            let below = self.levels.last().unwrap_or(&self.weights);
            let sums = below.chunks(FAN_OUT).map(|chunk| chunk.iter().sum());
            let sums = sums.collect();
            self.levels.push(sums);
        }
        true
    }

    /// Removes the last outcome and returns its weight.
    pub fn pop(&mut self) -> Option<u64> {
        let weight = self.weights.pop()?;
        self.total -= weight;
        let mut len = self.weights.len();
        let mut place = len;
        for level in &mut self.levels {
            place /= FAN_OUT;
            len = len.div_ceil(FAN_OUT);
            if let Some(sum) = level.get_mut(place) {
                *sum -= weight;
            }
            level.truncate(len);
        }
        while self.levels.last().is_some_and(|top| top.len() <= 1) {
            self.levels.pop();
        }
        Some(weight)
    }

    /// Gives `outcome` another weight. Returns true if it exists and the sum still fits; if not,
    /// nothing changed.
    pub fn set(&mut self, outcome: usize, weight: u64) -> bool {
        let Some(place) = self.weights.get_mut(outcome) else {
            return false;
        };
        let old = *place;
        let Some(total) = (self.total - old).checked_add(weight) else {
            return false;
        };
        if old == weight {
            return true;
        }
        *place = weight;
        self.total = total;
        let mut place = outcome;
        for level in &mut self.levels {
            place /= FAN_OUT;
            if let Some(sum) = level.get_mut(place) {
                *sum = *sum - old + weight;
            }
        }
        true
    }
}

impl Weights for WeightTree {
    fn len(&self) -> usize {
        self.weights.len()
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn weight(&self, outcome: usize) -> u64 {
        self.weights.get(outcome).copied().unwrap_or_default()
    }

    fn locate(&self, point: u64) -> usize {
        let mut rest = point;
        let mut place = 0;
        for level in self.levels.iter().rev().chain([&self.weights]) {
            // The first child of the sum that was chosen one level above.
            place *= FAN_OUT;
            for &sum in level.iter().skip(place).take(FAN_OUT) {
                if rest < sum {
                    break;
                }
                rest -= sum;
                place += 1;
            }
        }
        place
    }
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
            3 => (0_usize..150, 0_u64..50).prop_map(|(i, w)| Change::Set(i, w)),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_plain_list(changes in proptest::collection::vec(change(), 0..400)) {
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
            // Weights that were pushed and popped leave no trace.
            let mut fresh = WeightTree::default();
            for &w in &list { fresh.push(w); }
            prop_assert_eq!(&tree, &fresh);
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
