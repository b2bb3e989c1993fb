//! What the leader of a group wants done. It owns neither the state nor the way to other groups: the
//! node that leads carries its wishes out after the call.

use selvedge_core::{Member, Span};

use crate::{Answer, GroupId, Request};

/// A wish of a group's leader. `U` is an update of the group's state, `T` a timer of the leader, `E` an
/// event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish<U, T, E> {
    /// Propose an update of the group's own state. What it came to is told when it is applied.
    Propose(U),
    /// Read the group's own state: it is told under this number when the state is up to date.
    Read(u64),
    /// Ask the leader of another group, whichever node that is. It may be lost.
    Ask { group: GroupId, request: Request },
    /// Tell the leader of another group what it did not ask for just now, whichever node that is. It may
    /// be lost.
    Inform { group: GroupId, answer: Answer },
    /// Answer a node that asked. It may be lost.
    Tell { to: Member, answer: Answer },
    /// Arm a timer of this group's leader.
    Arm { timer: T, after: Span },
    /// Arm it for a moment between `after` and twice `after`, by chance.
    ArmAbout { timer: T, after: Span },
    /// Disarm it.
    Disarm(T),
    /// Tell the application.
    Event(E),
}

impl<U, T, E> Wish<U, T, E> {
    /// The same, in the words of the node.
    pub(crate) fn map<V, R, F>(
        self,
        update: impl FnOnce(U) -> V,
        timer: impl FnOnce(T) -> R,
        event: impl FnOnce(E) -> F,
    ) -> Wish<V, R, F> {
        match self {
            Self::Propose(it) => Wish::Propose(update(it)),
            Self::Read(number) => Wish::Read(number),
            Self::Ask { group, request } => Wish::Ask { group, request },
            Self::Inform { group, answer } => Wish::Inform { group, answer },
            Self::Tell { to, answer } => Wish::Tell { to, answer },
            Self::Arm { timer: it, after } => Wish::Arm {
                timer: timer(it),
                after,
            },
            Self::ArmAbout { timer: it, after } => Wish::ArmAbout {
                timer: timer(it),
                after,
            },
            Self::Disarm(it) => Wish::Disarm(timer(it)),
            Self::Event(it) => Wish::Event(event(it)),
        }
    }
}

/// The wishes of one call, in their order.
pub(crate) type Wishes<U, T, E> = alloc::vec::Vec<Wish<U, T, E>>;
