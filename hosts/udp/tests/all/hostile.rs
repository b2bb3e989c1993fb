//! Sealed hosts on real sockets, in a network where any datagram may come.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use selvedge_core::NodeId;
use selvedge_seal::{Epoch, Key, Keyring, Seal, Sealer, since_1970};
use selvedge_udp::NodeEvent;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep};

use crate::bench::{Node, is_failure, setup, until};

struct Mesh {
    keyring: Keyring,
}

impl Mesh {
    fn new() -> Self {
        Self {
            keyring: Keyring::of(Key::random().unwrap()),
        }
    }

    async fn start(&self, id: u64, seeds: &[SocketAddr]) -> Node {
        let seal = Seal::new(self.keyring.clone(), "test");
        Node::start(setup(id, seeds).seal(seal)).await
    }

    async fn started(&self, count: u64) -> Vec<Node> {
        let mut nodes = vec![self.start(1, &[]).await];
        for id in 2..=count {
            let seed = nodes[0].address();
            nodes.push(self.start(id, &[seed]).await);
        }
        until(|| nodes.iter().all(|node| node.live() == nodes.len())).await;
        nodes
    }
}

/// A forwarder between two nodes that records all datagrams.
async fn wiretap(to: SocketAddr) -> (SocketAddr, Arc<std::sync::Mutex<Vec<Vec<u8>>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        let mut buffer = vec![0; 2_000];
        while let Ok((len, _)) = socket.recv_from(&mut buffer).await {
            kept.lock().unwrap().push(buffer[..len].to_vec());
            socket.send_to(&buffer[..len], to).await.unwrap();
        }
    });
    (address, heard)
}

/// Noise, forgeries, replays and plain frames, thousands a second: all of it is counted, and the
/// mesh does not notice.
#[tokio::test]
async fn a_flood_is_dropped_and_counted_and_honest_traffic_is_served() {
    let mesh = Mesh::new();
    let mut hosts = mesh.started(4).await;
    // A fifth one joins through the wiretap, which so has datagrams to send again.
    let (tap, heard) = wiretap(hosts[0].address()).await;
    let fifth = mesh.start(5, &[tap]).await;
    until(|| fifth.live() == 5).await;
    let recorded = heard.lock().unwrap().clone();
    assert!(!recorded.is_empty());
    let victim = hosts[0].address();
    let before = hosts[0].traffic().report();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let end = Instant::now() + Duration::from_secs(4);
    let (mut noise, mut sent) = (0x9e37_79b9_u64, 0_u64);
    while Instant::now() < end {
        for _ in 0..20 {
            noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let mut bytes = noise.to_le_bytes().repeat(18);
            match sent % 4 {
                // Random bytes, and random bytes behind a valid head.
                0 => {}
                1 => bytes[..2].copy_from_slice(&[0xA1, 1]),
                // Recorded and changed, recorded and as it was.
                2 => {
                    bytes.clone_from(&recorded[0]);
                    *bytes.last_mut().unwrap() ^= 1;
                }
                _ => bytes.clone_from(&recorded[0]),
            }
            socket.send_to(&bytes, victim).await.unwrap();
            sent += 1;
        }
        sleep(Duration::from_millis(2)).await;
    }
    let after = hosts[0].traffic().report();
    // Some datagrams find the socket's buffer full; that is UDP. Each kind got through.
    assert!(after.unsealed > before.unsealed, "{after:?} of {sent}");
    assert!(
        after.wrong_key > before.wrong_key + 100,
        "{after:?} of {sent}"
    );
    assert!(
        after.replayed > before.replayed + 100,
        "{after:?} of {sent}"
    );
    hosts.push(fifth);
    for host in &mut hosts {
        assert_eq!(host.live(), 5);
        let passed = host.passed();
        assert!(
            !passed.iter().any(is_failure),
            "{passed:?} under {sent} datagrams"
        );
    }
}

/// A node with another key, or none, does not get in, and gets no answer.
#[tokio::test]
async fn strangers_do_not_get_in() {
    let mesh = Mesh::new();
    let hosts = mesh.started(2).await;
    let other = Keyring::of(Key::random().unwrap());
    let seed = hosts[0].address();
    let wrong = setup(8, &[seed]).seal(Seal::new(other, "test"));
    let wrong = Node::start(wrong).await;
    let plain = Node::start(setup(9, &[seed])).await;
    until(|| {
        let report = hosts[0].traffic().report();
        report.wrong_key >= 3 && report.unsealed >= 3
    })
    .await;
    assert_eq!((wrong.live(), plain.live()), (1, 1));
    assert_eq!(hosts[0].live(), 2);
    assert_eq!(wrong.traffic().report().received, 0);
}

/// A node with the key that serves another protocol is no stranger without one.
#[tokio::test]
async fn a_sealed_datagram_of_another_protocol_is_counted_as_that() {
    let mesh = Mesh::new();
    let host = mesh.start(1, &[]).await;
    let mut other = Sealer::new(&mesh.keyring, "test", NodeId(2), Epoch::now().unwrap());
    let mut datagram = Vec::new();
    other
        .seal(selvedge_camera::KIND, b"no matter what", &mut datagram)
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&datagram, host.address()).await.unwrap();
    until(|| host.traffic().report().received > 0).await;
    let report = host.traffic().report();
    assert_eq!((report.wrong_kind, report.unsealed), (1, 0));
}

/// Both have the key and the id 2: the later one is accepted, the former one's datagrams are
/// counted, and all other nodes continue.
#[tokio::test]
async fn two_nodes_with_one_id_do_not_disturb_the_others() {
    let mesh = Mesh::new();
    let hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    let twin = mesh.start(2, &[seed]).await;
    until(|| hosts[0].traffic().report().old_epoch > 0).await;
    until(|| hosts[0].live() == 3 && hosts[2].live() == 3).await;
    assert_eq!(twin.id().0, 2);
}

/// A sender that has the key signs as node 2, by the clock of next year: no node refuses node 2.
#[tokio::test]
async fn an_epoch_of_next_year_mutes_no_node() {
    let mesh = Mesh::new();
    let mut hosts = mesh.started(3).await;
    let next_year = Epoch::new(since_1970() + 365 * 24 * 3_600 * 1_000_000, 0);
    let mut liar = Sealer::new(&mesh.keyring, "test", NodeId(2), next_year);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let second = hosts.remove(1);
    let before: Vec<_> = hosts.iter().map(|host| host.traffic().report()).collect();
    for host in &hosts {
        let mut datagram = Vec::new();
        liar.seal(1, b"no frame", &mut datagram).unwrap();
        socket.send_to(&datagram, host.address()).await.unwrap();
    }
    for (host, before) in hosts.iter().zip(before) {
        let opened = || {
            let now = host.traffic().report();
            now.malformed + now.wrong_version + now.wrong_kind
                > before.malformed + before.wrong_version + before.wrong_kind
        };
        until(opened).await;
    }
    // Long enough for node 2 to be declared failed, if it were ignored.
    sleep(Duration::from_secs(4)).await;
    for host in &mut hosts {
        assert_eq!(host.traffic().report().old_epoch, 0);
        assert_eq!(host.live(), 3);
        let passed = host.passed();
        assert!(!passed.iter().any(is_failure), "{passed:?}");
    }
    drop(second);
}

/// And both of them find out.
#[tokio::test]
async fn two_nodes_with_one_id_hear_of_each_other() {
    let mesh = Mesh::new();
    let mut hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    let mut twin = mesh.start(2, &[seed]).await;
    let is_twin = |it: &NodeEvent| matches!(it, NodeEvent::Twin(_));
    let NodeEvent::Twin(later) = hosts[1].wait_for(is_twin).await else {
        panic!("it waited for another event");
    };
    let NodeEvent::Twin(earlier) = twin.wait_for(is_twin).await else {
        panic!("it waited for another event");
    };
    assert_eq!(
        (later.is_later, later.address),
        (true, Some(twin.address()))
    );
    let former = Some(hosts[1].address());
    assert_eq!((earlier.is_later, earlier.address), (false, former));
    assert!(hosts[1].traffic().report().twins > 0);
    assert!(twin.traffic().report().twins > 0);
    // Others do not take it for theirs.
    assert_eq!(hosts[0].traffic().report().twins, 0);
}

/// A node that is started again is no twin of its former life.
#[tokio::test]
async fn a_restart_is_no_second_process() {
    let mesh = Mesh::new();
    let mut hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    hosts.remove(1).kill().await;
    let again = mesh.start(2, &[seed]).await;
    until(|| again.live() == 3).await;
    sleep(Duration::from_secs(2)).await;
    hosts.push(again);
    for host in &mut hosts {
        let passed = host.passed();
        let is_twin = |it: &NodeEvent| matches!(it, NodeEvent::Twin(_));
        assert!(!passed.iter().any(is_twin), "{passed:?}");
        assert_eq!(host.traffic().report().twins, 0);
    }
}
