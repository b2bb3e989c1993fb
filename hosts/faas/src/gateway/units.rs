//! Which unit has a task that a client asked for here, for the client.

use std::collections::{BTreeMap, VecDeque};

use selvedge_core::Member;
use selvedge_pcm::{Assignment, Tables, TaskId};

/// Of how many tasks it is known.
const MANY: usize = 256;

/// Tasks that clients asked for: each with the unit that has it, as it was last seen.
#[derive(Debug, Default)]
pub(super) struct Units {
    units: BTreeMap<TaskId, Option<Assignment>>,
    /// The one that was asked for first in front.
    order: VecDeque<TaskId>,
}

impl Units {
    /// A client asks, perhaps again. The oldest task makes room for a new one.
    pub(super) fn add(&mut self, task: TaskId) {
        if self.units.contains_key(&task) {
            return;
        }
        if self.order.len() >= MANY
            && let Some(oldest) = self.order.pop_front()
        {
            self.units.remove(&oldest);
        }
        self.order.push_back(task);
        self.units.insert(task, None);
    }

    pub(super) fn look(&mut self, tables: Option<&Tables>) {
        for (task, unit) in &mut self.units {
            let present = tables.and_then(|it| it.assignment(*task));
            if let Some(present) = present {
                *unit = Some(present.clone());
            }
        }
    }

    pub(super) fn get(&self, task: TaskId) -> Option<&Assignment> {
        self.units.get(&task).and_then(Option::as_ref)
    }

    /// The client is told what became of it. O(n).
    pub(super) fn remove(&mut self, task: TaskId) -> Option<Assignment> {
        let unit = self.units.remove(&task)?;
        self.order.retain(|it| *it != task);
        unit
    }

    /// The client goes to another gateway. O(n).
    pub(super) fn remove_client(&mut self, client: Member) {
        self.units.retain(|it, _| it.client != client);
        self.order.retain(|it| it.client != client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u64) -> TaskId {
        let client = Member::new(9, 1);
        TaskId { client, number }
    }

    fn known(units: &Units) -> Vec<u64> {
        assert_eq!(units.units.len(), units.order.len());
        units.order.iter().map(|it| it.number).collect()
    }

    #[test]
    fn the_task_that_came_first_makes_room() {
        let mut units = Units::default();
        let many = MANY as u64;
        // In the order of their ids, they come the other way round.
        (1..=many).rev().for_each(|it| units.add(task(it)));
        units.add(task(1));
        assert_eq!(known(&units).first(), Some(&many), "it was known");
        units.add(task(many + 1));
        assert_eq!(known(&units).len(), MANY);
        assert_eq!(known(&units).first(), Some(&(many - 1)));
        assert_eq!(known(&units).last(), Some(&(many + 1)));
    }

    #[test]
    fn a_task_that_is_over_or_elsewhere_takes_no_room() {
        let mut units = Units::default();
        (1..=3).for_each(|it| units.add(task(it)));
        units.add(TaskId {
            client: Member::new(8, 1),
            number: 4,
        });
        assert_eq!(units.remove(task(2)), None);
        assert_eq!(known(&units), [1, 3, 4]);
        units.remove_client(Member::new(9, 1));
        assert_eq!(known(&units), [4]);
    }
}
