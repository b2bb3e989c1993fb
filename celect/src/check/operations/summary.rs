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
        /// Leases among `leases_over` that ran out at followers while the leader led others.
        given_up_early,
        /// Initiators that knew too few.
        starved,
        /// Elections that ended at their initiator while the watcher knew a bound on the winner.
        judged,
        /// Elections among `judged` that ended with a node lower than all that were up throughout.
        lower,
        /// Rounds that asked all nodes again.
        rounds,
        /// Crashes of a node that led.
        leaders_died,
        /// Crashes of a node that ran an election.
        initiators_died,
        /// Nodes that came back without memory.
        restarts,
        /// Nodes among `restarts` that came back with another id.
        renamed,
        /// Nodes that were up and were declared failed.
        false_failures,
        /// Runs that ended with agreement, twice.
        agreed,
        /// Runs among `agreed` without a command to elect after the last fault.
        by_itself,
        /// Live members that found no place on a list.
        no_room,
        /// The longest frame in bytes.
        longest_frame: max usize,
    }
}
