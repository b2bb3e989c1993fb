//! Messages that no node sent.

use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};
use selvedge_replica::Entry;
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Operation, Seat};

use super::World;
use super::hosts::wrong;
use super::settings::{Honesty, Settings};
use crate::gateway::Gateway;
use crate::node::Node;
use crate::{Answer, Failure, Function, Message, Returned, Run, TaskId, Update, Voters};

impl World {
    /// Delivers a message that no node sent: in the name of a liar, or, in a hostile run, of any node.
    pub(super) fn forge(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = bytes.pick(self.mesh.seats().len());
        let Some(from) = self.liar(bytes) else {
            return Ok(());
        };
        let how = bytes.take();
        let message = match how & 15 {
            0..=5 => self.mutated(bytes),
            kind => Some(self.made(kind, seat, bytes)),
        };
        let Some(message) = message else {
            return Ok(());
        };
        if self.watch.settings.is_hostile() {
            return self.hand(seat, from, message, bytes);
        }
        if let Message::Vote { task, returned, .. } = &message {
            self.watch.oracle.on_returned(from, *task, returned);
        }
        // A forged period may be two minutes long. The gateway then waits that long, which is no defect.
        if let Message::KeepAlive { duty, .. } = &message
            && duty.period() > super::PERIOD_MAX
        {
            return Ok(());
        }
        if let Message::Submit { number, .. } | Message::Cancel { number } = &message {
            let task = TaskId {
                client: from,
                number: *number,
            };
            self.watch.oracle.tasks.entry(task).or_default();
        }
        self.hand(seat, from, message, bytes)
    }

    fn hand(
        &mut self,
        seat: usize,
        from: Member,
        message: Message,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.watch.summary.forged += 1;
        self.play(Operation::Forge(seat, from, message.into()), bytes)
    }

    /// A sender of forged messages.
    fn liar(&self, bytes: &mut Bytes<'_>) -> Option<Member> {
        let byte = bytes.take();
        let at = usize::from(byte) % self.mesh.seats().len().max(1);
        let me = self.mesh.seat(at).map(Seat::me);
        match self.watch.settings.honesty {
            Honesty::Honest | Honesty::Values => None,
            Honesty::Liars => {
                let is_liar = |it: &Member| self.watch.settings.lies(it.id);
                Some(me.filter(is_liar).unwrap_or(Settings::stranger(byte)))
            }
            Honesty::Hostile if byte & 64 == 64 => {
                let id = NodeId(u64::from(byte % 40));
                let life = u32::from(bytes.take() % 4);
                Some(Member::new(id.0, life))
            }
            Honesty::Hostile => me,
        }
    }

    /// A message in flight in which some bytes are replaced.
    fn mutated(&self, bytes: &mut Bytes<'_>) -> Option<Message> {
        let letter = match self.mesh.in_flight().len() {
            0 => None,
            some => self.mesh.in_flight().get(bytes.pick(some)),
        };
        let message = letter.map(|it| postcard::to_allocvec(&it.message));
        let mut frame: Vec<u8> = message.and_then(Result::ok).unwrap_or_default();
        for _ in 0..1 + bytes.take() % 4 {
            let at = usize::from(bytes.take());
            match frame.get_mut(at) {
                Some(byte) => *byte = bytes.take(),
                None => frame.push(bytes.take()),
            }
        }
        Some(postcard::take_from_bytes::<Message>(&frame).ok()?.0)
    }

    /// A known task, with its present attempt and term or other ones.
    fn some_task(&self, bytes: &mut Bytes<'_>) -> (TaskId, u16, u16) {
        let byte = bytes.take();
        let tasks = &self.watch.oracle.tasks;
        let nth = usize::from(byte).checked_rem(tasks.len()).unwrap_or(0);
        let task = tasks.keys().nth(nth).copied();
        let task = task.unwrap_or(TaskId {
            client: Settings::stranger(byte),
            number: u64::from(byte),
        });
        let present = self.watch.oracle.tables.assignment(task);
        let (attempt, term) = present.map_or((1, 0), |it| (it.attempt, it.term));
        match bytes.take() {
            other @ 0..64 => (task, u16::from(other & 7), u16::from(other >> 3)),
            _ => (task, attempt, term),
        }
    }

    /// Voters for a task's answer: all its electors, some of them, others besides, or none.
    fn some_voters(&self, task: TaskId, like: u8) -> Voters {
        let present = self.watch.oracle.tables.assignment(task);
        let electors = present.into_iter().flat_map(|it| it.electors.iter());
        let mut ids: Vec<NodeId> = electors.map(|it| it.id).collect();
        match like >> 3 & 7 {
            0 => ids.push(Settings::stranger(like).id),
            1 => ids.truncate(1),
            2 => ids.extend_from_within(..),
            3 => ids.clear(),
            _ if like & 4 == 4 => ids.clear(),
            _ => {}
        }
        ids.sort_unstable();
        ids.into_iter().collect()
    }

    /// A message of this kind with chosen fields.
    fn made(&self, kind: u8, seat: usize, bytes: &mut Bytes<'_>) -> Message {
        let (task, attempt, term) = self.some_task(bytes);
        let like = bytes.take();
        let number = u64::from(like % 8);
        let returned = match like & 3 {
            0 => Returned::Failed(Failure::Trapped),
            _ => Returned::Value(wrong()),
        };
        let function = Function::new(&[like & 3]);
        match kind {
            6 | 7 => Message::Vote {
                task,
                attempt,
                returned,
            },
            8 | 9 => Message::Verdict {
                task,
                attempt,
                term,
                answer: match like & 4 {
                    0 => returned.into(),
                    _ => Answer::NoMajority,
                },
                voters: self.some_voters(task, like),
            },
            10 => Message::KeepAlive {
                number: u32::from(like),
                duty: self.watch.settings.duty(0, like),
                libraries: core::iter::empty().collect(),
            },
            11 => Message::Submit { number, function },
            12 => Message::Cancel { number },
            13 => Message::Counted { task, attempt },
            14 => self.made_by_gateways((task, attempt, term), like),
            _ => Message::Tables(self.tables_message(task, seat, like).into()),
        }
    }

    /// A message of a kind that gateways send to followers, clients or, as heartbeats, to each other.
    fn made_by_gateways(&self, (task, attempt, term): (TaskId, u16, u16), like: u8) -> Message {
        match like & 7 {
            0 => Message::Over { task, attempt },
            1 => Message::Elsewhere,
            2 => Message::Purged {
                number: u32::MAX - u32::from(like >> 3),
            },
            3 => Message::Here,
            4 => Message::Heartbeat {
                ended: self.watch.settings.gateway_ids().collect(),
            },
            5 => Message::Taken { task },
            _ => {
                let followers = self.mesh.seats().iter().map(Seat::me);
                let electors = followers.skip(usize::from(like >> 3));
                Message::Run(
                    Run {
                        task,
                        attempt,
                        term,
                        electors: electors.collect(),
                        to_gateway: like & 8 == 8,
                        function: Function::new(&[like & 3]),
                    }
                    .into(),
                )
            }
        }
    }

    /// A proposal, or entries as if they were committed; some contradict versions that are committed.
    fn tables_message(
        &self,
        task: TaskId,
        seat: usize,
        like: u8,
    ) -> selvedge_replica::Message<Update> {
        let gateway = self.mesh.machine(seat).and_then(Node::gateway);
        let replica = gateway.map(Gateway::replica);
        let configuration = replica.map(|it| it.configuration().clone());
        let mut next = configuration.unwrap_or_else(|| self.watch.settings.first_configuration());
        let version = replica.map_or(self.watch.oracle.version(), |it| it.version());
        let answer = Answer::Value(wrong());
        let present = self.watch.oracle.tables.assignment(task);
        let (attempt, term) = present.map_or((1, 0), |it| (it.attempt, it.term));
        let update = Update::Answer {
            task,
            attempt,
            term,
            answer,
            voters: self.some_voters(task, like),
        };
        let proposal = selvedge_replica::Proposal {
            by: Settings::stranger(like),
            number: 1,
            first: 1,
            since: version,
            update,
        };
        let configuration = next.number;
        let body = match like & 1 {
            0 => selvedge_replica::Body::Propose {
                proposals: [proposal].into_iter().collect(),
            },
            _ => {
                let known = u64::from(like >> 1 & 3).min(version);
                let update = Entry::Update(proposal);
                let updates = core::iter::repeat_n(update, known as usize + 1);
                next.number += 1;
                let last = (like & 56 == 56).then(|| Entry::Configure(next.into()));
                selvedge_replica::Body::Learn {
                    after: version - known,
                    entries: updates.chain(last).collect(),
                }
            }
        };
        selvedge_replica::Message {
            configuration,
            body,
        }
    }
}
