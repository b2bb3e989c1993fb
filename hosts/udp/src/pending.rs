//! What handles asked of k-groups, and was not answered yet. The machine bounds how much that is.

use std::collections::BTreeMap;

use selvedge_core::shared::Reply;
use selvedge_groups::{
    GroupId,
    store::{StoreCommand, StoreEvent},
};
use selvedge_kgroup::{Command, Event, TriggerId};

use crate::service::{Answer, Question, Refused};

/// What an answer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    Map(u64),
    Trigger(GroupId, TriggerId),
}

/// The callers that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// The ticket of the last question.
    last: u64,
    waiting: BTreeMap<Asked, Vec<Reply<Answer, Refused>>>,
}

impl Pending {
    /// What to ask the machine, and what the answer will name.
    pub(crate) fn wish(&mut self, group: GroupId, question: Question) -> (Asked, Command) {
        self.last += 1;
        let ticket = self.last;
        let command = match question {
            Question::Get(key) => StoreCommand::Get { ticket, key },
            Question::Change(operation) => StoreCommand::Change { ticket, operation },
            Question::Trigger(id) => {
                let routine = group;
                return (
                    Asked::Trigger(routine, id),
                    Command::Trigger { routine, id },
                );
            }
        };
        let map = group;
        (Asked::Map(ticket), Command::Map { map, command })
    }

    /// The machine has taken it.
    pub(crate) fn wait(&mut self, asked: Asked, reply: Reply<Answer, Refused>) {
        self.waiting.entry(asked).or_default().push(reply);
    }

    /// Answers those that wait for it; returns an event for which nobody does.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are the application's"
    )]
    pub(crate) fn on_event(&mut self, event: Event) -> Option<Event> {
        let (asked, answer) = match event {
            Event::Map {
                event: StoreEvent::Changed { ticket, stored },
                ..
            } => (Asked::Map(ticket), Answer::Stored(stored)),
            Event::Map {
                event: StoreEvent::Found { ticket, entry },
                ..
            } => (Asked::Map(ticket), Answer::Found(entry)),
            Event::Triggered { routine, id } => (Asked::Trigger(routine, id), Answer::Done),
            other => return Some(other),
        };
        for reply in self.waiting.remove(&asked).into_iter().flatten() {
            reply.send(Ok(answer.clone()));
        }
        None
    }

    /// What was asked in the former life is not answered any more.
    pub(crate) fn begin_anew(&mut self) {
        for reply in core::mem::take(&mut self.waiting).into_values().flatten() {
            reply.send(Err(Refused::NewLife));
        }
    }
}
