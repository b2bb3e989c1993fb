//! What a run counts.

selvedge_sim::counts! {
    /// What is counted.
    pub struct Summary {
        /// Operations that were carried out.
        operations,
        /// Steps of all machines.
        steps,
        /// Updates that were decided.
        applied,
        /// Answers of units that were compared with what their followers returned.
        backed,
        /// Answers that clients heard.
        received,
        /// Of these, values.
        values,
        /// Tasks that clients heard are not run.
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
        /// Runs in which all came well when the faults were over.
        healed,
    }
}
