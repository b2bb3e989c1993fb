//! The types of the data between an application and a host.

use core::fmt::Debug;

use super::Outcome;
use crate::Machine;

/// The types of a [`channel`](super::channel).
///
/// Each [`Machine`] is a service with its own commands and events; the answer to a command carries
/// nothing but success. A host that offers more than its machine does has a service of its own, for
/// instance with commands for itself, or with answers.
pub trait Service {
    /// A command of the application.
    type Command: Debug;
    /// The answer to a command that was carried out.
    type Answer: Debug;
    /// An event for the application.
    type Event: Debug;
    /// The reason why a command was refused.
    type Reject: Debug;
}

impl<M: Machine> Service for M {
    type Command = <M as Machine>::Command;
    type Answer = ();
    type Event = <M as Machine>::Event;
    type Reject = <M as Machine>::Reject;
}

/// The outcome of a command of the service `M`.
pub(super) type OutcomeOf<M> = Outcome<<M as Service>::Answer, <M as Service>::Reject>;
