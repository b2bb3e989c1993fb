//! A node whose clock was set back, among others that remember its later start.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_core,
    reason = "a test fails by panicking"
)]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use selvedge_core::{Delta, Member, NodeId, Span};
use selvedge_membership::{Config, Event, KIND};
use selvedge_seal::{Epoch, Key, Keyring, Seal, Sealer, since_1970};
use selvedge_udp::{Clock, Host, Seed, Seen, Setup, Told, Weather};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
const GROUP: &str = "clocks";
const ME: NodeId = NodeId(2);

fn setup(
    id: NodeId,
    keyring: &Keyring,
    seeds: Vec<SocketAddr>,
    events: mpsc::Sender<Seen>,
) -> Setup {
    Setup {
        me: Member::new(id.0, 0),
        listen: "127.0.0.1:0".parse().unwrap(),
        socket: None,
        advertise: Vec::new(),
        seeds: seeds.into_iter().map(Seed::from).collect(),
        config: Config {
            period: Span::millis(100),
            jitter: Span::millis(10),
            probe_timeout: Span::millis(30),
            ..Config::default()
        },
        exclusion: None,
        election: None,
        seal: Some(Seal {
            keyring: keyring.clone(),
            group: GROUP.to_owned(),
            rate: None,
        }),
        seed: Some(id.0),
        clock: Clock::start(),
        weather: watch::Sender::new(Weather::fair()).subscribe(),
        events,
    }
}

/// Waits for an event of node `ME`.
async fn told(seen: &mut mpsc::Receiver<Seen>, is_it: impl Fn(&Told) -> bool) {
    let wait = async {
        loop {
            let next = seen.recv().await.unwrap();
            if next.node == ME && is_it(&next.event) {
                return;
            }
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}

/// Sends a datagram of a start of node `ME` at this time by the clock that it had then.
fn start_at(micros: u64, keyring: &Keyring, to: SocketAddr) {
    let mut sealer = Sealer::new(keyring, GROUP, ME, Epoch::new(micros, 0));
    let mut datagram = Vec::new();
    sealer.seal(KIND, b"no frame", &mut datagram).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&datagram, to).unwrap();
}

/// A clock was ahead by some seconds and is right again: once it has passed the former start, the
/// node is heard, and nobody has to start it anew.
#[tokio::test]
async fn a_node_is_heard_when_its_clock_has_passed_its_former_start() {
    let keyring = Keyring::of(Key::random().unwrap());
    let (events, mut seen) = mpsc::channel(1_024);
    let first = Host::start(setup(NodeId(1), &keyring, Vec::new(), events.clone()));
    let first = first.await.unwrap();
    start_at(since_1970() + 3_000_000, &keyring, first.address());
    while first.traffic().received.get() == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    let seeds = vec![first.address()];
    let second = Host::start(setup(ME, &keyring, seeds, events))
        .await
        .unwrap();
    // It is refused, and told so.
    told(
        &mut seen,
        |it| matches!(it, Told::Twin(twin) if twin.is_later),
    )
    .await;
    assert!(first.traffic().old_epoch.get() > 0);
    told(&mut seen, |it| {
        matches!(it, Told::Membership(Event::Membership(Delta::Joined(_))))
    })
    .await;
    let list = first.members().await.unwrap();
    assert!(list.iter().any(|it| it.member.id == ME), "{list:?}");
    drop(second);
}

/// Of two processes with one id the later one is heard, however long both run.
#[tokio::test]
async fn an_earlier_process_with_the_same_id_stays_mute() {
    let keyring = Keyring::of(Key::random().unwrap());
    let (events, mut seen) = mpsc::channel(1_024);
    let first = Host::start(setup(NodeId(1), &keyring, Vec::new(), events.clone()));
    let first = first.await.unwrap();
    let seeds = vec![first.address()];
    let second = Host::start(setup(ME, &keyring, seeds, events))
        .await
        .unwrap();
    told(&mut seen, |it| {
        matches!(it, Told::Membership(Event::Membership(Delta::Joined(_))))
    })
    .await;
    start_at(since_1970(), &keyring, first.address());
    told(
        &mut seen,
        |it| matches!(it, Told::Twin(twin) if twin.is_later),
    )
    .await;
    // Several notices later it is refused still.
    let (refused, notices) = (&first.traffic().old_epoch, &second.traffic().twins);
    let before = notices.get();
    let more = async {
        while notices.get() < before + 3 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, more).await.unwrap();
    let before = refused.get();
    let more = async {
        while refused.get() < before + 3 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, more).await.unwrap();
}
