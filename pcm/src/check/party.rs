//! A gateway, a follower or a client as a node of one mesh.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Effect, Input, Machine, Member, NodeId, Outbox};
use selvedge_replica::{Damage, Fact};

use super::watch::{self, Notified};
use crate::client::{self, Client};
use crate::follower::{self, Follower};
use crate::gateway::{self, Gateway};
use crate::node::Timer;
use crate::poll::Votes;
use crate::{Answer, Bytes, Function, Message, Returned, Tables, TaskId, Voters};

/// A command of a host or an application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A client submits a function.
    Submit,
    /// A client cancels its first task.
    Cancel,
    /// A follower goes to its next gateway.
    Move,
}

/// The task that every scenario is about: the client's first.
pub(super) const TASK: TaskId = TaskId {
    client: Member::new(CLIENT, 0),
    number: 1,
};

/// The id of the first follower.
pub(super) const FIRST: u64 = 11;

/// The id of the client.
pub(super) const CLIENT: u64 = 90;

/// Added to a follower's value: its function does not return at once.
pub(super) const SLOW: u8 = 100;

/// The value of a follower that lies: it also reports this value as the answer of its unit.
pub(super) const LIAR: u8 = 9;

/// A gateway, a follower or a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// A gateway, and the first answer that it knew.
    #[doc(hidden)]
    Gateway(Box<Gateway>, Option<Decided>),
    /// A follower, and the value that its functions return: at once, or later if `SLOW` is added. With
    /// `LIAR` the follower also reports the value as the answer of its unit.
    #[doc(hidden)]
    Follower(Box<Follower>, u8),
    /// A client, and the answers that it received.
    #[doc(hidden)]
    Client(Client, Vec<Received>),
}

/// A task's answer, and the followers that voted for it.
pub(super) type Received = (Answer, Voters);

/// An answer as a gateway first knew it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    pub(super) received: Received,
    /// The followers that had the task until then, the orchestrator first. `None` if the same step applied
    /// other updates, or the answer was read from stored facts.
    pub(super) electors: Option<Vec<Member>>,
}

impl Party {
    /// The node's member.
    #[must_use]
    pub fn me(&self) -> Member {
        match self {
            Self::Gateway(it, _) => it.me(),
            Self::Follower(it, _) => it.me(),
            Self::Client(it, _) => it.me(),
        }
    }

    pub(super) fn gateway(&self) -> Option<&Gateway> {
        match self {
            Self::Gateway(it, _) => Some(it),
            Self::Follower(..) | Self::Client(..) => None,
        }
    }

    pub(super) fn follower(&self) -> Option<&Follower> {
        match self {
            Self::Follower(it, _) => Some(it),
            Self::Gateway(..) | Self::Client(..) => None,
        }
    }

    /// A node in a line.
    pub(super) fn show(&self) -> String {
        match self {
            Self::Gateway(it, _) => {
                let tables = it.tables();
                let open = tables.and_then(|it| it.open_task(TASK));
                let followers: Vec<_> = tables.into_iter().flat_map(|it| it.followers()).collect();
                let answer = tables.and_then(|it| it.answer(TASK));
                let voters = tables.map(|it| it.voters(TASK));
                format!("{open:?}; {answer:?} of {voters:?}; {followers:?}")
            }
            Self::Follower(it, _) => format!("{:?}", it.work_on(TASK)),
            Self::Client(_, received) => format!("heard {received:?}"),
        }
    }

    /// The first step of a node.
    pub(super) fn begin(&mut self, cx: &mut Context<'_, Self>) -> Result<(), String> {
        match self {
            Self::Gateway(it, _) => {
                let start = Input::Command(gateway::Command::Start);
                step(&mut **it, start, Timer::Gateway, cx, tell_facts)
            }
            Self::Follower(it, _) => {
                let start = Input::Command(follower::Command::Start);
                step(&mut **it, start, Timer::Follower, cx, |_, _| {})
            }
            Self::Client(..) => Ok(()),
        }
    }

    fn step_gateway(
        &mut self,
        input: Input<Gateway>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), String> {
        let Self::Gateway(it, first) = self else {
            return Err(String::from("no gateway"));
        };
        let before = it.replica().version();
        let votes = it.tables().and_then(|it| it.votes(TASK));
        let electors = it.tables().and_then(|it| it.assignment(TASK));
        let electors = electors.map(|it| it.electors.to_vec());
        step(&mut **it, input, Timer::Gateway, cx, tell_facts)?;
        let is_next = it.replica().version() == before + 1;
        note_answer(it, first, electors.filter(|_| is_next));
        if it.replica().version() != before
            && let Some(notified) = watch::holds(it)
        {
            cx.event(notified);
        }
        let now = it.tables().and_then(|it| it.votes(TASK));
        tell_recount(votes.as_ref(), now.as_ref(), cx);
        Ok(())
    }

    fn step_follower(
        &mut self,
        input: Input<Follower>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), String> {
        let Self::Follower(it, value) = self else {
            return Err(String::from("no follower"));
        };
        let (lies, is_slow) = (*value == LIAR, *value >= SLOW);
        let value = *value % SLOW;
        let send = move |to: Member, message: Message, cx: &mut Context<'_, Self>| match lies {
            true => send_lie(to, message, cx),
            false => cx.send(to, message),
        };
        let votes = it.votes(TASK);
        let mut run = None;
        let tick = Timer::Follower;
        if is_slow && matches!(input, Input::Tick(follower::Timer::Run)) {
            run = Some(TASK); // The function ends.
        } else {
            step_saying(&mut **it, input, tick, send, cx, |event, _| {
                if let follower::Event::Run { task, .. } = event {
                    run = Some(task).filter(|_| !is_slow);
                }
            })?;
        }
        // A function that is not slow returns at once.
        if let Some(task) = run {
            let returned = Returned::Value(one(value));
            let returned = Input::Command(follower::Command::Returned { task, returned });
            step_saying(&mut **it, returned, tick, send, cx, |_, _| {})?;
        }
        tell_recount(votes.as_ref(), it.votes(TASK).as_ref(), cx);
        Ok(())
    }

    fn step_client(
        &mut self,
        input: Input<Client>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), String> {
        let Self::Client(it, received) = self else {
            return Err(String::from("no client"));
        };
        step(it, input, Timer::Client, cx, |event, _| {
            if let client::Event::Answered { answer, voters, .. } = event {
                received.push((answer, voters));
            }
        })
    }
}

/// Reports the facts that a gateway has to store.
fn tell_facts(event: gateway::Event, cx: &mut Context<'_, Party>) {
    if let gateway::Event::Fact(fact) = event {
        cx.event(Notified::Fact(fact));
    }
}

/// Reports a change of the votes of one attempt other than votes added at the end.
fn tell_recount(before: Option<&Votes>, now: Option<&Votes>, cx: &mut Context<'_, Party>) {
    if let (Some(before), Some(now)) = (before, now)
        && before.0 == now.0
        && !now.1.starts_with(&before.1)
    {
        cx.event(Notified::Recounts);
    }
}

/// Notes the first answer that a gateway knows, with the followers that had the task until then.
fn note_answer(gateway: &Gateway, first: &mut Option<Decided>, electors: Option<Vec<Member>>) {
    if first.is_none() {
        let received = heard_from(gateway);
        *first = received.map(|received| Decided { received, electors });
    }
}

/// The answer and voters that a gateway sends to clients.
pub(super) fn heard_from(gateway: &Gateway) -> Option<Received> {
    let tables = gateway.tables()?;
    let answer = tables.answer(TASK)?.clone();
    Some((answer, tables.voters(TASK).iter().copied().collect()))
}

/// A value of one byte.
pub(super) fn one(value: u8) -> Bytes {
    core::iter::once(value).collect()
}

/// Sends a message of a follower that lies, with a false answer of its unit beside or in place of it,
/// also where the follower does not count the votes.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "a lie is about what a unit returned, and nothing else"
)]
fn send_lie(to: Member, message: Message, cx: &mut Context<'_, Party>) {
    let lie = match message {
        Message::Verdict {
            task,
            attempt,
            term,
            ..
        } => Some((task, attempt, term)),
        Message::Vote { task, attempt, .. } => Some((task, attempt, 0)),
        _ => None,
    };
    if !matches!(message, Message::Verdict { .. }) {
        cx.send(to, message);
    }
    let Some((task, attempt, term)) = lie else {
        return;
    };
    let verdict = Message::Verdict {
        task,
        attempt,
        term,
        answer: Answer::Value(one(LIAR)),
        // Enough for any unit of a check.
        voters: [FIRST, FIRST + 1].map(NodeId).into_iter().collect(),
    };
    cx.send(to, verdict);
}

/// Makes a step of one machine a step of its node; effects other than events are passed on.
fn step<M: Machine<Message = Message>>(
    machine: &mut M,
    input: Input<M>,
    tick: impl Fn(M::Timer) -> Timer,
    cx: &mut Context<'_, Party>,
    event: impl FnMut(M::Event, &mut Context<'_, Party>),
) -> Result<(), String> {
    let send = |to, message, cx: &mut Context<'_, Party>| cx.send(to, message);
    step_saying(machine, input, tick, send, cx, event)
}

/// Makes the same step as [`step`], with a `send` that may replace the machine's messages.
fn step_saying<M: Machine<Message = Message>>(
    machine: &mut M,
    input: Input<M>,
    tick: impl Fn(M::Timer) -> Timer,
    send: impl Fn(Member, Message, &mut Context<'_, Party>),
    cx: &mut Context<'_, Party>,
    mut event: impl FnMut(M::Event, &mut Context<'_, Party>),
) -> Result<(), String> {
    let mut outbox = Outbox::new();
    let taken = machine.handle(input, &mut cx.inner(&mut outbox));
    taken.map_err(|why| format!("{why:?}"))?;
    for (timer, after) in outbox.drain_timers() {
        match after {
            Some(after) => cx.arm(tick(timer), after),
            None => cx.disarm(tick(timer)),
        }
    }
    for effect in outbox.drain_effects() {
        match effect {
            Effect::Send { to, message } => send(to, message, cx),
            Effect::Multicast { message } => cx.multicast(message),
            Effect::Event(it) => event(it, cx),
        }
    }
    Ok(())
}

impl Machine for Party {
    type Message = Message;
    type Timer = Timer;
    type Command = Ask;
    type Event = Notified;
    type Reject = String;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), String> {
        match input {
            Input::Message { from, message } => match self {
                Self::Gateway(..) => self.step_gateway(Input::Message { from, message }, cx),
                Self::Follower(..) => self.step_follower(Input::Message { from, message }, cx),
                Self::Client(..) => self.step_client(Input::Message { from, message }, cx),
            },
            Input::Tick(Timer::Gateway(timer)) => self.step_gateway(Input::Tick(timer), cx),
            Input::Tick(Timer::Follower(timer)) => self.step_follower(Input::Tick(timer), cx),
            Input::Tick(Timer::Client(timer)) => self.step_client(Input::Tick(timer), cx),
            Input::Membership(delta) => self.step_gateway(Input::Membership(delta), cx),
            Input::Command(Ask::Submit) => {
                let submit = client::Command::Submit(Function::new(b"f"));
                self.step_client(Input::Command(submit), cx)
            }
            Input::Command(Ask::Cancel) => {
                let cancel = client::Command::Cancel(TASK.number);
                self.step_client(Input::Command(cancel), cx)
            }
            Input::Command(Ask::Move) => {
                let elsewhere = follower::Command::Unreachable;
                self.step_follower(Input::Command(elsewhere), cx)
            }
        }
    }
}

impl Durable for Party {
    type Fact = Fact<Tables>;
    type Damage = Damage;

    fn fact(event: &Notified) -> Option<&Fact<Tables>> {
        match event {
            Notified::Fact(fact) => Some(fact),
            Notified::Holds(..) | Notified::Recounts => None,
        }
    }

    fn fold(&mut self, fact: &Fact<Tables>) -> Result<(), Damage> {
        if let Self::Gateway(gateway, first) = self {
            gateway.fold(fact)?;
            note_answer(gateway, first, None);
        }
        Ok(())
    }
}
