//! A node's part in one group.

use selvedge_replica::{Replica, State};

use crate::inquiry::Inquiry;

/// A node's part in one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part<S: State> {
    pub(crate) replica: Replica<S>,
    /// Whether it waits for a leader: [`Timer::Lead`](crate::Timer::Lead) is armed.
    pub(crate) waits: bool,
    /// How often it stood since there was a leader; see `STOOD_MAX`.
    pub(crate) stood: u8,
    /// Whether [`Timer::Change`](crate::Timer::Change) is armed.
    pub(crate) changes: bool,
    /// Whether it is armed because members are gone, or for another try.
    pub(crate) is_urgent: bool,
    /// An epoch began, and no other members were chosen since: they are due. A link counts, whoever
    /// chose: two leaders whose epochs differ would change for ever.
    pub(crate) is_due: bool,
    /// The number of the last configuration that was seen.
    pub(crate) number: u64,
    /// The configuration whose founders this leader has told.
    pub(crate) told: u64,
    /// The highest configuration that others told of in this epoch, and that this member looked for. Once:
    /// each node that is asked tells it again.
    pub(crate) sought: u64,
    /// Whether the application knows that this node is in the group.
    pub(crate) is_entered: bool,
    /// Whether the replica was asked to confirm who leads, and has not answered.
    pub(crate) confirms: bool,
    /// Of the nodes that this leader would name: whether they are here.
    pub(crate) inquiry: Option<Inquiry>,
    /// Whether a [`Fact::Base`](crate::Fact::Base) says how it began: it stands before the first fact.
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
            told: 0,
            sought: 0,
            is_entered: false,
            confirms: false,
            inquiry: None,
            is_stored: false,
        }
    }

    /// One of which a former life has stored the base.
    pub(crate) fn stored(replica: Replica<S>) -> Self {
        Self {
            is_stored: true,
            ..Self::new(replica)
        }
    }

    /// Whether the latest configuration that it knows names this node.
    pub(crate) fn is_named(&self) -> bool {
        let id = self.replica.me().id;
        self.replica.configuration().voter(id).is_some()
    }
}
