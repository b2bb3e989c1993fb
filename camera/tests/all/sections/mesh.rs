//! Whole meshes: several sections at once, with loss, a crash and a restart.

use std::collections::BTreeMap;

use selvedge_core::{Choose as _, NodeId, Ratio};
use selvedge_sim::network::{Link, Network, Topology};

use super::*;

const SECTIONS: [&str; 3] = ["door", "lift", "lamp"];
const NODES: usize = 5;

struct Mesh {
    network: Network<Sections>,
    rng: ChaCha8Rng,
    config: Config,
    lives: [u32; NODES],
    /// The last token of each section.
    last: BTreeMap<Name, Token>,
    entries: BTreeMap<Name, u32>,
    /// The number of times that two sections were held at once, by different nodes.
    at_once: u32,
}

impl Mesh {
    /// Nodes that know each other, and lose a message in ten. Node 4 opens nothing.
    fn new(seed: u64, config: Config) -> Self {
        let link = Link {
            loss: Ratio::new(1, 10),
            duplicate: Ratio::new(1, 20),
            ..Link::default()
        };
        let topology = Topology::full_mesh(NODES).unwrap();
        let mut mesh = Self {
            network: Network::new(seed, topology, link).unwrap(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            config,
            lives: [0; NODES],
            last: BTreeMap::new(),
            entries: BTreeMap::new(),
            at_once: 0,
        };
        for node in 0..NODES {
            let me = mesh.me(node);
            let machine = Sections::new(me, config).unwrap();
            mesh.network.add(me, machine).unwrap();
        }
        (0..NODES).for_each(|node| mesh.begin(node));
        mesh
    }

    fn me(&self, node: usize) -> Member {
        Member::new(node as u64 + 1, self.lives[node])
    }

    fn begin(&mut self, node: usize) {
        for other in (0..NODES).filter(|&other| other != node) {
            let joined = Delta::Joined(self.me(other));
            self.network.membership(node, joined).unwrap();
        }
        for section in SECTIONS.iter().filter(|_| node != NODES - 1) {
            self.network.command(node, open(section)).unwrap();
        }
    }

    fn is_inside(&self, node: usize, section: Name) -> bool {
        let machine = self.network.machine(node).and_then(|it| it.get(section));
        self.network.is_up(node) && machine.is_some_and(|it| it.token().is_some())
    }

    /// The node inside each section, if any.
    fn holders(&self) -> BTreeMap<Name, usize> {
        let mut holders = BTreeMap::new();
        for section in SECTIONS.map(name) {
            for node in (0..NODES).filter(|&node| self.is_inside(node, section)) {
                let other = holders.insert(section, node);
                assert_eq!(other, None, "{node} is inside {section:?}, too");
            }
        }
        holders
    }

    fn run_for(&mut self, span: Span) {
        let end = self.network.now() + span;
        while self.network.next_at().is_some_and(|at| at <= end) {
            self.network.step();
            self.look();
        }
        self.network.run_until(end);
    }

    fn look(&mut self) {
        let holders: Vec<usize> = self.holders().into_values().collect();
        self.at_once += u32::from(holders.iter().any(|it| *it != holders[0]));
        for (_, node, Event { section, event }) in self.network.drain_events() {
            assert_ne!(node, NODES - 1, "{event:?} in {section:?}, not open there");
            if let selvedge_camera::Event::Entered(token) = event {
                let last = self.last.insert(section, token).unwrap_or_default();
                assert!(token > last, "{section:?}: {token:?} after {last:?}");
                assert_eq!(token.by.id, NodeId(node as u64 + 1));
                *self.entries.entry(section).or_default() += 1;
            }
        }
    }

    /// Lets each node at random times enter a section, and leave the sections in which it is inside.
    fn use_them(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.run_for(Span::millis(20));
            for node in 0..NODES - 1 {
                for section in SECTIONS.map(name) {
                    let Some(machine) = self.network.machine(node) else {
                        continue;
                    };
                    let camera = machine.get(section);
                    let command = if camera.is_some_and(|it| it.token().is_some()) {
                        Command::Exit(section)
                    } else if camera.is_some_and(|it| it.is_waiting()) || self.rng.below(8) > 0 {
                        continue;
                    } else {
                        Command::Enter(section)
                    };
                    if self.network.is_up(node) {
                        self.network.command(node, command).unwrap();
                        self.look();
                    }
                }
            }
        }
    }

    /// Lets all nodes that wait enter and exit.
    fn come_to_rest(&mut self) {
        for _ in 0..4_000 {
            self.run_for(Span::millis(20));
            for (section, node) in self.holders() {
                self.network.command(node, Command::Exit(section)).unwrap();
            }
            let mut up = self.network.machines().map(|(_, machine)| machine);
            if up.all(|machine| machine.in_use().count() == 0) {
                return;
            }
        }
        let stuck: Vec<_> = (self.network.machines())
            .map(|(node, machine)| (node, machine.in_use().collect::<Vec<_>>()))
            .collect();
        panic!("still waiting: {stuck:?}");
    }

    /// Reports a delta about `node` to all others.
    fn tell_others(&mut self, node: usize, delta: Delta) {
        for other in (0..NODES).filter(|&other| other != node) {
            self.network.membership(other, delta).unwrap();
        }
    }
}

fn config(passive_limit: u32) -> Config {
    // Five nodes, and the former life of one that came back.
    let section = selvedge_camera::Config::new(NODES as u32 + 1)
        .with_resend(Span::millis(50))
        .with_resend_limit(Span::millis(200))
        .with_refresh(Span::millis(500));
    Config::with(section).with_passive_limit(passive_limit)
}

fn course(seed: u64, passive_limit: u32) -> Mesh {
    let mut mesh = Mesh::new(seed, config(passive_limit));
    mesh.use_them(60);
    // A node crashes, inside or not, and the others get arbitrary reports about it.
    mesh.network.crash(1).unwrap();
    let former = mesh.me(1);
    mesh.use_them(20);
    mesh.tell_others(1, Delta::Failed(former));
    mesh.use_them(20);
    mesh.lives[1] += 1;
    let (heir, machine) = (mesh.me(1), Sections::new(mesh.me(1), mesh.config).unwrap());
    mesh.network.restart(1, heir, machine).unwrap();
    mesh.begin(1);
    mesh.tell_others(1, Delta::Confirmed(former));
    mesh.tell_others(1, Delta::Joined(heir));
    mesh.use_them(60);
    mesh.come_to_rest();
    mesh
}

/// Two nodes may be inside two sections at once, and never inside one; tokens rise in each.
#[test]
fn sections_are_independent_under_loss_and_a_crash() {
    for seed in 0..20 {
        let mesh = course(seed, 8);
        let entries = &mesh.entries;
        assert!(
            entries.len() == SECTIONS.len() && entries.values().all(|&it| it > 10),
            "seed {seed}: {entries:?}"
        );
        assert!(mesh.at_once > 20, "seed {seed}: {}", mesh.at_once);
        let passive = mesh.network.machine(NODES - 1).unwrap();
        assert_eq!(passive.iter().count(), SECTIONS.len());
        assert_eq!(*passive.counters(), Default::default(), "seed {seed}");
    }
}

/// The same mesh, in which node 4 can take part in one section only, and drops it for another again
/// and again.
#[test]
fn sections_are_independent_where_one_node_has_to_forget_them() {
    let mut dropped = 0;
    for seed in 0..20 {
        let mesh = course(seed, 1);
        let entries: u32 = mesh.entries.values().sum();
        assert!(entries > 30, "seed {seed}: {entries}");
        dropped += mesh.network.machine(NODES - 1).unwrap().counters().dropped;
    }
    assert!(dropped > 20, "{dropped}");
}

/// The inputs of one section do not depend on the events in another.
#[test]
fn there_is_no_crosstalk() {
    let run = |others: bool| {
        let mut mesh = Mesh::new(3, config(8));
        // Draws of the links would differ: so nothing is lost, and all takes as long.
        let link = Link {
            min_delay: Span::millis(3),
            max_delay: Span::millis(3),
            ..Link::default()
        };
        mesh.network.set_link(link).unwrap();
        let mut seen = Vec::new();
        for round in 0..30 {
            for node in 0..2 {
                for section in SECTIONS.map(name) {
                    if section == name("door") || others {
                        let is_inside = mesh.is_inside(node, section);
                        let command = if is_inside {
                            Command::Exit
                        } else {
                            Command::Enter
                        };
                        let _judged = mesh.network.command(node, command(section)).is_ok();
                    }
                }
            }
            mesh.network.run_for(Span::millis(5 + round % 4));
            seen.extend((mesh.network.drain_events()).filter(|it| it.2.section == name("door")));
        }
        seen
    };
    let alone = run(false);
    assert!(alone.len() > 20, "{alone:?}");
    assert_eq!(alone, run(true));
}
