//! All messages between nodes.

use postcard::ser_flavors::Size;
use selvedge_core::NodeId;
use selvedge_core::wire::{self, List};
use serde::{Deserialize, Serialize};

use crate::GroupId;

/// The protocol's kind in a frame header.
pub const KIND: u8 = 8;

/// The items that one node sends to another in one step, as far as they fit into a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<U, P> {
    /// The digest of the sender's plan.
    pub plan: u32,
    /// The items, in this order.
    pub items: List<Item<U, P>, 1>,
}

/// An item about one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Item<U, P> {
    /// A message of one member's replica to another's.
    Replica {
        /// The group.
        group: GroupId,
        /// The content.
        message: selvedge_replica::Message<U>,
    },
    /// A question to the group's leader. A node that does not lead answers [`Item::Where`], if it
    /// knows.
    Ask {
        /// The group.
        group: GroupId,
        /// The question.
        asked: P,
    },
    /// An answer of the group's leader.
    Answer {
        /// The group.
        group: GroupId,
        /// The life of the receiver that is meant: a message reaches a node in any of its lives,
        /// and each life numbers its questions from the start.
        life: u32,
        /// The content.
        notified: P,
    },
    /// The place of the group.
    Where {
        /// The group.
        group: GroupId,
        /// The number of the configuration that the sender knows.
        number: u64,
        /// The leader, as far as the sender knows.
        leader: Option<NodeId>,
        /// The members.
        members: List<NodeId, 5>,
    },
    /// The group's leader would name the receiver as a member, and asks if it is present. Answered
    /// by [`Item::Here`], where the receiver has room for the group.
    Inquire {
        /// The group.
        group: GroupId,
        /// The sender's number of the question.
        number: u64,
    },
    /// The sender is present, in the life that stands beside its name.
    Here {
        /// The group.
        group: GroupId,
        /// The life of the receiver that asked: a message reaches a node in any of its lives.
        life: u32,
        /// The number of the question.
        number: u64,
    },
}

impl<U: Serialize, P: Serialize> wire::Message for Message<U, P> {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        encoded_len(self)
    }
}

/// The most bytes before the items of a message, of fewer than 2^14 items.
pub(crate) const FIXED_LEN: usize = 5 + 2;

/// The most bytes before a replica's message: the kind of the item, and the group.
pub(crate) const ITEM_LEN: usize = 1 + 10;

/// The length in bytes in postcard's encoding. A value that cannot be encoded is longer than any
/// frame.
pub(crate) fn encoded_len(value: &impl Serialize) -> usize {
    postcard::serialize_with_flavor(value, Size::default()).unwrap_or(usize::MAX / 2)
}
