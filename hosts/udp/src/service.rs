//! Commands and answers between handles and the task of a node.

use std::sync::Arc;

use selvedge_camera::sections::Name;
use selvedge_core::shared::{self, Service};
use selvedge_core::{Member, Span};
use selvedge_groups::{
    GroupId,
    store::{BYTES_MAX, ENTRIES_MAX, Entry, Key, Operation, Page, SESSIONS_MAX, SessionId, Stored},
};
use selvedge_kgroup::{Site, TriggerId};
use selvedge_seal::Keyring;
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use crate::Observed;
use crate::event::OtherSite;
use crate::gates::{Gate, Settings};
use crate::kept::{self, Owner};
use crate::tags::{Tags, TagsTooLong};

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
    /// Another site for the k-groups.
    ChangeSite(Arc<Site>),
    /// A k-group begins anew.
    BeginAnew(GroupId),
    /// An answer of a k-group.
    Group { group: GroupId, question: Question },
    /// Other tags for this node.
    SetTags(Tags),
    /// Other keys for the datagrams.
    SetKeys(Keyring),
    /// An owner of a session that goes on.
    Resume(kept::Name),
    /// A question to all members.
    Query {
        payload: Box<[u8]>,
        wait: Span,
        answers: UnboundedSender<(Member, Box<[u8]>)>,
    },
    /// The answer to a member's question with this number.
    Answer {
        question: (Member, u64),
        payload: Box<[u8]>,
    },
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
    /// A map, for entries.
    List { prefix: Key, after: Option<Key> },
    /// A map, for a change.
    Change(Operation),
    /// A routine, for a run.
    Trigger(TriggerId),
}

/// The key of a request, which its answer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    Map(u64),
    Trigger(GroupId, TriggerId),
}

impl Question {
    /// Returns true if a session is to begin.
    pub(crate) const fn begins_session(&self) -> bool {
        matches!(self, Self::Change(Operation::BeginSession { .. }))
    }
}

/// The answer to a command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Done,
    Gate(Gate),
    Members(Box<[Member]>),
    Found(Option<Entry>),
    Listed(Page),
    Stored(Stored),
    Session(Arc<Owner>),
    Begun {
        owner: Arc<Owner>,
        version: u64,
        is_otherwise: bool,
    },
    Generation(u32),
}

/// The reason why a running node refused a command of its application. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The machine refused it.
    #[error(transparent)]
    Node(#[from] selvedge::Reject),
    /// The tags are too long.
    #[error(transparent)]
    Tags(#[from] TagsTooLong),
    /// The node has no keys to replace.
    #[error("this node sends in the clear: give it keys at its start, by Setup::seal")]
    NotSealed,
    /// The command would replace the node's addresses.
    #[error(
        "the metadata of this node is its addresses and tags: set the tags by Handle::set_tags, and the \
         addresses by Setup::advertise"
    )]
    Metadata,
    /// The section is in use with other settings.
    #[error(
        "the section {0:?} is in use with other settings: ask for its gate without settings, or wait until all its gates and guards are dropped"
    )]
    OtherSettings(Name),
    /// A question or an answer is too long.
    #[error(
        "{found} bytes are too long, a question or an answer has at most {limit}: send the name of an entry of a map instead"
    )]
    QueryTooLong {
        /// The number of bytes.
        found: usize,
        /// The limit: [`QUERY_MAX`](crate::query::QUERY_MAX), or less where frames are short.
        limit: usize,
    },
    /// Too many questions wait for answers.
    #[error(
        "{limit} questions of this node wait for answers, the limit: drop one, or wait until one is over"
    )]
    QueriesFull {
        /// The limit.
        limit: usize,
    },
    /// The question is over, or unknown.
    #[error(
        "no such question waits for an answer: its time is over, or this node never received it"
    )]
    NoQuestion,
    /// The question has an answer of this node.
    #[error("this node has answered the question, and its first answer stands")]
    Answered,
    /// The node leaves the mesh.
    #[error("the node leaves the mesh, so no session begins on it")]
    Leaving,
    /// The node took a later life before the k-group answered.
    #[error(
        "the node began a new life before the group answered: ask again, a change may have been made"
    )]
    NewLife,
    /// This node's site and that of others cannot become one
    /// ([`NodeEvent::OtherSite`](crate::NodeEvent::OtherSite)). A request to a group may be carried out
    /// later.
    #[error(transparent)]
    OtherSite(OtherSite),
    /// The session has ended.
    #[error("the session {0} has ended, and its entries are removed: begin another one")]
    SessionOver(SessionId),
    /// The map has no room for another entry.
    #[error(
        "the map has {ENTRIES_MAX} entries or {BYTES_MAX} bytes, the limits: remove some, or use another map"
    )]
    MapFull,
    /// The map has no room for another session.
    #[error(
        "the map has {SESSIONS_MAX} sessions, the limit, or another session that was to own an entry has ended: end some, or begin it in another map"
    )]
    NoSession,
    /// An entry is not as the transaction expected, and it has no other steps.
    #[error("an entry is not as expected, its version is {found:?}: read it, and try again")]
    Mismatch {
        /// The version of the first such entry; `None` if the map does not have it.
        found: Option<u64>,
    },
    /// Another change of the site was decided first.
    #[error(
        "another site was decided first, of generation {generation}: make the change from Handle::site again"
    )]
    OtherChange {
        /// The generation of the present site.
        generation: u32,
    },
}

/// The reason why a command was not carried out: it was refused, or the node has stopped.
pub type Error = shared::Error<Reject>;

/// An answer to another question: a defect of the task.
pub(crate) fn misplaced(answer: &Answer) -> Error {
    debug_assert!(false, "a question has another answer: {answer:?}");
    Error::Unanswered
}
