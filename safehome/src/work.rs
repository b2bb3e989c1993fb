//! The remaining tasks of a step.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::RoutineId;

/// The remaining tasks of a step, each once, in the order of their arrival. Empty between steps, so
/// it is no part of the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    tasks: Vec<Task>,
    /// The number of tasks that were taken out.
    taken: usize,
    /// The devices with first entries that may be finished. It keeps its memory.
    pub(crate) unsettled: Vec<NodeId>,
}

/// A task of this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Gives this device to the routine that comes next.
    Device(NodeId),
    /// Goes on with this routine, if it can.
    Routine(RoutineId),
    /// Starts the waiting routines that can start.
    Queue,
    /// Admits the routines that are not held back any more.
    Held,
}

impl Work {
    /// Adds a task, unless it is present. O(tasks).
    #[inline]
    pub(crate) fn enqueue(&mut self, task: Task) {
        let left = self.tasks.get(self.taken..).unwrap_or_default();
        if !left.contains(&task) {
            self.tasks.push(task);
        }
    }

    /// Adds a task before all others; the end of a routine comes before waiting routines, because
    /// it may let them start. O(tasks).
    pub(crate) fn hurry(&mut self, task: Task) {
        self.tasks.drain(..self.taken);
        self.taken = 0;
        self.tasks.retain(|it| *it != task);
        let is_first = |it: &&Task| matches!(it, Task::Routine(_));
        let first = match task {
            Task::Routine(_) => 0,
            Task::Device(_) | Task::Queue | Task::Held => {
                self.tasks.iter().take_while(is_first).count()
            }
        };
        self.tasks.insert(first, task);
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Task> {
        let next = self.tasks.get(self.taken).copied();
        match next {
            Some(_) => self.taken += 1,
            None => {
                self.tasks.clear();
                self.taken = 0;
            }
        }
        next
    }
}
