//! A building that runs and changes: five nodes in this process control a window, the heating and
//! blinds. The window opens, a lamp is added, a node is replaced by another one, and all nodes lose power
//! at once.
//!
//! ```console
//! $ cargo run -p selvedge-udp --example building
//! ```

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use selvedge_routine::trigger::{Clause, Days, SunEvent, TimeOfDay, Trigger};
use selvedge_routine::{Comparison, Condition, Routine, State, Step};
use selvedge_udp::selvedge::Coordination;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::groups::{Node, Place, Selection, Weight};
use selvedge_udp::selvedge::kgroup::routines::Definition;
use selvedge_udp::selvedge::kgroup::{
    ConfigError, Event, LeaderEvent, Outcome, Site, TriggerId, WallClock, devices,
};
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::{Handle, Host, NodeEvent, NodeId, Setup, Span};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(60);

// ANCHOR: site
const WINDOW: NodeId = NodeId(101);
const HEATING: NodeId = NodeId(102);
const BLINDS: NodeId = NodeId(103);
const LAMP: NodeId = NodeId(104);

/// The valve of the heating runs on a battery: it wakes at this interval. A real one takes some minutes.
const WAKE_INTERVAL: Span = Span::secs(2);

/// The site with which the building begins. Places are in centimetres.
fn site() -> Result<Site, ConfigError> {
    // Node 5 runs on a battery: it takes a quarter of the work of another node.
    let nodes = [(1, 16), (2, 16), (3, 16), (4, 16), (5, 4)];
    let nodes = nodes.map(|(id, weight)| Node::new(id, at(2 * id)).with_weight(Weight(weight)));
    let devices = [(WINDOW, at(2)), (HEATING, at(3)), (BLINDS, at(9))];
    // Each node has a power supply of its own, so one fails at a time: groups of three.
    let selection = Selection::new().with_failures(1);
    let airing = routine(HEATING, "off").with_clause(Clause::Is(Condition {
        device: WINDOW,
        comparison: Comparison::Equal,
        value: "open".into(),
    }));
    let evening = routine(BLINDS, "down").with_trigger(Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Set,
        offset_ms: 0,
    });
    Site::new(selection, nodes, devices, 2)?
        .with_wake_interval(HEATING, Some(WAKE_INTERVAL))?
        .with_routine(airing)?
        .with_routine(evening)
}

/// A place in the corridor.
fn at(metres: u64) -> Place {
    Place([i32::try_from(metres * 100).unwrap_or(i32::MAX), 0, 0])
}

/// A routine of one command.
fn routine(device: NodeId, state: &str) -> Definition {
    let steps = vec![Step::new(device, state.into())];
    Definition::new(Routine { steps })
}
// ANCHOR_END: site

// ANCHOR: start
/// Starts a node, for the first time or again, with the promises in its folder.
async fn start(
    id: u64,
    folder: &Path,
    seeds: &[SocketAddr],
    site: Site,
) -> Result<Handle, Box<dyn Error>> {
    // Answers in one building are fast: a failure is detected sooner than with the defaults.
    let membership = Config::default()
        .with_period(Span::millis(200))
        .with_jitter(Span::millis(20))
        .with_probe_timeout(Span::millis(60));
    let setup = Setup::new(NodeId(id), "127.0.0.1:0".parse()?)
        .membership(membership)
        .seeds(seeds.iter().copied())
        .coordination(Coordination::new(site), Span::secs(60))
        .local_clock(local_clock)
        .state(folder.join(id.to_string()));
    Ok(Host::start(setup).await?)
}

/// The local time. A real building takes the zone from a library of time zones, and the sun of the day from
/// `selvedge_routine::sun`.
fn local_clock() -> Option<WallClock> {
    Some(WallClock {
        utc: UNIX_EPOCH.elapsed().ok()?.into(),
        ahead: 3_600,
        sunrise: TimeOfDay::parse("06:40"),
        sunset: TimeOfDay::parse("20:15"),
    })
}
// ANCHOR_END: start

/// The states of the devices, which all nodes can reach.
#[derive(Clone, Debug)]
struct Devices(Arc<Mutex<BTreeMap<NodeId, State>>>);

impl Devices {
    fn new() -> Self {
        let states = [
            (WINDOW, "shut"),
            (HEATING, "on"),
            (BLINDS, "up"),
            (LAMP, "off"),
        ];
        let states = states.map(|(device, state)| (device, state.into()));
        Self(Arc::new(Mutex::new(states.into())))
    }

    fn set(&self, device: NodeId, state: State) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(device, state);
    }

    fn get(&self, device: NodeId) -> Option<State> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(&device).cloned()
    }

    /// Waits until a device has this state.
    async fn wait_for(&self, device: NodeId, state: &str) {
        while self.get(device) != Some(state.into()) {
            sleep(Duration::from_millis(20)).await;
        }
        println!("device {device} is {state}");
    }
}

// ANCHOR: serve
/// Asks and commands the devices of the groups that this node leads, until it stops.
async fn serve(node: Handle, devices: Devices) {
    let mut events = node.events_from_oldest();
    let valve = tokio::spawn(wake(node.clone(), devices.clone()));
    loop {
        let event = match events.recv().await {
            Ok(observed) => observed.event,
            Err(RecvError::Lagged { .. }) => continue,
            Err(RecvError::Closed) => return valve.abort(),
        };
        let NodeEvent::Groups(Event::Leader { event, .. }) = event else {
            continue;
        };
        // A report is refused if another node leads by then, which does the same.
        if let LeaderEvent::Devices(devices::Event::Ping { device }) = event {
            let _taken = node.reported(device, devices.get(device)).await.is_ok();
        } else if let LeaderEvent::Devices(devices::Event::Act { ticket, value }) = event {
            devices.set(ticket.device, value);
            let _taken = node.acted(ticket, Outcome::Done).await.is_ok();
        }
    }
}
// ANCHOR_END: serve

// ANCHOR: wake
/// Passes on the report of the valve when it wakes. Each node receives it, and all but the leader refuse it.
async fn wake(node: Handle, devices: Devices) {
    loop {
        sleep(WAKE_INTERVAL.into()).await;
        let _taken = node.reported(HEATING, devices.get(HEATING)).await.is_ok();
    }
}
// ANCHOR_END: wake

// ANCHOR: lamp
/// Adds a lamp and a routine that switches it on, and returns the generation that has both.
async fn add_lamp(node: &Handle) -> Result<u32, Box<dyn Error>> {
    let present = node.site().ok_or("the node has not joined")?;
    let next = Site::clone(&present)
        .with_device(LAMP, at(5))?
        .with_routine(routine(LAMP, "on"))?;
    Ok(node.change_site(next).await?)
}
// ANCHOR_END: lamp

// ANCHOR: replace
/// Puts node 6 into the place of node 5.
async fn replace(node: &Handle) -> Result<u32, Box<dyn Error>> {
    let present = node.site().ok_or("the node has not joined")?;
    let next = Site::clone(&present)
        .with_node(Node::new(6, at(10)))?
        .without_node(NodeId(5))?;
    Ok(node.change_site(next).await?)
}
// ANCHOR_END: replace

/// The nodes that run, their folders and devices.
struct Building {
    nodes: BTreeMap<u64, Handle>,
    folder: PathBuf,
    devices: Devices,
}

impl Building {
    async fn start(&mut self, id: u64, site: Site) -> Result<(), Box<dyn Error>> {
        let seeds: Vec<SocketAddr> = self.nodes.values().map(Handle::address).collect();
        let node = start(id, &self.folder, &seeds, site).await?;
        tokio::spawn(serve(node.clone(), self.devices.clone()));
        self.nodes.insert(id, node);
        Ok(())
    }

    fn node(&self, id: u64) -> Result<&Handle, Box<dyn Error>> {
        Ok(self.nodes.get(&id).ok_or("the node is not up")?)
    }

    /// Runs the lamp's routine, at any node.
    async fn switch(&self, node: u64, run: u64) -> Result<(), Box<dyn Error>> {
        self.devices.set(LAMP, "off".into());
        let routine = Site::routine(2);
        (self.node(node)?.trigger(routine, TriggerId(run))).await?;
        self.devices.wait_for(LAMP, "on").await;
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Box<dyn Error>> {
        for id in 1..=5 {
            self.start(id, site()?).await?;
        }
        self.devices.set(WINDOW, "open".into());
        self.devices.wait_for(HEATING, "off").await;

        let generation = add_lamp(self.node(2)?).await?;
        println!("generation {generation} has the lamp");
        self.switch(4, 1).await?;

        let generation = replace(self.node(3)?).await?;
        println!("generation {generation} has node 6 in place of node 5");
        let present = self.node(3)?.site().ok_or("node 3 has no site")?;
        self.start(6, Site::clone(&present)).await?;
        if let Some(former) = self.nodes.remove(&5) {
            former.leave().await?;
        }
        self.switch(6, 2).await?;
        self.node(1)?
            .map("notes")
            .put("key", b"under the mat")
            .await?;

        for node in core::mem::take(&mut self.nodes).values() {
            node.kill().await;
        }
        println!("all nodes lose power");
        // Node 6 needs a site that lists it. The others begin with their first site, as their programs
        // have it still: the later one is in their folders.
        self.start(6, Site::clone(&present)).await?;
        for id in 1..=4 {
            self.start(id, site()?).await?;
        }
        self.switch(2, 3).await?;
        let note = self.node(4)?.map("notes").get("key").await?;
        let note = note.ok_or("the map has lost its entry")?;
        println!("the map still has an entry of {} bytes", note.value.len());
        for node in self.nodes.values() {
            node.kill().await;
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = format!("selvedge-example-building-{}", std::process::id());
    let mut building = Building {
        nodes: BTreeMap::new(),
        folder: std::env::temp_dir().join(name),
        devices: Devices::new(),
    };
    let ended = timeout(4 * PATIENCE, building.run()).await;
    // It may never have been made.
    let _gone = std::fs::remove_dir_all(&building.folder).is_ok();
    ended?
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_building_runs_while_devices_and_nodes_change_and_all_lose_power() {
        super::main().unwrap();
    }
}
