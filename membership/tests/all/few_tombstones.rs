//! Half of a mesh crashes, which is far more than the live members may remember.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use core::cell::Cell;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Member, NodeId, Ratio, Span};
use selvedge_membership::{Command, Config, Membership, Selection, SuspicionLength};
use selvedge_sim::histories;
use selvedge_sim::network::{Link, Network, Topology};

/// The longest that the dead may stay on a list.
const LATEST: u64 = 300;

struct Course {
    network: Network<Membership>,
    /// The nodes before this one die.
    dead: usize,
    nodes: usize,
}

impl Course {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let selection = [
            Selection::Plain,
            Selection::TimeBounded,
            Selection::BoundedMix { every: 8 },
            Selection::BoundedMix { every: 1 },
        ][rng.below(4) as usize];
        let suspicion = [
            SuspicionLength::Fixed(1 + rng.below(10) as u16),
            SuspicionLength::PerLog(1 + rng.below(4) as u16),
        ][rng.below(2) as usize];
        let nodes = 33 + rng.below(32) as usize;
        let base = if rng.below(2) == 0 {
            Config::radio()
        } else {
            Config::default()
        };
        let config = base
            .with_tombstone_limit(1 + rng.below(3) as u16)
            .with_hearsay_limit([0, 2, 8][rng.below(3) as usize])
            .with_sync_after([0, 1, 4, 4][rng.below(4) as usize])
            .with_selection(selection)
            .with_suspicion(suspicion)
            .with_suppress_probes(rng.below(2) == 0)
            .with_publish_after(1 + rng.below(2) as u8);
        let link = Link {
            min_delay: Span::millis(1),
            max_delay: Span::millis(50),
            loss: Ratio::new(rng.below(11) as u32, 100),
            ..Link::default()
        };
        let mut network = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        network.set_identity(Membership::me);
        let seed = NodeId(nodes as u64 - 1);
        for node in 0..nodes {
            let me = Member::new(node as u64, 1);
            network
                .add(me, Membership::new(me, config.clone()).unwrap())
                .unwrap();
        }
        for node in (0..nodes).rev() {
            let seeds = if node as u64 == seed.0 {
                vec![]
            } else {
                vec![seed]
            };
            network.command(node, Command::Join { seeds }).unwrap();
            network.run_for(Span::millis(300));
        }
        Self {
            network,
            dead: nodes / 2,
            nodes,
        }
    }

    fn pass(&mut self, periods: u64) {
        self.network.run_for(Span::secs(1) * periods);
        self.network.drain_events().for_each(drop);
    }

    /// Number of dead members that live nodes list as live, summed over all lists.
    fn revenants(&self) -> usize {
        let lists = self.network.machines().skip(self.dead);
        let dead = |list: &Membership| {
            let dead = 0..self.dead as u64;
            let is_listed = |id: &u64| {
                let view = list.member(NodeId(*id));
                view.is_some_and(|view| view.status.is_live())
            };
            dead.filter(is_listed).count()
        };
        lists.map(|(_, list)| dead(list)).sum()
    }

    /// Returns the number of periods until no list had a dead member.
    fn run(mut self) -> u64 {
        self.pass(60);
        for node in 0..self.dead {
            self.network.crash(node).unwrap();
        }
        let mut ended = 0;
        while self.revenants() > 0 {
            assert!(
                ended < LATEST,
                "{} of {} nodes died, and {} entries name them as live {ended} periods later",
                self.dead,
                self.nodes,
                self.revenants()
            );
            self.pass(5);
            ended += 5;
        }
        // They do not come back, and without loss the live members list each other.
        self.network.set_link(Link::default()).unwrap();
        for _ in 0..40 {
            self.pass(5);
            assert_eq!(self.revenants(), 0, "a dead member came back");
        }
        let live = self.nodes - self.dead;
        for (node, machine) in self.network.machines().skip(self.dead) {
            assert_eq!(machine.live(), live, "at {node}");
        }
        ended
    }
}

#[test]
fn the_dead_end_where_few_of_them_are_remembered() {
    let longest = Cell::new(0);
    histories(0..40, |seed| {
        longest.set(longest.get().max(Course::new(seed).run()));
    });
    println!("after {} periods at most", longest.get());
}
