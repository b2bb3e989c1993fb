//! Sealed hosts on real sockets, in a network where anybody sends anything.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a test fails by panicking"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use selvedge_core::{Delta, Member, NodeId, Span};
use selvedge_membership::{Config, Event};
use selvedge_seal::{Epoch, Key, Keyring, Seal, Sealer, since_1970};
use selvedge_udp::{Clock, Host, Seed, Seen, Setup, Told, Weather};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);

struct Mesh {
    keyring: Keyring,
    weather: watch::Sender<Weather>,
    events: mpsc::Sender<Seen>,
    seen: mpsc::Receiver<Seen>,
}

impl Mesh {
    fn new() -> Self {
        let (events, seen) = mpsc::channel(4_096);
        Self {
            keyring: Keyring::of(Key::random().unwrap()),
            weather: watch::Sender::new(Weather::fair()),
            events,
            seen,
        }
    }

    async fn start(&self, id: u64, keyring: Option<Keyring>, seeds: Vec<SocketAddr>) -> Host {
        let seal = keyring.map(|keyring| Seal {
            keyring,
            group: "test".to_owned(),
            rate: None,
        });
        Host::start(Setup {
            me: Member::new(id, 0),
            listen: "127.0.0.1:0".parse().unwrap(),
            socket: None,
            advertise: Vec::new(),
            seeds: seeds.into_iter().map(Seed::from).collect(),
            config: Config {
                period: Span::millis(200),
                jitter: Span::millis(20),
                probe_timeout: Span::millis(60),
                ..Config::default()
            },
            exclusion: None,
            election: None,
            seal,
            seed: Some(id),
            clock: Clock::start(),
            weather: self.weather.subscribe(),
            events: self.events.clone(),
        })
        .await
        .unwrap()
    }

    async fn started(&self, nodes: u64) -> Vec<Host> {
        let ring = || Some(self.keyring.clone());
        let mut hosts = vec![self.start(1, ring(), vec![]).await];
        for id in 2..=nodes {
            let seed = hosts[0].address();
            hosts.push(self.start(id, ring(), vec![seed]).await);
        }
        for host in &hosts {
            until(async || live(host).await == hosts.len()).await;
        }
        hosts
    }
}

async fn live(host: &Host) -> usize {
    let list = host.members().await.unwrap();
    list.iter().filter(|known| known.status.is_live()).count()
}

async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !condition().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, poll).await.unwrap();
}

/// Between two nodes, with a memory: hands on what comes, and keeps it.
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
    let mut mesh = Mesh::new();
    let hosts = mesh.started(4).await;
    // A fifth one joins through the wiretap, which so has datagrams to send again.
    let (tap, heard) = wiretap(hosts[0].address()).await;
    let fifth = mesh.start(5, Some(mesh.keyring.clone()), vec![tap]).await;
    until(async || live(&fifth).await == 5).await;
    let recorded = heard.lock().unwrap().clone();
    assert!(!recorded.is_empty());
    while mesh.seen.try_recv().is_ok() {}

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
                // Random, and random behind a head of ours.
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
    for host in hosts.iter().chain([&fifth]) {
        assert_eq!(live(host).await, 5);
    }
    while let Ok(seen) = mesh.seen.try_recv() {
        let is_failure = matches!(
            seen.event,
            Told::Membership(Event::Membership(Delta::Failed(_)))
        );
        assert!(!is_failure, "{seen:?} under {sent} datagrams");
    }
}

/// Who has another key, or none, does not get in, and is not told anything.
#[tokio::test]
async fn strangers_do_not_get_in() {
    let mesh = Mesh::new();
    let hosts = mesh.started(2).await;
    let other = Keyring::of(Key::random().unwrap());
    let seed = || vec![hosts[0].address()];
    let wrong = mesh.start(8, Some(other), seed()).await;
    let plain = mesh.start(9, None, seed()).await;
    until(async || {
        let report = hosts[0].traffic().report();
        report.wrong_key >= 3 && report.unsealed >= 3
    })
    .await;
    assert_eq!((live(&wrong).await, live(&plain).await), (1, 1));
    assert_eq!(live(&hosts[0]).await, 2);
    assert_eq!(wrong.traffic().report().received, 0);
}

/// A node with the key that serves another protocol is no stranger without one.
#[tokio::test]
async fn a_sealed_datagram_of_another_protocol_is_counted_as_that() {
    let mesh = Mesh::new();
    let host = mesh.start(1, Some(mesh.keyring.clone()), vec![]).await;
    let mut other = Sealer::new(&mesh.keyring, "test", NodeId(2), Epoch::now().unwrap());
    let mut datagram = Vec::new();
    other
        .seal(selvedge_camera::KIND, b"no matter what", &mut datagram)
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&datagram, host.address()).await.unwrap();
    until(async || host.traffic().report().received > 0).await;
    let report = host.traffic().report();
    assert_eq!((report.wrong_kind, report.unsealed), (1, 0));
}

/// Both have the key and are called 2: the later one is heard, the former one's datagrams are
/// counted, and everybody else goes on.
#[tokio::test]
async fn two_nodes_with_one_id_do_not_disturb_the_others() {
    let mesh = Mesh::new();
    let hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    let twin = mesh.start(2, Some(mesh.keyring.clone()), vec![seed]).await;
    until(async || hosts[0].traffic().report().old_epoch > 0).await;
    until(async || live(&hosts[0]).await == 3 && live(&hosts[2]).await == 3).await;
    assert_eq!(twin.id().0, 2);
}

/// Somebody that holds the key speaks as node 2, by the clock of next year: nobody refuses node 2.
#[tokio::test]
async fn an_epoch_of_next_year_mutes_nobody() {
    let mut mesh = Mesh::new();
    let hosts = mesh.started(3).await;
    while mesh.seen.try_recv().is_ok() {}
    let next_year = Epoch::new(since_1970() + 365 * 24 * 3_600 * 1_000_000, 0);
    let mut liar = Sealer::new(&mesh.keyring, "test", NodeId(2), next_year);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let victims = [&hosts[0], &hosts[2]];
    let before = victims.map(|host| host.traffic().report());
    for host in victims {
        let mut datagram = Vec::new();
        liar.seal(1, b"no frame", &mut datagram).unwrap();
        socket.send_to(&datagram, host.address()).await.unwrap();
    }
    for (host, before) in victims.into_iter().zip(before) {
        let opened = || {
            let now = host.traffic().report();
            now.malformed + now.wrong_version + now.wrong_kind
                > before.malformed + before.wrong_version + before.wrong_kind
        };
        until(async || opened()).await;
    }
    // Long enough for node 2 to be declared failed, were it not heard.
    sleep(Duration::from_secs(4)).await;
    for host in victims {
        assert_eq!(host.traffic().report().old_epoch, 0);
        assert_eq!(live(host).await, 3);
    }
    while let Ok(seen) = mesh.seen.try_recv() {
        let is_failure = matches!(
            seen.event,
            Told::Membership(Event::Membership(Delta::Failed(_)))
        );
        assert!(!is_failure, "{seen:?}");
    }
}

/// And both of them find out.
#[tokio::test]
async fn two_nodes_with_one_id_hear_of_each_other() {
    let mut mesh = Mesh::new();
    let hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    let twin = mesh.start(2, Some(mesh.keyring.clone()), vec![seed]).await;
    let (mut earlier, mut later) = (None, None);
    while earlier.is_none() || later.is_none() {
        let seen = timeout(PATIENCE, mesh.seen.recv()).await.unwrap().unwrap();
        if let Told::Twin(told) = seen.event {
            assert_eq!(seen.node.0, 2);
            if told.is_later {
                earlier = Some(told.address);
            } else {
                later = Some(told.address);
            }
        }
    }
    assert_eq!(earlier, Some(Some(twin.address())));
    assert_eq!(later, Some(Some(hosts[1].address())));
    assert!(hosts[1].traffic().report().twins > 0);
    assert!(twin.traffic().report().twins > 0);
    // Others do not take it for theirs.
    assert_eq!(hosts[0].traffic().report().twins, 0);
}

/// A node that is started again is no twin of its former life.
#[tokio::test]
async fn a_restart_is_no_second_process() {
    let mut mesh = Mesh::new();
    let mut hosts = mesh.started(3).await;
    let seed = hosts[0].address();
    hosts.remove(1).kill().await;
    let again = mesh.start(2, Some(mesh.keyring.clone()), vec![seed]).await;
    until(async || live(&again).await == 3).await;
    sleep(Duration::from_secs(2)).await;
    while let Ok(seen) = mesh.seen.try_recv() {
        assert!(!matches!(seen.event, Told::Twin(_)), "{seen:?}");
    }
    assert_eq!(again.traffic().report().twins, 0);
}
