//! What the application may ask, what it is told, timers and errors.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use selvedge_core::{Delta, NodeId, Span};
use thiserror::Error;

use crate::{ConfigError, LONGEST_LATENESS, Routine, RoutineId, Terms, Urgency};

/// What the application asks or reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Command<V> {
    /// There is a device, which is up; its state, if that is known.
    Device {
        /// Its id.
        device: NodeId,
        /// Its state.
        state: Option<V>,
    },
    /// There is no such device any more, and no routine needs it. What it was to be brought back to
    /// when it is up again is given up. Its id may be used again.
    Remove(NodeId),
    /// For how long a command to this device may still act after its outcome came back unknown, as
    /// one does that a broker kept for a device that was away: from 0, which is the default, to
    /// [`LONGEST_LATENESS`](crate::LONGEST_LATENESS). Until that time is over the device's state
    /// counts as unknown: nothing is sent to it, conditions wait, and what it reports or answers
    /// does not count. Holds for outcomes from now on, and for what a hub that
    /// [resumes](Self::Resume) finds on its way. A [weak](crate::Visibility::Weak) hub, which
    /// restores nothing, waits for neither.
    Lateness {
        /// Which one.
        device: NodeId,
        /// How long.
        lateness: Span,
    },
    /// Run this routine. [`Event::Accepted`] follows.
    Submit(Routine<V>),
    /// Run this routine on these terms: beside, after or instead of other runs of its key, and as
    /// urgent as it says. [`Event::Accepted`] follows, and then what becomes of those that it
    /// supersedes or preempts. Takes O(routines) more where it has a key or is urgent.
    SubmitAs {
        /// What it does.
        routine: Routine<V>,
        /// How it stands to others.
        terms: Terms,
    },
    /// Abort this routine, if it is not finished.
    Cancel(RoutineId),
    /// What became of a command that was [issued](Event::Issue). Of one that may still act after
    /// its outcome came back unknown ([`Lateness`](Self::Lateness)) a certain outcome may be
    /// reported later; then the device is free that much sooner.
    Outcome {
        /// To which device.
        device: NodeId,
        /// The number that it was issued with.
        token: u64,
        /// What became of it.
        outcome: Outcome,
    },
    /// The device says that it is in this state: a person changed it by hand. A command on its way
    /// counts as coming after that. The state that a command on its way asks for is no change by
    /// hand, unless the command is refused: the device reports what it was told to do. Nor is the
    /// state that the device is known to be in.
    ///
    /// Reports may be doubled and late, but those of one device are told in the order in which it
    /// made them. One that it made before it did a command is reported before the outcome of that
    /// command; before the command's [lateness](Self::Lateness) is over, if the outcome is unknown.
    Observed {
        /// Which one.
        device: NodeId,
        /// Its state.
        state: V,
    },
    /// As [`Observed`](Self::Observed), for a hand that is so urgent: what is less urgent and still
    /// needs the device is preempted, as by a routine. So the device stays as the hand left it, also
    /// where a routine had brought it into this state before, or has a command on its way that does.
    ByHand {
        /// Which one.
        device: NodeId,
        /// Its state.
        state: V,
        /// How urgent: with 0 nothing is preempted.
        urgency: Urgency,
    },
    /// The device was [asked](Event::Ask), and is in this state.
    Answered {
        /// Which one.
        device: NodeId,
        /// The number with which it was asked.
        token: u64,
        /// Its state.
        state: V,
    },
    /// The hub's state comes from storage: what was on its way is asked for, timers are set again,
    /// and a long command takes its full time again. To be told before anything else; see
    /// [`Saved`](crate::Saved).
    Resume,
}

/// What became of a command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Outcome {
    /// The device is in the state.
    Done,
    /// The device is in the state that it was in before, and will not change.
    Refused,
    /// Unknown: it may have happened, and will not happen later than the device's
    /// [lateness](Command::Lateness) from now.
    Unknown,
}

/// What the application is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<V> {
    /// The routine was taken.
    Accepted(RoutineId),
    /// The routine's first command is about to be issued.
    Started(RoutineId),
    /// Bring the device into this state, and report the [`Outcome`] with the token.
    Issue {
        /// Which device.
        device: NodeId,
        /// A number that no other command has.
        token: u64,
        /// The state.
        value: V,
        /// For which routine; `None` to restore the state after an abort.
        routine: Option<RoutineId>,
    },
    /// Ask the device for its state, and report it as [`Answered`](Command::Answered) once the
    /// command can no longer take effect: where commands and questions travel in order, the answer
    /// comes behind it. Its outcome may be reported instead, as [`Unknown`](Outcome::Unknown) if
    /// the device cannot be asked. A device whose commands may act [late](Command::Lateness) is
    /// asked when that time is over, but by a [weak](crate::Visibility::Weak) hub at once.
    Ask {
        /// Which device.
        device: NodeId,
        /// The command that was on its way.
        token: u64,
    },
    /// A command of a routine was passed over. The routine goes on.
    Skipped {
        /// The routine of the command.
        routine: RoutineId,
        /// Which one, from 0.
        step: u16,
        /// Why.
        why: SkipReason,
    },
    /// The hold of a [preemptible](crate::Step::preemptible) command ends early, and the routine goes
    /// on: something more urgent needs one of its devices.
    CutShort {
        /// The routine that held it.
        routine: RoutineId,
        /// The device that it held; perhaps not the one that is needed.
        device: NodeId,
        /// What is more urgent; `None` for a [hand](Command::ByHand).
        by: Option<RoutineId>,
    },
    /// The routine is finished, with all its commands but those that were skipped.
    Committed(RoutineId),
    /// The routine is going to be undone, as soon as its command on the way has an outcome.
    Aborting {
        /// Which one.
        routine: RoutineId,
        /// Why.
        why: AbortReason,
    },
    /// The routine is out: what remains of it is said by device.
    Aborted {
        /// Which one.
        routine: RoutineId,
        /// Why.
        why: AbortReason,
        /// What becomes of each device that it commanded, or asked for its state.
        undo: Vec<(NodeId, UndoStatus)>,
    },
    /// A device is back in the state that it had without what was aborted or passed over: it was
    /// brought back, or came into that state otherwise, by hand or because another routine was
    /// undone, too.
    Restored(NodeId),
    /// A device refused to be restored as often as was tried. It is left as it is, until it
    /// restarts or is changed by hand, or a routine's command to it is done.
    Stuck(NodeId),
    /// What was [begun](UndoStatus::Begun) or [pending](UndoStatus::Pending) on this device is
    /// given up: the state to bring it back to is unknown now, or it was [taken
    /// out](Command::Remove).
    GivenUp(NodeId),
    /// What is told next in the order that explains the end: routines one by one, and failures and
    /// restarts of devices. It is final.
    Ordered(Placed<V>),
    /// Another routine changed a device that this unfinished one had changed (section 7.1:
    /// temporary incongruence). Emitted once a routine; under [`Weak`](crate::Visibility::Weak) not
    /// at all, for there the hub does not keep which routine changed what.
    Incongruent {
        /// The routine with the change that is hidden.
        routine: RoutineId,
        /// The device.
        device: NodeId,
        /// The routine that hides it.
        by: RoutineId,
    },
}

/// Something that has its place in the serial order.
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
        /// Which device.
        device: NodeId,
        /// Its state, if it is known.
        state: Option<V>,
    },
}

/// Why a command was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SkipReason {
    /// Its condition does not hold.
    Condition,
    /// This device is down: the one that it commands, or the one that its condition asks about.
    Down(NodeId),
    /// The device refused.
    Refused,
    /// Its outcome is unknown.
    Unknown,
    /// The state of this device is unknown, about which its condition asks.
    StateUnknown(NodeId),
}

/// Why a routine is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AbortReason {
    /// The application asked for it.
    Cancelled,
    /// A command that must succeed was not done.
    Step(u16, SkipReason),
    /// A device failed or restarted that the routine needed.
    Device {
        /// Which one.
        device: NodeId,
        /// The command that needed it, or asked about it: the next one, or else the last one.
        /// `None` under [`StrongGlobalStrict`](crate::Visibility::StrongGlobalStrict) if none did.
        step: Option<u16>,
    },
    /// It went before a routine that waits, and took longer than was planned.
    LeaseOver {
        /// The device that it was lent.
        device: NodeId,
        /// The command that needed it, as in [`Device`](Self::Device).
        step: Option<u16>,
    },
    /// This later run of its key, of the mode [`Restart`](crate::Mode::Restart), takes its place.
    Superseded(RoutineId),
    /// Something more urgent needs a device.
    Preempted {
        /// The routine that does; `None` for a [hand](Command::ByHand).
        by: Option<RoutineId>,
        /// The device. Where one routine runs at a time, and for earlier runs of its key, it may be
        /// one that only the preempted routine needs.
        device: NodeId,
        /// The command that needed it, as in [`Device`](Self::Device).
        step: Option<u16>,
    },
}

/// What becomes of a device that an aborted routine commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum UndoStatus {
    /// It was not changed, or a later routine has changed it since.
    NotNeeded,
    /// It is restored now; or it goes straight to the state into which the routine sets it that
    /// supersedes or preempts this one. One of [`Event::Restored`], [`Event::Stuck`] and
    /// [`Event::GivenUp`] follows; it may be the end of several that had begun on the device.
    Begun,
    /// The same, when it is up again and no command can act [late](Command::Lateness) any more.
    Pending,
    /// It should be restored, and has refused to be ([`Event::Stuck`]): it is left as it is until
    /// it moves again.
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
    /// A long command on this device is over.
    Hold(NodeId),
    /// The rollback of this device is tried again.
    Retry(NodeId),
    /// The pre-lease of this device is over.
    Lease(NodeId),
    /// This routine is overtaken no longer. Armed until its first command is issued.
    Patience(RoutineId),
    /// A command to this device that came back unknown cannot act any more.
    Late(NodeId),
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The routine has no command.
    #[error("the routine has no command: give it one")]
    Empty,
    /// The routine has too many commands.
    #[error("the routine has {found} commands and may have {limit}: split it, or raise step_limit")]
    TooLong {
        /// How many it has.
        found: usize,
        /// How many it may have.
        limit: u16,
    },
    /// No command would be done in time. Which one, from 0.
    #[error("command {}, counted from 1, has a timeout of 0: give a time longer than devices take, or none", u32::from(*.0) + 1)]
    NoTime(u16),
    /// Too long a condition of a command.
    #[error("the condition of command {}, counted from 1, has {found} parts: leave it at most 64", u32::from(*number) + 1)]
    LongCondition {
        /// Which command, from 0.
        number: u16,
        /// How many parts it has; there may be [`Clause::MOST`](crate::Clause::MOST).
        found: usize,
    },
    /// No such device.
    #[error("device {0} is unknown to the hub: add it with Command::Device first")]
    UnknownDevice(NodeId),
    /// No such routine.
    #[error("routine {0} is unknown, or finished: name one that waits or runs")]
    UnknownRoutine(RoutineId),
    /// A device that is there.
    #[error("device {0} is known already: report its state with Command::Observed")]
    KnownDevice(NodeId),
    /// A routine still needs the device, or it is to be restored.
    #[error(
        "device {0} is in use, or is to be restored: wait until the routines that need it are finished"
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
    /// As many runs of this key as may be are unfinished.
    #[error(
        "{limit} routines with the same key are unfinished, routine {routine} first: wait until it is finished, cancel one, or raise the limit of the mode"
    )]
    QueueFull {
        /// The first of them.
        routine: RoutineId,
        /// How many there may be.
        limit: NonZeroU16,
    },
    /// The key is too long.
    #[error("the key has {found} bytes and may have {limit}: shorten it")]
    KeyTooLong {
        /// How many it has.
        found: usize,
        /// How many it may have.
        limit: usize,
    },
    /// No room for a routine. To find that takes as long as to join committed ones: O(e u), with e
    /// the places of routines on devices and u those that are unfinished.
    #[error("{limit} routines are unfinished: wait until one is finished, or raise routine_limit")]
    TooManyRoutines {
        /// How many there may be.
        limit: u32,
    },
    /// No room for what waits for its place in the order.
    #[error(
        "{limit} committed routines, failures and changes wait for routines before them: wait until those are finished, cancel them, or raise order_limit"
    )]
    TooManyOrdered {
        /// How many there may be.
        limit: u32,
    },
    /// No room for a device.
    #[error("there are {limit} devices: remove one with Command::Remove, or raise device_limit")]
    TooManyDevices {
        /// How many there may be.
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
        /// How long.
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
    /// The device that is the cause, for an abort of this routine; `None` if it was cancelled or
    /// superseded.
    #[must_use]
    pub fn device<V>(self, routine: &Routine<V>) -> Option<NodeId> {
        match self {
            Self::Cancelled | Self::Superseded(_) => None,
            Self::Device { device, .. }
            | Self::LeaseOver { device, .. }
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

    /// The command that is to blame, counted from 0: the one that failed, the one with the
    /// condition that could not be asked, or the one that needs the device.
    #[must_use]
    pub const fn step(self) -> Option<u16> {
        match self {
            Self::Cancelled | Self::Superseded(_) => None,
            Self::Device { step, .. }
            | Self::LeaseOver { step, .. }
            | Self::Preempted { step, .. } => step,
            Self::Step(step, _) => Some(step),
        }
    }

    /// The routine to blame, if it is another one.
    #[must_use]
    pub const fn routine(self) -> Option<RoutineId> {
        match self {
            Self::Superseded(by) => Some(by),
            Self::Preempted { by, .. } => by,
            Self::Cancelled | Self::Device { .. } | Self::LeaseOver { .. } | Self::Step(..) => None,
        }
    }

    /// Whether it is aborted for another, which begins at once.
    pub(crate) const fn makes_room(self) -> bool {
        matches!(self, Self::Superseded(_) | Self::Preempted { .. })
    }
}

impl Reject {
    /// The device that it is about.
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
