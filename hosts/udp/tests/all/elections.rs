//! Real nodes that elect a leader, and the application's threads and tasks beside them.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_core,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use std::net::SocketAddr;
use std::time::Duration;

use selvedge::{Election, Reject};
use selvedge_celect::{Ballot, Config as Celect, Event, Reject as NoElection};
use selvedge_core::shared::Error;
use selvedge_core::{Member, NodeId, Ratio, Span};
use selvedge_membership::Config;
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::{Clock, Elections, Host, Seed, Seen, Setup, Told, Weather};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// Nodes that lose one datagram in twenty, and seal them.
struct Bench {
    weather: watch::Sender<Weather>,
    events: mpsc::Sender<Seen>,
    seen: mpsc::Receiver<Seen>,
    keyring: Keyring,
}

impl Bench {
    fn new() -> Self {
        let (events, seen) = mpsc::channel(1_024);
        Self {
            weather: watch::Sender::new(Weather::lossy(Ratio::new(1, 20))),
            events,
            seen,
            keyring: Keyring::of(Key::random().unwrap()),
        }
    }

    fn setup(&self, id: u64, seeds: &[SocketAddr]) -> Setup {
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
            exclusion: None,
            election: Some(Election {
                config: Celect::new(1, 1)
                    .with_timeout(Span::millis(60))
                    .with_resend(Span::millis(60)),
                label: (*b"leader").into(),
                patience: Span::secs(1),
            }),
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

    async fn start(&self, nodes: u64) -> Vec<Host> {
        let mut hosts: Vec<Host> = Vec::new();
        for id in 1..=nodes {
            let seeds: Vec<SocketAddr> = hosts.first().map(Host::address).into_iter().collect();
            hosts.push(Host::start(self.setup(id, &seeds)).await.unwrap());
        }
        hosts
    }
}

/// Waits until all follow one of them, and nobody else.
async fn agreed(hosts: &[Host]) -> (Member, Ballot) {
    let all: Vec<Elections> = hosts.iter().map(|it| it.elections().unwrap()).collect();
    let ids: Vec<NodeId> = hosts.iter().map(Host::id).collect();
    let agreed = async {
        loop {
            let leaders: Vec<_> = all.iter().map(Elections::leader).collect();
            if let Some(Some(first)) = leaders.first()
                && ids.contains(&first.0.id)
                && leaders.iter().all(|it| it.as_ref() == Some(first))
            {
                return *first;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, agreed).await.unwrap()
}

#[tokio::test]
async fn a_leader_comes_unasked_is_replaced_when_killed_and_when_it_leaves() {
    let bench = Bench::new();
    let mut hosts = bench.start(4).await;
    let (first, ballot) = agreed(&hosts).await;
    let at = hosts.iter().position(|it| it.id() == first.id).unwrap();
    let killed = hosts.remove(at);
    let elections = killed.elections().unwrap();
    assert!(
        elections.leads_until().is_some(),
        "without a lease for ever"
    );
    killed.kill().await;
    assert_eq!((elections.leader(), elections.leads_until()), (None, None));
    let (second, next) = agreed(&hosts).await;
    assert!(second.id != first.id && next > ballot);
    let at = hosts.iter().position(|it| it.id() == second.id).unwrap();
    timeout(PATIENCE, hosts.remove(at).leave())
        .await
        .unwrap()
        .unwrap();
    let (third, last) = agreed(&hosts).await;
    assert!(![first.id, second.id].contains(&third.id) && last > next);
    for host in &hosts {
        let report = host.traffic().report();
        assert_eq!(report.faulty(), 0, "{report:?}");
    }
}

/// What a thread looks at that writes as the leader: the end moves while others acknowledge, and
/// not beyond a lease after the last of them was heard.
#[tokio::test]
async fn a_leader_that_hears_nobody_leads_until_its_lease_is_over() {
    const LEASE: Span = Span::secs(3);
    let bench = Bench::new();
    let mut hosts: Vec<Host> = Vec::new();
    let clock = Clock::start();
    for id in 1..=3 {
        let seeds: Vec<SocketAddr> = hosts.first().map(Host::address).into_iter().collect();
        let mut setup = Setup {
            clock,
            ..bench.setup(id, &seeds)
        };
        setup.election.as_mut().unwrap().config.lease = Some(LEASE);
        hosts.push(Host::start(setup).await.unwrap());
    }
    let leads = || async {
        loop {
            let (leader, _) = agreed(&hosts).await;
            let host = hosts.iter().find(|it| it.id() == leader.id).unwrap();
            let elections = host.elections().unwrap();
            if elections.leads_until().is_some_and(|it| clock.now() < it) {
                return elections;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let elections = timeout(PATIENCE, leads()).await.unwrap();
    let first = elections.leads_until();
    let is_renewed = async {
        while elections.leads_until() <= first {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, is_renewed).await.unwrap();
    bench.weather.send_modify(|it| it.loss = Ratio::new(1, 1));
    let last = clock.now() + LEASE;
    let ends = async {
        while elections.leads_until().is_some() {
            assert!(elections.leads_until() <= Some(last));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ends).await.unwrap();
}

#[tokio::test]
async fn threads_ask_for_an_election_and_hear_of_its_end() {
    let mut bench = Bench::new();
    let hosts = bench.start(3).await;
    let (_, ballot) = agreed(&hosts).await;
    let elections = hosts[2].elections().unwrap();
    let mut changes = elections.subscribe();
    let other = elections.clone();
    other.tolerate(2, 0).await.unwrap();
    other.elect().await.unwrap();
    let Event::Electing(begun) = timeout(PATIENCE, changes.recv()).await.unwrap().unwrap() else {
        panic!("an election begins with Electing");
    };
    assert!(begun > ballot && begun.initiator.id == hosts[2].id());
    let elected = async {
        loop {
            if let Event::Elected { ballot, leader } = changes.recv().await.unwrap() {
                // Whoever heard reads a snapshot that says so.
                return (elections.leader(), Some((leader, ballot)));
            }
        }
    };
    let (snapshot, told) = timeout(PATIENCE, elected).await.unwrap();
    assert_eq!(snapshot, told);
    assert!(told.unwrap().1 > begun);
    // The channel of all events has it, too.
    let seen = async {
        loop {
            let seen = bench.seen.recv().await.unwrap();
            if matches!(seen.event, Told::Election(Event::Elected { ballot, .. }) if Some(ballot) == told.map(|it| it.1))
            {
                return seen;
            }
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
}

#[tokio::test]
async fn two_elections_at_once_no_elections_and_a_stopped_node_are_refused() {
    let bench = Bench::new();
    let hosts = bench.start(3).await;
    agreed(&hosts).await;
    let elections = hosts[0].elections().unwrap();
    // Nobody answers.
    bench.weather.send_modify(|it| it.loss = Ratio::new(1, 1));
    elections.elect().await.unwrap();
    let twice = elections.elect().await.unwrap_err();
    let reject = Reject::Election(NoElection::AlreadyElecting);
    assert_eq!(twice, Error::Rejected(reject));

    let mut setup = bench.setup(9, &[]);
    setup.election = None;
    let plain = Host::start(setup).await.unwrap();
    assert!(plain.elections().is_none());

    for host in hosts {
        host.kill().await;
    }
    assert!(matches!(
        elections.elect().await,
        Err(Error::Closed | Error::Unanswered)
    ));
}
