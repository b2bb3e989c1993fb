//! What a run did.

/// What a run did: for tests that want to know that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations carried out.
    pub operations: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Hostile messages among them.
    pub hostile: u64,
    /// Inputs refused.
    pub refused: u64,
    /// Elections begun.
    pub elections: u64,
    /// Times that a node took the lead.
    pub led: u64,
    /// Times that a node that led heard of a larger ballot.
    pub deposed: u64,
    /// Times that an initiator gave way.
    pub yielded: u64,
    /// Leaders that were believed to be gone.
    pub lost: u64,
    /// Leases that ran out, at followers and leaders.
    pub leases_over: u64,
    /// Of those, leases that ran out at followers while the leader went on with others.
    pub given_up_early: u64,
    /// Initiators that knew too few.
    pub starved: u64,
    /// Elections that ended at their initiator while it was known which node was to win, at
    /// least.
    pub judged: u64,
    /// Of those, elections that ended with a node lower than all that were there throughout.
    pub lower: u64,
    /// Rounds that were begun anew.
    pub rounds: u64,
    /// Crashes of a node that led.
    pub leaders_died: u64,
    /// Crashes of a node that ran an election.
    pub initiators_died: u64,
    /// Nodes that came back without memory.
    pub restarts: u64,
    /// Of those, nodes that had another id then.
    pub renamed: u64,
    /// Nodes that were up and were declared failed.
    pub false_failures: u64,
    /// Runs that ended with agreement, twice.
    pub agreed: u64,
    /// Of those, runs in which no node was asked for an election after the last fault.
    pub by_itself: u64,
    /// What found no room.
    pub no_room: u64,
    /// The longest frame in bytes.
    pub longest_frame: usize,
}

impl Summary {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        for (sum, one) in self.counts().into_iter().zip({ *other }.counts()) {
            *sum.1 += *one.1;
        }
        self.longest_frame = self.longest_frame.max(other.longest_frame);
    }

    /// Whether each kind of trouble was met, so that the runs say something.
    ///
    /// # Errors
    /// What was not.
    pub fn check_each_happened(mut self) -> Result<(), &'static str> {
        let never = self.counts().into_iter().find(|(_, count)| **count == 0);
        never.map_or(Ok(()), |(what, _)| Err(what))
    }

    fn counts(&mut self) -> [(&'static str, &mut u64); 23] {
        [
            ("operations", &mut self.operations),
            ("delivered", &mut self.delivered),
            ("hostile", &mut self.hostile),
            ("refused", &mut self.refused),
            ("elections", &mut self.elections),
            ("led", &mut self.led),
            ("deposed", &mut self.deposed),
            ("yielded", &mut self.yielded),
            ("lost", &mut self.lost),
            ("leases_over", &mut self.leases_over),
            ("given_up_early", &mut self.given_up_early),
            ("starved", &mut self.starved),
            ("judged", &mut self.judged),
            ("lower", &mut self.lower),
            ("rounds", &mut self.rounds),
            ("leaders_died", &mut self.leaders_died),
            ("initiators_died", &mut self.initiators_died),
            ("restarts", &mut self.restarts),
            ("renamed", &mut self.renamed),
            ("false_failures", &mut self.false_failures),
            ("agreed", &mut self.agreed),
            ("by_itself", &mut self.by_itself),
            ("no_room", &mut self.no_room),
        ]
    }
}
