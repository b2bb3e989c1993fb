//! Rules that do not hold up: those of the paper to the letter. For tests and comparison only.
//!
//! `docs/errata.md` says where each stands and what breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A member follows whichever leader asks: no ballot is compared (CoMesh, section 3.2; erratum
    /// G1).
    AnyBallot,
    /// A new leader keeps what a quorum confirms of what is not known to be committed (CoMesh,
    /// section 3.5; erratum G2).
    AdoptsConfirmed,
    /// A member that restarted votes, whatever it remembers (CoMesh is silent; erratum G3).
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
