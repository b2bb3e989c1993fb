//! The contract between a protocol and its host.

use core::fmt::Debug;
use core::hash::{Hash, Hasher};

use crate::{Context, Delta, Member};

/// A protocol as a pure state machine.
///
/// It does nothing by itself: a host passes it [`Input`]s and carries out the [`Effect`]s that it
/// puts into the outbox of its [`Context`]. The same inputs, times and choices give the same
/// effects, on every platform.
///
/// The state holds no absolute time: timers are tags, and the [`Driver`](crate::Driver) knows the
/// due time of each. The model checker compares and hashes the state, so a value that is not part
/// of it (a counter, a reused buffer) is wrapped in [`Untracked`](crate::Untracked).
pub trait Machine: Clone + Eq + Hash + Debug {
    /// The messages between peers.
    type Message: Clone + Eq + Ord + Hash + Debug;
    /// Tags of the timers that it arms; at most one timer a tag is armed at a time.
    type Timer: Copy + Ord + Hash + Debug;
    /// The commands of the application.
    type Command: Clone + Eq + Hash + Debug;
    /// The events for the application.
    type Event: Clone + Eq + Hash + Debug;
    /// The reason why an input was refused: a bad command, or a peer that misbehaves.
    type Reject: Clone + Eq + Debug;

    /// Takes one step.
    ///
    /// # Errors
    /// When the input is refused. Then nothing changed and nothing was put into the outbox.
    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject>;
}

/// An input of a machine.
#[derive(Debug)]
pub enum Input<M: Machine> {
    /// A peer's message arrived. The host names its sender, as authentic as its transport is.
    Message {
        /// The sender and its life.
        from: Member,
        /// The content.
        message: M::Message,
    },
    /// An armed timer is due, and is no longer armed.
    Tick(M::Timer),
    /// The membership service learned something.
    Membership(Delta),
    /// A command of the application.
    Command(M::Command),
}

/// An effect that a machine asks its host for. Hosts carry effects out in the order they come.
#[derive(Debug)]
pub enum Effect<M: Machine> {
    /// Send to one peer, best effort.
    Send {
        /// The receiver.
        to: Member,
        /// The content.
        message: M::Message,
    },
    /// Send to all nodes that can be reached at once, best effort. A host without multicast sends
    /// to each member.
    Multicast {
        /// The content.
        message: M::Message,
    },
    /// Report to the application.
    Event(M::Event),
}

// Derives would ask that the machine itself be Clone, Eq and so on in each of its parts.
impl<M: Machine> Clone for Input<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Message { from, message } => Self::Message {
                from: *from,
                message: message.clone(),
            },
            Self::Tick(timer) => Self::Tick(*timer),
            Self::Membership(delta) => Self::Membership(*delta),
            Self::Command(command) => Self::Command(command.clone()),
        }
    }
}

impl<M: Machine> Clone for Effect<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Send { to, message } => Self::Send {
                to: *to,
                message: message.clone(),
            },
            Self::Multicast { message } => Self::Multicast {
                message: message.clone(),
            },
            Self::Event(event) => Self::Event(event.clone()),
        }
    }
}

impl<M: Machine> PartialEq for Effect<M> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Send { to, message },
                Self::Send {
                    to: other_to,
                    message: other_message,
                },
            ) => to == other_to && message == other_message,
            (Self::Multicast { message }, Self::Multicast { message: other }) => message == other,
            (Self::Event(event), Self::Event(other)) => event == other,
            (Self::Send { .. } | Self::Multicast { .. } | Self::Event(_), _) => false,
        }
    }
}

impl<M: Machine> Eq for Effect<M> {}

impl<M: Machine> Hash for Effect<M> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        core::mem::discriminant(self).hash(hasher);
        match self {
            Self::Send { to, message } => (to, message).hash(hasher),
            Self::Multicast { message } => message.hash(hasher),
            Self::Event(event) => event.hash(hasher),
        }
    }
}
