//! The loop of a gateway: inputs, storage, and outputs, in this order.

#[cfg(test)]
mod tests;

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};

use chacha20::ChaCha12Rng;
use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::gateway::{Command, Event, Gateway};
use selvedge_pcm::{Library, Message, TaskId};

use super::diary::Diary;
use super::modules::{Modules, Out};
use super::puts::Puts;
use super::storage::{Beginning, Storage, StorageError};
use super::{Broker, GatewayError, Options, start_broker, status};
use crate::clock::{self, Clock};
use crate::counters::Counters;
use crate::frame::{self, Frame};
use crate::link::{Address, DIALECT, Link, LinkEvent, Lost, Session, Setup};
use crate::note::note;
use crate::notice::{Notice, Place};
use crate::topic::Topic;

/// The number of wakes, and of effects, that may wait for one write of the database.
const WAITING: usize = 1_024;
/// The interval of its status messages.
const STATUS: Span = Span::secs(1);
/// The time without its own broker after which a gateway with a broker inside ends.
const ALONE: Span = Span::secs(10);

enum Wake {
    Own(LinkEvent),
    Peer(NodeId, LinkEvent),
}

pub(crate) struct Host {
    options: Options,
    driver: Driver<Gateway>,
    barrier: Barrier<Effect<Gateway>>,
    storage: Storage,
    rng: ChaCha12Rng,
    clock: Clock,
    wakes: Receiver<Wake>,
    own: Link,
    /// The time since which its own broker is down.
    alone: Option<Time>,
    peers: BTreeMap<NodeId, Link>,
    modules: Modules,
    puts: Puts,
    diary: Diary,
    /// The last reason why each broker refused this gateway.
    refused: BTreeMap<NodeId, String>,
    is_available: bool,
    next_status: Time,
    counters: Counters,
}

impl Host {
    pub(crate) fn start(options: Options) -> Result<Self, GatewayError> {
        let beginning = Beginning {
            id: options.id,
            config: options.config,
            first: options.first(),
            limits: options.limits,
            memory: options.memory,
        };
        let (storage, gateway) = Storage::open(&options.data, options.room, &beginning)?;
        let inside = start_broker(&options)?;
        #[cfg(feature = "page")]
        super::start_page(&options, inside.as_ref())?;
        let (wake, wakes) = mpsc::sync_channel(WAITING);
        let own = open_own(&options, inside, &wake)?;
        let mut peers = BTreeMap::new();
        for (id, _) in &options.peers {
            peers.insert(*id, open_peer(&options, *id, &wake)?);
        }
        let others = peers.keys().copied().collect();
        let clock = Clock::start();
        Ok(Self {
            driver: Driver::new(gateway),
            barrier: Barrier::new(WAITING),
            storage,
            rng: clock::chance()?,
            clock,
            wakes,
            own,
            alone: Some(clock.now()),
            peers,
            modules: Modules::new(options.id, others),
            puts: Puts::default(),
            diary: Diary::default(),
            refused: BTreeMap::new(),
            is_available: true,
            next_status: Time::ZERO,
            counters: Counters::default(),
            options,
        })
    }

    /// Runs until the storage or the broker inside fails.
    pub(crate) fn run(&mut self) -> Result<Infallible, GatewayError> {
        self.note(&format!("{} begins", self.driver.machine().me()));
        self.step(Input::Command(Command::Start))?;
        loop {
            let now = self.clock.now();
            let until_status = self.next_status.since(now);
            let wait = self.driver.wait(now);
            let wait = wait.map_or(until_status, |it| it.min(until_status));
            let wait = match self.puts.is_empty() {
                true => wait,
                false => Span::ZERO,
            };
            let first = self.wakes.recv_timeout(wait.into()).ok();
            // Inputs that have come meanwhile share a write of the database.
            let batch: Vec<Wake> = first
                .into_iter()
                .chain(self.wakes.try_iter().take(WAITING))
                .collect();
            self.expire();
            for wake in batch {
                self.on_wake(wake)?;
            }
            if let Some(tables) = self.driver.machine().tables() {
                self.diary.follow(tables);
            }
            self.store()?;
            self.look_at_puts()?;
            self.look_at_time()?;
        }
    }

    fn on_wake(&mut self, wake: Wake) -> Result<(), GatewayError> {
        match wake {
            Wake::Own(event) => self.on_own(event)?,
            Wake::Peer(peer, LinkEvent::Down(lost)) => {
                self.counters.lost_links += 1;
                self.on_refused(peer, lost);
            }
            Wake::Peer(..) => {} // This gateway reads nothing there.
        }
        Ok(())
    }

    /// Steps the machine. Returns true if it accepted the input.
    fn step(&mut self, input: Input<Gateway>) -> Result<bool, StorageError> {
        if self.barrier.ready().is_err() {
            self.store()?;
        }
        let (now, barrier, mut out) = (self.clock.now(), &mut self.barrier, Vec::new());
        let done = self.driver.step(now, &mut self.rng, input, |effect| {
            barrier.take(effect, |it| out.push(it));
        });
        out.into_iter().for_each(|it| self.carry_out(it));
        Ok(done.is_ok())
    }

    /// Ticks the timers that are due. Everything is stored when a round begins, so the barrier is
    /// ready.
    fn expire(&mut self) {
        let (now, barrier, mut out) = (self.clock.now(), &mut self.barrier, Vec::new());
        self.driver.expire(now, &mut self.rng, |effect| {
            barrier.take(effect, |it| out.push(it));
        });
        out.into_iter().for_each(|it| self.carry_out(it));
    }

    /// Stores all new facts in one write, and then performs the effects that waited for them.
    fn store(&mut self) -> Result<(), StorageError> {
        let (gateway, mut out) = (self.driver.machine(), Vec::new());
        let begun = self.clock.now();
        if !(self.storage).store(&mut self.barrier, gateway, |it| out.push(it))? {
            return Ok(());
        }
        self.counters.writes += 1;
        self.counters.write_us += self.clock.now().since(begun).0;
        out.into_iter().for_each(|it| self.carry_out(it));
        Ok(())
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others end no task")]
    fn carry_out(&mut self, effect: Effect<Gateway>) {
        match effect {
            Effect::Send { to, message } => {
                match message {
                    Message::Answer { task, .. } => self.say_unit(to, task.number),
                    Message::Refused { task, .. } => drop(self.diary.on_answered(task)),
                    Message::Elsewhere => self.diary.on_left(to),
                    _ => {}
                }
                let payload = frame::message(self.driver.machine().me(), &message);
                self.send(to.id, payload.ok());
            }
            Effect::Event(event) => self.on_event(&event),
            Effect::Multicast { .. } => {} // A gateway uses none.
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others go to no node")]
    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Ended(task) => {
                self.counters.ended += 1;
                let tables = self.driver.machine().tables();
                let answer = tables.and_then(|it| Some((it.answer(*task)?, it.voters(*task))));
                self.diary.on_ended(*task, answer, self.clock.now());
            }
            Event::Available => self.is_available = true,
            Event::Unavailable => self.is_available = false,
            Event::Fact(_) => return,
            _ => {}
        }
        self.note(&format!("{event:?}"));
    }

    /// Logs once that a broker refuses this gateway, or this gateway the broker.
    fn on_refused(&mut self, by: NodeId, lost: Lost) {
        let id = self.options.id;
        if lost.is_refused && self.refused.get(&by) != Some(&lost.why) {
            note(&format!(
                "gateway {id} cannot reach the broker of gateway {by}: {lost}"
            ));
            self.refused.insert(by, lost.why);
        }
    }

    fn note(&self, what: &str) {
        if self.options.is_verbose {
            note(&format!("gateway {}: {what}", self.options.id));
        }
    }

    /// Sends to a gateway at its broker; to other nodes at this gateway's broker, which has their
    /// mailboxes.
    fn send(&mut self, to: NodeId, payload: Option<Vec<u8>>) {
        let link = self.peers.get(&to).unwrap_or(&self.own);
        let sent = payload.is_some_and(|it| link.publish(&Topic::Inbox(to), it).is_ok());
        match sent {
            true => self.counters.sent += 1,
            false => self.counters.unsent += 1,
        }
    }

    fn say(&mut self, to: NodeId, notice: &Notice) {
        let payload = frame::notice(self.driver.machine().me(), notice);
        self.send(to, payload.ok());
    }

    fn on_own(&mut self, event: LinkEvent) -> Result<(), GatewayError> {
        match event {
            LinkEvent::Up { .. } => {
                self.alone = None;
                self.say_gateways();
                Ok(())
            }
            LinkEvent::Down(why) => {
                self.note(&format!("lost its broker: {why}"));
                self.on_refused(self.options.id, why);
                self.counters.lost_links += 1;
                self.alone.get_or_insert(self.clock.now());
                Ok(())
            }
            LinkEvent::Published { topic, payload, .. } => self.on_published(&topic, &payload),
            LinkEvent::Retained => {
                self.counters.retained += 1;
                Ok(())
            }
        }
    }

    /// Handles a published payload. Any bytes may come.
    fn on_published(&mut self, topic: &str, payload: &[u8]) -> Result<(), GatewayError> {
        let me = self.options.id;
        let topic = Topic::parse(topic);
        let frame = match topic {
            Ok(Topic::Inbox(id)) if id == me => Frame::decode(payload),
            Ok(Topic::Relay { gateway, to }) if gateway == me => {
                self.relay(to, payload);
                return Ok(());
            }
            Ok(_) | Err(_) => {
                self.counters.foreign_topics += 1;
                return Ok(());
            }
        };
        let was_taken = match frame {
            Ok(Frame::Message(it)) => {
                let (from, message) = (it.from, it.message);
                self.on_asked(from, &message);
                let tables = self.driver.machine().tables();
                self.diary
                    .on_message(from, &message, tables, self.clock.now());
                self.step(Input::Message { from, message })?
            }
            Ok(Frame::Notice(it)) if matches!(it.message, Notice::Put { .. }) => {
                self.puts.add(it.from, it.message)
            }
            Ok(Frame::Notice(it)) => self.on_notice(it.from, it.message)?,
            Err(why) => {
                self.counters.count(&why);
                return Ok(());
            }
        };
        self.counters.received += 1;
        self.counters.refused += u64::from(!was_taken);
        Ok(())
    }

    fn look_at_puts(&mut self) -> Result<(), StorageError> {
        for (from, put) in self.puts.round() {
            self.on_notice(from, put)?;
        }
        Ok(())
    }

    fn on_notice(&mut self, from: Member, notice: Notice) -> Result<bool, StorageError> {
        let (now, mut out) = (self.clock.now(), Out::new());
        let keeps = matches!(notice, Notice::Put { .. } | Notice::Module(_));
        let needed = if keeps {
            self.needed()
        } else {
            BTreeSet::new()
        };
        let storage = (&mut self.storage, &needed);
        let was_taken = self
            .modules
            .on_notice(from, notice, storage, now, &mut out)?;
        for (to, notice) in out {
            self.say(to, &notice);
        }
        Ok(was_taken)
    }

    /// The modules of open tasks.
    fn needed(&self) -> BTreeSet<Library> {
        let open = self.driver.machine().tables().into_iter();
        let open = open.flat_map(|it| it.open());
        open.flat_map(|it| it.1.function.libraries.iter().copied())
            .collect()
    }

    /// Forwards a follower's message to another follower into its mailbox, unchanged.
    fn relay(&mut self, to: NodeId, payload: &[u8]) {
        let tables = self.driver.machine().tables();
        let is_between_followers = match Frame::decode(payload) {
            Ok(Frame::Message(it)) => {
                let now = self.clock.now();
                self.diary.on_message(it.from, &it.message, tables, now);
                matches!(it.message, Message::Vote { .. } | Message::Counted { .. })
            }
            Ok(Frame::Notice(_)) => false,
            Err(why) => {
                self.counters.count(&why);
                return;
            }
        };
        let known = tables.and_then(|it| it.follower(to));
        let place = known.filter(|_| is_between_followers).map(|it| it.gateway);
        let link = place.and_then(|gateway| match gateway == self.options.id {
            true => Some(&self.own),
            false => self.peers.get(&gateway),
        });
        let sent = link.map(|it| it.publish(&Topic::Inbox(to), payload.to_vec()));
        let sent = sent.is_some_and(|it| it.is_ok());
        match sent {
            true => self.counters.relayed += 1,
            false => self.counters.not_relayed += 1,
        }
    }

    /// Handles a client's request: the client will need the unit of its task.
    fn on_asked(&mut self, client: Member, message: &Message) {
        if let Message::Submit { number, function } = message {
            let number = *number;
            let task = TaskId { client, number };
            self.diary.on_asked(task, function, self.clock.now());
        }
    }

    /// Notifies a client of the unit that had its task.
    fn say_unit(&mut self, client: Member, number: u64) {
        let unit = self.diary.on_answered(TaskId { client, number });
        if let Some(unit) = unit {
            let (attempt, electors) = (unit.attempt, unit.electors);
            let notice = Notice::Unit {
                number,
                attempt,
                electors,
            };
            self.say(client.id, &notice);
        }
    }

    /// Publishes the list of gateways, for followers and clients that begin.
    fn say_gateways(&self) {
        let own = self.options.advertise.clone();
        let own = own.unwrap_or_else(|| self.options.own());
        let own = (self.options.id, own);
        let all = [&own].into_iter().chain(&self.options.peers);
        let places = all.map(|(gateway, address)| Place {
            gateway: *gateway,
            address: address.to_string().bytes().collect(),
        });
        let notice = Notice::Gateways(places.collect());
        let payload = frame::notice(self.driver.machine().me(), &notice);
        if let Ok(payload) = payload {
            // It is published when a link is up, so the queue has room.
            let topic = Topic::Gateways(self.options.id);
            self.own.retain(&topic, payload).ok();
        }
    }

    /// Performs the work of each second.
    fn look_at_time(&mut self) -> Result<(), GatewayError> {
        let now = self.clock.now();
        if self.next_status > now {
            return Ok(());
        }
        self.next_status = now + STATUS;
        let is_inside = matches!(self.options.broker, Broker::Embedded { .. });
        if is_inside && self.alone.is_some_and(|it| now.since(it) > ALONE) {
            return Err(GatewayError::Stopped);
        }
        let mut out = Out::new();
        self.modules.expire(&mut self.storage, now, &mut out)?;
        for (to, notice) in out {
            self.say(to, &notice);
        }
        self.counters.damaged_modules = self.storage.damaged;
        let (gateway, modules) = (self.driver.machine(), self.storage.modules());
        if let Some(tables) = gateway.tables() {
            self.diary.look(self.options.id, tables, now);
        }
        let (counters, is_available) = (self.counters, self.is_available);
        let status = status::of(gateway, &self.diary, is_available, counters, modules, now);
        let notice = Notice::Status(Box::new(status));
        if let Ok(payload) = frame::notice(gateway.me(), &notice) {
            let topic = Topic::Status(self.options.id);
            self.own.publish_once(&topic, payload).ok();
        }
        Ok(())
    }
}

/// The broker inside may have a separate port for this process.
fn open_own(
    options: &Options,
    inside: Option<Address>,
    wake: &SyncSender<Wake>,
) -> io::Result<Link> {
    let (me, wake) = (options.id, wake.clone());
    let setup = Setup {
        name: format!("selvedge-faas-{me}"),
        address: inside.unwrap_or_else(|| options.own()),
        access: options.own_access(),
        // A request that waited while the gateway was down has no effect: the sender repeats it.
        session: Session::Clean,
        filters: vec![Topic::Inbox(me).to_string(), Topic::relays_of(me)],
        asides: Vec::new(),
        will: None,
        stays: true,
        dialect: DIALECT,
    };
    Link::open(setup, move |it| wake.send(Wake::Own(it)).is_ok())
}

fn open_peer(options: &Options, peer: NodeId, wake: &SyncSender<Wake>) -> io::Result<Link> {
    let (me, wake) = (options.id, wake.clone());
    let address = options.peers.iter().find(|it| it.0 == peer);
    let address = address.map(|it| it.1.clone());
    let setup = Setup {
        // All gateways may share one broker.
        name: format!("selvedge-faas-{me}-to-{peer}"),
        address: address.unwrap_or_else(|| options.own()),
        access: options.access.clone(),
        session: Session::Clean,
        filters: Vec::new(),
        asides: Vec::new(),
        will: None,
        stays: true,
        dialect: DIALECT,
    };
    Link::open(setup, move |it| wake.send(Wake::Peer(peer, it)).is_ok())
}
