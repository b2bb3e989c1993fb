//! One node: its role, and the knowledge of its host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::{Input, Member};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower, Phase};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::node::{self, Command};
use selvedge_pcm::{Library, Message, Tables, TaskId};
use selvedge_sim::histories;

use crate::world::World;

pub(crate) type Machine = node::Node;
pub(crate) type Node = histories::Node<World>;
pub(crate) type In = Input<Machine>;

/// The kind of a node, and its settings in all its lives.
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

/// The test's own state of a node.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) role: Role,
    pub(crate) is_founder: bool,
    /// The mailboxes of a gateway, by follower. Each message has its sender and its depth.
    pub(crate) mailboxes: BTreeMap<u64, VecDeque<(Member, Message, u32)>>,
}

/// The state that the host may show once all facts before it are stored.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) version: u64,
    pub(crate) tables: Box<Tables>,
}

/// The knowledge of a host in one life.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) shown: u64,
    pub(crate) work: Work,
    /// The last of two opposite events of a gateway.
    pub(crate) unavailable: bool,
    pub(crate) manages: bool,
    pub(crate) ended: BTreeSet<u64>,
    /// A gateway that has folded all facts of this one, also where the host stores none.
    pub(crate) folded: Option<Box<Gateway>>,
}

/// The work of a follower's host.
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
    Input::Command(Command::Gateway(command))
}

pub(crate) const fn to_follower(command: follower::Command) -> In {
    Input::Command(Command::Follower(command))
}

pub(crate) const fn to_client(command: client::Command) -> In {
    Input::Command(Command::Client(command))
}
