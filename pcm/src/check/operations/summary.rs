//! What a run counts.

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Operations that were carried out.
    pub operations: u64,
    /// Steps of all machines.
    pub steps: u64,
    /// Updates that were decided.
    pub applied: u64,
    /// Answers of units that were compared with what their followers returned.
    pub backed: u64,
    /// Answers that clients heard.
    pub heard: u64,
    /// Of these, values.
    pub values: u64,
    /// Tasks that clients heard are not run.
    pub refused: u64,
    /// Functions that hosts began.
    pub begun: u64,
    /// Tasks that were given to a second unit, or again to the same.
    pub again: u64,
    /// Lives that began after a crash.
    pub restarts: u64,
    /// Gateways that lost power in the middle of a step.
    pub torn: u64,
    /// Gateways that began to manage.
    pub managed: u64,
    /// Messages that no node sent.
    pub forged: u64,
    /// Runs in which all came well when the faults were over.
    pub healed: u64,
}

impl Summary {
    /// What was counted, by name.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 14] {
        [
            ("operations", self.operations),
            ("steps", self.steps),
            ("applied", self.applied),
            ("backed", self.backed),
            ("heard", self.heard),
            ("values", self.values),
            ("refused", self.refused),
            ("begun", self.begun),
            ("again", self.again),
            ("restarts", self.restarts),
            ("torn", self.torn),
            ("managed", self.managed),
            ("forged", self.forged),
            ("healed", self.healed),
        ]
    }

    /// Counts another run as well.
    pub const fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.steps += other.steps;
        self.applied += other.applied;
        self.backed += other.backed;
        self.heard += other.heard;
        self.values += other.values;
        self.refused += other.refused;
        self.begun += other.begun;
        self.again += other.again;
        self.restarts += other.restarts;
        self.torn += other.torn;
        self.managed += other.managed;
        self.forged += other.forged;
        self.healed += other.healed;
    }
}
