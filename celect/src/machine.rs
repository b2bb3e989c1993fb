//! The dispatch of inputs.

use selvedge_core::{Context, Input, Machine, Member, Ratio};

use crate::config::{MILLION, is_miss};
use crate::leadership::Leadership;
use crate::lists::is_in_order;
use crate::message::Message;
use crate::{Attribute, Celect, Command, Config, Event, LeaderState, Misbehaviour, Reject, Timer};

impl<A: Attribute> Celect<A> {
    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Elect if self.run.is_some() => Err(Reject::AlreadyElecting),
            Command::Elect => {
                let needed = self.needed();
                if needed > 1 && self.peers.len() == 0 && !self.rules.no_discovery() {
                    return Err(Reject::TooFew {
                        known: 1,
                        needed: u32::try_from(needed).unwrap_or(u32::MAX),
                    });
                }
                self.begin(cx);
                Ok(())
            }
            Command::Measure => self.measure(cx),
            Command::SetBounds {
                missing_from: c,
                failures: f,
            } => {
                let config = Config {
                    missing_from: c,
                    failures: f,
                    ..self.config
                };
                config.check()?;
                self.config = config;
                self.rest_on_latest();
                // The answers at hand may be enough now.
                self.evaluate(cx);
                Ok(())
            }
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.judge(from, &message)?;
        match message {
            Message::Query {
                ballot,
                lowest: x,
                suspected: y,
                want,
                exclude,
                no_majority: few,
            } => self.on_query(from, (ballot, few), (x, y, want), &exclude, cx),
            Message::Response {
                ballot,
                candidates,
                unhealthy,
                known,
            } => self.on_response(from, ballot, [&candidates, &unhealthy, &known], cx),
            Message::Appoint {
                ballot,
                life,
                no_majority: few,
            } => {
                self.on_appoint(from, (ballot, few), life, cx);
            }
            Message::Leader {
                ballot,
                leader,
                renewal,
                lease,
                state,
                covered,
            } => {
                let received = Leadership {
                    member: leader,
                    ballot,
                    renewal,
                    lease,
                    lost: false,
                    few: state == LeaderState::NoMajority,
                    asked: 0,
                    firm: false,
                };
                let ended = state == LeaderState::Ended;
                self.on_leader(from, (received, ended), &covered, cx);
            }
            Message::LeaderAck { ballot, renewal } => self.on_leader_ack(from, ballot, renewal, cx),
            Message::SampleQuery { run, from: first } => self.on_sample_query(from, run, first, cx),
            Message::SampleResponse { .. }
            | Message::Feedback { .. }
            | Message::Estimate { .. } => self.on_measurement(from, message, cx),
        }
        Ok(())
    }

    /// Checks that a correct peer may send this.
    fn judge(&self, from: Member, message: &Message) -> Result<(), Misbehaviour> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from));
        }
        match *message {
            Message::Query { ballot, .. }
            | Message::Appoint { ballot, .. }
            | Message::Feedback { ballot, .. }
                if ballot.initiator != from =>
            {
                Err(Misbehaviour::Initiator(ballot.initiator))
            }
            Message::Leader { ballot, leader, .. } if leader == self.me => {
                let known = self.leader.map(|known| known.ballot);
                if !self.rules.last_wins() && !self.rules.lowest_wins() && known < Some(ballot) {
                    return Err(Misbehaviour::NotAppointed);
                }
                Ok(())
            }
            Message::Feedback {
                answers, missing, ..
            } if missing > answers => Err(Misbehaviour::Feedback { answers, missing }),
            Message::SampleResponse {
                from,
                ref members,
                more,
                ..
            } if !is_in_order(from, members, more) => Err(Misbehaviour::List(from)),
            Message::Estimate { miss, .. } if !is_miss(Ratio::new(miss, MILLION)) => {
                Err(Misbehaviour::Miss(miss))
            }
            Message::Estimate { ballot, .. } => {
                let is_led = |it: &Leadership| it.ballot == ballot && it.member != from;
                match self.leader.filter(is_led) {
                    Some(leader) => Err(Misbehaviour::NotLeader(leader.member)),
                    None => Ok(()),
                }
            }
            Message::Query { .. }
            | Message::Response { .. }
            | Message::Appoint { .. }
            | Message::Leader { .. }
            | Message::LeaderAck { .. }
            | Message::SampleQuery { .. }
            | Message::SampleResponse { .. }
            | Message::Feedback { .. } => Ok(()),
        }
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Answer => self.on_overdue(cx),
            Timer::Watch => self.on_watch(cx),
            Timer::Start => self.on_start(cx),
            Timer::Resend => self.on_resend(cx),
            Timer::Majority => self.on_few(cx),
            Timer::Renew => self.on_renew(cx),
            Timer::Lease => self.on_lease_over(cx),
            Timer::Expiry(slot) => self.on_expiry(slot, cx),
            Timer::Sample | Timer::Measure | Timer::Stale => self.on_measure_tick(timer, cx),
        }
    }
}

impl<A: Attribute> Machine for Celect<A> {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Membership(delta) => self.learn(delta, cx),
            Input::Command(command) => self.command(command, cx),
            Input::Tick(timer) => {
                self.on_tick(timer, cx);
                Ok(())
            }
        }
    }
}
