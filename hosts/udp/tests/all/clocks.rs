//! A node with a clock that was set back, among others that remember its later start.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use selvedge_core::{NodeId, Span};
use selvedge_membership::{Config, KIND};
use selvedge_seal::{Epoch, Key, Keyring, Seal, Sealer, since_1970};
use selvedge_udp::{Host, HostError, NodeEvent, Setup};
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE};
use crate::groups::coordination;

const GROUP: &str = "clocks";
const ME: NodeId = NodeId(2);

fn setup(id: NodeId, keyring: &Keyring, seeds: &[SocketAddr]) -> Setup {
    let config = Config::default()
        .with_period(Span::millis(100))
        .with_jitter(Span::millis(10))
        .with_probe_timeout(Span::millis(30));
    bench::setup(id.0, seeds)
        .membership(config)
        .seal(Seal::new(keyring.clone(), GROUP))
}

/// A folder that is not there.
fn folder(name: &str) -> PathBuf {
    let name = format!("selvedge-clocks-{name}-{}", std::process::id());
    std::env::temp_dir().join(name)
}

fn is_superseded(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Twin(twin) if twin.is_later)
}

/// Sends a datagram of a start of a node at this time by the clock that it had then.
fn start_at(id: NodeId, micros: u64, keyring: &Keyring, to: SocketAddr) {
    let mut sealer = Sealer::new(keyring, GROUP, id, Epoch::new(micros, 0));
    let mut datagram = Vec::new();
    sealer.seal(KIND, b"no frame", &mut datagram).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&datagram, to).unwrap();
}

/// A clock was ahead by some seconds and is right again: once it has passed the former start, the
/// node is accepted, and needs no restart.
#[tokio::test]
async fn a_node_is_heard_when_its_clock_has_passed_its_former_start() {
    let in_groups = |it: Setup| it.coordination(coordination(), Span::ZERO);
    tokio::join!(passes(ME, |it| it), passes(NodeId(3), in_groups));
}

async fn passes(me: NodeId, with: impl Fn(Setup) -> Setup) {
    let keyring = Keyring::of(Key::random().unwrap());
    let first = Node::start(setup(NodeId(1), &keyring, &[])).await;
    start_at(me, since_1970() + 3_000_000, &keyring, first.address());
    while first.traffic().received.get() == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    let (folder, seeds) = (folder(&me.0.to_string()), [first.address()]);
    let second = || with(setup(me, &keyring, &seeds)).state(&folder);
    let mut node = Node::start(second()).await;
    // It is refused, and learns of it.
    node.wait_for(is_superseded).await;
    assert!(first.traffic().old_epoch.get() > 0);
    node.meets(first.id()).await;
    let list = first.members();
    assert!(list.iter().any(|it| it.member.id == me), "{list:?}");
    node.kill().await;
    // The epoch that it took while it ran is stored, too.
    let refused = first.traffic().old_epoch.get();
    let mut node = Node::start(second().seal_clock(an_hour_behind)).await;
    node.meets(first.id()).await;
    assert_eq!(first.traffic().old_epoch.get(), refused);
    node.kill().await;
    std::fs::remove_dir_all(folder).unwrap();
}

fn an_hour_behind() -> u64 {
    since_1970() - 3_600_000_000
}

/// The control is the same start without the folder.
#[tokio::test]
async fn a_node_with_a_folder_is_accepted_though_its_clock_was_set_back() {
    let keyring = Keyring::of(Key::random().unwrap());
    let folder = folder("set-back");
    let first = Node::start(setup(NodeId(1), &keyring, &[])).await;
    let seeds = [first.address()];
    let second = || setup(ME, &keyring, &seeds);
    let mut before = Node::start(second().state(&folder)).await;
    before.meets(first.id()).await;
    let again = Host::start(second().state(&folder)).await.unwrap_err();
    assert!(matches!(again, HostError::Store(_)), "{again}");
    before.kill().await;

    let mut forgetful = Node::start(second().seal_clock(an_hour_behind)).await;
    forgetful.wait_for(is_superseded).await;
    forgetful.kill().await;
    let refused = first.traffic().old_epoch.get();
    assert!(refused > 0);

    // Twice, as a node that keeps starting while its clock is wrong.
    for _ in 0..2 {
        let setup = second().state(&folder).seal_clock(an_hour_behind);
        let mut later = Node::start(setup).await;
        later.meets(first.id()).await;
        assert_eq!(first.traffic().old_epoch.get(), refused);
        later.kill().await;
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn decades_ahead() -> u64 {
    since_1970() + 30 * 365 * 86_400_000_000
}

/// Its next start is a present one, which a later start of the same id supersedes.
#[tokio::test]
async fn a_clock_that_was_decades_ahead_is_forgotten_at_the_next_start() {
    let keyring = Keyring::of(Key::random().unwrap());
    let folder = folder("ahead");
    let first = Node::start(setup(NodeId(1), &keyring, &[])).await;
    let seeds = [first.address()];
    let second = || setup(ME, &keyring, &seeds).state(&folder);
    let mut ahead = Node::start(second().seal_clock(decades_ahead)).await;
    ahead.meets(first.id()).await;
    ahead.kill().await;
    let mut node = Node::start(second()).await;
    node.meets(first.id()).await;
    assert_eq!(first.traffic().old_epoch.get(), 0);
    start_at(ME, since_1970(), &keyring, first.address());
    node.wait_for(is_superseded).await;
    node.kill().await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// The later one of two processes with one id is accepted, however long both run.
#[tokio::test]
async fn an_earlier_process_with_the_same_id_stays_mute() {
    let keyring = Keyring::of(Key::random().unwrap());
    let first = Node::start(setup(NodeId(1), &keyring, &[])).await;
    let mut second = Node::start(setup(ME, &keyring, &[first.address()])).await;
    second.meets(first.id()).await;
    start_at(ME, since_1970(), &keyring, first.address());
    second.wait_for(is_superseded).await;
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
