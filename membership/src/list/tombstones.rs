//! The dead that are remembered, and the order in which they are forgotten.

use alloc::collections::VecDeque;

use selvedge_core::NodeId;

use super::entry::Standing;

/// Members that are not live, each with the period of its end, in order of age: longest dead first.
///
/// A member that left is never asked again, so nothing but its tombstone keeps its life from coming
/// back; a member that failed may come back anyway. So the failed are forgotten first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tombstones {
    failed: VecDeque<(NodeId, u16)>,
    left: VecDeque<(NodeId, u16)>,
}

impl Tombstones {
    /// Remembers a member that ended in period `stamp`, in the order of `standing`. O(younger
    /// ones).
    pub(crate) fn insert(&mut self, id: NodeId, standing: Standing, stamp: u16) {
        let queue = self.queue(standing);
        let is_younger = |&(_, other): &(NodeId, u16)| other.wrapping_sub(stamp).cast_signed() > 0;
        let younger = queue.iter().rev().take_while(|it| is_younger(it)).count();
        queue.insert(queue.len() - younger, (id, stamp));
    }

    /// Removes a member from the order of `standing`. O(tombstones).
    pub(crate) fn remove(&mut self, id: NodeId, standing: Standing) {
        let queue = self.queue(standing);
        if let Some(at) = queue.iter().rposition(|it| it.0 == id) {
            queue.remove(at);
        }
    }

    /// A member that ended at least `age` periods ago.
    pub(crate) fn overdue(&self, now: u16, age: u16) -> Option<NodeId> {
        let fronts = [self.failed.front(), self.left.front()];
        let mut overdue = fronts
            .into_iter()
            .flatten()
            .filter(|it| now.wrapping_sub(it.1) >= age);
        overdue.next().map(|it| it.0)
    }

    /// The member to forget for want of room: the one that failed longest ago, else the one that
    /// left longest ago.
    pub(crate) fn first_to_go(&self) -> Option<NodeId> {
        self.failed.front().or(self.left.front()).map(|it| it.0)
    }

    /// The `nth` of the failed members.
    pub(crate) fn failed(&self, nth: usize) -> Option<NodeId> {
        self.failed.get(nth).map(|it| it.0)
    }

    /// The number of failed members.
    pub(crate) fn failed_len(&self) -> usize {
        self.failed.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.failed.len() + self.left.len()
    }

    fn queue(&mut self, standing: Standing) -> &mut VecDeque<(NodeId, u16)> {
        if standing == Standing::Left {
            &mut self.left
        } else {
            &mut self.failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_longest_dead_go_first_and_the_failed_before_the_left() {
        let mut tombstones = Tombstones::default();
        // Around the wrap of the counter, and not in order.
        let ends = [
            (1, Standing::Left, 65_530),
            (2, Standing::Failed, 3),
            (3, Standing::Failed, 65_534),
            (4, Standing::Left, 65_520),
            (5, Standing::Failed, 0),
        ];
        for (id, standing, stamp) in ends {
            tombstones.insert(NodeId(id), standing, stamp);
        }
        assert_eq!(tombstones.overdue(10, 27), None);
        assert_eq!(tombstones.overdue(10, 26), Some(NodeId(4)));
        let mut order = Vec::new();
        while let Some(id) = tombstones.first_to_go() {
            order.push(id.0);
            let (_, standing, _) = ends.into_iter().find(|end| end.0 == id.0).unwrap();
            tombstones.remove(id, standing);
        }
        assert_eq!(order, [3, 5, 2, 4, 1]);
        assert_eq!(tombstones.len(), 0);
    }
}
