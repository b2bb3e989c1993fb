//! The counts of a run.

selvedge_sim::counts! {
    /// The counts of a run.
    pub struct Summary {
        /// Operations that were carried out.
        operations,
        /// Steps of all machines.
        steps,
        /// Updates that were decided.
        applied,
        /// Answers of units that were compared with the results of their followers.
        backed,
        /// Answers that clients received.
        received,
        /// Values among these answers.
        values,
        /// Tasks whose refusal clients received.
        refused,
        /// Functions that hosts began.
        begun,
        /// Tasks that were given to a second unit, or again to the same.
        again,
        /// Lives that began after a crash.
        restarts,
        /// Gateways that lost power in the middle of a step.
        torn,
        /// Gateways that began to manage.
        managed,
        /// Messages that no node sent.
        forged,
        /// Runs that recovered after the faults had ended.
        healed,
    }
}
