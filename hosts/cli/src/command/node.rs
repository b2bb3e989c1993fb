//! `selvedge node`.

mod election;
mod locks;
mod log;
mod round_trips;
mod trouble;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use election::ElectionFlags;
use locks::LockFlags;
use log::{Line, Log};
use round_trips::RoundTrips;
use selvedge_core::shared::RecvError;
use selvedge_core::{NodeId, Ratio, Span};
use selvedge_membership::{Config, Event, SuspicionLength};
use selvedge_seal::{KeyFileError, Keyring, RateLimit, Seal, read_group_key_file, read_key_file};
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::transport::Udp;
use selvedge_udp::{
    Clock, Events, Handle, Host, MAX_NODE_ID, NodeEvent, Seed, Setup, Tags, address,
};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval, sleep, timeout_at};
use trouble::Watch;

use super::{Failure, entropy, runtime};

/// The time without an answer from any seed after which a line reports it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for names to be looked up before the node starts without their addresses.
const LOOKUP: Duration = Duration::from_secs(5);

/// The interval at which the counters are checked for signs of trouble.
const LOOKS: Duration = Duration::from_secs(5);
/// The interval at which a node that writes JSON reports its traffic.
const REPORTS: Duration = Duration::from_secs(1);

/// The interval at which round trips are reported, if they changed.
const DISTANCES: Duration = Duration::from_secs(15);

/// The distances by which nodes are chosen for probes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Distances {
    /// The round trips of the node's own probes: near nodes are probed more often.
    Measured,
    /// All nodes alike.
    Uniform,
}

/// Run one real node; several of them, in terminals or on hosts, form a mesh with a leader
///
/// The first node needs no --join; every other node names one or more running nodes. The nodes
/// elect a leader, and another leader when that one fails or leaves. Ctrl-C (SIGINT) or SIGTERM
/// lets the node leave. SIGHUP has it read the key file again. SIGUSR1 and SIGUSR2 do nothing.
#[derive(Debug, Args)]
#[command(after_help = "Try it in two terminals:
  selvedge key mesh.key
  selvedge node --key mesh.key --listen 127.0.0.1:7001
  selvedge node --key mesh.key --listen 127.0.0.1:7002 --join 127.0.0.1:7001")]
pub(crate) struct Node {
    /// Address and UDP port of this host to listen at (port 0 takes any free port); 0.0.0.0 is all
    /// of IPv4, and the IPv6 address :: all of both. A link-local address names its interface:
    /// [fe80::1%eth0]:7001
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    listen: SocketAddr,
    /// Running nodes to join through, as ADDRESS:PORT or NAME:PORT. A name that has no address, or
    /// whose node does not answer, is looked up again
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    join: Vec<String>,
    /// File with the keys of the mesh, from `selvedge key`: the first key seals, all keys open
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Accept a key file that its group may read (mode 0440 or 0640)
    #[arg(long)]
    group_reads_key: bool,
    /// Folder of this node, for the epoch of its seal: it is accepted also when its clock is behind its
    /// former start. Needs the same --id at each start. Not with --plain
    #[arg(long, value_name = "DIR", requires = "id")]
    state: Option<PathBuf>,
    /// Send in the clear, and accept datagrams from anyone
    #[arg(long, conflicts_with = "key")]
    plain: bool,
    /// Name of the mesh: meshes with equal keys and different names stay apart. Default "selvedge".
    /// Not with --plain
    #[arg(long)]
    group: Option<String>,
    /// Accept at most this many packets a second from each node, and twice as many at once. Not with
    /// --plain
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Addresses at which other nodes reach this one, if it is behind a NAT or a port mapping: up to
    /// four, of which one may be IPv6. At 0.0.0.0 or :: the node finds its address by itself, unless
    /// it is behind a NAT
    #[arg(long, value_name = "ADDR", num_args = 1.., value_parser = address::parse)]
    advertise: Vec<SocketAddr>,
    /// Tag of this node, which all other nodes have in their lists; repeat it for several, up to 512
    /// bytes in all
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Id of the node; random by default. No two nodes may share one
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=MAX_NODE_ID.0))]
    id: Option<u64>,
    /// Protocol period in milliseconds, equal at all nodes of a mesh
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    period: u64,
    /// Number of periods after which a suspected node has failed; 3 ln of the number of nodes by
    /// default
    #[arg(long, value_name = "PERIODS", value_parser = clap::value_parser!(u16).range(1..))]
    suspicion: Option<u16>,
    /// Nodes to probe: near ones more often, by the round trips that this node measures, or all alike.
    /// Every node is probed from time to time in both cases
    #[arg(long, value_name = "BY", default_value = "measured")]
    distances: Distances,
    /// Write one JSON object a line instead of text, and every second the traffic
    #[arg(long)]
    json: bool,
    /// Percentage of arriving packets to drop, to see the effect
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    loss: u32,
    #[command(flatten)]
    election: ElectionFlags,
    #[command(flatten)]
    locks: LockFlags,
}

impl Node {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let runtime = runtime()?;
        let served = runtime.block_on(self.serve());
        // A name that is being looked up may take half a minute.
        runtime.shutdown_background();
        served?;
        Ok(true)
    }

    /// The seal of the packets; `None` only with `--plain`.
    fn seal(&self) -> Result<Option<Seal>, Failure> {
        let Some(path) = &self.key else {
            let flags = [
                ("--group", self.group.is_some()),
                ("--rate", self.rate.is_some()),
                ("--group-reads-key", self.group_reads_key),
                ("--state", self.state.is_some()),
            ];
            return match flags.into_iter().find(|(_, is_given)| *is_given) {
                _ if !self.plain => Err(Failure::NoKey),
                Some((flag, _)) => Err(Failure::NeedsKey { flag }),
                None => Ok(None),
            };
        };
        let rate = self.rate.map(|per_second| RateLimit {
            per_second,
            burst: per_second.saturating_mul(2),
        });
        let group = self.group.as_deref().unwrap_or("selvedge");
        let mut seal = Seal::new(self.read_keys(path)?, group);
        seal.rate = rate;
        Ok(Some(seal))
    }

    fn read_keys(&self, path: &Path) -> Result<Keyring, KeyFileError> {
        match self.group_reads_key {
            true => read_group_key_file(path),
            false => read_key_file(path),
        }
    }

    /// Gives a node the keys that its file has now. Returns a line about it.
    async fn reload_keys(&self, node: &Handle) -> String {
        let Some(path) = &self.key else {
            return "there is no key file to read again: this node sends in the clear".to_owned();
        };
        let keys = match self.read_keys(path) {
            Ok(keys) => keys,
            Err(error) => return format!("the keys stay as they are: {error}"),
        };
        let names: Vec<String> = keys.names().map(|it| it.to_string()).collect();
        match node.set_keys(keys).await {
            Ok(()) => format!(
                "keys from now on: {}; the first one seals",
                names.join(", ")
            ),
            Err(error) => format!("the keys stay as they are: {error}"),
        }
    }

    /// The setup of a node with these flags.
    async fn setup(&self) -> Result<Setup, Failure> {
        let id = match self.id {
            Some(id) => NodeId(id),
            // Half of all numbers are plenty, and avoid the numbers that stand in for seeds.
            None => NodeId(entropy()? >> 1),
        };
        let seal = self.seal()?;
        let seeds = self.seeds().await?;
        let period = Span::millis(self.period);
        let config = Config::default()
            .with_period(period)
            .with_jitter(Span(period.0 / 10))
            .with_probe_timeout(Span(period.0 * 3 / 10))
            .with_suspicion(
                self.suspicion
                    .map_or(Config::default().suspicion, SuspicionLength::Fixed),
            );
        let unit = match self.distances {
            Distances::Measured => Some(Config::ROUND_TRIP_UNIT),
            Distances::Uniform => None,
        };
        let config = config.with_round_trip_unit(unit);
        let mut tags: Tags = self.tags.iter().cloned().collect();
        self.locks.mark(&mut tags)?;
        let mut setup = Setup::new(id, self.listen)
            .advertise(self.advertise.iter().copied())
            .tags(tags)
            .seeds(seeds)
            .membership(config)
            .election(self.election.settings(period))
            .clock(Clock::start());
        setup = self.locks.set(setup);
        if let Some(seal) = seal {
            setup = setup.seal(seal);
        }
        if let Some(dir) = &self.state {
            setup = setup.state(dir);
        }
        if self.loss > 0 {
            let faults = Faults::none().with_loss(Ratio::new(self.loss, 100));
            let faulty = Faulty::new(Udp::new(), &FaultControl::new(faults), entropy()?);
            setup = setup.transport(faulty);
        }
        Ok(setup)
    }

    /// The nodes to join through. The node itself looks up a name that has no address now.
    async fn seeds(&self) -> Result<Vec<Seed>, Failure> {
        let mut lookups = Vec::new();
        for name in &self.join {
            let later = Seed::found_later(name).map_err(|source| Failure::Resolve {
                name: name.clone(),
                source,
            })?;
            let name = name.clone();
            let found = tokio::spawn(async move { Seed::named(&name).await });
            lookups.push((later, found));
        }
        let end = Instant::now() + LOOKUP;
        let mut seeds = Vec::new();
        for (later, found) in lookups {
            let found = timeout_at(end, found).await;
            seeds.push(match found {
                Ok(Ok(Ok(seed))) => seed,
                Ok(_) | Err(_) => later,
            });
        }
        Ok(seeds)
    }

    async fn serve(self) -> Result<(), Failure> {
        // Names may be looked up for some seconds: a signal meanwhile is heeded afterwards.
        let mut reloads = Reloads::listen()?;
        let setup = self.setup().await?;
        // Once the node has started, others may know of it, so it leaves properly.
        let mut signals = Signals::listen()?;
        let node = Host::start(setup).await?;
        let mut events = node.events_from_oldest();
        let (id, clock) = (node.id(), node.clock());
        let (mut log, mut closed) = Log::start(clock, self.json)?;
        log.write(
            "listens",
            &Line::new(format!("node {id} listens at {}", node.address())),
        );
        let traffic = node.traffic();
        let mut reports = every(REPORTS);
        let (mut looks, mut watch) = (every(LOOKS), Watch::default());
        let mut lock = self.locks.hold(&node);
        let (mut distances, mut round_trips) = (every(DISTANCES), RoundTrips::default());

        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut waits = !self.join.is_empty();
        let ended = loop {
            tokio::select! {
                asked = signals.recv() => break asked,
                () = reloads.recv() => {
                    let line = self.reload_keys(&node).await;
                    log.write("keys", &Line::new(line));
                }
                Ok(error) = &mut closed => break Err(Failure::Output(error)),
                event = events.recv() => match event {
                    Ok(event) => {
                        waits &= !matches!(event.event, NodeEvent::Membership(Event::Identified(_)));
                        log.event(&event);
                        if let NodeEvent::TagsChanged { member, tags } = &event.event
                            && let Some(text) = self.locks.other(member.id, tags)
                        {
                            log.bad("other-locks", &text);
                        }
                    }
                    Err(RecvError::Lagged { missed }) => log.missed(missed),
                    Err(RecvError::Closed) => break Err(Failure::Stopped),
                },
                Some((event, line)) = lock.recv() => log.write(event, &line),
                _ = reports.tick(), if self.json => log.report(traffic.report()),
                () = &mut patience, if waits => {
                    waits = false;
                    log.say(&no_answer(&self.join.join(", "), traffic.report()));
                }
                _ = distances.tick() => {
                    if let Some(line) = round_trips.line(&node.members()) {
                        log.write("round-trips", &line);
                    }
                }
                _ = looks.tick() => {
                    for trouble in watch.look(traffic.report(), clock.now()) {
                        log.trouble(trouble);
                    }
                }
            }
        };
        let left = say_goodbye(&node, &mut log, &mut events, &mut signals, &mut lock).await;
        log.finish();
        ended.and(left)
    }
}

/// Reads a tag. Its value may be empty, and may have further signs `=`.
fn tag(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("give a tag as NAME=VALUE"),
    }
}

/// An interval that skips the ticks of a time in which the process was suspended.
fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// The line when no seed has answered for a while, with the cause that the counters show.
fn no_answer(seeds: &str, counted: TrafficReport) -> String {
    let troubles = trouble::troubles(counted);
    let troubles: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    let why = if !troubles.is_empty() {
        troubles.join("; ")
    } else if counted.received == 0 {
        "nothing came at all: check that a node runs there, with the same key file and --group"
            .to_owned()
    } else {
        format!("{} datagrams came, and no answer", counted.received)
    };
    format!("no answer from {seeds} for {PATIENCE:?}: {why}; still trying")
}

/// Leaves the mesh, unless the user will not wait for that.
async fn say_goodbye(
    node: &Handle,
    log: &mut Log,
    events: &mut Events,
    signals: &mut Signals,
    lock: &mut Receiver<(&'static str, Line)>,
) -> Result<(), Failure> {
    log.say("leaving the mesh; Ctrl-C again to exit at once");
    let leaves = node.leave();
    tokio::pin!(leaves);
    loop {
        tokio::select! {
            biased;
            Some((event, line)) = lock.recv() => log.write(event, &line),
            left = &mut leaves => break left?,
            asked = signals.recv() => {
                asked?;
                log.say("exited without leaving: the other nodes will detect a failure");
                return Ok(());
            }
        }
    }
    while let Ok(Some(event)) = events.try_recv() {
        log.event(&event);
    }
    log.say(&format!("left; others here: {}", log.others()));
    Ok(())
}

/// Signals with which the user or the system asks the node to leave.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Signals that would end the process, and do nothing while these streams exist.
    _ignored: [Signal; 2],
}

#[cfg(unix)]
impl Signals {
    /// Listens for signals. From now on they do not kill the process.
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::Signal);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _ignored: [
                listen(SignalKind::user_defined1())?,
                listen(SignalKind::user_defined2())?,
            ],
        })
    }

    async fn recv(&mut self) -> Result<(), Failure> {
        tokio::select! {
            _ = self.interrupt.recv() => Ok(()),
            _ = self.terminate.recv() => Ok(()),
        }
    }
}

/// The signal that has the node read its key file again.
#[cfg(unix)]
struct Reloads(Signal);

#[cfg(unix)]
impl Reloads {
    fn listen() -> Result<Self, Failure> {
        let hangup = signal(SignalKind::hangup());
        hangup.map(Self).map_err(Failure::Signal)
    }

    async fn recv(&mut self) {
        if self.0.recv().await.is_none() {
            core::future::pending().await
        }
    }
}

/// There is no such signal.
#[cfg(not(unix))]
struct Reloads;

#[cfg(not(unix))]
impl Reloads {
    fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn recv(&mut self) {
        core::future::pending().await
    }
}

/// Signals with which the user asks the node to leave.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn recv(&mut self) -> Result<(), Failure> {
        tokio::signal::ctrl_c().await.map_err(Failure::Signal)
    }
}
