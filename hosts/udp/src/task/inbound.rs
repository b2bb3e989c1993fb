//! Inputs: datagrams and time.

use std::io;
use std::net::SocketAddr;

use selvedge::{Message, decode, frame};
use selvedge_core::wire::{List, SEALED};
use selvedge_core::{Effect, Input, Member};
use selvedge_groups as groups;
use selvedge_membership::KIND;
use selvedge_seal::Unopened;

use super::Task;
use crate::NodeEvent;
use crate::event::OtherSite;
use crate::notice::{self, Notice};
use crate::query::{self, Query};
use crate::sites::Sites;

/// The number of waiting datagrams that are received before a due timer.
const BURST: usize = 64;

impl Task {
    pub(super) async fn expire(&mut self, buffer: &mut [u8]) {
        // On a busy machine answers may wait in the socket for longer than a timer. They are
        // received before the timer acts on the silence, but only up to a limit.
        for _ in 0..BURST {
            match self.socket.try_recv(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                received => self.receive(received, buffer).await,
            }
        }
        self.read_clock();
        self.carry_out(None).await;
        let effects = &mut self.effects;
        self.driver
            .expire(self.clock.now(), &mut self.rng, |effect| {
                effects.push(effect)
            });
        self.traffic
            .refused_ticks
            .raise_to(self.driver.refused_ticks());
        self.carry_out(None).await;
    }

    pub(super) async fn receive(
        &mut self,
        received: io::Result<(usize, SocketAddr)>,
        buffer: &[u8],
    ) {
        let Ok((len, source)) = received else {
            // For instance that an earlier datagram had no receiver. Nothing can be done about it.
            self.traffic.network_errors.add(1);
            return;
        };
        self.traffic.count_received(len);
        // Forged: an answer would come back to this node.
        if self.own.names(source) {
            return self.traffic.wrong_sender.add(1);
        }
        let bytes = buffer.get(..len).unwrap_or_default();
        let now = self.clock.now();
        // The kind stands in the same place whether the datagram is sealed or not.
        let kind = bytes.get(1).copied();
        let is_notice = |kind| kind == notice::KIND && self.sealing.is_some();
        let is_of_host = |kind| kind == query::KIND || is_notice(kind);
        let kind = kind.filter(|&kind| self.driver.machine().serves(kind) || is_of_host(kind));
        let is_ours = kind.is_some();
        let kind = kind.unwrap_or(KIND);
        let (frame, sealer) = match &mut self.sealing {
            None => (bytes, None),
            Some(_) if len > self.budget => return self.traffic.oversize.add(1),
            Some(_) if !is_ours && bytes.first() == Some(&SEALED) => {
                return self.traffic.wrong_kind.add(1);
            }
            Some(sealing) => match sealing.datagrams.open(kind, bytes, now) {
                Ok((sealer, frame)) => (frame, Some(sealer)),
                Err(Unopened::OldEpoch(sender)) => {
                    self.traffic.old_epoch.add(1);
                    return self.notify(sender, source).await;
                }
                Err(unopened) => return self.traffic.count_unopened(unopened),
            },
        };
        if kind == notice::KIND {
            return match frame::decode::<Notice>(frame, self.frame_budget) {
                Ok(it) if sealer == Some(it.from.id) => {
                    self.on_notice(it.from.id, it.message, source).await;
                }
                Ok(_) => self.traffic.wrong_sender.add(1),
                Err(_) => self.traffic.malformed.add(1),
            };
        }
        if kind == query::KIND {
            return match frame::decode::<Query>(frame, self.frame_budget) {
                Ok(it) if sealer.is_some_and(|sealer| sealer != it.from.id) => {
                    self.traffic.wrong_sender.add(1);
                }
                Ok(it) => self.on_query(it.from, it.message).await,
                Err(error) => self.traffic.count_no_frame(error),
            };
        }
        match decode(kind, frame, self.frame_budget) {
            Ok(envelope) if sealer.is_some_and(|sealer| sealer != envelope.from.id) => {
                self.traffic.wrong_sender.add(1);
            }
            Ok(envelope) => self.deliver(envelope.from, envelope.message, source).await,
            Err(error) => self.traffic.count_no_frame(error),
        }
    }

    async fn deliver(&mut self, from: Member, message: Message, source: SocketAddr) {
        let effects = &mut self.effects;
        let is_of_groups = matches!(message, Message::Groups(_));
        let has_items = matches!(&message, Message::Groups(it) if !it.items.is_empty());
        let taken = self.driver.step_into(
            self.clock.now(),
            &mut self.rng,
            Input::Message { from, message },
            effects,
        );
        match taken {
            Ok(()) if is_of_groups => self.sites.on_taken(from),
            Ok(()) => {}
            Err(reject) if reject.is_untimely() => return self.traffic.untimely.add(1),
            Err(reject) => return self.on_refused((from, has_items), &reject, source).await,
        }
        let machine = self.driver.machine().membership();
        if machine
            .member(from.id)
            .is_some_and(|view| view.member == from)
        {
            self.directory
                .receive(from, source, |id| machine.member(id).is_some());
            self.look_for_itself(source);
        }
        self.carry_out(Some((from.id, source))).await;
    }

    /// Handles a refused message. A member with another site refuses this node's messages, too: it
    /// receives an empty one, which shows this node's site, so that its requests do not wait in vain.
    async fn on_refused(
        &mut self,
        (from, has_items): (Member, bool),
        reject: &selvedge::Reject,
        source: SocketAddr,
    ) {
        self.traffic.refused.add(1);
        let Some(other) = Sites::of_refused(from, reject) else {
            return;
        };
        if self.sites.note(from, other, self.driver.machine()) {
            self.emit(NodeEvent::OtherSite(other));
            self.refuse_requests();
        }
        // An empty one has no answer, or two nodes would answer each other for ever.
        if let (true, OtherSite::Member { own, .. }) = (has_items, other) {
            let kgroup = self.driver.machine().kgroup();
            let message = Message::Groups(groups::Message {
                plan: own,
                generation: kgroup.map_or(0, |it| it.groups().generation()),
                items: List::new(),
            });
            self.effects.push(Effect::Send { to: from, message });
        }
        self.carry_out(Some((from.id, source))).await;
    }
}
