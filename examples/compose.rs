//! Three machines on one UDP socket, composed by hand: membership, a lock and an election.
//!
//! ```console
//! $ cargo run -p selvedge-examples --example compose
//! ```
//!
//! Three nodes, all in this process, find each other, elect a leader, take the lock one after another,
//! and leave. The chapter "Compose machines" of the book has the rules, and the duties of a host that
//! runs for longer: lives that come from a clock, and inquiries after nodes that a lock waits for.

use core::error::Error;
use core::net::SocketAddr;
use std::net::UdpSocket;
use std::time::Instant;

use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
use selvedge::core::wire::Message as Framed;
use selvedge::core::{Delta, Driver, Effect, FencingToken, Input, Machine, Member, NodeId};
use selvedge::core::{Sha256Sortition, Span, Time};
use selvedge::election::{self, Celect, Lowest};
use selvedge::frame;
use selvedge::lock::{self, Camera};
use selvedge::membership::{self, Command, Event, Membership, Phase, Status};
use serde::{Serialize, de::DeserializeOwned};

const NODES: usize = 3;
const BUDGET: usize = 1_400;

// ANCHOR: node
/// The parts that the machines of a node share.
struct Net {
    socket: UdpSocket,
    ids: Vec<NodeId>,
    rng: ChaCha12Rng,
    start: Instant,
}

impl Net {
    /// Gives a machine an input, or the timers that are due. Sends its messages, and returns its events.
    fn step<M>(
        &mut self,
        driver: &mut Driver<M>,
        me: fn(&M) -> Member,
        input: Option<Input<M>>,
    ) -> Vec<M::Event>
    where
        M: Machine<Message: Framed + Serialize>,
    {
        let (now, mut effects) = (Time::since_start(self.start.elapsed()), Vec::new());
        if let Some(input) = input {
            let taken = driver.step_into(now, &mut self.rng, input, &mut effects);
            // A wrong command, or a peer that misbehaves: nothing has changed.
            taken.unwrap_or_else(|reject| println!("refused: {reject:?}"));
        } else {
            driver.expire_into(now, &mut self.rng, &mut effects);
        }
        let (me, mut bytes, mut events) = (me(driver.machine()), Vec::new(), Vec::new());
        for effect in effects {
            let (to, message) = match effect {
                Effect::Send { to, message } => (vec![to.id], message),
                Effect::Multicast { message } => (self.ids.clone(), message),
                Effect::Event(event) => {
                    println!("node {}: {event:?}", me.id);
                    events.push(event);
                    continue;
                }
            };
            if frame::encode(me, &message, BUDGET, &mut bytes).is_ok() {
                for id in to.into_iter().filter(|&id| id != me.id) {
                    // The port is the id. Best effort: the protocols make up for lost messages.
                    let to = SocketAddr::from(([127, 0, 0, 1], id.0 as u16));
                    self.socket.send_to(&bytes, to).ok();
                }
            }
        }
        events
    }
}

/// Reads a frame of this machine's kind. Any bytes may arrive.
fn read<M: Machine<Message: Framed + DeserializeOwned>>(bytes: &[u8]) -> Option<Input<M>> {
    let envelope = frame::decode::<M::Message>(bytes, BUDGET).ok()?;
    let (from, message) = (envelope.from, envelope.message);
    Some(Input::Message { from, message })
}

struct Node {
    net: Net,
    membership: Driver<Membership>,
    /// These two begin when the node is in the mesh.
    lock: Option<Driver<Camera>>,
    election: Option<Driver<Celect>>,
    has_begun: bool,
    token: Option<FencingToken>,
    has_left: bool,
}

impl Node {
    fn membership(&mut self, input: Option<Input<Membership>>) -> Result<(), Box<dyn Error>> {
        for event in (self.net).step(&mut self.membership, Membership::me, input) {
            match event {
                Event::Identified(me) => self.begin(me)?,
                Event::Changed(delta) => self.learn(delta),
                Event::Left => self.has_left = true,
                Event::MetadataChanged(_) | Event::BroadcastReceived { .. } | _ => {}
            }
        }
        Ok(())
    }

    /// Begins a life with new machines, which learn the present list.
    fn begin(&mut self, me: Member) -> Result<(), Box<dyn Error>> {
        let lock = Camera::new(me, lock::Config::new(NODES as u32))?;
        let lowest = Lowest::new(Sha256Sortition, b"leader");
        // It begins with a full list: no node is missing, none has failed.
        let election = Celect::new(me, election::Config::new(0, 0), lowest)?;
        (self.lock, self.election) = (Some(Driver::new(lock)), Some(Driver::new(election)));
        (self.has_begun, self.token) = (false, None);
        let list = self.membership.machine().members();
        let known = list.map(|it| match it.status {
            Status::Alive | Status::Suspect => Delta::Joined(it.member),
            Status::Failed => Delta::Failed(it.member),
            Status::Left => Delta::Left(it.member),
        });
        let others: Vec<_> = known.filter(|it| it.member().id != me.id).collect();
        others.into_iter().for_each(|delta| self.learn(delta));
        Ok(())
    }

    fn learn(&mut self, delta: Delta) {
        self.lock(Some(Input::Membership(delta)));
        self.election(Some(Input::Membership(delta)));
    }

    fn lock(&mut self, input: Option<Input<Camera>>) {
        let Some(driver) = &mut self.lock else { return };
        for event in self.net.step(driver, Camera::me, input) {
            if let lock::Event::Entered(token) = event {
                self.token = Some(token.into());
                self.lock(Some(Input::Command(lock::Command::Exit)));
            }
        }
    }

    fn election(&mut self, input: Option<Input<Celect>>) {
        if let Some(driver) = &mut self.election {
            self.net.step(driver, Celect::me, input);
        }
    }

    fn is_done(&self) -> bool {
        let election = self.election.as_ref().map(Driver::machine);
        self.token.is_some() && election.is_some_and(|it| it.leader().is_some())
    }

    /// Takes the datagrams and timers of the next moment, then the steps of the application.
    fn turn(&mut self, all_are_done: bool) -> Result<(), Box<dyn Error>> {
        let mut buffer = [0; BUDGET + 1];
        // An error: none came in time, or an earlier one had no receiver.
        let len = self.net.socket.recv_from(&mut buffer).map_or(0, |it| it.0);
        let bytes = buffer.get(..len).unwrap_or_default();
        match bytes.get(1) {
            Some(&membership::KIND) => self.membership(read(bytes))?,
            Some(&lock::KIND) => self.lock(read(bytes)),
            Some(&election::KIND) => self.election(read(bytes)),
            _ => {}
        }
        self.membership(None)?;
        self.lock(None);
        self.election(None);
        let machine = self.membership.machine();
        let (phase, count) = (machine.phase(), machine.members().count());
        if count == NODES && !self.has_begun {
            self.has_begun = true;
            self.election(Some(Input::Command(election::Command::Elect)));
            self.lock(Some(Input::Command(lock::Command::Enter)));
        }
        if all_are_done && phase == Phase::Joined {
            self.membership(Some(Input::Command(Command::Leave)))?;
        }
        Ok(())
    }
}
// ANCHOR_END: node

/// Runs three nodes to their end. Returns their tokens in the order in which they had the lock.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn run() -> Result<Vec<FencingToken>, Box<dyn Error>> {
    let (mut nodes, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..NODES {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        // A host with one node waits until `Driver::deadline` instead.
        socket.set_read_timeout(Some(Span::millis(2).into()))?;
        let id = NodeId(socket.local_addr()?.port().into());
        ids.push(id);
        // Life 0: no node of this new mesh remembers another one.
        let me = Member::new(id.0, 0);
        let rng = ChaCha12Rng::seed_from_u64(getrandom::u64()?);
        let (ids, start) = (Vec::new(), Instant::now());
        nodes.push(Node {
            net: Net {
                socket,
                ids,
                rng,
                start,
            },
            membership: Driver::new(Membership::new(me, membership::Config::default())?),
            lock: None,
            election: None,
            has_begun: false,
            token: None,
            has_left: false,
        });
    }
    for node in &mut nodes {
        node.net.ids.clone_from(&ids);
        // The first node has no seed but itself, and begins the mesh.
        let me = node.membership.machine().me().id;
        let seeds = ids.iter().copied().take(1).filter(|&id| id != me).collect();
        node.membership(Some(Input::Command(Command::Join { seeds })))?;
    }
    while nodes.iter().any(|it| !it.has_left) {
        let all_are_done = nodes.iter().all(Node::is_done);
        for node in nodes.iter_mut().filter(|it| !it.has_left) {
            node.turn(all_are_done)?;
        }
    }
    let mut tokens: Vec<_> = nodes.iter().filter_map(|it| it.token).collect();
    tokens.sort_unstable();
    Ok(tokens)
}

fn main() -> Result<(), Box<dyn Error>> {
    for token in run()? {
        println!("{token}");
    }
    Ok(())
}

#[test]
fn each_of_three_nodes_has_the_lock_once_and_leaves() -> Result<(), Box<dyn Error>> {
    let mut tokens = run()?;
    tokens.dedup();
    assert_eq!(tokens.len(), NODES, "{tokens:?}");
    Ok(())
}
