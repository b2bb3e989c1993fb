//! What can happen.

/// Something that can happen in a state. Letters are named by their place in
/// [`State::letters`](super::State::letters), nodes by their place in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<T> {
    /// A letter arrives.
    Deliver {
        /// Which letter.
        letter: usize,
        /// Whether a copy stays on its way.
        again: bool,
    },
    /// A letter is lost.
    Drop {
        /// Which letter.
        letter: usize,
    },
    /// A letter arrives at a node that is down.
    Miss {
        /// Which letter.
        letter: usize,
    },
    /// A timer fires.
    Tick {
        /// The node.
        node: usize,
        /// Which timer.
        timer: T,
    },
    /// The application asks what is next on its list.
    Command {
        /// The node.
        node: usize,
    },
    /// The membership service tells one of the listed deltas.
    Tell {
        /// The node.
        node: usize,
        /// Which of the node's list.
        delta: usize,
    },
    /// A node stops.
    Crash {
        /// Which one.
        node: usize,
    },
    /// Storage of a node has the first of the facts that wait, and what waited for it alone is
    /// carried out.
    Store {
        /// The node.
        node: usize,
    },
    /// A node stops while facts are stored, or what waited for them is carried out.
    CrashAmid {
        /// Which one.
        node: usize,
        /// How many of the facts that wait are stored, from the first on.
        stored: usize,
        /// How many of [`Node::waiting`](super::Node::waiting) are carried out, from the first on.
        done: usize,
    },
    /// A node that is down begins its next life.
    Restart {
        /// Which one.
        node: usize,
    },
}

impl<T> Action<T> {
    /// Whether something goes wrong, so that progress must not depend on it.
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
            | Self::Tell { .. }
            | Self::Store { .. }
            | Self::Restart { .. } => false,
        }
    }
}
