//! What a run counts.

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Operations that were carried out.
    pub operations: u64,
    /// Updates that a member applied first.
    pub applied: u64,
    /// Reads that were answered.
    pub read: u64,
    /// Configurations that a member was told of first.
    pub configured: u64,
    /// States that were received whole.
    pub installed: u64,
    /// Leaders, each ballot once at itself.
    pub led: u64,
    /// Lives that began after a crash.
    pub restarts: u64,
    /// Times that a group was said to be unavailable.
    pub unavailable: u64,
    /// Messages that no node sent.
    pub hostile: u64,
}

impl Summary {
    /// What was counted, by name.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("operations", self.operations),
            ("applied", self.applied),
            ("read", self.read),
            ("configured", self.configured),
            ("installed", self.installed),
            ("led", self.led),
            ("restarts", self.restarts),
            ("unavailable", self.unavailable),
            ("hostile", self.hostile),
        ]
    }

    /// Counts another run as well.
    pub const fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.applied += other.applied;
        self.read += other.read;
        self.configured += other.configured;
        self.installed += other.installed;
        self.led += other.led;
        self.restarts += other.restarts;
        self.unavailable += other.unavailable;
        self.hostile += other.hostile;
    }
}
