//! `selvedge node`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use selvedge_celect::{self as celect, Ballot};
use selvedge_core::{Delta, Incarnation, Member, NodeId, Ratio, Span, Time};
use selvedge_examples::mesh::Election;
use selvedge_examples::seal::{RateLimit, Seal, read_key_file};
use selvedge_examples::term::Colour;
use selvedge_examples::udp::{Clock, Host, MAX_NODE_ID, Seen, Setup, Told, TrafficReport, Weather};
use selvedge_membership::{Config, Event, SuspicionLength};
use serde::Serialize;
use tokio::net::lookup_host;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, interval, sleep};

use super::{Failure, entropy, runtime};

/// How many events may wait for the terminal.
const EVENTS: usize = 1_024;
/// After how long without an answer of any seed a line says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a node that writes JSON says what it sent.
const REPORTS: Duration = Duration::from_secs(1);

/// Run one real node; several of them, in terminals or on hosts, form a mesh with a leader
///
/// The first node needs no --join; every other one names one or more that run already. The nodes
/// elect a leader by themselves, and another one when it fails or leaves. Ctrl-C lets the node say
/// good-bye.
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
    /// After how many periods a suspected node has failed; 3 ln of the number of nodes without it
    #[arg(long, value_name = "PERIODS", value_parser = clap::value_parser!(u16).range(1..))]
    suspicion: Option<u16>,
    /// From how many lists a live node may be missing when a leader is elected
    #[arg(long, value_name = "LISTS", default_value_t = 2)]
    c: u16,
    /// How many nodes may be listed and dead without slowing an election
    #[arg(long, value_name = "NODES", default_value_t = 1)]
    f: u16,
    /// A leader leads for so many milliseconds unless others renew it; share one in the mesh
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..))]
    lease: Option<u64>,
    /// Write a JSON object a line instead of text, and every second what was sent and received
    #[arg(long)]
    json: bool,
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

    fn election(&self) -> Election {
        let mut election = Election::paced(Span::millis(self.period), self.c, self.f);
        election.config.lease = self.lease.map(Span::millis);
        election
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
                suspicion: self
                    .suspicion
                    .map_or(Config::default().suspicion, SuspicionLength::Fixed),
                ..Config::default()
            },
            exclusion: None,
            election: Some(self.election()),
            seal,
            seed: None,
            clock,
            weather: weather.subscribe(),
            events,
        })
        .await?;
        let mut log = Log::new(clock, self.json);
        log.write(
            "listens",
            &Line::new(format!("node {id} listens at {}", host.address())),
        )?;
        let traffic = host.traffic();
        let mut reports = interval(REPORTS);

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
                    waits &= !matches!(event.event, Told::Membership(Event::Identity(_)));
                    log.event(&event)?;
                }
                _ = reports.tick(), if self.json => log.report(traffic.report())?,
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
    clock: Clock,
    json: bool,
    here: std::collections::BTreeSet<Member>,
}

/// One line, for people and for programs.
#[derive(Serialize)]
struct Line {
    /// What is said to people.
    #[serde(rename = "said")]
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    /// How many are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ballot: Option<Ballot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<TrafficReport>,
}

impl Line {
    const fn new(text: String) -> Self {
        Self {
            text,
            node: None,
            here: None,
            ballot: None,
            traffic: None,
        }
    }
}

impl Log {
    fn new(clock: Clock, json: bool) -> Self {
        Self {
            colour: if json {
                Colour::NEVER
            } else {
                Colour::on(&io::stdout())
            },
            clock,
            json,
            here: std::collections::BTreeSet::new(),
        }
    }

    fn say(&self, line: &str) -> Result<(), Failure> {
        self.write("says", &Line::new(line.to_owned()))
    }

    fn report(&self, traffic: TrafficReport) -> Result<(), Failure> {
        let mut line = Line::new(String::new());
        line.traffic = Some(traffic);
        self.write("traffic", &line)
    }

    fn write(&self, event: &'static str, line: &Line) -> Result<(), Failure> {
        self.write_at(self.clock.now(), event, line)
    }

    /// `at` is by the node's clock; programs get it as microseconds since 1970, which they can
    /// compare.
    fn write_at(&self, at: Time, event: &'static str, line: &Line) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Object<'a> {
            at_us: u64,
            event: &'static str,
            #[serde(flatten)]
            line: &'a Line,
        }
        let mut out = io::stdout().lock();
        let written = if self.json {
            let ago = self.clock.now().since(at);
            let at_us = UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
            let at_us = u64::try_from(at_us)
                .unwrap_or(u64::MAX)
                .saturating_sub(ago.0);
            let object = Object { at_us, event, line };
            serde_json::to_string(&object)
                .map_err(io::Error::from)
                .and_then(|text| writeln!(out, "{text}"))
        } else {
            let time = Duration::from_micros(at.0).as_secs_f64();
            let time = self.colour.dim(&format!("+{time:06.2}s"));
            writeln!(out, "{time}  {}", line.text)
        };
        written.map_err(Failure::Output)
    }

    fn event(&mut self, seen: &Seen) -> Result<(), Failure> {
        let (event, line) = match &seen.event {
            Told::Membership(Event::Identity(me)) => {
                let text = format!("in the mesh as node {}", me.id);
                ("identity", Line::new(text))
            }
            Told::Membership(Event::Membership(delta)) => self.delta(*delta),
            Told::Membership(Event::Broadcast { origin, payload }) => {
                let text = format!("{} bytes from node {}", payload.len(), origin.id);
                ("broadcast", Line::new(text))
            }
            Told::Membership(Event::Metadata(_) | Event::Left) => return Ok(()),
            Told::Election(event) => self.election(*event, seen.node),
        };
        self.write_at(seen.at, event, &line)
    }

    fn delta(&mut self, delta: Delta) -> (&'static str, Line) {
        let member = delta.member();
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => self.here.insert(member),
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => self.here.remove(&member),
            Delta::Suspected(_) => true,
        };
        let count = self.here.len() + 1;
        let (event, what) = match delta {
            Delta::Joined(_) => ("joined", "joined"),
            Delta::Suspected(_) => ("suspected", "may have failed"),
            Delta::Refuted(_) => ("refuted", "is alive after all"),
            Delta::Failed(_) => ("failed", "failed"),
            Delta::Left(_) => ("left", "left"),
            Delta::Confirmed(_) => ("confirmed", "ended its former life"),
        };
        let line = format!("node {} {what}: {count} here", member.id);
        let text = match delta {
            Delta::Joined(_) | Delta::Refuted(_) => self.colour.good(&line),
            Delta::Failed(_) | Delta::Suspected(_) => self.colour.bad(&line),
            Delta::Left(_) | Delta::Confirmed(_) => line,
        };
        let mut line = Line::new(text);
        (line.node, line.here) = (Some(member.id), Some(count));
        (event, line)
    }

    fn election(&self, event: celect::Event, me: NodeId) -> (&'static str, Line) {
        use celect::Event as It;
        let who = |member: Member| {
            if member.id == me {
                "this node".to_owned()
            } else {
                format!("node {}", member.id)
            }
        };
        let (name, node, ballot, text) = match event {
            It::Electing(ballot) => {
                let text = format!("there is no leader: election {}", ballot.epoch);
                ("electing", None, Some(ballot), text)
            }
            It::Yielded { to, .. } => {
                let text = format!("the election of node {} goes on instead", to.initiator.id);
                ("yielded", None, Some(to), text)
            }
            It::TooFew {
                ballot,
                known,
                needed,
            } => {
                let text = format!("{known} lists can be asked and an election needs {needed}");
                ("too-few", None, Some(ballot), self.colour.bad(&text))
            }
            It::Elected { leader, ballot } => {
                let text = format!("{} leads", who(leader));
                (
                    "elected",
                    Some(leader),
                    Some(ballot),
                    self.colour.good(&text),
                )
            }
            It::Deposed { by, .. } => {
                let text = "this node leads no longer".to_owned();
                ("deposed", None, Some(by), self.colour.bad(&text))
            }
            It::Lost { leader, ballot } => {
                let text = format!("the leader is lost: node {}", leader.id);
                ("lost", Some(leader), Some(ballot), self.colour.bad(&text))
            }
            It::Regained { leader, ballot } => {
                let text = format!("{} leads all the same", who(leader));
                (
                    "regained",
                    Some(leader),
                    Some(ballot),
                    self.colour.good(&text),
                )
            }
            It::LeaseOver { leader, ballot } => {
                let text = format!(
                    "node {} leads no longer: nothing was heard of it",
                    leader.id
                );
                (
                    "lease-over",
                    Some(leader),
                    Some(ballot),
                    self.colour.bad(&text),
                )
            }
            It::Ended(ballot) => {
                let text = "this node leads no longer: too few acknowledge it".to_owned();
                ("ended", None, Some(ballot), self.colour.bad(&text))
            }
            It::Concluded { ballot, c, .. } => {
                let text = format!("the election holds if {c} lists at most lack a live node");
                ("concluded", None, Some(ballot), text)
            }
            It::Measured(found) => {
                let text = format!(
                    "{} lists at most lack a live node, by a sample",
                    found.upper
                );
                ("measured", None, None, text)
            }
            It::Unmeasured(why) => ("unmeasured", None, None, self.colour.bad(&why.to_string())),
            It::Tolerates { c, .. } => {
                let text = format!("elections rest on {c} lists at most that lack a live node");
                ("tolerates", None, None, text)
            }
        };
        let mut line = Line::new(text);
        (line.node, line.ballot) = (node.map(|it| it.id), ballot);
        (name, line)
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
