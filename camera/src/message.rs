//! The messages. Nothing else travels between nodes.

use selvedge_core::Member;
use selvedge_core::wire::{self, List, member_len, varint_len};

use crate::Token;

/// The protocol's kind in a frame header.
pub const KIND: u8 = 2;

/// The longest [`Message::Ok`] without its list.
pub(crate) const OK_MAX_LEN: usize = 1 + 5 + 10 + 16 + 2 + 1 + 25;

/// The longest [`Message::Up`] without its list, and longer than an [`Message::Echo`].
pub(crate) const UP_MAX_LEN: usize = 1 + 5 + (15 + 10 + 5) + 5 + 16 + 2 + 1 + 25;

/// The longest [`Rival`].
pub(crate) const RIVAL_MAX_LEN: usize = 15 + 10;

/// A wish to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Request {
    /// Its number, from 1. Of two requests the one with the lower number has priority, and at equal
    /// numbers the one with the lower member.
    pub number: u64,
    /// The highest number of a token that the request may enter with: at least `number`.
    pub up_to: u64,
    /// The number of the token with which its sender entered last; 0 for never.
    pub last: u64,
}

/// A node that may be inside, or may get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Rival {
    /// Which node.
    pub member: Member,
    /// The highest number of a token that it may have.
    pub up_to: u64,
}

/// A node of a tree below another one, in the order of a walk through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Branch {
    /// How far below: 1 for a child.
    pub depth: u8,
    /// Which node.
    pub member: Member,
}

/// Nodes of a tree in the order of a walk: each comes after the node that it is below.
pub type Branches = List<Branch, 4>;

/// Which tree: that of one request, as it was built for the nth time. A later one is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TreeId {
    /// The node that wants to enter.
    pub root: Member,
    /// The number of its request.
    pub number: u64,
    /// Counts from 1, one more each time the tree has to be built anew.
    pub attempt: u32,
}

/// Rivals in order of [`Member`]s, each once.
pub type Rivals = List<Rival, 2>;

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
    /// You may enter, as far as I am concerned, but mind these.
    Ok {
        /// The incarnation of the receiver that asked: a message reaches a node in whichever life
        /// it is, and each life begins with low numbers.
        life: u32,
        /// Which request this answers.
        number: u64,
        /// Behind which member this part of the list begins.
        after: Option<Member>,
        /// Other nodes to which the sender has said OK, and has not heard that their request is
        /// over.
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
        /// The sender's requests that might have entered with a token of this number or a lower one
        /// are over. A node that names the sender as a [`Rival`] up to that number has not heard of
        /// it yet.
        over: u64,
    },
    /// If you are inside with a lower token than this, you were passed over as dead.
    Fence {
        /// Another node entered with this token.
        token: Token,
    },
    /// This is the highest token that may have been used, as far as I know. Told to a newcomer.
    Floor {
        /// The token.
        token: Token,
    },
    /// The slow path: be my child in this tree, and ask your neighbours. Answered by
    /// [`Message::Nack`], or by [`Message::Echo`] or [`Message::Up`] as soon as there is something
    /// to tell.
    Join {
        /// Which tree.
        tree: TreeId,
        /// See [`Request::up_to`].
        up_to: u64,
        /// See [`Request::last`].
        last: u64,
    },
    /// I have another parent in this tree, or do not take part in it.
    Nack {
        /// Which tree.
        tree: TreeId,
    },
    /// The tree below me is built; not all in it have said OK.
    Echo {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// Which tree.
        tree: TreeId,
        /// How many levels `branches` holds in full: 0 when they do not fit a frame.
        levels: u8,
        /// The nodes below.
        branches: Branches,
    },
    /// I and all below me have said OK, but mind these.
    Up {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// Which tree.
        tree: TreeId,
        /// How many have said OK.
        oks: u32,
        /// Behind which member this part of the list begins.
        after: Option<Member>,
        /// Other nodes to which they have said OK, and have not heard that their request is over.
        rivals: Rivals,
        /// Whether the list goes on.
        more: bool,
        /// The highest token that was used, as far as they know.
        floor: Token,
    },
    /// I am your parent now, if I was not before. Tell me again what you told it.
    Adopt {
        /// Which tree.
        tree: TreeId,
        /// See [`Request::up_to`].
        up_to: u64,
        /// See [`Request::last`].
        last: u64,
        /// Your answer did not hold the whole list: go on behind this member.
        after: Option<Member>,
    },
    /// To the root: a part of this tree is lost, build it anew.
    Broken {
        /// Which tree.
        tree: TreeId,
    },
    /// The root's request is over. Told from parent to child where a multicast does not reach all.
    Over {
        /// The node that wanted to enter.
        root: Member,
        /// See [`Message::Release`].
        number: u64,
        /// See [`Message::Release`].
        last: u64,
        /// See [`Message::Release`].
        over: u64,
    },
    /// I have no room to remember an OK, so I give none; but you need not wait for me. Answers a
    /// request.
    Abstain {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// Which request.
        number: u64,
        /// The sender's requests that might have entered with a token of this number or a lower one
        /// are over. A later one needs its own answer.
        over: u64,
        /// The highest token that was used, as far as the sender knows.
        floor: Token,
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
            Self::Join { tree, up_to, last } => {
                tree.encoded_len() + varint_len(*up_to) + varint_len(*last)
            }
            Self::Nack { tree } | Self::Broken { tree } => tree.encoded_len(),
            Self::Echo {
                life,
                tree,
                branches,
                ..
            } => varint_len((*life).into()) + tree.encoded_len() + 1 + branches_len(branches),
            Self::Up {
                life,
                tree,
                oks,
                after,
                rivals,
                floor,
                ..
            } => {
                varint_len((*life).into())
                    + tree.encoded_len()
                    + varint_len(u64::from(*oks))
                    + after_len(after)
                    + rivals_len(rivals)
                    + 1
                    + floor.encoded_len()
            }
            Self::Adopt {
                tree,
                up_to,
                last,
                after,
            } => tree.encoded_len() + varint_len(*up_to) + varint_len(*last) + after_len(after),
            Self::Over {
                root,
                number,
                last,
                over,
            } => member_len(*root) + varint_len(*number) + varint_len(*last) + varint_len(*over),
            Self::Release { number, last, over } => {
                varint_len(*number) + varint_len(*last) + varint_len(*over)
            }
            Self::Fence { token } | Self::Floor { token } => token.encoded_len(),
            Self::Abstain {
                life,
                number,
                over,
                floor,
            } => {
                varint_len((*life).into())
                    + varint_len(*number)
                    + varint_len(*over)
                    + floor.encoded_len()
            }
        }
    }
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}

impl TreeId {
    const fn encoded_len(&self) -> usize {
        member_len(self.root) + varint_len(self.number) + varint_len(self.attempt as u64)
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

pub(crate) fn branches_len(branches: &[Branch]) -> usize {
    let list: usize = branches.iter().map(|it| 1 + member_len(it.member)).sum();
    varint_len(branches.len() as u64) + list
}

/// Whether these can be met on a walk to this depth at most.
pub(crate) fn is_walk(branches: &[Branch], depth: u8) -> bool {
    let mut before = 0;
    for branch in branches {
        if branch.depth == 0 || branch.depth > before + 1 || branch.depth > depth {
            return false;
        }
        before = branch.depth;
    }
    true
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
