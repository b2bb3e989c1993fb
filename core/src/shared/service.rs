//! What travels between an application and a host.

use core::fmt::Debug;

use super::Outcome;
use crate::Machine;

/// The types of what goes through a [`channel`](super::channel).
///
/// Each [`Machine`] is a service, of its own commands and events, and a command's outcome carries
/// nothing but success. A host that offers more than its machine does has a service of its own, for
/// instance with commands for itself, or with answers.
pub trait Service {
    /// What the application asks.
    type Command: Debug;
    /// What a command that was carried out returns.
    type Answer: Debug;
    /// What the application is told.
    type Event: Debug;
    /// Why a command was refused.
    type Reject: Debug;
}

impl<M: Machine> Service for M {
    type Command = <M as Machine>::Command;
    type Answer = ();
    type Event = <M as Machine>::Event;
    type Reject = <M as Machine>::Reject;
}

/// What becomes of a command of the service `M`.
pub(super) type OutcomeOf<M> = Outcome<<M as Service>::Answer, <M as Service>::Reject>;
