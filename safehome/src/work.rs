//! What is left to do in a step.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::RoutineId;

/// What is left to do before a step is over, each task once, in the order in which they came.
/// Empty between steps, so it is no part of the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    tasks: Vec<Task>,
    /// So many of them were taken out.
    taken: usize,
    /// The devices on which what comes first may be finished. It keeps its memory.
    pub(crate) unsettled: Vec<NodeId>,
}

/// Something to do in this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Gives this device to the routine that comes next.
    Device(NodeId),
    /// Goes on with this routine, if it can.
    Routine(RoutineId),
    /// Starts the waiting routines that can start.
    Queue,
    /// Lets in the routines that are held back no longer.
    Held,
}

impl Work {
    /// Adds a task, unless it is there. O(tasks).
    #[inline]
    pub(crate) fn enqueue(&mut self, task: Task) {
        let left = self.tasks.get(self.taken..).unwrap_or_default();
        if !left.contains(&task) {
            self.tasks.push(task);
        }
    }

    /// Adds a task that is to come before all others; what becomes of a routine comes before those
    /// that wait, as that may let them start. O(tasks).
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
