//! One node: its role, and what its host knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::{Input, Member};
use selvedge_pcm::check::operations::{self, Ask};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower, Phase};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Library, Message, Tables, TaskId};
use selvedge_sim::histories;

use crate::world::World;

pub(crate) type Machine = operations::Node;
pub(crate) type Node = histories::Node<World>;
pub(crate) type In = Input<Machine>;

/// What a node is, in all its lives.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    Gateway {
        config: gateway::Config,
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

/// What the test has of a node.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) role: Role,
    pub(crate) is_founder: bool,
    /// What lies at a gateway for its followers, each with its sender and how deep it is.
    pub(crate) mailboxes: BTreeMap<u64, VecDeque<(Member, Message, u32)>>,
}

/// What the host may show once all facts before it are stored.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) version: u64,
    pub(crate) tables: Box<Tables>,
}

/// What a host knows in one life.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) shown: u64,
    pub(crate) work: Work,
    /// Events of a gateway that come in turns.
    pub(crate) unavailable: bool,
    pub(crate) manages: bool,
    pub(crate) ended: BTreeSet<u64>,
    /// A gateway that has folded all facts of this one, also where the host stores none.
    pub(crate) folded: Option<Box<Gateway>>,
}

/// What the host of a follower does.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) phase: Option<Phase>,
    pub(crate) running: Option<(TaskId, u64)>,
    pub(crate) libraries: BTreeSet<Library>,
    pub(crate) loading: Option<Library>,
    pub(crate) runs: BTreeMap<TaskId, u16>,
}

/// The part of a node that is up.
pub(crate) trait Part {
    fn gateway(&self) -> Option<&Gateway>;
    fn follower(&self) -> Option<&Follower>;
    fn client(&self) -> Option<&Client>;
    fn is_liar(&self) -> bool;
}

impl Part for Node {
    fn gateway(&self) -> Option<&Gateway> {
        self.machine()?.gateway()
    }

    fn follower(&self) -> Option<&Follower> {
        self.machine()?.follower()
    }

    fn client(&self) -> Option<&Client> {
        self.machine()?.client()
    }

    fn is_liar(&self) -> bool {
        matches!(self.own.role, Role::Follower { liar: true, .. })
    }
}

pub(crate) const fn to_gateway(command: gateway::Command) -> In {
    Input::Command(Ask::Gateway(command))
}

pub(crate) const fn to_follower(command: follower::Command) -> In {
    Input::Command(Ask::Follower(command))
}

pub(crate) const fn to_client(command: client::Command) -> In {
    Input::Command(Ask::Client(command))
}
