//! What goes between handles and the task of a node.

use selvedge_camera::sections::Name;
use selvedge_core::Member;
use selvedge_core::shared::{self, Service};
use selvedge_groups::{
    GroupId,
    store::{Entry, Key, Operation, Stored},
};
use selvedge_kgroup::TriggerId;
use thiserror::Error;

use selvedge::Reject;

use crate::Observed;
use crate::gates::{Gate, Settings};

/// The types of what goes between handles and the task.
#[derive(Debug)]
pub(crate) struct NodeService;

impl Service for NodeService {
    type Command = Command;
    type Answer = Answer;
    type Event = Observed;
    type Reject = Refused;
}

/// What a handle asks.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Something of the machine.
    Machine(selvedge::Command),
    /// A gate to a section. Without settings: with those that it has, or those of all.
    Gate {
        name: Name,
        settings: Option<Settings>,
    },
    /// The members for which a section waits.
    WaitsFor(Name),
    /// An answer of a k-group.
    Group { group: GroupId, question: Question },
    /// Leave the mesh, and end.
    Leave,
    /// End at once.
    Kill,
}

/// What is asked of a k-group.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// A map, for an entry.
    Get(Key),
    /// A map, for a change.
    Change(Operation),
    /// A routine, for a run.
    Trigger(TriggerId),
}

/// What comes of a command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Done,
    Gate(Gate),
    Members(Box<[Member]>),
    Found(Option<Entry>),
    Stored(Stored),
}

/// Why a running node refused what its application asked. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The machine refused it.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// The section is in use with other settings.
    #[error(
        "the section {0:?} is in use with other settings: ask for its gate without settings, or wait until all gates and guards of it are gone"
    )]
    OtherSettings(Name),
    /// The node took a later life before the k-group answered.
    #[error(
        "the node began a new life before the group answered: ask again, a change may have been made"
    )]
    NewLife,
}

/// Why what an application asked did not happen: it was refused, or the node has stopped.
pub type Error = shared::Error<Refused>;

/// An answer to another question: a defect of the task.
pub(crate) fn misplaced(answer: &Answer) -> Error {
    debug_assert!(false, "a question has another answer: {answer:?}");
    Error::Unanswered
}
