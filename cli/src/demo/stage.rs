//! The real nodes of a demo: sockets on loopback, started, killed and cut off by the script.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use selvedge_camera::sections::Name;
use selvedge_core::shared::gate::Limits;
use selvedge_core::{Incarnation, Member, NodeId, Time};
use selvedge_membership::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::desk::{Desk, SECTION, WRITING};
use super::ground::Ground;
use super::plan::Plan;
use super::turns::Turns;
use selvedge::Exclusion;
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::{
    Clock, Host, HostError, Seed, Seen, Setup, Traffic, TrafficReport, Weather, new_life,
};

/// How many events may wait for the narrator: all of a long demo.
const EVENTS: usize = 1 << 16;

/// All nodes, and the weather between them.
#[derive(Debug)]
pub struct Stage {
    clock: Clock,
    /// The first life of each node: none had one before. Drawn once, since that takes time.
    first_life: Incarnation,
    seed: u64,
    /// One key, made for this run and kept nowhere.
    keyring: Keyring,
    hosts: BTreeMap<NodeId, Host>,
    desk: Arc<Desk>,
    /// What each node does with its turns.
    writers: BTreeMap<NodeId, JoinHandle<()>>,
    addresses: BTreeMap<NodeId, SocketAddr>,
    traffic: Vec<Arc<Traffic>>,
    weather: watch::Sender<Weather>,
    events: mpsc::Sender<Seen>,
    ground: Box<dyn Ground>,
}

impl Stage {
    /// An empty stage, and the events of the nodes that will be on it.
    ///
    /// # Errors
    /// When the system gives no random numbers for a key.
    pub async fn new(
        seed: u64,
        ground: Box<dyn Ground>,
    ) -> Result<(Self, mpsc::Receiver<Seen>), HostError> {
        let (events, seen) = mpsc::channel(EVENTS);
        let first_life = new_life().await.map_err(HostError::Entropy)?;
        let clock = Clock::start();
        let stage = Self {
            clock,
            first_life,
            seed,
            keyring: Keyring::of(Key::random().map_err(HostError::Entropy)?),
            hosts: BTreeMap::new(),
            desk: Arc::new(Desk::new(clock, seed)),
            writers: BTreeMap::new(),
            addresses: BTreeMap::new(),
            traffic: Vec::new(),
            weather: watch::Sender::new(ground.weather()),
            events,
            ground,
        };
        Ok((stage, seen))
    }

    /// Where the nodes are.
    #[must_use]
    pub fn ground(&self) -> &dyn Ground {
        &*self.ground
    }

    /// The clock of all nodes.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// How late it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Starts a node that remembers nothing; a former life's address is used again.
    ///
    /// # Errors
    /// When there is no socket for it.
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
        // The first node begins the mesh; the others ask those seeds that are there already.
        let seeds = [NodeId(1), NodeId(2)].map(|seed| self.addresses.get(&seed).copied());
        self.seed = self.seed.wrapping_add(1);
        let host = Host::start(Setup {
            me: Member {
                id: node,
                incarnation,
            },
            listen,
            socket: Some(socket),
            advertise: Vec::new(),
            seeds: seeds.into_iter().flatten().map(Seed::from).collect(),
            config: plan.config.clone(),
            exclusion: Some(Exclusion {
                sections: plan.sections,
                counting: None,
            }),
            election: Some(plan.election.clone()),
            seal: Some(Seal {
                keyring: self.keyring.clone(),
                group: "demo".to_owned(),
                rate: None,
            }),
            seed: Some(self.seed),
            clock: self.clock,
            weather: self.weather.subscribe(),
            events: self.events.clone(),
        })
        .await?;
        self.addresses.insert(node, host.address());
        self.traffic.push(host.traffic());
        if let Ok(name) = SECTION.parse::<Name>()
            && let Ok(gate) = host.section(name, None, Limits::default()).await
        {
            let turns = Arc::clone(&self.desk).take_turns(node, gate, self.seed);
            self.writers.insert(node, tokio::spawn(turns));
        }
        self.hosts.insert(node, host);
        Ok(())
    }

    /// Kills a node, and who writes there.
    pub async fn crash(&mut self, node: NodeId) {
        if let Some(host) = self.hosts.remove(&node) {
            host.kill().await;
        }
        // After the node: a writer that goes first would give the file back.
        if let Some(writer) = self.writers.remove(&node) {
            writer.abort();
            let _cancelled = writer.await.is_err();
        }
        self.desk.forget(node);
    }

    /// Lets those who write get to their end, and says what the file holds then.
    pub async fn turns(&mut self) -> Turns {
        self.desk.close();
        let writers = core::mem::take(&mut self.writers);
        // Ten times as long as it takes to write.
        tokio::time::sleep((WRITING * 10).into()).await;
        writers.into_values().for_each(|writer| writer.abort());
        self.desk.turns()
    }

    /// An operator, who knows that this life is over, tells every node: who is cut off just then would
    /// hear of it from nobody. Says whether one took that in.
    pub async fn confirm(&self, member: Member) -> bool {
        let mut is_told = false;
        for host in self.hosts.values() {
            is_told |= host.command(Command::Confirm(member)).await.is_ok();
        }
        is_told
    }

    /// Lets a node say good-bye, and does not wait for it.
    pub fn leave(&mut self, node: NodeId) {
        if let Some(host) = self.hosts.remove(&node) {
            // Should the machine refuse, the table shows it: nobody hears that the node left.
            tokio::spawn(async move { host.leave().await.is_ok() });
        }
    }

    /// Cuts these nodes off from the others; nobody to heal.
    pub fn cut_off(&mut self, nodes: &[u64]) {
        if self.ground.cut_off(nodes) {
            return;
        }
        let addresses = nodes.iter().map(|&node| self.addresses.get(&NodeId(node)));
        let cut_off: BTreeSet<SocketAddr> = addresses.flatten().copied().collect();
        self.weather
            .send_modify(|weather| weather.cut_off = cut_off);
    }

    /// What all nodes counted together, the dead included.
    #[must_use]
    pub fn traffic(&self) -> TrafficReport {
        let reports = self.traffic.iter().map(|traffic| traffic.report());
        reports.fold(TrafficReport::default(), |sum, report| sum + report)
    }

    /// The lists of all nodes that are up and stay: whom each takes for alive, itself not included.
    pub async fn lists(&self) -> BTreeMap<NodeId, Option<BTreeMap<NodeId, Member>>> {
        let mut lists = BTreeMap::new();
        for (&node, host) in &self.hosts {
            let list = host.members().await.ok();
            let live = list.map(|list| {
                list.iter()
                    .filter(|known| known.status.is_live() && known.member.id != node)
                    .map(|known| (known.member.id, known.member))
                    .collect()
            });
            lists.insert(node, live);
        }
        lists
    }
}
