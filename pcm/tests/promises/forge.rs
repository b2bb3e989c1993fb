//! Nodes that send arbitrary messages under their own ids.

use selvedge_core::{Input, Member, NodeId};
use selvedge_pcm::{
    Answer, Assignment, DutyCycle, Failure, Function, Library, Message, Refusal, Returned, Run,
    TaskId, Voters,
};
use selvedge_sim::histories::History;

use crate::node::Part;
use crate::world::World;

impl World {
    fn number(&mut self) -> u64 {
        self.pick(&[0, 1, 2, 3, 4, 7, u64::MAX - 1, u64::MAX])
    }

    fn short(&mut self) -> u16 {
        self.pick(&[0, 1, 1, 1, 2, 3, u64::from(u16::MAX)]) as u16
    }

    fn some_task(&mut self) -> TaskId {
        let tasks: Vec<TaskId> = self.oracle.submitted.keys().copied().collect();
        if tasks.is_empty() || self.percent(10) {
            let client = Member::new(31, 0);
            let number = self.number();
            return TaskId { client, number };
        }
        tasks[self.below(tasks.len() as u64) as usize]
    }

    fn some_bytes(&mut self) -> Vec<u8> {
        let len = self.pick(&[0, 1, 2, 60, 200]);
        vec![0xEE; len as usize]
    }

    fn some_returned(&mut self) -> Returned {
        match self.below(4) {
            0 => Returned::Failed(Failure::Trapped),
            _ => Returned::Value(self.some_bytes().into_iter().collect()),
        }
    }

    fn some_answer(&mut self) -> Answer {
        match self.below(8) {
            0 => Answer::NoMajority,
            1 => Answer::Unanswered,
            2 => Answer::Cancelled,
            _ => self.some_returned().into(),
        }
    }

    /// All that had a task once, all followers, or none.
    fn some_voters(&mut self, task: TaskId) -> Voters {
        let had = self.oracle.assignments.get(&task).and_then(|it| it.last());
        let had = had.map(|it| it.2.iter().map(|it| it.id).collect());
        let mut ids: Vec<NodeId> = match self.below(4) {
            0 => Vec::new(),
            1 => self.followers().into_iter().map(NodeId).collect(),
            _ => had.unwrap_or_default(),
        };
        ids.sort_unstable();
        ids.into_iter().collect()
    }

    fn some_run(&mut self, me: Member, to: Member) -> Message {
        let task = self.some_task();
        let electors = match self.below(3) {
            0 => vec![to, me],
            1 => vec![me, to],
            _ => vec![me],
        };
        let assignment = Assignment {
            attempt: self.short(),
            term: self.short(),
            electors: electors.into_iter().collect(),
        };
        let bytes = self.some_bytes();
        let function = match self.oracle.submitted.get(&task).cloned() {
            Some(it) if self.below(2) == 0 => it,
            _ => Function::new(&bytes),
        };
        let to_gateway = self.percent(50);
        Message::Run(Box::new(Run::new(task, &assignment, &function, to_gateway)))
    }

    fn some_duty(&mut self) -> DutyCycle {
        let mut draw = || self.pick(&[0, 1, 1_000, 1_000, 40_000, 120_000, u64::from(u32::MAX)]);
        DutyCycle {
            active_ms: draw() as u32,
            busy_ms: draw() as u32,
            asleep_ms: draw() as u32,
        }
    }

    fn some_message(&mut self, me: Member, to: Member) -> Message {
        let (task, attempt) = (self.some_task(), self.short());
        let number = self.number();
        match self.below(18) {
            0 => Message::KeepAlive {
                number: number as u32,
                duty: self.some_duty(),
                libraries: [Library(number)].into_iter().collect(),
            },
            1 => Message::Purged {
                number: number as u32,
            },
            2 => self.some_run(me, to),
            3 => Message::Over { task, attempt },
            4 | 5 => Message::Vote {
                task,
                attempt,
                returned: self.some_returned(),
            },
            6 => Message::Counted { task, attempt },
            7..10 => Message::Verdict {
                task,
                attempt,
                term: self.short(),
                answer: self.some_answer(),
                voters: self.some_voters(task),
            },
            10 => Message::Submit {
                number,
                function: Function::new(&self.some_bytes()),
            },
            11 => Message::Cancel { number },
            12 => Message::Taken { task },
            13 => Message::Answer {
                task,
                answer: self.some_answer(),
                voters: self.some_voters(task),
            },
            14 => Message::Refused {
                task,
                why: Refusal::Forgotten,
            },
            15 => Message::Elsewhere,
            16 => Message::Heartbeat {
                ended: [NodeId(1), NodeId(2)].into_iter().collect(),
            },
            _ => {
                let tables = self.old.iter().map(|it| &it.2);
                let mut tables = tables.filter(|it| matches!(it, Message::Tables(_)));
                tables.next_back().cloned().unwrap_or(Message::Here)
            }
        }
    }

    /// A node that is not part of the mesh, or a follower that lies, sends a message to any node.
    pub(crate) fn forge(&mut self) {
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        let to = self.pick(&ids);
        let liars: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|it| self.nodes[it].is_liar())
            .collect();
        let me = if !liars.is_empty() && (self.percent(50) || !self.habits.hostile) {
            let id = self.pick(&liars);
            Member::new(id, self.nodes[&id].life)
        } else if self.habits.hostile {
            let id = self.pick(&[900, 901, 902, 903, u64::MAX]);
            Member::new(id, self.pick(&[0, 1, 1 << 31, u64::from(u32::MAX)]) as u32)
        } else {
            return;
        };
        let is_liar = liars.contains(&me.id.0);
        if to == me.id.0 {
            return;
        }
        let to = Member::new(to, self.nodes[&to].life);
        let message = self.some_message(me, to);
        if is_liar && matches!(message, Message::KeepAlive { .. }) {
            return; // It would leave the tables for itself alone.
        }
        match &message {
            Message::Submit { number, function } => {
                let task = TaskId {
                    client: me,
                    number: *number,
                };
                if self.oracle.submitted.contains_key(&task) {
                    return; // Another function of that number would be one more lie.
                }
                self.oracle.submitted.insert(task, function.clone());
            }
            Message::Cancel { number } => {
                let task = TaskId {
                    client: me,
                    number: *number,
                };
                self.oracle.cancelled.insert(task);
            }
            _ => {}
        }
        self.forged += 1;
        self.say(|| format!("{me:?} lies to {to:?}: {message:?}"));
        self.input(to.id.0, Input::Message { from: me, message });
    }
}
