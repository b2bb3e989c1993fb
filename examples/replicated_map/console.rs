//! The user's commands, and the printed answers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use selvedge_core::Member;
use selvedge_core::shared::{self, Closed};
use selvedge_host::Handle;
use selvedge_replica::{Command, Event, Replica};

use crate::map::{Expected, Map, Outcome, Slot, Update, show};

/// A command that is not answered yet, by the number of its proposal or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Update(u64),
    Read(u64),
}

/// The console of one member.
pub(crate) struct Console {
    node: Handle<Replica<Map>>,
    me: Member,
    /// Open questions, with their lines.
    open: BTreeMap<Question, String>,
    reads: u64,
    /// Watched keys, with the revision that was printed last.
    watched: BTreeMap<String, u64>,
}

impl Console {
    pub(crate) const fn new(node: Handle<Replica<Map>>, me: Member) -> Self {
        Self {
            node,
            me,
            open: BTreeMap::new(),
            reads: 0,
            watched: BTreeMap::new(),
        }
    }

    /// Takes a line. Does not wait for the group's answer.
    pub(crate) async fn ask(&mut self, line: String) -> Result<(), Closed> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (question, command) = match *words.as_slice() {
            [] => return Ok(()),
            ["set", key, value] => self.propose(key, Expected::Anything, value).await?,
            ["cas", key, old, value] => self.propose(key, parse(old), value).await?,
            ["get", _] => {
                self.reads += 1;
                (Question::Read(self.reads), Command::Read(self.reads))
            }
            ["watch", key] => {
                let slot = self.get(key).await?;
                say(&format!("watch {key}: {}", show(slot.as_ref())));
                let revision = slot.map_or(0, |it| it.revision);
                self.watched.insert(key.into(), revision);
                return Ok(());
            }
            ["status"] => {
                say(&self.node.read(status).await?);
                return Ok(());
            }
            _ => {
                say(&format!(
                    "{line}: unknown command: use set KEY VALUE, cas KEY OLD VALUE, get KEY, watch KEY or status"
                ));
                return Ok(());
            }
        };
        self.open.insert(question, line);
        match self.node.submit(command).await {
            Ok(()) => Ok(()),
            Err(shared::Error::Rejected(why)) => {
                self.answer(question, &format!("refused, {why}"));
                Ok(())
            }
            Err(shared::Error::Closed | shared::Error::Unanswered) => Err(Closed),
        }
    }

    /// The update gets the next number: no other caller proposes.
    async fn propose(
        &self,
        key: &str,
        expected: Expected,
        value: &str,
    ) -> Result<(Question, Command<Update>), Closed> {
        let (key, value) = (key.into(), value.into());
        let number = self.node.read(Replica::next_number).await?;
        let update = Update {
            key,
            expected,
            value,
        };
        Ok((Question::Update(number), Command::Propose(update)))
    }

    fn answer(&mut self, question: Question, answer: &str) {
        if let Some(line) = self.open.remove(&question) {
            say(&format!("{line}: {answer}"));
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others answer nothing")]
    pub(crate) async fn on_event(&mut self, event: Event<Map>) -> Result<(), Closed> {
        match event {
            Event::Applied {
                by,
                number,
                outcome,
                ..
            } => {
                if by == self.me {
                    self.answer(Question::Update(number), &outcome.to_string());
                }
                if let Outcome::Changed { key, slot } = outcome {
                    self.on_change(&key, &slot);
                }
            }
            Event::Installed(_) => self.look_again().await?,
            Event::Readable { read, .. } => {
                let question = Question::Read(read);
                let line = self.open.get(&question);
                let key = line.and_then(|it| it.split_whitespace().nth(1));
                if let Some(key) = key {
                    let slot = self.get(key).await?;
                    self.answer(question, &show(slot.as_ref()));
                }
            }
            Event::Overtaken { number, .. }
            | Event::Forgotten { number, .. }
            | Event::Abandoned { number, .. } => {
                self.answer(Question::Update(number), "done or not: get it");
            }
            Event::Unreadable(read) => {
                self.answer(Question::Read(read), "this node is no member any more");
            }
            Event::Unavailable { .. } => say("no quorum answers, trying on"),
            Event::Available => say("the group answers again"),
            _ => {}
        }
        Ok(())
    }

    /// Events were missed, and among them perhaps answers.
    pub(crate) async fn on_lag(&mut self) -> Result<(), Closed> {
        let open: Vec<Question> = self.open.keys().copied().collect();
        for question in open {
            self.answer(question, "done or not: get it");
        }
        self.look_again().await
    }

    async fn look_again(&mut self) -> Result<(), Closed> {
        let keys: Vec<String> = self.watched.keys().cloned().collect();
        for key in keys {
            if let Some(slot) = self.get(&key).await? {
                self.on_change(&key, &slot);
            }
        }
        Ok(())
    }

    fn on_change(&mut self, key: &str, slot: &Slot) {
        if let Some(printed) = self.watched.get_mut(key).filter(|it| **it < slot.revision) {
            *printed = slot.revision;
            say(&format!("changed {key}: {}", show(Some(slot))));
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Slot>, Closed> {
        let key = key.to_owned();
        let get = move |replica: &Replica<Map>| replica.state()?.get(&key).cloned();
        self.node.read(get).await
    }
}

fn say(line: &str) {
    writeln!(io::stdout(), "{line}").ok(); // A closed output ends no member.
}

fn status(replica: &Replica<Map>) -> String {
    let leader = replica
        .leader()
        .map_or("none".into(), |it| it.0.to_string());
    let votes = if replica.votes() {
        "votes"
    } else {
        "has no vote"
    };
    let (me, version) = (replica.me(), replica.version());
    format!("status: {me} {votes}, leader {leader}, version {version}")
}

fn parse(old: &str) -> Expected {
    let revision = old.strip_prefix('@').and_then(|it| it.parse().ok());
    match revision {
        _ if old == "-" => Expected::Absent,
        Some(revision) => Expected::Revision(revision),
        None => Expected::Value(old.into()),
    }
}
