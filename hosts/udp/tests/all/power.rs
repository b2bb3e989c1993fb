//! All nodes of a building lose power at the same moment, at any write to any of their disks.

mod map;
mod run;
mod site;

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use selvedge::Coordination;
use selvedge_core::{NodeId, Span};
use selvedge_groups::{self as groups, Place, Selection};
use selvedge_kgroup::routines::{Definition, Retrigger};
use selvedge_kgroup::{Config, Delivery, Site, devices};
use selvedge_routine::{Priority, Routine, Step};
use selvedge_store::redb::StorageBackend;
use selvedge_udp::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE};
use crate::devices::Devices;

const LAMP: NodeId = NodeId(101);
const BELL: NodeId = NodeId(102);

/// Three nodes, and a routine that switches the lamp on and rings the bell, which must never ring twice.
fn site() -> Site {
    let nodes = (1..=3).map(|id| groups::Node::new(id, Place::default()));
    let devices = [LAMP, BELL].map(|it| (it, Place::default()));
    let site = Site::new(Selection::new().with_failures(1), nodes, devices, 2);
    let mut bell = Step::new(BELL, "ring".into());
    // Where the power is cut its outcome is unknown, and the run ends all the same.
    bell.priority = Priority::BestEffort;
    let steps = vec![Step::new(LAMP, "on".into()), bell];
    let doorbell = Definition::new(Routine { steps })
        .with_deliveries([Delivery::AtLeastOnce, Delivery::AtMostOnce])
        .with_retrigger(Retrigger::QueueOnce);
    site.unwrap().with_routine(doorbell).unwrap()
}

/// With times that are as short as these disks allow. A device is never down.
fn coordination() -> Coordination {
    let groups = groups::Config::new().with_patience(Span::millis(300));
    let devices = devices::Config::new()
        .with_misses(u8::MAX)
        .with_act_timeout(Span::secs(1));
    let config = Config::new().with_groups(groups).with_devices(devices);
    Coordination::new(site()).with_config(config)
}

/// The power of a building, which is cut at one of its synchronised writes.
#[derive(Debug)]
struct Power {
    writes: AtomicUsize,
    /// The number of the write at which it is cut, from 1.
    cut_at: usize,
}

impl Power {
    fn new(cut_at: usize) -> Arc<Self> {
        let writes = AtomicUsize::new(0);
        Arc::new(Self { writes, cut_at })
    }

    fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    fn is_cut(&self) -> bool {
        self.writes() >= self.cut_at
    }

    /// Cuts it now.
    fn off(&self) {
        self.writes.store(usize::MAX, Ordering::SeqCst);
    }

    /// Waits until it is cut.
    async fn cut(&self) {
        while !self.is_cut() {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[derive(Debug, Default)]
struct Image {
    now: Vec<u8>,
    /// The content as of the last synchronised write, which a power cut leaves.
    synced: Vec<u8>,
    /// The places of the writes since then.
    since: Vec<Range<usize>>,
}

impl Image {
    /// Copies what has changed alone: files are long.
    fn sync(&mut self) {
        self.synced.resize(self.now.len(), 0);
        for at in self.since.drain(..) {
            let at = at.start..at.end.min(self.now.len());
            if let Some(bytes) = self.now.get(at.clone()) {
                self.synced[at].copy_from_slice(bytes);
            }
        }
    }
}

/// A disk that loses all writes that are not synchronised.
#[derive(Clone, Debug)]
struct Drive {
    image: Arc<Mutex<Image>>,
    power: Arc<Power>,
}

impl Drive {
    fn new(power: &Arc<Power>, synced: Vec<u8>) -> Self {
        let now = synced.clone();
        Self {
            image: Arc::new(Mutex::new(Image {
                now,
                synced,
                since: Vec::new(),
            })),
            power: Arc::clone(power),
        }
    }

    fn image(&self) -> Result<std::sync::MutexGuard<'_, Image>> {
        if self.power.is_cut() {
            return Err(Error::other("there is no power"));
        }
        Ok(self.image.lock().unwrap())
    }

    /// The content after the power cut.
    fn left(&self) -> Vec<u8> {
        self.image.lock().unwrap().synced.clone()
    }
}

impl StorageBackend for Drive {
    fn len(&self) -> Result<u64> {
        Ok(self.image()?.now.len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let (at, image) = (offset as usize, self.image()?);
        let bytes = image.now.get(at..at + len).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.image()?.now.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self, _: bool) -> Result<()> {
        // A message that does not wait for the disk is faster.
        thread::sleep(Duration::from_millis(20));
        let mut image = self.image()?;
        let nth = self.power.writes.fetch_add(1, Ordering::SeqCst) + 1;
        // Of two cuts one comes just before the disk is done, and one just after.
        if nth < self.power.cut_at || nth.is_multiple_of(2) {
            image.sync();
        }
        drop(image);
        self.image().map(drop)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let at = offset as usize..offset as usize + data.len();
        let mut image = self.image()?;
        image.now[at.clone()].copy_from_slice(data);
        image.since.push(at);
        Ok(())
    }
}

/// The nodes with these drives, started in an order that depends on `turn`; none if the power is
/// cut meanwhile.
async fn start(drives: &[Drive; 3], turn: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for nth in 0..3 {
        let step = 1 + turn % 2;
        let at = (turn % 3 + step * nth) % 3;
        let first = nodes.first().map(|it| it.address());
        let seeds: Vec<SocketAddr> = first.into_iter().collect();
        let setup = bench::setup(at as u64 + 1, &seeds)
            .coordination(coordination(), Span::secs(3_600))
            .state_on(drives[at].clone());
        match selvedge_udp::Host::start(setup).await {
            Ok(_) if drives[at].power.is_cut() => return Vec::new(),
            Ok(handle) => nodes.push(Node::of(handle)),
            Err(_) if drives[at].power.is_cut() => return Vec::new(),
            Err(why) => panic!("{why}"),
        }
    }
    nodes
}

fn serve(nodes: &[Node], devices: &Devices) -> JoinSet<()> {
    let handles = nodes.iter().map(|it| Handle::clone(it));
    handles.map(|it| devices.clone().serve(it)).collect()
}

async fn stop(nodes: Vec<Node>, served: JoinSet<()>) {
    for node in nodes {
        node.kill().await;
    }
    served.join_all().await;
}

/// Starts nodes whose disks have this content, cuts the power at a write, starts all again, and
/// goes on. Returns the number of writes before.
async fn cut_at(nth: usize, images: [Vec<u8>; 3]) -> usize {
    let (power, devices) = (Power::new(nth), Devices::default());
    let drives = images.map(|it| Drive::new(&power, it));
    let nodes = start(&drives, nth).await;
    let served = serve(&nodes, &devices);
    let work = async {
        tokio::join!(
            map::until_cut(&nodes, &power),
            run::until_cut(&nodes, &power, nth % 3, &devices),
            site::until_cut(&nodes, &power, nth / 3 % 3)
        )
    };
    let (changes, has_run, has_changed) = timeout(PATIENCE, work).await.unwrap();
    assert!(power.is_cut() || (has_run && has_changed), "cut at {nth}");
    stop(nodes, served).await;

    let again = Power::new(usize::MAX);
    let drives = drives.map(|it| Drive::new(&again, it.left()));
    let nodes = start(&drives, nth / 2).await;
    let served = serve(&nodes, &devices);
    tokio::join!(
        map::check(&nodes, nth, changes),
        run::go_on(&nodes, nth, has_run, &devices),
        site::check(&nodes, nth, has_changed)
    );
    again.off();
    stop(nodes, served).await;
    run::check(nth, &devices);
    power.writes()
}

#[tokio::test]
async fn nothing_that_was_confirmed_is_lost_though_all_nodes_lose_power_at_any_write() {
    let on = Power::new(usize::MAX);
    let drives = [(); 3].map(|()| Drive::new(&on, Vec::new()));
    let nodes = start(&drives, 0).await;
    let served = serve(&nodes, &Devices::default());
    map::begin(&nodes).await;
    stop(nodes, served).await;
    let images = drives.map(|it| it.left());
    let all = cut_at(usize::MAX, images.clone()).await;
    assert!(all > 6, "{all}");
    // Not all at once: messages are to be faster than the disks.
    let mut cuts = 1..=all;
    while !cuts.is_empty() {
        let some = cuts.by_ref().take(12);
        let runs: JoinSet<usize> = some.map(|it| cut_at(it, images.clone())).collect();
        runs.join_all().await;
    }
}
