//! The real nodes of a demo: sockets on loopback, started, killed and cut off by the script.

use core::num::NonZeroUsize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_camera::sections::Name;
use selvedge_core::shared::{self, RecvError};
use selvedge_core::{Incarnation, Member, NodeId, Time};
use selvedge_membership::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::desk::{Desk, SECTION, WRITING};
use super::ground::Ground;
use super::plan::Plan;
use super::turns::Turns;
use selvedge::Exclusion;
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::faults::{FaultControl, FaultCounts, Faulty};
use selvedge_udp::traffic::{Traffic, TrafficReport};
use selvedge_udp::transport::Udp;
use selvedge_udp::{Clock, Events, Handle, Host, HostError, Observed, Setup, new_life};

/// The number of events that may wait for the narrator: all of a long demo.
const EVENTS: usize = 1 << 16;
/// The number of events that one node keeps for the demo.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 12) - 1);

/// All nodes, and the faults between them.
#[derive(Debug)]
pub struct Stage {
    clock: Clock,
    /// The first life of every node. Drawn once, since that takes time.
    first_life: Incarnation,
    seed: u64,
    /// A key that is made for this run and stored nowhere.
    keyring: Keyring,
    nodes: BTreeMap<NodeId, Handle>,
    desk: Arc<Desk>,
    /// The task that takes turns at each node.
    writers: BTreeMap<NodeId, JoinHandle<()>>,
    addresses: BTreeMap<NodeId, SocketAddr>,
    traffic: Vec<Arc<Traffic>>,
    faults: FaultControl,
    events: mpsc::Sender<Observed>,
    /// The number of events lost between the nodes and the narrator.
    missed: Arc<AtomicU64>,
    ground: Box<dyn Ground>,
}

impl Stage {
    /// An empty stage, and the events of the nodes that will be on it.
    ///
    /// # Errors
    /// If the system gives no random numbers for a key.
    pub async fn new(
        seed: u64,
        ground: Box<dyn Ground>,
    ) -> Result<(Self, mpsc::Receiver<Observed>), HostError> {
        let (events, seen) = mpsc::channel(EVENTS);
        let first_life = new_life().await.map_err(HostError::Entropy)?;
        let clock = Clock::start();
        let stage = Self {
            clock,
            first_life,
            seed,
            keyring: Keyring::of(Key::random().map_err(HostError::Entropy)?),
            nodes: BTreeMap::new(),
            desk: Arc::new(Desk::new(clock, seed)),
            writers: BTreeMap::new(),
            addresses: BTreeMap::new(),
            traffic: Vec::new(),
            faults: FaultControl::new(ground.faults()),
            events,
            missed: Arc::default(),
            ground,
        };
        Ok((stage, seen))
    }

    /// The network of the nodes.
    #[must_use]
    pub fn ground(&self) -> &dyn Ground {
        &*self.ground
    }

    /// The clock of all nodes.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Starts a node without memory; a former life's address is used again.
    ///
    /// # Errors
    /// If the system provides no socket for it.
    pub async fn start(&mut self, plan: &Plan, node: NodeId) -> Result<(), HostError> {
        let former = self.addresses.get(&node).copied();
        let incarnation = match former {
            None => self.first_life,
            Some(_) => new_life().await.map_err(HostError::Entropy)?,
        };
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listen = former.unwrap_or(unspecified);
        let socket = self.ground.socket(node, former);
        let socket = socket.map_err(|source| HostError::Listen {
            address: listen,
            source,
        })?;
        // The first node begins the mesh; the others ask the seeds that have started.
        let seeds = [NodeId(1), NodeId(2)].map(|seed| self.addresses.get(&seed).copied());
        self.seed = self.seed.wrapping_add(1);
        let setup = Setup::new(node, listen)
            .life(incarnation)
            .transport(Faulty::new(Udp::bound(socket), &self.faults, self.seed))
            .seeds(seeds.into_iter().flatten())
            .membership(plan.config.clone())
            .exclusion(Exclusion::new(plan.sections))
            .election(plan.election.clone())
            .seal(Seal::new(self.keyring.clone(), "demo"))
            .random_seed(self.seed)
            .clock(self.clock)
            .limits(shared::Limits {
                events: KEPT,
                ..shared::Limits::default()
            });
        let handle = Host::start(setup).await?;
        let events = handle.events_from_oldest();
        tokio::spawn(pass_on(
            events,
            self.events.clone(),
            Arc::clone(&self.missed),
        ));
        self.addresses.insert(node, handle.address());
        self.traffic.push(handle.traffic());
        if let Ok(name) = SECTION.parse::<Name>()
            && let Ok(gate) = handle.gate(name).await
        {
            let turns = Arc::clone(&self.desk).take_turns(node, gate, self.seed);
            self.writers.insert(node, tokio::spawn(turns));
        }
        self.nodes.insert(node, handle);
        Ok(())
    }

    /// Kills a node, and its writer.
    pub async fn crash(&mut self, node: NodeId) {
        if let Some(handle) = self.nodes.remove(&node) {
            handle.kill().await;
        }
        // After the node: a writer that ends first would release the file.
        if let Some(writer) = self.writers.remove(&node) {
            writer.abort();
            let _cancelled = writer.await.is_err();
        }
        self.desk.forget(node);
    }

    /// Lets nodes finish their writes, and returns the contents of the file.
    pub async fn turns(&mut self) -> Turns {
        self.desk.close();
        let writers = core::mem::take(&mut self.writers);
        // Ten times the time of a write.
        tokio::time::sleep((WRITING * 10).into()).await;
        writers.into_values().for_each(|writer| writer.abort());
        self.desk.turns()
    }

    /// Confirms at every node, as an operator, that this life has ended: a node that is cut off
    /// just then would learn of it from no other. Returns true if a node accepted it.
    pub async fn confirm(&self, member: Member) -> bool {
        let mut is_taken = false;
        for handle in self.nodes.values() {
            is_taken |= handle.command(Command::Confirm(member)).await.is_ok();
        }
        is_taken
    }

    /// Lets a node leave, and does not wait for it.
    pub fn leave(&mut self, node: NodeId) {
        if let Some(handle) = self.nodes.remove(&node) {
            // If the machine refuses, the table shows it: no node learns that it left.
            tokio::spawn(async move { handle.leave().await.is_ok() });
        }
    }

    /// Cuts exactly these nodes off from the others; an empty list heals.
    pub fn cut_off(&mut self, nodes: &[u64]) {
        if self.ground.cut_off(nodes) {
            return;
        }
        let addresses = nodes.iter().map(|&node| self.addresses.get(&NodeId(node)));
        let cut_off: BTreeSet<SocketAddr> = addresses.flatten().copied().collect();
        self.faults.change(|faults| faults.cut_off = cut_off);
    }

    /// The traffic of all nodes together, including dead ones.
    #[must_use]
    pub fn traffic(&self) -> TrafficReport {
        let reports = self.traffic.iter().map(|traffic| traffic.report());
        reports.fold(TrafficReport::default(), |sum, report| sum + report)
    }

    /// The number of datagrams that a fault hit on purpose.
    #[must_use]
    pub fn met(&self) -> FaultCounts {
        self.faults.counts()
    }

    /// The number of events lost between the nodes and the narrator.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// The lists of all nodes that are up and stay: the nodes that each lists as alive, except
    /// itself.
    #[must_use]
    pub fn lists(&self) -> BTreeMap<NodeId, BTreeMap<NodeId, Member>> {
        let mut lists = BTreeMap::new();
        for (&node, handle) in &self.nodes {
            let members = handle.members();
            let live = members.iter().filter(|it| it.status.is_live());
            let others = live.map(|it| it.member).filter(|it| it.id != node);
            lists.insert(node, others.map(|it| (it.id, it)).collect());
        }
        lists
    }
}

/// Passes the events of a node on to the narrator, and counts lost ones.
async fn pass_on(mut events: Events, narrator: mpsc::Sender<Observed>, missed: Arc<AtomicU64>) {
    loop {
        let lost = match events.recv().await {
            Ok(event) => u64::from(narrator.try_send(event).is_err()),
            Err(RecvError::Lagged { missed }) => missed,
            Err(RecvError::Closed) => return,
        };
        missed.fetch_add(lost, Ordering::Relaxed);
    }
}
