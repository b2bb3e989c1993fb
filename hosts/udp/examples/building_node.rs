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
//! `add 103` gives the building one more light, with a routine that `switch 103 1` triggers, while all nodes
//! run. They store it: each node has it after any restart, whatever its command line begins with.
//!
//! `spare yes` asks the other nodes to spare this one, as a program does whose battery runs low: from the next
//! epoch on it is in no group where enough others are up. `spare no` takes it back.
//!
//! The lamp and the bell are lines on the terminal of the node that leads their group. The lamp may
//! be switched on twice in a run, after a crash of that node. The bell never rings twice, so in that
//! case it may not ring at all.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::env;
use std::error::Error;
use std::io::stdin;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use selvedge_routine::{Priority, Routine, Step};
use selvedge_udp::selvedge::Coordination;
use selvedge_udp::selvedge::core::Time;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::groups::store::Stored;
use selvedge_udp::selvedge::groups::{GroupId, Node, Place, Selection};
use selvedge_udp::selvedge::kgroup::routines::{Definition, Retrigger, RoutineEvent};
use selvedge_udp::selvedge::kgroup::{
    ConfigError, Delivery, Event, LeaderEvent, Outcome, Site, TriggerId, devices,
};
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::{Handle, Host, NodeEvent, NodeId, Observed, Setup, Span};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

const LAMP: NodeId = NodeId(101);
const BELL: NodeId = NodeId(102);

/// The longest wait for an answer: without a quorum a request waits for as long as it has to.
const PATIENCE: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: building_node --id N --nodes N --failures F --listen ADDRESS --state FOLDER \
                     [--epoch SECONDS] --join ADDRESS..";
const HELP: &str = "put MAP KEY VALUE | get MAP KEY | ring ID | add LIGHT | switch LIGHT ID | spare yes | spare no | site | members | leave";

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
    runtime.block_on(async {
        tokio::select! {
            ended = serve_devices(&node) => ended,
            ended = serve_commands(&node, commands) => ended,
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
    join: Vec<SocketAddr>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let (mut id, mut nodes, mut failures) = (None, None, None);
        let (mut listen, mut state, mut epoch) = (None, None, 60);
        let mut join = Vec::new();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(USAGE);
            match name.as_str() {
                "--id" => id = Some(value()?.parse()?),
                "--nodes" => nodes = Some(value()?.parse()?),
                "--failures" => failures = Some(value()?.parse()?),
                "--listen" => listen = Some(value()?.parse()?),
                "--state" => state = Some(value()?.into()),
                "--epoch" => epoch = value()?.parse()?,
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
            join,
        })
    }

    fn setup(&self) -> Result<Setup, ConfigError> {
        let site = site(self.nodes, self.failures)?;
        // Answers in one building are fast: a failure is detected sooner than with the defaults.
        let membership = Config::default()
            .with_period(Span::millis(500))
            .with_jitter(Span::millis(50))
            .with_probe_timeout(Span::millis(200));
        Ok(Setup::new(NodeId(self.id), self.listen)
            .membership(membership)
            .seeds(self.join.iter().copied())
            .coordination(Coordination::new(site), Span::secs(self.epoch))
            .state(&self.state))
    }
}

/// The building as it begins, which is equal on all nodes: these nodes, two devices, and the doorbell. Each map,
/// device and routine is at 2 * `failures` + 1 of the nodes.
fn site(nodes: u64, failures: u8) -> Result<Site, ConfigError> {
    let here = Place::default();
    let nodes = (1..=nodes).map(|id| Node::new(id, here));
    let site = Site::new(
        Selection::new().with_failures(failures),
        nodes,
        [(LAMP, here), (BELL, here)],
        1,
    )?;
    let mut ring = Step::new(BELL, "rings".into());
    ring.priority = Priority::BestEffort;
    let steps = vec![Step::new(LAMP, "on".into()), ring];
    let doorbell = Definition::new(Routine { steps })
        .with_deliveries([Delivery::AtLeastOnce, Delivery::AtMostOnce])
        // After a power cut the devices wait for the nodes that return.
        .with_command_timeout(Span::secs(60))
        .with_retrigger(Retrigger::QueueOnce);
    site.with_routine(doorbell)
}

/// Gives commands to the devices whose groups this node leads. Returns when the node has stopped.
async fn serve_devices(node: &Handle) -> Result<(), Box<dyn Error>> {
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
        if let NodeEvent::Groups(Event::Leader { group, event }) = event {
            serve(node, at, (group, event)).await;
        }
    }
}

/// Carries out an event of a group that this node leads. Its answer is refused if another node leads by
/// then, which does the same.
async fn serve(node: &Handle, at: Time, (group, event): (GroupId, LeaderEvent)) {
    if let LeaderEvent::Devices(devices::Event::Ping { device }) = event {
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
                light => format!("light {light}"),
            };
            println!("{device}: {value} (command {})", ticket.number);
        }
        let _taken = node.acted(ticket, outcome).await.is_ok();
    } else if let LeaderEvent::Routine(RoutineEvent::Reports(report)) = event
        && group == Site::routine(0)
    {
        let (run, end, steps) = (report.instance, report.end, report.steps);
        println!("doorbell: run {run}: {end:?}, {steps:?}");
    }
}

/// Answers commands, until one of them is to leave or the input ends.
async fn serve_commands(
    node: &Handle,
    mut commands: UnboundedReceiver<String>,
) -> Result<(), Box<dyn Error>> {
    node.joined().await?;
    println!("joined");
    while let Some(command) = commands.recv().await {
        if command == "leave" {
            break;
        }
        let node = node.clone();
        tokio::spawn(async move {
            let answer = match timeout(PATIENCE, answer(&node, &command)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(why)) => why.to_string(),
                Err(_elapsed) => "no answer".to_owned(),
            };
            println!("{command}: {answer}");
        });
    }
    node.leave().await?;
    Ok(())
}

/// Adds a light and a routine that switches it on, unless the building has it.
async fn add(node: &Handle, light: NodeId) -> Result<String, selvedge_udp::Error> {
    let Some(present) = node.site() else {
        return Ok("the site is not known yet".to_owned());
    };
    if present.cluster_of(light).is_none() {
        let steps = vec![Step::new(light, "on".into())];
        let on = Definition::new(Routine { steps });
        let next = Site::clone(&present).with_device(light, Place::default());
        match next.and_then(|it| it.with_routine(on)) {
            Ok(next) => node.change_site(next).await?,
            Err(why) => return Ok(why.to_string()),
        };
    }
    Ok(shown(node.site().as_deref()))
}

/// Triggers the routine of a light.
async fn switch(
    node: &Handle,
    light: NodeId,
    id: TriggerId,
) -> Result<String, selvedge_udp::Error> {
    let site = node.site();
    let mut routines = site.iter().flat_map(|it| it.routines());
    let Some((routine, _)) = routines.find(|it| it.1.devices() == [light]) else {
        return Ok("there is no such light: add it first".to_owned());
    };
    node.trigger(Site::routine(routine), id).await?;
    Ok("triggered".to_owned())
}

fn shown(site: Option<&Site>) -> String {
    let Some(site) = site else {
        return "the site is not known yet".to_owned();
    };
    let devices = site.clusters().flat_map(|it| &it.1.devices);
    let mut devices: Vec<u64> = devices.map(|it| it.0).collect();
    devices.sort_unstable();
    format!("generation {}, devices {devices:?}", site.generation())
}

async fn answer(node: &Handle, command: &str) -> Result<String, selvedge_udp::Error> {
    let words: Vec<&str> = command.splitn(4, ' ').collect();
    Ok(match words[..] {
        ["put", map, key, value] => match node.map(map).put(key, value.as_bytes()).await? {
            Stored::Done { version } => format!("version {version}"),
            refused @ (Stored::Mismatch { .. } | Stored::Full | Stored::Over) => {
                format!("{refused:?}")
            }
        },
        ["get", map, key] => match node.map(map).get(key).await? {
            Some(entry) => {
                let value = entry.value.to_vec();
                let value = String::from_utf8_lossy(&value);
                format!("version {}, {value}", entry.version)
            }
            None => "no entry".to_owned(),
        },
        // An id that was used before starts nothing: a caller that got no answer asks again with
        // the same id.
        ["ring", id] => match id.parse() {
            Ok(id) => {
                node.trigger(Site::routine(0), TriggerId(id)).await?;
                "triggered".to_owned()
            }
            Err(_) => "give a number, another one for each ring".to_owned(),
        },
        ["add", light] => match light.parse() {
            Ok(light) => add(node, NodeId(light)).await?,
            Err(_) => "give the number of a light, from 103".to_owned(),
        },
        ["switch", light, id] => match (light.parse().map(NodeId), id.parse()) {
            (Ok(light), Ok(id)) => switch(node, light, TriggerId(id)).await?,
            _ => "give the number of a light, and a number, another one for each run".to_owned(),
        },
        ["spare", is_spared @ ("yes" | "no")] => {
            node.set_spared(is_spared == "yes").await?;
            "from the next epoch on".to_owned()
        }
        ["site"] => shown(node.site().as_deref()),
        ["members"] => {
            let members = node.members();
            let shown = members.iter();
            let shown = shown.map(|it| format!("{} {:?}", it.member.id, it.status));
            shown.collect::<Vec<_>>().join(", ")
        }
        _ => HELP.to_owned(),
    })
}
