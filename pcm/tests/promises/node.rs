//! One node: its role, its clock, its storage, and its host while it is up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Delta, Driver, Member, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower, Phase};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Library, Message, Tables, TaskId};
use selvedge_replica::{Fact, Stored};

use crate::world::Real;

/// What a node is, in all its lives.
#[derive(Clone)]
pub(crate) enum Role {
    Gateway {
        config: gateway::Config,
        stores: bool,
    },
    Follower {
        config: follower::Config,
        gateways: Vec<u64>,
        liar: bool,
    },
    Client {
        config: client::Config,
        gateways: Vec<u64>,
    },
}

pub(crate) enum Machine {
    Gateway(Box<Driver<Gateway>>),
    Follower(Box<Driver<Follower>>),
    Client(Box<Driver<Client>>),
}

impl Machine {
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Self::Gateway(it) => it.deadline(),
            Self::Follower(it) => it.deadline(),
            Self::Client(it) => it.deadline(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Gateway(it) => format!("{:?}", it.machine()).len(),
            Self::Follower(it) => format!("{:?}", it.machine()).len(),
            Self::Client(it) => format!("{:?}", it.machine()).len(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum In {
    Message { from: Member, message: Message },
    Membership(Delta),
    Gateway(gateway::Command),
    Follower(follower::Command),
    Client(client::Command),
}

/// What comes out of a step.
pub(crate) enum Item {
    Send {
        to: Member,
        message: Message,
    },
    Gateway(gateway::Event),
    Follower(follower::Event),
    Client(client::Event),
    /// What the host may show once all facts before it are stored.
    Observe {
        version: u64,
        tables: Box<Tables>,
    },
}

pub(crate) enum Write {
    Facts(Vec<Fact<Tables>>),
    Base(Box<Stored<Tables>>),
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) base: Option<Stored<Tables>>,
    pub(crate) facts: Vec<Fact<Tables>>,
}

impl Disk {
    pub(crate) fn take(&mut self, write: Write) {
        match write {
            Write::Facts(facts) => self.facts.extend(facts),
            Write::Base(base) => {
                self.base = Some(*base);
                self.facts.clear();
            }
        }
    }
}

/// What the host of a follower does.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) phase: Option<Phase>,
    pub(crate) running: Option<(TaskId, u64)>,
    pub(crate) libraries: BTreeSet<Library>,
    pub(crate) loading: Option<Library>,
    pub(crate) runs: BTreeMap<TaskId, u16>,
}

/// A node while it is up.
pub(crate) struct Host {
    pub(crate) me: Member,
    pub(crate) machine: Machine,
    pub(crate) barrier: Barrier<Item>,
    pub(crate) writes: VecDeque<(Mark, Write)>,
    pub(crate) inbox: VecDeque<In>,
    pub(crate) tick_at: Option<Real>,
    pub(crate) shown: u64,
    pub(crate) work: Work,
    /// Events of a gateway that come in turns.
    pub(crate) unavailable: bool,
    pub(crate) manages: bool,
    pub(crate) gone: BTreeSet<u64>,
    /// A gateway that has folded all facts of this one, also where the host stores none.
    pub(crate) folded: Option<Box<Gateway>>,
}

pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) role: Role,
    pub(crate) life: u32,
    /// Its first life.
    pub(crate) begins: u32,
    /// The life in which its memory began.
    pub(crate) born: u32,
    pub(crate) is_founder: bool,
    /// It stays down for good.
    pub(crate) is_over: bool,
    pub(crate) host: Option<Host>,
    pub(crate) disk: Disk,
    /// What lies at a gateway for its followers.
    pub(crate) mailboxes: BTreeMap<u64, VecDeque<(Member, Message)>>,
    pub(crate) paused: bool,
    /// How far its clock is ahead.
    pub(crate) offset: u64,
    /// How many effects may wait for storage.
    pub(crate) limit: usize,
}

impl Node {
    pub(crate) fn local(&self, real: Real) -> Time {
        Time(self.offset + real)
    }

    pub(crate) fn real(&self, local: Time, now: Real) -> Real {
        now + local.0.saturating_sub(self.local(now).0)
    }

    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        match self.host.as_ref().map(|it| &it.machine) {
            Some(Machine::Gateway(it)) => Some(it.machine()),
            _ => None,
        }
    }

    pub(crate) fn follower(&self) -> Option<&Follower> {
        match self.host.as_ref().map(|it| &it.machine) {
            Some(Machine::Follower(it)) => Some(it.machine()),
            _ => None,
        }
    }

    pub(crate) fn client(&self) -> Option<&Client> {
        match self.host.as_ref().map(|it| &it.machine) {
            Some(Machine::Client(it)) => Some(it.machine()),
            _ => None,
        }
    }

    pub(crate) const fn stores(&self) -> bool {
        matches!(self.role, Role::Gateway { stores: true, .. })
    }

    pub(crate) const fn is_liar(&self) -> bool {
        matches!(self.role, Role::Follower { liar: true, .. })
    }
}
