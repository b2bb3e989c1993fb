//! What travels; nothing else does.

use selvedge_core::Member;
use selvedge_core::wire::{member_len, varint_len};
use smallvec::SmallVec;

use crate::Token;

/// The protocol's kind in a frame header.
pub const KIND: u8 = 2;

/// The longest [`Message::Ok`] without its list.
pub(crate) const FIXED_MAX_LEN: usize = 1 + 5 + 10 + 16 + 2 + 1 + 25;

/// A wish to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Request {
    /// Its number, from 1. Of two requests the one with the lower number has priority, then the
    /// one with the lower member.
    pub number: u64,
    /// The highest number of a token that it may enter with: at least `number`.
    pub up_to: u64,
    /// The number of the token with which its sender entered last; 0 for never.
    pub last: u64,
}

/// Somebody who may be inside, or may get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Rival {
    /// Who.
    pub member: Member,
    /// The highest number of a token that it may have.
    pub up_to: u64,
}

/// Rivals in order of [`Member`]s, each once.
pub type Rivals = SmallVec<[Rival; 2]>;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Message {
    /// May I enter? Answered by [`Message::Ok`], now or later.
    Request {
        /// The wish.
        request: Request,
        /// The first answer did not hold the whole list: go on behind this member.
        after: Option<Member>,
    },
    /// You may, as far as I am concerned, but mind these.
    Ok {
        /// The incarnation of the receiver that asked: a message reaches a node in whichever life
        /// it is, and each life begins with low numbers.
        life: u32,
        /// To which request.
        number: u64,
        /// Behind which member this part of the list begins.
        after: Option<Member>,
        /// To whom else the sender has said OK, and has not heard that it is over.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::message::arbitrary_rivals))]
        rivals: Rivals,
        /// Whether the list goes on.
        more: bool,
        /// The highest token that was used, as far as the sender knows.
        floor: Token,
    },
    /// I have your request already; you have to wait. Answers a request that comes again.
    Wait {
        /// Which request.
        number: u64,
    },
    /// My request is over.
    Release {
        /// All of the sender's requests with this number or a lower one are over.
        number: u64,
        /// The number of the token with which the sender entered last; 0 for never.
        last: u64,
    },
    /// If you are inside with a lower token than this, you were passed over as dead.
    Fence {
        /// Somebody entered with it.
        token: Token,
    },
    /// This is the highest token that may have been used, as far as I know. Told to a newcomer.
    Floor {
        /// It.
        token: Token,
    },
}

impl Message {
    /// How long the message becomes in postcard's encoding.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let after_len = |after: &Option<Member>| 1 + after.map_or(0, member_len);
        1 + match self {
            Self::Request { request, after } => request.encoded_len() + after_len(after),
            Self::Ok {
                life,
                number,
                after,
                rivals,
                floor,
                ..
            } => {
                varint_len((*life).into())
                    + varint_len(*number)
                    + after_len(after)
                    + rivals_len(rivals)
                    + 1
                    + floor.encoded_len()
            }
            Self::Wait { number } => varint_len(*number),
            Self::Release { number, last } => varint_len(*number) + varint_len(*last),
            Self::Fence { token } | Self::Floor { token } => token.encoded_len(),
        }
    }
}

impl Token {
    pub(crate) const fn encoded_len(self) -> usize {
        varint_len(self.number) + member_len(self.holder)
    }
}

impl Request {
    const fn encoded_len(&self) -> usize {
        varint_len(self.number) + varint_len(self.up_to) + varint_len(self.last)
    }
}

impl Rival {
    pub(crate) const fn encoded_len(&self) -> usize {
        member_len(self.member) + varint_len(self.up_to)
    }
}

fn rivals_len(rivals: &[Rival]) -> usize {
    let list: usize = rivals.iter().map(Rival::encoded_len).sum();
    varint_len(rivals.len() as u64) + list
}

/// Whether every member comes once, in order, and behind `after`.
pub(crate) fn in_order(after: Option<Member>, rivals: &[Rival]) -> bool {
    let members = rivals.iter().map(|rival| Some(rival.member));
    let mut before = after;
    for member in members {
        if before.is_some() && before >= member {
            return false;
        }
        before = member;
    }
    true
}

#[cfg(feature = "arbitrary")]
pub(crate) fn arbitrary_rivals(
    input: &mut arbitrary::Unstructured<'_>,
) -> arbitrary::Result<Rivals> {
    input.arbitrary_iter()?.collect()
}
