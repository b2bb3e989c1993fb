//! A machine that adds up numbers, and nodes that run it.

use std::convert::Infallible;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use selvedge::frame;
use selvedge_core::durable::Durable;
use selvedge_core::shared::{RecvError, Subscriber};
use selvedge_core::wire::{self, bytes_len, varint_len};
use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId, Span};
use selvedge_host::{Handle, Host, Setup};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Adds up the numbers that any node was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Toy {
    pub(crate) total: u64,
    is_leaving: bool,
    /// The node's life, for a machine that takes later ones by itself.
    pub(crate) life: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Added(u64),
    Thanks(u64),
    Blob(Vec<u8>),
}

impl wire::Message for Message {
    const KIND: u8 = 222;

    fn encoded_len(&self) -> usize {
        match self {
            Self::Added(number) | Self::Thanks(number) => 1 + varint_len(*number),
            Self::Blob(bytes) => 1 + bytes_len(bytes.len()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    /// All nodes add it. Zero is refused.
    Add(u64),
    /// A message of this length in bytes to all nodes.
    Blob(usize),
    /// A message to one node.
    Thank(Member),
    /// An event after 20 ms.
    Ring,
    /// A last message, and an event after 20 ms.
    Leave,
    /// The node takes its next life.
    Renew,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The total, which is a fact.
    Total(u64),
    Thanked(Member, u64),
    Rang,
    Learned(Delta),
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zero;

impl Machine for Toy {
    type Message = Message;
    type Timer = ();
    type Command = Command;
    type Event = Event;
    type Reject = Zero;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Zero> {
        match input {
            Input::Command(Command::Add(0))
            | Input::Message {
                message: Message::Added(0),
                ..
            } => return Err(Zero),
            Input::Command(Command::Add(number)) => {
                self.total += number;
                cx.event(Event::Total(self.total));
                cx.multicast(Message::Added(number));
            }
            Input::Command(Command::Blob(len)) => cx.multicast(Message::Blob(vec![0; len])),
            Input::Command(Command::Thank(to)) => cx.send(to, Message::Thanks(0)),
            Input::Command(Command::Ring) => cx.arm((), Span::millis(20)),
            Input::Command(Command::Leave) => {
                self.is_leaving = true;
                cx.multicast(Message::Added(1_000));
                cx.arm((), Span::millis(20));
            }
            Input::Command(Command::Renew) => self.life += 1,
            Input::Message { from, message } => match message {
                Message::Added(number) => {
                    self.total += number;
                    cx.event(Event::Total(self.total));
                    cx.send(from, Message::Thanks(number));
                }
                Message::Thanks(number) => cx.event(Event::Thanked(from, number)),
                Message::Blob(_) => {}
            },
            Input::Tick(()) if self.is_leaving => cx.event(Event::Left),
            Input::Tick(()) => cx.event(Event::Rang),
            Input::Membership(delta) => cx.event(Event::Learned(delta)),
        }
        Ok(())
    }
}

impl Durable for Toy {
    type Fact = u64;
    type Damage = Infallible;

    fn fact(event: &Event) -> Option<&u64> {
        match event {
            Event::Total(total) => Some(total),
            _ => None,
        }
    }

    fn fold(&mut self, total: &u64) -> Result<(), Infallible> {
        self.total = *total;
        Ok(())
    }
}

pub(crate) type Node = Handle<Toy, u64>;

pub(crate) fn me(id: u64) -> Member {
    Member::new(id, 0)
}

pub(crate) fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The setups of nodes 1 to `count`, which know one another.
pub(crate) fn setups(count: u64) -> Vec<Setup<Toy, u64>> {
    let sockets: Vec<_> = (0..count).map(|_| socket()).collect();
    let peers = (1..).map(NodeId).zip(sockets.iter().map(|it| it.1));
    let peers: Vec<_> = peers.collect();
    let setup = |(id, (socket, _))| {
        Setup::bound(me(id), socket)
            .peers(peers.clone())
            .random_seed(id)
            .view(|toy: &Toy| toy.total)
    };
    (1..).zip(sockets).map(setup).collect()
}

pub(crate) async fn start(setups: Vec<Setup<Toy, u64>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    for setup in setups {
        nodes.push(Host::start(Toy::default(), setup).await.unwrap());
    }
    nodes
}

/// A node whose only peer, 2, is a socket of the test.
pub(crate) async fn with_peer() -> (Node, tokio::net::UdpSocket) {
    let (own, peer) = (socket(), socket());
    let setup = Setup::bound(me(1), own.0)
        .peers([(NodeId(2), peer.1)])
        .view(|toy: &Toy| toy.total);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    (node, asynchronous(peer.0))
}

pub(crate) fn asynchronous(socket: UdpSocket) -> tokio::net::UdpSocket {
    socket.set_nonblocking(true).unwrap();
    tokio::net::UdpSocket::from_std(socket).unwrap()
}

pub(crate) async fn total(node: &Node, wanted: u64) {
    let wait = node.wait_for(|total| *total == wanted);
    let seen = timeout(PATIENCE, wait).await;
    assert!(seen.is_ok(), "{} instead of {wanted}", node.snapshot());
}

/// Waits until that many datagrams arrived.
pub(crate) async fn received(node: &Node, count: u64) {
    let wait = async {
        while node.traffic().received < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let seen = timeout(PATIENCE, wait).await;
    assert!(seen.is_ok(), "{:?}", node.traffic());
}

/// The next event.
pub(crate) async fn event(events: &mut Subscriber<Event>) -> Result<Event, RecvError> {
    timeout(PATIENCE, events.recv()).await.unwrap()
}

pub(crate) fn frame(from: Member, message: &Message) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::encode(from, message, 1_400, &mut frame).unwrap();
    frame
}

/// The next message at a socket of the test, and its sender.
pub(crate) async fn next(socket: &tokio::net::UdpSocket) -> (Member, Message) {
    let mut buffer = [0; 2_000];
    let received = timeout(PATIENCE, socket.recv_from(&mut buffer)).await;
    let (len, _) = received.unwrap().unwrap();
    let envelope = frame::decode::<Message>(&buffer[..len], 1_400).unwrap();
    (envelope.from, envelope.message)
}
