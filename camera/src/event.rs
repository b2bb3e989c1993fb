//! Commands of the application, events for it, and the errors.

use selvedge_core::Member;
use selvedge_core::roster::OwnEnd;
use thiserror::Error;

use crate::{ConfigError, Token};

/// A command of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter the section. [`Event::Entered`] or [`Event::Refused`] follows.
    Enter,
    /// Leave the section.
    Exit,
    /// Stop waiting for the section.
    Cancel,
    /// Give back the permissions that [`Config::keep`](crate::Config::keep) kept: the next entry
    /// asks for them. Refused while this node waits or is inside.
    GiveBack,
    /// Set a new bound for the number of lives, see [`Config::max_lives`](crate::Config::max_lives).
    SetMaxLives(u32),
}

/// A notification to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// This node waits for that member, which, as far as this node knows, is inside or wants to
    /// enter too. Emitted once for each such member and request of this node, and again when that
    /// member was outside meanwhile and wants to enter once more.
    Waiting(Member),
    /// Too few nodes are known for the fast path: the request goes through the whole mesh.
    SlowPathTaken,
    /// This node is inside, with this token.
    Entered(Token),
    /// This node has left the section.
    Released(Token),
    /// This node no longer waits.
    Cancelled,
    /// This node was passed over as dead while inside, and another node entered with this higher
    /// token. Changes under the lower token must be undone or be refused by the resource. Exit as
    /// soon as possible.
    Fenced(Token),
    /// This node entered past that member, which was declared failed and may have been inside.
    /// Emitted once for each life, before [`Entered`](Self::Entered), however often this node
    /// enters past it. Emitted again if that life was back on the list meanwhile, or was
    /// forgotten ([`Config::peer_limit`](crate::Config::peer_limit)). A later life of its node is
    /// another member.
    PassedOver(Member),
    /// The request is over without an entry.
    Refused(Refusal),
}

/// The reason for the end of a request without an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// All nodes that can be reached are too few.
    #[error(
        "{answered} nodes gave their OK, this node included, and more than half of max_lives, {max_lives}, must: \
         ask again when more nodes are here or the requests of others have ended, or lower max_lives to the number of \
         lives that can be present"
    )]
    TooFew {
        /// The number of nodes that gave their OK, this node included.
        answered: u32,
        /// The bound.
        max_lives: u32,
    },
    /// More nodes may be inside than can be remembered.
    #[error("cannot remember all nodes that may be inside: the limit is {limit}; raise peer_limit")]
    NoRoom {
        /// [`Config::peer_limit`](crate::Config::peer_limit).
        limit: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Answers to this node's request are overdue.
    Resend,
    /// Answers in the trees of slow requests are overdue.
    Tree,
    /// The OKs that were not released are due to be sent again.
    Refresh,
    /// The wait for a member that was declared failed is over.
    Takeover(Member),
}

/// The reason for refusing an input. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// This node waits already: it has one request at a time.
    #[error("this node waits for the section already: wait for Entered, or give Cancel")]
    AlreadyWaiting,
    /// This node is inside already: it enters once at a time.
    #[error("this node is inside already: give Exit first")]
    AlreadyInside,
    /// Only a node that is inside can leave.
    #[error("this node is not inside: wait for Entered")]
    NotInside,
    /// There is nothing to cancel.
    #[error("this node does not wait for the section: give Enter first")]
    NotWaiting,
    /// The bound cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// The membership service reports the end of this node's own life.
    #[error(transparent)]
    OwnEnd(#[from] OwnEnd),
    /// A peer sent a message that a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// A message that a correct peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// It has this node's id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// A request has number 0, or its range ends before it begins.
    #[error("its request range {number}..{up_to} is empty")]
    Number {
        /// The number.
        number: u64,
        /// The highest number that it may enter with.
        up_to: u64,
    },
    /// A list is not sorted, or claims to go on after its end.
    #[error("its list is not sorted")]
    List,
    /// The nodes of a tree do not come as on a walk through it.
    #[error("its subtree is malformed: its nodes are not in the order of a walk")]
    Tree,
}
