//! The facts of a durable machine, for both simulators.

use core::fmt;

use selvedge_core::Machine;
use selvedge_core::durable::Durable;

/// Finds the facts among events, and folds them into a machine: two functions, so that a simulator
/// of machines without facts needs no trait bound for them.
pub(crate) struct Facts<M: Machine> {
    is_fact: fn(&M::Event) -> bool,
    fold: fn(&mut M, &M::Event) -> Result<(), String>,
}

impl<M: Durable> Facts<M> {
    pub(crate) fn new() -> Self {
        Self {
            is_fact: |event| M::fact(event).is_some(),
            fold: |machine, event| match M::fact(event) {
                Some(fact) => machine.fold(fact).map_err(|damage| format!("{damage:?}")),
                None => Ok(()),
            },
        }
    }
}

impl<M: Machine> Facts<M> {
    pub(crate) fn is_fact(&self, event: &M::Event) -> bool {
        (self.is_fact)(event)
    }

    /// Folds the fact in an event.
    pub(crate) fn fold(&self, machine: &mut M, event: &M::Event) -> Result<(), String> {
        (self.fold)(machine, event)
    }
}

// Derives would ask that the machine itself be Copy.
impl<M: Machine> Clone for Facts<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Facts<M> {}

impl<M: Machine> fmt::Debug for Facts<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").finish_non_exhaustive()
    }
}
