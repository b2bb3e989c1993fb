//! The summary of a run.

selvedge_sim::counts! {
    /// Counts of a run, for tests that require some activity.
    pub struct Summary {
        /// Operations carried out.
        operations,
        /// Messages delivered.
        delivered,
        /// Hostile messages among them.
        hostile,
        /// Inputs refused.
        refused,
        /// Elections begun.
        elections,
        /// Times that a node took the lead.
        led,
        /// Times that a leader was replaced by a larger ballot.
        deposed,
        /// Times that an initiator gave way.
        yielded,
        /// Leaders that were believed to have failed or left.
        lost,
        /// Leases that ran out, at followers and leaders.
        leases_over,
        /// Of those, leases that ran out at followers while the leader went on with others.
        given_up_early,
        /// Initiators that knew too few.
        starved,
        /// Elections that ended at their initiator while the watcher knew a bound on the winner.
        judged,
        /// Of those, elections that ended with a node lower than all nodes that were up throughout.
        lower,
        /// Rounds that asked all nodes again.
        rounds,
        /// Crashes of a node that led.
        leaders_died,
        /// Crashes of a node that ran an election.
        initiators_died,
        /// Nodes that came back without memory.
        restarts,
        /// Of those, nodes that had another id then.
        renamed,
        /// Nodes that were up and were declared failed.
        false_failures,
        /// Runs that ended with agreement, twice.
        agreed,
        /// Of those, runs in which no node was asked for an election after the last fault.
        by_itself,
        /// Live members that found no place on a list.
        no_room,
        /// The longest frame in bytes.
        longest_frame: max usize,
    }
}
