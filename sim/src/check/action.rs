//! The actions that are possible in a state.

/// An action that is possible in a state. Letters are named by their place in
/// [`State::letters`](super::State::letters), nodes by their place in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<T> {
    /// A letter arrives.
    Deliver {
        /// The letter.
        letter: usize,
        /// True if a copy stays in flight.
        again: bool,
    },
    /// A letter is lost.
    Drop {
        /// The letter.
        letter: usize,
    },
    /// A letter arrives at a node that is down.
    Miss {
        /// The letter.
        letter: usize,
    },
    /// A timer fires.
    Tick {
        /// The node.
        node: usize,
        /// The timer.
        timer: T,
    },
    /// The application issues the next command on its list.
    Command {
        /// The node.
        node: usize,
    },
    /// The membership service sends one of the listed deltas.
    Notify {
        /// The node.
        node: usize,
        /// The delta's place in the node's list.
        delta: usize,
    },
    /// A node stops.
    Crash {
        /// The node.
        node: usize,
    },
    /// A node's storage stores the first waiting fact, and the effects that waited for this fact
    /// alone are carried out.
    Store {
        /// The node.
        node: usize,
    },
    /// A node stops while facts are stored, or while the effects behind them are carried out.
    CrashAmid {
        /// The node.
        node: usize,
        /// The number of waiting facts that are stored, from the first on.
        stored: usize,
        /// The number of entries of [`Node::waiting`](super::Node::waiting) that are carried out,
        /// from the first on.
        done: usize,
    },
    /// A node that is down begins its next life.
    Restart {
        /// The node.
        node: usize,
    },
}

impl<T> Action<T> {
    /// Returns true for a fault: progress must not depend on it.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Drop { .. }
            | Self::Crash { .. }
            | Self::CrashAmid { .. }
            | Self::Deliver { again: true, .. } => true,
            Self::Deliver { again: false, .. }
            | Self::Miss { .. }
            | Self::Tick { .. }
            | Self::Command { .. }
            | Self::Notify { .. }
            | Self::Store { .. }
            | Self::Restart { .. } => false,
        }
    }
}
