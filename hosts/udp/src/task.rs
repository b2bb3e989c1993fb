//! The task that runs one node: step, expire, carry out.

use core::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use chacha20::ChaCha12Rng;
use selvedge_camera::sections::{self, Name};
use selvedge_core::shared::gate::Limits;
use selvedge_core::wire::SEALED;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId};
use selvedge_membership::{self as membership, Event, KIND};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;

use selvedge::{Command, FrameError, Mesh, Message, Reject, decode, encode, frame};
use selvedge_seal::Unopened;

use crate::leading::{Leading, Standing};
use crate::locks::Locks;
use crate::notice::{self, Notice, Paces};
use crate::places::Own;
use crate::sealing::{Sealing, count};
use crate::seeds::Lookups;
use crate::socket::Socket;
use crate::{
    Clock, Directory, Known, MAX_NODE_ID, Refused, SectionGate, Seed, Seen, Told, Traffic, Weather,
    address,
};

/// How many datagrams that wait already are heard before a timer is obeyed.
const BURST: usize = 64;

/// What a [`Host`](super::Host) asks of its task.
#[derive(Debug)]
pub(crate) enum Request {
    Command(Command, oneshot::Sender<Result<(), Reject>>),
    Members(oneshot::Sender<Vec<Known>>),
    Section {
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
        answer: oneshot::Sender<Result<SectionGate, Refused>>,
    },
    Leave(oneshot::Sender<Result<(), Reject>>),
}

pub(crate) struct Task {
    pub(crate) driver: Driver<Mesh>,
    pub(crate) socket: Socket,
    pub(crate) directory: Directory,
    pub(crate) lookups: Lookups,
    pub(crate) own: Own,
    pub(crate) rng: ChaCha12Rng,
    /// The longest datagram.
    pub(crate) budget: usize,
    /// The longest frame; shorter where it is sealed.
    pub(crate) frame_budget: usize,
    pub(crate) leading: Leading,
    pub(crate) locks: Locks,
    /// Who waits for the node to be outside of all sections, so that it can leave.
    pub(crate) leaving: Option<oneshot::Sender<Result<(), Reject>>>,
    pub(crate) sealing: Option<Sealing>,
    pub(crate) paces: Paces,
    pub(crate) clock: Clock,
    pub(crate) weather: watch::Receiver<Weather>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) events: mpsc::Sender<Seen>,
    pub(crate) inbox: mpsc::Receiver<Request>,
    /// Effects of the last step, until they are carried out.
    pub(crate) effects: Vec<Effect<Mesh>>,
    /// The frame that is being written.
    pub(crate) frame: Vec<u8>,
    /// Whether it has been in the mesh.
    pub(crate) is_in: bool,
    pub(crate) left: bool,
}

impl Task {
    /// Runs until the node has left or its [`Host`](super::Host) is gone.
    pub(crate) async fn run(mut self) {
        // One byte more than a frame may have shows that a datagram is too long.
        let mut buffer = vec![0; self.budget.saturating_add(1)];
        self.carry_out(None).await;
        while !self.left {
            let deadline = self.driver.deadline().map(|at| self.clock.instant(at));
            let due = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                request = self.inbox.recv() => match request {
                    Some(request) => self.answer(request).await,
                    None => return,
                },
                received = self.socket.recv_from(&mut buffer) => {
                    self.receive(received, &buffer).await;
                }
                () = due => self.expire(&mut buffer).await,
                (nth, seed) = self.lookups.next(&self.clock) => self.found(nth, seed),
                wish = self.locks.next() => self.obey(wish).await,
                asked = self.leading.next() => {
                    let outcome = self.command(asked.command);
                    self.carry_out(None).await;
                    asked.reply.send(outcome);
                }
            }
            self.open_sections().await;
            self.leave_if_outside().await;
        }
    }

    /// A seed that did not answer was looked up again.
    fn found(&mut self, nth: usize, mut seed: Seed) {
        seed.retain(|address| {
            address::reachable(address) && self.socket.speaks(address) && !self.own.is(address)
        });
        if let Some(id) = Directory::stand_ins(usize::MAX).nth(nth)
            && !seed.addresses().is_empty()
        {
            self.directory.move_seed(id, seed.addresses().to_vec());
        }
    }

    /// Does what those who queue for a section wish.
    async fn obey(&mut self, wish: sections::Command) {
        if let sections::Command::Close(name) = wish {
            self.locks.remove(name);
        }
        if let Err(reject) = self.command(Command::Sections(wish)) {
            self.locks.refused(wish, reject);
        }
        self.carry_out(None).await;
    }

    /// Opens the sections that have a gate, once the node has joined.
    async fn open_sections(&mut self) {
        if self.driver.machine().sections().is_none() {
            return;
        }
        for (name, open) in self.locks.to_open() {
            match self.command(Command::Sections(open)) {
                Ok(()) => self.locks.opened(name),
                // There is room as soon as another one is closed.
                Err(Reject::Sections(sections::Reject::Full { .. })) if self.locks.is_closing() => {
                }
                // Its gate says that it is closed.
                Err(_) => self.locks.remove(name),
            }
            self.carry_out(None).await;
        }
    }

    /// Says good-bye when that was asked for and nothing is held.
    async fn leave_if_outside(&mut self) {
        if self.locks.is_empty()
            && self.driver.machine().in_use().is_none()
            && let Some(answer) = self.leaving.take()
        {
            let outcome = self.command(Command::Membership(membership::Command::Leave));
            self.carry_out(None).await;
            let _heard = answer.send(outcome).is_ok();
        }
    }

    /// Gives the machine a command; its effects wait for [`carry_out`](Self::carry_out).
    pub(crate) fn command(&mut self, command: Command) -> Result<(), Reject> {
        let effects = &mut self.effects;
        self.driver.step(
            self.clock.now(),
            &mut self.rng,
            Input::Command(command),
            |effect| effects.push(effect),
        )
    }

    async fn answer(&mut self, request: Request) {
        match request {
            Request::Command(command, answer) => {
                let outcome = self.command(command);
                self.carry_out(None).await;
                // Nobody may wait for the answer any more.
                let _heard = answer.send(outcome).is_ok();
            }
            Request::Members(answer) => {
                let list = self
                    .driver
                    .machine()
                    .membership()
                    .members()
                    .map(|view| Known {
                        member: view.member,
                        status: view.status,
                        address: self.directory.get(view.member.id),
                    });
                let _heard = answer.send(list.collect()).is_ok();
            }
            Request::Section {
                name,
                config,
                limits,
                answer,
            } => {
                let gate = self.gate(name, config, limits);
                let _heard = answer.send(gate).is_ok();
            }
            Request::Leave(answer) => {
                self.locks.close();
                self.leaving = Some(answer);
            }
        }
    }

    /// A gate to a section, which is opened when the node is in the mesh.
    fn gate(
        &mut self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
    ) -> Result<SectionGate, Refused> {
        let gates = self.locks.gates();
        let has_gate = Refused::HasGate(name);
        if self.locks.has_gate(name) {
            return Err(has_gate);
        }
        let machine = self.driver.machine();
        machine.check_section(name, config, gates)?;
        self.locks.add(name, config, limits).ok_or(has_gate)
    }

    async fn expire(&mut self, buffer: &mut [u8]) {
        // On a busy machine answers may lie in the socket for longer than a timer takes. Hear
        // them before judging the silence, but not for ever.
        for _ in 0..BURST {
            match self.socket.try_recv_from(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                received => self.receive(received, buffer).await,
            }
        }
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

    async fn receive(&mut self, received: io::Result<(usize, SocketAddr)>, buffer: &[u8]) {
        let Ok((len, source)) = received else {
            // For instance that an earlier datagram found nobody. Nothing to do about it.
            self.traffic.network_errors.add(1);
            return;
        };
        if self.weather.borrow().loses(&mut self.rng) {
            self.traffic.lost.add(1);
            return;
        }
        self.traffic.received.add(1);
        self.traffic.received_bytes.add(len as u64);
        let bytes = buffer.get(..len).unwrap_or_default();
        let now = self.clock.now();
        // The kind stands in the same place whether the datagram is sealed or not.
        let kind = bytes.get(1).copied();
        let is_notice = |kind| kind == notice::KIND && self.sealing.is_some();
        let kind = kind.filter(|&kind| self.driver.machine().serves(kind) || is_notice(kind));
        let is_ours = kind.is_some();
        let kind = kind.unwrap_or(KIND);
        let (frame, sealer) = match &mut self.sealing {
            None => (bytes, None),
            Some(_) if len > self.budget => return self.traffic.oversize.add(1),
            Some(_) if !is_ours && bytes.first() == Some(&SEALED) => {
                return self.traffic.wrong_kind.add(1);
            }
            Some(sealing) => match sealing.open(kind, bytes, now) {
                Ok(sealer) => (sealing.opened.as_slice(), Some(sealer)),
                Err(Unopened::OldEpoch(sender)) => {
                    self.traffic.old_epoch.add(1);
                    return self.notify(sender, source).await;
                }
                Err(unopened) => return count(&self.traffic, unopened),
            },
        };
        if kind == notice::KIND {
            return match frame::decode::<Notice>(frame, self.frame_budget) {
                Ok(it) if sealer == Some(it.from.id) => {
                    self.heed(it.from.id, it.message, source).await;
                }
                Ok(_) => self.traffic.wrong_sender.add(1),
                Err(_) => self.traffic.malformed.add(1),
            };
        }
        match decode(kind, frame, self.frame_budget) {
            Ok(envelope) if sealer.is_some_and(|sealer| sealer != envelope.from.id) => {
                self.traffic.wrong_sender.add(1);
            }
            Ok(envelope) => self.deliver(envelope.from, envelope.message, source).await,
            Err(FrameError::Oversize { .. }) => self.traffic.oversize.add(1),
            Err(FrameError::Sealed) => self.traffic.sealed.add(1),
            Err(FrameError::Version { .. }) => self.traffic.wrong_version.add(1),
            Err(FrameError::Kind { .. }) => self.traffic.wrong_kind.add(1),
            Err(FrameError::Malformed) => self.traffic.malformed.add(1),
        }
    }

    async fn deliver(&mut self, from: Member, message: Message, source: SocketAddr) {
        let effects = &mut self.effects;
        let taken = self.driver.step(
            self.clock.now(),
            &mut self.rng,
            Input::Message { from, message },
            |effect| effects.push(effect),
        );
        match taken {
            Ok(()) => {}
            Err(reject) if reject.is_untimely() => return self.traffic.untimely.add(1),
            Err(_) => return self.traffic.refused.add(1),
        }
        let machine = self.driver.machine().membership();
        if machine
            .member(from.id)
            .is_some_and(|view| view.member == from)
        {
            self.directory
                .hear(from, source, |id| machine.member(id).is_some());
        }
        self.carry_out(Some((from.id, source))).await;
    }

    /// Carries out the effects of the last step, in order. An answer to the sender of a datagram
    /// goes to where that came from, even if the sender is not on the list (yet).
    async fn carry_out(&mut self, sender: Option<(NodeId, SocketAddr)>) {
        let mut effects = core::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, .. } if self.is_needless(to.id) => self.traffic.spared.add(1),
                Effect::Send { to, message } => {
                    let reply = sender.filter(|&(id, _)| id == to.id);
                    let address = match reply {
                        Some((_, source)) => Some(source),
                        None => self.directory.next(to.id),
                    };
                    if let Some(seed) = Directory::seed(to.id)
                        && self.lookups.asked(seed, self.clock.now())
                    {
                        self.traffic.lookups.add(1);
                    }
                    self.send(address, &message).await;
                }
                Effect::Multicast { message } => {
                    let machine = self.driver.machine().membership();
                    let me = machine.me().id;
                    let others: Vec<_> = (machine.members())
                        .map(|view| view.member.id)
                        .filter(|&id| id != me)
                        .map(|id| self.directory.next(id))
                        .collect();
                    for address in others {
                        self.send(address, &message).await;
                    }
                }
                Effect::Event(selvedge::Event::Membership(event)) => {
                    self.hear(&event);
                    self.tell(Told::Membership(event));
                }
                Effect::Event(selvedge::Event::Election(event)) => {
                    self.leading.told(event);
                    self.tell(Told::Election(event));
                }
                Effect::Event(selvedge::Event::Sections(event)) => self.locks.told(event),
                Effect::Event(selvedge::Event::Present(_)) => self.locks.begin_anew(),
                Effect::Event(selvedge::Event::Estimate(_) | selvedge::Event::Raised(_)) => {}
            }
        }
        self.effects = effects;
        let mesh = self.driver.machine();
        self.leading.publish(Standing {
            leader: mesh.leader(),
            until: mesh.leads_until(),
        });
    }

    /// Whether this stands in for a seed that is here. The machine probes seeds now and then, to
    /// find back to those who were lost, but not those that it lists as alive: it cannot know that
    /// a stand-in is one of them. O(members), for stand-ins alone.
    fn is_needless(&self, to: NodeId) -> bool {
        if to <= MAX_NODE_ID {
            return false;
        }
        let seeds = self.directory.all(to);
        let machine = self.driver.machine().membership();
        let mut others = machine
            .members()
            .filter(|it| it.member.id != machine.me().id);
        others.any(|it| {
            let addresses = self.directory.all(it.member.id);
            it.status.is_live() && addresses.iter().any(|address| seeds.contains(address))
        })
    }

    async fn send(&mut self, address: Option<SocketAddr>, message: &Message) {
        let Some(address) = address else {
            self.traffic.unknown_destination.add(1);
            return;
        };
        let from = self.driver.machine().membership().me();
        if encode(from, message, self.frame_budget, &mut self.frame).is_err() {
            self.traffic.too_long.add(1);
            return;
        }
        self.send_frame(message.kind(), address).await;
    }

    /// Sends the frame that was written.
    pub(crate) async fn send_frame(&mut self, kind: u8, address: SocketAddr) {
        let datagram = match &mut self.sealing {
            None => &self.frame,
            Some(sealing) => {
                let sealed = sealing
                    .sealer
                    .seal(kind, &self.frame, &mut sealing.datagram);
                if sealed.is_err() {
                    // After 2^64 datagrams; silence is safe, a nonce used twice is not.
                    return;
                }
                &sealing.datagram
            }
        };
        if !self.weather.borrow().passes(self.socket.local(), address) {
            self.traffic.held_back.add(1);
            return;
        }
        match self.socket.send_to(datagram, address).await {
            Ok(len) => {
                self.traffic.sent.add(1);
                self.traffic.sent_bytes.add(len as u64);
                self.traffic.longest.raise_to(len as u64);
            }
            Err(_) => self.traffic.network_errors.add(1),
        }
    }

    /// What membership tells concerns the host itself, too.
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Metadata(member) | Event::Membership(Delta::Joined(member)) => {
                let machine = self.driver.machine().membership();
                if let Some(metadata) = machine.metadata(member.id) {
                    let mut addresses = address::from_metadata(metadata);
                    addresses.retain(|&address| self.socket.speaks(address));
                    self.directory
                        .announce(*member, addresses, |id| machine.member(id).is_some());
                }
            }
            Event::Left => self.left = true,
            // Somebody knew a later life of a node that was in already.
            Event::Identity(_) if self.is_in => self.traffic.twins.add(1),
            Event::Identity(_) => self.is_in = true,
            Event::Membership(_) | Event::Broadcast { .. } => {}
        }
    }

    pub(crate) fn tell(&self, event: Told) {
        let seen = Seen {
            at: self.clock.now(),
            node: self.driver.machine().membership().me().id,
            event,
        };
        if self.events.try_send(seen).is_err() {
            self.traffic.events_lost.add(1);
        }
    }
}
