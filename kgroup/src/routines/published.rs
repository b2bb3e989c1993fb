//! Rules that do not hold up: those of the paper to the letter. For tests and comparison only.
//!
//! `docs/errata.md` has the place of each rule, and the promise that it breaks.

use crate::message::Claim;

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A lock that was granted counts for any run of the routine (CoMesh, appendix A.2, case 4;
    /// erratum G5).
    AnyInstance,
    /// A pre-lock that was granted counts for any try (CoMesh, section 4.2.2; erratum G6).
    AnyAttempt,
    /// "Releases all locks it acquired": the locks that the leader knows of (CoMesh, section 4.2.2;
    /// erratum G6).
    ReleasesAcquired,
    /// The stage is replicated, but not the progress of the commands (CoMesh, section 4.2; erratum
    /// G7).
    ProgressInMemory,
    /// A status was seen when it arrived, not when it was replicated, and a new leader asks for none
    /// (CoMesh, section 4.1; erratum G8).
    SeesAtOnce,
    /// "When a routine is triggered, the routine leader changes its state to ACQUIRING_LOCKS", also
    /// where it runs (CoMesh, section 4.2; erratum G9).
    RetriggersAnew,
    /// Each leader starts the routine by its own clock, and no group remembers it: as triggers of time
    /// run on a hub. The paper is silent (CoMesh, section 4.1).
    EachLeaderStarts,
    /// A leader's own clock decides that an occurrence has come, and the group remembers it.
    OneClock,
    /// A definition takes its place at once, also while the routine runs. The paper is silent about
    /// routines that change.
    DefinesAtOnce,
    /// A definition counts, however old the generation of its site is.
    DefinesLate,
}

selvedge_core::published_rules! {
    any_instance AnyInstance
    any_attempt AnyAttempt
    releases_acquired ReleasesAcquired
    progress_in_memory ProgressInMemory
    sees_at_once SeesAtOnce
    retriggers_anew RetriggersAnew
    each_leader_starts EachLeaderStarts
    one_clock OneClock
    defines_at_once DefinesAtOnce
    defines_late DefinesLate
}

impl Rules {
    /// Returns true if an answer about `claim` is about the present claim of the routine.
    pub(super) fn is_of(self, claim: Claim, present: Claim) -> bool {
        let is_instance = self.any_instance() || claim.instance == present.instance;
        let any_attempt = self.any_instance() || self.any_attempt();
        let is_attempt = any_attempt || claim.attempt == present.attempt;
        claim.routine == present.routine && is_instance && is_attempt
    }
}
