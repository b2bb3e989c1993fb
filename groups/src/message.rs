//! All messages between nodes.

use postcard::ser_flavors::Size;
use selvedge_core::wire::{self, List};
use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};

use crate::GroupId;
use crate::registry::{Birth, Bytes, Registration};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 8;

/// The items that one node sends to another in one step, as far as they fit into a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message<U, P> {
    /// The digest of the plan of generation 0, from which the sender's follows.
    pub plan: u32,
    /// The generation of the sender's site.
    pub generation: u32,
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
        /// The members, each in the life in which the configuration names it.
        members: List<Member, 5>,
    },
    /// The group's leader would name the receiver as a member, and asks if it is present. Answered
    /// by [`Item::Here`], where the receiver has room for the group, and has not promised to take no part in
    /// that configuration.
    Inquire {
        /// The group.
        group: GroupId,
        /// The sender's number of the question.
        number: u64,
        /// The number of the configuration that would name the receiver.
        configuration: u64,
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
    /// Asks for the first members of a group, at the registry's leader. Answered by
    /// [`Item::Born`], or by the place of the registry.
    Find {
        /// The group.
        group: GroupId,
        /// The number of the last configuration that the asker knows, if the group is to begin anew
        /// because that one has lost its memory for good; [`NUMBER_MAX`](selvedge_replica::Configuration::NUMBER_MAX) if the asker knows none,
        /// and wants the present beginning before it names that one; else 0.
        lost: u64,
    },
    /// The beginning of a group, by a decision of the registry: for its first members, which answer with
    /// [`Item::Where`], and for a node that asked, or is a member of a former beginning. It names no members
    /// where the registry has decided none: the group began with the first site, or never.
    Born {
        /// The group.
        group: GroupId,
        /// The decision.
        birth: Birth,
    },
    /// Asks for a part of the receiver's site.
    WantSite {
        /// The first byte of the encoding that the sender lacks.
        at: u32,
    },
    /// A part of the sender's site, or the news that it is of a later generation.
    Site {
        /// The length of the encoding in bytes.
        length: u32,
        /// The place of the part in the encoding.
        at: u32,
        /// The part; empty for the news.
        bytes: Bytes,
    },
    /// A part of a site that the sender proposes, or all of it is sent: for the registry's leader.
    /// Answered by [`Item::Registered`], or by the place of the registry.
    Register {
        /// The change, without a [`Registration::Birth`].
        registration: Registration,
    },
    /// The registry's knowledge of a site that the receiver proposes.
    Registered {
        /// The life of the receiver.
        life: u32,
        /// The receiver's number of it.
        number: u64,
        /// The bytes that have arrived.
        length: u32,
        /// The generation of the registry's site.
        generation: u32,
        /// True if that site is the proposed one.
        is_decided: bool,
    },
    /// The sender has found no quorum of a group: for the registry's leader. Answered by [`Item::Born`] if the
    /// group has begun anew since.
    Lost {
        /// The group.
        group: GroupId,
        /// The number of the latest configuration that the sender knows, or that of its promise.
        number: u64,
    },
    /// The registry's leader asks for the receiver's knowledge of a group. Answered by
    /// [`Item::Ended`].
    End {
        /// The group.
        group: GroupId,
        /// The sender's number of the question.
        call: u64,
        /// The number between the configurations of the present beginning and those of the next one.
        number: u64,
        /// True if the receiver shall take part in no configuration below that number any more.
        is_binding: bool,
    },
    /// The sender's knowledge of a group.
    Ended {
        /// The group.
        group: GroupId,
        /// The life of the receiver that asked.
        life: u32,
        /// The first life of the sender of which it has all memory.
        since: u32,
        /// The number of the question.
        call: u64,
        /// The number of the last configuration that the sender knows as a member, or that of its promise.
        mark: u64,
        /// True if the sender may vote in the present beginning.
        votes: bool,
        /// The number of the latest configuration that it knows, also from others.
        number: u64,
        /// The members of that configuration, in the lives in which it names them.
        members: List<Member, 1>,
    },
    /// The sender is spared in its present life, or takes its share.
    Spared {
        /// The number of changes in this life: from 1. The highest one counts.
        number: u32,
        /// True if it is spared.
        is_spared: bool,
    },
}

impl<U: Serialize, P: Serialize> wire::Message for Message<U, P> {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        encoded_len(self)
    }
}

/// The most bytes before the items of a message, of fewer than 2^14 items.
pub(crate) const FIXED_LEN: usize = 5 + 5 + 2;

/// The most bytes before a replica's message: the kind of the item, and the group.
pub(crate) const ITEM_LEN: usize = 1 + 10;

/// The length in bytes in postcard's encoding. A value that cannot be encoded is longer than any
/// frame.
pub(crate) fn encoded_len(value: &impl Serialize) -> usize {
    postcard::serialize_with_flavor(value, Size::default()).unwrap_or(usize::MAX / 2)
}
