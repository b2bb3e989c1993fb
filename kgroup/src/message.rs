//! What groups ask of each other. A routine's leader asks the leaders of the clusters of its devices;
//! an answer goes to the node that asked. All of it may be lost, doubled and late: what is asked
//! again is answered again, and changes nothing twice.

use selvedge_core::NodeId;
use selvedge_groups::{
    GroupId,
    store::{StoreAnswer, StoreRequest},
};
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use crate::Update;

/// One try of one run of a routine at its locks. Of two claims of a routine the later one counts: a
/// routine tries again after the try before is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Claim {
    /// The routine's group.
    pub routine: GroupId,
    /// Which run: from 1.
    pub instance: u64,
    /// Which try of that run: from 1.
    pub attempt: u32,
}

/// The name of one request that a routine run: by hand, or because of the time. A node that asks again
/// uses the same one; so do nodes that ask for the same reason, such as the same time of the same day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TriggerId(pub u64);

/// What a claim does where another one holds the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Patience {
    /// It waits in the device's queue, first come, first served (section 4.2.1, sequential).
    Queues,
    /// It does not wait (section 4.2.2, optimistic).
    Leaves,
}

/// How often a command may reach its device when the leader that gave it fails. Exactly once is
/// impossible with a device that remembers nothing (erratum G7).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Delivery {
    /// The next leader gives it again: for commands that may be done twice.
    #[default]
    AtLeastOnce,
    /// The next leader does not: nobody knows then whether it was done.
    AtMostOnce,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Outcome {
    /// The device did it.
    Done,
    /// The device did not do it, or is down.
    Failed,
    /// Nobody knows: the leader that gave it failed, and it is not to be given twice; or the device did
    /// not say in time.
    Unknown,
}

/// What is known of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Status {
    /// Counts the changes.
    pub version: u64,
    /// Whether it answers.
    pub is_up: bool,
    /// What it reported last; nothing so far.
    pub value: Option<State>,
}

/// What one group's leader asks of another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Request {
    /// Asks a cluster's leader for a device. Answered by [`Answer::Granted`], [`Answer::Queued`],
    /// [`Answer::Busy`] or [`Answer::Over`]; one that queues is told again when it is granted.
    Lock {
        /// The device.
        device: NodeId,
        /// For which claim.
        claim: Claim,
        /// Whether it waits.
        patience: Patience,
    },
    /// Gives a device back: this claim, and all earlier ones of the routine, hold it no longer, wait
    /// no longer, and are refused if they come late. Answered by [`Answer::Released`].
    Release {
        /// The device.
        device: NodeId,
        /// Up to which claim.
        claim: Claim,
    },
    /// Has a device do something. Answered by [`Answer::Acted`] when it is known what became of it,
    /// and by [`Answer::Over`] if the claim does not hold the device.
    Act {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// Which command of the routine.
        step: u16,
        /// The state to bring it into.
        value: State,
        /// How often.
        delivery: Delivery,
    },
    /// A routine wants to be told of changes of a device. Answered by [`Answer::Status`], now and at
    /// each change, until the routine has [`Seen`](Self::Seen) it.
    Watch {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
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
    /// What state a device is in when the turn of a command comes that has a condition. Answered by
    /// [`Answer::Read`] from a state that is up to date when it is asked, and by [`Answer::Over`] if the
    /// claim does not hold the device.
    Read {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// Which command of the routine.
        step: u16,
    },
    /// Asks a routine's leader for a run. Answered by [`Answer::Triggered`].
    Trigger(TriggerId),
    /// Asks a map's leader.
    Store(StoreRequest),
}

/// What a leader answers.
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
    /// What became of a command.
    Acted {
        /// The device.
        device: NodeId,
        /// The claim.
        claim: Claim,
        /// Which command of the routine.
        step: u16,
        /// What became of it.
        outcome: Outcome,
    },
    /// What is known of a device.
    Status {
        /// The device.
        device: NodeId,
        /// The routine that watches it.
        routine: GroupId,
        /// Its status.
        status: Status,
    },
    /// The group has no such device: the plans of the two groups differ.
    NoDevice {
        /// The device.
        device: NodeId,
    },
    /// What is known of a device when the turn of a command comes.
    Read {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// Which command of the routine.
        step: u16,
        /// Its status.
        status: Status,
    },
    /// The routine's group has decided about this trigger: it starts one run at most.
    Triggered(TriggerId),
    /// A map's leader answers.
    Store(StoreAnswer),
}

impl Request {
    /// The routine whose leader asks, where a routine's leader does.
    pub(crate) const fn routine(&self) -> Option<GroupId> {
        match self {
            Self::Lock { claim, .. }
            | Self::Release { claim, .. }
            | Self::Act { claim, .. }
            | Self::Read { claim, .. } => Some(claim.routine),
            Self::Watch { routine, .. } | Self::Seen { routine, .. } => Some(*routine),
            Self::Trigger(_) | Self::Store(_) => None,
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
            | Self::Read { claim, .. } => Some(claim.routine),
            Self::Status { routine, .. } => Some(*routine),
            Self::NoDevice { .. } | Self::Triggered(_) | Self::Store(_) => None,
        }
    }
}

/// What travels between a node and a group's leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Parcel {
    /// A question to the leader of a group.
    Request(Request),
    /// An answer, or what a leader says unasked.
    Answer {
        /// The group whose leader says it.
        of: GroupId,
        /// What it says.
        answer: Answer,
    },
}

/// What nodes send each other.
pub type Message = selvedge_groups::Message<Update, Parcel>;
