//! A cluster and routines as nodes of one mesh.

use alloc::boxed::Box;
use alloc::string::String;

use selvedge_core::{Context, Input, Machine, Member, NodeId};
use selvedge_routine::State;

use super::cluster::Cluster;
use super::script::{Script, Until};
use crate::devices::Timer;
use crate::{Answer, Request};

/// The messages between groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payload {
    /// A request to the cluster.
    Request(Request),
    /// An answer to a routine.
    Answer(Answer),
}

/// A possible next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tick {
    /// The cluster's group decides on the first proposal.
    Decide,
    /// The cluster's leader learns of the first decision.
    Learn,
    /// The device carries out a command.
    Device,
    /// A timer of the cluster's leader.
    Leader(Timer),
    /// A routine asks again.
    Resend,
    /// A routine has done its work.
    Finish,
}

/// An action of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A routine is triggered.
    Run,
    /// The cluster has another leader.
    TakeOver,
    /// The cluster has another leader, whose site has this generation.
    Lead(u32),
    /// A routine's leader follows another site.
    Site(Until),
    /// A device reports.
    Report(NodeId, State),
}

/// The cluster, or a routine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    me: Member,
    pub(super) role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Cluster(Box<Cluster>),
    Routine(Script),
}

impl Party {
    pub(super) const fn new(id: u64, role: Role) -> Self {
        let me = Member::new(id, 0);
        Self { me, role }
    }

    /// The node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// A node in a line.
    pub(super) fn show(&self) -> String {
        match &self.role {
            Role::Cluster(it) => it.show(),
            Role::Routine(it) => it.show(),
        }
    }

    pub(super) fn cluster(&self) -> Option<&Cluster> {
        match &self.role {
            Role::Cluster(it) => Some(it),
            Role::Routine(_) => None,
        }
    }

    pub(super) fn script(&self) -> Option<&Script> {
        match &self.role {
            Role::Cluster(_) => None,
            Role::Routine(it) => Some(it),
        }
    }
}

impl Machine for Party {
    type Message = Payload;
    type Timer = Tick;
    type Command = Ask;
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match (&mut self.role, input) {
            (
                Role::Cluster(it),
                Input::Message {
                    from,
                    message: Payload::Request(request),
                },
            ) => it.on_request(from, request, cx),
            (
                Role::Routine(it),
                Input::Message {
                    message: Payload::Answer(answer),
                    ..
                },
            ) => it.on_answer(&answer, cx),
            (Role::Cluster(it), Input::Tick(timer)) => it.on_tick(timer, cx),
            (Role::Routine(it), Input::Tick(timer)) => it.on_tick(timer, cx),
            (Role::Cluster(it), Input::Command(Ask::TakeOver)) => it.take_over(None, cx),
            (Role::Cluster(it), Input::Command(Ask::Lead(generation))) => {
                it.take_over(Some(generation), cx);
            }
            (Role::Routine(it), Input::Command(Ask::Site(change))) => it.on_site(change, cx),
            (Role::Cluster(it), Input::Command(Ask::Report(device, value))) => {
                it.report(device, value, cx);
            }
            (Role::Routine(it), Input::Command(Ask::Run)) => {
                return if it.run(cx) { Ok(()) } else { Err(()) };
            }
            (_, Input::Message { .. } | Input::Command(_) | Input::Membership(_)) => {
                return Err(());
            }
        }
        Ok(())
    }
}
