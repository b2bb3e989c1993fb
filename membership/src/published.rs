//! Rules of the literature that do not hold, to the letter: for tests and comparison only.
//!
//! Each is named after its effect. `docs/errata.md` quotes it and describes the promise that breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A declared failure overrides everything and cannot be refuted (SWIM, section 4.2; the
    /// thesis has no incarnations at all).
    FailureIsFinal,
    /// A suspicion that was learned from others starts no timer.
    NoTimerForNews,
    /// The timer of a suspicion continues when the suspicion is refuted, and then still acts.
    RefutedTimerActs,
    /// A member does not answer a claim about it under an older number than its own (SWIM, section
    /// 4.2: such a message is overridden).
    OldClaimIsIgnored,
    /// A node that asks is let in under the number that it brings, known or not.
    FormerLifeIsWelcome,
    /// The average interval of incoming probes moves only when a probe comes in (thesis, section
    /// 3.2.1, as printed).
    AverageOnArrival,
}

selvedge_core::published_rules! {
    failure_is_final FailureIsFinal
    no_timer_for_news NoTimerForNews
    refuted_timer_acts RefutedTimerActs
    old_claim_is_ignored OldClaimIsIgnored
    former_life_is_welcome FormerLifeIsWelcome
    average_on_arrival AverageOnArrival
}
