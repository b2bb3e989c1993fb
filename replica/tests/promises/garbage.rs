//! Messages that no correct peer sends, and old ones that come again.

use selvedge_core::wire::List;
use selvedge_core::{Input, Member, NodeId};
use selvedge_replica::{
    Ballot, Body, Configuration, Entries, Entry, Message, Proposal, SnapshotId, Voter, Wants,
};
use selvedge_sim::histories::History;

use crate::oracle::Op;
use crate::world::World;

impl World {
    /// Sends messages of any age once more.
    pub(crate) fn echoes(&mut self) {
        for _ in 0..1 + self.below(20) {
            self.echo();
        }
    }

    fn number(&mut self, near: u64) -> u64 {
        match self.below(14) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => u64::MAX - 1,
            4 => (1 << 28) - 1,
            5 => (1 << 35) - 1,
            6 => (1 << 49) - 1,
            7 => near.saturating_sub(1),
            8 => near + 1,
            9 => near + 2,
            10 => self.below(near + 20),
            _ => near,
        }
    }

    fn liar(&mut self) -> Member {
        let id = match self.below(8) {
            0 => 50 + self.below(100),
            1 => u64::MAX,
            _ => {
                let ids: Vec<u64> = self.nodes.keys().copied().collect();
                ids[self.below(ids.len() as u64) as usize]
            }
        };
        let life = self.nodes.get(&id).map_or(0, |it| it.life);
        let life = match self.below(8) {
            0 => life.wrapping_sub(1),
            1 => life + 1,
            2 => u32::MAX,
            _ => life,
        };
        Member::new(id, life)
    }

    fn ballot(&mut self, from: Member, near: Ballot) -> Ballot {
        let by = match self.below(6) {
            0 => NodeId(self.below(9)),
            1 => near.by,
            _ => from.id,
        };
        Ballot {
            number: self.number(near.number),
            by,
        }
    }

    fn a_configuration(&mut self, near: u64) -> Configuration {
        let many = match self.below(6) {
            0 => 32,
            1 => 33,
            it => it,
        };
        let voters = (0..many).map(|nth| {
            let who = if self.percent(70) {
                Member::new(nth + 1, 0)
            } else {
                self.liar()
            };
            Voter {
                member: who,
                is_witness: self.percent(20),
            }
        });
        let voters: Vec<Voter> = voters.collect();
        let mut it = Configuration::new(voters);
        it.number = self.number(near);
        it.frame_budget = [0, 127, 1_400, u16::MAX][self.below(4) as usize];
        it.proposers = [0, 1, 64, u16::MAX][self.below(4) as usize];
        it
    }

    fn entries(&mut self, near: u64) -> Entries<Op> {
        let many = [0, 1, 1, 2, 5, 300][self.below(6) as usize];
        let entry = |_: u64| match self.below(12) {
            0 => Entry::Elided,
            1 => Entry::Configure(Box::new(self.a_configuration(near))),
            _ => Entry::Update(self.proposal()),
        };
        (0..many).map(entry).collect()
    }

    fn proposal(&mut self) -> Proposal<Op> {
        let number = self.number(3);
        Proposal {
            by: self.liar(),
            number,
            first: if self.percent(50) {
                number
            } else {
                self.number(1)
            },
            since: self.number(5),
            update: Op {
                id: self.below(100),
                pad: vec![0; [0, 3, 100, 5_000][self.below(4) as usize]],
            },
        }
    }

    /// Any message at all.
    fn lie(&mut self, to: u64) -> (Member, Message<Op>) {
        let (version, configuration, ballot) = match self.machine(to) {
            Some(it) => (
                it.version(),
                it.configuration().number,
                it.leader().map(|it| it.1).unwrap_or_default(),
            ),
            None => (0, 1, Ballot::default()),
        };
        let from = self.liar();
        let body = match self.below(15) {
            0 => Body::Prepare {
                ballot: self.ballot(from, ballot),
                committed: self.number(version),
                accepted: self.ballot(from, ballot),
                end: self.number(version),
                handed_over: self.ballot(from, ballot),
            },
            1 | 2 => Body::Promise {
                ballot: self.ballot(Member::new(to, 0), ballot),
                committed: self.number(version),
                accepted: self.ballot(from, ballot),
                end: self.number(version),
                tail: self.entries(configuration),
            },
            3 => Body::Refuse {
                ballot: self.ballot(from, ballot),
                promised: self.ballot(from, ballot),
                leader: self.ballot(from, ballot),
            },
            4 | 5 => Body::Accept {
                ballot: self.ballot(from, ballot),
                after: self.number(version),
                commit: self.number(version),
                round: self.number(3),
                entries: self.entries(configuration),
            },
            6 => Body::Accepted {
                ballot: self.ballot(Member::new(to, 0), ballot),
                end: self.number(version),
                committed: self.number(version),
                round: self.number(3),
            },
            7 => Body::Missing {
                committed: self.number(version),
                wants: [Wants::Entries, Wants::State, Wants::Bare][self.below(3) as usize],
            },
            8 => Body::Learn {
                after: self.number(version),
                entries: self.entries(configuration),
            },
            9 => Body::Fetch {
                snapshot: self.snapshot_id(version, 100),
                offset: self.number(100) as u32,
            },
            10 => {
                let bytes: List<u8, 16> = (0..self.below(200)).map(|it| it as u8).collect();
                let offset = if self.percent(70) {
                    0
                } else {
                    self.number(10) as u32
                };
                let end = offset.saturating_add(bytes.len() as u32);
                Body::Page {
                    snapshot: self.snapshot_id(version, end),
                    offset,
                    bytes,
                }
            }
            11 => {
                let many = [0, 1, 2, 20][self.below(4) as usize];
                Body::Propose {
                    proposals: (0..many).map(|_| self.proposal()).collect(),
                }
            }
            12 => Body::Read {
                number: self.number(1),
            },
            13 => Body::ReadAt {
                life: from.incarnation.0,
                number: self.number(1),
                version: self.number(version),
            },
            _ => match self.below(3) {
                0 => Body::Stand {
                    ballot: self.ballot(from, ballot),
                },
                1 => Body::Rejoin {
                    life: self.number(from.incarnation.0.into()) as u32,
                },
                _ => Body::Current {
                    configuration: Box::new(self.a_configuration(configuration)),
                    is_active: self.percent(50),
                },
            },
        };
        let message = Message {
            configuration: match &body {
                Body::Current { configuration, .. } if self.percent(80) => configuration.number,
                _ if self.percent(80) => configuration,
                _ => self.number(configuration),
            },
            body,
        };
        (from, message)
    }

    fn snapshot_id(&mut self, version: u64, end: u32) -> SnapshotId {
        SnapshotId {
            version: self.number(version),
            is_bare: self.percent(30),
            total: match self.percent(50) {
                true => end,
                false => self.number(end.into()) as u32,
            },
        }
    }

    /// A message that was sent, with some bytes changed; if it can be decoded.
    fn flip(&mut self) -> Option<(Member, Message<Op>)> {
        if self.old.is_empty() {
            return None;
        }
        let at = self.below(self.old.len() as u64) as usize;
        let (from, _, message) = self.old[at].clone();
        let mut bytes = postcard::to_allocvec(&message).unwrap();
        for _ in 0..1 + self.below(3) {
            let at = self.below(bytes.len() as u64) as usize;
            bytes[at] = match self.below(4) {
                0 => 0xff,
                1 => 0,
                2 => bytes[at] ^ (1 << self.below(8)),
                _ => self.below(20) as u8,
            };
        }
        let from = if self.percent(60) { from } else { self.liar() };
        Some((from, postcard::from_bytes(&bytes).ok()?))
    }

    /// A peer lies to this node, some times.
    pub(crate) fn slander(&mut self, to: u64) {
        for _ in 0..1 + self.below(10) {
            let lie = if self.percent(50) {
                Some(self.lie(to))
            } else {
                self.flip()
            };
            if let Some((from, message)) = lie {
                self.input(to, Input::Message { from, message });
            }
        }
    }
}
