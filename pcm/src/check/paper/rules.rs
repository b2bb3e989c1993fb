//! Rules of the paper that break its promises.

/// A rule of the paper, to the letter, by erratum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A candidate needs the majority of the gateways that it takes for available (section 4.2 a; erratum Q1).
    MajorityOfAvailable,
    /// The majority is one of the gateways that a gateway has discovered (Figure 2, `gateways []`;
    /// erratum Q1).
    OwnList,
    /// The era, and the gateway that got the vote in it, are in memory only (Figure 2, "Volatile"; erratum Q1).
    VolatileVote,
    /// A resource manager names its successor, without a vote (section 4.2, succession; erratum Q1).
    NamedSuccessor,
    /// The majority is one of the base that the manager has set, as soon as it has set it (section 4.4,
    /// DLV of reference 20, among gateways; erratum Q2).
    BaseAtOnce,
    /// A gateway that takes a base from the manager of an era may still vote in that era (erratum Q2).
    VoteAfterBase,
    /// A candidate labels its own table with its era and index 0 (Figure 2, "on conversion to candidate";
    /// erratum Q3).
    CandidateLabels,
    /// Votes do not contain the voter's table (section 4.2 a; erratum Q3).
    SilentVotes,
    /// A table with a higher index is stored, whatever its era (Figure 2, "era > local_era or index >
    /// local_index"; erratum Q3).
    EitherGreater,
    /// An entry that conflicts is deleted with all that follow it (Figure 3, step 4; erratum Q3).
    Truncates,
    /// Candidates without a majority append each other's tables (sections 4.2 c and 4.5.2; erratum Q3).
    AppendingMerge,
    /// The era is raised when the manager is silent, and on conversion to candidate (section 4.2 and
    /// Figure 2; erratum Q9).
    RaisesTwice,
}

selvedge_core::published_rules! {
    majority_of_available MajorityOfAvailable
    own_list OwnList
    volatile_vote VolatileVote
    named_successor NamedSuccessor
    base_at_once BaseAtOnce
    vote_after_base VoteAfterBase
    candidate_labels CandidateLabels
    silent_votes SilentVotes
    either_greater EitherGreater
    truncates Truncates
    appending_merge AppendingMerge
    raises_twice RaisesTwice
}
