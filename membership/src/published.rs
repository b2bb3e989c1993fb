//! Rules of the literature that do not hold up, to the letter: for tests and comparison only.
//!
//! Each is named after what it does. `docs/errata.md` says where it stands and what breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Published {
    /// A declared failure overrides everything and cannot be refuted (SWIM, section 4.2; the
    /// thesis has no incarnations at all).
    FailureIsFinal,
    /// A suspicion that was learned from others starts no timer.
    NoTimerForNews,
    /// The timer of a suspicion goes on when the suspicion is refuted, and then still acts.
    RefutedTimerActs,
    /// A member does not answer what is said about it under an older number than its own (SWIM,
    /// section 4.2: such a message is overridden).
    OldClaimIsIgnored,
    /// Whoever asks is let in under the number that it brings, known or not.
    FormerLifeIsWelcome,
    /// The average interval of incoming probes moves only when a probe comes in (thesis, section
    /// 3.2.1, as printed).
    AverageOnArrival,
}

/// Which rules a machine follows: ours, always, without the feature `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Rules {
    #[cfg(feature = "check")]
    pub(crate) published: Option<Published>,
}

#[cfg(feature = "check")]
impl Rules {
    pub(crate) fn failure_is_final(self) -> bool {
        self.published == Some(Published::FailureIsFinal)
    }

    pub(crate) fn no_timer_for_news(self) -> bool {
        self.published == Some(Published::NoTimerForNews)
    }

    pub(crate) fn refuted_timer_acts(self) -> bool {
        self.published == Some(Published::RefutedTimerActs)
    }

    pub(crate) fn old_claim_is_ignored(self) -> bool {
        self.published == Some(Published::OldClaimIsIgnored)
    }

    pub(crate) fn former_life_is_welcome(self) -> bool {
        self.published == Some(Published::FormerLifeIsWelcome)
    }

    pub(crate) fn average_on_arrival(self) -> bool {
        self.published == Some(Published::AverageOnArrival)
    }
}

#[cfg(not(feature = "check"))]
#[allow(clippy::unused_self, reason = "the same calls as with the feature")]
impl Rules {
    pub(crate) const fn failure_is_final(self) -> bool {
        false
    }

    pub(crate) const fn no_timer_for_news(self) -> bool {
        false
    }

    pub(crate) const fn refuted_timer_acts(self) -> bool {
        false
    }

    pub(crate) const fn old_claim_is_ignored(self) -> bool {
        false
    }

    pub(crate) const fn former_life_is_welcome(self) -> bool {
        false
    }

    pub(crate) const fn average_on_arrival(self) -> bool {
        false
    }
}
