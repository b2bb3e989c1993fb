//! The nodes of the building: real nodes with a socket each, and the application at each node.

use core::num::NonZeroUsize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge::Coordination;
use selvedge_core::shared::{self, RecvError};
use selvedge_core::{NodeId, Time};
use selvedge_groups::store::{Expected, Stored};
use selvedge_kgroup::devices;
use selvedge_kgroup::routines::RoutineEvent;
use selvedge_kgroup::{Event, LeaderEvent, Outcome, Site};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::faults::{FaultControl, Faulty};
use selvedge_udp::transport::Udp;
use selvedge_udp::{Clock, Events, Handle, Host, HostError, NodeEvent, Setup};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::course::Course;
use super::rooms::Rooms;
use super::site::{EPOCH, RUNS, Which, settings};
use crate::demo::ground::{Ground, Loopback};
use crate::demo::plan::Plan;

/// The number of events that one node keeps for its application.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 12) - 1);

/// The shared state of the building's application.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rooms: Rooms,
    course: Mutex<Course>,
    handles: Mutex<BTreeMap<NodeId, Handle>>,
}

impl Shared {
    pub(super) fn course(&self) -> MutexGuard<'_, Course> {
        // Nothing panics while the lock is held.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes that are up.
    pub(super) fn up(&self) -> BTreeMap<NodeId, Handle> {
        self.handles().clone()
    }

    /// Notes the time that a command took to its device.
    fn note_command(&self, given: Time) {
        let took = self.rooms.now().since(given);
        let mut course = self.course();
        course.latest = course.latest.max(took);
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<NodeId, Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All nodes, and the faults between them.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
    plan: Plan,
    site: Arc<Site>,
    /// A temporary folder with the folders of the nodes.
    folder: PathBuf,
    seed: u64,
    keyring: Keyring,
    faults: FaultControl,
    ground: Loopback,
    addresses: BTreeMap<NodeId, SocketAddr>,
    /// The application at each node.
    working: BTreeMap<NodeId, JoinHandle<()>>,
}

impl Stage {
    pub(super) fn new(plan: Plan, site: Site, seed: u64) -> Result<Self, HostError> {
        let name = format!("selvedge-building-{}-{seed}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Of another process with this number, which was killed.
        let _gone = std::fs::remove_dir_all(&folder).is_ok();
        let clock = Clock::start();
        let shared = Shared {
            rooms: Rooms::new(clock),
            course: Mutex::default(),
            handles: Mutex::default(),
        };
        Ok(Self {
            clock,
            shared: Arc::new(shared),
            plan,
            site: Arc::new(site),
            folder,
            seed,
            keyring: Keyring::of(Key::random().map_err(HostError::Entropy)?),
            faults: FaultControl::new(Loopback.faults()),
            ground: Loopback,
            addresses: BTreeMap::new(),
            working: BTreeMap::new(),
        })
    }

    /// Starts a node with what its earlier lives stored.
    pub(super) async fn start(&mut self, node: NodeId) -> Result<(), HostError> {
        let former = self.addresses.get(&node).copied();
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listen = former.unwrap_or(unspecified);
        let socket = self.ground.socket(node, former);
        let socket = socket.map_err(|source| HostError::Listen {
            address: listen,
            source,
        })?;
        self.seed = self.seed.wrapping_add(1);
        let period = self.plan.config.period;
        let coordination = Coordination::new(Arc::clone(&self.site)).with_config(settings(period));
        let setup = Setup::new(node, listen)
            .transport(Faulty::new(Udp::bound(socket), &self.faults, self.seed))
            .seeds(self.addresses.values().copied())
            .membership(self.plan.config.clone())
            .coordination(coordination, period * EPOCH)
            .state(self.folder.join(node.0.to_string()))
            .seal(Seal::new(self.keyring.clone(), "building"))
            .random_seed(self.seed)
            .clock(self.clock)
            .limits(shared::Limits {
                events: KEPT,
                ..shared::Limits::default()
            });
        let handle = Host::start(setup).await?;
        self.addresses.insert(node, handle.address());
        let work = work(
            handle.events_from_oldest(),
            handle.clone(),
            Arc::clone(&self.shared),
        );
        self.working.insert(node, tokio::spawn(work));
        self.shared.handles().insert(node, handle);
        Ok(())
    }

    /// Cuts the power: the nodes stop together, and the application there, too.
    pub(super) async fn go_dark(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        let mut stops = JoinSet::new();
        for node in nodes {
            let handle = self.shared.handles().remove(&node);
            if let Some(working) = self.working.remove(&node) {
                working.abort();
            }
            if let Some(handle) = handle {
                stops.spawn(async move { handle.kill().await });
            }
            self.shared.course().goes_down(node, self.clock.now());
        }
        stops.join_all().await;
    }

    /// The number of nodes that list exactly the live nodes, each in its present life.
    pub(super) fn right(&self) -> usize {
        let up = self.shared.up();
        let truth: BTreeMap<_, _> = up.iter().map(|it| (*it.0, it.1.state().me)).collect();
        let is_right = |handle: &&Handle| {
            let members = handle.members();
            let live = members.iter().filter(|it| it.status.is_live());
            let live: BTreeMap<_, _> = live.map(|it| (it.member.id, it.member)).collect();
            live == truth
        };
        up.values().filter(is_right).count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It may never have been made.
        let _gone = std::fs::remove_dir_all(&self.folder).is_ok();
    }
}

/// The application at a node: it asks devices, sends commands, and counts runs.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "other events, also later ones, are not about this"
)]
async fn work(mut events: Events, node: Handle, shared: Arc<Shared>) {
    loop {
        let seen = match events.recv().await {
            Ok(seen) => seen,
            Err(RecvError::Lagged { missed }) => {
                shared.course().missed += missed;
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        shared.course().note(&seen);
        let NodeEvent::Groups(Event::Leader { group, event }) = seen.event else {
            continue;
        };
        let at = seen.at;
        match event {
            LeaderEvent::Devices(event) => {
                tokio::spawn(obey(at, event, node.clone(), Arc::clone(&shared)));
            }
            LeaderEvent::Routine(RoutineEvent::Reports(report)) => {
                if let Some(routine) = Which::of(group) {
                    tokio::spawn(count(routine, report.instance, node.clone()));
                }
            }
            _ => {}
        }
    }
}

/// Asks a device for its state or sends it a command, for an event of the time `at`. The node may
/// have lost its lead when that has ended.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "other events, also later ones, are not about this"
)]
async fn obey(at: Time, event: devices::Event, node: Handle, shared: Arc<Shared>) {
    let _taken = match event {
        devices::Event::Ping { device } => {
            let value = shared.rooms.look(device);
            value.is_some() && node.reported(device, value).await.is_ok()
        }
        devices::Event::Act { ticket, value } => {
            let outcome = match shared.rooms.act(ticket, value).await {
                true => Outcome::Done,
                false => Outcome::Failed,
            };
            shared.note_command(at);
            node.acted(ticket, outcome).await.is_ok()
        }
        _ => false,
    };
}

/// Records in the map that this run of the routine and all earlier ones have ended. Other nodes
/// change the same entry at the same time.
async fn count(routine: Which, run: u64, node: Handle) {
    let map = node.map(RUNS);
    // Until the node fails: then the node that reports the next run counts this one, too.
    while let Ok(entry) = map.get(RUNS).await {
        let mut runs = entry.as_ref().map(|it| read(&it.value)).unwrap_or_default();
        let known = runs.entry(routine).or_default();
        if *known >= run {
            return;
        }
        *known = run;
        let expected = entry.map_or(Expected::Absent, |it| Expected::Version(it.version));
        let value = write(&runs);
        let changed = map.compare_and_set(RUNS, expected, Some(value.as_bytes()));
        if matches!(changed.await, Ok(Stored::Done { .. }) | Err(_)) {
            return;
        }
        sleep(core::time::Duration::from_millis(1)).await;
    }
}

/// The number of runs of each routine in an entry of the map.
pub(super) fn read(bytes: &[u8]) -> BTreeMap<Which, u64> {
    let text = core::str::from_utf8(bytes).unwrap_or_default();
    let numbers = text.split(' ').map(|it| it.parse().unwrap_or_default());
    Which::ALL.into_iter().zip(numbers).collect()
}

fn write(runs: &BTreeMap<Which, u64>) -> String {
    let number = |it| runs.get(&it).copied().unwrap_or_default().to_string();
    Which::ALL.map(number).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_the_map_is_read_again() {
        let runs = BTreeMap::from_iter(Which::ALL.into_iter().zip([3, 0, 17, 2]));
        assert_eq!(read(write(&runs).as_bytes()), runs);
        let of_none = BTreeMap::from(Which::ALL.map(|it| (it, 0)));
        assert_eq!(read(write(&BTreeMap::new()).as_bytes()), of_none);
    }
}
