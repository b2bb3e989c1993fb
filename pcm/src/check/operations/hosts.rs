//! The pending work of followers' hosts, and the values of functions.

use alloc::vec::Vec;

use crate::follower::Event;
use crate::{Bytes, Function, Library, TaskId};

/// The pending work of a follower's host: functions to run, and a library to load.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) runs: Vec<(TaskId, Function)>,
    pub(super) loads: Option<Library>,
}

impl Host {
    /// Takes an event of the follower. Returns true if a function begins.
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

/// The right value of a function.
pub(super) fn value(function: &Function) -> Bytes {
    let code = function.code.first().copied().unwrap_or_default();
    [b'v', code].into_iter().collect()
}

/// The wrong value, the same at all liars: together they could outvote honest followers.
pub(super) fn wrong() -> Bytes {
    [b'w'].into_iter().collect()
}
