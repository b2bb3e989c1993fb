//! The handlers of a follower's inputs.

use selvedge_core::{Context, Input, Machine, Member};

use super::Follower;
use super::event::{Command, Event, Misbehaviour, Reject, Timer};
use crate::{Limits, Message};

impl Follower {
    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        match message {
            Message::Vote {
                task,
                attempt,
                returned,
            } => self.on_vote(from, (task, attempt), returned, cx),
            Message::Counted { task, attempt } => self.on_counted(from, task, attempt),
            Message::Run(run) => {
                let count = run.electors.len();
                if count > Limits::UNIT_MOST.into() {
                    return Err(Misbehaviour::TooMany(from, count).into());
                }
                if !run.electors.contains(&self.me) {
                    // The request waited in the mailbox, or the gateway does not know the present life yet.
                    if run.electors.iter().any(|it| self.me.supersedes(*it)) {
                        self.counters.0.stale += 1;
                        return Ok(());
                    }
                    return Err(Misbehaviour::NotElected(from).into());
                }
                self.meet_gateway(from)?;
                self.on_run(*run, cx);
            }
            Message::Over { task, attempt } => {
                self.meet_gateway(from)?;
                self.on_over(task, attempt, cx);
            }
            Message::Purged { number } => {
                self.meet_gateway(from)?;
                self.on_purged(number, cx);
            }
            Message::Elsewhere => {
                self.meet_gateway(from)?;
                if from.id == self.gateway().id {
                    self.go_elsewhere(cx);
                }
            }
            Message::Tables(_)
            | Message::Heartbeat { .. }
            | Message::Here
            | Message::KeepAlive { .. }
            | Message::Verdict { .. }
            | Message::Submit { .. }
            | Message::Cancel { .. }
            | Message::Taken { .. }
            | Message::Answer { .. }
            | Message::Refused { .. } => return Err(Misbehaviour::Misdirected(from).into()),
        }
        Ok(())
    }

    /// Notes the life of a gateway of the list that sent a message.
    fn meet_gateway(&mut self, from: Member) -> Result<(), Misbehaviour> {
        match self.gateways.meet(from) {
            true => Ok(()),
            false => Err(Misbehaviour::NoGateway(from)),
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.phase.is_none() && !matches!(command, Command::Start) {
            return Err(Reject::NotStarted);
        }
        match command {
            Command::Start if self.phase.is_some() => return Err(Reject::Started),
            Command::Start => self.begin_period(cx),
            Command::Unreachable => self.go_elsewhere(cx),
            Command::Emptied => self.on_emptied(cx),
            Command::SetDutyCycle(duty) => {
                duty.check()?;
                self.next_duty = (duty != self.duty).then_some(duty);
            }
            Command::Returned { task, returned } => return self.on_returned(task, returned, cx),
            Command::Loaded(library) => return self.on_loaded(library, cx),
            Command::Missing(library) => return self.on_missing(library, cx),
        }
        Ok(())
    }
}

impl Machine for Follower {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer::Phase) => {
                self.end_phase(cx);
                Ok(())
            }
            Input::Tick(Timer::Run) => {
                self.on_run_tick(cx);
                Ok(())
            }
            // Its gateway sends it the lists of followers that it needs.
            Input::Membership(_) => Ok(()),
            Input::Command(command) => self.command(command, cx),
        }
    }
}
