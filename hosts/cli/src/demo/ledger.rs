//! The demo of a state that a quorum holds: five members keep a ledger, over sockets that lose
//! packets, while members are killed and restart with the state that they stored.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_replica::{Command, Config, Configuration, Event, Fact, KIND, Replica, State};
use selvedge_udp::Clock;
use serde::{Deserialize, Serialize};

use super::narrator::Narrator;
use super::promises::Promise;

/// The lines of the ledger, each a number that is written once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Lines(Vec<u32>);

impl State for Lines {
    type Update = u32;
    type Outcome = ();

    fn apply(&mut self, line: &u32) {
        self.0.push(*line);
    }
}

type Node = Replica<Lines>;
type Disk = Arc<Mutex<Vec<Fact<Lines>>>>;

const MEMBERS: u64 = 5;
/// The percentage of packets lost.
const LOST: u64 = 5;

/// An order to a member.
enum Order {
    Write(u32),
    Read(u64),
    Learn(Delta),
}

/// A report of a member.
enum Reported {
    /// It accepted a line, under this number of its own.
    Took(Member, u64, u32),
    Applied(Member, u64),
    Readable(u64, usize),
    Leads(NodeId),
}

/// A member with its socket.
struct Host {
    driver: Driver<Node>,
    socket: UdpSocket,
    places: Arc<Vec<SocketAddr>>,
    disk: Disk,
    orders: Receiver<Order>,
    reported: Sender<Reported>,
    clock: Clock,
    rng: ChaCha12Rng,
}

impl Host {
    /// Runs until it is killed, or until no sender of orders is left.
    fn run(mut self) -> Node {
        let mut frame = [0; 1_500];
        loop {
            loop {
                match self.orders.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return self.driver.into_machine(),
                }
            }
            // The socket waits for a millisecond at most, so that the member reads its orders.
            if let Ok((len, _)) = self.socket.recv_from(&mut frame)
                && let Some(envelope) = frame.get(..len).and_then(decode)
            {
                let Envelope { from, message } = envelope;
                self.step(Input::Message { from, message });
            }
            let mut effects = Vec::new();
            let now = self.clock.now();
            (self.driver).expire_into(now, &mut self.rng, &mut effects);
            self.carry_out(effects);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Write(line) => {
                let (me, number) = (
                    self.driver.machine().me(),
                    self.driver.machine().next_number(),
                );
                // Reported first: the answer may come in the same step.
                self.say(Reported::Took(me, number, line));
                self.step(Input::Command(Command::Propose(line)));
            }
            Order::Read(read) => self.step(Input::Command(Command::Read(read))),
            Order::Learn(delta) => self.step(Input::Membership(delta)),
        }
    }

    /// Steps the machine. An input that the member refuses is not answered: the clerk asks another
    /// member.
    fn step(&mut self, input: Input<Node>) {
        let mut effects = Vec::new();
        let now = self.clock.now();
        let _refused = (self.driver)
            .step_into(now, &mut self.rng, input, &mut effects)
            .is_err();
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect<Node>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.send(to, message),
                Effect::Multicast { .. } => debug_assert!(false, "a member sends to members"),
                Effect::Event(Event::Fact(fact)) => {
                    // Stored before the effects after it are performed.
                    let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
                    disk.push(fact);
                }
                Effect::Event(Event::Applied { by, number, .. })
                    if by == self.driver.machine().me() =>
                {
                    self.say(Reported::Applied(by, number));
                }
                Effect::Event(Event::Readable { read, .. }) => {
                    let lines = self.driver.machine().state().map_or(0, |it| it.0.len());
                    self.say(Reported::Readable(read, lines));
                }
                Effect::Event(Event::Elected { leader, .. }) => self.say(Reported::Leads(leader)),
                Effect::Event(_) => {}
            }
        }
    }

    fn send(&mut self, to: Member, message: selvedge_replica::Message<u32>) {
        if self.rng.below(100) < LOST {
            return;
        }
        let from = self.driver.machine().me();
        let place = usize::try_from(to.id.0 - 1)
            .ok()
            .and_then(|at| self.places.get(at));
        let frame = postcard::to_extend(&Envelope { from, message }, vec![VERSION, KIND]);
        if let (Some(place), Ok(frame)) = (place, frame) {
            // A packet that the system refuses is one more lost packet.
            let _lost = self.socket.send_to(&frame, place).is_err();
        }
    }

    /// Sends a report; the receiver is dropped when the demo ends.
    fn say(&self, reported: Reported) {
        let _over = self.reported.send(reported).is_err();
    }
}

fn decode(frame: &[u8]) -> Option<Envelope<selvedge_replica::Message<u32>>> {
    let body = frame.strip_prefix(&[VERSION, KIND])?;
    postcard::from_bytes(body).ok()
}

/// The seat of a member: its socket and its disk outlive it.
struct Seat {
    socket: UdpSocket,
    disk: Disk,
    life: u32,
    running: Option<(Sender<Order>, JoinHandle<Node>)>,
}

/// The clerk that orders lines, and records which were confirmed.
#[derive(Default)]
struct Clerk {
    next: u32,
    taken: BTreeMap<(Member, u64), u32>,
    confirmed: BTreeSet<u32>,
    /// The number of lines confirmed when each read was ordered.
    reads: BTreeMap<u64, usize>,
    answered: usize,
    behind: usize,
    last: Option<Time>,
    longest: Span,
    leader: Option<NodeId>,
}

impl Clerk {
    fn receive(&mut self, reported: Reported, now: Time) {
        match reported {
            Reported::Took(by, number, line) => {
                self.taken.insert((by, number), line);
            }
            Reported::Applied(by, number) => {
                if let Some(line) = self.taken.get(&(by, number)) {
                    self.confirmed.insert(*line);
                }
                let since = self.last.map_or(Span::ZERO, |last| now.since(last));
                self.longest = self.longest.max(since);
                self.last = Some(now);
            }
            Reported::Readable(read, lines) => {
                if let Some(least) = self.reads.remove(&read) {
                    self.answered += 1;
                    self.behind += usize::from(lines < least);
                }
            }
            Reported::Leads(leader) => self.leader = Some(leader),
        }
    }
}

/// The whole script: takes 60 periods, and up to 20 more until every order is answered.
struct Ledger {
    clock: Clock,
    period: Span,
    rng: ChaCha12Rng,
    places: Arc<Vec<SocketAddr>>,
    seats: Vec<Seat>,
    reported: (Sender<Reported>, Receiver<Reported>),
    clerk: Clerk,
}

impl Ledger {
    fn new(seed: u64, period: Span) -> io::Result<Self> {
        let socket = |_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_read_timeout(Some(Duration::from_millis(1)))?;
            Ok(socket)
        };
        let sockets = (0..MEMBERS).map(socket).collect::<io::Result<Vec<_>>>()?;
        let places = sockets.iter().map(UdpSocket::local_addr);
        let places = places.collect::<io::Result<Vec<_>>>()?;
        let seats = sockets.into_iter().map(|socket| Seat {
            socket,
            disk: Disk::default(),
            life: 0,
            running: None,
        });
        Ok(Self {
            clock: Clock::start(),
            period,
            rng: ChaCha12Rng::seed_from_u64(seed),
            places: Arc::new(places),
            seats: seats.collect(),
            reported: mpsc::channel(),
            clerk: Clerk::default(),
        })
    }

    /// Starts a life of a member, with the state that its seat has stored.
    fn start(&mut self, at: usize) -> Option<()> {
        let period = self.period;
        let seat = self.seats.get_mut(at)?;
        let first = Configuration::of((1..=MEMBERS).map(|id| Member::new(id, 0)));
        let me = Member::new(at as u64 + 1, seat.life);
        let config = Config::new()
            .with_resend(Span(period.0 / 2))
            .with_commit_delay(Span(period.0 / 4));
        let voter = Member::new(at as u64 + 1, 0);
        let base = Node::new(voter, config, first, Lines::default()).ok()?;
        let mut node = match seat.life {
            0 => base,
            _ => Node::restore(me, config, base.stored()).ok()?,
        };
        for fact in seat
            .disk
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            node.fold(fact).ok()?;
        }
        seat.life += 1;
        let (orders, received) = mpsc::channel();
        let host = Host {
            driver: Driver::new(node),
            socket: seat.socket.try_clone().ok()?,
            places: Arc::clone(&self.places),
            disk: Arc::clone(&seat.disk),
            orders: received,
            reported: self.reported.0.clone(),
            clock: self.clock,
            rng: ChaCha12Rng::seed_from_u64(self.rng.below(u64::MAX)),
        };
        seat.running = Some((orders, thread::spawn(move || host.run())));
        Some(())
    }

    /// Stops the member in the middle of its work; its disk stays.
    fn kill(&mut self, at: usize) -> Option<Node> {
        let (orders, thread) = self.seats.get_mut(at)?.running.take()?;
        drop(orders);
        thread.join().ok()
    }

    fn order(&self, at: usize, order: Order) -> bool {
        let running = self.seats.get(at).and_then(|it| it.running.as_ref());
        running.is_some_and(|(orders, _)| orders.send(order).is_ok())
    }

    /// Sends the members a change, as a membership service would.
    fn notify(&self, delta: Delta) {
        for at in 0..self.seats.len() {
            if delta.member().id != NodeId(at as u64 + 1) {
                self.order(at, Order::Learn(delta));
            }
        }
    }

    /// The present life of the member at this seat.
    fn member(&self, at: usize) -> Member {
        let life = self.seats.get(at).map_or(0, |it| it.life.saturating_sub(1));
        Member::new(at as u64 + 1, life)
    }

    fn leader(&self) -> usize {
        let id = self.clerk.leader.map_or(1, |it| it.0);
        usize::try_from(id - 1).unwrap_or_default()
    }

    /// Orders lines and reads for this number of periods.
    fn work(&mut self, periods: u64) {
        let until = self.clock.now() + self.period * periods;
        let mut turn = 0;
        while self.clock.now() < until {
            let at = usize::try_from(self.rng.below(MEMBERS)).unwrap_or_default();
            let line = self.clerk.next;
            if self.order(at, Order::Write(line)) {
                self.clerk.next += 1;
            }
            if turn % 4 == 0 {
                let read = turn + (u64::from(line) << 32);
                self.clerk.reads.insert(read, self.clerk.confirmed.len());
                if !self.order(at, Order::Read(read)) {
                    self.clerk.reads.remove(&read);
                }
            }
            turn += 1;
            self.listen(Span(self.period.0 / 4));
        }
    }

    fn listen(&mut self, span: Span) {
        let until = self.clock.now() + span;
        loop {
            let left = until.since(self.clock.now());
            match self.reported.1.recv_timeout(left.into()) {
                Ok(reported) => self.clerk.receive(reported, self.clock.now()),
                Err(_) => return,
            }
        }
    }

    /// Plays the script: the leader is killed, twice, the second time with another member.
    fn play<W: Write>(&mut self, narrator: &mut Narrator<W>) -> Option<Vec<Lines>> {
        let clock = self.clock;
        let mut say = |line: &str| narrator.say(clock.now(), line);
        let seats = self.seats.len();
        say(&format!(
            "{MEMBERS} members keep a ledger; {LOST} of 100 packets get lost from start to end"
        ));
        for at in 0..seats {
            self.start(at)?;
        }
        self.work(10);
        for others in [0, 1] {
            let leader = self.leader();
            let victims = [leader, (leader + 1) % seats];
            let victims = victims.get(..=others)?;
            for &at in victims {
                self.kill(at);
            }
            let names: Vec<String> = victims.iter().map(|at| (at + 1).to_string()).collect();
            let names = names.join(" and ");
            say(&format!(
                "killed: {names}, of which {} led; {} lines are confirmed",
                leader + 1,
                self.clerk.confirmed.len()
            ));
            self.work(2);
            for &at in victims {
                self.notify(Delta::Failed(self.member(at)));
            }
            self.work(13);
            for &at in victims {
                self.start(at)?;
                self.notify(Delta::Joined(self.member(at)));
            }
            say(&format!(
                "restarted with the state that they stored: {names}; meanwhile {} leads, and {} lines are confirmed",
                self.leader() + 1,
                self.clerk.confirmed.len()
            ));
            self.work(10);
        }
        self.listen(self.period * 10);
        let nodes: Vec<Node> = (0..seats).filter_map(|at| self.kill(at)).collect();
        Some(nodes.iter().filter_map(|it| it.state().cloned()).collect())
    }

    fn judge(&self, ledgers: &[Lines]) -> Vec<Promise> {
        let clerk = &self.clerk;
        let is_missing = |line: &&u32| ledgers.iter().any(|it| !it.0.contains(line));
        let missing = clerk.confirmed.iter().filter(is_missing).count();
        let twice = |it: &Lines| it.0.len() - it.0.iter().collect::<BTreeSet<_>>().len();
        let differ = ledgers
            .iter()
            .filter(|it| Some(*it) != ledgers.first())
            .count();
        let members = usize::try_from(MEMBERS).unwrap_or_default();
        let why = format!(
            "{} lines were confirmed and {} reads answered at {MEMBERS} members with sockets that \
             lose {LOST} of 100 packets; the leader was killed, and later the leader and another \
             member; they came back with what they had stored",
            clerk.confirmed.len(),
            clerk.answered
        );
        let none =
            |id: &str, promise: &str, unit: &'static str, seen: usize, is_some: bool| Promise {
                id: id.to_owned(),
                promise: promise.to_owned(),
                unit,
                limit: 0.0,
                seen: Some(f64::from(u32::try_from(seen).unwrap_or(u32::MAX))),
                held: seen == 0 && is_some,
                timed: false,
                judged: true,
                why: why.clone(),
            };
        let any = !clerk.confirmed.is_empty() && ledgers.len() == members;
        let limit = self.period * 10;
        vec![
            none(
                "ledger-kept",
                "confirmed lines that a ledger lacks",
                "lines",
                missing,
                any,
            ),
            none(
                "ledger-once",
                "lines that were written twice",
                "lines",
                ledgers.iter().map(twice).sum(),
                any,
            ),
            none(
                "ledger-alike",
                "ledgers that differ",
                "members",
                differ,
                any,
            )
            .timed(),
            none(
                "ledger-reads",
                "reads that missed a confirmed line",
                "reads",
                clerk.behind,
                clerk.answered > 0,
            ),
            Promise {
                id: "ledger-gap".to_owned(),
                promise: "the longest time without a confirmed line".to_owned(),
                unit: "s",
                limit: Duration::from(limit).as_secs_f64(),
                seen: Some(Duration::from(clerk.longest).as_secs_f64()),
                held: any && clerk.longest <= limit,
                timed: true,
                judged: true,
                why: "10 periods: 2 until the members learn of the leader's failure, a round trip for \
                      promises, and lost messages are sent again after half a period"
                    .to_owned(),
            },
        ]
    }
}

/// Runs a ledger on five members for 60 periods. Returns the rows of the table.
///
/// # Errors
/// If the system provides no sockets.
pub fn ledger<W: Write>(
    seed: u64,
    period: Span,
    narrator: &mut Narrator<W>,
) -> io::Result<Vec<Promise>> {
    let mut ledger = Ledger::new(seed, period)?;
    let ledgers = ledger.play(narrator).unwrap_or_default();
    Ok(ledger.judge(&ledgers))
}
