//! Messages between groups. A routine's leader asks the leaders of the clusters of its devices; an
//! answer goes to the node that asked. Each message may be lost, doubled and late: a repeated
//! request is answered again, and changes nothing twice.

use selvedge_core::NodeId;
use selvedge_groups::{
    GroupId,
    store::{StoreAnswer, StoreRequest},
};
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use crate::Update;

/// A try of a run of a routine at its locks. Of two claims of a routine the later one counts: a
/// routine tries again after the try before is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Claim {
    /// The routine's group.
    pub routine: GroupId,
    /// The number of the run, from 1.
    pub instance: u64,
    /// The number of the try of that run, from 1.
    pub attempt: u32,
}

/// The name of one request that a routine run. A node that asks again uses the same name; so do
/// nodes that ask for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TriggerId(pub u64);

/// The latest occurrence of a routine's trigger of time that has come by a clock. The fields
/// are in the order of time: a clock that is ahead has the same value or a greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Due {
    /// The generation of the definition that has the trigger:
    /// [`RoutineState::since`](crate::routines::RoutineState::since).
    pub since: u32,
    /// The trigger, by its place in [`Definition::triggers`](crate::routines::Definition::triggers).
    pub trigger: u16,
    /// The number of the occurrence: the local day, counted from 1970-01-01, or the interval.
    pub occurrence: u64,
    /// True if it came longer ago than the routine's lateness, so that it is left out.
    pub is_late: bool,
}

/// The behaviour of a claim while another claim holds the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Patience {
    /// It waits in the device's queue, first come, first served (section 4.2.1, sequential).
    Queues,
    /// It does not wait (section 4.2.2, optimistic).
    Leaves,
}

/// The number of times that a command may reach its device when the leader that gave it fails.
/// Exactly once is impossible with a device that remembers nothing (erratum G7).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Delivery {
    /// The next leader gives it again: for commands that may be done twice.
    #[default]
    AtLeastOnce,
    /// The next leader does not give it again, and the outcome is unknown then.
    AtMostOnce,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Outcome {
    /// The device did it.
    Done,
    /// The device did not do it, or is down.
    Failed,
    /// Unknown: the leader that gave it failed, and it must not be given twice; or the device did
    /// not answer in time.
    Unknown,
}

/// The known status of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Status {
    /// The number of changes.
    pub version: u64,
    /// True if the device answers.
    pub is_up: bool,
    /// The last state that it reported; `None` before the first report.
    pub value: Option<State>,
}

/// A request of one group's leader to another group's leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Request {
    /// Asks a cluster's leader for a device. Answered by [`Answer::Granted`], [`Answer::Queued`],
    /// [`Answer::Busy`] or [`Answer::Over`]; a claim that queues is answered again when it is
    /// granted.
    Lock {
        /// The device.
        device: NodeId,
        /// The claim that asks.
        claim: Claim,
        /// The behaviour if another claim holds the device.
        patience: Patience,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// Gives a device back: this claim, and all earlier ones of the routine, hold it no longer,
    /// wait no longer, and are refused if they come late. Answered by [`Answer::Released`].
    Release {
        /// The device.
        device: NodeId,
        /// The last claim that is released.
        claim: Claim,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// Has a device do something. Answered by [`Answer::Acted`] when the outcome is known, by
    /// [`Answer::Over`] if the claim does not hold the device, and by [`Answer::Asleep`] each time that it is
    /// asked while the device sleeps.
    Act {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
        /// The state to bring it into.
        value: State,
        /// The delivery that is required.
        delivery: Delivery,
    },
    /// Subscribes a routine to changes of a device. Answered by [`Answer::Status`], now and at each
    /// change, until the routine has [`Seen`](Self::Seen) it.
    Watch {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// A routine has seen a device's status of this version.
    Seen {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
        /// The version.
        version: u64,
    },
    /// Asks for a device's state when the turn of a command with a condition comes. Answered by
    /// [`Answer::Read`] from a state that is up to date when it is asked, and by [`Answer::Over`]
    /// if the claim does not hold the device.
    Read {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
    },
    /// Asks a routine's leader for a run. Answered by [`Answer::Triggered`].
    Trigger(TriggerId),
    /// Asks a map's leader.
    Store(StoreRequest),
    /// Reports the occurrence that has come by the clock of a member of the routine's group. Answered by
    /// [`Answer::Counted`].
    Due(Due),
    /// Asks a routine's leader, for a cluster that has begun anew, if its run holds a device. Answered by
    /// [`Answer::Progress`].
    Progress {
        /// The cluster.
        cluster: GroupId,
        /// The device.
        device: NodeId,
        /// Distinguishes the times at which the device entered the cluster. The answer has the same.
        since: u64,
    },
}

/// The progress of a routine's run, as far as it concerns one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Progress {
    /// No run holds the device: the last one is over, or does not use it.
    Over {
        /// This claim and all before are over.
        claim: Claim,
    },
    /// The run gets its devices.
    Acquires {
        /// Its present try.
        claim: Claim,
    },
    /// The run executes, and holds the device.
    Executes {
        /// Its claim.
        claim: Claim,
        /// The number of steps that are over, or may not be given again.
        given: u16,
    },
}

/// An answer of a leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Answer {
    /// The claim holds the device.
    Granted {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
    },
    /// The claim waits in the device's queue.
    Queued {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
    },
    /// Another claim holds the device, and this one does not wait: its routine is not patient, or the
    /// queue is full.
    Busy {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
    },
    /// The claim was released, or a later one of its routine came: it comes late.
    Over {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
    },
    /// The claim has given the device back.
    Released {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
    },
    /// The outcome of a command.
    Acted {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
        /// The outcome.
        outcome: Outcome,
    },
    /// The known status of a device.
    Status {
        /// The device.
        device: NodeId,
        /// The routine that watches it.
        routine: GroupId,
        /// Its status.
        status: Status,
    },
    /// The group has no such device, or its leader's site has no such routine. Counts unless the site of the
    /// leader that asked is later.
    NoDevice {
        /// The device.
        device: NodeId,
        /// The routine that asked.
        routine: GroupId,
        /// The generation of the site of the leader that answers.
        generation: u32,
    },
    /// The known status of a device when the turn of a command comes.
    Read {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
        /// Its status.
        status: Status,
    },
    /// The routine's group has decided about this trigger: it starts one run at most.
    Triggered(TriggerId),
    /// A map's leader answers.
    Store(StoreAnswer),
    /// The routine's leader has the report of a clock; it may fail before the group decides.
    Counted(Due),
    /// The progress of a routine's run, from a state that is up to date when it is asked.
    Progress {
        /// The cluster that asked.
        cluster: GroupId,
        /// The device.
        device: NodeId,
        /// The number of the question.
        since: u64,
        /// The progress.
        progress: Progress,
        /// True if the routine watches the device.
        watches: bool,
    },
    /// The command is given when its device, which sleeps, wakes and reports. The leader that answers may fail
    /// before that.
    Asleep {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
    },
}

impl Progress {
    /// The claim that it is about.
    pub(crate) const fn claim(self) -> Claim {
        match self {
            Self::Over { claim } | Self::Acquires { claim } | Self::Executes { claim, .. } => claim,
        }
    }
}

impl Request {
    /// The routine that asks, if a routine's leader asks.
    pub(crate) const fn routine(&self) -> Option<GroupId> {
        match self {
            Self::Lock { claim, .. }
            | Self::Release { claim, .. }
            | Self::Act { claim, .. }
            | Self::Read { claim, .. } => Some(claim.routine),
            Self::Watch { routine, .. } | Self::Seen { routine, .. } => Some(*routine),
            Self::Trigger(_) | Self::Store(_) | Self::Due(_) | Self::Progress { .. } => None,
        }
    }

    /// The device for which a routine's leader asks.
    pub(crate) const fn device(&self) -> Option<NodeId> {
        match *self {
            Self::Lock { device, .. }
            | Self::Release { device, .. }
            | Self::Act { device, .. }
            | Self::Read { device, .. }
            | Self::Watch { device, .. } => Some(device),
            Self::Seen { .. }
            | Self::Trigger(_)
            | Self::Store(_)
            | Self::Due(_)
            | Self::Progress { .. } => None,
        }
    }
}

impl Answer {
    /// The routine that it is for, where it names one.
    pub(crate) const fn routine(&self) -> Option<GroupId> {
        match self {
            Self::Granted { claim, .. }
            | Self::Queued { claim, .. }
            | Self::Busy { claim, .. }
            | Self::Over { claim, .. }
            | Self::Released { claim, .. }
            | Self::Acted { claim, .. }
            | Self::Read { claim, .. }
            | Self::Asleep { claim, .. } => Some(claim.routine),
            Self::Status { routine, .. } | Self::NoDevice { routine, .. } => Some(*routine),
            Self::Triggered(_) | Self::Store(_) | Self::Counted(_) | Self::Progress { .. } => None,
        }
    }
}

/// An item between a node and a group's leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Payload {
    /// A question to the leader of a group.
    Request(Request),
    /// An answer, or a message that a leader sends unasked.
    Answer {
        /// The group of that leader.
        of: GroupId,
        /// The answer.
        answer: Answer,
    },
}

/// The messages between nodes.
pub type Message = selvedge_groups::Message<Update, Payload>;
