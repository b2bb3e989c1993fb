//! Rules of the paper to the letter that break promises. For tests and comparison only.
//!
//! `docs/errata.md` gives the place of each in the paper, and a run in which it breaks a promise.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// An answer of any attempt ends a task (PCM, section 4.4; erratum Q4).
    AnyAttempt,
    /// A follower sends its result once (PCM, section 4.1: it is useless to retry; erratum Q6).
    VotesOnce,
    /// An orchestrator counts the vote of any follower, for any attempt (PCM, section 4.4; erratum
    /// Q7).
    AnyVote,
    /// Units are formed again while there are fewer than three followers for each, even if that cannot be
    /// mended (PCM, section 4.3.2; erratum Q9).
    AlwaysFew,
    /// An orchestrator takes the first value that half of its followers returned (PCM, sections 4.3.2 and
    /// 4.4; erratum Q5).
    FirstHalf,
}

selvedge_core::published_rules! {
    any_attempt AnyAttempt
    votes_once VotesOnce
    any_vote AnyVote
    always_few AlwaysFew
    first_half FirstHalf
}
