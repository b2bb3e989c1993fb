//! Algorithm 1 of the paper, line by line.

use std::collections::BTreeSet;

use selvedge_core::{Context, Input, Machine, Member};
use thiserror::Error;

/// A request to enter: the lower one has priority. The number grows with every request that its
/// sender has seen; ties go to the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The sequence number.
    pub number: u32,
    /// The node that wants to enter.
    pub by: Member,
}

/// A message between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// May I enter?
    Request(Request),
    /// You may, as far as I am concerned.
    Ok,
}

/// A command of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Get me in.
    Enter,
    /// I am done.
    Exit,
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The node is inside.
    Entered,
    /// The node is outside.
    Exited,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reject {
    /// The previous visit is not over.
    #[error("cannot enter: the last request is not over; exit first")]
    Busy,
    /// Only a node that is inside can leave.
    #[error("cannot exit: not inside; wait for Entered")]
    Outside,
}

/// The stage that a node is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It does not want to enter.
    Idle,
    /// It waits for all nodes in `pending` to answer `request` with OK.
    Waiting {
        /// Its request.
        request: Request,
        /// The nodes that have not answered.
        pending: BTreeSet<Member>,
    },
    /// It is inside.
    Inside,
}

/// A node.
///
/// It has no timers and no choices, and it trusts the network: a message that is lost, or a node
/// that stops, leaves the others waiting for ever. The membership list is fixed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RicartAgrawala {
    me: Member,
    peers: BTreeSet<Member>,
    /// The highest sequence number in any request received.
    max_seen: u32,
    stage: Stage,
    deferred: BTreeSet<Request>,
}

impl RicartAgrawala {
    /// A node that knows `peers`; whether it is on its own list makes no difference.
    #[must_use]
    pub fn new(me: Member, peers: impl IntoIterator<Item = Member>) -> Self {
        Self {
            me,
            peers: peers.into_iter().filter(|&peer| peer != me).collect(),
            max_seen: 0,
            stage: Stage::Idle,
            deferred: BTreeSet::new(),
        }
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// Its stage.
    #[must_use]
    pub const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Asks to enter.
    ///
    /// # Errors
    /// When it waits or is inside already.
    pub fn enter(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.stage != Stage::Idle {
            return Err(Reject::Busy);
        }
        let request = Request {
            number: self.max_seen.saturating_add(1),
            by: self.me,
        };
        for &peer in &self.peers {
            cx.send(peer, Message::Request(request));
        }
        self.wait(request, self.peers.clone(), cx);
        Ok(())
    }

    /// Leaves, and lets the nodes in that had to wait.
    ///
    /// # Errors
    /// When it is not inside.
    pub fn exit(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.stage != Stage::Inside {
            return Err(Reject::Outside);
        }
        self.stage = Stage::Idle;
        cx.event(Event::Exited);
        for request in core::mem::take(&mut self.deferred) {
            cx.send(request.by, Message::Ok);
        }
        Ok(())
    }

    fn asked(&mut self, theirs: Request, cx: &mut Context<'_, Self>) {
        self.max_seen = self.max_seen.max(theirs.number);
        let defer = match &self.stage {
            Stage::Idle => false,
            Stage::Waiting { request, .. } => theirs > *request,
            Stage::Inside => true,
        };
        if defer {
            self.deferred.insert(theirs);
        } else {
            cx.send(theirs.by, Message::Ok);
        }
    }

    fn allowed(&mut self, by: Member, cx: &mut Context<'_, Self>) {
        if let Stage::Waiting { request, pending } = &mut self.stage {
            pending.remove(&by);
            let (request, pending) = (*request, core::mem::take(pending));
            self.wait(request, pending, cx);
        }
    }

    /// Waits for `pending`, or enters when it is empty.
    fn wait(&mut self, request: Request, pending: BTreeSet<Member>, cx: &mut Context<'_, Self>) {
        self.stage = if pending.is_empty() {
            cx.event(Event::Entered);
            Stage::Inside
        } else {
            Stage::Waiting { request, pending }
        };
    }
}

impl Machine for RicartAgrawala {
    type Message = Message;
    type Timer = ();
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Command(Command::Enter) => return self.enter(cx),
            Input::Command(Command::Exit) => return self.exit(cx),
            Input::Message {
                message: Message::Request(request),
                ..
            } => self.asked(request, cx),
            Input::Message {
                from,
                message: Message::Ok,
            } => self.allowed(from, cx),
            Input::Tick(()) | Input::Membership(_) => {}
        }
        Ok(())
    }
}
