//! Starting, asking and stopping one node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_camera::sections::{self, Name};
use selvedge_core::shared::gate::Limits;
use selvedge_core::{Driver, Member, NodeId, Time, shared};
use selvedge_membership::{Command, Config, Metadata, Status};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use selvedge::{ConfigError, Election, Exclusion, Mesh, Reject};
use selvedge_seal::{Epoch, OVERHEAD, Seal};

use crate::leading::{Leading, Standing};
use crate::locks::Locks;
use crate::notice::Paces;
use crate::places::{self, Own};
use crate::sealing::Sealing;
use crate::seeds::Lookups;
use crate::socket::Socket;
use crate::task::{Request, Task};
use crate::{
    Clock, Directory, Elections, MAX_NODE_ID, SectionGate, Seed, Traffic, Twin, Weather, address,
};

/// How many requests may wait for a node.
const REQUESTS: usize = 64;

/// What a node needs to start.
#[derive(Debug)]
pub struct Setup {
    /// Who it is. A node without memory starts with incarnation 0; should somebody remember it,
    /// the protocol takes the next one.
    pub me: Member,
    /// Where it listens; port 0 lets the system choose. `0.0.0.0` is each of this host's addresses
    /// of IPv4, `[::]` each of IPv4 and of IPv6.
    pub listen: SocketAddr,
    /// A socket that is bound already, instead of one at `listen`.
    pub socket: Option<std::net::UdpSocket>,
    /// Where others reach it, if that is not where it listens: up to [`address::LIMIT`] addresses,
    /// of which others take those that they can send to. Several want a longer
    /// [`metadata_limit`](Config::metadata_limit) than one.
    pub advertise: Vec<SocketAddr>,
    /// Whom it asks for the mesh; nobody to begin one. Its own addresses are passed over, and so is
    /// a seed that has no other.
    pub seeds: Vec<Seed>,
    /// The protocol's settings.
    pub config: Config,
    /// How it takes part in mutual exclusion; `None` if it does not. In one mesh all do, or none:
    /// who is asked and does not know how to answer holds up everybody. The frame budget of its
    /// sections is that of `config`, if theirs is longer.
    pub exclusion: Option<Exclusion>,
    /// How it takes part in elections; `None` if it does not. In one mesh all do, or none. The frame
    /// budget is that of `config`, if theirs is longer.
    pub election: Option<Election>,
    /// How its datagrams are sealed; `None` sends them in the clear. Sealing takes
    /// [`OVERHEAD`](selvedge_seal::OVERHEAD) bytes of the frame budget.
    pub seal: Option<Seal>,
    /// What its choices are drawn from; `None` takes the system's entropy.
    pub seed: Option<u64>,
    /// Its clock. Shared, if the times of several nodes are to be compared.
    pub clock: Clock,
    /// What gets lost.
    pub weather: watch::Receiver<Weather>,
    /// Where its events go. An event that finds no room is lost and counted: a reader that sleeps
    /// must neither stop the protocol nor fill the memory.
    pub events: mpsc::Sender<Seen>,
}

/// One event of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, by the node's clock.
    pub at: Time,
    /// Who was told.
    pub node: NodeId,
    /// What it was told.
    pub event: Told,
}

/// What a node is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// By membership.
    Membership(selvedge_membership::Event),
    /// By its elections.
    Election(selvedge_celect::Event),
    /// By others that refuse its datagrams, or by one whose datagrams are refused: another process
    /// has its id. At most once a minute; in a sealed mesh alone. In the clear such processes take
    /// later and later lives, each an [`Identity`](selvedge_membership::Event::Identity).
    Twin(Twin),
}

/// A line of a node's member list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who.
    pub member: Member,
    /// What the node thinks of it.
    pub status: Status,
    /// Where the node sends to reach it.
    pub address: Option<SocketAddr>,
}

/// Why a node did not start.
#[derive(Debug, Error)]
pub enum HostError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}: choose a free port and an address of this host")]
    Listen {
        /// What was asked.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// That is an address of many.
    #[error(
        "cannot listen at {address}, which names many hosts: listen at an address of this host, or at 0.0.0.0 or [::] for all of them"
    )]
    ListenToMany {
        /// What was asked.
        address: SocketAddr,
    },
    /// The id is among those that stand in for seeds.
    #[error("the id {id} is reserved: give one up to {MAX_NODE_ID}")]
    Id {
        /// What was asked.
        id: NodeId,
    },
    /// Others cannot send to that address.
    #[error(
        "nobody can send to {address}: advertise the address and port at which others reach this host"
    )]
    Advertise {
        /// What was asked.
        address: SocketAddr,
    },
    /// Too many addresses are to be told.
    #[error(
        "{count} addresses to advertise, and {} are told: leave some out",
        address::LIMIT
    )]
    TooManyAddresses {
        /// How many there are.
        count: usize,
    },
    /// No single host answers there.
    #[error(
        "nobody can be asked at {address} ({name}): give the address and port of one node that runs"
    )]
    Seed {
        /// What the seed was called.
        name: String,
        /// Where it was found.
        address: SocketAddr,
    },
    /// The socket cannot send there.
    #[error(
        "{name} has no address of the same IP version as {listen}: listen at one that has, or at [::] for both"
    )]
    Family {
        /// What the seed was called.
        name: String,
        /// Where the node listens.
        listen: SocketAddr,
    },
    /// The settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The machine refused to begin.
    #[error(transparent)]
    Refused(#[from] Reject),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers ({0}): give a seed")]
    Entropy(getrandom::Error),
}

/// Why a request to a running node failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The machine said no.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// The node has left or was killed.
    #[error("the node has stopped: start it anew")]
    Stopped,
    /// That section has a gate.
    #[error("the section {0:?} has a gate already: clone that one")]
    HasGate(Name),
}

/// A running node. Dropping it kills the node, as a crash would.
#[derive(Debug)]
pub struct Host {
    id: NodeId,
    address: SocketAddr,
    traffic: Arc<Traffic>,
    requests: mpsc::Sender<Request>,
    elections: Option<Elections>,
    task: JoinHandle<()>,
}

impl Host {
    /// Binds the socket and begins to join.
    ///
    /// # Errors
    /// When the address, the id or the settings cannot be used. Nothing runs then.
    pub async fn start(setup: Setup) -> Result<Self, HostError> {
        let id = setup.me.id;
        if id > MAX_NODE_ID {
            return Err(HostError::Id { id });
        }
        places::check(&setup)?;
        let rng = generator(setup.seed)?;
        let mut config = setup.config;
        let budget = usize::from(config.frame_budget);
        let limit = usize::try_from(config.member_limit).unwrap_or(usize::MAX);
        let mut sealing = None;
        if let Some(seal) = setup.seal {
            config.frame_budget = config.frame_budget.saturating_sub(OVERHEAD as u16);
            let epoch = Epoch::now().map_err(HostError::Entropy)?;
            let start = (epoch, setup.clock.now());
            sealing = Some(Sealing::new(seal, id, start, limit));
        }
        let frame_budget = config.frame_budget;
        let mut exclusion = setup.exclusion;
        if let Some(exclusion) = &mut exclusion {
            let longest = &mut exclusion.sections.section.frame_budget;
            *longest = frame_budget.min(*longest);
        }
        let mut election = setup.election;
        if let Some(election) = &mut election {
            let longest = &mut election.config.frame_budget;
            *longest = frame_budget.min(*longest);
        }
        let is_elector = election.is_some();
        let machine = Mesh::new(setup.me, config, exclusion, election)?;
        let listen = |source| HostError::Listen {
            address: setup.listen,
            source,
        };
        let socket = match setup.socket {
            None => Socket::bind(setup.listen).map_err(listen)?,
            Some(socket) => Socket::from_std(socket).map_err(listen)?,
        };
        let local = socket.local();
        let mut announced = setup.advertise;
        if announced.is_empty() && address::reachable(local) {
            announced.push(local);
        }
        let own = Own::new(local, &announced);
        let seeds = places::others(setup.seeds, &socket, &own)?;
        let addresses: Vec<_> = seeds.iter().map(|it| it.addresses().to_vec()).collect();

        let traffic = Arc::new(Traffic::default());
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let (handle, port) = shared::channel(shared::Limits::default(), Standing::NONE);
        let mut task = Task {
            driver: Driver::new(machine),
            socket,
            directory: Directory::new(limit, &addresses),
            lookups: Lookups::new(seeds, setup.clock.now()),
            own,
            rng,
            budget,
            frame_budget: frame_budget.into(),
            leading: Leading::new(port),
            locks: Locks::default(),
            leaving: None,
            sealing,
            paces: Paces::default(),
            clock: setup.clock,
            weather: setup.weather,
            traffic: Arc::clone(&traffic),
            events: setup.events,
            inbox,
            effects: Vec::new(),
            frame: Vec::new(),
            is_in: false,
            left: false,
        };
        if !announced.is_empty() {
            let metadata = Metadata(address::to_metadata(&announced));
            task.command(selvedge::Command::Membership(Command::SetMetadata(
                metadata,
            )))?;
        }
        let seeds = Directory::stand_ins(addresses.len()).collect();
        task.command(selvedge::Command::Membership(Command::Join { seeds }))?;
        Ok(Self {
            id,
            address: local,
            traffic,
            requests,
            elections: is_elector.then(|| Elections::new(handle)),
            task: tokio::spawn(task.run()),
        })
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it counts. The counters outlive the node.
    #[must_use]
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// Its member list, itself included.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn members(&self) -> Result<Vec<Known>, Refused> {
        let (answer, list) = oneshot::channel();
        self.ask(Request::Members(answer)).await?;
        list.await.map_err(|_| Refused::Stopped)
    }

    /// A gate to a section of the mesh, for the threads and tasks of the application. It works as
    /// `config` says, or as all do ([`sections::Config::section`]). Who waits before the node has
    /// joined waits until it has.
    ///
    /// When the last gate and the last guard are gone the section is closed here, and the node goes
    /// on taking part for others.
    ///
    /// ```no_run
    /// # async fn run(host: &selvedge_udp::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = host.section("printer".parse()?, None, Default::default()).await?;
    /// let guard = gate.enter().await?;
    /// println!("the printer is ours, with token {}", guard.token().number);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Refused::HasGate`], when the node was started without [`Setup::exclusion`], when there are
    /// too many sections or its settings cannot work, or when the node has stopped.
    pub async fn section(
        &self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
    ) -> Result<SectionGate, Refused> {
        let (answer, gate) = oneshot::channel();
        let section = Request::Section {
            name,
            config,
            limits,
            answer,
        };
        self.ask(section).await?;
        gate.await.map_err(|_| Refused::Stopped)?
    }

    /// The elections of the mesh, for the threads and tasks of the application. `None` when the node
    /// was started without [`Setup::election`].
    ///
    /// ```no_run
    /// # fn run(host: &selvedge_udp::Host) {
    /// if let Some(elections) = host.elections()
    ///     && let Some((leader, ballot)) = elections.leader()
    /// {
    ///     println!("node {} leads; what it writes carries {ballot:?}", leader.id);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn elections(&self) -> Option<Elections> {
        self.elections.clone()
    }

    /// A new bound for the number of nodes, in all sections, see
    /// [`upper`](selvedge_camera::Config::upper).
    ///
    /// # Errors
    /// When the machine refuses it, or the node has stopped.
    pub async fn bound(&self, upper: u32) -> Result<(), Refused> {
        let bound = sections::Command::Bound(upper);
        self.give(selvedge::Command::Sections(bound)).await
    }

    /// Gives the membership machine a command.
    ///
    /// # Errors
    /// When the machine refuses it, or the node has stopped.
    pub async fn command(&self, command: Command) -> Result<(), Refused> {
        self.give(selvedge::Command::Membership(command)).await
    }

    /// Says good-bye to the others and returns when that is done. Gates take nobody in any more;
    /// who has a guard is waited for, because others take a good-bye for the end of what is held.
    ///
    /// # Errors
    /// When the machine refuses, for instance because it has not joined. The node is stopped in
    /// any case.
    pub async fn leave(mut self) -> Result<(), Refused> {
        let (answer, outcome) = oneshot::channel();
        self.ask(Request::Leave(answer)).await?;
        outcome.await.map_err(|_| Refused::Stopped)??;
        // The task ends by itself; that it was cancelled instead is impossible while we hold it.
        let _ended = (&mut self.task).await.is_ok();
        Ok(())
    }

    /// Stops at once and says nothing, as in a crash. The port is free when this returns.
    pub async fn kill(mut self) {
        self.task.abort();
        let _cancelled = (&mut self.task).await.is_err();
    }

    async fn give(&self, command: selvedge::Command) -> Result<(), Refused> {
        let (answer, outcome) = oneshot::channel();
        self.ask(Request::Command(command, answer)).await?;
        Ok(outcome.await.map_err(|_| Refused::Stopped)??)
    }

    async fn ask(&self, request: Request) -> Result<(), Refused> {
        self.requests
            .send(request)
            .await
            .map_err(|_| Refused::Stopped)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn generator(seed: Option<u64>) -> Result<ChaCha12Rng, HostError> {
    if let Some(seed) = seed {
        return Ok(ChaCha12Rng::seed_from_u64(seed));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(HostError::Entropy)?;
    Ok(ChaCha12Rng::from_seed(bytes))
}
