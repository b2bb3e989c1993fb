//! All messages of the protocol.
//!
//! Updates ([`Record`]s) and application broadcasts are piggybacked on every message, as many as
//! fit the frame budget.

#[cfg(feature = "serde")]
mod buckets;

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use core::slice;

use selvedge_core::Member;
use selvedge_core::wire::{self, List, bytes_len, member_len, varint_len};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 1;

/// The number of parts into which a list is cut for comparison, by the leading bits of the hashed
/// id.
pub(crate) const BUCKETS: usize = 32;

/// The length of the longest [`Body`] that has to leave room for a payload: [`Body::Records`], a
/// tag, three keys and a flag. ([`Body::Digests`] is longer and is sent without payload.)
pub(crate) const BODY_MAX_LEN: usize = 1 + 10 + 10 + 11 + 1;

/// The length of the longest record without its metadata: member, revision, tag, length of
/// metadata, age.
pub(crate) const RECORD_MAX_LEN: usize = 15 + 5 + 1 + 2 + 3;

/// The length of the longest broadcast without its bytes: origin, number, length.
pub(crate) const BROADCAST_MAX_LEN: usize = 15 + 5 + 2;

/// The length of the longest payload: its encoded length takes two bytes.
pub(crate) const PAYLOAD_MAX_LEN: u64 = (1 << 14) - 1;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    /// The purpose of the message.
    pub body: Body,
    /// Updates about members. In [`Body::Welcome`] and [`Body::Records`] they are a page of the
    /// sender's list, in others news.
    pub records: Records,
    /// Application broadcasts.
    pub broadcasts: Broadcasts,
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Body {
    /// Asks whether the receiver is there. Answered by [`Body::Ack`].
    Ping {
        /// The sender's digest of its list of live members.
        digest: Digest,
        /// The node on behalf of which a relay asks, if a relay asks.
        origin: Option<Member>,
    },
    /// The sender is there.
    Ack {
        /// The origin in the ping.
        origin: Option<Member>,
    },
    /// Asks the receiver to probe `target`. Answered by [`Body::RelayedAck`] when `target` answers
    /// the relay.
    PingRequest {
        /// The member to probe.
        target: Member,
    },
    /// A relay's report that `target` is there.
    RelayedAck {
        /// The member that answered.
        target: Member,
    },
    /// The sender is seldom probed (thesis, 3.2.1).
    Unlucky,
    /// The sender wants to join; its own record is piggybacked.
    Join,
    /// The receiver is in; the first page of the list is piggybacked.
    Welcome {
        /// The joiner, as the sender recorded it.
        you: Member,
        /// The start of the next page, if there is one.
        next: Option<Key>,
    },
    /// The receiver's id is taken by this life: the receiver has to choose a later incarnation.
    IdTaken {
        /// The life that is on record.
        life: Member,
    },
    /// The two digests differ. These are the sender's, one for each bucket.
    Digests {
        /// By the leading bits of the hashed id.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "buckets::deserialize"))]
        buckets: [Digest; BUCKETS],
    },
    /// Asks for the receiver's records of this range of hashed ids.
    Pull {
        /// The start of the range.
        first: Key,
        /// The end of the range, inclusive.
        last: Key,
    },
    /// A page of the sender's records of a range of hashed ids.
    Records {
        /// The start of the page.
        first: Key,
        /// The end of the range, inclusive.
        last: Key,
        /// The start of the next page, if this one does not reach `last`.
        next: Option<Key>,
        /// True if the sender wants the receiver's records of that range, where they differ.
        exchange: bool,
    },
    /// Good-bye: the piggybacked record of the sender has the claim `Left`.
    Farewell,
}

/// A short hash of a list of live members, their revisions and metadata: equal lists have equal
/// digests, and different lists have different digests except for one in 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Digest(pub [u8; 2]);

/// A hashed id: lists are ordered and cut into pages by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Key(pub u64);

/// A claim about one member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// The member that the claim is about.
    pub member: Member,
    /// The number of changes that the member has made to its record, within this life. Only the
    /// member itself raises the number: to refute, or to change its metadata. Compared by serial
    /// number arithmetic.
    pub revision: u32,
    /// The claim about the member.
    pub claim: Claim,
}

/// The claim of a record, from the weakest to the strongest at equal revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Claim {
    /// The member is here, with this metadata.
    Alive(Metadata),
    /// The member may have failed, and may refute. Its metadata is sent on pages, for nodes that
    /// never met the member and have to reach it. As news, where nearly all know it, the metadata
    /// is left empty. Empty metadata means that the claim states none.
    Suspect(Metadata),
    /// The member is declared failed. It may still refute. Metadata as for a suspect.
    Failed(Metadata, Age),
    /// The member said good-bye: final for this life.
    Left(Age),
}

/// The number of periods since a member ended, as counted by the sender. The age is sent with
/// claims about the dead, so that they are forgotten everywhere at one time, and a node that learns
/// of them late keeps them no longer. 0 where the dead are remembered for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Age(pub u16);

/// An application broadcast.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Broadcast {
    /// The node that broadcast it.
    pub origin: Member,
    /// Its number among the origin's broadcasts.
    pub number: u32,
    /// The application's bytes.
    #[cfg_attr(feature = "serde", serde(with = "selvedge_core::wire::items"))]
    pub payload: Box<[u8]>,
}

/// The application's bytes about a member; empty when it gave none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Metadata(
    #[cfg_attr(feature = "serde", serde(with = "selvedge_core::wire::items"))] pub Box<[u8]>,
);

/// Defines a list of piggybacked items. The number of items that need no allocation is not in the
/// API.
macro_rules! piggybacked {
    ($(#[$doc:meta])* $name:ident: $count:literal $item:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(List<$item, $count>);

        impl $name {
            /// Appends an item. O(1), amortized.
            pub fn push(&mut self, item: $item) {
                self.0.push(item);
            }

            /// Removes the items for which `keep` returns false.
            pub fn retain(&mut self, keep: impl FnMut(&$item) -> bool) {
                self.0.retain(keep);
            }
        }

        impl Deref for $name {
            type Target = [$item];

            fn deref(&self) -> &[$item] {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut [$item] {
                &mut self.0
            }
        }

        impl FromIterator<$item> for $name {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                Self(items.into_iter().collect())
            }
        }

        impl Extend<$item> for $name {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                self.0.extend(items);
            }
        }

        impl IntoIterator for $name {
            type Item = $item;
            type IntoIter = wire::IntoIter<$item, $count>;

            fn into_iter(self) -> Self::IntoIter {
                self.0.into_iter()
            }
        }

        impl<'a> IntoIterator for &'a $name {
            type Item = &'a $item;
            type IntoIter = slice::Iter<'a, $item>;

            fn into_iter(self) -> Self::IntoIter {
                self.0.iter()
            }
        }
    };
}

piggybacked! {
    /// Piggybacked updates, or a page of the sender's list.
    Records: 3 Record
}

piggybacked! {
    /// Piggybacked broadcasts.
    Broadcasts: 0 Broadcast
}

impl Message {
    /// A message with nothing piggybacked.
    #[must_use]
    pub fn bare(body: Body) -> Self {
        Self {
            body,
            records: Records::default(),
            broadcasts: Broadcasts::default(),
        }
    }

    /// The length in bytes in postcard's encoding, without frame header and sender.
    /// O(piggybacked records and broadcasts).
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let records: usize = self.records.iter().map(Record::encoded_len).sum();
        let broadcasts: usize = self.broadcasts.iter().map(Broadcast::encoded_len).sum();
        self.body.encoded_len()
            + varint_len(self.records.len() as u64)
            + records
            + varint_len(self.broadcasts.len() as u64)
            + broadcasts
    }
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}

impl Body {
    /// Returns true if it asks for an answer. Only questions may be answered by a question.
    pub(crate) const fn is_question(&self) -> bool {
        matches!(
            self,
            Self::Ping { .. } | Self::PingRequest { .. } | Self::Join
        )
    }

    const fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Ping { origin, .. } => 2 + optional_member_len(*origin),
            Self::Ack { origin } => optional_member_len(*origin),
            Self::PingRequest { target: member }
            | Self::RelayedAck { target: member }
            | Self::IdTaken { life: member } => member_len(*member),
            Self::Unlucky | Self::Join | Self::Farewell => 0,
            Self::Welcome { you, next } => member_len(*you) + optional_key_len(*next),
            Self::Digests { .. } => 2 * BUCKETS,
            Self::Pull { first, last } => varint_len(first.0) + varint_len(last.0),
            Self::Records {
                first, last, next, ..
            } => varint_len(first.0) + varint_len(last.0) + optional_key_len(*next) + 1,
        }
    }
}

impl Claim {
    /// The metadata of the claim, if this kind has any.
    #[must_use]
    pub const fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::Alive(metadata) | Self::Suspect(metadata) | Self::Failed(metadata, _) => {
                Some(metadata)
            }
            Self::Left(_) => None,
        }
    }
}

impl Record {
    /// The number of bytes of metadata in the claim.
    pub(crate) fn metadata_len(&self) -> usize {
        self.claim.metadata().map_or(0, |metadata| metadata.0.len())
    }

    pub(crate) fn encoded_len(&self) -> usize {
        let claim = match &self.claim {
            Claim::Alive(metadata) | Claim::Suspect(metadata) => 1 + bytes_len(metadata.0.len()),
            Claim::Failed(metadata, age) => {
                1 + bytes_len(metadata.0.len()) + varint_len(age.0.into())
            }
            Claim::Left(age) => 1 + varint_len(age.0.into()),
        };
        member_len(self.member) + varint_len(u64::from(self.revision)) + claim
    }
}

impl Broadcast {
    pub(crate) fn encoded_len(&self) -> usize {
        member_len(self.origin) + varint_len(u64::from(self.number)) + bytes_len(self.payload.len())
    }
}

const fn optional_member_len(member: Option<Member>) -> usize {
    match member {
        Some(member) => 1 + member_len(member),
        None => 1,
    }
}

const fn optional_key_len(key: Option<Key>) -> usize {
    match key {
        Some(key) => 1 + varint_len(key.0),
        None => 1,
    }
}
