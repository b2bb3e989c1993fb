//! A node that submits functions, and runs none.

use alloc::collections::BTreeMap;

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::{Context, Input, Machine, Member, NodeId, Span};
use thiserror::Error;

use crate::gateway_list::GatewayList;
use crate::{Answer, Function, Limits, Message, Refusal, Voters};

/// The settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The time to wait for an answer before a request is sent again: above zero. Default 2 s.
    pub resend: Span,
    /// The number of unanswered requests in a row after which the client goes to the next gateway:
    /// from 1. Default 2.
    pub repeats: u8,
    /// The greatest number of tasks that wait: from 1. Default 64. All clients together no more than
    /// [`Limits::done`](crate::Limits::done), or answers may be forgotten before clients receive them.
    pub tasks: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resend: Span::secs(2),
            repeats: 2,
            tasks: 64,
        }
    }

    selvedge_core::with_settings! {
        with_resend resend: Span,
        with_repeats repeats: u8,
        with_tasks tasks: u16,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        settings::check(&[
            Setting::time("resend", self.resend, Span(1), Span(u64::MAX)),
            Setting::number("repeats", self.repeats as u64, 1, u8::MAX as u64),
            Setting::number("tasks", self.tasks as u64, 1, u16::MAX as u64),
        ])
    }
}

/// A command of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Run a function. It is the task with [`Client::next_number`].
    Submit(Function),
    /// Cancel a task. [`Event::Answered`] or [`Event::Refused`] follows all the same; the task may have been
    /// answered before.
    Cancel(u64),
    /// The present gateway cannot be reached. The client goes to the next gateway of its list, and sends it
    /// all waiting requests at once. If it has tried each gateway within [`Config::resend`], it sends them
    /// when that time has passed. The host reports each failure once.
    Unreachable,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The answer to a task. Once for each task, unless it is refused.
    Answered {
        /// The task.
        number: u64,
        /// The answer.
        answer: Answer,
        /// The followers that voted for it, by id; empty if no votes made it. If the gateways had the answer
        /// already, from another task with an equal function, these are the voters of that task.
        voters: Voters,
    },
    /// A task is not run, or its answer is forgotten, or the gateway has no room for a waiting client:
    /// [`Refusal`] is the reason.
    Refused {
        /// The task.
        number: u64,
        /// The reason.
        why: Refusal,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The time to send unanswered requests again.
    Resend,
}

/// The reason why an input is refused. Nothing changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] OutOfRange),
    /// No gateway is named.
    #[error("the list of gateways is empty: name one at least")]
    NoGateway,
    /// The limit of tasks that wait is reached.
    #[error("{0} tasks wait: wait for an answer, or raise `tasks`")]
    Full(u16),
    /// No such task waits.
    #[error("no task {0} waits: it is answered, or was not submitted")]
    NoTask(u64),
    /// The sender is no gateway of the list, or the message is not for clients.
    #[error("{0} is no gateway of the list, or its message is not for clients")]
    Misdirected(Member),
    /// A gateway names more voters than a unit has followers.
    #[error("{0} names {1} voters: a unit has at most {max} followers", max = Limits::UNIT_MOST)]
    TooMany(Member, usize),
}

/// A task that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Wait {
    Submitted(Function),
    Cancelled,
}

/// A client. It repeats a request, also to other gateways, until it is answered. The function runs as one
/// task all the same.
///
/// A client counts its tasks from 1 in each of its lives. Answers to a former life are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    config: Config,
    me: Member,
    gateways: GatewayList,
    /// The number of the last task.
    last: u64,
    waits: BTreeMap<u64, Wait>,
    /// The number of requests in a row without an answer.
    unanswered: u8,
    /// True if the former gateway sent it on, or could not be reached, and the present gateway has received
    /// no request yet.
    is_sent_on: bool,
    /// The number of gateways that could not be reached since requests were last due.
    unreachable: usize,
}

impl Client {
    /// A client that can go to these gateways, the first one first.
    ///
    /// # Errors
    /// [`Reject::Config`] and [`Reject::NoGateway`].
    pub fn new(
        me: Member,
        config: Config,
        gateways: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        config.check()?;
        let gateways = GatewayList::new(gateways).ok_or(Reject::NoGateway)?;
        Ok(Self {
            config,
            me,
            gateways,
            last: 0,
            waits: BTreeMap::new(),
            unanswered: 0,
            is_sent_on: false,
            unreachable: 0,
        })
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The number of the next task.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// The gateway that it sends requests to.
    #[must_use]
    pub fn speaks_to(&self) -> NodeId {
        self.gateway().id
    }

    /// The tasks that wait for an answer.
    pub fn waiting(&self) -> impl Iterator<Item = u64> + '_ {
        self.waits.keys().copied()
    }

    fn gateway(&self) -> Member {
        self.gateways.present()
    }

    fn send(&self, number: u64, wait: &Wait, cx: &mut Context<'_, Self>) {
        let message = match wait {
            Wait::Submitted(function) => Message::Submit {
                number,
                function: function.clone(),
            },
            Wait::Cancelled => Message::Cancel { number },
        };
        cx.send(self.gateway(), message);
    }

    fn send_all(&self, cx: &mut Context<'_, Self>) {
        for (&number, wait) in &self.waits {
            self.send(number, wait, cx);
        }
        cx.arm(Timer::Resend, self.config.resend);
    }

    fn go_elsewhere(&mut self) {
        self.gateways.go_on();
        self.unanswered = 0;
    }

    /// Goes to the next gateway, because the host cannot reach the present one. Until requests are due again
    /// each gateway is tried once.
    fn on_unreachable(&mut self, cx: &mut Context<'_, Self>) {
        self.go_elsewhere();
        self.is_sent_on = false;
        if self.waits.is_empty() {
            return;
        }
        self.unreachable = self.unreachable.saturating_add(1);
        self.is_sent_on = self.unreachable >= self.gateways.len();
        if !self.is_sent_on {
            self.send_all(cx);
        }
    }

    fn on_resend_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.unreachable = 0;
        if self.waits.is_empty() {
            return;
        }
        // The client asks a gateway that it was sent on to before it goes to another one.
        if core::mem::take(&mut self.is_sent_on) {
            return self.send_all(cx);
        }
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered >= self.config.repeats {
            self.go_elsewhere();
        }
        self.send_all(cx);
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if !self.gateways.contains(from.id) {
            return Err(Reject::Misdirected(from));
        }
        match message {
            // For a former life, whose tasks have the same numbers.
            Message::Taken { task }
            | Message::Answer { task, .. }
            | Message::Refused { task, .. }
                if task.client != self.me => {}
            Message::Taken { .. } => self.unanswered = 0,
            Message::Answer { voters, .. } if voters.len() > Limits::UNIT_MOST.into() => {
                return Err(Reject::TooMany(from, voters.len()));
            }
            Message::Answer {
                task,
                answer,
                voters,
            } => {
                let number = task.number;
                self.unanswered = 0;
                if self.end(number, cx) {
                    let answered = Event::Answered {
                        number,
                        answer,
                        voters,
                    };
                    cx.event(answered);
                }
            }
            Message::Refused { task, why } => {
                let number = task.number;
                self.unanswered = 0;
                if self.end(number, cx) {
                    cx.event(Event::Refused { number, why });
                }
            }
            Message::Elsewhere => {
                // Requests are not sent at once: all gateways may reply so, and they would go round.
                if from.id == self.gateway().id {
                    self.go_elsewhere();
                    self.is_sent_on = true;
                }
            }
            Message::Tables(_)
            | Message::Heartbeat { .. }
            | Message::Here
            | Message::KeepAlive { .. }
            | Message::Purged { .. }
            | Message::Run(_)
            | Message::Over { .. }
            | Message::Vote { .. }
            | Message::Counted { .. }
            | Message::Verdict { .. }
            | Message::Submit { .. }
            | Message::Cancel { .. } => return Err(Reject::Misdirected(from)),
        }
        self.gateways.meet(from);
        Ok(())
    }

    /// Ends the wait for a task. Returns true if it waited.
    fn end(&mut self, number: u64, cx: &mut Context<'_, Self>) -> bool {
        let has_ended = self.waits.remove(&number).is_some();
        if has_ended && self.waits.is_empty() {
            cx.disarm(Timer::Resend);
        }
        has_ended
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let (number, wait) = match command {
            Command::Submit(function) => {
                if self.waits.len() >= self.config.tasks.into() {
                    return Err(Reject::Full(self.config.tasks));
                }
                self.last += 1;
                (self.last, Wait::Submitted(function))
            }
            Command::Cancel(number) => {
                if !self.waits.contains_key(&number) {
                    return Err(Reject::NoTask(number));
                }
                (number, Wait::Cancelled)
            }
            Command::Unreachable => {
                self.on_unreachable(cx);
                return Ok(());
            }
        };
        if self.waits.is_empty() {
            self.unreachable = 0;
            cx.arm(Timer::Resend, self.config.resend);
        }
        self.send(number, &wait, cx);
        self.waits.insert(number, wait);
        Ok(())
    }
}

impl Machine for Client {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer::Resend) => {
                self.on_resend_tick(cx);
                Ok(())
            }
            Input::Membership(_) => Ok(()),
            Input::Command(command) => self.command(command, cx),
        }
    }
}
