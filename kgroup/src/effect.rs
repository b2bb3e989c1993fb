//! The effects of a group's leader. The leader has neither the state nor the way to other groups: the node
//! that leads carries its effects out after the call.
//! So another member that begins to lead follows from the state alone, and a check can run leaders over ideal
//! groups, where real ones would cost three replicas each.

use selvedge_core::{Member, Span};
use selvedge_groups::{GroupId, store};

use crate::{Answer, LeaderEvent, LeaderTimer, Request, Update};

/// An effect of a group's leader. `U` is an update of the group's state, `T` a timer of the leader, `E` an
/// event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<U, T, E> {
    /// Propose an update of the group's own state. The leader receives the outcome when it is applied.
    Propose(U),
    /// Read the group's own state: the leader is notified under this number when the state is up to date.
    Read(u64),
    /// Ask the leader of another group, whichever node that is. It may be lost.
    Ask {
        /// The group.
        group: GroupId,
        /// The request.
        request: Request,
    },
    /// Send the leader of another group, whichever node that is, an answer to no present question. It may be
    /// lost.
    Inform {
        /// The group.
        group: GroupId,
        /// The answer.
        answer: Answer,
    },
    /// Answer a node that asked. It may be lost.
    Answer {
        /// The node.
        to: Member,
        /// The answer.
        answer: Answer,
    },
    /// Arm a timer of this group's leader.
    Arm {
        /// The timer.
        timer: T,
        /// The delay.
        after: Span,
    },
    /// Arm it for a moment between `after` and twice `after`, by chance.
    ArmAbout {
        /// The timer.
        timer: T,
        /// The shortest delay.
        after: Span,
    },
    /// Disarm it.
    Disarm(T),
    /// Notify the application.
    Event(E),
}

impl<U, T, E> Effect<U, T, E> {
    /// The same, in the words of the node.
    pub fn map<V, R, F>(
        self,
        update: impl FnOnce(U) -> V,
        timer: impl FnOnce(T) -> R,
        event: impl FnOnce(E) -> F,
    ) -> Effect<V, R, F> {
        match self {
            Self::Propose(it) => Effect::Propose(update(it)),
            Self::Read(number) => Effect::Read(number),
            Self::Ask { group, request } => Effect::Ask { group, request },
            Self::Inform { group, answer } => Effect::Inform { group, answer },
            Self::Answer { to, answer } => Effect::Answer { to, answer },
            Self::Arm { timer: it, after } => Effect::Arm {
                timer: timer(it),
                after,
            },
            Self::ArmAbout { timer: it, after } => Effect::ArmAbout {
                timer: timer(it),
                after,
            },
            Self::Disarm(it) => Effect::Disarm(timer(it)),
            Self::Event(it) => Effect::Event(event(it)),
        }
    }
}

impl From<store::LeaderEffect> for Effect<Update, LeaderTimer, LeaderEvent> {
    fn from(effect: store::LeaderEffect) -> Self {
        match effect {
            store::LeaderEffect::Propose(change) => Self::Propose(Update::Map(change)),
            store::LeaderEffect::Read(number) => Self::Read(number),
            store::LeaderEffect::Answer { to, answer } => Self::Answer {
                to,
                answer: Answer::Store(answer),
            },
            store::LeaderEffect::Arm { timer, after } => Self::Arm {
                timer: LeaderTimer::Map(timer),
                after,
            },
        }
    }
}

/// The effects of one call, in their order.
pub type Effects<U, T, E> = alloc::vec::Vec<Effect<U, T, E>>;
