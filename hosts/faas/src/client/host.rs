//! The loop of a client: requests, link events, and timers.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};

use chacha20::ChaCha12Rng;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::client::{Client as Machine, Command, Event, Reject};
use selvedge_pcm::{Function, Library, Message, Refusal};

use super::{Notified, Options};
use crate::clock::{self, Clock, NoChance};
use crate::counters::Counters;
use crate::frame::{self, Frame};
use crate::link::{DIALECT, Link, LinkEvent, Session, Setup};
use crate::notice::Notice;
use crate::shelf;
use crate::topic::Topic;

/// The wait when no timer is due.
const IDLE: Span = Span::secs(60);
/// The wait for a gateway to keep a module before it, or the next one, is asked again.
const PATIENCE: Span = Span::secs(3);
/// The number of times a module is sent.
const TRIES: u8 = 6;

/// An input of the loop.
pub(super) enum Wake {
    /// An event of the link with this number.
    Link(u64, LinkEvent),
    Submit(u64, Function),
    Cancel(u64),
    Put(Vec<u8>),
    Close,
}

/// The time of the last message of a gateway.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(Arc<AtomicU64>);

impl Received {
    fn set(&self, now: Time) {
        self.0.store(now.since(Time::ZERO).0, Ordering::Relaxed);
    }

    pub(super) fn since(&self, now: Time) -> Span {
        now.since(Time::ZERO + Span(self.0.load(Ordering::Relaxed)))
    }
}

struct Stay {
    gateway: NodeId,
    number: u64,
    link: Link,
}

struct Put {
    module: Vec<u8>,
    due: Time,
    tries: u8,
}

/// The loop of a client, on its thread.
pub(super) struct Host {
    options: Options,
    driver: Driver<Machine>,
    rng: ChaCha12Rng,
    heard: Received,
    clock: Clock,
    wakes: Receiver<Wake>,
    wake: SyncSender<Wake>,
    notify: mpsc::Sender<Notified>,
    stay: Option<Stay>,
    /// The number of links opened until now.
    links: u64,
    /// The index of the gateway at which modules are put.
    at: usize,
    /// Tokens by the machine's number of the task.
    tokens: BTreeMap<u64, u64>,
    units: BTreeMap<u64, (u16, Vec<Member>)>,
    puts: BTreeMap<Library, Put>,
    counters: Counters,
}

impl Host {
    /// A host that receives `wakes`, and gives its links a sender for them.
    pub(super) fn new(
        options: Options,
        machine: Machine,
        clock: Clock,
        (wake, wakes): (SyncSender<Wake>, Receiver<Wake>),
        notify: mpsc::Sender<Notified>,
        heard: Received,
    ) -> Result<Self, NoChance> {
        Ok(Self {
            heard,
            driver: Driver::new(machine),
            rng: clock::chance()?,
            clock,
            wakes,
            wake,
            notify,
            stay: None,
            links: 0,
            at: 0,
            tokens: BTreeMap::new(),
            units: BTreeMap::new(),
            puts: BTreeMap::new(),
            counters: Counters::default(),
            options,
        })
    }

    /// Runs until the client is dropped.
    pub(super) fn run(&mut self) {
        loop {
            let now = self.clock.now();
            let wait = self.driver.wait(now).unwrap_or(IDLE).min(IDLE);
            let puts = self.puts.values().map(|it| it.due.since(now)).min();
            let wait = puts.map_or(wait, |it| it.min(wait));
            let wake = self.wakes.recv_timeout(wait.into());
            let (now, mut effects) = (self.clock.now(), Vec::new());
            self.driver.expire_into(now, &mut self.rng, &mut effects);
            self.carry_out(effects);
            match wake {
                Ok(Wake::Link(number, event)) => self.on_link(number, event),
                Ok(Wake::Submit(token, function)) => self.submit(token, function),
                Ok(Wake::Cancel(token)) => self.cancel(token),
                Ok(Wake::Put(module)) => self.put(module),
                Ok(Wake::Close) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look_at_puts();
        }
    }

    fn submit(&mut self, token: u64, function: Function) {
        let (me, number) = (
            self.driver.machine().me(),
            self.driver.machine().next_number(),
        );
        // The machine would repeat a request that fits no frame without end.
        let function = match fits(me, number, function) {
            Ok(function) => function,
            Err(why) => return self.notify(Notified::Refused { token, why }),
        };
        self.tokens.insert(number, token);
        if let Err(why) = self.step(Input::Command(Command::Submit(function))) {
            self.tokens.remove(&number);
            self.notify(Notified::Rejected { token, why });
        }
    }

    fn cancel(&mut self, token: u64) {
        let number = self.tokens.iter().find(|it| *it.1 == token);
        let Some(number) = number.map(|it| *it.0) else {
            return; // It has been answered.
        };
        if let Err(why) = self.step(Input::Command(Command::Cancel(number))) {
            self.notify(Notified::Rejected { token, why });
        }
    }

    fn put(&mut self, module: Vec<u8>) {
        let put = Put {
            due: self.clock.now(),
            tries: 0,
            module,
        };
        self.puts.insert(shelf::library(&put.module), put);
    }

    fn step(&mut self, input: Input<Machine>) -> Result<(), Reject> {
        let (now, mut effects) = (self.clock.now(), Vec::new());
        let taken = self
            .driver
            .step_into(now, &mut self.rng, input, &mut effects);
        self.carry_out(effects);
        taken
    }

    fn carry_out(&mut self, effects: Vec<Effect<Machine>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    let payload = frame::message(self.driver.machine().me(), &message);
                    self.send(to.id, payload.ok());
                }
                Effect::Event(event) => self.on_event(event),
                Effect::Multicast { .. } => {} // A client uses none.
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Answered {
                number,
                answer,
                voters,
            } => {
                let unit = self.units.remove(&number);
                if let Some(token) = self.tokens.remove(&number) {
                    self.notify(Notified::Answered {
                        token,
                        answer,
                        voters: voters.into_iter().collect(),
                        unit,
                    });
                }
            }
            Event::Refused { number, why } => {
                if let Some(token) = self.tokens.remove(&number) {
                    self.notify(Notified::Refused { token, why });
                }
            }
            _ => {}
        }
    }

    fn notify(&self, notified: Notified) {
        // After a client is dropped, its host ends with the next wake.
        let _notified = self.notify.send(notified);
    }

    fn send(&mut self, to: NodeId, payload: Option<Vec<u8>>) {
        self.go_to(to);
        let link = self.stay.as_ref().map(|it| &it.link);
        let sent = link.zip(payload);
        let sent = sent.is_some_and(|it| it.0.publish(&Topic::Inbox(to), it.1).is_ok());
        match sent {
            true => self.counters.sent += 1,
            false => self.counters.unsent += 1,
        }
    }

    /// Ensures that the link leads to this gateway.
    fn go_to(&mut self, gateway: NodeId) {
        if self.stay.as_ref().is_some_and(|it| it.gateway == gateway) {
            return;
        }
        let Some(address) = self.options.gateways.address(gateway) else {
            return;
        };
        self.links += 1;
        let (me, number, wake) = (self.options.id, self.links, self.wake.clone());
        let setup = Setup {
            name: format!("selvedge-faas-{me}"),
            address: address.clone(),
            access: self.options.access.clone(),
            session: Session::Clean,
            filters: [Topic::Inbox(me), Topic::Status(gateway)]
                .map(|it| it.to_string())
                .into(),
            asides: Vec::new(),
            will: None,
            stays: false,
            dialect: DIALECT,
        };
        let link = Link::open(setup, move |it| wake.send(Wake::Link(number, it)).is_ok());
        self.stay = link.ok().map(|link| Stay {
            gateway,
            number,
            link,
        });
    }

    fn on_link(&mut self, number: u64, event: LinkEvent) {
        let stay = self.stay.as_ref().filter(|it| it.number == number);
        let Some(gateway) = stay.map(|it| it.gateway) else {
            return; // It was closed meanwhile.
        };
        match event {
            LinkEvent::Up { .. } => {}
            LinkEvent::Down(_) => {
                self.counters.lost_links += 1;
                self.stay = None;
                // Modules may be put at another gateway than the one that runs functions.
                if self.driver.machine().speaks_to() == gateway {
                    // The machine accepts it at any time.
                    let _taken = self.step(Input::Command(Command::Unreachable));
                }
            }
            LinkEvent::Published { topic, payload, .. } => self.on_published(&topic, &payload),
            LinkEvent::Retained => self.counters.retained += 1,
        }
    }

    fn on_published(&mut self, topic: &str, payload: &[u8]) {
        match Topic::parse(topic) {
            Ok(Topic::Inbox(id)) if id == self.options.id => {}
            Ok(Topic::Status(_)) => return self.heard.set(self.clock.now()),
            Ok(_) | Err(_) => {
                self.counters.foreign_topics += 1;
                return;
            }
        }
        match Frame::decode(payload) {
            Ok(Frame::Message(it)) => {
                self.heard.set(self.clock.now());
                self.counters.received += 1;
                let (from, message) = (it.from, it.message);
                let taken = self.step(Input::Message { from, message });
                self.counters.refused += u64::from(taken.is_err());
            }
            Ok(Frame::Notice(it)) => {
                self.heard.set(self.clock.now());
                self.counters.received += 1;
                self.on_notice(it.message);
            }
            Err(why) => self.counters.count(&why),
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Kept { library, by } => {
                if self.puts.remove(&library).is_some() {
                    self.notify(Notified::Kept { library, by });
                }
            }
            Notice::NotKept { library, why } => {
                if self.puts.remove(&library).is_some() {
                    let why = Some(why);
                    self.notify(Notified::NotKept { library, why });
                }
            }
            Notice::Unit {
                number,
                attempt,
                electors,
            } => {
                if self.tokens.contains_key(&number) {
                    let unit = (attempt, electors.into_iter().collect());
                    self.units.insert(number, unit);
                }
            }
            Notice::Gateways(_)
            | Notice::Status(_)
            | Notice::Put { .. }
            | Notice::Get(_)
            | Notice::Module(_)
            | Notice::NoModule(_) => self.counters.refused += 1,
        }
    }

    /// Sends modules that are due, every second time to the next gateway.
    fn look_at_puts(&mut self) {
        let now = self.clock.now();
        let due = self.puts.iter().filter(|it| it.1.due <= now);
        let due: Vec<Library> = due.map(|it| *it.0).collect();
        for library in due {
            let Some(put) = self.puts.get_mut(&library) else {
                continue;
            };
            if put.tries >= TRIES {
                self.puts.remove(&library);
                let why = None;
                self.notify(Notified::NotKept { library, why });
                continue;
            }
            put.tries += 1;
            put.due = now + PATIENCE;
            let module = put.module.iter().copied().collect();
            let is_second = put.tries.is_multiple_of(2);
            let spreads = true;
            let payload =
                frame::notice(self.driver.machine().me(), &Notice::Put { module, spreads });
            let count = self.options.gateways.ids().count().max(1);
            self.at = (self.at + usize::from(is_second)) % count;
            let gateway = self.options.gateways.ids().nth(self.at);
            if let Some(gateway) = gateway {
                self.send(gateway, payload.ok());
            }
        }
    }
}

/// The function, if it fits into a frame.
fn fits(me: Member, number: u64, function: Function) -> Result<Function, Refusal> {
    let again = function.clone();
    let message = Message::Submit { number, function };
    let framed = frame::message(me, &message);
    framed.map(|_| again).map_err(|_| Refusal::TooLong)
}
