//! A client: it puts modules, submits functions, and hears what they came to.

#[cfg(test)]
mod tests;

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::{io, thread};

use chacha20::ChaCha12Rng;
use selvedge_core::{Choose as _, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::client::{Client as Machine, Command, Config, Event, Reject};
use selvedge_pcm::{Answer, Function, Library, Message, Refusal};
use thiserror::Error;

use crate::clock::{self, Clock, NoChance};
use crate::counters::Counters;
use crate::find::Gateways;
use crate::frame::{self, Frame};
use crate::link::{Access, Link, LinkEvent, Session, Setup};
use crate::notice::{NotKept, Notice};
use crate::shelf;
use crate::topic::Topic;

/// How many wakes may wait.
const WAKES: usize = 1_024;
/// How long to wait where nothing is due.
const IDLE: Span = Span::secs(60);
/// How long to wait for a gateway to keep a module before it, or the next one, is asked again.
const PATIENCE: Span = Span::secs(3);
/// How often a module is put.
const TRIES: u8 = 6;
/// Clients that say no id draw one from here on. The broker remembers each id that it ever saw, so there
/// are not many.
const IDS: u64 = 1_000_000;
const IDS_COUNT: u64 = 1 << 16;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its id. No two clients have the same one at a time.
    pub id: NodeId,
    /// The gateways that it can go to, the first one first.
    pub gateways: Gateways,
    /// The name and the password for their brokers.
    pub access: Access,
    /// The settings of the machine.
    pub config: Config,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What a function came to.
    Answered {
        /// Its token.
        token: u64,
        /// What it came to.
        answer: Answer,
        /// The followers whose equal votes made that, by id; none where nobody's did.
        voters: Vec<NodeId>,
        /// The unit that had it last, if a gateway said so: how often it was given to one, and its
        /// followers, the orchestrator first.
        unit: Option<(u16, Vec<Member>)>,
    },
    /// A function is not run.
    Refused {
        /// Its token.
        token: u64,
        /// Why.
        why: Refusal,
    },
    /// It cannot be asked for, or not cancelled.
    Rejected {
        /// Its token.
        token: u64,
        /// Why.
        why: Reject,
    },
    /// A module is on the disks of most gateways.
    Kept {
        /// The module.
        library: Library,
        /// On how many.
        by: u16,
    },
    /// A module is not kept; `None` where no gateway answers.
    NotKept {
        /// The module.
        library: Library,
        /// Why.
        why: Option<NotKept>,
    },
}

/// Why a client does not begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The machine refuses its settings.
    #[error(transparent)]
    Machine(#[from] Reject),
    /// There is no chance.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// A thread does not start.
    #[error("cannot start a thread: {0}: see how many this process may have")]
    Thread(#[from] io::Error),
}

enum Wake {
    /// Of the link with this number.
    Link(u64, LinkEvent),
    Submit(u64, Function),
    Cancel(u64),
    Put(Vec<u8>),
    Close,
}

/// A client on a thread of its own. It ends when this is dropped.
pub struct Client {
    wake: SyncSender<Wake>,
    told: Receiver<Told>,
    me: Member,
    clock: Clock,
    heard: Heard,
}

/// When a gateway said something last.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<AtomicU64>);

impl Heard {
    fn set(&self, now: Time) {
        self.0.store(now.since(Time::ZERO).0, Ordering::Relaxed);
    }

    fn since(&self, now: Time) -> Span {
        now.since(Time::ZERO + Span(self.0.load(Ordering::Relaxed)))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.me).finish()
    }
}

/// An id for a client that needs none for long. One in 65,536 draws gives the same.
///
/// # Errors
/// [`NoChance`].
pub fn any_id() -> Result<NodeId, NoChance> {
    Ok(NodeId(IDS + clock::chance()?.below(IDS_COUNT)))
}

impl Client {
    /// Starts a client in a life of its own, which takes up to 1/8 s.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start(options: Options) -> Result<Self, ClientError> {
        let (client, mut host) = Self::new(options)?;
        let thread = thread::Builder::new().name("client".into());
        thread.spawn(move || host.run())?;
        Ok(client)
    }

    /// A client, and what is to run on a thread for it.
    fn new(options: Options) -> Result<(Self, Host), ClientError> {
        let me = clock::life(options.id);
        let machine = Machine::new(me, options.config, options.gateways.ids())?;
        let (wake, wakes) = mpsc::sync_channel(WAKES);
        // What is told is as much as was asked.
        let (tell, told) = mpsc::channel();
        let (clock, heard) = (Clock::start(), Heard::default());
        let host = Host {
            heard: heard.clone(),
            driver: Driver::new(machine),
            rng: clock::chance()?,
            clock,
            wakes,
            wake: wake.clone(),
            tell,
            stay: None,
            links: 0,
            at: 0,
            tokens: BTreeMap::new(),
            units: BTreeMap::new(),
            puts: BTreeMap::new(),
            counters: Counters::default(),
            options,
        };
        let client = Self {
            wake,
            told,
            me,
            clock,
            heard,
        };
        Ok((client, host))
    }

    /// Has a function run. [`Told`] names it by this token.
    pub fn submit(&self, token: u64, function: Function) {
        self.say(Wake::Submit(token, function));
    }

    /// Does not want a function any more. It is answered all the same.
    pub fn cancel(&self, token: u64) {
        self.say(Wake::Cancel(token));
    }

    /// Has the gateways keep a module.
    pub fn put(&self, module: Vec<u8>) {
        self.say(Wake::Put(module));
    }

    /// What the client is told next, if it is told something in this time.
    #[must_use]
    pub fn wait(&self, most: Span) -> Option<Told> {
        self.told.recv_timeout(most.into()).ok()
    }

    /// For how long no gateway has said anything, from the client's start on. A gateway that can be reached
    /// says something each second, once the client has asked for something.
    #[must_use]
    pub fn silence(&self) -> Span {
        self.heard.since(self.clock.now())
    }

    /// The client in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    fn say(&self, wake: Wake) {
        // The thread ends with this client, and not before.
        let _said = self.wake.send(wake);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.say(Wake::Close);
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

struct Host {
    options: Options,
    driver: Driver<Machine>,
    rng: ChaCha12Rng,
    heard: Heard,
    clock: Clock,
    wakes: Receiver<Wake>,
    wake: SyncSender<Wake>,
    tell: mpsc::Sender<Told>,
    stay: Option<Stay>,
    /// How many links there were.
    links: u64,
    /// At which of the gateways modules are put.
    at: usize,
    /// By the machine's number of the task.
    tokens: BTreeMap<u64, u64>,
    units: BTreeMap<u64, (u16, Vec<Member>)>,
    puts: BTreeMap<Library, Put>,
    counters: Counters,
}

impl Host {
    fn run(&mut self) {
        loop {
            let now = self.clock.now();
            let wait = self.driver.wait(now).unwrap_or(IDLE).min(IDLE);
            let puts = self.puts.values().map(|it| it.due.since(now)).min();
            let wait = puts.map_or(wait, |it| it.min(wait));
            let wake = self.wakes.recv_timeout(wait.into());
            let (now, mut effects) = (self.clock.now(), Vec::new());
            self.driver
                .expire(now, &mut self.rng, |it| effects.push(it));
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
        // The machine would ask again without end for what no frame holds.
        let function = match fits(me, number, function) {
            Ok(function) => function,
            Err(why) => return self.tell(Told::Refused { token, why }),
        };
        self.tokens.insert(number, token);
        if let Err(why) = self.step(Input::Command(Command::Submit(function))) {
            self.tokens.remove(&number);
            self.tell(Told::Rejected { token, why });
        }
    }

    fn cancel(&mut self, token: u64) {
        let number = self.tokens.iter().find(|it| *it.1 == token);
        let Some(number) = number.map(|it| *it.0) else {
            return; // It is answered.
        };
        if let Err(why) = self.step(Input::Command(Command::Cancel(number))) {
            self.tell(Told::Rejected { token, why });
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
            .step(now, &mut self.rng, input, |it| effects.push(it));
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
                    self.tell(Told::Answered {
                        token,
                        answer,
                        voters: voters.into_iter().collect(),
                        unit,
                    });
                }
            }
            Event::Refused { number, why } => {
                if let Some(token) = self.tokens.remove(&number) {
                    self.tell(Told::Refused { token, why });
                }
            }
            _ => {}
        }
    }

    fn tell(&self, told: Told) {
        // A client that is dropped ends with its next wake.
        let _told = self.tell.send(told);
    }

    fn send(&mut self, to: NodeId, payload: Option<Vec<u8>>) {
        self.go_to(to);
        let link = self.stay.as_ref().map(|it| &it.link);
        let sent = link.zip(payload);
        let sent = sent.is_some_and(|it| it.0.publish(&Topic::Inbox(to), it.1));
        match sent {
            true => self.counters.sent += 1,
            false => self.counters.unsent += 1,
        }
    }

    /// Sees to it that the link is one to this gateway.
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
            stays: false,
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
                // Modules may be put at another gateway than the one that functions are asked for at.
                if self.driver.machine().speaks_to() == gateway {
                    // The machine takes it at any time.
                    let _taken = self.step(Input::Command(Command::Unreachable));
                }
            }
            LinkEvent::Published { topic, payload } => self.on_published(&topic, &payload),
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
                    self.tell(Told::Kept { library, by });
                }
            }
            Notice::NotKept { library, why } => {
                if self.puts.remove(&library).is_some() {
                    let why = Some(why);
                    self.tell(Told::NotKept { library, why });
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

    /// Puts modules that are due, every second time at the next gateway.
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
                self.tell(Told::NotKept { library, why });
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
