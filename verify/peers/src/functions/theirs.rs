//! A server of raft-rs behind the lab's mailboxes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protobuf::Message as _;
use raft::StateRole;
use raft::prelude::{Config, Entry, Message as Notified, RawNode};
use raft::storage::MemStorage;
use slog::{Discard, Logger, o};

use super::servers::broker::{Out, Server};
use super::servers::raft::Rule;

/// It ticks when it wakes: a leader sends a heartbeat in each period, and elections begin after 5
/// to 9.
const HEARTBEAT: usize = 1;
const ELECTION: usize = 5;

/// A message between servers.
pub(crate) enum Message {
    Raft(Vec<u8>),
    /// The function of a task has returned, where the leader compares.
    Returned(u64),
}

/// Messages that raft-rs may send only after its state is stored.
struct Unstored {
    number: u64,
    /// The tasks that run meanwhile: with [`Rule::Acknowledge`], running a function is a part of
    /// storing it.
    tasks: BTreeSet<u64>,
    messages: Vec<Notified>,
}

pub(crate) struct RaftRs {
    node: RawNode<MemStorage>,
    rule: Rule,
    /// True if it stands for election at first.
    stands: bool,
    unstored: VecDeque<Unstored>,
    asked: BTreeSet<u64>,
    committed: BTreeSet<u64>,
    answered: BTreeSet<u64>,
    /// The servers that have returned.
    returned: BTreeMap<u64, BTreeSet<usize>>,
    voters: usize,
}

impl RaftRs {
    /// All servers of a cluster; the first one stands when it wakes.
    pub(crate) fn cluster(count: usize, rule: Rule) -> Vec<Self> {
        let voters: Vec<u64> = (1..=count as u64).collect();
        let server = |&id: &u64| {
            let config = Config {
                id,
                heartbeat_tick: HEARTBEAT,
                election_tick: ELECTION,
                ..Config::default()
            };
            let storage = MemStorage::new_with_conf_state((voters.clone(), vec![]));
            let logger = Logger::root(Discard, o!());
            Self {
                node: RawNode::new(&config, storage, &logger).expect("settings that work"),
                rule,
                stands: id == 1,
                unstored: VecDeque::new(),
                asked: BTreeSet::new(),
                committed: BTreeSet::new(),
                answered: BTreeSet::new(),
                returned: BTreeMap::new(),
                voters: count,
            }
        };
        voters.iter().map(server).collect()
    }

    pub(crate) fn leads(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    fn me(&self) -> usize {
        self.node.raft.id as usize - 1
    }

    fn run(&mut self, task: u64, out: &mut Out<Message>) {
        if self.asked.insert(task) {
            out.runs.push(task);
        }
    }

    fn carry_out(&mut self, out: &mut Out<Message>) {
        while self.node.has_ready() {
            let mut ready = self.node.ready();
            send(ready.take_messages(), out);
            let committed = ready.take_committed_entries();
            let store = self.node.store().clone();
            let appended = store.wl().append(ready.entries());
            appended.expect("entries in order");
            if let Some(state) = ready.hs() {
                store.wl().set_hardstate(state.clone());
            }
            let new: BTreeSet<u64> = tasks(ready.entries()).collect();
            let mut unstored = Unstored {
                number: ready.number(),
                tasks: BTreeSet::new(),
                messages: ready.take_persisted_messages(),
            };
            self.node.advance_append_async(ready);
            if self.rule == Rule::Acknowledge {
                for &task in &new {
                    self.run(task, out);
                }
                unstored.tasks = new;
            }
            self.unstored.push_back(unstored);
            self.apply(&committed, out);
            self.node.advance_apply();
            self.say_what_is_stored(out);
        }
        self.answer(out);
    }

    /// Sends messages whose state is stored, in the order of storing.
    fn say_what_is_stored(&mut self, out: &mut Out<Message>) {
        while let Some(unstored) = self.unstored.front() {
            let me = self.me();
            let has_run = |task: &u64| self.returned.get(task).is_some_and(|it| it.contains(&me));
            if !unstored.tasks.iter().all(has_run) {
                return;
            }
            if let Some(stored) = self.unstored.pop_front() {
                send(stored.messages, out);
                self.node.on_persist_ready(stored.number);
            }
        }
    }

    fn apply(&mut self, entries: &[Entry], out: &mut Out<Message>) {
        for task in tasks(entries) {
            self.committed.insert(task);
            if self.rule != Rule::Acknowledge {
                self.run(task, out);
            }
        }
    }

    fn answer(&mut self, out: &mut Out<Message>) {
        if !self.leads() {
            return;
        }
        let me = self.me();
        for &task in &self.committed {
            let returned = self.returned.get(&task);
            let is_agreed = match self.rule {
                Rule::Acknowledge => true,
                Rule::Apply => returned.is_some_and(|it| it.contains(&me)),
                Rule::Compare => returned.is_some_and(|it| 2 * it.len() > self.voters),
            };
            if is_agreed && self.answered.insert(task) {
                out.answers.push(task);
            }
        }
    }

    fn note_returned(&mut self, task: u64, by: usize) {
        self.returned.entry(task).or_default().insert(by);
    }
}

impl Server for RaftRs {
    type Message = Message;

    fn wake(&mut self, out: &mut Out<Message>) {
        if std::mem::take(&mut self.stands) {
            self.node.campaign().expect("it may stand");
        }
        self.node.tick();
        self.carry_out(out);
    }

    fn receive(&mut self, from: usize, message: Message, out: &mut Out<Message>) {
        match message {
            Message::Raft(bytes) => {
                let notified = Notified::parse_from_bytes(&bytes).expect("what was written");
                // Refused messages are dropped, as a host does.
                let _taken = self.node.step(notified);
            }
            Message::Returned(task) => self.note_returned(task, from),
        }
        self.carry_out(out);
    }

    fn request(&mut self, task: u64, out: &mut Out<Message>) {
        let proposed = self.node.propose(Vec::new(), task.to_be_bytes().to_vec());
        proposed.expect("it leads");
        self.carry_out(out);
    }

    fn returned(&mut self, task: u64, out: &mut Out<Message>) {
        self.note_returned(task, self.me());
        let leader = (self.node.raft.leader_id as usize).checked_sub(1);
        if let Some(leader) = leader.filter(|it| self.rule == Rule::Compare && *it != self.me()) {
            out.sends.push((leader, Message::Returned(task)));
        }
        self.say_what_is_stored(out);
        self.carry_out(out);
    }
}

/// The tasks in entries; a leader begins with one that is empty.
fn tasks(entries: &[Entry]) -> impl Iterator<Item = u64> {
    let of = |it: &Entry| it.data.as_ref().try_into().ok().map(u64::from_be_bytes);
    entries.iter().filter_map(of)
}

fn send(messages: Vec<Notified>, out: &mut Out<Message>) {
    for message in messages {
        let bytes = message.write_to_bytes().expect("memory");
        out.sends
            .push((message.to as usize - 1, Message::Raft(bytes)));
    }
}
