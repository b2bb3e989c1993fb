//! One operation on a mesh.

use core::fmt;

use selvedge_core::{Delta, Machine, Member, Span};

/// One operation on a [`Mesh`](super::Mesh).
///
/// Nodes are named by their seat and messages by their place among the messages in flight, both
/// modulo their number: every operation means something in every mesh. An input to a node that is
/// down does nothing.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation<M: Machine> {
    /// A message arrives.
    Deliver(usize),
    /// A message arrives, and a copy stays in flight.
    Duplicate(usize),
    /// The messages that are in flight now arrive in the order in which they were sent.
    DeliverAll,
    /// A message is lost.
    Lose(usize),
    /// The messages from and to a node are lost.
    Cut(usize),
    /// Time passes, and timers that are due tick.
    Wait(Span),
    /// The application asks a node.
    Command(usize, M::Command),
    /// Membership sends a node a delta.
    Learn(usize, Delta),
    /// Membership notifies the first node that the second one is suspected.
    Suspect(usize, usize),
    /// Membership notifies the first node that the second one is no longer suspected.
    Refute(usize, usize),
    /// Membership notifies the first node that the second one failed.
    Fail(usize, usize),
    /// A node learns of all other nodes that are up and that it may know.
    Introduce(usize),
    /// All other nodes that may know a node learn that it is up, or that its life has ended.
    Announce(usize),
    /// A node receives a message that no node sent. Boxed, because otherwise every operation would
    /// be as large.
    Forge(usize, Member, Box<M::Message>),
    /// A node stops.
    Crash(usize),
    /// A node begins its next life. A node that is up crashes first.
    Restart(usize),
    /// A node does nothing until it is resumed: its messages wait, and its timers are late.
    Pause(usize),
    /// A node is resumed.
    Resume(usize),
}

impl<M: Machine> Operation<M> {
    /// The same operation with the seats and the message that it hits in a mesh of this size.
    pub(super) fn within(self, seats: usize, in_flight: usize) -> Self {
        let seat = |at: usize| at.checked_rem(seats).unwrap_or_default();
        let letter = |at: usize| at.checked_rem(in_flight).unwrap_or_default();
        match self {
            Self::Deliver(at) => Self::Deliver(letter(at)),
            Self::Duplicate(at) => Self::Duplicate(letter(at)),
            Self::DeliverAll => Self::DeliverAll,
            Self::Lose(at) => Self::Lose(letter(at)),
            Self::Cut(at) => Self::Cut(seat(at)),
            Self::Wait(span) => Self::Wait(span),
            Self::Command(at, command) => Self::Command(seat(at), command),
            Self::Learn(at, delta) => Self::Learn(seat(at), delta),
            Self::Suspect(at, about) => Self::Suspect(seat(at), seat(about)),
            Self::Refute(at, about) => Self::Refute(seat(at), seat(about)),
            Self::Fail(at, about) => Self::Fail(seat(at), seat(about)),
            Self::Introduce(at) => Self::Introduce(seat(at)),
            Self::Announce(at) => Self::Announce(seat(at)),
            Self::Forge(at, from, message) => Self::Forge(seat(at), from, message),
            Self::Crash(at) => Self::Crash(seat(at)),
            Self::Restart(at) => Self::Restart(seat(at)),
            Self::Pause(at) => Self::Pause(seat(at)),
            Self::Resume(at) => Self::Resume(seat(at)),
        }
    }
}

/// Prints as code, but for commands: `Enter(0)`, where a node receives `Command::Enter`.
impl<M: Machine> fmt::Debug for Operation<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deliver(at) => write!(f, "Deliver({at})"),
            Self::Duplicate(at) => write!(f, "Duplicate({at})"),
            Self::DeliverAll => f.write_str("DeliverAll"),
            Self::Lose(at) => write!(f, "Lose({at})"),
            Self::Cut(seat) => write!(f, "Cut({seat})"),
            Self::Wait(span) => write!(f, "Wait({span:?})"),
            Self::Command(seat, command) => {
                let text = format!("{command:?}");
                // A command with fields ends in a bracket: there the seat goes behind it.
                if text.ends_with([')', '}']) {
                    write!(f, "{text} at {seat}")
                } else {
                    write!(f, "{text}({seat})")
                }
            }
            Self::Learn(seat, delta) => write!(f, "Learn({seat}, {delta:?})"),
            Self::Suspect(seat, about) => write!(f, "Suspect({seat}, {about})"),
            Self::Refute(seat, about) => write!(f, "Refute({seat}, {about})"),
            Self::Fail(seat, about) => write!(f, "Fail({seat}, {about})"),
            Self::Introduce(seat) => write!(f, "Introduce({seat})"),
            Self::Announce(seat) => write!(f, "Announce({seat})"),
            Self::Forge(seat, from, message) => write!(f, "Forge({seat}, {from:?}, {message:?})"),
            Self::Crash(seat) => write!(f, "Crash({seat})"),
            Self::Restart(seat) => write!(f, "Restart({seat})"),
            Self::Pause(seat) => write!(f, "Pause({seat})"),
            Self::Resume(seat) => write!(f, "Resume({seat})"),
        }
    }
}
