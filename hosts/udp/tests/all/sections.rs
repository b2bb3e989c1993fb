//! Real nodes whose threads take turns in sections of the mesh.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use selvedge::Exclusion;
use selvedge_camera::{Refusal, sections};
use selvedge_core::shared::gate::{EnterError, Limits, TryEnterError};
use selvedge_core::{Delta, Incarnation, Member, Ratio, Span};
use selvedge_membership::{Command, Event};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::transport::Udp;
use selvedge_udp::{Error, Gate, Guard, LockError, NoEntry, NodeEvent, Reject, Setup};
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE};
use crate::datagrams::setup;
use crate::network::Network;

/// Nodes that lose one datagram in twenty, and seal them.
struct Bench {
    faults: FaultControl,
    keyring: Keyring,
    nodes: u32,
    /// The bound of the number of lives.
    upper: u32,
    takeover: Option<Span>,
}

fn paced(nodes: u32) -> selvedge_camera::Config {
    selvedge_camera::Config::new(nodes)
        .with_resend(Span::millis(50))
        .with_resend_limit(Span::millis(200))
        .with_refresh(Span::secs(1))
}

impl Bench {
    fn new(nodes: u32) -> Self {
        Self {
            faults: FaultControl::new(Faults::none().with_loss(Ratio::new(1, 20))),
            keyring: Keyring::of(Key::random().unwrap()),
            nodes,
            upper: nodes,
            takeover: None,
        }
    }

    fn setup(&self, id: u64, seeds: &[SocketAddr], open_limit: Option<u32>) -> Setup {
        let mut setup = self.plain(id, seeds);
        if let Some(after) = self.takeover {
            setup = setup.takeover(after);
        }
        setup.exclusion(Exclusion::new(
            sections::Config::with(paced(self.upper))
                .with_open_limit(open_limit.unwrap_or(sections::Config::new(1).open_limit)),
        ))
    }

    /// Without locks.
    fn plain(&self, id: u64, seeds: &[SocketAddr]) -> Setup {
        bench::setup(id, seeds)
            .seal(Seal::new(self.keyring.clone(), "test"))
            .transport(Faulty::new(Udp::new(), &self.faults, id))
    }

    /// Nodes that all know one another.
    async fn start(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for id in 1..=u64::from(self.nodes) {
            let seeds: Vec<_> = nodes.last().map(|it| it.address()).into_iter().collect();
            nodes.push(Node::start(self.setup(id, &seeds, None)).await);
        }
        let all = nodes.len();
        bench::until(|| nodes.iter().all(|it| it.live() == all)).await;
        nodes
    }
}

async fn gate(node: &Node, name: &str) -> Gate {
    node.gate(name.parse().unwrap()).await.unwrap()
}

/// Waits for threads while the nodes run.
async fn join<T: Send + 'static>(threads: Vec<thread::JoinHandle<T>>) -> Vec<T> {
    let all =
        tokio::task::spawn_blocking(|| threads.into_iter().map(|it| it.join().unwrap()).collect());
    timeout(PATIENCE * 4, all).await.unwrap().unwrap()
}

#[tokio::test]
async fn threads_of_three_nodes_take_turns_and_tokens_rise() {
    let bench = Bench::new(3);
    let hosts = bench.start().await;
    let inside = Arc::new(AtomicBool::new(false));
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let mut threads = Vec::new();
    for host in &hosts {
        let gate = gate(host, "turns").await;
        for _ in 0..3 {
            let (gate, inside) = (gate.clone(), Arc::clone(&inside));
            let tokens = Arc::clone(&tokens);
            threads.push(thread::spawn(move || {
                for _ in 0..5 {
                    let guard = gate.blocking_enter().unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                    tokens.lock().unwrap().push(guard.token());
                    thread::sleep(Duration::from_millis(1));
                    assert!(inside.swap(false, Ordering::SeqCst));
                    assert!(!guard.is_fenced());
                }
            }));
        }
    }
    assert_eq!(join(threads).await.len(), 9);
    let tokens = tokens.lock().unwrap().clone();
    assert_eq!(tokens.len(), 45);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    for host in &hosts {
        let report = host.traffic().report();
        assert_eq!(report.faulty(), 0, "{report:?}");
    }
    for host in hosts {
        timeout(PATIENCE, host.leave()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_does_not_want_to_wait_gives_up_and_a_good_bye_waits_for_the_guard() {
    let bench = Bench::new(2);
    let mut hosts = bench.start().await;
    let (one, two) = (gate(&hosts[0], "door").await, gate(&hosts[1], "door").await);
    assert_eq!(two.try_enter().unwrap_err(), TryEnterError::WouldWait);
    let guard = timeout(PATIENCE, one.enter()).await.unwrap().unwrap();
    let waits = two.clone();
    let waited = thread::spawn(move || {
        let outcome = waits.blocking_enter_timeout(Duration::from_millis(300));
        outcome.map(drop)
    });
    assert_eq!(join(vec![waited]).await, [Err(EnterError::TimedOut)]);

    // The holder's node leaves; the guard is held a little longer.
    let first = hosts.remove(0);
    let first = (*first).clone();
    let leaving = tokio::spawn(async move { first.leave().await });
    let second = two.enter();
    tokio::pin!(second);
    assert!(
        timeout(Duration::from_millis(300), &mut second)
            .await
            .is_err()
    );
    assert!(!leaving.is_finished() && guard.is_closed() && !guard.is_fenced());
    assert_eq!(one.enter().await.unwrap_err(), EnterError::Closed);
    let token = guard.token();
    drop(guard);
    let guard = timeout(PATIENCE, &mut second).await.unwrap().unwrap();
    assert!(guard.token() > token);
    timeout(PATIENCE, leaving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn too_few_nodes_and_a_node_without_locks_are_refused() {
    let bench = Bench::new(3);
    let node = Node::start(bench.setup(1, &[], None)).await;
    let name = "door".parse().unwrap();
    let refusal = Refusal::TooFew {
        answered: 1,
        max_lives: 3,
    };
    let refused = timeout(PATIENCE, node.lock(name)).await.unwrap();
    let too_few = EnterError::Refused(NoEntry::Refused(refusal));
    assert_eq!(refused.unwrap_err(), LockError::NotEntered(too_few));
    node.set_max_lives(1).await.unwrap();
    drop(timeout(PATIENCE, node.lock(name)).await.unwrap().unwrap());

    let plain = Node::start(bench.plain(2, &[])).await;
    let refused = plain.lock(name).await.unwrap_err();
    let no_locks = Error::Rejected(Reject::Node(selvedge::Reject::NoExclusion));
    assert_eq!(refused, LockError::Unavailable(no_locks));
}

/// With a takeover, and a resource that would check tokens.
#[tokio::test]
async fn a_holder_that_is_killed_is_passed_over() {
    let bench = Bench::new(3);
    let mut nodes = bench.start().await;
    let config = paced(3).with_takeover(Some(Span::millis(300)));
    let name = "door".parse().unwrap();
    let mut gates = Vec::new();
    for node in &nodes {
        let gate = node.gate_with(name, Some(config), Limits::default());
        gates.push(gate.await.unwrap());
    }
    let held = timeout(PATIENCE, gates[2].enter()).await.unwrap().unwrap();
    nodes.pop().unwrap().kill().await;
    assert!(held.is_closed());
    let guard = timeout(PATIENCE, gates[0].enter()).await.unwrap().unwrap();
    assert!(guard.token() > held.token());
}

/// Nodes of which the last was killed in a lock, as the others know, and its guard.
async fn killed_inside(bench: &Bench) -> (Vec<Node>, Guard) {
    let mut nodes = bench.start().await;
    let last = nodes.pop().unwrap();
    let held = timeout(PATIENCE, last.lock(door())).await;
    last.kill().await;
    let failed = NodeEvent::Membership(Event::Changed(Delta::Failed(last.state().me)));
    for node in &mut nodes {
        node.wait_for(|it| *it == failed).await;
    }
    (nodes, held.unwrap().unwrap())
}

fn door() -> sections::Name {
    "door".parse().unwrap()
}

/// It may be slow and not dead, so by default it is waited for.
#[tokio::test]
async fn a_lock_that_a_killed_node_holds_times_out_and_names_that_node() {
    let bench = Bench::new(3);
    let (nodes, held) = killed_inside(&bench).await;
    let node = nodes[0].clone();
    let blocks = move || node.blocking_lock_timeout(door(), Duration::from_millis(500));
    let timed_out = join(vec![thread::spawn(blocks)]).await.pop();
    let holder = Member::new(3, 0);
    let refused = timed_out.unwrap().unwrap_err();
    let waits_for = [holder].into();
    assert_eq!(refused, LockError::TimedOut { waits_for });
    assert!(
        refused.to_string().contains("it waits for 3#0"),
        "{refused}"
    );

    let waits = nodes[0].lock_until(door(), sleep(Duration::from_millis(500)));
    let looks = async {
        sleep(Duration::from_millis(250)).await;
        nodes[0].waits_for(door()).await.unwrap()
    };
    let (waited, looked) = tokio::join!(waits, looks);
    assert_eq!((waited.unwrap_err(), &*looked), (refused, &[holder][..]));
    // No user waits any more, so the node does not.
    let is_over = async { while !nodes[0].waits_for(door()).await.unwrap().is_empty() {} };
    timeout(PATIENCE, is_over).await.unwrap();

    // An operator knows that it is dead.
    let waits = nodes[1].lock(door());
    let confirms = async {
        let confirm = Command::Confirm(holder);
        nodes[0].command(confirm).await.unwrap();
    };
    let (entered, ()) = timeout(PATIENCE, async { tokio::join!(waits, confirms) })
        .await
        .unwrap();
    assert!(entered.unwrap().token() > held.token());
}

/// Its later life ends the former one.
#[tokio::test]
async fn a_lock_that_a_killed_node_holds_is_free_when_that_node_is_started_again() {
    let bench = Bench {
        upper: 5,
        ..Bench::new(4)
    };
    let (nodes, held) = killed_inside(&bench).await;
    let waits = nodes[0].lock(door());
    let again = bench.setup(4, &[nodes[0].address()], None);
    let starts = Node::start(again.life(Incarnation(1)));
    let (entered, _again) = timeout(PATIENCE, async { tokio::join!(waits, starts) })
        .await
        .unwrap();
    assert!(entered.unwrap().token() > held.token());
}

/// With a takeover of all locks of a node.
#[tokio::test]
async fn a_lock_that_a_killed_node_holds_is_taken_over_by_a_greater_token() {
    let bench = Bench {
        takeover: Some(Span::millis(300)),
        ..Bench::new(3)
    };
    let (nodes, held) = killed_inside(&bench).await;
    let entered = nodes[0].lock_until(door(), sleep(PATIENCE)).await;
    assert!(entered.unwrap().token() > held.token());
}

/// No member is named where this node itself is the reason.
#[tokio::test]
async fn a_lock_that_is_held_here_or_waits_to_join_times_out_and_names_no_node() {
    let bench = Bench::new(1);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let seeds = [silent.local_addr().unwrap()];
    for seeds in [&seeds[..], &[]] {
        let node = Node::start(bench.setup(1, seeds, None)).await;
        let _held = if seeds.is_empty() {
            Some(timeout(PATIENCE, node.lock(door())).await.unwrap())
        } else {
            None
        };
        let waits = node.lock_until(door(), sleep(Duration::from_millis(50)));
        let refused = waits.await.unwrap_err();
        let waits_for = [].into();
        assert_eq!(refused, LockError::TimedOut { waits_for });
        assert!(refused.to_string().contains("no known member"), "{refused}");
        node.kill().await;
        assert_eq!(node.waits_for(door()).await, Err(Error::Closed));
    }
}

/// Gates of one name queue together; other settings for a section in use are refused, and taken
/// when it is not.
#[tokio::test]
async fn all_gates_of_a_name_queue_together_and_have_one_setting() {
    let node = Node::start(Bench::new(1).setup(1, &[], None)).await;
    let name = "door".parse().unwrap();
    let limits = Limits {
        handovers: 1,
        ..Limits::default()
    };
    let first = node.gate(name).await.unwrap();
    let other = Err(Error::Rejected(Reject::OtherSettings(name)));
    let with = async || node.gate_with(name, None, limits).await;
    assert_eq!(with().await.map(drop), other);
    let second = node.gate(name).await.unwrap();
    let guard = timeout(PATIENCE, first.enter()).await.unwrap().unwrap();
    assert_eq!(second.try_enter().unwrap_err(), TryEnterError::WouldWait);
    drop((first, second));
    // The guard is there still.
    assert_eq!(with().await.map(drop), other);
    let again = node.gate(name).await.unwrap();
    drop(guard);
    drop(timeout(PATIENCE, again.enter()).await.unwrap().unwrap());
    drop(again);
    let opened = async {
        loop {
            match with().await {
                Ok(gate) => return gate,
                refused @ Err(_) => assert_eq!(refused.map(drop), other),
            }
        }
    };
    timeout(PATIENCE, opened).await.unwrap();
}

/// A gate that cannot be had is refused with the reason, whether the node is in the mesh or not;
/// and a dropped gate is in the way of none.
#[tokio::test]
async fn a_section_that_cannot_be_opened_is_refused_and_a_gate_that_is_gone_is_replaced() {
    let bench = Bench::new(1);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let seeds = [silent.local_addr().unwrap()];
    for (seeds, is_in) in [(&seeds[..], false), (&[], true)] {
        let node = Node::start(bench.setup(1, seeds, Some(1))).await;
        let gate = |name: &'static str| node.gate(name.parse().unwrap());
        let bad = selvedge_camera::Config::new(1).with_resend(Span::ZERO);
        let refused = node
            .gate_with("door".parse().unwrap(), Some(bad), Limits::default())
            .await
            .unwrap_err();
        assert!(
            matches!(
                refused,
                Error::Rejected(Reject::Node(selvedge::Reject::Sections(
                    sections::Reject::Config(_)
                )))
            ),
            "{refused:?}"
        );
        for _ in 0..20 {
            let door = gate("door").await.unwrap();
            let full = selvedge::Reject::Sections(sections::Reject::Full { limit: 1 });
            let refused = gate("gate").await.unwrap_err();
            assert_eq!(refused, Error::Rejected(Reject::Node(full)));
            let guard = if is_in {
                Some(timeout(PATIENCE, door.enter()).await.unwrap().unwrap())
            } else {
                assert_eq!(door.try_enter().unwrap_err(), TryEnterError::WouldWait);
                None
            };
            drop(door);
            // While the former entry lasts no user gets in by the new gate.
            let again = gate("door").await.unwrap();
            if let Some(guard) = guard {
                let enter = again.enter();
                tokio::pin!(enter);
                assert!(timeout(Duration::from_millis(5), &mut enter).await.is_err());
                let token = guard.token();
                drop(guard);
                let next = timeout(PATIENCE, enter).await.unwrap().unwrap();
                assert!(next.token() > token);
            }
            drop(again);
            // Another one takes the only place.
            let other = gate("gate").await.unwrap();
            if is_in {
                drop(timeout(PATIENCE, other.enter()).await.unwrap().unwrap());
            }
        }
    }
}

/// Before a node has joined no section is open: a section without gates is requested again, with
/// other limits.
#[tokio::test(start_paused = true)]
async fn a_section_that_was_never_open_takes_other_settings() {
    let network = Network::default();
    let node = setup(&network, 1, &[9]).locks(1);
    let node = Node::start(node).await;
    let name = "door".parse().unwrap();
    drop(node.gate(name).await.unwrap());
    let limits = Limits {
        waiters: NonZeroUsize::MIN,
        ..Limits::default()
    };
    let gate = node.gate_with(name, None, limits).await.unwrap();
    let first = gate.enter();
    tokio::pin!(first);
    assert!(timeout(Duration::from_millis(1), &mut first).await.is_err());
    let second = timeout(PATIENCE, gate.enter()).await.unwrap();
    assert_eq!(second.unwrap_err(), EnterError::Full { limit: 1 });
}

/// All places of a node are taken by sections with other users: its own gate is closed, and does
/// not wait for a place that may never come.
#[tokio::test(start_paused = true)]
async fn a_gate_to_a_section_without_room_is_closed() {
    let network = Network::default();
    let few = sections::Config::new(2)
        .with_open_limit(1)
        .with_passive_limit(1);
    let exclusion = Exclusion::new(few);
    let one = Node::start(setup(&network, 1, &[]).locks(2)).await;
    let two = Node::start(setup(&network, 2, &[1]).exclusion(exclusion)).await;
    bench::until(|| one.live() == 2 && two.live() == 2).await;
    let lock = async |name: &str| {
        let lock = timeout(PATIENCE, one.lock(name.parse().unwrap()));
        lock.await.unwrap().unwrap()
    };
    let own = gate(&two, "own").await;
    let _held = (lock("own").await, lock("other").await);
    drop(own);
    let third = gate(&two, "third").await;
    let entered = timeout(PATIENCE, third.enter()).await.unwrap();
    assert_eq!(entered.unwrap_err(), EnterError::Closed);
}

/// A lock that waits for its node to join can be given up, and a lock of a stopped node returns
/// that.
#[tokio::test]
async fn a_lock_waits_for_the_mesh_and_ends_with_the_node() {
    let bench = Bench::new(1);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let node = Node::start(bench.setup(1, &[silent.local_addr().unwrap()], None)).await;
    let name = "door".parse().unwrap();
    let waits = timeout(Duration::from_millis(100), node.lock(name)).await;
    assert!(waits.is_err());
    let handle = (*node).clone();
    let waits = tokio::spawn(async move { handle.lock(name).await.map(drop) });
    tokio::task::yield_now().await;
    node.kill().await;
    let ended = timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(matches!(
        ended,
        Err(LockError::NotEntered(EnterError::Closed)
            | LockError::Unavailable(Error::Closed | Error::Unanswered))
    ));
    let late = node.lock(name).await.unwrap_err();
    assert_eq!(late, LockError::Unavailable(Error::Closed));
}
