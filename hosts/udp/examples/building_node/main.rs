//! A node of a building, as a process of its own. All nodes together keep named maps, and a doorbell:
//! a routine that switches the lamp on and rings the bell. Each node keeps its promises in a folder,
//! so maps and runs survive `kill -9` of any node, and of all of them at once.
//!
//! Start three nodes in three terminals, and each of them again after it was killed:
//!
//! ```console
//! $ cargo run -p selvedge-udp --example building_node -- --id 1 --nodes 3 --failures 1 \
//!       --listen 127.0.0.1:7001 --state building-1 --join 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
//! $ .. --id 2 .. --listen 127.0.0.1:7002 --state building-2 --join ..
//! $ .. --id 3 .. --listen 127.0.0.1:7003 --state building-3 --join ..
//! ```
//!
//! Then type commands, one a line, into any of them: `help` lists them. An answer begins with its
//! command, because commands do not wait for each other. Where too few nodes are up there is no
//! answer, and no wrong one.
//!
//! `add 104` gives the building one more light, with a routine that `switch 104 1` triggers, while all nodes
//! run. They store it: each node has it after any restart, also if its command line names an earlier site. `set 104 dim`
//! changes the routine, `move 104 5` the place of the light, in metres, and `remove 104` takes both away.
//! `add 105 asleep` adds a light that sleeps: it gets a command when it wakes, which it does when `wake 105` is
//! typed into the node that leads its group. Type it into all of them.
//!
//! To replace node 3 by node 4, start that with `--id 4 --generation 1`, and type `node+ 4` and `node- 3` into
//! any node. Node 3 may stop when it answers `holds`, which lists the ids of its groups, with none.
//!
//! `--generation 5 --lights 104,201` begins with a later site, which has these lights as well: start one node
//! after another again with it, and all have it from the first one on.
//!
//! A node that lost its folder starts with `--restarted`. If a group has lost most of its members so, the
//! doorbell and the lights begin anew by themselves; a map does after `anew MAP`, and is empty.
//!
//! Nodes run on batteries where all command lines list them, such as `--batteries 2,3`: they take a quarter of the
//! share of others. `spare yes` asks the other nodes to spare this one, as a program does when its battery runs low: from
//! the next epoch on it is in no group where enough others are up. `spare no` takes it back, and so does a restart.
//!
//! The lamp, the bell, the chime and the lights are lines on the terminal of the node that leads their group. The
//! lamp may be switched on twice in a run, after a crash of that node. The bell never rings twice, so in that
//! case it may not ring at all. The chime sounds every two seconds: a timer, which the clocks of the nodes
//! trigger, runs once at most for each time.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod commands;
mod site;

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::io::stdin;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::UNIX_EPOCH;

use selvedge_udp::selvedge::Coordination;
use selvedge_udp::selvedge::core::Time;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::groups;
use selvedge_udp::selvedge::groups::{GroupId, Node, Place, Start};
use selvedge_udp::selvedge::kgroup::routines::RoutineEvent;
use selvedge_udp::selvedge::kgroup::{
    Config, ConfigError, Event, LeaderEvent, Outcome, Site, devices,
};
use selvedge_udp::selvedge::membership;
use selvedge_udp::{Handle, Host, NodeEvent, NodeId, Observed, Setup, Span};
use tokio::runtime;
use tokio::sync::mpsc::unbounded_channel;

use crate::site::{BELL, CHIME, DOORBELL, LAMP, TIMER, with_light};

const USAGE: &str = "usage: building_node --id N --nodes N --failures F --listen ADDRESS --state FOLDER \
                     [--epoch SECONDS] [--batteries N,N..] [--generation G] [--lights N,N..] [--restarted] \
                     --join ADDRESS..";

/// The groups in which the node is at the moment.
#[derive(Clone, Debug, Default)]
struct Held(Arc<Mutex<BTreeSet<GroupId>>>);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(env::args().skip(1))?;
    // The node has a thread of its own, so it goes on while this one waits for the terminal.
    let node = Host::blocking_start(arguments.setup()?)?;
    println!("node {} listens at {}", node.id(), node.address());
    let (lines, commands) = unbounded_channel();
    thread::spawn(move || {
        let mut read = stdin().lines().map_while(Result::ok);
        while read.next().is_some_and(|line| lines.send(line).is_ok()) {}
    });
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let held = Held::default();
    runtime.block_on(async {
        tokio::select! {
            ended = serve_devices(&node, &held) => ended,
            ended = commands::serve(&node, &held, commands) => ended,
        }
    })?;
    println!("node {} has left", node.id());
    Ok(())
}

#[derive(Debug)]
struct Arguments {
    id: u64,
    nodes: u64,
    failures: u8,
    listen: SocketAddr,
    state: PathBuf,
    epoch: u64,
    batteries: Vec<u64>,
    generation: u32,
    lights: Vec<NodeId>,
    start: Start,
    join: Vec<SocketAddr>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let (mut id, mut nodes, mut failures) = (None, None, None);
        let (mut listen, mut state, mut epoch) = (None, None, 60);
        let (mut batteries, mut generation, mut lights) = (Vec::new(), 0, Vec::new());
        let (mut start, mut join) = (Start::Fresh, Vec::new());
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(USAGE);
            match name.as_str() {
                "--id" => id = Some(value()?.parse()?),
                "--nodes" => nodes = Some(value()?.parse()?),
                "--failures" => failures = Some(value()?.parse()?),
                "--listen" => listen = Some(value()?.parse()?),
                "--state" => state = Some(value()?.into()),
                "--epoch" => epoch = value()?.parse()?,
                "--generation" => generation = value()?.parse()?,
                "--batteries" => {
                    for node in value()?.split(',') {
                        batteries.push(node.parse()?);
                    }
                }
                "--lights" => {
                    for light in value()?.split(',') {
                        lights.push(NodeId(light.parse()?));
                    }
                }
                "--restarted" => start = Start::Restarted,
                "--join" => {
                    for address in arguments.by_ref() {
                        join.push(address.parse()?);
                    }
                }
                _ => return Err(USAGE.into()),
            }
        }
        Ok(Self {
            id: id.ok_or(USAGE)?,
            nodes: nodes.ok_or(USAGE)?,
            failures: failures.ok_or(USAGE)?,
            listen: listen.ok_or(USAGE)?,
            state: state.ok_or(USAGE)?,
            epoch,
            batteries,
            generation,
            lights,
            start,
            join,
        })
    }

    fn setup(&self) -> Result<Setup, ConfigError> {
        // Answers in one building are fast: a failure is detected sooner than with the defaults.
        let membership = membership::Config::default()
            .with_period(Span::millis(500))
            .with_jitter(Span::millis(50))
            .with_probe_timeout(Span::millis(200));
        // Groups change over at the beginning of a short epoch.
        let stagger = Span::secs(self.epoch / 4).min(Span::secs(10));
        let groups = groups::Config::new().with_stagger(stagger);
        let coordination = Coordination::new(self.site()?)
            .with_config(Config::new().with_groups(groups))
            .with_start(self.start);
        Ok(Setup::new(NodeId(self.id), self.listen)
            .membership(membership)
            .seeds(self.join.iter().copied())
            .coordination(coordination, Span::secs(self.epoch))
            .state(&self.state))
    }

    /// The site of this command line: of generation 0, or a later one.
    fn site(&self) -> Result<Site, ConfigError> {
        let first = site::first(self.nodes, self.failures, &self.batteries)?;
        if self.generation == 0 {
            return Ok(first);
        }
        let later = first.with_generation(self.generation);
        let later = match self.id > self.nodes {
            true => later.with_node(Node::new(self.id, Place::default()))?,
            false => later,
        };
        self.lights.iter().copied().try_fold(later, with_light)
    }
}

impl Held {
    fn note(&self, group: GroupId, is_in: bool) {
        match is_in {
            true => self.groups().insert(group),
            false => self.groups().remove(&group),
        };
    }

    /// The ids of the groups; 3 is the registry's.
    fn list(&self) -> String {
        let ids: Vec<String> = self.groups().iter().map(|it| it.0.to_string()).collect();
        match ids.is_empty() {
            true => "no group".to_owned(),
            false => ids.join(" "),
        }
    }

    fn groups(&self) -> MutexGuard<'_, BTreeSet<GroupId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives commands to the devices whose groups this node leads. Returns when the node has stopped.
async fn serve_devices(node: &Handle, held: &Held) -> Result<(), Box<dyn Error>> {
    let mut events = node.events_from_oldest();
    loop {
        let Observed { at, event, .. } = match events.recv().await {
            Ok(observed) => observed,
            Err(RecvError::Lagged { .. }) => continue,
            Err(RecvError::Closed) => return Ok(()),
        };
        if let NodeEvent::Unstored(why) = event {
            return Err(why.into());
        }
        let NodeEvent::Groups(event) = event else {
            continue;
        };
        if let Event::Leader { group, event } = event {
            serve(node, at, (group, event)).await;
        } else if let Event::Groups(groups::Event::Entered(group)) = event {
            held.note(group, true);
        } else if let Event::Groups(groups::Event::Left(group)) = event {
            held.note(group, false);
        } else if let Event::Groups(groups::Event::BegunAnew(group)) = event {
            println!("group {}: begun anew", group.0);
        }
    }
}

/// Carries out an event of a group that this node leads. Its answer is refused if another node leads by
/// then, which does the same.
async fn serve(node: &Handle, at: Time, (group, event): (GroupId, LeaderEvent)) {
    if let LeaderEvent::Devices(devices::Event::Ping { device }) = event {
        let site = node.site();
        if site.is_some_and(|it| it.wake_interval(device).is_some()) {
            println!("light {device}: asked while it sleeps");
        }
        // These devices answer, and have no state to read.
        let _taken = node.reported(device, None).await.is_ok();
    } else if let LeaderEvent::Devices(devices::Event::Act { ticket, value }) = event {
        // Later another leader may have given the device to another routine.
        let is_late = node.clock().now().since(at) > devices::Config::new().act_timeout;
        let outcome = if is_late {
            Outcome::Failed
        } else {
            Outcome::Done
        };
        if !is_late {
            let device = match ticket.device {
                LAMP => "lamp".to_owned(),
                BELL => "bell".to_owned(),
                CHIME => "chime".to_owned(),
                light => format!("light {light}"),
            };
            println!("{device}: {value} (command {})", ticket.number);
        }
        let _taken = node.acted(ticket, outcome).await.is_ok();
    } else if let LeaderEvent::Routine(RoutineEvent::Triggered { instance }) = event
        && group == Site::routine(TIMER)
    {
        let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
        println!("timer: run {instance} at {:.3}", since_1970.as_secs_f64());
    } else if let LeaderEvent::Routine(RoutineEvent::Reports(report)) = event
        && group == Site::routine(DOORBELL)
    {
        let (run, end, steps) = (report.instance, report.end, report.steps);
        println!("doorbell: run {run}: {end:?}, {steps:?}");
    }
}
