//! The task that runs one machine.

use core::future::{self, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use chacha20::ChaCha12Rng;
use selvedge::frame;
use selvedge_core::shared::{Closed, Port, Reply, Request};
use selvedge_core::wire::{self, Message as _, SEALED};
use selvedge_core::{Delta, Driver, Effect, Input, Machine, Member, NodeId, Span, Time};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Duration, sleep, sleep_until};

use crate::beats::{Beats, Here};
use crate::handle::{Command, End, Hosting, Look};
use crate::keep::Keep;
use crate::parts::{Clock, Sealing};
use crate::peers::Peers;
use crate::setup::{Identity, IsLast};
use crate::traffic::Counters;
use crate::transport::Datagrams;
use crate::{Hosted, RunError};

/// The most datagrams, and the most commands, of one round.
const BURST: usize = 64;
/// The number of effects after which a round takes no further input.
const EFFECTS: usize = 256;
/// The number of errors in a row after which the host pauses: an error that stays must not take the
/// whole processor.
const ERRORS: u32 = 16;
/// The pause.
const PAUSE: Duration = Duration::from_millis(1);
/// The sender of an effect until its step ends.
const UNSIGNED: Member = Member::new(0, 0);

type MessageOf<M> = <M as Machine>::Message;

pub(crate) struct Task<M: Hosted, S, K> {
    pub(crate) driver: Driver<M>,
    pub(crate) keep: K,
    pub(crate) socket: Box<dyn Datagrams>,
    pub(crate) peers: Peers,
    pub(crate) sealing: Option<Sealing>,
    pub(crate) beats: Option<Beats>,
    /// The longest datagram.
    pub(crate) budget: usize,
    /// The longest frame; shorter where it is sealed.
    pub(crate) frame_budget: usize,
    pub(crate) me: NodeId,
    pub(crate) identity: Identity<M>,
    pub(crate) view: Box<dyn Fn(&M) -> S + Send>,
    pub(crate) last: Option<IsLast<M>>,
    pub(crate) rng: ChaCha12Rng,
    pub(crate) clock: Clock,
    pub(crate) port: Port<Hosting<M>, S>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) end: watch::Sender<End>,
    pub(crate) round: Round<M>,
    /// The frame that is being written.
    pub(crate) frame: Vec<u8>,
    /// Errors of the socket in a row.
    pub(crate) errors: u32,
    pub(crate) is_over: bool,
    pub(crate) leaving: Vec<Reply<(), M::Reject>>,
    pub(crate) has_left: bool,
}

/// The inputs and effects since the last round.
pub(crate) struct Round<M: Machine> {
    /// Each effect with the life that the node had after the step.
    effects: Vec<(Member, Effect<M>)>,
    answers: Vec<Answer<M>>,
    /// The machine took an input.
    has_changed: bool,
    /// A heartbeat is due.
    is_beat: bool,
}

/// The outcome of a command, and the caller that waits for it.
struct Answer<M: Machine> {
    reply: Reply<(), M::Reject>,
    outcome: Result<(), M::Reject>,
    /// The caller's function that reads from the machine.
    look: Option<Look<M>>,
}

impl<M: Machine> Default for Round<M> {
    fn default() -> Self {
        Self {
            effects: Vec::new(),
            answers: Vec::new(),
            has_changed: false,
            is_beat: false,
        }
    }
}

impl<M: Hosted, S: Send + Sync + 'static, K: Keep<M>> Task<M, S, K> {
    /// Runs until the machine has left, the host is stopped or fails, or no handle is left.
    pub(crate) async fn run(mut self) {
        let ended = self.run_on().await;
        let leaving = core::mem::take(&mut self.leaving);
        let (end, has_left) = (self.end.clone(), self.has_left);
        // Before callers learn of the end: the port and the folder are free then.
        drop(self);
        for reply in leaving {
            if has_left {
                reply.send(Ok(()));
            }
        }
        end.send_replace(Some(ended));
    }

    async fn run_on(&mut self) -> Result<(), RunError> {
        // One byte more than a frame may have shows that a datagram is too long.
        let mut buffer = vec![0; self.budget.saturating_add(1)];
        while !self.is_over {
            let beat = self.beats.as_ref().map(Beats::next);
            let deadline = self.driver.deadline().into_iter().chain(beat).min();
            let deadline = deadline.map(|at| self.clock.instant(at));
            let due = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            let socket = &mut self.socket;
            tokio::select! {
                request = self.port.recv() => match request {
                    Ok(request) => self.answer(request),
                    Err(Closed) => return Ok(()),
                },
                received = poll_fn(|cx| socket.poll_recv(cx, &mut buffer)) => {
                    self.take(received, &buffer);
                }
                () = due => {}
            }
            // All that has arrived meanwhile shares a write to the disk. Answers may lie in the socket for
            // longer than a timer takes, so they come before the timers.
            self.receive_all(&mut buffer);
            self.answer_all();
            self.expire();
            self.beat();
            self.settle().await?;
            if self.errors > ERRORS {
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// Stores the facts of the round, then carries out its effects, publishes, and answers.
    async fn settle(&mut self) -> Result<(), RunError> {
        self.keep.begin(self.driver.machine(), &self.round.effects);
        self.keep.end().await?;
        let mut events = Vec::new();
        let mut effects = core::mem::take(&mut self.round.effects);
        for (from, effect) in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => {
                    let Some(address) = self.peers.address(to.id) else {
                        self.counters.unknown_destination.add(1);
                        continue;
                    };
                    if self.encode::<M::Message>(from, &message) {
                        self.send::<M::Message>(address).await;
                    }
                }
                Effect::Multicast { message } => {
                    let addresses: Vec<_> = self.peers.addresses().collect();
                    if self.encode::<M::Message>(from, &message) {
                        for address in addresses {
                            self.send::<M::Message>(address).await;
                        }
                    }
                }
                Effect::Event(event) => {
                    self.has_left |= self.last.as_ref().is_some_and(|it| it(&event));
                    events.push(event);
                }
            }
        }
        self.round.effects = effects;
        self.send_beat().await;
        if core::mem::take(&mut self.round.has_changed) {
            self.port
                .publish((self.view)(self.driver.machine()), events);
        }
        for answer in self.round.answers.drain(..) {
            if let Some(look) = answer.look {
                look(self.driver.machine());
            }
            answer.reply.send(answer.outcome);
        }
        self.has_left |= self.last.is_none() && !self.leaving.is_empty();
        self.is_over |= self.has_left;
        Ok(())
    }

    fn answer_all(&mut self) {
        for _ in 0..BURST {
            if self.is_over || self.is_full() {
                return;
            }
            match self.port.try_recv() {
                Ok(Some(request)) => self.answer(request),
                Ok(None) | Err(Closed) => return,
            }
        }
    }

    fn answer(&mut self, request: Request<Hosting<M>>) {
        let Request { command, reply } = request;
        let mut look = None;
        let outcome = match command {
            Command::Read(read) => {
                look = Some(read);
                Ok(())
            }
            Command::Machine(command) => self.step(Input::Command(command)),
            Command::Learn(delta) => self.step(Input::Membership(delta)),
            Command::Leave(command) => match self.step(Input::Command(command)) {
                Ok(()) => return self.leaving.push(reply),
                Err(reject) => Err(reject),
            },
            Command::Stop => {
                self.is_over = true;
                Ok(())
            }
        };
        self.round.answers.push(Answer {
            reply,
            outcome,
            look,
        });
    }

    fn receive_all(&mut self, buffer: &mut [u8]) {
        for _ in 0..BURST {
            if self.is_full() {
                return;
            }
            match self.socket.try_recv(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                received => self.take(received, buffer),
            }
        }
    }

    fn take(&mut self, received: io::Result<(usize, SocketAddr)>, buffer: &[u8]) {
        match received {
            Ok((len, source)) => {
                self.errors = 0;
                self.receive(buffer.get(..len).unwrap_or_default(), source);
            }
            // For instance that an earlier datagram had no receiver.
            Err(_) => {
                self.errors = self.errors.saturating_add(1);
                self.counters.network_errors.add(1);
            }
        }
    }

    /// Takes a datagram. Any bytes may come.
    fn receive(&mut self, bytes: &[u8], source: SocketAddr) {
        let counters = Arc::clone(&self.counters);
        counters.count_received(bytes.len());
        // Forged: an answer would come back to this node.
        if source == self.socket.local() {
            return counters.wrong_sender.add(1);
        }
        if bytes.len() > self.budget {
            return counters.oversize.add(1);
        }
        // The kind stands in the same place whether the datagram is sealed or not.
        let is_beat = self.beats.is_some() && bytes.get(1) == Some(&Here::KIND);
        let kind = if is_beat {
            Here::KIND
        } else {
            <MessageOf<M>>::KIND
        };
        let now = self.now();
        let (sealer, bytes) = match &mut self.sealing {
            None => (None, bytes),
            Some(_) if matches!(bytes, [SEALED, other, ..] if *other != kind) => {
                return counters.wrong_kind.add(1);
            }
            Some(sealing) => match sealing.open(kind, bytes, now) {
                Ok((sealer, frame)) => (Some(sealer), frame),
                Err(unopened) => return counters.count_unopened(unopened),
            },
        };
        let budget = self.frame_budget;
        let decoded = if is_beat {
            frame::decode::<Here>(bytes, budget).map(|it| (it.from, None))
        } else {
            frame::decode::<M::Message>(bytes, budget).map(|it| (it.from, Some(it.message)))
        };
        let (from, message) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return counters.count_no_frame(error),
        };
        if from.id == self.me || sealer.is_some_and(|sealer| sealer != from.id) {
            return counters.wrong_sender.add(1);
        }
        if !self.peers.accepts(from.id, source, sealer.is_some()) {
            return counters.unknown_sender.add(1);
        }
        if self.peers.is_listed(from.id) {
            let deltas = self.beats.as_mut().map(|it| it.received(from));
            self.learn(deltas.into_iter().flatten().flatten());
        }
        let Some(message) = message else {
            return;
        };
        match self.step(Input::Message { from, message }) {
            Ok(()) => self.peers.learn(from.id, source),
            Err(_) => counters.refused.add(1),
        }
    }

    /// Gives the machine changes of membership that the heartbeats show.
    fn learn(&mut self, deltas: impl IntoIterator<Item = Delta>) {
        for delta in deltas {
            if self.step(Input::Membership(delta)).is_err() {
                self.counters.refused.add(1);
            }
        }
    }

    fn beat(&mut self) {
        let now = self.now();
        if let Some(failed) = self.beats.as_mut().and_then(|it| it.beat(now)) {
            self.learn(failed);
            self.round.is_beat = true;
        }
    }

    /// Sends a heartbeat to each listed peer, if it is due.
    async fn send_beat(&mut self) {
        if !core::mem::take(&mut self.round.is_beat) {
            return;
        }
        let from = (self.identity)(self.driver.machine());
        let addresses: Vec<_> = self.peers.listed().collect();
        if self.encode(from, &Here) {
            for address in addresses {
                self.send::<Here>(address).await;
            }
        }
    }

    fn expire(&mut self) {
        let now = self.now();
        if self.driver.wait(now) != Some(Span::ZERO) {
            return;
        }
        let first = self.round.effects.len();
        let effects = &mut self.round.effects;
        (self.driver).expire(now, &mut self.rng, |it| effects.push((UNSIGNED, it)));
        self.sign(first);
        let refused = self.driver.refused_ticks();
        self.counters.refused_ticks.raise_to(refused);
    }

    fn step(&mut self, input: Input<M>) -> Result<(), M::Reject> {
        let now = self.now();
        let first = self.round.effects.len();
        let effects = &mut self.round.effects;
        (self.driver).step(now, &mut self.rng, input, |it| effects.push((UNSIGNED, it)))?;
        self.sign(first);
        Ok(())
    }

    /// The machine took an input: its effects from the `first` on are those of the node as it is now.
    fn sign(&mut self, first: usize) {
        let me = (self.identity)(self.driver.machine());
        for (from, _) in self.round.effects.iter_mut().skip(first) {
            *from = me;
        }
        self.round.has_changed = true;
    }

    /// Returns true if the round takes no further input before its effects are carried out.
    const fn is_full(&self) -> bool {
        self.round.effects.len() >= EFFECTS
    }

    /// Writes the frame of a message. Returns false if it is too long.
    fn encode<T: wire::Message + Serialize>(&mut self, from: Member, message: &T) -> bool {
        let written = frame::encode(from, message, self.frame_budget, &mut self.frame);
        if written.is_err() {
            self.counters.too_long.add(1);
        }
        written.is_ok()
    }

    /// Sends the frame that was written.
    async fn send<T: wire::Message>(&mut self, address: SocketAddr) {
        let datagram = match &mut self.sealing {
            None => self.frame.as_slice(),
            Some(sealing) => match sealing.seal(T::KIND, &self.frame) {
                Ok(datagram) => datagram,
                // After 2^64 datagrams: silence is safe, a nonce used twice is not.
                Err(_exhausted) => return,
            },
        };
        let socket = &mut self.socket;
        match poll_fn(|cx| socket.poll_send(cx, datagram, address)).await {
            Ok(len) => self.counters.count_sent(len),
            Err(_) => self.counters.network_errors.add(1),
        }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }
}
