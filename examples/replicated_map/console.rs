//! The user's commands, and the printed answers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use selvedge_replica::{Command, Event, Replica};

use crate::map::{Expected, Map, Outcome, Slot, Update, show};

/// A command that is not answered yet, by the number of its proposal or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Update(u64),
    Read(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Console {
    /// Open questions, with their lines.
    open: BTreeMap<Question, String>,
    reads: u64,
    /// Watched keys, with the revision that was printed last.
    watched: BTreeMap<String, u64>,
    /// Lines to print when all facts that they depend on are stored.
    lines: Vec<String>,
}

impl Console {
    /// Takes a line. Returns the command that it has for the group.
    pub(crate) fn ask(
        &mut self,
        line: String,
        replica: &Replica<Map>,
    ) -> Option<(Question, Command<Update>)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (question, command) = match *words.as_slice() {
            [] => return None,
            ["set", key, value] => propose(key, Expected::Anything, value, replica),
            ["cas", key, old, value] => propose(key, parse(old), value, replica),
            ["get", _] => {
                self.reads += 1;
                (Question::Read(self.reads), Command::Read(self.reads))
            }
            ["watch", key] => {
                let slot = get(replica, key);
                self.lines.push(format!("watch {key}: {}", show(slot)));
                let revision = slot.map_or(0, |it| it.revision);
                self.watched.insert(key.into(), revision);
                return None;
            }
            ["status"] => {
                let leader = replica
                    .leader()
                    .map_or("none".into(), |it| it.0.to_string());
                let votes = if replica.votes() {
                    "votes"
                } else {
                    "has no vote"
                };
                let (me, version) = (replica.me(), replica.version());
                let status = format!("status: {me} {votes}, leader {leader}, version {version}");
                self.lines.push(status);
                return None;
            }
            _ => {
                self.lines.push(format!("{line}: unknown command: use set KEY VALUE, cas KEY OLD VALUE, get KEY, watch KEY or status"));
                return None;
            }
        };
        self.open.insert(question, line);
        Some((question, command))
    }

    pub(crate) fn answer(&mut self, question: Question, answer: &str) {
        if let Some(line) = self.open.remove(&question) {
            self.lines.push(format!("{line}: {answer}"));
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others answer nothing")]
    pub(crate) fn on_event(&mut self, event: Event<Map>, replica: &Replica<Map>) {
        match event {
            Event::Applied {
                by,
                number,
                outcome,
                ..
            } => {
                if by == replica.me() {
                    self.answer(Question::Update(number), &outcome.to_string());
                }
                if let Outcome::Changed { key, slot } = outcome {
                    self.on_change(&key, &slot);
                }
            }
            Event::Installed(_) => {
                let keys: Vec<String> = self.watched.keys().cloned().collect();
                for key in keys {
                    if let Some(slot) = get(replica, &key) {
                        self.on_change(&key, slot);
                    }
                }
            }
            Event::Readable { read, .. } => {
                let question = Question::Read(read);
                let line = self.open.get(&question);
                let key = line.and_then(|it| it.split_whitespace().nth(1));
                let slot = key.and_then(|it| get(replica, it));
                self.answer(question, &show(slot));
            }
            Event::Overtaken { number, .. }
            | Event::Forgotten { number, .. }
            | Event::Abandoned { number, .. } => {
                self.answer(Question::Update(number), "done or not: get it");
            }
            Event::Unreadable(read) => {
                self.answer(Question::Read(read), "this node is no member any more");
            }
            Event::Unavailable { .. } => self.lines.push("no quorum answers, trying on".into()),
            Event::Available => self.lines.push("the group answers again".into()),
            _ => {}
        }
    }

    fn on_change(&mut self, key: &str, slot: &Slot) {
        if let Some(printed) = self.watched.get_mut(key).filter(|it| **it < slot.revision) {
            *printed = slot.revision;
            self.lines
                .push(format!("changed {key}: {}", show(Some(slot))));
        }
    }

    /// Prints the waiting lines, when all facts are stored.
    pub(crate) fn print(&mut self) {
        let mut out = io::stdout().lock();
        for line in self.lines.drain(..) {
            writeln!(out, "{line}").ok(); // A closed output ends no member.
        }
    }
}

fn propose(
    key: &str,
    expected: Expected,
    value: &str,
    replica: &Replica<Map>,
) -> (Question, Command<Update>) {
    let (key, value) = (key.into(), value.into());
    let update = Update {
        key,
        expected,
        value,
    };
    (
        Question::Update(replica.next_number()),
        Command::Propose(update),
    )
}

fn parse(old: &str) -> Expected {
    let revision = old.strip_prefix('@').and_then(|it| it.parse().ok());
    match revision {
        _ if old == "-" => Expected::Absent,
        Some(revision) => Expected::Revision(revision),
        None => Expected::Value(old.into()),
    }
}

fn get<'a>(replica: &'a Replica<Map>, key: &str) -> Option<&'a Slot> {
    replica.state()?.get(key)
}
