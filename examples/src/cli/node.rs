//! `selvedge node`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use selvedge_core::{Delta, Incarnation, Member, NodeId, Ratio, Span};
use selvedge_examples::seal::{RateLimit, Seal, read_key_file};
use selvedge_examples::term::Colour;
use selvedge_examples::udp::{Clock, Host, MAX_NODE_ID, Seen, Setup, Weather};
use selvedge_membership::{Config, Event};
use tokio::net::lookup_host;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep};

use super::{Failure, entropy, runtime};

/// How many events may wait for the terminal.
const EVENTS: usize = 1_024;
/// After how long without an answer of any seed a line says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// Run one real node; several of them, in terminals or on hosts, form a mesh
///
/// The first node needs no --join; every other one names one or more that run already. Ctrl-C
/// lets the node say good-bye.
#[derive(Debug, Args)]
#[command(after_help = "Try it in two terminals:
  selvedge key mesh.key
  selvedge node --key mesh.key --listen 127.0.0.1:7001
  selvedge node --key mesh.key --listen 127.0.0.1:7002 --join 127.0.0.1:7001")]
pub(crate) struct Node {
    /// Where to listen: an address and a UDP port of this host (port 0 takes any free one)
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// Nodes that run already, as ADDRESS:PORT or NAME:PORT
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    join: Vec<String>,
    /// The keys of the mesh, as `selvedge key` makes them: the first one seals, all open
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Send in the clear, and listen to anyone
    #[arg(long, conflicts_with = "key")]
    plain: bool,
    /// Which mesh, among those that have the same keys
    #[arg(long, default_value = "selvedge")]
    group: String,
    /// Hear at most so many packets a second of each node, and twice as many at once
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Where others reach this node, if not where it listens (behind 0.0.0.0 or a port mapping)
    #[arg(long, value_name = "ADDR")]
    advertise: Option<SocketAddr>,
    /// The node's id; random without it. No two nodes may share one
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=MAX_NODE_ID.0))]
    id: Option<u64>,
    /// The protocol period in milliseconds; share one in the mesh
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    period: u64,
    /// Lose so many of 100 packets that arrive, to see what that does
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    loss: u32,
}

impl Node {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        runtime()?.block_on(self.serve())?;
        Ok(true)
    }

    /// How packets are sealed; `None` only if that was asked for.
    fn seal(&self) -> Result<Option<Seal>, Failure> {
        let Some(path) = &self.key else {
            return if self.plain {
                Ok(None)
            } else {
                Err(Failure::NoKey)
            };
        };
        let rate = self.rate.map(|per_second| RateLimit {
            per_second,
            burst: per_second.saturating_mul(2),
        });
        Ok(Some(Seal {
            keyring: read_key_file(path)?,
            group: self.group.clone(),
            rate,
        }))
    }

    async fn serve(self) -> Result<(), Failure> {
        let seal = self.seal()?;
        let id = match self.id {
            Some(id) => NodeId(id),
            // Half of all numbers are plenty, and keep clear of those that stand in for seeds.
            None => NodeId(entropy()? >> 1),
        };
        let mut seeds = Vec::new();
        for name in &self.join {
            let failure = |source| Failure::Resolve {
                name: name.clone(),
                source,
            };
            let found = lookup_host(name).await.map_err(failure)?;
            // A socket of one family cannot send to the other one.
            let count = seeds.len();
            seeds.extend(found.filter(|seed| seed.is_ipv4() == self.listen.is_ipv4()));
            if seeds.len() == count {
                return Err(Failure::Family {
                    name: name.clone(),
                    listen: self.listen,
                });
            }
        }
        let period = Span::millis(self.period);
        let weather = watch::Sender::new(Weather::lossy(Ratio::new(self.loss, 100)));
        let (events, mut seen) = mpsc::channel(EVENTS);
        let clock = Clock::start();
        let host = Host::start(Setup {
            me: Member {
                id,
                incarnation: life(),
            },
            listen: self.listen,
            socket: None,
            advertise: self.advertise,
            seeds,
            config: Config {
                period,
                jitter: Span(period.0 / 10),
                probe_timeout: Span(period.0 * 3 / 10),
                ..Config::default()
            },
            exclusion: None,
            seal,
            seed: None,
            clock,
            weather: weather.subscribe(),
            events,
        })
        .await?;
        let mut log = Log::new();
        log.say(&format!("node {id} listens at {}", host.address()))?;

        let interrupted = interrupted();
        tokio::pin!(interrupted);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut waits = !self.join.is_empty();
        loop {
            tokio::select! {
                asked = &mut interrupted => {
                    asked?;
                    break;
                }
                Some(event) = seen.recv() => {
                    waits &= !matches!(event.event, Event::Identity(_));
                    log.event(&event)?;
                }
                () = &mut patience, if waits => {
                    waits = false;
                    let seeds = self.join.join(", ");
                    log.say(&format!("no answer from {seeds} for {PATIENCE:?}: check that a node runs there; still trying"))?;
                }
            }
        }
        log.say("saying good-bye; Ctrl-C again to go at once")?;
        let known = others(&host).await?;
        tokio::select! {
            left = host.leave() => left?,
            asked = self::interrupted() => {
                asked?;
                return log.say("gone; the others will find out");
            }
        }
        while let Ok(event) = seen.try_recv() {
            log.event(&event)?;
        }
        log.say(&format!("left; others here: {known}"))
    }
}

/// A life that this node did not have before: the seconds of the system's clock. Should that run
/// backwards between two starts under one id, the others remember and the node takes a later one.
#[allow(clippy::cast_possible_truncation, reason = "incarnations may wrap")]
fn life() -> Incarnation {
    let seconds = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    Incarnation(seconds as u32)
}

async fn others(host: &Host) -> Result<usize, Failure> {
    let list = host.members().await?;
    let live = list.iter().filter(|known| known.status.is_live()).count();
    Ok(live.saturating_sub(1))
}

/// Writes what a node is told, a line each, and keeps count of who is here.
struct Log {
    colour: Colour,
    start: Clock,
    here: std::collections::BTreeSet<Member>,
}

impl Log {
    fn new() -> Self {
        Self {
            colour: Colour::on(&io::stdout()),
            start: Clock::start(),
            here: std::collections::BTreeSet::new(),
        }
    }

    fn say(&self, line: &str) -> Result<(), Failure> {
        let time = Duration::from_micros(self.start.now().0).as_secs_f64();
        let time = self.colour.dim(&format!("+{time:06.2}s"));
        writeln!(io::stdout(), "{time}  {line}").map_err(Failure::Output)
    }

    fn event(&mut self, seen: &Seen) -> Result<(), Failure> {
        let line = match &seen.event {
            Event::Identity(me) => format!("in the mesh as node {}", me.id),
            Event::Membership(delta) => self.delta(*delta),
            Event::Broadcast { origin, payload } => {
                format!("{} bytes from node {}", payload.len(), origin.id)
            }
            Event::Metadata(_) | Event::Left => return Ok(()),
        };
        self.say(&line)
    }

    fn delta(&mut self, delta: Delta) -> String {
        let member = delta.member();
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => self.here.insert(member),
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => self.here.remove(&member),
            Delta::Suspected(_) => true,
        };
        let count = self.here.len() + 1;
        let what = match delta {
            Delta::Joined(_) => "joined",
            Delta::Suspected(_) => "may have failed",
            Delta::Refuted(_) => "is alive after all",
            Delta::Failed(_) => "failed",
            Delta::Left(_) => "left",
            Delta::Confirmed(_) => "ended its former life",
        };
        let line = format!("node {} {what}: {count} here", member.id);
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => self.colour.good(&line),
            Delta::Failed(_) | Delta::Suspected(_) => self.colour.bad(&line),
            Delta::Left(_) | Delta::Confirmed(_) => line,
        }
    }
}

/// Ends when the user or the system asks the node to go.
async fn interrupted() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Signal)?;
        tokio::select! {
            asked = tokio::signal::ctrl_c() => asked.map_err(Failure::Signal),
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(Failure::Signal)
}
