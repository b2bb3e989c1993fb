//! Rules that do not hold up: those of the paper to the letter. For tests and comparison only.
//!
//! `docs/errata.md` has the place of each rule, and the promise that it breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A claim is known by its routine alone, and a device forgets it when it is released (CoMesh,
    /// section 4.2; erratum G5).
    Unnumbered,
    /// The tries of a run are not distinguished, and a device forgets a try when it is released (CoMesh,
    /// section 4.2.2; erratum G6).
    Unlabelled,
    /// A routine receives a device's status once, from the leader that took the report (CoMesh,
    /// section 4.1; erratum G8).
    ToldOnce,
    /// An update counts, however old the generation of the site is that it follows. The paper is silent
    /// about sites that change.
    AnyGeneration,
    /// A cluster that has begun anew grants its devices at once. The paper is silent about groups that lose
    /// their memory.
    ForgetsLocks,
}

selvedge_core::published_rules! {
    unnumbered Unnumbered
    unlabelled Unlabelled
    notified_once ToldOnce
    any_generation AnyGeneration
    forgets_locks ForgetsLocks
}
