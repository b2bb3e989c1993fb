//! Commands of the application, events, timers and errors.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use selvedge_core::{Delta, NodeId, Span};
use thiserror::Error;

use crate::{ConfigError, LONGEST_LATENESS, Routine, RoutineId, Terms, Urgency};

/// A request or a report from the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Command<V> {
    /// Adds a device, which is up; with its state, if that is known.
    AddDevice {
        /// Its id.
        device: NodeId,
        /// Its state.
        state: Option<V>,
    },
    /// Removes a device that no routine needs. A rollback that waits until the device is up is
    /// given up. The id may be used again.
    RemoveDevice(NodeId),
    /// Sets the time for which a command to this device may still act after its outcome was
    /// reported as unknown, such as a command that a broker keeps for a device that is offline:
    /// from 0, the default, to [`LONGEST_LATENESS`](crate::LONGEST_LATENESS). Until that time has
    /// passed the device's state counts as unknown: nothing is sent to it, conditions wait, and
    /// its reports and answers do not count. Applies to outcomes from now on, and to commands that
    /// a hub finds in flight when it [resumes](Self::Resume). A [weak](crate::Visibility::Weak)
    /// hub, which restores nothing, does not wait.
    SetLateness {
        /// The device.
        device: NodeId,
        /// The time.
        lateness: Span,
    },
    /// Runs this routine. [`Event::Accepted`] follows.
    Submit(Routine<V>),
    /// Runs this routine with these terms: beside, after or instead of other runs of its key, with
    /// the urgency in the terms. [`Event::Accepted`] follows, and then the events about the
    /// routines that it supersedes or preempts. Takes O(routines) more if it has a key or is
    /// urgent.
    SubmitAs {
        /// The routine.
        routine: Routine<V>,
        /// Its key, mode and urgency.
        terms: Terms,
    },
    /// Aborts this routine, if it is not finished.
    Cancel(RoutineId),
    /// Reports the outcome of a command that was [issued](Event::Issue). If the outcome was unknown
    /// and the command may still act ([`SetLateness`](Self::SetLateness)), a known outcome may be
    /// reported later; then the device is free earlier.
    Acted {
        /// The device.
        device: NodeId,
        /// The number of the command, from [`Event::Issue`].
        token: u64,
        /// The outcome.
        outcome: Outcome,
    },
    /// The device reports that it is in this state: a person changed it by hand. A command in
    /// flight counts as later than the change. A report of the state that a command in flight asks
    /// for is no manual change, unless the command is refused: it is an effect of the command. A
    /// report of the known state of the device is no manual change either.
    ///
    /// Reports may be duplicated and late, but the reports of one device arrive in the order in
    /// which the device made them. A report from before a command was done arrives before the
    /// outcome of that command; if the outcome is unknown, before the command's
    /// [lateness](Self::SetLateness) is over.
    Observed {
        /// The device.
        device: NodeId,
        /// Its state.
        state: V,
    },
    /// Reports a manual change like [`Observed`](Self::Observed), with an urgency: less urgent
    /// routines that still need the device are preempted, as by an urgent routine. So the device
    /// stays as the person left it, also if a routine had brought it into this state before, or has
    /// a command in flight that does.
    ChangedByHand {
        /// The device.
        device: NodeId,
        /// Its state.
        state: V,
        /// The urgency: 0 preempts nothing.
        urgency: Urgency,
    },
    /// Reports the state of a device after [`Event::Ask`].
    Answered {
        /// The device.
        device: NodeId,
        /// The number in [`Event::Ask`].
        token: u64,
        /// Its state.
        state: V,
    },
    /// The hub's state comes from storage: the hub asks devices about commands in flight, sets its
    /// timers again, and gives a long command its full time again. This must be the first input;
    /// see [`Saved`](crate::Saved).
    Resume,
}

/// The outcome of a command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Outcome {
    /// The device is in the requested state.
    Done,
    /// The device is in the state that it was in before, and will not change.
    Refused,
    /// Unknown: the command may have been done, and will not be done later than the device's
    /// [lateness](Command::SetLateness) from now.
    Unknown,
}

/// An order or a notice to the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<V> {
    /// The routine was accepted.
    Accepted(RoutineId),
    /// The routine's first command is about to be issued.
    Started(RoutineId),
    /// Bring the device into this state, and report the [`Outcome`] with the token.
    Issue {
        /// The device.
        device: NodeId,
        /// A number that no other command has.
        token: u64,
        /// The state.
        value: V,
        /// The routine of the command; `None` to restore the state after an abort.
        routine: Option<RoutineId>,
    },
    /// Ask the device for its state, and report it as [`Answered`](Command::Answered) once the
    /// command can no longer take effect: if commands and questions travel in order, the answer
    /// comes behind it. The command's outcome may be reported instead, as
    /// [`Unknown`](Outcome::Unknown) if the device cannot be asked. A device whose commands may act
    /// [late](Command::SetLateness) is asked when that time is over; a [weak](crate::Visibility::Weak)
    /// hub asks at once.
    Ask {
        /// The device.
        device: NodeId,
        /// The number of the command in flight.
        token: u64,
    },
    /// A command of a routine was skipped. The routine goes on.
    Skipped {
        /// The routine of the command.
        routine: RoutineId,
        /// The number of the command, from 0.
        step: u16,
        /// The reason.
        why: SkipReason,
    },
    /// The hold of a [preemptible](crate::Step::preemptible) command ends early, and the routine
    /// goes on: a more urgent routine or manual change needs one of its devices.
    CutShort {
        /// The routine that holds.
        routine: RoutineId,
        /// The device that it holds; it can differ from the device that is needed.
        device: NodeId,
        /// The more urgent routine; `None` for a [manual change](Command::ChangedByHand).
        by: Option<RoutineId>,
    },
    /// The routine is finished, with all its commands except the skipped ones.
    Committed(RoutineId),
    /// The routine will be undone, as soon as its command in flight has an outcome.
    Aborting {
        /// The routine.
        routine: RoutineId,
        /// The reason.
        why: AbortReason,
    },
    /// The routine has left the order; each device that it used is listed with its undo status.
    Aborted {
        /// The routine.
        routine: RoutineId,
        /// The reason.
        why: AbortReason,
        /// The undo status of each device that it commanded, or asked for its state.
        undo: Vec<(NodeId, UndoStatus)>,
    },
    /// A device is in the state that it would have without the aborted or skipped commands: it was
    /// restored, or came into that state otherwise, by hand or because another routine was undone,
    /// too.
    Restored(NodeId),
    /// A device refused as many attempts to restore it as the settings allow. It is left as it is,
    /// until it restarts or is changed by hand, or a routine's command to it is done.
    Stuck(NodeId),
    /// A rollback that was [begun](UndoStatus::Begun) or [pending](UndoStatus::Pending) on this
    /// device is given up: the state to restore is unknown now, or the device was
    /// [removed](Command::RemoveDevice).
    GivenUp(NodeId),
    /// The next entry of the serial order: routines one by one, and failures and restarts of
    /// devices. An entry is final.
    Ordered(Placed<V>),
    /// Another routine changed a device that this unfinished one had changed (section 7.1:
    /// temporary incongruence). Emitted once for each routine; never under
    /// [`Weak`](crate::Visibility::Weak), where the hub does not record which routine made which
    /// change.
    Incongruent {
        /// The unfinished routine, with the change that is overwritten.
        routine: RoutineId,
        /// The device.
        device: NodeId,
        /// The routine that overwrites it.
        by: RoutineId,
    },
}

/// An entry of the serial order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Placed<V> {
    /// A committed routine.
    Routine(RoutineId),
    /// A device's failure was noticed.
    Failed(NodeId),
    /// A device's restart was noticed.
    Restarted(NodeId),
    /// A device was brought into a state by hand, by the undo handler of an aborted routine, or by
    /// an aborted routine itself where that [cannot be undone](UndoStatus::Impossible).
    Set {
        /// The device.
        device: NodeId,
        /// Its state, if it is known.
        state: Option<V>,
    },
}

/// The reason why a command was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SkipReason {
    /// Its condition does not hold.
    Condition,
    /// This device is down: the target of the command, or a device that its condition reads.
    Down(NodeId),
    /// The device refused.
    Refused,
    /// Its outcome is unknown.
    Unknown,
    /// The state of this device, which its condition reads, is unknown.
    StateUnknown(NodeId),
}

/// The reason why a routine is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AbortReason {
    /// The application asked for it.
    Cancelled,
    /// A command that must succeed was not done.
    Step(u16, SkipReason),
    /// A device that the routine needed failed or restarted.
    Device {
        /// The device.
        device: NodeId,
        /// The command that needed it, or read it in a condition: the next one, or else the last
        /// one. `None` under [`StrongGlobalStrict`](crate::Visibility::StrongGlobalStrict) if no
        /// command did.
        step: Option<u16>,
    },
    /// It went before a routine that waits, and took longer than was planned.
    LeaseExpired {
        /// The device that was lent to it.
        device: NodeId,
        /// The command that needed it, as in [`Device`](Self::Device).
        step: Option<u16>,
    },
    /// This later run of its key, of the mode [`Restart`](crate::Mode::Restart), takes its place.
    Superseded(RoutineId),
    /// A more urgent routine or manual change needs a device.
    Preempted {
        /// The urgent routine; `None` for a [manual change](Command::ChangedByHand).
        by: Option<RoutineId>,
        /// The device. If one routine runs at a time, and for earlier runs of its key, it can be a
        /// device that only the preempted routine needs.
        device: NodeId,
        /// The command that needed it, as in [`Device`](Self::Device).
        step: Option<u16>,
    },
}

/// The undo status of a device that an aborted routine commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum UndoStatus {
    /// It was not changed, or a later routine has changed it since.
    NotNeeded,
    /// It is being restored; or it goes directly to the state into which the superseding or
    /// preempting routine sets it. One of [`Event::Restored`], [`Event::Stuck`] and
    /// [`Event::GivenUp`] follows; one such event can end several rollbacks that had begun on the
    /// device.
    Begun,
    /// It will be restored when it is up and no command can act [late](Command::SetLateness) any more.
    Pending,
    /// It should be restored, and refused ([`Event::Stuck`]): it is left as it is until it restarts
    /// or changes.
    Stuck,
    /// It was changed, or may have been, and the state before is unknown: it stays as it is.
    Impossible,
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Timer {
    /// The outcome of the command to this device is overdue.
    Timeout(NodeId),
    /// The hold of a long command on this device ends.
    Hold(NodeId),
    /// The rollback of this device is tried again.
    Retry(NodeId),
    /// The pre-lease of this device ends.
    Lease(NodeId),
    /// This routine can no longer be overtaken. Armed until its first command is issued.
    Patience(RoutineId),
    /// A command to this device with an unknown outcome can no longer act.
    Late(NodeId),
}

/// The reason why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The routine has no command.
    #[error("the routine has no command: give it one")]
    Empty,
    /// The routine has too many commands.
    #[error("the routine has {found} commands and may have {limit}: split it, or raise step_limit")]
    TooLong {
        /// The number of its commands.
        found: usize,
        /// The limit.
        limit: u16,
    },
    /// A command has a timeout of 0. The field is its number, from 0.
    #[error("command {}, counted from 1, has a timeout of 0: give a time longer than devices take, or none", u32::from(*.0) + 1)]
    NoTime(u16),
    /// A condition has too many parts.
    #[error("the condition of command {}, counted from 1, has {found} parts: leave it at most 64", u32::from(*number) + 1)]
    LongCondition {
        /// The command, from 0.
        number: u16,
        /// The number of its parts; the limit is [`Clause::MOST`](crate::Clause::MOST).
        found: usize,
    },
    /// The device is unknown.
    #[error("device {0} is unknown to the hub: add it with Command::Device first")]
    UnknownDevice(NodeId),
    /// The routine is unknown or finished.
    #[error("routine {0} is unknown, or finished: name a routine that waits or runs")]
    UnknownRoutine(RoutineId),
    /// The device is known already.
    #[error("device {0} is known already: report its state with Command::Observed")]
    KnownDevice(NodeId),
    /// A routine still needs the device, or its rollback is not done.
    #[error(
        "device {0} is in use, or waits for its rollback: wait until the routines that need it are finished"
    )]
    DeviceInUse(NodeId),
    /// A run of this key is unfinished, and the mode is [`Single`](crate::Mode::Single).
    #[error(
        "routine {routine} has the same key and is unfinished: wait until it is finished, cancel it, or submit as restart or queued"
    )]
    Unfinished {
        /// The first of them.
        routine: RoutineId,
    },
    /// The number of unfinished runs of this key is at its limit.
    #[error(
        "{limit} routines with the same key are unfinished, routine {routine} first: wait until it is finished, cancel one, or raise the limit of the mode"
    )]
    QueueFull {
        /// The first of them.
        routine: RoutineId,
        /// The limit.
        limit: NonZeroU16,
    },
    /// The key is too long.
    #[error("the key has {found} bytes and may have {limit}: shorten it")]
    KeyTooLong {
        /// The length in bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// No room for a routine. To find that takes as long as to join committed routines: O(e u),
    /// with e the number of places of routines on devices and u the number of unfinished routines.
    #[error("{limit} routines are unfinished: wait until one is finished, or raise routine_limit")]
    TooManyRoutines {
        /// The limit.
        limit: u32,
    },
    /// No room for further entries that wait for their place in the order.
    #[error(
        "{limit} committed routines, failures and changes wait for routines before them: wait until those are finished, cancel them, or raise order_limit"
    )]
    TooManyOrdered {
        /// The limit.
        limit: u32,
    },
    /// The number of devices is at its limit.
    #[error("there are {limit} devices: remove one with Command::Remove, or raise device_limit")]
    TooManyDevices {
        /// The limit.
        limit: u32,
    },
    /// Nothing was issued with this token, or its outcome is known.
    #[error("device {device} has no command {token} in flight: report each outcome once")]
    UnknownToken {
        /// The device.
        device: NodeId,
        /// The token.
        token: u64,
    },
    /// The device's state would be unknown for longer than the limit.
    #[error(
        "the lateness of device {device} is {lateness:?}: give at most {LONGEST_LATENESS:?}, and make queued commands expire"
    )]
    Lateness {
        /// The device.
        device: NodeId,
        /// The time.
        lateness: Span,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// The delta is about a member that is no device of this hub.
    #[error("the delta is about device {}, which is unknown to the hub: add it with Command::Device first", .0.member().id)]
    UnknownMember(Delta),
}

impl AbortReason {
    /// The device that caused the abort of this routine; `None` if it was cancelled or superseded.
    #[must_use]
    pub fn device<V>(self, routine: &Routine<V>) -> Option<NodeId> {
        match self {
            Self::Cancelled | Self::Superseded(_) => None,
            Self::Device { device, .. }
            | Self::LeaseExpired { device, .. }
            | Self::Preempted { device, .. }
            | Self::Step(_, SkipReason::Down(device) | SkipReason::StateUnknown(device)) => {
                Some(device)
            }
            Self::Step(step, SkipReason::Condition | SkipReason::Refused | SkipReason::Unknown) => {
                let step = routine.steps.get(usize::from(step));
                step.map(|it| it.device)
            }
        }
    }

    /// The command that caused the abort, counted from 0: the command that failed, the command
    /// whose condition could not be evaluated, or the command that needs the device.
    #[must_use]
    pub const fn step(self) -> Option<u16> {
        match self {
            Self::Cancelled | Self::Superseded(_) => None,
            Self::Device { step, .. }
            | Self::LeaseExpired { step, .. }
            | Self::Preempted { step, .. } => step,
            Self::Step(step, _) => Some(step),
        }
    }

    /// The other routine that caused the abort, if there is one.
    #[must_use]
    pub const fn routine(self) -> Option<RoutineId> {
        match self {
            Self::Superseded(by) => Some(by),
            Self::Preempted { by, .. } => by,
            Self::Cancelled | Self::Device { .. } | Self::LeaseExpired { .. } | Self::Step(..) => {
                None
            }
        }
    }

    /// Returns true if it is aborted for another routine, which begins at once.
    pub(crate) const fn makes_room(self) -> bool {
        matches!(self, Self::Superseded(_) | Self::Preempted { .. })
    }
}

impl Reject {
    /// The device that the error names.
    pub(crate) const fn device(&self) -> Option<NodeId> {
        match self {
            Self::UnknownDevice(device)
            | Self::KnownDevice(device)
            | Self::DeviceInUse(device)
            | Self::Lateness { device, .. }
            | Self::UnknownToken { device, .. } => Some(*device),
            Self::UnknownMember(delta) => Some(delta.member().id),
            Self::Empty
            | Self::TooLong { .. }
            | Self::NoTime(_)
            | Self::LongCondition { .. }
            | Self::UnknownRoutine(_)
            | Self::Unfinished { .. }
            | Self::QueueFull { .. }
            | Self::KeyTooLong { .. }
            | Self::TooManyRoutines { .. }
            | Self::TooManyOrdered { .. }
            | Self::TooManyDevices { .. }
            | Self::Config(_) => None,
        }
    }
}
