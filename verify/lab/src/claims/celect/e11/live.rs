//! One process a node, over loopback, in real time.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::UNIX_EPOCH;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_celect::Ballot;
use selvedge_core::{Choose, Time};
use serde::Deserialize;
use thiserror::Error;

use super::{HEADERS, Setting, Takeover, kbit};
use selvedge_udp::Clock;

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `selvedge` command.
    pub command: PathBuf,
    /// The number of nodes.
    pub nodes: u64,
    /// The length of the quiet time, in seconds.
    pub idle: u64,
    /// The number of times that the leader is killed.
    pub kills: usize,
    /// The settings of the nodes.
    pub setting: Setting,
    /// The seed for the moments in a period at which leaders are killed.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Report {
    /// The settings of the nodes.
    pub setting: Setting,
    /// The number of nodes.
    pub nodes: u64,
    /// The traffic of all nodes together in each quiet second, in kbit/s: UDP payload.
    pub payload: Vec<f64>,
    /// The same with the headers of IP and UDP.
    pub wire: Vec<f64>,
    /// Datagrams a second, of all.
    pub datagrams: f64,
    /// The share of one processor that each node took, in percent.
    pub cpu: Vec<f64>,
    /// The memory of each node, in MiB, program text included.
    pub resident: Vec<f64>,
    /// The private memory of each node, in MiB.
    pub own: Vec<f64>,
    /// The result of each kill.
    pub takeovers: Vec<Takeover>,
    /// The number of times that a node that was never killed was declared failed.
    pub false_failures: usize,
}

/// Why a measurement failed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// A process did not start, or its files are not there.
    #[error("cannot run {}: {source}: this needs Linux, and processes and ports for all nodes", path.display())]
    Process {
        /// The file to run or read.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The nodes did not reach a state in time.
    #[error("after {0:?} {1}: the machine may be too busy for so many nodes")]
    TooLong(Duration, &'static str),
}

/// The lines of a node that matter here.
#[derive(Debug, Deserialize)]
struct Line {
    at_us: u64,
    event: String,
    text: String,
    node: Option<u64>,
    here: Option<u64>,
    ballot: Option<Ballot>,
    traffic: Option<Sent>,
}

/// A part of a node's traffic counters.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Sent {
    sent: u64,
    sent_bytes: u64,
}

/// A process, and its output.
#[derive(Debug)]
struct Node {
    child: Child,
    /// The number of the process among all processes with this id.
    life: u64,
    address: Option<String>,
    here: u64,
    leader: Option<(u64, Ballot)>,
    reports: Vec<Sent>,
}

/// A line of a node: the node's id, which of its processes wrote it, and the line.
type Notified = (u64, u64, Line);

/// All processes. They end when it is dropped.
struct Mesh<'a> {
    options: &'a Options,
    clock: Clock,
    folder: PathBuf,
    nodes: BTreeMap<u64, Node>,
    sender: Sender<Notified>,
    notified: Receiver<Notified>,
    lives: u64,
    killed: Option<Killed>,
    /// All nodes that ever were killed: reports about their former lives come late.
    dead: BTreeSet<u64>,
    false_failures: usize,
}

/// A leader that was killed, and the reports after that, in microseconds since 1970.
struct Killed {
    id: u64,
    ballot: Ballot,
    at: u64,
    detected: Option<u64>,
    elected: Option<u64>,
    received: BTreeMap<u64, u64>,
}

/// Measures one setting. `say` is called with the progress.
///
/// # Errors
/// When processes cannot be run, or do not follow one leader for long.
pub fn measure(options: &Options, mut say: impl FnMut(&str)) -> Result<Report, LiveError> {
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let mut mesh = Mesh::start(options)?;
    mesh.settle()?;
    let period = Duration::from(options.setting.period);
    // Updates that all nodes have received are not repeated any more.
    mesh.listen_for(period * 20)?;
    say(&format!(
        "{} processes follow one leader; {} s of quiet begin",
        options.nodes, options.idle
    ));
    let quiet = mesh.quiet()?;
    let mut takeovers = Vec::new();
    for kill in 1..=options.kills {
        let micros = rng.below(options.setting.period.0);
        mesh.listen_for(period * 3 + Duration::from_micros(micros))?;
        let takeover = mesh.kill_leader()?;
        say(&format!(
            "kill {kill} of {}: {:.2} s to detect it, {:.3} s to elect, {:.3} s until all heard",
            options.kills, takeover.detected, takeover.elected, takeover.received
        ));
        takeovers.push(takeover);
        mesh.settle()?;
    }
    Ok(Report {
        takeovers,
        false_failures: mesh.false_failures,
        ..quiet
    })
}

fn since_1970() -> u64 {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
    u64::try_from(now).unwrap_or(u64::MAX)
}

impl<'a> Mesh<'a> {
    fn start(options: &'a Options) -> Result<Self, LiveError> {
        let (sender, notified) = channel();
        let folder = std::env::temp_dir().join(format!("selvedge-live-{}", std::process::id()));
        let mut mesh = Self {
            options,
            clock: Clock::start(),
            folder,
            nodes: BTreeMap::new(),
            sender,
            notified,
            lives: 0,
            killed: None,
            dead: BTreeSet::new(),
            false_failures: 0,
        };
        let failure = |source| LiveError::Process {
            path: options.command.clone(),
            source,
        };
        fs::create_dir_all(&mesh.folder).map_err(failure)?;
        let key = Command::new(&options.command)
            .arg("key")
            .arg(mesh.key())
            .stdout(Stdio::null())
            .status();
        if !key.map_err(failure)?.success() {
            return Err(failure(io::Error::other("no key was made")));
        }
        for id in 1..=options.nodes {
            mesh.spawn(id)?;
            mesh.wait("a node does not listen", |mesh| {
                mesh.nodes.get(&id).is_some_and(|it| it.address.is_some())
            })?;
        }
        Ok(mesh)
    }

    fn key(&self) -> PathBuf {
        self.folder.join("mesh.key")
    }

    fn spawn(&mut self, id: u64) -> Result<(), LiveError> {
        let Setting {
            period,
            suspicion,
            lease,
        } = self.options.setting;
        let mut command = Command::new(&self.options.command);
        command
            .args(["node", "--json", "--listen", "127.0.0.1:0", "--key"])
            .arg(self.key())
            .args(["--id", &id.to_string()])
            .args(["--period", &(period.0 / 1_000).to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(suspicion) = suspicion {
            command.args(["--suspicion", &suspicion.to_string()]);
        }
        if let Some(lease) = lease {
            command.args(["--lease", &(lease.0 / 1_000).to_string()]);
        }
        let others = self.nodes.iter().filter(|(other, _)| **other != id);
        let seeds: Vec<String> = others
            .filter_map(|(_, node)| node.address.clone())
            .take(2)
            .collect();
        if !seeds.is_empty() {
            command.arg("--join").args(seeds);
        }
        let failure = |source| LiveError::Process {
            path: self.options.command.clone(),
            source,
        };
        let mut child = command.spawn().map_err(failure)?;
        self.lives += 1;
        let life = self.lives;
        if let Some(output) = child.stdout.take() {
            let sender = self.sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(line) = serde_json::from_str(&line) else {
                        continue;
                    };
                    if sender.send((id, life, line)).is_err() {
                        return;
                    }
                }
            });
        }
        let node = Node {
            child,
            life,
            address: None,
            here: 0,
            leader: None,
            reports: Vec::new(),
        };
        self.nodes.insert(id, node);
        Ok(())
    }

    /// Listens until the condition holds.
    fn wait(
        &mut self,
        why_not: &'static str,
        met: impl Fn(&Self) -> bool,
    ) -> Result<(), LiveError> {
        let limit = Duration::from_secs(60) + Duration::from(self.options.setting.period) * 200;
        let start = self.clock.now();
        while !met(self) {
            if Duration::from(self.clock.now().since(start)) > limit {
                return Err(LiveError::TooLong(limit, why_not));
            }
            self.listen(Duration::from_millis(50))?;
        }
        Ok(())
    }

    fn listen_for(&mut self, span: Duration) -> Result<(), LiveError> {
        let start = self.clock.now();
        loop {
            let ended = Duration::from(self.clock.now().since(start));
            let Some(left) = span.checked_sub(ended) else {
                return Ok(());
            };
            self.listen(left.min(Duration::from_millis(50)))?;
        }
    }

    fn listen(&mut self, at_most: Duration) -> Result<(), LiveError> {
        match self.notified.recv_timeout(at_most) {
            Ok((id, life, line)) => self.receive(id, life, &line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LiveError::TooLong(at_most, "no node prints anything"));
            }
        }
        while let Ok((id, life, line)) = self.notified.try_recv() {
            self.receive(id, life, &line);
        }
        Ok(())
    }

    fn receive(&mut self, id: u64, life: u64, line: &Line) {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.life == life) else {
            return;
        };
        node.here = line.here.unwrap_or(node.here);
        node.reports.extend(line.traffic);
        match line.event.as_str() {
            "listens" => node.address = line.text.split(' ').next_back().map(str::to_owned),
            "elected" | "regained" => node.leader = line.node.zip(line.ballot),
            "lost" | "lease-over" | "ended" => node.leader = None,
            _ => {}
        }
        let is_about = |killed: &Killed| line.node == Some(killed.id);
        let ends = matches!(line.event.as_str(), "failed" | "lost" | "lease-over");
        match &mut self.killed {
            Some(killed) if ends && is_about(killed) => {
                let at = killed.detected.map_or(line.at_us, |it| it.min(line.at_us));
                killed.detected = Some(at);
            }
            Some(killed)
                if line.event == "elected"
                    && !is_about(killed)
                    && line.ballot > Some(killed.ballot) =>
            {
                let at = killed.elected.map_or(line.at_us, |it| it.min(line.at_us));
                killed.elected = Some(at);
                killed.received.insert(id, line.at_us);
            }
            _ if line.event == "failed" => {
                let is_dead = line.node.is_some_and(|it| self.dead.contains(&it));
                self.false_failures += usize::from(!is_dead);
            }
            _ => {}
        }
    }

    /// Waits until all nodes know all others and follow one leader.
    fn settle(&mut self) -> Result<(), LiveError> {
        let nodes = self.options.nodes;
        self.wait("not all nodes follow one leader", |mesh| {
            mesh.nodes.len() as u64 == nodes
                && mesh.nodes.values().all(|it| it.here == nodes)
                && mesh.followed().is_some()
        })
    }

    fn followed(&self) -> Option<(u64, Ballot)> {
        let mut leaders = self.nodes.values().map(|it| it.leader);
        let first = leaders.next()??;
        leaders.all(|it| it == Some(first)).then_some(first)
    }

    /// Measures everything while nothing happens.
    fn quiet(&mut self) -> Result<Report, LiveError> {
        for node in self.nodes.values_mut() {
            node.reports.clear();
        }
        let before = self.processor_times()?;
        let start = self.clock.now();
        self.listen_for(Duration::from_secs(self.options.idle))?;
        // A second is measured between two reports, and on a busy machine they are late.
        self.wait("not all nodes said what they sent", |mesh| {
            mesh.nodes.values().all(|it| it.reports.len() > 1)
        })?;
        let after = self.processor_times()?;
        let seconds = Duration::from(self.clock.now().since(start)).as_secs_f64();
        let samples = self.nodes.values().map(|it| it.reports.len());
        let samples = samples.min().unwrap_or_default();
        let sums: Vec<(u64, u64)> = (0..samples)
            .map(|nth| {
                let reports = self.nodes.values().filter_map(|it| it.reports.get(nth));
                reports.fold((0, 0), |(sent, bytes), it| {
                    (sent + it.sent, bytes + it.sent_bytes)
                })
            })
            .collect();
        let steps = sums.iter().zip(sums.iter().skip(1));
        // The n-th seconds of the nodes do not begin together, but each is one second long.
        let steps: Vec<(f64, f64)> = steps
            .map(|(one, next)| ((next.0 - one.0) as f64, (next.1 - one.1) as f64))
            .collect();
        let (mut resident, mut own) = (Vec::new(), Vec::new());
        for node in self.nodes.values() {
            let status = read(&node.child, "status")?;
            let field = |name: &str| -> f64 {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
                kib.unwrap_or(0.0) / 1_024.0
            };
            resident.push(field("VmRSS:"));
            own.push(field("RssAnon:"));
        }
        let times = before.iter().zip(&after);
        Ok(Report {
            setting: self.options.setting,
            nodes: self.options.nodes,
            payload: steps.iter().map(|it| kbit(it.1, 1.0)).collect(),
            wire: steps
                .iter()
                .map(|it| kbit(it.0.mul_add(HEADERS as f64, it.1), 1.0))
                .collect(),
            datagrams: steps.iter().map(|it| it.0).sum::<f64>() / steps.len().max(1) as f64,
            cpu: times
                .map(|(before, after)| (after - before) / seconds * 100.0)
                .collect(),
            resident,
            own,
            takeovers: Vec::new(),
            false_failures: 0,
        })
    }

    /// For each process, the processor time that it has taken, in seconds.
    fn processor_times(&self) -> Result<Vec<f64>, LiveError> {
        let seconds = |node: &Node| {
            let text = read(&node.child, "schedstat")?;
            let nanos: Option<f64> = text.split(' ').next().and_then(|it| it.parse().ok());
            Ok(nanos.unwrap_or_default() / 1e9)
        };
        self.nodes.values().map(seconds).collect()
    }

    fn kill_leader(&mut self) -> Result<Takeover, LiveError> {
        let no_leader = LiveError::TooLong(Duration::ZERO, "no node leads");
        let (id, ballot) = self.followed().ok_or(no_leader)?;
        let Some(mut node) = self.nodes.remove(&id) else {
            return Err(LiveError::TooLong(Duration::ZERO, "a stranger leads"));
        };
        self.dead.insert(id);
        let at = since_1970();
        // SIGKILL: the node sends no notice that it leaves.
        let killed = node.child.kill().and_then(|()| node.child.wait());
        killed.map_err(|source| LiveError::Process {
            path: self.options.command.clone(),
            source,
        })?;
        self.killed = Some(Killed {
            id,
            ballot,
            at,
            detected: None,
            elected: None,
            received: BTreeMap::new(),
        });
        let others = self.nodes.len();
        self.wait("not all nodes follow another leader", |mesh| {
            let all_heard = |it: &Killed| it.received.len() == others && it.detected.is_some();
            mesh.killed.as_ref().is_some_and(all_heard)
                && mesh.followed().is_some_and(|it| it.0 != id)
        })?;
        let takeover = self.killed.take().map(|it| it.takeover());
        self.spawn(id)?;
        takeover.ok_or(LiveError::TooLong(Duration::ZERO, "no leader was killed"))
    }
}

impl Killed {
    fn takeover(&self) -> Takeover {
        let detected = self.detected.unwrap_or(self.at);
        // A lease may be over at one node when another one has elected already.
        let elected = self.elected.unwrap_or(detected).max(detected);
        let received = self.received.values().max().copied().unwrap_or(elected);
        let seconds = |from: u64, to: u64| {
            let span = Time(to).since(Time(from));
            Duration::from(span).as_secs_f64()
        };
        Takeover {
            detected: seconds(self.at, detected),
            elected: seconds(detected, elected),
            received: seconds(elected, received),
        }
    }
}

impl Drop for Mesh<'_> {
    fn drop(&mut self) {
        for node in self.nodes.values_mut() {
            // Ignores processes that have ended already.
            let _ended = node.child.kill().and_then(|()| node.child.wait()).is_ok();
        }
        let _ended = fs::remove_dir_all(&self.folder).is_ok();
    }
}

fn read(child: &Child, file: &str) -> Result<String, LiveError> {
    let path = Path::new("/proc").join(child.id().to_string()).join(file);
    fs::read_to_string(&path).map_err(|source| LiveError::Process { path, source })
}
