//! A node's part in one group.

use selvedge_replica::{Replica, State};

use crate::inquiry::Inquiry;

/// A node's part in one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part<S: State> {
    pub(crate) replica: Replica<S>,
    /// True while it waits for a leader: [`Timer::Lead`](crate::Timer::Lead) is armed.
    pub(crate) waits: bool,
    /// The number of times that it stood since it last had a leader; see `STOOD_MAX`.
    pub(crate) stood: u8,
    /// True while [`Timer::Change`](crate::Timer::Change) is armed.
    pub(crate) changes: bool,
    /// True if it is armed because members failed or left, or for another try.
    pub(crate) is_urgent: bool,
    /// True if an epoch began, and no other members were chosen since: they are due. A link counts,
    /// whichever leader chose: two leaders whose epochs differ would change for ever.
    pub(crate) is_due: bool,
    /// The number of the last configuration that was seen.
    pub(crate) number: u64,
    /// The configuration of which this leader has notified the founders.
    pub(crate) notified: u64,
    /// The highest configuration that others named in this epoch, and that this member looked for.
    /// Once: each node that is asked names it again.
    pub(crate) sought: u64,
    /// True if the application knows that this node is in the group.
    pub(crate) is_entered: bool,
    /// True if the replica was asked to confirm the leader, and has not answered.
    pub(crate) confirms: bool,
    /// False if the leader has sent nothing since an epoch began. Noted once the node has seen some epochs.
    pub(crate) is_led: bool,
    /// The inquiry to the nodes that this leader would name.
    pub(crate) inquiry: Option<Inquiry>,
    /// True if a [`Fact::Base`](crate::Fact::Base) has recorded its beginning: it stands before the
    /// first fact.
    pub(crate) is_stored: bool,
}

impl<S: State> Part<S> {
    pub(crate) const fn new(replica: Replica<S>) -> Self {
        Self {
            replica,
            waits: false,
            stood: 0,
            changes: false,
            is_urgent: false,
            is_due: false,
            number: 0,
            notified: 0,
            sought: 0,
            is_entered: false,
            confirms: false,
            is_led: true,
            inquiry: None,
            is_stored: false,
        }
    }

    /// A part of which a former life has stored the base.
    pub(crate) fn stored(replica: Replica<S>) -> Self {
        Self {
            is_stored: true,
            ..Self::new(replica)
        }
    }

    /// Returns true if the latest configuration that it knows names this node.
    pub(crate) fn is_named(&self) -> bool {
        let id = self.replica.me().id;
        self.replica.configuration().voter(id).is_some()
    }
}
