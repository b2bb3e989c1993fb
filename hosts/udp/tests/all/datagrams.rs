//! Datagrams that a node accepts and sends, in a network in memory and in virtual time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge::frame;
use selvedge_core::wire::{self, VERSION};
use selvedge_core::{Incarnation, Member, NodeId};
use selvedge_membership::{Body, Command, Config, Digest, Event, Message};
use selvedge_seal::{Epoch, Key, Keyring, Seal, Sealer, since_1970};
use selvedge_udp::discovery::Twin;
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::{NodeEvent, Setup};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::{Node, PATIENCE, config, is_failure, until};
use crate::network::{Network, Quirk, Socket, at};

const GROUP: &str = "datagrams";

/// A node at its own port of this network.
pub(crate) fn setup(network: &Network, id: u16, seeds: &[u16]) -> Setup {
    Setup::new(NodeId(id.into()), at(id))
        .life(Incarnation(0))
        .seeds(seeds.iter().map(|&seed| at(seed)))
        .membership(config())
        .random_seed(id.into())
        .transport(network.clone())
}

/// Lets the node take all that has arrived.
async fn report(node: &Node) -> TrafficReport {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    node.traffic().report()
}

/// A process that has the key.
struct Insider {
    socket: Socket,
    sealer: Sealer,
}

impl Insider {
    fn new(network: &Network, keyring: &Keyring, id: NodeId, port: u16) -> Self {
        let epoch = Epoch::new(since_1970(), 0);
        Self {
            socket: network.open(at(port)),
            sealer: Sealer::new(keyring, GROUP, id, epoch),
        }
    }

    /// Sends a message in the name of `from`.
    fn send<T: wire::Message + Serialize>(&mut self, from: Member, message: &T, to: SocketAddr) {
        let (mut frame, mut datagram) = (Vec::new(), Vec::new());
        frame::encode(from, message, 1_000, &mut frame).unwrap();
        self.sealer.seal(T::KIND, &frame, &mut datagram).unwrap();
        self.socket.send(&datagram, to);
    }
}

/// As the host writes it.
#[derive(Serialize, Deserialize)]
struct Notice {
    id: NodeId,
    epoch: u64,
    address: Option<SocketAddr>,
}

impl wire::Message for Notice {
    const KIND: u8 = 6;

    fn encoded_len(&self) -> usize {
        postcard::to_allocvec(self).unwrap().len()
    }
}

/// Answers that wait in the socket are received before a due timer, also behind an error; but not
/// more than 64 of them.
#[tokio::test(start_paused = true)]
async fn a_timer_waits_for_what_has_arrived_but_not_for_ever() {
    let network = Network::default();
    let node = Node::start(setup(&network, 1, &[]).transport(network.odd(Quirk::Busy))).await;
    let down = io::ErrorKind::ConnectionRefused.into();
    network.put(at(1), Err(down));
    for _ in 0..100 {
        network.put(at(1), Ok((b"no frame", at(9))));
    }
    until(|| node.traffic().received.get() > 0).await;
    let first = node.traffic().report();
    assert_eq!((first.network_errors, first.received), (1, 63));
    until(|| node.traffic().received.get() > 63).await;
    let second = node.traffic().report();
    assert_eq!((second.network_errors, second.received), (1, 100));
    // An empty socket is no error.
    sleep(Duration::from_secs(5)).await;
    assert_eq!(node.traffic().report(), second);
}

/// Sealed or not: a datagram as long as the budget is read, a longer one is not.
#[tokio::test(start_paused = true)]
async fn a_datagram_longer_than_the_budget_is_counted_as_that() {
    let network = Network::default();
    let seal = Seal::new(Keyring::of(Key::random().unwrap()), GROUP);
    let node = Node::start(setup(&network, 1, &[]).seal(seal)).await;
    let budget = usize::from(Config::default().frame_budget);
    let peer = network.open(at(9));
    peer.send(&vec![0; budget], at(1));
    let counts = report(&node).await;
    assert_eq!((counts.unsealed, counts.oversize), (1, 0));
    peer.send(&vec![0; budget + 1], at(1));
    let counts = report(&node).await;
    assert_eq!((counts.unsealed, counts.oversize), (1, 1));
}

/// Notices are never sent in the clear, so there they are of no protocol.
#[tokio::test(start_paused = true)]
async fn a_notice_in_the_clear_is_of_another_protocol() {
    let network = Network::default();
    let node = Node::start(setup(&network, 1, &[]).membership(config())).await;
    network
        .open(at(9))
        .send(&[VERSION, 6, 0, 0, 0, 0, 0], at(1));
    let counts = report(&node).await;
    assert_eq!((counts.wrong_kind, counts.faulty()), (1, 1));
}

/// A node that has the key speaks for itself alone: in messages, and in notices.
#[tokio::test(start_paused = true)]
async fn what_another_node_has_sealed_is_not_taken() {
    let network = Network::default();
    let keyring = Keyring::of(Key::random().unwrap());
    let seal = Seal::new(keyring.clone(), GROUP);
    let node = Node::start(setup(&network, 1, &[]).seal(seal)).await;
    let mut insider = Insider::new(&network, &keyring, NodeId(5), 5);
    let (itself, another) = (Member::new(5, 0), Member::new(7, 0));
    let notice = Notice {
        id: NodeId(1),
        epoch: u64::MAX,
        address: None,
    };
    insider.send(another, &notice, at(1));
    let counts = report(&node).await;
    assert_eq!((counts.wrong_sender, counts.twins), (1, 0));
    insider.send(another, &Message::bare(Body::Unlucky), at(1));
    let counts = report(&node).await;
    assert_eq!((counts.wrong_sender, counts.faulty()), (2, 2));

    insider.send(itself, &notice, at(1));
    let counts = report(&node).await;
    assert_eq!((counts.wrong_sender, counts.twins), (2, 1));
}

/// Forged: the node would answer itself.
#[tokio::test(start_paused = true)]
async fn a_datagram_from_the_address_of_the_node_is_dropped() {
    let network = Network::default();
    let node = Node::start(setup(&network, 1, &[])).await;
    let (digest, origin) = (Digest::default(), None);
    let (mut ping, body) = (Vec::new(), Body::Ping { digest, origin });
    frame::encode(Member::new(2, 0), &Message::bare(body), 1_000, &mut ping).unwrap();
    network.put(at(1), Ok((&ping, at(1))));
    let counts = report(&node).await;
    assert_eq!((counts.wrong_sender, counts.sent), (1, 0));
    network.put(at(1), Ok((&ping, at(2))));
    let counts = report(&node).await;
    assert!(counts.wrong_sender == 1 && counts.sent > 0, "{counts:?}");
}

/// Copied settings: each sends to where the other's datagrams come from.
#[tokio::test(start_paused = true)]
async fn two_nodes_that_announce_one_address_reach_each_other_elsewhere() {
    let network = Network::default();
    let one = setup(&network, 1, &[]).advertise([at(5)]);
    let two = setup(&network, 2, &[1]).advertise([at(5)]);
    let (mut one, two) = (Node::start(one).await, Node::start(two).await);
    one.meets(two.id()).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!((one.live(), two.live()), (2, 2));
    let members = one.members();
    let known = members.iter().find(|it| it.member.id == two.id());
    assert_eq!(known.unwrap().address, Some(at(2)));
    assert!(!one.passed().iter().any(is_failure));
}

/// A process without the key can send a node its own datagrams, also with an earlier start in their
/// head. The node sends no notice of its own start, which could come back as a sign of another process.
#[tokio::test(start_paused = true)]
async fn what_comes_back_to_a_node_is_no_sign_of_a_twin() {
    let network = Network::default();
    let seal = Seal::new(Keyring::of(Key::random().unwrap()), GROUP);
    let mut outsider = network.open(at(9));
    let node = Node::start(setup(&network, 1, &[9]).seal(seal)).await;
    sleep(Duration::from_secs(1)).await;
    let (mut sent, _) = outsider.heard().remove(0);
    outsider.send(&sent, at(1));
    // The id takes one byte, and the epoch is behind it.
    sent[4] -= 1;
    outsider.send(&sent, at(1));
    let counts = report(&node).await;
    assert_eq!(counts.old_epoch, 1);
    for (datagram, _) in outsider.heard() {
        outsider.send(&datagram, at(1));
    }
    let counts = report(&node).await;
    assert_eq!((counts.notices, counts.twins), (0, 0));
}

/// A node that is refused passes the notice on to where its later start is, where that is one place
/// that it can send to, and not its own.
#[tokio::test(start_paused = true)]
async fn a_notice_goes_on_to_a_single_other_address() {
    let network = Network::default();
    let keyring = Keyring::of(Key::random().unwrap());
    let seal = Seal::new(keyring.clone(), GROUP);
    let mut node = Node::start(setup(&network, 2, &[]).seal(seal)).await;
    let mut insider = Insider::new(&network, &keyring, NodeId(1), 1);
    let epoch = Epoch::new(since_1970() + 3_600_000_000, 0).0;
    let notice = |address| Notice {
        id: NodeId(2),
        epoch,
        address: Some(address),
    };
    for (nowhere, twins) in [
        ("224.0.0.1:7001", 1),
        ("[2001:db8::1]:7001", 2),
        ("192.0.2.1:2", 3),
    ] {
        let nowhere = nowhere.parse().unwrap();
        insider.send(Member::new(1, 0), &notice(nowhere), at(2));
        let counts = report(&node).await;
        assert_eq!((counts.twins, counts.notices), (twins, 0), "{nowhere}");
    }
    let mut later = network.open(at(9));
    insider.send(Member::new(1, 0), &notice(at(9)), at(2));
    let counts = report(&node).await;
    assert_eq!((counts.twins, counts.notices), (4, 1));
    let passed_on = later.heard();
    assert_eq!(passed_on.len(), 1);
    let (datagram, source) = &passed_on[0];
    assert_eq!((datagram[1], *source), (6, at(2)));
    // Of four signs of one thing within a minute the first is an event.
    let is_twin = |it: &NodeEvent| matches!(it, NodeEvent::Twin(_));
    let first = Twin {
        address: Some("224.0.0.1:7001".parse().unwrap()),
        is_later: true,
    };
    assert_eq!(node.wait_for(is_twin).await, NodeEvent::Twin(first));
    assert!(!node.passed().iter().any(is_twin));
}

/// Two processes in the clear: a later life that another node remembers is a sign of two processes,
/// and the first life of this node is not.
#[tokio::test(start_paused = true)]
async fn a_later_life_that_another_node_knows_is_a_sign_of_a_twin() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let mut two = Node::start(setup(&network, 2, &[1])).await;
    two.meets(one.id()).await;
    one.meets(two.id()).await;
    assert_eq!(two.traffic().report().twins, 0);
    let life = Member::new(2, 7);
    let mut frame = Vec::new();
    let taken = Message::bare(Body::IdTaken { life });
    frame::encode(Member::new(1, 0), &taken, 1_000, &mut frame).unwrap();
    network.put(at(2), Ok((&frame, at(1))));
    two.joins().await;
    assert_eq!(two.traffic().report().twins, 1);
    assert!(two.state().me.incarnation.newer_than(life.incarnation));
}

/// A seed that is silent is probed now and then, also while other members are alive.
#[tokio::test(start_paused = true)]
async fn a_seed_that_is_no_member_is_asked_on() {
    let network = Network::default();
    let one = Node::start(setup(&network, 1, &[])).await;
    let mut silent = network.open(at(9));
    let two = Node::start(setup(&network, 2, &[1, 9])).await;
    until(|| two.live() == 2).await;
    sleep(Duration::from_secs(2)).await;
    silent.heard();
    let spared = two.traffic().spared.get();
    sleep(Duration::from_secs(60)).await;
    assert!(!silent.heard().is_empty());
    assert!(two.traffic().spared.get() > spared);
    assert_eq!(one.live(), 2);
}

/// A node's message to all goes to each of the others: no time passes until the next user is in.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_given_back_passes_on_at_once() {
    let network = Network::default();
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let seeds: &[u16] = if id == 1 { &[] } else { &[1] };
        nodes.push(Node::start(setup(&network, id, seeds).locks(3)).await);
    }
    until(|| nodes.iter().all(|it| it.live() == 3)).await;
    let name = "door".parse().unwrap();
    let held = timeout(PATIENCE, nodes[0].lock(name));
    let held = held.await.unwrap().unwrap();
    let waits = nodes[1].lock(name);
    tokio::pin!(waits);
    let early = timeout(Duration::from_millis(1), &mut waits).await;
    assert!(early.is_err());
    let begun = Instant::now();
    let token = held.token();
    drop(held);
    let next = timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(next.token() > token);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // And none to the node itself.
    for node in &nodes {
        let counts = node.traffic().report();
        assert_eq!((counts.faulty(), counts.unknown_destination), (0, 0));
    }
}

/// A command to membership is sent, or refused with the reason.
#[tokio::test(start_paused = true)]
async fn a_broadcast_arrives_and_one_that_is_too_long_is_refused() {
    let network = Network::default();
    let one = Node::start(setup(&network, 1, &[])).await;
    let mut two = Node::start(setup(&network, 2, &[1])).await;
    until(|| one.live() == 2 && two.live() == 2).await;
    let limit = config().broadcast_len.into();
    let broadcast = |len| Command::Broadcast(vec![7; len].into());
    assert!(one.command(broadcast(limit + 1)).await.is_err());
    one.command(broadcast(limit)).await.unwrap();
    let is_broadcast =
        |it: &NodeEvent| matches!(it, NodeEvent::Membership(Event::BroadcastReceived { .. }));
    let NodeEvent::Membership(Event::BroadcastReceived { origin, payload }) =
        two.wait_for(is_broadcast).await
    else {
        panic!("it waited for another event");
    };
    assert_eq!((origin.id, payload.len()), (one.id(), limit));
    // It is the longest that was sent.
    let longest = one.traffic().longest.get();
    assert!(longest > limit as u64, "{longest}");
    assert!(longest <= u64::from(config().frame_budget), "{longest}");
}

/// The list is rebuilt with each event of membership, also if no address changes.
#[tokio::test(start_paused = true)]
async fn a_reader_of_a_failure_reads_a_list_that_reflects_it() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let two = Node::start(setup(&network, 2, &[1])).await;
    until(|| one.live() == 2).await;
    two.kill().await;
    one.wait_for(is_failure).await;
    assert_eq!(one.live(), 1);
}
