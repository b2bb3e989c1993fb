//! The process of a follower: it is connected to its gateway's broker while it is awake, and
//! disconnected while it sleeps. Its mailbox is the session that the broker keeps for it meanwhile.

#[cfg(test)]
mod tests;

use core::convert::Infallible;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use chacha20::ChaCha12Rng;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::follower::{Command, Config, Event, Follower, Phase, Reject, Timer};
use selvedge_pcm::{Failure, Function, Library, Message, Returned, TaskId};
use thiserror::Error;

use crate::clock::{self, Clock, NoChance};
use crate::counters::Counters;
use crate::executor::{Executor, Job, Worker};
use crate::find::Gateways;
use crate::frame::{self, Frame};
use crate::link::{Access, DIALECT, Link, LinkEvent, Lost, Session, Setup};
use crate::note::note;
use crate::notice::Notice;
pub use crate::shelf::Room;
use crate::shelf::Shelf;
use crate::topic::Topic;

/// The number of wakes that may wait.
const WAKES: usize = 1_024;
/// The wait when no timer is due.
const IDLE: Span = Span::secs(60);

/// The settings of a follower's process.
#[derive(Clone, Debug)]
pub struct Options {
    /// The follower.
    pub id: NodeId,
    /// The gateways that it may connect to, the preferred one first.
    pub gateways: Gateways,
    /// The name and the password for their brokers.
    pub access: Access,
    /// The settings of the machine.
    pub config: Config,
    /// The room for modules that stay for later lives; without it each life requests them again.
    pub room: Option<Room>,
    /// True if it logs to the standard error when a phase begins, where modules come from, and its
    /// counters until then.
    pub is_verbose: bool,
}

/// An error that ends a follower's process.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FollowerError {
    /// The machine refuses its settings.
    #[error(transparent)]
    Machine(#[from] Reject),
    /// The system gives no random numbers.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The directory for modules cannot be used.
    #[error("cannot use the directory of the modules: {0}: give another one with --state")]
    Directory(#[from] io::Error),
}

enum Wake {
    /// An event of the link with this number.
    Link(u64, LinkEvent),
    /// The result of the run with this number.
    Returned(u64, TaskId, Returned),
}

/// The link to the gateway that the follower is at.
struct Stay {
    gateway: NodeId,
    number: u64,
    /// True if it left a mailbox there.
    relies: bool,
    /// `None` if the system gives no thread.
    link: Option<Link>,
}

struct Host {
    options: Options,
    driver: Driver<Follower>,
    rng: ChaCha12Rng,
    clock: Clock,
    wakes: Receiver<Wake>,
    wake: SyncSender<Wake>,
    stay: Option<Stay>,
    /// The number of links opened until now.
    links: u64,
    /// The gateway that has the mailbox of this life.
    mailbox: Option<NodeId>,
    /// The number of the link that was closed when it fell asleep.
    closing: u64,
    /// Messages that this link brought all the same, and has acknowledged: handled as if they lay
    /// in the mailbox.
    late: VecDeque<(String, Vec<u8>)>,
    worker: Worker<Wake>,
    shelf: Shelf,
    /// Commands for the machine after the present effects.
    commands: VecDeque<Command>,
    /// The last reason why a broker refused it; logged once.
    refused: Option<String>,
    counters: Counters,
}

/// Runs a follower, until the process ends.
///
/// # Errors
/// [`FollowerError`], if it cannot begin.
pub fn run(options: Options, executor: Arc<dyn Executor>) -> Result<Infallible, FollowerError> {
    let mut host = Host::new(options, executor)?;
    host.command(Command::Start)?;
    host.run()
}

impl Host {
    fn new(options: Options, executor: Arc<dyn Executor>) -> Result<Self, FollowerError> {
        let me = clock::life(options.id);
        let machine = Follower::new(me, options.config, options.gateways.ids())?;
        let (wake, wakes) = mpsc::sync_channel(WAKES);
        Ok(Self {
            driver: Driver::new(machine),
            rng: clock::chance()?,
            clock: Clock::start(),
            wakes,
            stay: None,
            links: 0,
            mailbox: None,
            closing: 0,
            late: VecDeque::new(),
            worker: Worker::new(executor, wake.clone()),
            shelf: Shelf::open(options.room.clone())?,
            commands: VecDeque::new(),
            refused: None,
            counters: Counters::default(),
            wake,
            options,
        })
    }

    fn run(&mut self) -> Result<Infallible, FollowerError> {
        loop {
            let now = self.clock.now();
            let wait = self.driver.wait(now).unwrap_or(IDLE).min(IDLE);
            let wait = self.shelf.wait(now).map_or(wait, |it| it.min(wait));
            let wake = self.wakes.recv_timeout(wait.into());
            let mut effects = Vec::new();
            let now = self.clock.now();
            self.look_at_waiting(now);
            self.driver.expire_into(now, &mut self.rng, &mut effects);
            self.carry_out(effects);
            if let Ok(wake) = wake {
                self.on_wake(wake);
            }
            self.look_at_shelf();
        }
    }

    fn on_wake(&mut self, wake: Wake) {
        match wake {
            Wake::Link(number, event) => self.on_link(number, event),
            Wake::Returned(number, task, returned) if number == self.worker.number => {
                self.counters.ended += 1;
                // It is refused if the function was stopped meanwhile.
                self.say(Command::Returned { task, returned });
            }
            Wake::Returned(..) => {}
        }
    }

    /// Handles the end of the time of a function that has not begun: it is no fault of the
    /// function.
    fn look_at_waiting(&mut self, now: Time) {
        let mut timers = self.driver.timers();
        let is_due = timers.any(|(timer, due)| timer == Timer::Run && due <= now);
        drop(timers);
        if let Some(task) = self.worker.waiting().filter(|_| is_due) {
            self.worker.stop(task);
            let returned = Returned::Failed(Failure::Host);
            self.say(Command::Returned { task, returned });
        }
    }

    fn command(&mut self, command: Command) -> Result<(), Reject> {
        self.step(Input::Command(command))
    }

    /// Sends the machine a command that may have become obsolete.
    fn say(&mut self, command: Command) {
        self.counters.refused += u64::from(self.command(command).is_err());
    }

    fn step(&mut self, input: Input<Follower>) -> Result<(), Reject> {
        let (now, mut effects) = (self.clock.now(), Vec::new());
        let taken = self
            .driver
            .step_into(now, &mut self.rng, input, &mut effects);
        self.carry_out(effects);
        taken
    }

    fn carry_out(&mut self, effects: Vec<Effect<Follower>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.send(to, &message),
                Effect::Event(event) => self.on_event(event),
                Effect::Multicast { .. } => {} // A follower uses none.
            }
        }
        while let Some(command) = self.commands.pop_front() {
            self.say(command);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::PhaseChanged(phase) => self.on_phase(phase),
            Event::Fetch(gateway) => self.go_to(gateway),
            Event::Load(library) => self.load(library),
            Event::Unload(library) => self.shelf.drop(library),
            Event::Run {
                task,
                function,
                memory,
            } => self.start(task, function, memory),
            Event::Stop(task) => self.worker.stop(task),
            _ => {}
        }
    }

    fn on_phase(&mut self, phase: Phase) {
        let counters = self.driver.machine().counters();
        self.note(&format!("is {phase:?}; {:?} {counters:?}", self.counters));
        if phase == Phase::Asleep {
            // The link disconnects properly; the broker keeps the mailbox.
            self.closing = self.stay.take().map_or(0, |it| it.number);
        }
    }

    fn load(&mut self, library: Library) {
        let is_here = self.shelf.has(library);
        let is_read = !is_here && self.shelf.read(library);
        self.look_at_damage();
        if is_read {
            self.counters.read_modules += 1;
            self.note(&format!("has module {:016x} on its disk", library.0));
        }
        match is_here || is_read {
            true => self.commands.push_back(Command::Loaded(library)),
            false => self.shelf.want(library, self.clock.now()),
        }
    }

    fn look_at_damage(&mut self) {
        let damage = self.shelf.damage();
        let (damaged, unwritten) = (damage.damaged, damage.unwritten);
        if (damaged, unwritten)
            != (
                self.counters.damaged_modules,
                self.counters.unwritten_modules,
            )
        {
            self.note(&format!(
                "has found {damaged} modules damaged, and could not write {unwritten}"
            ));
        }
        self.counters.damaged_modules = damaged;
        self.counters.unwritten_modules = unwritten;
    }

    fn note(&self, what: &str) {
        if self.options.is_verbose {
            note(&format!("{} {what}", self.driver.machine().me()));
        }
    }

    fn start(&mut self, task: TaskId, function: Function, memory: u32) {
        let modules = self.shelf.get_all(&function.libraries);
        let started = modules.map(|modules| Job {
            function,
            modules,
            memory,
            time: self.options.config.time,
            result: self.options.config.result,
        });
        let started =
            started.is_some_and(|job| self.worker.start(task, job, Wake::Returned).is_ok());
        if !started {
            let returned = Returned::Failed(Failure::Host);
            self.commands
                .push_back(Command::Returned { task, returned });
        }
    }

    /// Ensures that the link leads to this gateway.
    fn go_to(&mut self, gateway: NodeId) {
        if self.stay.as_ref().is_some_and(|it| it.gateway == gateway) {
            return;
        }
        self.links += 1;
        let number = self.links;
        let relies = self.mailbox == Some(gateway);
        if !relies {
            self.late.clear(); // Like the mailbox.
            self.closing = 0;
        }
        let link = self.open(gateway, number, relies);
        if let Err(why) = &link {
            let down = LinkEvent::Down(Lost::by(why));
            // The queue is full only while there is enough work.
            let _notified = self.wake.try_send(Wake::Link(number, down));
        }
        self.mailbox = Some(gateway);
        self.stay = Some(Stay {
            gateway,
            number,
            relies,
            link: link.ok(),
        });
    }

    fn open(&self, gateway: NodeId, number: u64, relies: bool) -> io::Result<Link> {
        let me = self.options.id;
        let unknown = || io::Error::other("no such gateway");
        let address = self.options.gateways.address(gateway).ok_or_else(unknown)?;
        let session = match relies {
            true => Session::Kept,
            false => Session::Emptied,
        };
        let setup = Setup {
            name: format!("selvedge-faas-{me}"),
            address: address.clone(),
            access: self.options.access.clone(),
            session,
            filters: vec![Topic::Inbox(me).to_string()],
            asides: Vec::new(),
            will: None,
            stays: false,
            dialect: DIALECT,
        };
        let wake = self.wake.clone();
        Link::open(setup, move |it| wake.send(Wake::Link(number, it)).is_ok())
    }

    fn send(&mut self, to: Member, message: &Message) {
        let here = self.driver.machine().attached_to();
        let topic = match self.options.gateways.address(to.id) {
            Some(_) => {
                self.go_to(to.id);
                Topic::Inbox(to.id)
            }
            None => Topic::Relay {
                gateway: here,
                to: to.id,
            },
        };
        let me = self.driver.machine().me();
        let payload = frame::message(me, message);
        self.publish(&topic, payload.ok());
    }

    fn publish(&mut self, topic: &Topic, payload: Option<Vec<u8>>) {
        let link = self.stay.as_ref().and_then(|it| it.link.as_ref());
        let sent = link
            .zip(payload)
            .is_some_and(|it| it.0.publish(topic, it.1).is_ok());
        match sent {
            true => self.counters.sent += 1,
            false => self.counters.unsent += 1,
        }
    }

    fn on_link(&mut self, number: u64, event: LinkEvent) {
        if self.stay.as_ref().is_none_or(|it| it.number != number) {
            return self.on_closed(number, event);
        }
        match event {
            LinkEvent::Up { is_kept } => {
                if self.stay.as_ref().is_some_and(|it| it.relies && !is_kept) {
                    // The broker has lost the mailbox, and creates a new one.
                    self.say(Command::Emptied);
                }
                for (topic, payload) in core::mem::take(&mut self.late) {
                    self.on_published(&topic, &payload);
                }
            }
            LinkEvent::Down(lost) => {
                let is_news = lost.is_refused && self.refused.as_ref() != Some(&lost.why);
                if self.options.is_verbose || is_news {
                    let me = self.driver.machine().me();
                    note(&format!("{me} has lost its gateway: {lost}"));
                }
                if lost.is_refused {
                    self.refused = Some(lost.why);
                }
                self.counters.lost_links += 1;
                self.stay = None;
                // It may come back without the mailbox, so the follower does not count on it.
                self.mailbox = None;
                self.say(Command::Unreachable);
            }
            LinkEvent::Published { topic, payload, .. } => self.on_published(&topic, &payload),
            LinkEvent::Retained => self.counters.retained += 1,
        }
    }

    /// Handles an event of a closed link.
    fn on_closed(&mut self, number: u64, event: LinkEvent) {
        let LinkEvent::Published { topic, payload, .. } = event else {
            return;
        };
        if number != self.closing {
            return; // It has moved to another gateway.
        }
        if self.stay.is_some() {
            self.on_published(&topic, &payload);
        } else if self.late.len() < WAKES {
            self.late.push_back((topic, payload));
        }
    }

    fn on_published(&mut self, topic: &str, payload: &[u8]) {
        if Topic::parse(topic) != Ok(Topic::Inbox(self.options.id)) {
            self.counters.foreign_topics += 1;
            return;
        }
        match Frame::decode(payload) {
            Ok(Frame::Message(it)) => {
                self.counters.received += 1;
                let (from, message) = (it.from, it.message);
                let taken = self.step(Input::Message { from, message });
                self.counters.refused += u64::from(taken.is_err());
            }
            Ok(Frame::Notice(it)) => {
                self.counters.received += 1;
                self.on_notice(it.message);
            }
            Err(why) => self.counters.count(&why),
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Module(bytes) => {
                if let Some(library) = self.shelf.take(&bytes) {
                    self.look_at_damage();
                    self.counters.fetched_modules += 1;
                    self.note(&format!("got module {:016x} from its gateway", library.0));
                    self.say(Command::Loaded(library));
                }
            }
            Notice::NoModule(library) => {
                if self.shelf.give_up(library) {
                    self.say(Command::Missing(library));
                }
            }
            Notice::Gateways(_)
            | Notice::Status(_)
            | Notice::Put { .. }
            | Notice::Kept { .. }
            | Notice::NotKept { .. }
            | Notice::Get(_)
            | Notice::Unit { .. } => self.counters.refused += 1,
        }
    }

    /// Requests a module again, or gives up.
    fn look_at_shelf(&mut self) {
        if self.stay.is_none() {
            return; // It asks again when it wakes.
        }
        match self.shelf.due(self.clock.now()) {
            None => {}
            Some((library, true)) => {
                let me = self.driver.machine().me();
                let topic = Topic::Inbox(self.driver.machine().attached_to());
                let payload = frame::notice(me, &Notice::Get(library));
                self.publish(&topic, payload.ok());
            }
            Some((library, false)) => self.say(Command::Missing(library)),
        }
    }
}
