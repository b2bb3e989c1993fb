//! All nodes of a building lose power at the same moment, at any write to any of their disks.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use selvedge_core::Span;
use selvedge_groups::store::Stored;
use selvedge_store::redb::StorageBackend;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE};
use crate::groups::coordination;

/// The number of changes before the nodes would stop by themselves.
const CHANGES: u64 = 3;

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

    fn is_cut(&self) -> bool {
        self.writes.load(Ordering::SeqCst) >= self.cut_at
    }
}

#[derive(Debug, Default)]
struct Image {
    now: Vec<u8>,
    /// The content as of the last synchronised write, which a power cut leaves.
    synced: Vec<u8>,
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
            image: Arc::new(Mutex::new(Image { now, synced })),
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
            image.synced = image.now.clone();
        }
        drop(image);
        self.image().map(drop)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let at = offset as usize;
        self.image()?.now[at..at + data.len()].copy_from_slice(data);
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

/// Changes an entry again and again, until the power is cut. Returns the number of changes that
/// were confirmed, of which there is one already.
async fn run_until_cut(drives: &[Drive; 3], power: &Power, turn: usize) -> u64 {
    let nodes = start(drives, turn).await;
    let is_cut = async || {
        while !power.is_cut() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    let mut confirmed = 1;
    while confirmed < CHANGES
        && let Some(node) = nodes.get(confirmed as usize % 3)
    {
        let doors = node.map("doors");
        tokio::select! {
            stored = doors.put("front", b"shut") => match stored {
                Ok(stored) => {
                    confirmed += 1;
                    assert_eq!(stored, Stored::Done { version: confirmed });
                }
                Err(why) => assert!(power.is_cut(), "{why}"),
            },
            () = is_cut() => break,
        }
    }
    for node in nodes {
        node.kill().await;
    }
    confirmed
}

/// Starts nodes whose disks have this content, cuts the power at a write, starts all again, and
/// goes on. Returns the number of writes before.
async fn cut_at(nth: usize, images: [Vec<u8>; 3]) -> usize {
    let power = Power::new(nth);
    let drives = images.map(|it| Drive::new(&power, it));
    let confirmed = timeout(PATIENCE, run_until_cut(&drives, &power, nth)).await;
    let confirmed = confirmed.unwrap();
    assert!(power.is_cut() || confirmed == CHANGES, "cut at {nth}");

    let on = Power::new(usize::MAX);
    let left = drives.map(|it| Drive::new(&on, it.left()));
    let nodes = start(&left, nth / 2).await;
    let doors = nodes[nth % 3].map("doors");
    let entry = timeout(PATIENCE, doors.get("front")).await.unwrap();
    let version = entry.unwrap().map_or(0, |it| it.version);
    // The change in flight may have been decided.
    let expected = confirmed..=CHANGES.min(confirmed + 1);
    assert!(
        expected.contains(&version),
        "cut at {nth}: {version}, {expected:?}"
    );
    let doors = nodes[nth / 2 % 3].map("doors");
    let stored = timeout(PATIENCE, doors.put("front", b"open")).await;
    let version = version + 1;
    assert_eq!(
        stored.unwrap(),
        Ok(Stored::Done { version }),
        "cut at {nth}"
    );
    for node in nodes {
        node.kill().await;
    }
    power.writes.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_map_is_kept_though_all_nodes_lose_power_at_any_write() {
    let on = Power::new(usize::MAX);
    let drives = [(); 3].map(|()| Drive::new(&on, Vec::new()));
    let nodes = start(&drives, 0).await;
    let stored = timeout(PATIENCE, nodes[0].map("doors").put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
    for node in nodes {
        node.kill().await;
    }
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
