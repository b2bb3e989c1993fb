//! Rules that break a promise: the rules of the thesis to the letter, and this crate's rules without
//! some part. For tests and comparison only.
//!
//! `docs/errata.md` lists the source of each rule and the promise that breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A node that is learned of is asked when it is not on the membership list, whether it was
    /// asked before or not (Algorithm 2, line 19; erratum C1).
    AskWhoIsNotListed,
    /// The number of OKs is not counted (Algorithm 2, line 19; errata C2, C3f, C10).
    NoQuorum,
    /// A declared failure ends the wait for a node that is known to want to enter (section 4.4;
    /// erratum C2).
    FailureEndsWait,
    /// The nodes that have this node's OK are asked only when they are on the list (Algorithm 2,
    /// line 15; erratum C5).
    OwnOksAreNotAsked,
    /// A declared failure removes a node from the list of nodes that have this node's OK (erratum
    /// C3a).
    FailureForgets,
    /// A late message from or about a dead node is taken as if it lived (errata C3b, C9).
    NoTombstones,
    /// A node is its id: its lives are not distinguished (errata C3c, C3d).
    OneLife,
    /// An OK does not name the request that it answers (Algorithm 2; erratum C4).
    OkForAnyRequest,
    /// The number of a request is the token, even if others know a higher token (the thesis has no
    /// tokens).
    NumberIsToken,
    /// The root does not look at the nodes to which others have given their OK (Algorithm 2, line
    /// 18; erratum S1).
    RootIgnoresRivals,
    /// A node in a tree remembers its OK when it passes it on, and not when it decides (unsaid in
    /// the thesis; erratum S2).
    LateCaching,
    /// A child that is adopted does not send again the report that it sent to its dead parent
    /// (section 4.4; erratum S3).
    AdoptedStaySilent,
    /// A node that fails while the tree is built is left out (section 4.4; erratum S4).
    NoRebuilding,
    /// Not in the thesis: a declared failure removes a node from the nodes that wait for this node's OK
    /// (erratum C8).
    FailureForgetsDeferred,
    /// Not in the thesis: RELEASE ends every request of its sender.
    ReleaseById,
    /// Not in the thesis: all nodes that wait for an exit get the same list of rivals.
    SnapshotInExit,
    /// Not in the thesis: when a request is issued again, nodes that have priority now are left
    /// waiting.
    ReissueKeepsDeferred,
    /// Not in the thesis: a node that asks is put on the list, and only membership takes it off.
    RequestLists,
    /// Not in the thesis: a node waits for another until it gets its OK, also when the RELEASE of the
    /// other came, or had come before an OK that names it (erratum L2).
    ReleaseIsNoEnd,
    /// Not in the thesis, which has room for all: a node does not wait for another that
    /// had no room to give its OK and asks to enter later.
    LateAbstentions,
    /// Not in the thesis, which has one section: a section is dropped to make room for another one
    /// also while a node has this node's OK there.
    DropWithOks,
    /// Not in the thesis, which has one section: a section that is dropped leaves nothing behind.
    DropWithTokens,
}

#[cfg(feature = "check")]
impl Published {
    /// The rules of the thesis: Algorithms 2 and 3 to the letter.
    pub const THESIS: [Self; 13] = [
        Self::AskWhoIsNotListed,
        Self::NoQuorum,
        Self::FailureEndsWait,
        Self::OwnOksAreNotAsked,
        Self::FailureForgets,
        Self::NoTombstones,
        Self::OneLife,
        Self::OkForAnyRequest,
        Self::NumberIsToken,
        Self::RootIgnoresRivals,
        Self::LateCaching,
        Self::AdoptedStaySilent,
        Self::NoRebuilding,
    ];
}

selvedge_core::published_rules! {
    ask_who_is_not_listed AskWhoIsNotListed
    no_quorum NoQuorum
    failure_ends_wait FailureEndsWait
    own_oks_are_not_asked OwnOksAreNotAsked
    failure_forgets FailureForgets
    no_tombstones NoTombstones
    one_life OneLife
    ok_for_any_request OkForAnyRequest
    number_is_token NumberIsToken
    root_ignores_rivals RootIgnoresRivals
    late_caching LateCaching
    adopted_stay_silent AdoptedStaySilent
    no_rebuilding NoRebuilding
    failure_forgets_deferred FailureForgetsDeferred
    release_by_id ReleaseById
    snapshot_in_exit SnapshotInExit
    reissue_keeps_deferred ReissueKeepsDeferred
    request_lists RequestLists
    release_is_no_end ReleaseIsNoEnd
    late_abstentions LateAbstentions
    drop_with_oks DropWithOks
    drop_with_tokens DropWithTokens
}
