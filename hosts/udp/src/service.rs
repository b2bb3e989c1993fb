//! Commands and answers between handles and the task of a node.

use selvedge_camera::sections::Name;
use selvedge_core::Member;
use selvedge_core::shared::{self, Service};
use selvedge_groups::{
    GroupId,
    store::{Entry, Key, Operation, Stored},
};
use selvedge_kgroup::TriggerId;
use thiserror::Error;

use crate::Observed;
use crate::event::OtherSite;
use crate::gates::{Gate, Settings};

/// The types of commands and answers between handles and the task.
#[derive(Debug)]
pub(crate) struct NodeService;

impl Service for NodeService {
    type Command = Command;
    type Answer = Answer;
    type Event = Observed;
    type Reject = Reject;
}

/// A command of a handle.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Something of the machine.
    Machine(selvedge::Command),
    /// A gate to a section. Without settings: with its own, or those of all sections.
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

/// A request to a k-group.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// A map, for an entry.
    Get(Key),
    /// A map, for a change.
    Change(Operation),
    /// A routine, for a run.
    Trigger(TriggerId),
}

/// The answer to a command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Done,
    Gate(Gate),
    Members(Box<[Member]>),
    Found(Option<Entry>),
    Stored(Stored),
}

/// The reason why a running node refused a command of its application. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The machine refused it.
    #[error(transparent)]
    Node(#[from] selvedge::Reject),
    /// The section is in use with other settings.
    #[error(
        "the section {0:?} is in use with other settings: ask for its gate without settings, or wait until all its gates and guards are dropped"
    )]
    OtherSettings(Name),
    /// The node took a later life before the k-group answered.
    #[error(
        "the node began a new life before the group answered: ask again, a change may have been made"
    )]
    NewLife,
    /// Members have other sites, and too few are left for an answer of a group.
    #[error(
        "{} has a site with the digest {:08x}, and this node has {:08x}; too few nodes have this one for an answer: \
         start all nodes with one site; \
         a change may be made then", .0.member, .0.found, .0.own
    )]
    OtherSite(OtherSite),
}

/// The reason why a command was not carried out: it was refused, or the node has stopped.
pub type Error = shared::Error<Reject>;

/// An answer to another question: a defect of the task.
pub(crate) fn misplaced(answer: &Answer) -> Error {
    debug_assert!(false, "a question has another answer: {answer:?}");
    Error::Unanswered
}
