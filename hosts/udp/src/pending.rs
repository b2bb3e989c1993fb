//! Requests of handles to k-groups without an answer. The machine bounds their number.

use std::collections::BTreeMap;

use selvedge_core::shared::Reply;
use selvedge_groups::{
    GroupId,
    store::{StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup::{Command, Event};

use crate::kept::{Kept, Step};
use crate::service::{Answer, Asked, Question, Reject};

/// The callers that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// The ticket of the last request.
    last: u64,
    waiting: BTreeMap<Asked, Vec<Reply<Answer, Reject>>>,
}

impl Pending {
    /// The command for the machine, and the key of its answer.
    pub(crate) fn request(&mut self, group: GroupId, question: Question) -> (Asked, Command) {
        self.last += 1;
        let ticket = self.last;
        let command = match question {
            Question::Get(key) => StoreCommand::Get { ticket, key },
            Question::List { prefix, after } => StoreCommand::List {
                ticket,
                prefix,
                after,
            },
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

    /// Adds a caller, once the machine has accepted the request.
    pub(crate) fn wait(&mut self, asked: Asked, reply: Reply<Answer, Reject>) {
        self.waiting.entry(asked).or_default().push(reply);
    }

    /// Answers the callers that wait for it; returns the event if there are none.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are the application's"
    )]
    pub(crate) fn on_event(&mut self, event: Event, kept: &Kept) -> Option<Event> {
        let (asked, answer) = match event {
            Event::Map {
                map,
                event:
                    StoreEvent::Changed {
                        ticket,
                        stored:
                            Stored::Begun {
                                session,
                                version,
                                is_otherwise,
                            },
                    },
            } => {
                // If its caller has given up, the answer is dropped, and the session ends.
                let owner = kept.own((map, session), Step::Kept, true);
                let begun = Answer::Begun {
                    owner,
                    version,
                    is_otherwise,
                };
                (Asked::Map(ticket), begun)
            }
            Event::Map {
                event: StoreEvent::Changed { ticket, stored },
                ..
            } => (Asked::Map(ticket), Answer::Stored(stored)),
            Event::Map {
                event: StoreEvent::Found { ticket, entry },
                ..
            } => (Asked::Map(ticket), Answer::Found(entry)),
            Event::Map {
                event: StoreEvent::Listed { ticket, page },
                ..
            } => (Asked::Map(ticket), Answer::Listed(page)),
            Event::Triggered { routine, id } => (Asked::Trigger(routine, id), Answer::Done),
            other => return Some(other),
        };
        for reply in self.waiting.remove(&asked).into_iter().flatten() {
            reply.send(Ok(answer.clone()));
        }
        None
    }

    /// Refuses all requests.
    pub(crate) fn refuse_all(&mut self, why: Reject) {
        for reply in core::mem::take(&mut self.waiting).into_values().flatten() {
            reply.send(Err(why));
        }
    }
}
