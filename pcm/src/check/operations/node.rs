//! A gateway, a follower or a client as a node of one mesh.

use alloc::boxed::Box;

use selvedge_core::{Context, Input, Machine, Member, Nested};
use selvedge_replica as replica;

use crate::Message;
use crate::check::Tick;
use crate::client::{self, Client};
use crate::follower::{self, Follower};
use crate::gateway::{self, Gateway};

/// A gateway, a follower or a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A gateway.
    Gateway(Box<Nested<Gateway>>),
    /// A follower.
    Follower(Box<Nested<Follower>>),
    /// A client.
    Client(Box<Nested<Client>>),
}

/// A command of a host to its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A gateway's command.
    Gateway(gateway::Command),
    /// A follower's command.
    Follower(follower::Command),
    /// A client's command.
    Client(client::Command),
}

/// An event of a node for its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notified {
    /// A gateway's event.
    Gateway(gateway::Event),
    /// A follower's event.
    Follower(follower::Event),
    /// A client's event.
    Client(client::Event),
}

/// The reason for which a node refuses an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A gateway's reason.
    Gateway(gateway::Reject),
    /// A follower's reason.
    Follower(follower::Reject),
    /// A client's reason.
    Client(client::Reject),
    /// The input is for a node of another kind.
    Kind,
}

impl Refused {
    /// The peer that the refusal accuses of breaking the rules; `Some(None)` for a gateway without a name.
    #[must_use]
    pub fn accused(&self) -> Option<Option<Member>> {
        match self {
            Self::Gateway(gateway::Reject::Misbehaviour(it)) => Some(Some(match *it {
                gateway::Misbehaviour::OwnId(from)
                | gateway::Misbehaviour::Duty(from, _)
                | gateway::Misbehaviour::Misdirected(from) => from,
            })),
            Self::Gateway(gateway::Reject::Replica(replica::Reject::Misbehaviour(_))) => Some(None),
            Self::Follower(follower::Reject::Misbehaviour(it)) => Some(Some(match *it {
                follower::Misbehaviour::OwnId(from)
                | follower::Misbehaviour::NoGateway(from)
                | follower::Misbehaviour::NotElected(from)
                | follower::Misbehaviour::TooMany(from, _)
                | follower::Misbehaviour::Misdirected(from) => from,
            })),
            Self::Client(client::Reject::Misdirected(from) | client::Reject::TooMany(from, _)) => {
                Some(Some(*from))
            }
            Self::Gateway(_) | Self::Follower(_) | Self::Client(_) | Self::Kind => None,
        }
    }
}

impl Node {
    /// The gateway, if it is one.
    #[must_use]
    pub fn gateway(&self) -> Option<&Gateway> {
        match self {
            Self::Gateway(it) => Some(it.machine()),
            Self::Follower(_) | Self::Client(_) => None,
        }
    }

    /// The follower, if it is one.
    #[must_use]
    pub fn follower(&self) -> Option<&Follower> {
        match self {
            Self::Follower(it) => Some(it.machine()),
            Self::Gateway(_) | Self::Client(_) => None,
        }
    }

    /// The client, if it is one.
    #[must_use]
    pub fn client(&self) -> Option<&Client> {
        match self {
            Self::Client(it) => Some(it.machine()),
            Self::Gateway(_) | Self::Follower(_) => None,
        }
    }

    fn step_gateway(
        &mut self,
        input: Input<Gateway>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Refused> {
        let Self::Gateway(it) = self else {
            return Err(Refused::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Notified::Gateway(event));
        it.step(cx, input, |message| message, Tick::Gateway, notified)
            .map_err(Refused::Gateway)
    }

    fn step_follower(
        &mut self,
        input: Input<Follower>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Refused> {
        let Self::Follower(it) = self else {
            return Err(Refused::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Notified::Follower(event));
        it.step(cx, input, |message| message, Tick::Follower, notified)
            .map_err(Refused::Follower)
    }

    fn step_client(
        &mut self,
        input: Input<Client>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Refused> {
        let Self::Client(it) = self else {
            return Err(Refused::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Notified::Client(event));
        it.step(cx, input, |message| message, Tick::Client, notified)
            .map_err(Refused::Client)
    }
}

impl Machine for Node {
    type Message = Message;
    type Timer = Tick;
    type Command = Ask;
    type Event = Notified;
    type Reject = Refused;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Refused> {
        match input {
            Input::Message { from, message } => match self {
                Self::Gateway(_) => self.step_gateway(Input::Message { from, message }, cx),
                Self::Follower(_) => self.step_follower(Input::Message { from, message }, cx),
                Self::Client(_) => self.step_client(Input::Message { from, message }, cx),
            },
            Input::Tick(Tick::Gateway(timer)) => self.step_gateway(Input::Tick(timer), cx),
            Input::Tick(Tick::Follower(timer)) => self.step_follower(Input::Tick(timer), cx),
            Input::Tick(Tick::Client(timer)) => self.step_client(Input::Tick(timer), cx),
            Input::Membership(delta) => match self {
                Self::Gateway(_) => self.step_gateway(Input::Membership(delta), cx),
                Self::Follower(_) | Self::Client(_) => Ok(()),
            },
            Input::Command(Ask::Gateway(it)) => self.step_gateway(Input::Command(it), cx),
            Input::Command(Ask::Follower(it)) => self.step_follower(Input::Command(it), cx),
            Input::Command(Ask::Client(it)) => self.step_client(Input::Command(it), cx),
        }
    }
}
