//! What a run counts.

selvedge_sim::counts! {
    /// What is counted.
    pub struct Summary {
        /// Operations that were carried out.
        operations,
        /// Updates that a member applied first.
        applied,
        /// Reads that were answered.
        read,
        /// Configurations that a member was told of first.
        configured,
        /// States that were received whole.
        installed,
        /// Leaders, each ballot once at itself.
        led,
        /// Lives that began after a crash.
        restarts,
        /// Times that a group was said to be unavailable.
        unavailable,
        /// Messages that no node sent.
        hostile,
    }
}
