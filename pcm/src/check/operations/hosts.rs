//! What the hosts of followers are about to do, and what functions return.

use alloc::vec::Vec;

use crate::follower::Event;
use crate::{Bytes, Function, Library, TaskId};

/// What a host is to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) runs: Vec<(TaskId, Function)>,
    pub(super) loads: Option<Library>,
}

impl Host {
    /// What a follower tells its host. Whether a function begins.
    pub(super) fn on_event(&mut self, event: &Event) -> bool {
        match event {
            Event::Run { task, function, .. } => {
                self.runs.push((*task, function.clone()));
                return true;
            }
            Event::Stop(task) => self.runs.retain(|it| it.0 != *task),
            Event::Load(library) => self.loads = Some(*library),
            Event::PhaseChanged(_) | Event::Fetch(_) | Event::Unload(_) => {}
        }
        false
    }
}

/// What a function returns where nobody lies.
pub(super) fn value(function: &Function) -> Bytes {
    let code = function.code.first().copied().unwrap_or_default();
    [b'v', code].into_iter().collect()
}

/// What liars return, all of them the same.
pub(super) fn wrong() -> Bytes {
    [b'w'].into_iter().collect()
}
