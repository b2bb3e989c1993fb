//! The handlers of a gateway's inputs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId};
use selvedge_replica::Replica;

use super::event::{Command, Event, Misbehaviour, Reject, Timer};
use super::state::{Gateway, check_result};
use crate::{Hops, Message, Tables, Update};

/// The greatest number of known gateways. Gateways that have failed, and are not in the configuration,
/// are forgotten to make room.
const KNOWN_MOST: usize = 64;

impl Gateway {
    /// Makes a step of the replica. Its events are handled at the end of this gateway's step.
    pub(super) fn step(
        &mut self,
        input: Input<Replica<Tables>>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), selvedge_replica::Reject> {
        let notified = &mut self.notified.0;
        self.replica.step(
            cx,
            input,
            |message| Message::Tables(Box::new(message)),
            Timer::Tables,
            |event, cx| {
                if let selvedge_replica::Event::Fact(fact) = event {
                    cx.event(Event::Fact(fact));
                } else {
                    notified.push_back(event);
                }
            },
        )
    }

    /// Proposes an update, unless it would change nothing. A lost proposal is made again when a follower or
    /// client repeats its message, or when a timer expires.
    pub(super) fn propose(
        &mut self,
        update: Update,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), selvedge_replica::Reject> {
        let is_known = self.tables().is_some_and(|it| it.known(&update).is_some());
        if is_known {
            return Ok(());
        }
        let command = selvedge_replica::Command::Propose(update);
        let proposed = self.step(Input::Command(command), cx);
        self.counters.0.not_proposed += u64::from(proposed.is_err());
        proposed
    }

    /// Proposes an update that a timer proposes again if this is refused or lost.
    pub(super) fn try_to_propose(&mut self, update: Update, cx: &mut Context<'_, Self>) {
        let _counted = self.propose(update, cx);
    }

    /// Handles the replica's events, and the events to which that leads.
    fn look_at_notified(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(event) = self.notified.0.pop_front() {
            self.on_answered(event, cx);
        }
    }

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
            Message::Tables(message) => {
                // The replica takes decided entries and proposals from any sender, so unknown ones stop here.
                if !self.gateways.contains_key(&from.id) {
                    return Err(Reject::UnknownGateway(from));
                }
                let message = *message;
                self.step(Input::Message { from, message }, cx)?;
                self.note_here(from, cx);
            }
            Message::Heartbeat { ended } => self.on_heartbeat(from, &ended, cx)?,
            Message::Here => self.on_here(from, cx)?,
            Message::KeepAlive {
                number,
                duty,
                libraries,
            } => {
                duty.check().map_err(|why| Misbehaviour::Duty(from, why))?;
                self.on_keep_alive(from, number, duty, &libraries, cx);
            }
            Message::Verdict {
                task,
                attempt,
                term,
                answer,
                voters,
            } => self.on_verdict(from, task, (attempt, term), (answer, voters), cx),
            Message::Vote {
                task,
                attempt,
                returned,
            } => self.on_vote(from, (task, attempt), returned, cx),
            Message::Submit { number, function } => self.on_submit(from, number, function, cx),
            Message::Cancel { number } => self.on_cancel(from, number, cx),
            Message::Purged { .. }
            | Message::Run(_)
            | Message::Over { .. }
            | Message::Counted { .. }
            | Message::Taken { .. }
            | Message::Answer { .. }
            | Message::Refused { .. }
            | Message::Elsewhere => return Err(Misbehaviour::Misdirected(from).into()),
        }
        Ok(())
    }

    fn on_delta(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let is_gateway = self.gateways.contains_key(&delta.member().id);
        match is_gateway && delta.member().id != self.me.id {
            true => self.learn(delta, cx),
            // The replica may remember the node, and refuses the end of this one.
            false => self.step(Input::Membership(delta), cx)?,
        }
        Ok(())
    }

    /// Takes a report about a gateway from the membership service, or from its silence.
    pub(super) fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) {
        let member = delta.member();
        let Some(known) = self.gateways.get_mut(&member.id) else {
            return; // It is no gateway.
        };
        if known.supersedes(member) || member.id == self.me.id {
            return;
        }
        *known = member;
        let learned = self.step(Input::Membership(delta), cx);
        debug_assert_eq!(learned, Ok(()), "a replica refuses its own end alone");
        match delta {
            Delta::Suspected(_) => {}
            Delta::Joined(_) | Delta::Refuted(_) => {
                if self.ended.remove(&member.id) {
                    cx.event(Event::Returned(member));
                }
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                if self.ended.insert(member.id) {
                    cx.event(Event::Failed(member));
                    self.on_gateway_gone(member.id, cx);
                }
            }
        }
        self.look_at_voters(cx);
    }

    /// Adds the gateways of a new configuration to the known ones.
    pub(super) fn on_configured(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.replica.machine().configuration().members();
        let named: Vec<Member> = named.map(|it| it.member).collect();
        for &member in &named {
            // Only the replica has the former reports of membership about it.
            if !self.gateways.contains_key(&member.id)
                && self.replica.machine().has_ended(member.id)
            {
                self.ended.insert(member.id);
            }
            let known = self.gateways.entry(member.id).or_insert(member);
            if member.supersedes(*known) {
                *known = member;
            }
        }
        while self.gateways.len() > KNOWN_MOST {
            let is_named = |id: &NodeId| named.iter().any(|it| it.id == *id);
            let former = self.ended.iter().copied().find(|it| !is_named(it));
            let Some(former) = former else { break };
            self.ended.remove(&former);
            self.gateways.remove(&former);
            cx.disarm(Timer::Timeout(former));
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Start if self.is_started => Err(Reject::Started),
            Command::Start => {
                self.is_started = true;
                // Folded facts may have changed the configuration.
                self.on_configured(cx);
                cx.arm(Timer::Review, self.config.review);
                self.watch_own(cx);
                self.watch_gateways(cx);
                Ok(())
            }
            Command::SetHops { to, hops } => self.on_hops(to, hops, cx),
            Command::Configure(next) => {
                if let Some(tables) = self.tables() {
                    check_result(tables.limits(), &next)?;
                }
                let command = selvedge_replica::Command::Configure(next);
                Ok(self.step(Input::Command(command), cx)?)
            }
        }
    }

    /// Proposes the distance to another gateway.
    fn on_hops(&mut self, to: NodeId, hops: u8, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let one = self.me.id;
        let hops = Hops {
            one,
            other: to,
            hops,
        };
        let configuration = self.replica.machine().configuration();
        if [one, to]
            .iter()
            .any(|it| configuration.voter(*it).is_none())
        {
            return Ok(());
        }
        if self.tables().is_some_and(|it| it.lacks_room_for(hops)) {
            self.counters.0.no_room += 1;
            return Ok(());
        }
        Ok(self.propose(Update::Hops(hops), cx)?)
    }

    fn tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match timer {
            Timer::Tables(timer) => self.step(Input::Tick(timer), cx)?,
            Timer::Purge(follower) => self.on_purge_tick(follower, cx),
            Timer::Offload(task) => self.on_offload_tick(task, cx),
            Timer::Cluster => self.on_cluster_tick(cx),
            Timer::Heartbeat => self.on_heartbeat_tick(cx),
            Timer::Manager => self.on_manager_tick(cx),
            Timer::Timeout(gateway) => self.on_timeout_tick(gateway, cx),
            Timer::Review => self.on_review_tick(cx),
        }
        Ok(())
    }
}

impl Machine for Gateway {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let taken = match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(timer) => self.tick(timer, cx),
            Input::Membership(delta) => self.on_delta(delta, cx),
            Input::Command(command) => self.command(command, cx),
        };
        self.look_at_notified(cx);
        // A refused input changes nothing, not even the reports to the host.
        if taken.is_ok() {
            self.tell_whether_available(cx);
        }
        taken
    }
}

impl Durable for Gateway {
    type Fact = selvedge_replica::Fact<Tables>;
    type Damage = selvedge_replica::Damage;

    fn fact(event: &Event) -> Option<&Self::Fact> {
        if let Event::Fact(fact) = event {
            return Some(fact);
        }
        None
    }

    fn fold(&mut self, fact: &Self::Fact) -> Result<(), Self::Damage> {
        self.replica.fold(fact)
    }
}
