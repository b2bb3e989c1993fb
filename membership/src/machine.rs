//! Dispatch of each input.

use selvedge_core::wire::frame_len;
use selvedge_core::{Context, Input, Machine, Member};

use crate::digest::key;
use crate::list::{Entry, Standing};
use crate::merge::Source;
use crate::message::{Body, Broadcast, Message};
use crate::{Command, Event, Membership, Misbehaviour, Phase, Reject, Timer};

impl Machine for Membership {
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
            Input::Tick(timer) => {
                self.on_tick(timer, cx);
                Ok(())
            }
            Input::Membership(_) => Err(Reject::MembershipInput),
            Input::Command(command) => self.command(command, cx),
        }
    }
}

impl Membership {
    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Join { seeds } => self.join(seeds, cx),
            Command::SetSeeds { seeds } => self.replace_seeds(seeds, cx),
            Command::Leave => self.leave(cx),
            Command::SetMetadata(metadata) => self.set_metadata(metadata),
            Command::SetDistance { id, distance } => self.set_distance(id, distance),
            Command::Broadcast(payload) => self.broadcast(payload),
            Command::SetConfig(config) => self.configure(config, cx),
            Command::Confirm(member) => self.confirm(member, cx),
            Command::Inquire(member) => self.inquire(member, cx),
        }
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Period => self.on_period(cx),
            Timer::Probe => self.on_probe_overdue(cx),
            Timer::Suspicion(id) => self.on_suspicion_over(id, cx),
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if self.phase() == Phase::Idle {
            return Err(Reject::NotJoined);
        }
        self.vet(from, &message)?;
        let Message {
            body,
            records,
            broadcasts,
        } = message;
        if self.phase() == Phase::Joining {
            return self.receive_while_joining(from, body, records, cx);
        }
        if matches!(body, Body::Join) {
            self.on_join(from, records, cx);
            return Ok(());
        }
        let known = self.list.get(from.id);
        let known = known.map(|(slot, entry)| (slot, entry.member(), entry.standing()));
        // Before anything is sent, because messages carry our name. Also from a sender whose life
        // is over: after lies two nodes may take each other for a former life.
        if let Body::IdTaken { life } = body {
            self.on_id_taken(life, cx);
        }
        if let Some((_, life, standing)) = known
            && is_over(from, life, standing, &body)
        {
            self.counters.stale_senders += 1;
            // A former life's frames may come late, or its next life may not know of us yet. Only a
            // question is answered, so that two answers cannot cause each other for ever.
            if body.is_question() {
                self.send(from, Body::IdTaken { life }, cx);
            }
            return Ok(());
        }
        if let Some((slot, life, _)) = known
            && life == from
        {
            self.on_contact(slot, cx);
        }
        let source = if self.bootstrap.is_page(&body) {
            Source::Fetched
        } else if matches!(body, Body::Welcome { .. } | Body::Records { .. }) {
            Source::Page
        } else {
            Source::Update
        };
        self.merge_all(from, records, source, cx);
        for broadcast in broadcasts {
            self.deliver(broadcast, cx);
        }
        if known.is_none_or(|(_, life, _)| from.supersedes(life)) {
            self.on_stranger(from, &body, cx);
        }
        // Slots do not move while a message is processed, but newcomers get the slots of the dead.
        let is_there = |entry: &Entry| entry.is_live() && entry.id() == from.id;
        let slot = known.map(|(slot, ..)| slot);
        let slot = slot.filter(|&slot| self.list.entry(slot).is_some_and(is_there));
        let slot = slot.or_else(|| self.list.find(from.id));
        self.on_body(from, slot, body, cx);
        Ok(())
    }

    /// Refuses messages that no correct peer sends, before anything changes.
    fn vet(&self, from: Member, message: &Message) -> Result<(), Misbehaviour> {
        if from.id == self.own.id() {
            return Err(Misbehaviour::OwnId(from.id));
        }
        let len = frame_len(from, message);
        let limit = usize::from(self.config.frame_budget);
        if len > limit {
            return Err(Misbehaviour::FrameTooLong { len, limit });
        }
        let limit = usize::from(self.config.metadata_limit);
        for record in &message.records {
            let len = record.metadata_len();
            if len > limit {
                let about = record.member.id;
                return Err(Misbehaviour::MetadataTooLong { about, len, limit });
            }
        }
        let limit = usize::from(self.config.broadcast_len);
        for broadcast in &message.broadcasts {
            if broadcast.payload.len() > limit {
                return Err(Misbehaviour::BroadcastTooLong {
                    origin: broadcast.origin.id,
                    len: broadcast.payload.len(),
                    limit,
                });
            }
        }
        if let Body::Pull { first, last } | Body::Records { first, last, .. } = message.body
            && last < first
        {
            return Err(Misbehaviour::EmptyRange);
        }
        Ok(())
    }

    /// `slot` is the sender's slot on the list.
    fn on_body(
        &mut self,
        from: Member,
        slot: Option<usize>,
        body: Body,
        cx: &mut Context<'_, Self>,
    ) {
        match body {
            Body::Ping { digest, origin } => {
                self.monitor.on_ping(self.config.active);
                self.send_listed(slot, from, Body::Ack { origin }, cx);
                self.compare_digests(from, digest, cx);
            }
            // A relay passes the answer on; an answer for this node goes no further.
            Body::Ack {
                origin: Some(origin),
            } if origin.id != self.own.id() => {
                self.send(origin, Body::RelayedAck { target: from }, cx);
            }
            Body::Ack { origin: None } => self.on_ack(from, slot, cx.now()),
            Body::Ack { origin: Some(_) } => {}
            Body::PingRequest { target } => self.on_ping_request(from, target, cx),
            Body::RelayedAck { target } => self.on_relayed_ack(target, cx),
            Body::Unlucky => self.on_unlucky(from),
            Body::Digests { buckets } if self.may_read(slot) => {
                self.on_digests(from, &buckets, cx);
            }
            // Any node may ask a node for its own record.
            Body::Pull { first, last } if first == last && first == key(self.own.id()) => {
                self.send_page(from, first, last, false, cx);
            }
            Body::Pull { first, last } if self.may_read(slot) => {
                self.send_page(from, first, last, false, cx);
            }
            Body::Digests { .. } | Body::Pull { .. } => {}
            Body::Records { next, .. } if self.bootstrap.is_page(&body) => {
                self.bootstrap.on_page(next);
                self.fetch_from(from, cx);
            }
            Body::Records {
                first,
                last,
                next,
                exchange,
            } => {
                let exchange = exchange && self.may_read(slot);
                self.on_records(from, (first, last), next, exchange, cx);
            }
            Body::Welcome { you, next } => {
                // A list that was not asked for is not believed like a fetched one.
                let is_awaited = self.bootstrap.is_overdue() && !self.bootstrap.is_fetching();
                if you == self.own.member() && is_awaited {
                    self.bootstrap.on_welcome(next);
                    self.fetch_from(from, cx);
                }
            }
            Body::IdTaken { .. } | Body::Join | Body::Farewell => {}
        }
    }

    fn deliver(&mut self, broadcast: Broadcast, cx: &mut Context<'_, Self>) {
        if broadcast.origin.id == self.own.id() {
            return;
        }
        let (is_new, is_full) = self.broadcasting.receive(&broadcast);
        self.counters.broadcasts_dropped += u64::from(is_full);
        if is_new {
            cx.event(Event::BroadcastReceived {
                origin: broadcast.origin,
                payload: broadcast.payload,
            });
        }
    }
}

/// Returns true if the sender's life is over: the list has `life` of its node, with this standing.
fn is_over(from: Member, life: Member, standing: Standing, body: &Body) -> bool {
    let has_left = standing == Standing::Left && life == from;
    life.supersedes(from) || has_left && !matches!(body, Body::Farewell)
}
