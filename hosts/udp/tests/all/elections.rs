//! Real nodes that elect a leader, and the application's threads and tasks beside them.

use std::net::SocketAddr;
use std::time::Duration;

use selvedge::Election;
use selvedge_celect::{Ballot, Config as Celect, Event, Reject as NoElection};
use selvedge_core::{Member, NodeId, Ratio, Span};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::transport::Udp;
use selvedge_udp::{Clock, Error, NodeEvent, Observed, Reject, Setup};
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE};

/// Nodes that lose one datagram in twenty, and seal them.
struct Bench {
    faults: FaultControl,
    keyring: Keyring,
}

fn election() -> Election {
    Election {
        config: Celect::new(1, 1)
            .with_timeout(Span::millis(60))
            .with_resend(Span::millis(60)),
        label: (*b"leader").into(),
        patience: Span::secs(1),
    }
}

impl Bench {
    fn new() -> Self {
        Self {
            faults: FaultControl::new(Faults::none().with_loss(Ratio::new(1, 20))),
            keyring: Keyring::of(Key::random().unwrap()),
        }
    }

    /// Without elections.
    fn plain(&self, id: u64, seeds: &[SocketAddr]) -> Setup {
        bench::setup(id, seeds)
            .seal(Seal::new(self.keyring.clone(), "test"))
            .transport(Faulty::new(Udp::new(), &self.faults, id))
    }

    fn setup(&self, id: u64, seeds: &[SocketAddr]) -> Setup {
        self.plain(id, seeds).election(election())
    }

    async fn start(&self, nodes: u64) -> Vec<Node> {
        self.start_as(nodes, |setup| setup).await
    }

    async fn start_as(&self, count: u64, change: impl Fn(Setup) -> Setup) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for id in 1..=count {
            let seeds: Vec<_> = nodes.first().map(|it| it.address()).into_iter().collect();
            nodes.push(Node::start(change(self.setup(id, &seeds))).await);
        }
        nodes
    }

    fn lose_all(&self) {
        self.faults.change(|it| it.loss = Ratio::ALWAYS);
    }
}

/// Waits until all follow one of them.
async fn agreed(hosts: &[Node]) -> (Member, Ballot) {
    let ids: Vec<NodeId> = hosts.iter().map(|it| it.id()).collect();
    let agreed = async {
        loop {
            let leaders: Vec<_> = hosts.iter().map(|it| it.leader()).collect();
            if let Some(Some(first)) = leaders.first()
                && ids.contains(&first.0.id)
                && leaders.iter().all(|it| it.as_ref() == Some(first))
            {
                return *first;
            }
            sleep(Duration::from_millis(5)).await;
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
    assert!(killed.leads_until().is_some(), "without a lease for ever");
    killed.kill().await;
    assert_eq!((killed.leader(), killed.leads_until()), (None, None));
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

/// The deadline for a thread that writes as the leader: it moves while others acknowledge, and not
/// beyond a lease after the last acknowledgement.
#[tokio::test]
async fn a_leader_that_hears_nobody_leads_until_its_lease_is_over() {
    const LEASE: Span = Span::secs(3);
    let bench = Bench::new();
    let clock = Clock::start();
    let mut leased = election();
    leased.config.lease = Some(LEASE);
    let hosts = bench
        .start_as(3, |setup| setup.clock(clock).election(leased.clone()))
        .await;
    let leads = || async {
        loop {
            let (leader, _) = agreed(&hosts).await;
            let host = hosts.iter().find(|it| it.id() == leader.id).unwrap();
            if host.leads_until().is_some_and(|it| clock.now() < it) {
                return host;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let leader = timeout(PATIENCE, leads()).await.unwrap();
    let first = leader.leads_until();
    let is_renewed = async {
        while leader.leads_until() <= first {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, is_renewed).await.unwrap();
    bench.lose_all();
    let last = clock.now() + LEASE;
    let ends = async {
        while leader.leads_until().is_some() {
            assert!(leader.leads_until() <= Some(last));
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ends).await.unwrap();
}

#[tokio::test]
async fn threads_ask_for_an_election_and_hear_of_its_end() {
    let bench = Bench::new();
    let nodes = bench.start(3).await;
    let (_, ballot) = agreed(&nodes).await;
    let node = (*nodes[2]).clone();
    let mut events = node.events();
    let other = node.clone();
    other.set_bounds(2, 0).await.unwrap();
    other.elect().await.unwrap();
    let mut next = async || loop {
        let Observed { node, event, .. } = events.recv().await.unwrap();
        assert_eq!(node, NodeId(3));
        if let NodeEvent::Election(event) = event {
            return event;
        }
    };
    let Event::Electing(begun) = timeout(PATIENCE, next()).await.unwrap() else {
        panic!("an election begins with Electing");
    };
    assert!(begun > ballot && begun.initiator.id == node.id());
    let elected = async {
        loop {
            if let Event::Elected { ballot, leader } = next().await {
                // A reader that saw the event reads a state that reflects it.
                return (node.leader(), Some((leader, ballot)));
            }
        }
    };
    let (state, observed) = timeout(PATIENCE, elected).await.unwrap();
    assert_eq!(state, observed);
    assert!(observed.unwrap().1 > begun);
}

#[tokio::test]
async fn two_elections_at_once_no_elections_and_a_stopped_node_are_refused() {
    let bench = Bench::new();
    let nodes = bench.start(3).await;
    agreed(&nodes).await;
    bench.lose_all();
    nodes[0].elect().await.unwrap();
    let twice = nodes[0].elect().await.unwrap_err();
    let reject = selvedge::Reject::Election(NoElection::AlreadyElecting);
    assert_eq!(twice, Error::Rejected(reject.into()));

    let plain = Node::start(bench.plain(9, &[])).await;
    let refused = plain.elect().await.unwrap_err();
    assert_eq!(
        refused,
        Error::Rejected(Reject::Node(selvedge::Reject::NoElection))
    );
    assert_eq!(plain.set_bounds(1, 1).await, Err(refused));
    assert_eq!(plain.leader(), None);

    for node in &nodes {
        node.kill().await;
    }
    assert_eq!(nodes[0].elect().await, Err(Error::Closed));
}

/// The others receive a later ballot when the node comes back, and follow no other node meanwhile.
#[tokio::test]
async fn a_leader_stays_when_a_node_comes_back_that_led_itself() {
    let bench = Bench::new();
    let paced = Election::paced(bench::config().period, 1, 1);
    let mut hosts = bench
        .start_as(4, |setup| setup.election(paced.clone()))
        .await;
    bench::until(|| hosts.iter().all(|it| it.live() == 4)).await;
    let (first, _) = agreed(&hosts).await;
    let at = hosts.iter().position(|it| it.id() != first.id).unwrap();
    let lone = hosts.remove(at);
    let address = lone.address();
    bench.faults.change(|it| it.cut_off = [address].into());
    let leads_itself = || lone.leader().is_some_and(|(it, _)| it.id == lone.id());
    bench::until(|| lone.live() == 1 && leads_itself()).await;
    bench::until(|| hosts.iter().all(|it| it.live() == 3)).await;
    let (kept, before) = agreed(&hosts).await;
    let (_, later) = lone.leader().unwrap();
    assert!(later > before, "the other ballot would lead");
    hosts.iter_mut().for_each(|it| drop(it.passed()));
    bench.faults.change(|it| it.cut_off.clear());
    hosts.push(lone);
    bench::until(|| hosts.iter().all(|it| it.live() == 4)).await;
    let (after, ballot) = agreed(&hosts).await;
    assert!(after == kept && ballot > later);
    let (_, rest) = hosts.split_last_mut().unwrap();
    for event in rest.iter_mut().flat_map(Node::passed) {
        if let NodeEvent::Election(Event::Elected { leader, .. }) = event {
            assert_eq!(leader, kept);
        }
    }
}
