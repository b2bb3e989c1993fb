//! The counts of a run.

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Operations that were carried out.
    pub operations: u64,
    /// Runs of routines that were reported, each once.
    pub runs: u64,
    /// States in which a routine executes, each compared with the locks of its devices.
    pub executing: u64,
    /// Commands that leaders gave to their hosts.
    pub given: u64,
    /// Commands that devices did.
    pub done: u64,
    /// Commands that leaders gave late, when another one had followed: they slept. Seldom.
    pub stale: u64,
    /// Leaders that handled a command which another leader may have given.
    pub taken_over: u64,
    /// Changes of the map that were answered as done.
    pub stored: u64,
    /// Questions to the map that were answered.
    pub found: u64,
    /// Configurations in which a member was seen first.
    pub configured: u64,
    /// Lives that began after a crash.
    pub restarts: u64,
    /// Messages that no node sent.
    pub hostile: u64,
    /// Runs in which all promises of progress were kept when the faults were over.
    pub healed: u64,
}

impl Summary {
    /// The counts, by name, except those of seldom events.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 12] {
        [
            ("operations", self.operations),
            ("runs", self.runs),
            ("executing", self.executing),
            ("given", self.given),
            ("done", self.done),
            ("taken over", self.taken_over),
            ("stored", self.stored),
            ("found", self.found),
            ("configured", self.configured),
            ("restarts", self.restarts),
            ("hostile", self.hostile),
            ("healed", self.healed),
        ]
    }

    /// Counts another run as well.
    pub const fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.runs += other.runs;
        self.executing += other.executing;
        self.given += other.given;
        self.done += other.done;
        self.stale += other.stale;
        self.taken_over += other.taken_over;
        self.stored += other.stored;
        self.found += other.found;
        self.configured += other.configured;
        self.restarts += other.restarts;
        self.hostile += other.hostile;
        self.healed += other.healed;
    }
}
