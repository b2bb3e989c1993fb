use selvedge_core::Machine;

use super::{Action, MembershipTrace, Network, NetworkError, Pending};

impl<M: Machine> Network<M> {
    /// Schedules everything that `trace` tells, so that each observer is given what it learned, at
    /// the time at which it did. What lies before now happens with the next step. Returns how many
    /// entries were scheduled.
    ///
    /// # Errors
    /// [`NetworkError::UnknownObserver`] when an observer was not added; nothing is scheduled then.
    /// An entry whose observer is down when its time comes counts in
    /// [`Counters::failed_actions`](super::Counters).
    pub fn replay(&mut self, trace: &MembershipTrace) -> Result<usize, NetworkError> {
        let observers = trace
            .entries()
            .iter()
            .map(|entry| {
                let id = entry.observer;
                self.find(id).ok_or(NetworkError::UnknownObserver { id })
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (entry, &node) in trace.entries().iter().zip(&observers) {
            let delta = entry.delta;
            let action = Action::Membership { node, delta };
            self.queue
                .push(entry.at.max(self.now), Pending::Action(action));
        }
        Ok(observers.len())
    }
}
