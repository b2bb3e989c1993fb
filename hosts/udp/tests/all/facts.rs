//! Nodes that store their promises in k-groups.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use selvedge_core::{Incarnation, NodeId, Span};
use selvedge_groups::Start;
use selvedge_groups::store::Stored;
use selvedge_kgroup::{Event, LeaderEvent, devices};
use selvedge_store::StoreError;
use selvedge_store::redb::StorageBackend;
use selvedge_udp::{Host, HostError, NodeEvent, Setup};
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE, until};
use crate::groups::{LAMP, coordination};

/// A disk in memory, which can be slow or fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    state: Arc<AtomicU8>,
}

const STUCK: u8 = 1;
const BROKEN: u8 = 2;

impl Disk {
    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }

    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Relaxed) == state
    }
}

/// Disks that are stuck until this is dropped, also where the test fails: their threads end before the
/// runtime does.
struct Stuck<'a>(&'a [Disk]);

impl<'a> Stuck<'a> {
    fn new(disks: &'a [Disk]) -> Self {
        disks.iter().for_each(|it| it.set(STUCK));
        Self(disks)
    }
}

impl Drop for Stuck<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|it| it.set(0));
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let (at, bytes) = (offset as usize, self.bytes.lock().unwrap());
        let bytes = bytes.get(at..at + len).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self, _: bool) -> Result<()> {
        while self.is(STUCK) {
            thread::sleep(Duration::from_millis(5));
        }
        if self.is(BROKEN) {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let at = offset as usize;
        self.bytes.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// Three nodes in this life, each with its disk.
async fn start(disks: &[Disk; 3], life: u32) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for (id, disk) in (1..).zip(disks) {
        let first = nodes.first().map(|it| it.address());
        let seeds: Vec<SocketAddr> = first.into_iter().collect();
        nodes.push(Node::start(setup(id, &seeds, disk).life(Incarnation(life))).await);
    }
    for node in &nodes {
        until(|| node.live() == 3).await;
    }
    nodes
}

fn setup(id: u64, seeds: &[SocketAddr], disk: &Disk) -> Setup {
    let setup = bench::setup(id, seeds).coordination(coordination(), Span::secs(3_600));
    setup.state_on(disk.clone())
}

#[tokio::test]
async fn a_map_is_there_after_all_nodes_lost_power_together() {
    let disks = <[Disk; 3]>::default();
    for life in 0..3 {
        let nodes = start(&disks, life).await;
        let doors = nodes[life as usize].map("doors");
        let entry = timeout(PATIENCE, doors.get("front"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            entry.map(|it| it.version).unwrap_or_default(),
            u64::from(life)
        );
        let stored = timeout(PATIENCE, doors.put("front", b"shut")).await;
        let version = u64::from(life) + 1;
        assert_eq!(stored.unwrap(), Ok(Stored::Done { version }));
        for node in nodes {
            node.kill().await;
        }
    }
}

/// A device without a battery has any time after a power cut, and a life that it had before would take
/// new requests for repeated ones.
#[tokio::test]
async fn a_later_life_is_later_whatever_the_clock_says() {
    let disks = <[Disk; 3]>::default();
    for (version, life) in (1..).zip([5, 5, 3]) {
        let nodes = start(&disks, life).await;
        let doors = nodes[1].map("doors");
        let stored = timeout(PATIENCE, doors.put("front", b"shut")).await;
        assert_eq!(stored.unwrap(), Ok(Stored::Done { version }));
        let entry = timeout(PATIENCE, doors.get("front")).await.unwrap();
        assert_eq!(entry.unwrap().map(|it| it.version), Some(version));
        for node in nodes {
            node.kill().await;
        }
    }
}

/// Nodes that remember a later life make a node take one while it runs.
#[tokio::test]
async fn a_life_that_a_node_takes_while_it_runs_is_stored_before_it_asks() {
    let disks = <[Disk; 3]>::default();
    let mut nodes = start(&disks, 5).await;
    nodes.pop().unwrap().kill().await;
    let (seeds, empty) = ([nodes[0].address()], Disk::default());
    let again = coordination().with_start(Start::Restarted);
    let restarted = setup(3, &seeds, &empty).coordination(again, Span::secs(3_600));
    let node = Node::start(restarted.life(Incarnation(2))).await;
    let doors = node.map("doors");
    let stored = timeout(PATIENCE, doors.put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
    node.kill().await;
    // It knows of no other node, so this is the life after the stored one.
    let next = Node::start(setup(3, &[], &empty).life(Incarnation(2))).await;
    assert_eq!(next.state().me.incarnation, Incarnation(7));
}

/// The start of a node is stored, so an application that always gives the same breaks no promise.
#[tokio::test]
async fn a_node_starts_as_it_started_at_first() {
    let starts = [Start::Restarted, Start::Fresh];
    for first in starts {
        let disk = Disk::default();
        let others = starts.into_iter().filter(|it| *it != first);
        for start in [first].into_iter().chain(others) {
            let coordination = coordination().with_start(start);
            let setup = bench::setup(1, &[]).coordination(coordination, Span::ZERO);
            let mut node = Node::start(setup.state_on(disk.clone())).await;
            node.joins().await;
            sleep(Duration::from_millis(200)).await;
            let passed = node.passed();
            let is_founder = passed
                .iter()
                .any(|it| format!("{it:?}").contains("Entered"));
            assert_eq!(is_founder, first == Start::Fresh, "{start:?}: {passed:?}");
            node.kill().await;
        }
    }
}

/// The folder was lost, and that is stated at the second try alone.
#[tokio::test]
async fn a_start_that_fails_stores_nothing() {
    let (disk, busy) = (
        Disk::default(),
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let setup = Setup::new(NodeId(1), busy.local_addr().unwrap())
        .coordination(coordination(), Span::ZERO)
        .state_on(disk.clone());
    let refused = Host::start(setup).await.unwrap_err();
    assert!(matches!(refused, HostError::Listen { .. }), "{refused}");
    let restarted = coordination().with_start(Start::Restarted);
    let setup = bench::setup(1, &[]).coordination(restarted, Span::ZERO);
    let mut node = Node::start(setup.state_on(disk)).await;
    node.joins().await;
    sleep(Duration::from_millis(200)).await;
    let passed = node.passed();
    let is_founder = passed
        .iter()
        .any(|it| format!("{it:?}").contains("Entered"));
    assert!(!is_founder, "{passed:?}");
}

/// A process that forgets by mistake would break promises, so it has to be asked for.
#[tokio::test]
async fn k_groups_need_a_folder_or_the_word_of_the_application() {
    let setup = || bench::setup(1, &[]).coordination(coordination(), Span::ZERO);
    let refused = Host::start(setup()).await.unwrap_err();
    assert!(matches!(refused, HostError::NoState), "{refused}");
    Node::start(setup().stateless()).await.kill().await;
    let folder = std::env::temp_dir().join(format!("selvedge-state-{}", std::process::id()));
    for _ in 0..2 {
        Node::start(setup().state(&folder)).await.kill().await;
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn nothing_of_k_groups_is_sent_before_it_is_stored_and_all_else_goes_on() {
    let disks = <[Disk; 3]>::default();
    let nodes = start(&disks, 0).await;
    let doors = nodes[0].map("doors");
    let stored = timeout(PATIENCE, doors.put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
    let stuck = Stuck::new(&disks);
    {
        let mut asked = Box::pin(doors.put("front", b"open"));
        assert!(timeout(Duration::from_secs(2), &mut asked).await.is_err());
        // Ten periods of membership.
        assert!(nodes.iter().all(|it| it.live() == 3));
        drop(stuck);
        let stored = timeout(PATIENCE, asked).await.unwrap();
        assert_eq!(stored, Ok(Stored::Done { version: 2 }));
    }
    for node in nodes {
        node.kill().await;
    }
}

/// Commands to devices have a time limit, which a slow disk must not hide.
#[tokio::test]
async fn an_event_that_waited_for_the_disk_has_the_time_of_its_cause() {
    let disks = <[Disk; 3]>::default();
    let mut nodes = start(&disks, 0).await;
    let is_ping = |it: &NodeEvent| {
        matches!(it, NodeEvent::Groups(Event::Leader { event, .. })
            if matches!(event, LeaderEvent::Devices(devices::Event::Ping { .. })))
    };
    let [one, two, three] = &mut nodes[..] else {
        panic!("three nodes");
    };
    let leader = tokio::select! {
        _ = one.wait_for(is_ping) => 0,
        _ = two.wait_for(is_ping) => 1,
        _ = three.wait_for(is_ping) => 2,
    };
    let (leader, stuck) = (&nodes[leader], Stuck::new(&disks));
    // A decision, which is stored.
    let reported = leader.reported(LAMP, Some("on".into())).await;
    reported.unwrap();
    // Some periods of pings.
    sleep(Duration::from_millis(2_500)).await;
    let (mut events, now) = (leader.events(), leader.clock().now());
    drop(stuck);
    let first = async {
        loop {
            let observed = events.recv().await.unwrap();
            if is_ping(&observed.event) {
                return observed.at;
            }
        }
    };
    let at = timeout(PATIENCE, first).await.unwrap();
    assert!(at < now, "{at:?}, {now:?}");
}

#[tokio::test]
async fn a_node_whose_disk_fails_reports_it_and_ends() {
    let disks = <[Disk; 3]>::default();
    let mut nodes = start(&disks, 0).await;
    disks[2].set(BROKEN);
    let failing = nodes.pop().unwrap();
    let (mut events, handle) = (failing.events_from_oldest(), failing.clone());
    let asks = tokio::spawn(async move {
        while handle.map("doors").put("front", b"shut").await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    let reported = async {
        while let Ok(observed) = events.recv().await {
            if let NodeEvent::Unstored(why) = observed.event {
                return why;
            }
        }
        panic!("it ended without a report");
    };
    let why = timeout(PATIENCE, reported).await.unwrap();
    assert!(why.contains("see whether the disk is full"), "{why}");
    timeout(PATIENCE, asks).await.unwrap().unwrap();
    // The others continue, and it begins again from the stored state.
    disks[2].set(0);
    let stored = timeout(PATIENCE, nodes[0].map("doors").put("back", b"shut")).await;
    assert!(stored.unwrap().is_ok());
    let seeds = [nodes[0].address()];
    let again = Node::start(setup(3, &seeds, &disks[2]).life(Incarnation(1))).await;
    let found = timeout(PATIENCE, again.map("doors").get("back"))
        .await
        .unwrap();
    assert!(found.unwrap().is_some());
}

/// Only the folder waits for the disk: a stopped node must not be mistaken for a running one.
#[tokio::test]
async fn a_node_that_is_killed_while_its_disk_is_stuck_ends_at_once_for_all_others() {
    let disks = <[Disk; 3]>::default();
    let nodes = start(&disks, 0).await;
    let stuck = Stuck::new(&disks[..1]);
    let put = |it: selvedge_udp::Handle| async move { it.map("doors").put("front", b"shut").await };
    let asked = tokio::spawn(put(nodes[0].clone()));
    sleep(Duration::from_millis(300)).await;
    let handle = nodes[0].clone();
    let kill = tokio::spawn(async move { handle.kill().await });
    let outcome = timeout(PATIENCE, asked).await.unwrap();
    assert!(outcome.unwrap().is_err());
    assert!(std::net::UdpSocket::bind(nodes[0].address()).is_ok());
    assert!(!kill.is_finished());
    drop(stuck);
    timeout(PATIENCE, kill).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_folder_of_another_node_is_refused() {
    let disk = Disk::default();
    Node::start(setup(1, &[], &disk)).await.kill().await;
    let refused = Host::start(setup(2, &[], &disk)).await.unwrap_err();
    let (asked, found) = (NodeId(2), NodeId(1));
    assert!(
        matches!(refused, HostError::Store(StoreError::OtherNode { asked: a, found: f }) if (a, f) == (asked, found))
    );
}
