//! The settings of one node's part in groups.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

/// The settings of one node's part in groups. Nodes may differ in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The settings of each group's replica.
    pub replica: selvedge_replica::Config,
    /// The time for which a member waits for a leader before it stands, for each member before it:
    /// above zero. It should be longer than an election takes, which is three messages and two
    /// writes; where it is shorter, members that outbid each other wait longer each time
    /// ([`resend`](selvedge_replica::Config::resend)). With the default settings five members elect a
    /// leader within 30 s where each message takes 800 ms, and 70 s where it takes 2 s. A leader
    /// waits as long before it replaces members that failed or left, and a quarter of it where
    /// these are as many as may fail. Default 1 s.
    pub patience: Span,
    /// The shortest time for which a leader waits before it changes members for an epoch: any. In it
    /// the members decide, however short epochs are. Members that failed are replaced sooner.
    /// Default 1 s.
    pub change_delay: Span,
    /// The time over which the groups' changes are spread after that: any.
    /// Default 10 s.
    pub stagger: Span,
    /// The number of failed or left members at which a leader chooses others: from 1; one above the
    /// plan's failures counts as that. Default 1; the paper's is as many as may fail (section 3.5),
    /// until when a group can lose no other member.
    pub replace_after: u8,
    /// The most groups in which a node is: from 1. It refuses further ones, and counts them.
    /// Default 1,024.
    pub groups: u16,
    /// The most maps of which a node remembers the leader without being a member: from 1, and at least as many as
    /// it asks at once, for questions that evict each other never end. There is room for as many
    /// more as the site has groups. Default 256.
    pub leader_hints: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            replica: selvedge_replica::Config::new(),
            patience: Span::secs(1),
            change_delay: Span::secs(1),
            stagger: Span::secs(10),
            replace_after: 1,
            groups: 1_024,
            leader_hints: 256,
        }
    }

    selvedge_core::with_settings! {
        with_replica replica: selvedge_replica::Config,
        with_patience patience: Span,
        with_change_delay change_delay: Span,
        with_stagger stagger: Span,
        with_replace_after replace_after: u8,
        with_groups groups: u16,
        with_leader_hints leader_hints: u16,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        if let Err(replica) = self.replica.check() {
            return Err(replica);
        }
        settings::check(&[
            Setting::time("patience", self.patience, Span(1), Span(u64::MAX)),
            Setting::number(
                "replace_after",
                self.replace_after as u64,
                1,
                u8::MAX as u64,
            ),
            Setting::number("groups", self.groups as u64, 1, u16::MAX as u64),
            Setting::number("hints", self.leader_hints as u64, 1, u16::MAX as u64),
        ])
    }
}
