//! Counts of messages, bytes and facts.

/// Why a copy of a message did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// A hop lost it.
    Hop,
    /// It was sent without a path to the receiver, or to an id without a node.
    NoPath,
    /// A partition separated sender and receiver when it arrived.
    Partition,
    /// The receiver was down when it arrived.
    Down,
    /// The receiver was asleep when it arrived.
    Asleep,
}

/// Counts of the network's traffic since the network was made.
///
/// `sent + duplicated == delivered + lost() + in flight`, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages on their way to one receiver. A multicast counts once for every neighbour.
    pub sent: u64,
    /// Multicasts; each counts once for any number of neighbours.
    pub multicasts: u64,
    /// Second copies that set out.
    pub duplicated: u64,
    /// Copies that machines received, including those that they rejected.
    pub delivered: u64,
    /// Copies lost on a hop.
    pub lost_on_hop: u64,
    /// Messages without a path, or to an unknown id.
    pub lost_no_path: u64,
    /// Copies that a partition cut off on their way.
    pub lost_to_partition: u64,
    /// Copies whose receiver was down.
    pub lost_down: u64,
    /// Copies whose receiver was asleep.
    pub lost_asleep: u64,
    /// Bytes that nodes sent end to end, over any number of hops. A multicast counts once, copies
    /// and relaying do not.
    pub bytes: u64,
    /// Bytes that were transmitted, hop by hop: of a lost message until it was lost, of copies too.
    /// A multicast is one transmission.
    pub hop_bytes: u64,
    /// Scheduled actions that failed: the node was down, or its machine rejected the input.
    pub failed_actions: u64,
}

impl Counters {
    /// Copies that did not arrive, for any reason.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost_on_hop
            + self.lost_no_path
            + self.lost_to_partition
            + self.lost_down
            + self.lost_asleep
    }

    pub(super) const fn count_loss(&mut self, why: Loss) {
        let counter = match why {
            Loss::Hop => &mut self.lost_on_hop,
            Loss::NoPath => &mut self.lost_no_path,
            Loss::Partition => &mut self.lost_to_partition,
            Loss::Down => &mut self.lost_down,
            Loss::Asleep => &mut self.lost_asleep,
        };
        *counter += 1;
    }
}

/// Counts of one node since it was added, in all its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Messages it sent. A multicast counts once.
    pub sent: u64,
    /// Messages it received.
    pub received: u64,
    /// Bytes it sent. A multicast counts once; relaying for others does not count.
    pub bytes_sent: u64,
    /// Bytes of the messages it received.
    pub bytes_received: u64,
    /// Timers that ticked.
    pub ticks: u64,
    /// Messages, commands, membership changes and calls that its machine rejected.
    pub rejected: u64,
    /// Ticks that its machine rejected: a defect of the machine.
    pub rejected_ticks: u64,
    /// Facts that were stored.
    pub facts_stored: u64,
    /// Facts that a crash lost.
    pub facts_lost: u64,
    /// Stored facts that its machine refused to fold: a defect of the machine.
    pub refused_facts: u64,
}
