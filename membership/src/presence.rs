//! The phases of this node's own membership.

/// A phase in the life of a node's own membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// In no mesh.
    Idle,
    /// Asking seeds to be let in.
    Joining,
    /// In the mesh.
    Joined,
    /// Saying good-bye.
    Leaving,
}

/// The phase, and the number of good-byes that remain.
///
/// ```text
/// Idle -> Joining -> Joined -> Leaving -> Idle
///   |        |          ^
///   |        +-> Idle   |
///   +-------------------+
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Presence {
    phase: Phase,
    /// Counts down while the node is leaving.
    farewells: u16,
}

impl Presence {
    pub(crate) const fn new() -> Self {
        Self {
            phase: Phase::Idle,
            farewells: 0,
        }
    }

    pub(crate) fn begin_joining(&mut self) {
        debug_assert_eq!(self.phase, Phase::Idle, "only an idle node joins");
        self.phase = Phase::Joining;
    }

    pub(crate) fn enter(&mut self) {
        debug_assert!(
            matches!(self.phase, Phase::Idle | Phase::Joining),
            "a node enters one mesh"
        );
        self.phase = Phase::Joined;
    }

    pub(crate) fn begin_leaving(&mut self, farewells: u16) {
        debug_assert_eq!(self.phase, Phase::Joined, "only a member leaves");
        self.phase = Phase::Leaving;
        self.farewells = farewells;
    }

    /// Counts one more good-bye. Returns true if one was left.
    pub(crate) fn take_farewell(&mut self) -> bool {
        debug_assert_eq!(
            self.phase,
            Phase::Leaving,
            "only a leaving node says good-bye"
        );
        let Some(left) = self.farewells.checked_sub(1) else {
            return false;
        };
        self.farewells = left;
        true
    }

    pub(crate) fn stop(&mut self) {
        debug_assert!(
            matches!(self.phase, Phase::Joining | Phase::Leaving),
            "a node says good-bye, or was not in"
        );
        self.phase = Phase::Idle;
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn is_joined(&self) -> bool {
        matches!(self.phase, Phase::Joined)
    }
}
