use selvedge_core::Machine;

use super::{Action, MembershipTrace, Network, NetworkError, Pending};

impl<M: Machine> Network<M> {
    /// Schedules all entries of `trace`: each observer receives the changes that it learned, at the
    /// recorded time. Entries before the present time happen with the next step. Returns the number
    /// of entries scheduled.
    ///
    /// # Errors
    /// [`NetworkError::UnknownObserver`] when an observer was not added; nothing is scheduled then.
    /// An entry whose observer is down at its time counts in
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
