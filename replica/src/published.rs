//! Rules that break a promise: the paper's rules to the letter. For tests and comparison only.
//!
//! `docs/errata.md` names the place of each in the paper, and the promise that breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A member follows any leader that asks: no ballot is compared (CoMesh, section 3.2; erratum
    /// G1).
    AnyBallot,
    /// A new leader keeps only those uncommitted entries that a quorum confirms (CoMesh, section
    /// 3.5; erratum G2).
    AdoptsConfirmed,
    /// A member that restarted votes, with or without its memory (CoMesh is silent; erratum G3).
    ForgetfulVotes,
    /// The next group acts without a decision of the former one (CoMesh, section 3.4; erratum G4).
    SeparateSuccessors,
}

selvedge_core::published_rules! {
    any_ballot AnyBallot
    adopts_confirmed AdoptsConfirmed
    forgetful_votes ForgetfulVotes
    separate_successors SeparateSuccessors
}
