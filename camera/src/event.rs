//! What the application is told, what it may ask, and the errors.

use selvedge_core::{Delta, Member};
use thiserror::Error;

use crate::{ConfigError, Token};

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Get this node into the section. [`Event::Entered`] or [`Event::Refused`] follows.
    Enter,
    /// Leave the section.
    Exit,
    /// Do not wait any longer.
    Cancel,
    /// Give back the permissions that [`Config::keep`](crate::Config::keep) kept: the next entry asks
    /// for them. Not while this node waits or is inside.
    GiveBack,
    /// A new bound for the number of nodes, see [`Config::upper`](crate::Config::upper).
    Bound(u32),
}

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// We wait for this node: it wants to enter too, or is inside, as far as is known. Told once
    /// for each such node and request of ours, and again when it was out meanwhile and wants to enter
    /// once more.
    Waiting(Member),
    /// Too few nodes are known for the fast path: the request goes through the whole mesh.
    SlowPath,
    /// We are inside, with this token.
    Entered(Token),
    /// We are out again.
    Released(Token),
    /// We no longer wait.
    Cancelled,
    /// We were passed over as dead while inside, and somebody entered with this higher token. What
    /// is done under ours must be undone or be refused by the resource. Exit as soon as possible.
    Fenced(Token),
    /// We entered past this node, which was declared failed and may have been inside.
    PassedOver(Member),
    /// The request is over without an entry.
    Refused(Refusal),
}

/// Why a request ended without an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// All that can be reached are too few.
    #[error(
        "{answered} nodes gave their OK, ourselves included, and more than half of {upper} must: \
         wait for more to join or for others' trees to end, or correct the bound"
    )]
    TooFew {
        /// How many did, this node included.
        answered: u32,
        /// The bound.
        upper: u32,
    },
    /// More may be inside than can be remembered.
    #[error(
        "there is no room to remember all who may be inside, with a limit of {limit} nodes: raise \
         peer_limit"
    )]
    NoRoom {
        /// [`Config::peer_limit`](crate::Config::peer_limit).
        limit: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Answers to our request are overdue.
    Resend,
    /// Answers in the trees of slow requests are overdue.
    Tree,
    /// Look after OKs that were never released.
    Refresh,
    /// The time of a node that was declared failed is over.
    Takeover(Member),
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Reject {
    /// One request at a time.
    #[error("this node waits for the section already: wait for Entered, or give Cancel")]
    AlreadyWaiting,
    /// One entry at a time.
    #[error("this node is inside already: give Exit first")]
    AlreadyInside,
    /// Only who is inside can leave.
    #[error("this node is not inside: wait for Entered")]
    NotInside,
    /// There is nothing to cancel.
    #[error("this node does not wait for the section: give Enter first")]
    NotWaiting,
    /// The bound cannot work.
    #[error("the settings were not taken: {0}")]
    Config(#[from] ConfigError),
    /// The membership service speaks of this node itself as over.
    #[error("{0:?} is about this node itself: tell it only of others")]
    OwnMember(Delta),
    /// A peer sent what no sound peer sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// What no sound peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Misbehaviour {
    /// It has our id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// A request with number 0, or one that ends before it begins.
    #[error("its request range {number}..{up_to} is empty")]
    Number {
        /// The number.
        number: u64,
        /// The highest number that it may enter with.
        up_to: u64,
    },
    /// A list is not sorted, or says that it goes on behind its end.
    #[error("its list is not in order")]
    List,
    /// The nodes of a tree do not come as on a walk through it.
    #[error("its subtree is malformed: its nodes are not in the order of a walk")]
    Tree,
}
