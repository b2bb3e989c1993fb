//! A gateway, a follower or a client as one machine, for a simulator or a host that runs all three kinds.
//!
//! [`Node`] handles each message at once. PCM keeps messages for a follower in a mailbox while it sleeps:
//! [`WithMailbox`] does so.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_core::{Context, Input, Machine, Member, Nested};
use thiserror::Error;

use crate::Message;
use crate::client::{self, Client};
use crate::follower::{self, Follower, Phase};
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

/// A timer of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A gateway's timer.
    Gateway(gateway::Timer),
    /// A follower's timer.
    Follower(follower::Timer),
    /// A client's timer.
    Client(client::Timer),
}

/// A command of a host to its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A gateway's command.
    Gateway(gateway::Command),
    /// A follower's command.
    Follower(follower::Command),
    /// A client's command.
    Client(client::Command),
}

/// An event of a node for its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A gateway's event.
    Gateway(gateway::Event),
    /// A follower's event.
    Follower(follower::Event),
    /// A client's event.
    Client(client::Event),
}

/// The reason why an input is refused. Nothing changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reject {
    /// A gateway's reason.
    #[error(transparent)]
    Gateway(gateway::Reject),
    /// A follower's reason.
    #[error(transparent)]
    Follower(follower::Reject),
    /// A client's reason.
    #[error(transparent)]
    Client(client::Reject),
    /// The command or timer is for a node of another kind.
    #[error("the command or timer is for another kind of node: match it with the node's kind")]
    Kind,
}

impl From<gateway::Command> for Command {
    fn from(command: gateway::Command) -> Self {
        Self::Gateway(command)
    }
}

impl From<follower::Command> for Command {
    fn from(command: follower::Command) -> Self {
        Self::Follower(command)
    }
}

impl From<client::Command> for Command {
    fn from(command: client::Command) -> Self {
        Self::Client(command)
    }
}

impl From<Gateway> for Node {
    fn from(machine: Gateway) -> Self {
        Self::Gateway(Box::new(Nested::new(machine)))
    }
}

impl From<Follower> for Node {
    fn from(machine: Follower) -> Self {
        Self::Follower(Box::new(Nested::new(machine)))
    }
}

impl From<Client> for Node {
    fn from(machine: Client) -> Self {
        Self::Client(Box::new(Nested::new(machine)))
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
    ) -> Result<(), Reject> {
        let Self::Gateway(it) = self else {
            return Err(Reject::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Event::Gateway(event));
        it.step(cx, input, |message| message, Timer::Gateway, notified)
            .map_err(Reject::Gateway)
    }

    fn step_follower(
        &mut self,
        input: Input<Follower>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let Self::Follower(it) = self else {
            return Err(Reject::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Event::Follower(event));
        it.step(cx, input, |message| message, Timer::Follower, notified)
            .map_err(Reject::Follower)
    }

    fn step_client(
        &mut self,
        input: Input<Client>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let Self::Client(it) = self else {
            return Err(Reject::Kind);
        };
        let notified = |event, cx: &mut Context<'_, Self>| cx.event(Event::Client(event));
        it.step(cx, input, |message| message, Timer::Client, notified)
            .map_err(Reject::Client)
    }
}

impl Machine for Node {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => match self {
                Self::Gateway(_) => self.step_gateway(Input::Message { from, message }, cx),
                Self::Follower(_) => self.step_follower(Input::Message { from, message }, cx),
                Self::Client(_) => self.step_client(Input::Message { from, message }, cx),
            },
            Input::Tick(Timer::Gateway(timer)) => self.step_gateway(Input::Tick(timer), cx),
            Input::Tick(Timer::Follower(timer)) => self.step_follower(Input::Tick(timer), cx),
            Input::Tick(Timer::Client(timer)) => self.step_client(Input::Tick(timer), cx),
            Input::Membership(delta) => match self {
                Self::Gateway(_) => self.step_gateway(Input::Membership(delta), cx),
                Self::Follower(_) | Self::Client(_) => Ok(()),
            },
            Input::Command(Command::Gateway(it)) => self.step_gateway(Input::Command(it), cx),
            Input::Command(Command::Follower(it)) => self.step_follower(Input::Command(it), cx),
            Input::Command(Command::Client(it)) => self.step_client(Input::Command(it), cx),
        }
    }
}

/// A node, and a mailbox for its messages: while a follower sleeps they wait, and it gets them when it
/// wakes. At a gateway, a client, and a follower that is awake they do not wait.
///
/// It stands for a broker that no failure affects. The host of a follower still has to find out that a
/// gateway is down ([`Fetch`](follower::Event::Fetch)), and to report it
/// ([`Unreachable`](follower::Command::Unreachable)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WithMailbox {
    node: Nested<Node>,
    mailbox: VecDeque<(Member, Message)>,
}

impl WithMailbox {
    /// The number of messages for which a mailbox has room; then the oldest one is lost.
    pub const ROOM: usize = 256;

    /// A gateway, a follower or a client, with an empty mailbox.
    #[must_use]
    pub fn new(machine: impl Into<Node>) -> Self {
        Self {
            node: Nested::new(machine.into()),
            mailbox: VecDeque::new(),
        }
    }

    /// The node, to read from.
    #[must_use]
    pub const fn node(&self) -> &Node {
        self.node.machine()
    }

    fn is_asleep(&self) -> bool {
        let follower = self.node().follower();
        follower.is_some_and(|it| it.phase() == Some(Phase::Asleep))
    }

    fn step(&mut self, input: Input<Node>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let event = |event, cx: &mut Context<'_, Self>| cx.event(event);
        self.node.step(cx, input, |it| it, |it| it, event)
    }
}

impl Machine for WithMailbox {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } if self.is_asleep() => {
                self.mailbox.push_back((from, message));
                if self.mailbox.len() > Self::ROOM {
                    self.mailbox.pop_front();
                }
            }
            Input::Message { from, message } => self.step(Input::Message { from, message }, cx)?,
            Input::Tick(timer) => self.step(Input::Tick(timer), cx)?,
            Input::Membership(delta) => self.step(Input::Membership(delta), cx)?,
            Input::Command(command) => self.step(Input::Command(command), cx)?,
        }
        if !self.is_asleep() {
            for (from, message) in core::mem::take(&mut self.mailbox) {
                // A refused message must not undo the other effects of this step.
                drop(self.step(Input::Message { from, message }, cx));
            }
        }
        Ok(())
    }
}
