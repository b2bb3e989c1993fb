//! A whole host without an async runtime: membership over std's UDP socket, in one thread, and an
//! application in others. The chapter "A whole blocking host" of the book goes through it.
//!
//! `selvedge_host::Host::blocking_start` runs any machine in a few lines (see `counter.rs`). It needs
//! tokio. This loop is for a host without tokio: a device, another socket or another executor.
//!
//! Type it into two terminals:
//!
//! ```text
//! cargo run -p selvedge-examples --example blocking_host -- 127.0.0.1:7001
//! cargo run -p selvedge-examples --example blocking_host -- 127.0.0.1:7002 127.0.0.1:7001
//! ```
//!
//! Each line that you type becomes the node's metadata, which the other node prints. The end of
//! the input (Ctrl-D) leaves.

#![allow(
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use core::error::Error;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Instant, UNIX_EPOCH};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use selvedge::frame;
use selvedge_core::shared::{self, Handle, Limits, Port, RecvError, Request};
use selvedge_core::{Driver, Effect, Incarnation, Input, Member, NodeId, Span, Time};
use selvedge_membership::{Command, Config, Event, Membership, Message, Metadata, Reject, Status};

// ANCHOR: application
/// An entry of the list that the host publishes.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    address: SocketAddrV4,
    status: Status,
    metadata: Box<[u8]>,
}

type Node = Handle<Membership, Vec<Entry>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut addresses = Vec::new();
    for address in std::env::args().skip(1) {
        addresses.push(address.parse::<SocketAddrV4>()?);
    }
    let usage = "an argument is missing: give the address to listen on, and then the nodes to join";
    let (&listen, seeds) = addresses.split_first().ok_or(usage)?;
    let (node, host) = start(UdpSocket::bind(listen)?, Config::default())?;

    let mut events = node.subscribe();
    let printer = thread::spawn(move || {
        loop {
            match events.blocking_recv() {
                Ok(event) => println!("{event:?}"),
                Err(RecvError::Lagged { missed }) => println!("missed {missed} events"),
                Err(RecvError::Closed) => return,
            }
        }
    });
    let seeds = seeds.iter().copied().map(to_id).collect();
    node.blocking_submit(Command::Join { seeds })?;
    for line in io::stdin().lines() {
        let metadata = Metadata(line?.into_bytes().into());
        // The machine refuses metadata that is too long, and the error names the limit.
        if let Err(error) = node.blocking_submit(Command::SetMetadata(metadata)) {
            println!("{error}");
        }
        println!("{:?}", node.snapshot());
    }
    node.blocking_submit(Command::Leave)?;
    let counted = host.join().map_err(|_| "the host panicked")?;
    printer.join().map_err(|_| "the printer panicked")?;
    println!("{counted:?}");
    Ok(())
}
// ANCHOR_END: application

// ANCHOR: start
/// The one owner of the machine.
struct Host {
    driver: Driver<Membership>,
    rng: ChaCha12Rng,
    start: Instant,
    socket: UdpSocket,
    port: Port<Membership, Vec<Entry>>,
    /// Wakes this host while it sleeps in its socket.
    bell: Waker,
    effects: Vec<Effect<Membership>>,
    frame: Vec<u8>,
    counted: Counted,
}

/// Problems that are counted, and that do not stop the host.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Datagrams that are no frames of membership.
    no_frames: u64,
    /// Messages that the machine refused.
    refused: u64,
    /// Sends and receives that the system refused.
    network_errors: u64,
}

/// Starts a host in a thread, and returns the handle of its node.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn start(socket: UdpSocket, config: Config) -> Result<(Node, JoinHandle<Counted>), Box<dyn Error>> {
    let SocketAddr::V4(address) = socket.local_addr()? else {
        return Err("give an IPv4 address: it is the node's id".into());
    };
    // A life that this node never had before, even if it restarts at once.
    let (incarnation, wait) = Incarnation::from_clock(UNIX_EPOCH.elapsed()?.into());
    thread::sleep(wait.into());
    let me = Member {
        id: to_id(address),
        incarnation,
    };
    let (node, port) = shared::channel(Limits::default(), Vec::new());
    let bell = Bell {
        socket: socket.try_clone()?,
        address,
    };
    let host = Host {
        driver: Driver::new(Membership::new(me, config)?),
        rng: ChaCha12Rng::seed_from_u64(getrandom::u64()?),
        start: Instant::now(),
        socket,
        port,
        bell: Arc::new(bell).into(),
        effects: Vec::new(),
        frame: Vec::new(),
        counted: Counted::default(),
    };
    Ok((node, thread::spawn(move || host.run())))
}
// ANCHOR_END: start

// ANCHOR: bell
/// Wakes a host that sleeps in its socket, by a datagram to itself. It is empty, so it is no frame.
struct Bell {
    socket: UdpSocket,
    address: SocketAddrV4,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // If the datagram is lost, the command waits for the next datagram or timer.
        self.socket.send_to(&[], self.address).ok();
    }
}
// ANCHOR_END: bell

impl Host {
    // ANCHOR: loop
    /// Runs until the node has left, or its last handle was dropped.
    fn run(mut self) -> Counted {
        // One byte more than a frame may have shows that a datagram is too long.
        let mut buffer = vec![0; self.budget() + 1];
        loop {
            let bell = self.bell.clone();
            let mut answer = None;
            match self.port.poll_recv(&mut Context::from_waker(&bell)) {
                Poll::Ready(Ok(Request { command, reply })) => {
                    answer = Some((reply, self.step(Input::Command(command))));
                }
                Poll::Ready(Err(shared::Closed)) => return self.counted,
                Poll::Pending => self.sleep(&mut buffer),
            }
            let events = self.send();
            let has_left = events.contains(&Event::Left);
            if answer.is_some() || !events.is_empty() {
                self.port.publish(list(self.driver.machine()), events);
            }
            if let Some((reply, outcome)) = answer {
                reply.send(outcome);
            }
            if has_left {
                return self.counted;
            }
        }
    }

    /// Sleeps until a timer is due, a datagram comes, or the bell rings.
    fn sleep(&mut self, buffer: &mut [u8]) {
        let now = self.now();
        let wait = self.driver.wait(now);
        if wait == Some(Span::ZERO) {
            let effects = &mut self.effects;
            self.driver.expire_into(now, &mut self.rng, effects);
            return;
        }
        let timeout = self.socket.set_read_timeout(wait.map(Duration::from));
        match timeout.and_then(|()| self.socket.recv_from(buffer)) {
            Ok((len, _)) => self.receive(buffer.get(..len).unwrap_or_default()),
            Err(error) if is_timeout(&error) => {}
            Err(_) => self.on_network_error(),
        }
    }
    // ANCHOR_END: loop

    // ANCHOR: frames
    /// Takes a datagram. Any bytes may arrive.
    fn receive(&mut self, datagram: &[u8]) {
        if datagram.is_empty() {
            return; // The bell.
        }
        match frame::decode::<Message>(datagram, self.budget()) {
            Ok(envelope) => {
                let (from, message) = (envelope.from, envelope.message);
                if self.step(Input::Message { from, message }).is_err() {
                    self.counted.refused += 1;
                }
            }
            Err(_) => self.counted.no_frames += 1,
        }
    }

    /// Sends the messages of the machine, in order, and returns the events.
    fn send(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let budget = self.budget();
        for effect in core::mem::take(&mut self.effects) {
            match effect {
                Effect::Send { to, message } => {
                    let from = self.driver.machine().me();
                    // A machine keeps to its frame budget.
                    if frame::encode(from, &message, budget, &mut self.frame).is_ok()
                        && let Err(error) = self.socket.send_to(&self.frame, to_address(to.id))
                        && !is_timeout(&error)
                    {
                        self.on_network_error();
                    }
                }
                Effect::Event(event) => events.push(event),
                // Not used by membership.
                Effect::Multicast { .. } => {}
            }
        }
        events
    }
    // ANCHOR_END: frames

    // ANCHOR: errors
    /// An earlier datagram had no receiver, a cable is unplugged, an interface is down: the
    /// protocol makes up for lost messages, and the network may recover. The pause keeps a lasting
    /// error from taking the whole processor.
    fn on_network_error(&mut self) {
        self.counted.network_errors += 1;
        thread::sleep(Duration::from_millis(1));
    }
    // ANCHOR_END: errors

    fn step(&mut self, input: Input<Membership>) -> Result<(), Reject> {
        let (now, effects) = (self.now(), &mut self.effects);
        self.driver.step_into(now, &mut self.rng, input, effects)
    }

    fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }

    fn budget(&self) -> usize {
        self.driver.machine().config().frame_budget.into()
    }
}

/// Unix and Windows name a timeout differently, and a signal may interrupt a wait.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn list(machine: &Membership) -> Vec<Entry> {
    let members = machine.members().map(|view| Entry {
        address: to_address(view.member.id),
        status: view.status,
        metadata: view.metadata.into(),
    });
    members.collect()
}

// ANCHOR: ids
/// With IPv4 the address is the id, so a seed is known by its address, and there is nothing to look
/// up.
fn to_id(address: SocketAddrV4) -> NodeId {
    NodeId(u64::from(address.ip().to_bits()) << 16 | u64::from(address.port()))
}

fn to_address(id: NodeId) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from_bits((id.0 >> 16) as u32), id.0 as u16)
}
// ANCHOR_END: ids

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    struct Running {
        node: Node,
        host: JoinHandle<Counted>,
        address: SocketAddrV4,
    }

    fn run(seeds: &[&Running]) -> Running {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = socket.local_addr().unwrap() else {
            panic!("127.0.0.1 is an address of IPv4");
        };
        let config = Config::default()
            .with_period(Span::millis(200))
            .with_jitter(Span::millis(20))
            .with_probe_timeout(Span::millis(60));
        let (node, host) = start(socket, config).unwrap();
        let seeds = seeds.iter().map(|seed| to_id(seed.address)).collect();
        node.blocking_submit(Command::Join { seeds }).unwrap();
        Running {
            node,
            host,
            address,
        }
    }

    /// Waits until `is_so` holds for the list of `node`.
    #[allow(clippy::disallowed_methods, reason = "a test gives up after some time")]
    fn until(node: &Node, is_so: impl Fn(&[Entry]) -> bool) {
        let begun = Instant::now();
        while !is_so(&node.snapshot()) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", node.snapshot());
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn two_nodes_agree_on_who_is_here_what_they_say_and_who_left() {
        let one = run(&[]);
        let two = run(&[&one]);
        for node in [&one.node, &two.node] {
            until(node, |list| {
                list.len() == 2 && list.iter().all(|it| it.status == Status::Alive)
            });
        }
        let kitchen = Metadata((*b"kitchen").into());
        let say = Command::SetMetadata(kitchen);
        two.node.blocking_submit(say).unwrap();
        let reports = |list: &[Entry]| {
            let two = list.iter().find(|it| it.address == two.address);
            two.is_some_and(|it| *it.metadata == *b"kitchen")
        };
        // A caller that got an outcome reads a list that reflects the command.
        assert!(reports(&two.node.snapshot()));
        until(&one.node, reports);

        // A datagram that is no frame is counted, and does no harm.
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"no frame", one.address).unwrap();
        two.node.blocking_submit(Command::Leave).unwrap();
        let has_left = |list: &[Entry]| {
            let two = list.iter().find(|it| it.address == two.address);
            two.is_none_or(|it| it.status == Status::Left)
        };
        until(&one.node, has_left);
        assert_eq!(two.host.join().unwrap().refused, 0);

        // The last handle ends the host that has not left.
        drop(one.node);
        let counted = one.host.join().unwrap();
        assert_eq!((counted.no_frames, counted.refused), (1, 0));
    }
}
