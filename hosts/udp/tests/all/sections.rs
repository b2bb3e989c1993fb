//! Real nodes whose threads take turns in sections of the mesh.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a test fails by panicking"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use selvedge::{Exclusion, Reject};
use selvedge_camera::{Refusal, sections};
use selvedge_core::shared::gate::{EnterError, Limits, TryEnterError};
use selvedge_core::{Delta, Member, Ratio, Span};
use selvedge_membership::{Config, Event};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::{Clock, Host, NoEntry, Refused, SectionGate, Seed, Seen, Setup, Told, Weather};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// Nodes that lose one datagram in twenty, and seal them.
struct Bench {
    weather: watch::Sender<Weather>,
    events: mpsc::Sender<Seen>,
    seen: mpsc::Receiver<Seen>,
    keyring: Keyring,
    nodes: u32,
}

impl Bench {
    fn new(nodes: u32) -> Self {
        let (events, seen) = mpsc::channel(1_024);
        Self {
            weather: watch::Sender::new(Weather::lossy(Ratio::new(1, 20))),
            events,
            seen,
            keyring: Keyring::of(Key::random().unwrap()),
            nodes,
        }
    }

    fn setup(&self, id: u64, seeds: &[SocketAddr]) -> Setup {
        let section = selvedge_camera::Config {
            resend: Span::millis(50),
            resend_limit: Span::millis(200),
            refresh: Span::secs(1),
            ..selvedge_camera::Config::new(self.nodes)
        };
        Setup {
            me: Member::new(id, 0),
            listen: "127.0.0.1:0".parse().unwrap(),
            socket: None,
            advertise: Vec::new(),
            seeds: seeds.iter().copied().map(Seed::from).collect(),
            config: Config {
                period: Span::millis(200),
                jitter: Span::millis(20),
                probe_timeout: Span::millis(60),
                ..Config::default()
            },
            exclusion: Some(Exclusion {
                sections: sections::Config::with(section),
                counting: None,
            }),
            election: None,
            seal: Some(Seal {
                keyring: self.keyring.clone(),
                group: "test".to_owned(),
                rate: None,
            }),
            seed: Some(id),
            clock: Clock::start(),
            weather: self.weather.subscribe(),
            events: self.events.clone(),
        }
    }

    /// Nodes that all know one another.
    async fn start(&mut self) -> Vec<Host> {
        let mut hosts = Vec::new();
        let mut seeds = Vec::new();
        for id in 1..=u64::from(self.nodes) {
            let host = Host::start(self.setup(id, &seeds)).await.unwrap();
            seeds.truncate(0);
            seeds.push(host.address());
            hosts.push(host);
        }
        let nodes = u64::from(self.nodes);
        let mut joins = nodes * (nodes - 1);
        while joins > 0 {
            let seen = timeout(PATIENCE, self.seen.recv()).await.unwrap().unwrap();
            joins -= u64::from(matches!(
                seen.event,
                Told::Membership(Event::Membership(Delta::Joined(_)))
            ));
        }
        hosts
    }
}

async fn gate(host: &Host, name: &str) -> SectionGate {
    let name = name.parse().unwrap();
    host.section(name, None, Limits::default()).await.unwrap()
}

/// Waits for threads while the nodes run.
async fn join<T: Send + 'static>(threads: Vec<thread::JoinHandle<T>>) -> Vec<T> {
    let all =
        tokio::task::spawn_blocking(|| threads.into_iter().map(|it| it.join().unwrap()).collect());
    timeout(PATIENCE * 4, all).await.unwrap().unwrap()
}

#[tokio::test]
async fn threads_of_three_nodes_take_turns_and_tokens_rise() {
    let mut bench = Bench::new(3);
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
    let mut bench = Bench::new(2);
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

    // The holder's node says good-bye; the guard is held a little longer.
    let first = hosts.remove(0);
    let leaving = tokio::spawn(first.leave());
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
async fn too_few_nodes_a_second_gate_and_a_node_without_sections_are_refused() {
    let bench = Bench::new(3);
    let host = Host::start(bench.setup(1, &[])).await.unwrap();
    let door = gate(&host, "door").await;
    let refusal = Refusal::TooFew {
        answered: 1,
        upper: 3,
    };
    let refused = timeout(PATIENCE, door.enter()).await.unwrap().unwrap_err();
    assert_eq!(refused, EnterError::Refused(NoEntry::Refused(refusal)));
    let name = "door".parse().unwrap();
    let limits = Limits::default();
    let refused = host.section(name, None, limits).await.unwrap_err();
    assert_eq!(refused, Refused::HasGate(name));
    host.bound(1).await.unwrap();
    drop(timeout(PATIENCE, door.enter()).await.unwrap().unwrap());
    // Without any gate the section is closed, and may be opened anew.
    drop(door);
    host.section(name, None, limits).await.unwrap();

    let mut setup = bench.setup(2, &[]);
    setup.exclusion = None;
    let plain = Host::start(setup).await.unwrap();
    let refused = plain.section(name, None, limits).await.unwrap_err();
    assert_eq!(refused, Refused::Reject(Reject::NoExclusion));
}

/// With a takeover, and a resource that would check tokens.
#[tokio::test]
async fn a_holder_that_is_killed_is_passed_over() {
    let mut bench = Bench::new(3);
    let mut hosts = bench.start().await;
    let config = selvedge_camera::Config {
        takeover: Some(Span::millis(300)),
        resend: Span::millis(50),
        resend_limit: Span::millis(200),
        ..selvedge_camera::Config::new(3)
    };
    let name = "door".parse().unwrap();
    let limits = Limits::default();
    let mut gates = Vec::new();
    for host in &hosts {
        gates.push(host.section(name, Some(config), limits).await.unwrap());
    }
    let held = timeout(PATIENCE, gates[2].enter()).await.unwrap().unwrap();
    hosts.pop().unwrap().kill().await;
    assert!(held.is_closed());
    let guard = timeout(PATIENCE, gates[0].enter()).await.unwrap().unwrap();
    assert!(guard.token() > held.token());
}

/// A gate that is asked for in vain is refused by name, whether the node is in the mesh or not; and
/// one that is gone stands in the way of none.
#[tokio::test]
async fn a_section_that_cannot_be_opened_is_refused_and_a_gate_that_is_gone_is_replaced() {
    let bench = Bench::new(1);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let seeds = [silent.local_addr().unwrap()];
    for (seeds, is_in) in [(&seeds[..], false), (&[], true)] {
        let mut setup = bench.setup(1, seeds);
        setup.exclusion.as_mut().unwrap().sections.open_limit = 1;
        let host = Host::start(setup).await.unwrap();
        let section = |name: &'static str, config| {
            host.section(name.parse().unwrap(), config, Limits::default())
        };
        let bad = selvedge_camera::Config {
            resend: Span::ZERO,
            ..selvedge_camera::Config::new(1)
        };
        let refused = section("door", Some(bad)).await.unwrap_err();
        assert!(
            matches!(
                refused,
                Refused::Reject(Reject::Sections(sections::Reject::Config(_)))
            ),
            "{refused:?}"
        );
        for _ in 0..20 {
            let door = section("door", None).await.unwrap();
            let full = Refused::Reject(Reject::Sections(sections::Reject::Full { limit: 1 }));
            assert_eq!(section("gate", None).await.unwrap_err(), full);
            let guard = if is_in {
                Some(timeout(PATIENCE, door.enter()).await.unwrap().unwrap())
            } else {
                assert_eq!(door.try_enter().unwrap_err(), TryEnterError::WouldWait);
                None
            };
            drop(door);
            // While the former entry lasts nobody gets in by the new gate.
            let again = section("door", None).await.unwrap();
            let taken = section("door", None).await.unwrap_err();
            assert_eq!(taken, Refused::HasGate("door".parse().unwrap()));
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
            let other = section("gate", None).await.unwrap();
            if is_in {
                drop(timeout(PATIENCE, other.enter()).await.unwrap().unwrap());
            }
        }
    }
}
