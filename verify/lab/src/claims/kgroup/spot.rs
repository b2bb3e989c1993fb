//! A place of a building: a device that answers and carries out commands, and a node where it is
//! smart.

use std::collections::VecDeque;

use selvedge_core::wire::Message as _;
use selvedge_core::{Context, Input, Machine, Member, Nested, NodeId};
use selvedge_groups as groups;
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::routines::RoutineEvent;
use selvedge_kgroup::{
    Command, Event, GroupState, Kgroup, LeaderEvent, Outcome, Payload, Reject, Timer, Update,
};
use selvedge_replica as replica;
use selvedge_routine::State;

/// The size in bytes of a message between a leader and a device.
pub(super) const DEVICE_BYTES: usize = 32;

/// A message between places.
#[allow(
    clippy::large_enum_variant,
    reason = "most messages are those of groups"
)]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    Groups(groups::Message<Update, Payload>),
    Ping,
    Reports(State),
    Act(Ticket, State),
    Acted(Ticket),
}

impl Message {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Groups(message) => message.encoded_len(),
            Self::Ping | Self::Reports(_) | Self::Act(..) | Self::Acted(_) => DEVICE_BYTES,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    Node(Command),
    /// A user changes the device.
    Turn(State),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Notified {
    /// This node leads a group now.
    Leads(GroupId),
    /// It does not any more.
    Deposed(GroupId),
    /// The leader of a device's cluster got a report of another state than the group knows.
    Received(NodeId),
    /// The group has decided on a report.
    Observed(NodeId),
    /// The node received the state of a group whole.
    Installed(GroupId),
    /// A run of a routine was triggered.
    Triggered(GroupId),
    /// A run is over.
    Reports(GroupId),
    /// This device was commanded.
    Commanded,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    me: Member,
    node: Option<Nested<Kgroup>>,
    device: State,
}

impl Spot {
    pub(super) fn new(me: Member, node: Option<Kgroup>) -> Self {
        Self {
            me,
            node: node.map(Nested::new),
            device: "off".into(),
        }
    }

    pub(super) fn node(&self) -> Option<&Kgroup> {
        self.node.as_ref().map(Nested::machine)
    }

    fn act(&mut self, value: State, cx: &mut Context<'_, Self>) {
        self.device = value;
        cx.event(Notified::Commanded);
    }

    /// The leader of a cluster gets a report.
    fn receive(&mut self, device: NodeId, value: State, cx: &mut Context<'_, Self>) {
        let known = self.node().and_then(|it| {
            let group = it.site().cluster_of(device)?;
            match it.held(group)? {
                GroupState::Devices(held) if it.leads().any(|it| it == group) => {
                    held.status(device)
                }
                GroupState::Devices(_) | GroupState::Routine(_) | GroupState::Map(_) | _ => None,
            }
        });
        if known.is_some_and(|it| it.value.as_ref() != Some(&value)) {
            cx.event(Notified::Received(device));
        }
        let value = Some(value);
        self.report(Command::Reported { device, value }, cx);
    }

    /// Of a device, for a node that may lead its cluster no more and refuses it then.
    fn report(&mut self, command: Command, cx: &mut Context<'_, Self>) {
        let _refused = self.feed(Input::Command(command), cx).is_err();
    }

    fn feed(&mut self, input: Input<Kgroup>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(node) = &mut self.node else {
            return Ok(()); // A late answer for a node that is none.
        };
        let mut reported = VecDeque::new();
        node.step(
            cx,
            input,
            Message::Groups,
            |it| it,
            |event, _| reported.push_back(event),
        )?;
        for event in reported {
            self.on_said(event, cx);
        }
        Ok(())
    }

    fn on_said(&mut self, event: Event, cx: &mut Context<'_, Self>) {
        match event {
            Event::Leading { group } => cx.event(Notified::Leads(group)),
            Event::Deposed { group } => cx.event(Notified::Deposed(group)),
            Event::Leader { group, event } => match event {
                LeaderEvent::Devices(event) => self.on_devices(event, cx),
                LeaderEvent::Routine(RoutineEvent::Triggered { .. }) => {
                    cx.event(Notified::Triggered(group));
                }
                LeaderEvent::Routine(RoutineEvent::Reports(_)) => {
                    cx.event(Notified::Reports(group))
                }
                LeaderEvent::Routine(_) | _ => {}
            },
            Event::Groups(groups::Event::Replica {
                group,
                event: replica::Event::Installed(_),
            }) => cx.event(Notified::Installed(group)),
            Event::Triggered { .. } | Event::Map { .. } | Event::Groups(_) | _ => {}
        }
    }

    /// The device at the leader's own place takes no message.
    fn on_devices(&mut self, event: devices::Event, cx: &mut Context<'_, Self>) {
        match event {
            devices::Event::Ping { device } if device == self.me.id => {
                self.receive(device, self.device.clone(), cx);
            }
            devices::Event::Ping { device } => cx.send(Member::new(device.0, 0), Message::Ping),
            devices::Event::Act { ticket, value } if ticket.device == self.me.id => {
                self.act(value, cx);
                self.report(done(ticket), cx);
            }
            devices::Event::Act { ticket, value } => {
                let device = Member::new(ticket.device.0, 0);
                cx.send(device, Message::Act(ticket, value));
            }
            devices::Event::Status { device, .. } => cx.event(Notified::Observed(device)),
            devices::Event::Full { .. } | _ => {}
        }
    }
}

const fn done(ticket: Ticket) -> Command {
    Command::Acted {
        ticket,
        outcome: Outcome::Done,
    }
}

impl Machine for Spot {
    type Message = Message;
    type Timer = Timer;
    type Command = Ask;
    type Event = Notified;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => match message {
                Message::Groups(message) => self.feed(Input::Message { from, message }, cx),
                Message::Ping => {
                    cx.send(from, Message::Reports(self.device.clone()));
                    Ok(())
                }
                Message::Reports(value) => {
                    self.receive(from.id, value, cx);
                    Ok(())
                }
                Message::Act(ticket, value) => {
                    self.act(value, cx);
                    cx.send(from, Message::Acted(ticket));
                    Ok(())
                }
                Message::Acted(ticket) => {
                    self.report(done(ticket), cx);
                    Ok(())
                }
            },
            Input::Tick(timer) => self.feed(Input::Tick(timer), cx),
            Input::Membership(delta) => self.feed(Input::Membership(delta), cx),
            Input::Command(Ask::Node(command)) => self.feed(Input::Command(command), cx),
            Input::Command(Ask::Turn(value)) => {
                self.device = value;
                Ok(())
            }
        }
    }
}
