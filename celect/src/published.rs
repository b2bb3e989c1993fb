//! The thesis' rules to the letter, which break promises. For tests and comparison only.
//!
//! `docs/errata.md` has the place of each rule and the promise that it breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A node answers from its membership list, which does not name itself (Algorithm 2, line 20;
    /// erratum E1).
    OwnerLeftOut,
    /// An initiator that knows fewer than c + 1 nodes waits for answers of more (Algorithm 2, line
    /// 4; erratum E2).
    NoDiscovery,
    /// Among several leaders, a node keeps the lowest, even if that has failed (section 5.2.2;
    /// erratum E4).
    LowestWins,
    /// Among several leaders, a node keeps the last announced (Algorithm 3, line 20; erratum E4).
    LastWins,
    /// A node that learns of a lower initiator gives up for good (section 2.3; erratum E5).
    GivesUp,
    /// A node that was appointed and does not answer is appointed again (Algorithm 2, line 14;
    /// erratum E6).
    RetriesTheDead,
    /// Not in the thesis: a node that was appointed and does not answer is passed over, and the
    /// next candidate of the answers at hand is appointed (erratum E6).
    SkipsLocally,
    /// A RESPONSE does not name the run that it answers (Algorithm 2, line 8; erratum E7).
    AnyRun,
    /// Hybrid begins again as soon as no candidate is left, even if answers are still due (Algorithm
    /// 5, line 13; erratum E9).
    RestartsWhenEmpty,
}

selvedge_core::published_rules! {
    owner_left_out OwnerLeftOut
    no_discovery NoDiscovery
    lowest_wins LowestWins
    last_wins LastWins
    gives_up GivesUp
    retries_the_dead RetriesTheDead
    skips_locally SkipsLocally
    any_run AnyRun
    restarts_when_empty RestartsWhenEmpty
}
