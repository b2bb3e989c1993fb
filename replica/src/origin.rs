//! The life since which a member remembers, and so the names under which it votes.
//!
//! A configuration names a node in one life, and a member votes there if its memory holds
//! everything that any life of the node did in that configuration under that name. The memory began
//! in one life, and goes on through the lives that restore it, to the present one. A life that
//! begins without it ends it: it is not restored after that. So the memories of a node follow one
//! another, and each life belongs to one of them.
//!
//! A member votes where it is named in a life from that in which its memory began to the present
//! one. A former memory of the node does not: it had ended before that life, so all processes that
//! have it are in earlier lives, also one that still runs. Nor does a later memory: it began after
//! that life. A single memory votes under the name and holds all votes under it. Its processes of
//! lives before the named one do not vote, so of two that run at once the earlier one is quiet. It
//! also asks for nothing: the configuration means another process.
//!
//! Two rules narrow the meaning of one memory, and one widens it:
//!
//! - Life 0 is where counting begins, and is never a number from a clock. The first configuration
//!   of a group names the founders in it, whose lives are not yet known. It stands for the memory
//!   that began with the group, in any life, and there is one of each node. So life 0 comes before
//!   all others, also where a comparison of numbers that wrap would put it elsewhere, and never
//!   between two of them.
//! - A node that dropped its memory and goes on in the same life has two memories in one life. The
//!   former one voted in no configuration behind the last one that it knew, and the present one takes
//!   no configuration up to that: together they vote in each of them at most once.
//! - A node that stores may have stored nothing of a group, or a mark alone. Its lives since it
//!   began to store did nothing in the configurations behind the mark, and each knows that: so a
//!   memory of the group that begins in a later life holds everything that they did, and votes
//!   under their names.

use selvedge_core::{Incarnation, Member};
use serde::{Deserialize, Serialize};

/// The life in which a first configuration names founders. It is before all others.
pub(crate) const FOUNDING: Incarnation = Incarnation(0);

/// The origin of a member's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The node, in the life in which its memory began.
    pub(crate) voter: Member,
    /// True if its memory began with the group.
    pub(crate) is_founder: bool,
    /// Configurations up to this number are not taken: a memory that was dropped may have voted in
    /// them.
    pub(crate) mark: u64,
}

impl Origin {
    /// A memory that begins now.
    pub(crate) const fn of(voter: Member) -> Self {
        Self {
            voter,
            is_founder: false,
            mark: 0,
        }
    }

    /// A memory that begins now, and with the group.
    pub(crate) const fn founder(voter: Member) -> Self {
        Self {
            is_founder: true,
            ..Self::of(voter)
        }
    }

    /// A memory that begins now, behind this configuration.
    pub(crate) const fn behind(voter: Member, mark: u64) -> Self {
        Self {
            mark,
            ..Self::of(voter)
        }
    }

    /// Returns true if it holds, in the life `present`, everything done under the name of the life
    /// `named`.
    pub(crate) fn answers_to(&self, named: Incarnation, present: Incarnation) -> bool {
        let began = self.voter.incarnation;
        if named == FOUNDING {
            return self.is_founder || began == FOUNDING;
        }
        named.is_within(began, present)
    }

    /// Returns true if a configuration of this number may be taken.
    pub(crate) const fn takes(&self, number: u64) -> bool {
        number > self.mark
    }
}

/// Returns true if a node that is named in `known` gets the name of `life` when it asks for that.
pub(crate) fn is_later(life: Incarnation, known: Incarnation) -> bool {
    match known == FOUNDING {
        true => life != FOUNDING,
        false => life != FOUNDING && life.newer_than(known),
    }
}
