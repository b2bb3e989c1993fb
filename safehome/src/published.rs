//! Rules that break promises: the rules of the paper to the letter, and rules that look right for
//! features that the paper does not have. For tests and comparison only.
//!
//! `docs/errata.md` names the place of each and the promise that it breaks.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// Only routines that share a device with a new one are looked at when it is placed (Algorithm
    /// 1, line 12; erratum H1).
    DirectOrder,
    /// A routine's rollback begins though its command is in flight (section 4.3; erratum H11).
    DrainsNothing,
    /// A lease ends while a command is in flight (section 4.1; erratum H12).
    RevokesInFlight,
    /// A condition reads the state that an unfinished routine wrote (section 4.1; erratum H13).
    ReadsUncommitted,
    /// A routine may command a device before the rollback that is due there (section 4.3; erratum
    /// H6).
    FreeRollback,
    /// A routine that commits leaves the order, and so do all before it on its devices (figure 7;
    /// errata H2, H3).
    Compacts,
    /// With `Compacts`, a routine that was left out of the order of a device commits its state all
    /// the same (section 4.3; erratum H4).
    CommitsCompacted,
    /// A routine that may use a device is taken to have changed it (section 4.3; erratum H5).
    TouchedIsWritten,
    /// The state to restore on a device that is down is forgotten (erratum H7).
    ForgetsRollback,
    /// A rollback restores the state from the moment when the routine was aborted (section 4.3;
    /// erratum H8).
    TargetAtAbort,
    /// A skipped command counts as done (section 2.2; erratum H9).
    SkipIsWritten,
    /// A command that got no answer was not done (section 6; erratum H10).
    UnknownIsRefused,
    /// A command that got no answer in time does not act later (section 6, silent; erratum H22).
    UnknownIsOver,
    /// Each command of a routine has a place of its own on its device (Algorithm 1; erratum H14).
    ReleasesBetween,
    /// A routine ends with a device that it could do without (section 3, rule 4; erratum H21).
    AnyCommandAborts,
    /// A routine that has waited for too long is tried first, and others still start where it waits
    /// (section 5; erratum H18).
    LateIsMerelyFirst,
    /// A routine goes into the first gap that is long enough, also before a routine that sets the
    /// same devices (Algorithm 1; erratum H23).
    AnyGap,
    /// A run that supersedes another leaves it running (not in the paper; erratum M1).
    KeepsFormer,
    /// The changes of a superseded or preempted run are undone before the next one begins (not in
    /// the paper; erratum M2).
    UndoesFirst,
    /// A queued run does not wait for those before it (not in the paper; erratum M3).
    QueuesNothing,
    /// A routine goes before a held-back routine that sets the same devices (not in the paper;
    /// erratum M4).
    OvertakesQueued,
    /// An urgent routine waits for less urgent ones (not in the paper; erratum U1).
    WaitsBehindHold,
    /// The changes of a preempted routine are undone when the urgent one has begun (not in the
    /// paper; erratum U2).
    UndoOverwrites,
}

selvedge_core::published_rules! {
    direct_order DirectOrder
    drains_nothing DrainsNothing
    revokes_in_flight RevokesInFlight
    reads_uncommitted ReadsUncommitted
    free_rollback FreeRollback
    compacts Compacts
    commits_compacted CommitsCompacted
    touched_is_written TouchedIsWritten
    forgets_rollback ForgetsRollback
    target_at_abort TargetAtAbort
    skip_is_written SkipIsWritten
    unknown_is_refused UnknownIsRefused
    unknown_is_over UnknownIsOver
    releases_between ReleasesBetween
    any_command_aborts AnyCommandAborts
    late_is_merely_first LateIsMerelyFirst
    any_gap AnyGap
    keeps_former KeepsFormer
    undoes_first UndoesFirst
    queues_nothing QueuesNothing
    overtakes_queued OvertakesQueued
    waits_behind_hold WaitsBehindHold
    undo_overwrites UndoOverwrites
}
