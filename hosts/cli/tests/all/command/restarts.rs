//! Processes that are killed, stopped, asked to leave and started again, at random: in the end all
//! list all, and follow one live leader. `SELVEDGE_SEED` repeats one history.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Choose;
use selvedge_sim::histories;
use serde_json::Value;

use crate::command::running::{Folder, Running, SELVEDGE};

const NODES: usize = 4;
const STEPS: usize = 8;
/// The interval of the checks, and their number: far longer than lists take to become equal, for
/// machines with other work.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_800;

struct Mesh {
    key: String,
    addresses: Vec<String>,
    nodes: Vec<Running>,
}

/// The state that a process reports.
#[derive(Debug, PartialEq)]
struct Known {
    here: BTreeSet<u64>,
    leader: Option<(u64, String)>,
}

impl Mesh {
    fn start(folder: &Folder) -> Self {
        // Ports that were free a moment ago, so that a process comes back at the same address.
        let sockets: Vec<UdpSocket> = (0..NODES)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let address = |it: &UdpSocket| it.local_addr().unwrap().to_string();
        let addresses: Vec<String> = sockets.iter().map(address).collect();
        drop(sockets);
        let mut mesh = Self {
            key: folder.key("mesh.key"),
            addresses,
            nodes: Vec::new(),
        };
        for nth in 0..NODES {
            let node = mesh.node(nth);
            mesh.nodes.push(node);
        }
        mesh
    }

    fn node(&self, nth: usize) -> Running {
        let id = (nth + 1).to_string();
        let mut arguments = vec!["node", "--json", "--period", "100", "--key", &self.key];
        arguments.extend(["--id", &id, "--listen", &self.addresses[nth], "--join"]);
        let others = self.addresses.iter().enumerate();
        arguments.extend(others.filter(|it| it.0 != nth).map(|it| it.1.as_str()));
        Running::start(SELVEDGE, &arguments)
    }

    /// Draws a fault or a start for a process, and performs it.
    fn step(&mut self, rng: &mut ChaCha8Rng) -> String {
        let nth = rng.below(NODES as u64) as usize;
        let id = nth + 1;
        let pause = Duration::from_millis([0, 0, 20, 400][rng.below(4) as usize]);
        match rng.below(4) {
            0 | 1 => {
                // Dropping it kills it. Its port is free before it is started again.
                self.nodes[nth].kill();
                sleep(pause);
                self.nodes[nth] = self.node(nth);
                format!("{id} killed, {pause:?}")
            }
            2 => {
                // Others may know of it as soon as it listens.
                self.nodes[nth].wait_for("listens at");
                let left = self.nodes[nth].leave();
                assert!(left.success(), "node {id}: {left}");
                sleep(pause);
                self.nodes[nth] = self.node(nth);
                format!("{id} left, {pause:?}")
            }
            _ => {
                let asleep = Duration::from_millis(200 + rng.below(2_500));
                self.nodes[nth].signal("STOP");
                sleep(asleep);
                self.nodes[nth].signal("CONT");
                format!("{id} slept {asleep:?}")
            }
        }
    }

    /// Waits until all processes report the same, correct state.
    fn settle(&mut self, story: &[String]) {
        let all: BTreeSet<u64> = (1..=NODES as u64).collect();
        for look in 0.. {
            let known: Vec<Known> = (self.nodes.iter_mut().zip(1..))
                .map(|(node, id)| knows(id, node.said_by_now()))
                .collect();
            let first = &known[0];
            let is_led = first.leader.as_ref().is_some_and(|it| all.contains(&it.0));
            if is_led && first.here == all && known.iter().all(|it| it == first) {
                return;
            }
            assert!(look < LOOKS, "{story:#?}: {known:#?}");
            sleep(LOOK);
        }
    }
}

fn knows(me: u64, lines: &[String]) -> Known {
    let mut known = Known {
        here: BTreeSet::from([me]),
        leader: None,
    };
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let node = line["node"].as_u64();
        match line["event"].as_str().unwrap() {
            "joined" | "refuted" => {
                known.here.insert(node.unwrap());
            }
            "failed" | "left" | "confirmed" => {
                known.here.remove(&node.unwrap());
            }
            "elected" | "regained" => {
                known.leader = Some((node.unwrap(), line["ballot"].to_string()));
            }
            "lost" | "ended" | "lease-over" | "deposed" => known.leader = None,
            _ => {}
        }
    }
    known
}

#[test]
fn processes_that_come_and_go_end_as_one_mesh() {
    histories(0..2, |seed| {
        let folder = Folder::new(&format!("restarts-{seed}"));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut mesh = Mesh::start(&folder);
        let mut story = Vec::new();
        mesh.settle(&story);
        for _ in 0..STEPS {
            story.push(mesh.step(&mut rng));
            if rng.below(3) == 0 {
                mesh.settle(&story);
            }
        }
        mesh.settle(&story);
    });
}
