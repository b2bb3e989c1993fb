//! Rules that do not hold up: those of the thesis to the letter. For tests and comparison only.
//!
//! `docs/errata.md` says where each stands and what breaks.

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
    /// Among several leaders that are heard of, the lowest is kept, whatever became of it (section
    /// 5.2.2; erratum E4).
    LowestWins,
    /// Among several leaders that are heard of, the last is kept (Algorithm 3, line 20; erratum
    /// E4).
    LastWins,
    /// A node that hears of a lower initiator gives up for good (section 2.3; erratum E5).
    GivesUp,
    /// A node that was appointed and does not answer is appointed again (Algorithm 2, line 14;
    /// erratum E6).
    RetriesTheDead,
    /// Not in the thesis: a node that was appointed and does not answer is passed over, and the
    /// next candidate of the answers that are there is appointed (erratum E6).
    SkipsLocally,
    /// A RESPONSE does not say which run it answers (Algorithm 2, line 8; erratum E7).
    AnyRun,
    /// Hybrid begins again as soon as no candidate is left, whichever nodes are still to answer
    /// (Algorithm 5, line 13; erratum E9).
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
