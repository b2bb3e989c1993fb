//! The loop: receive, store, and send, in this order.

use core::convert::Infallible;
use core::error::Error;
use core::mem;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::net::UdpSocket;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Instant;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use selvedge::frame;
use selvedge_core::durable::Barrier;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time, wire};
use selvedge_replica::{Message, Reject, Replica};
use selvedge_store::Store;
use serde::{Deserialize, Serialize};

use crate::console::Console;
use crate::map::{Map, Update};
use crate::storage::{self, StorageError};

const HEARTBEAT: Span = Span::millis(100);
/// The number of this node's heartbeats after which a silent peer counts as failed. Heartbeats are
/// counted, and not time: a process that was suspended finds no peer failed because of its own
/// sleep.
const SILENT_BEATS: u32 = 5;
/// The default of the group's configuration.
const FRAME_BUDGET: usize = 1_400;
/// The number of effects that may wait for one write of the database.
const WAITING: usize = 256;

/// A heartbeat: its sender is here.
#[derive(Serialize, Deserialize)]
struct Here;

impl wire::Message for Here {
    const KIND: u8 = 200;

    fn encoded_len(&self) -> usize {
        0
    }
}

struct Peer {
    address: SocketAddr,
    /// The peer in its latest known life.
    member: Member,
    silent_beats: u32,
}

enum Wake {
    Line(String),
    Datagram(SocketAddr, Vec<u8>),
}

pub(crate) struct Host {
    driver: Driver<Replica<Map>>,
    barrier: Barrier<Effect<Replica<Map>>>,
    store: Store,
    rng: ChaCha12Rng,
    start: Instant,
    socket: UdpSocket,
    wakes: Receiver<Wake>,
    peers: BTreeMap<NodeId, Peer>,
    console: Console,
}

impl Host {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn start(
        replica: Replica<Map>,
        store: Store,
        socket: UdpSocket,
        peers: BTreeMap<NodeId, SocketAddr>,
    ) -> Result<Self, Box<dyn Error>> {
        let (wake, wakes) = mpsc::sync_channel(1_024);
        let (inbound, typed) = (socket.try_clone()?, wake.clone());
        thread::spawn(move || receive(&inbound, &wake));
        thread::spawn(move || {
            for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if typed.send(Wake::Line(line)).is_err() {
                    return;
                }
            }
        });
        let peer = |(id, address): (NodeId, SocketAddr)| {
            let (member, silent_beats) = (Member::new(id.0, 0), 0);
            let peer = Peer {
                address,
                member,
                silent_beats,
            };
            (id, peer)
        };
        Ok(Self {
            driver: Driver::new(replica),
            barrier: Barrier::new(WAITING),
            store,
            rng: ChaCha12Rng::seed_from_u64(getrandom::u64()?),
            start: Instant::now(),
            socket,
            wakes,
            peers: peers.into_iter().map(peer).collect(),
            console: Console::default(),
        })
    }

    /// Runs until storage fails.
    pub(crate) fn run(&mut self) -> Result<Infallible, StorageError> {
        let mut beat = self.now();
        loop {
            let now = self.now();
            let until_beat = beat.since(now);
            let wait = self
                .driver
                .wait(now)
                .map_or(until_beat, |it| it.min(until_beat));
            let first = self.wakes.recv_timeout(wait.into()).ok();
            // Inputs that have come meanwhile share a write of the database.
            let batch: Vec<Wake> = first
                .into_iter()
                .chain(self.wakes.try_iter().take(WAITING))
                .collect();
            self.expire();
            for wake in batch {
                match wake {
                    Wake::Line(line) => self.ask(line)?,
                    Wake::Datagram(from, bytes) => self.receive(from, &bytes)?,
                }
            }
            if beat <= self.now() {
                beat = self.now() + HEARTBEAT;
                self.beat()?;
            }
            self.store()?;
            self.console.print();
        }
    }

    /// Steps the machine. Returns the reason if it refused the input.
    fn step(&mut self, input: Input<Replica<Map>>) -> Result<Option<Reject>, StorageError> {
        if self.barrier.ready().is_err() {
            self.store()?;
        }
        let (now, barrier, mut out) = (self.now(), &mut self.barrier, Vec::new());
        let done = self.driver.step(now, &mut self.rng, input, |effect| {
            barrier.take(effect, |it| out.push(it));
        });
        out.into_iter().for_each(|it| self.carry_out(it));
        Ok(done.err())
    }

    /// Ticks the timers that are due. All facts are stored when a round begins, so the barrier is
    /// ready.
    fn expire(&mut self) {
        let (now, barrier, mut out) = (self.now(), &mut self.barrier, Vec::new());
        self.driver.expire(now, &mut self.rng, |effect| {
            barrier.take(effect, |it| out.push(it));
        });
        out.into_iter().for_each(|it| self.carry_out(it));
    }

    /// Stores all new facts in one write, and then carries out the effects that waited for them.
    fn store(&mut self) -> Result<(), StorageError> {
        let (replica, mut out) = (self.driver.machine(), Vec::new());
        let base = || storage::base(replica);
        self.store
            .store(&mut self.barrier, base, |it| out.push(it))?;
        out.into_iter().for_each(|it| self.carry_out(it));
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect<Replica<Map>>) {
        match effect {
            Effect::Send { to, message } => {
                if let Some(peer) = self.peers.get(&to.id) {
                    self.send(peer.address, &message);
                }
            }
            Effect::Event(event) => self.console.on_event(event, self.driver.machine()),
            Effect::Multicast { .. } => {} // A replica uses none.
        }
    }

    fn send<T: wire::Message + Serialize>(&self, to: SocketAddr, message: &T) {
        let mut bytes = Vec::new();
        // A machine keeps to its frame budget, and makes up for lost messages.
        if frame::encode(
            self.driver.machine().me(),
            message,
            FRAME_BUDGET,
            &mut bytes,
        )
        .is_ok()
        {
            self.socket.send_to(&bytes, to).ok();
        }
    }

    /// Sends a heartbeat to the peers, and reports silent peers to the machine.
    fn beat(&mut self) -> Result<(), StorageError> {
        let mut failed = Vec::new();
        for peer in self.peers.values_mut() {
            peer.silent_beats = peer.silent_beats.saturating_add(1);
            if peer.silent_beats == SILENT_BEATS {
                failed.push(peer.member);
            }
        }
        for peer in self.peers.values() {
            self.send(peer.address, &Here);
        }
        for member in failed {
            self.step(Input::Membership(Delta::Failed(member)))?;
        }
        Ok(())
    }

    /// Takes a datagram. Any bytes may arrive; a datagram from outside this group is dropped.
    fn receive(&mut self, address: SocketAddr, bytes: &[u8]) -> Result<(), StorageError> {
        let message = frame::decode::<Message<Update>>(bytes, FRAME_BUDGET);
        let message = message.map(|it| (it.from, Some(it.message)));
        let here = || frame::decode::<Here>(bytes, FRAME_BUDGET).map(|it| (it.from, None));
        let Ok((from, message)) = message.or_else(|_| here()) else {
            return Ok(());
        };
        let peer = self.peers.get_mut(&from.id);
        let Some(peer) = peer.filter(|it| it.address == address && !it.member.supersedes(from))
        else {
            return Ok(());
        };
        let was_silent = mem::take(&mut peer.silent_beats) >= SILENT_BEATS;
        if from.supersedes(peer.member) {
            peer.member = from;
            self.step(Input::Membership(Delta::Joined(from)))?;
        } else if was_silent {
            self.step(Input::Membership(Delta::Refuted(from)))?;
        }
        if let Some(message) = message {
            // Refused if no correct peer sends it.
            self.step(Input::Message { from, message })?;
        }
        Ok(())
    }

    fn ask(&mut self, line: String) -> Result<(), StorageError> {
        if let Some((question, command)) = self.console.ask(line, self.driver.machine())
            && let Some(why) = self.step(Input::Command(command))?
        {
            self.console.answer(question, &format!("refused, {why}"));
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }
}

/// Reads datagrams, until the host ends.
fn receive(socket: &UdpSocket, wake: &SyncSender<Wake>) {
    // One byte more than a frame may have shows that a datagram is too long.
    let mut buffer = [0; FRAME_BUDGET + 1];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((len, from)) => {
                let bytes = buffer.get(..len).unwrap_or_default().to_vec();
                if wake.send(Wake::Datagram(from, bytes)).is_err() {
                    return;
                }
            }
            // An earlier datagram had no receiver, for instance. The protocol makes up for it.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
