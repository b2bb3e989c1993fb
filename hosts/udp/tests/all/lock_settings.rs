//! Settings of the locks of a node, on three nodes at loopback: permissions that are kept, and entries
//! with a quorum.

use core::task::{Context, Poll};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use selvedge_camera::sections::{KIND, Name};
use selvedge_core::{NodeId, Span};
use selvedge_membership::SuspicionLength;
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::transport::{Datagrams, Transport, Udp};
use selvedge_udp::{Host, HostError, LockError, Setup};
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE, is_failure, until};

/// Longer than an entry takes, many times.
const SHORT: Duration = Duration::from_millis(400);

/// Sockets that count the frames of locks that they send.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn sent(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Transport for Counted {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        let socket = Box::new(Udp::new()).bind(listen)?;
        Ok(Box::new(Counting(socket, *self)))
    }
}

#[derive(Debug)]
struct Counting(Box<dyn Datagrams>, Counted);

impl Datagrams for Counting {
    fn local(&self) -> SocketAddr {
        self.0.local()
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        self.0.reaches(address)
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.0.poll_recv(cx, buffer)
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.try_recv(buffer)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        // The second byte of a frame in the clear is its kind.
        let is_of_lock = datagram.get(1) == Some(&KIND);
        self.1
            .0
            .fetch_add(usize::from(is_of_lock), Ordering::SeqCst);
        self.0.poll_send(cx, datagram, to)
    }
}

fn door() -> Name {
    "door".parse().unwrap()
}

/// Three nodes that know one another and declare no node failed for minutes.
async fn start(change: impl Fn(u64, Setup) -> Setup) -> Vec<Node> {
    let config = bench::config().with_suspicion(SuspicionLength::Fixed(1_000));
    let mut nodes: Vec<Node> = Vec::new();
    for id in 1..=3 {
        let seeds: Vec<_> = nodes.first().map(|it| it.address()).into_iter().collect();
        let setup = bench::setup(id, &seeds).membership(config.clone()).locks(3);
        nodes.push(Node::start(change(id, setup)).await);
    }
    until(|| nodes.iter().all(|it| it.live() == 3)).await;
    nodes
}

/// Three nodes of which the first keeps permissions for this time, and the frames of locks that it
/// sends.
async fn keeping(time: Option<Span>) -> (Vec<Node>, Counted) {
    let counted = Counted::default();
    let change = |id, setup: Setup| match (id, time) {
        (1, Some(time)) => setup.keep(time).transport(counted.clone()),
        (1, None) => setup.transport(counted.clone()),
        // It waits for no node that has nothing.
        _ => setup.eager(),
    };
    (start(change).await, counted)
}

async fn enter(gate: &selvedge_udp::Gate) -> selvedge_udp::Guard {
    timeout(PATIENCE, gate.enter()).await.unwrap().unwrap()
}

/// Without `keep` the first exit sends a RELEASE, and each entry asks all.
#[tokio::test]
async fn a_node_that_keeps_a_lock_enters_again_without_a_message() {
    for time in [Some(Span::secs(600)), None] {
        let (nodes, counted) = keeping(time).await;
        let gate = nodes[0].gate(door()).await.unwrap();
        let first = enter(&gate).await;
        let (token, before) = (first.token(), counted.sent());
        drop(first);
        for _ in 0..3 {
            assert!(enter(&gate).await.token() > token);
        }
        let later = counted.sent() - before;
        assert_eq!(later == 0, time.is_some(), "{later} frames");
        // Another node has its turn all the same.
        let other = nodes[1].lock(door());
        let other = timeout(PATIENCE, other).await.unwrap().unwrap();
        assert!(other.token() > token);
    }
}

/// A node that dies with permissions holds up the lock as a holder does, until it gives them back.
#[tokio::test]
async fn permissions_are_kept_no_longer_than_was_set() {
    for time in [Span::secs(600), Span::millis(50)] {
        let (nodes, counted) = keeping(Some(time)).await;
        let gate = nodes[0].gate(door()).await.unwrap();
        let first = enter(&gate).await;
        let before = counted.sent();
        drop(first);
        let is_short = time < Span::secs(1);
        if is_short {
            // Sooner than by default.
            let given_back = until(|| counted.sent() > before);
            timeout(Duration::from_secs(8), given_back).await.unwrap();
        }
        nodes[0].kill().await;
        let waits = if is_short { PATIENCE } else { SHORT };
        let entered = nodes[1].lock_until(door(), sleep(waits)).await;
        match entered {
            Ok(_) => assert!(is_short),
            Err(LockError::TimedOut { waits_for }) => {
                assert!(!is_short);
                assert_eq!(waits_for.first().map(|it| it.id), Some(NodeId(1)));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A lock without a gate is closed here, so nothing is kept.
#[tokio::test]
async fn the_last_gate_gives_permissions_back() {
    let (nodes, counted) = keeping(Some(Span::secs(600))).await;
    let first = timeout(PATIENCE, nodes[0].lock(door())).await.unwrap();
    let before = counted.sent();
    drop(first);
    until(|| counted.sent() > before).await;
    nodes[0].kill().await;
    let next = nodes[1].lock_until(door(), sleep(PATIENCE)).await;
    drop(next.unwrap());
}

/// The third node does not answer, and no node knows it as failed yet.
#[tokio::test]
async fn an_eager_node_enters_with_a_quorum_and_another_waits_for_all() {
    let control = FaultControl::new(Faults::none());
    let change = |id, setup: Setup| {
        let setup = setup.transport(Faulty::new(Udp::new(), &control, id));
        if id == 1 { setup.eager() } else { setup }
    };
    let mut nodes = start(change).await;
    let silent = nodes[2].address();
    control.change(|it| it.cut_off = [silent].into());
    // The answer of the other one may take longer on a busy machine.
    let waits_for_silent = async {
        loop {
            let refused = nodes[1].lock_until(door(), sleep(SHORT)).await.unwrap_err();
            let LockError::TimedOut { waits_for } = refused else {
                panic!("{refused}");
            };
            if waits_for.iter().map(|it| it.id.0).eq([3]) {
                return;
            }
        }
    };
    timeout(PATIENCE, waits_for_silent).await.unwrap();
    let entered = nodes[0].lock_until(door(), sleep(PATIENCE)).await;
    drop(entered.unwrap());
    assert!(!nodes[0].passed().iter().any(is_failure));
}

#[tokio::test]
async fn a_setting_of_locks_without_locks_is_refused_with_the_remedy() {
    let plain = || bench::setup(1, &[]);
    for (setup, named) in [
        (plain().takeover(Span::secs(1)), "takeover"),
        (plain().keep(Span::secs(1)), "keep"),
        (plain().eager(), "eager"),
    ] {
        let refused = Host::start(setup).await.unwrap_err();
        assert!(matches!(refused, HostError::NoLocks { setting } if setting == named));
        let text = refused.to_string();
        assert!(
            text.contains("give Setup::locks") && text.contains(named),
            "{text}"
        );
    }
}
