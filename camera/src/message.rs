//! The messages: all that nodes send to each other.

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

/// The numbers of one request to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Request {
    /// Its number, from 1. Of two requests, the request with the lower number has priority, and at
    /// equal numbers the request of the lower member.
    pub number: u64,
    /// The highest number of a token that the request may enter with: at least `number`.
    pub up_to: u64,
    /// The number of the token with which its sender entered last; 0 for never.
    pub last: u64,
}

/// A node that may be inside, or may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Rival {
    /// The node.
    pub member: Member,
    /// The highest number of a token that it may have.
    pub up_to: u64,
}

/// A node of a tree below another one, in the order of a walk through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Branch {
    /// The number of levels below: 1 for a child.
    pub depth: u8,
    /// The node.
    pub member: Member,
}

/// Nodes of a tree in the order of a walk: each comes after its parent.
pub type Branches = List<Branch, 4>;

/// The id of a tree: of one request, built for the nth time. A later tree has a higher id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TreeId {
    /// The node that wants to enter.
    pub root: Member,
    /// The number of its request.
    pub number: u64,
    /// Counts from 1, one more each time the tree has to be built again.
    pub attempt: u32,
}

/// Rivals in order of [`Member`]s, each once.
pub type Rivals = List<Rival, 2>;

/// A message of one section's protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Message {
    /// A request to enter. Answered by [`Message::Ok`], now or later.
    Request {
        /// The request.
        request: Request,
        /// The member after which the list shall go on, if the first answer did not hold all of it.
        after: Option<Member>,
    },
    /// The sender's permission to enter, with a list of rivals. The receiver may have to wait for
    /// these.
    Ok {
        /// The incarnation of the receiver that asked. A message can reach a later life of the same
        /// node, and each life begins with low numbers.
        life: u32,
        /// The number of the request that this answers.
        number: u64,
        /// The member after which this part of the list begins.
        after: Option<Member>,
        /// Other nodes that have the sender's OK, and whose request is not over as far as the
        /// sender knows.
        rivals: Rivals,
        /// True if the list goes on.
        more: bool,
        /// The highest token that was used, as far as the sender knows.
        floor: Token,
    },
    /// The answer to a request that comes again: the sender has the request, and the receiver has to
    /// wait.
    Wait {
        /// The number of the request.
        number: u64,
    },
    /// The end of the sender's request.
    Release {
        /// All of the sender's requests with this number or a lower one are over.
        number: u64,
        /// The number of the token with which the sender entered last; 0 for never.
        last: u64,
        /// The sender's requests that might have entered with a token of this number or a lower one
        /// are over. A node that names the sender as a [`Rival`] up to that number has not learned
        /// that yet.
        over: u64,
    },
    /// A notice that a receiver that is inside with a lower token was passed over as dead.
    Fence {
        /// The token with which another node entered.
        token: Token,
    },
    /// The highest token that may have been used, as far as the sender knows. Sent to a newcomer.
    Floor {
        /// The token.
        token: Token,
    },
    /// The slow path's request to become the sender's child in this tree, and to ask the neighbours.
    /// Answered by [`Message::Nack`] at once, or by [`Message::Echo`] or [`Message::Up`] when the
    /// tree below the receiver is built.
    Join {
        /// The tree.
        tree: TreeId,
        /// See [`Request::up_to`].
        up_to: u64,
        /// See [`Request::last`].
        last: u64,
    },
    /// The answer of a node that has another parent in this tree, or does not take part in it.
    Nack {
        /// The tree.
        tree: TreeId,
    },
    /// A report that the tree below the sender is built, and that OKs of some nodes in it are
    /// missing.
    Echo {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// The tree.
        tree: TreeId,
        /// The number of levels that `branches` holds in full: 0 if they do not fit a frame.
        levels: u8,
        /// The nodes below.
        branches: Branches,
    },
    /// The OKs of the sender and of all nodes below it, with a list of rivals.
    Up {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// The tree.
        tree: TreeId,
        /// The number of nodes that gave their OK.
        oks: u32,
        /// The member after which this part of the list begins.
        after: Option<Member>,
        /// Other nodes that have the OK of these nodes, and whose request is not over as far as
        /// these know.
        rivals: Rivals,
        /// True if the list goes on.
        more: bool,
        /// The highest token that was used, as far as they know.
        floor: Token,
    },
    /// A notice that the sender is the receiver's parent now, if it was not before: the receiver
    /// sends its last report again.
    Adopt {
        /// The tree.
        tree: TreeId,
        /// See [`Request::up_to`].
        up_to: u64,
        /// See [`Request::last`].
        last: u64,
        /// The member after which the list shall go on, if the last report did not hold all of it.
        after: Option<Member>,
    },
    /// A report to the root that a part of this tree is lost: the root builds the tree again.
    Broken {
        /// The tree.
        tree: TreeId,
    },
    /// The end of the root's request, sent from parent to child if a multicast does not reach all.
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
    /// The answer of a node that has no room to remember an OK: it gives none, and the receiver need
    /// not wait for it.
    Abstain {
        /// The incarnation of the receiver that asked.
        life: u32,
        /// The number of the request.
        number: u64,
        /// The sender's requests that might have entered with a token of this number or a lower one
        /// are over. A later one needs its own answer.
        over: u64,
        /// The highest token that was used, as far as the sender knows.
        floor: Token,
    },
}

impl Message {
    /// The length of the message in postcard's encoding, in bytes.
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

/// Returns true if these can be met in this order on a walk down to `depth`.
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

/// Returns true if every member comes once, in order, and after `after`.
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
