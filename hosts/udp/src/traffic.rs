//! Counters of a host.

pub use selvedge_host::parts::Counter;

selvedge_host::counters! { pub Traffic, TrafficReport:
    /// Messages that came before the node was in, or after it left.
    untimely,
    /// Probes of a seed not sent: it is a member by now, and as such on the list.
    spared,
    /// Names of seeds that were looked up again, because they do not answer.
    lookups,
    /// Notices sent: to a refused process whose node has restarted since.
    notices,
    /// Changes of a member's metadata to bytes that are no addresses and tags: its addresses stay as
    /// they were, and it has no tags.
    unreadable,
    /// Questions of other nodes for which there was no room. They come again while those nodes wait.
    questions_dropped,
    /// Signs of another process with this node's id: notices, and later lives that another node
    /// knew.
    twins,
}

impl TrafficReport {
    /// The number of datagrams and messages dropped because of a fault of their sender. Losses,
    /// cuts and members with an unknown address are not included, nor are repeated and late
    /// datagrams, because a network may cause them by itself.
    #[must_use]
    pub fn faulty(&self) -> u64 {
        self.faults().iter().map(|(_, count)| count).sum()
    }

    /// The parts of [`faulty`](Self::faulty), each with its name.
    #[must_use]
    pub const fn faults(&self) -> [(&'static str, u64); 11] {
        [
            ("unsealed", self.unsealed),
            ("sealed", self.sealed),
            ("wrong_key", self.wrong_key),
            ("wrong_sender", self.wrong_sender),
            ("oversize", self.oversize),
            ("wrong_version", self.wrong_version),
            ("wrong_kind", self.wrong_kind),
            ("malformed", self.malformed),
            ("refused", self.refused),
            ("too_long", self.too_long),
            ("refused_ticks", self.refused_ticks),
        ]
    }
}
