//! The counters of a run.

selvedge_sim::counts! {
    /// The counters of a run.
    pub struct Summary {
        /// Operations that were carried out.
        operations,
        /// Updates that a member applied first.
        applied,
        /// Reads that were answered.
        read,
        /// Configurations that a member reported first.
        configured,
        /// States that were received whole.
        installed,
        /// Leaders, each ballot once at itself.
        led,
        /// Lives that began after a crash.
        restarts,
        /// Reports that a group was unavailable.
        unavailable,
        /// Messages that no node sent.
        hostile,
    }
}
