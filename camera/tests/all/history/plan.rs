//! The times of faults, and the reports of a membership service about them.

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Delta, Incarnation, Member, NodeId, Ratio, Span, Time};
use selvedge_membership::{Command, Config, Event, Membership};
use selvedge_sim::network::{Link, MembershipTrace, Network, Relays, Topology};

use super::between;

/// An event of the environment.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Crash(usize),
    Restart(usize),
    /// The node takes part under this name, perhaps after another name; since its start the
    /// membership service has reported this to it.
    Start(usize, Member, Vec<Delta>),
    Part(Vec<Vec<usize>>),
    Heal,
    /// An operator reports to every node that is up that this node is dead.
    Confirm(usize),
}

pub(crate) struct Plan {
    pub(crate) topology: Topology,
    pub(crate) relays: Relays,
    pub(crate) link: Link,
    pub(crate) is_full_mesh: bool,
    /// The number of lives in all.
    pub(crate) lives: u32,
    pub(crate) faults: Vec<(Time, Fault)>,
    /// The time at which the last fault is over.
    pub(crate) calm: Time,
    pub(crate) trace: MembershipTrace,
}

/// The member that a node is at first.
pub(crate) const fn first(node: usize) -> Member {
    Member {
        id: NodeId(node as u64 + 1),
        incarnation: Incarnation(1),
    }
}

impl Plan {
    /// `confirm_late`: no node is certain of a death before all faults are over.
    pub(crate) fn new(seed: u64, rng: &mut ChaCha8Rng, confirm_late: bool) -> Self {
        let is_full_mesh = rng.below(2) == 0;
        let topology = if is_full_mesh {
            Topology::full_mesh(4 + rng.below(9) as usize).unwrap()
        } else {
            let (columns, rows) = (2 + rng.below(3) as u32, 2 + rng.below(2) as u32);
            Topology::grid(columns, rows, 1_000, 1_000).unwrap()
        };
        let nodes = topology.len();
        // More than half of all lives must be there in the end.
        let ends = rng.below((nodes as u64 - 1) / 2).min(2) as usize;
        let restarts = rng.below(5).min((nodes - 2 * ends - 1) as u64) as usize;
        // Without one node a grid hangs together; without two it may not.
        let relays = if ends < 2 { Relays::Live } else { Relays::All };
        let link = Link {
            min_delay: Span::millis(1),
            max_delay: Span::millis(50),
            loss: Ratio::new(5, 100),
            duplicate: Ratio::new(rng.below(6) as u32, 100),
            slow: Ratio::new(rng.below(3) as u32, 100),
            slow_by: Span::millis(1_500),
            ..Link::default()
        };
        let mut plan = Self {
            topology,
            relays,
            link,
            is_full_mesh,
            lives: 0,
            faults: Vec::new(),
            calm: Time::ZERO,
            trace: MembershipTrace::default(),
        };
        plan.draw_faults(rng, ends, restarts, confirm_late);
        plan.record(seed, rng);
        plan
    }

    fn draw_faults(
        &mut self,
        rng: &mut ChaCha8Rng,
        ends: usize,
        restarts: usize,
        confirm_late: bool,
    ) {
        let nodes = self.topology.len();
        let mut order: Vec<usize> = (0..nodes).collect();
        for last in (1..nodes).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let (dead, others) = order.split_at(ends);
        for &node in dead {
            let at = Time::ZERO + between(rng, 10_000, 60_000);
            self.faults.push((at, Fault::Crash(node)));
            if !confirm_late {
                let at = at + between(rng, 1_000, 30_000);
                self.faults.push((at, Fault::Confirm(node)));
            }
        }
        // Some restart more than once.
        let cycle = 1 + rng.below(others.len() as u64) as usize;
        let mut up_since = vec![Time::ZERO; nodes];
        for turn in 0..restarts {
            let node = others[turn % cycle];
            let at = up_since[node] + between(rng, 8_000, 50_000);
            let back = at + between(rng, 200, 25_000);
            self.faults.push((at, Fault::Crash(node)));
            self.faults.push((back, Fault::Restart(node)));
            up_since[node] = back;
        }
        if rng.below(3) > 0 {
            let sides: Vec<bool> = (0..nodes).map(|_| rng.below(3) == 0).collect();
            let side = |wanted| (0..nodes).filter(|&node| sides[node] == wanted).collect();
            let at = Time::ZERO + between(rng, 10_000, 50_000);
            self.faults
                .push((at, Fault::Part(vec![side(false), side(true)])));
            let at = at + between(rng, 5_000, 40_000);
            self.faults.push((at, Fault::Heal));
        }
        self.faults.sort_by_key(|(at, _)| *at);
        let last = self.faults.last().map_or(Time::ZERO, |(at, _)| *at);
        self.calm = last.max(Time::ZERO + Span::secs(60)) + Span::secs(1);
        // A node that was down at the first report has not received it.
        let calm = self.calm;
        let again = dead.iter().map(|&dead| (calm, Fault::Confirm(dead)));
        self.faults.extend(again);
    }

    /// Runs the membership protocol through all faults and until all lists are the truth.
    fn record(&mut self, seed: u64, rng: &mut ChaCha8Rng) {
        let mut network = Network::new(seed, self.topology.clone(), self.link).unwrap();
        network.set_relays(self.relays);
        network.set_identity(Membership::me);
        network.record_membership(|event| match event {
            Event::Changed(delta) => Some(*delta),
            _ => None,
        });
        let config = Config::default().with_publish_after(1 + rng.below(2) as u8);
        let machine = |me| Membership::new(me, config.clone()).unwrap();
        let nodes = self.topology.len();
        let join = |node| {
            let seeds = (0..nodes).filter(|&other| other != node);
            let seeds = seeds.map(|other| first(other).id).collect();
            Command::Join { seeds }
        };
        for node in 0..nodes {
            network.add(first(node), machine(first(node))).unwrap();
            network.command(node, join(node)).unwrap();
        }
        for (at, fault) in &self.faults {
            network.run_until(*at);
            match fault {
                Fault::Crash(node) => drop(network.crash(*node).unwrap()),
                Fault::Restart(node) => {
                    let mut me = network.member(*node).unwrap();
                    me.incarnation = me.incarnation.next();
                    network.restart(*node, me, machine(me)).unwrap();
                    network.command(*node, join(*node)).unwrap();
                }
                Fault::Part(groups) => network.partition(groups).unwrap(),
                Fault::Heal => network.heal(),
                Fault::Confirm(_) | Fault::Start(..) => {}
            }
        }
        network.run_until(self.calm);
        let limit = self.calm + Span::secs(400);
        while !is_truth(&network) {
            assert!(network.now() < limit, "seed {seed}: lists do not settle");
            network.run_for(Span::secs(2));
        }
        self.trace = network.take_membership();
        let begun: Vec<_> = network
            .drain_events()
            .filter_map(|(at, node, event)| match event {
                Event::Identified(me) => Some((at, node, me)),
                _ => None,
            })
            .collect();
        self.lives = begun.len() as u32;
        for (at, node, me) in begun {
            let notified = self.notified_since_start(node, at);
            self.faults.push((at, Fault::Start(node, me, notified)));
        }
        // Those at one time stay in order.
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// The reports to `node` since it was last started, up to this time.
    fn notified_since_start(&self, node: usize, to: Time) -> Vec<Delta> {
        let starts = self.faults.iter().filter_map(|(at, fault)| match fault {
            Fault::Restart(which) if *which == node && *at <= to => Some(*at),
            _ => None,
        });
        let from = starts.max().unwrap_or_default();
        let entries = self.trace.entries().iter();
        entries
            .filter(|entry| entry.observer == first(node).id && (from..=to).contains(&entry.at))
            .map(|entry| entry.delta)
            .collect()
    }
}

/// Returns true if all nodes list exactly the nodes that are up.
fn is_truth(network: &Network<Membership>) -> bool {
    let up = |node: &usize| network.is_up(*node);
    let truth: Vec<Member> = (0..network.len())
        .filter(up)
        .filter_map(|node| network.member(node))
        .collect();
    network
        .machines()
        .filter(|(node, _)| network.is_up(*node))
        .all(|(_, machine)| {
            let live = machine.members().filter(|view| view.status.is_live());
            let mut list: Vec<Member> = live.map(|view| view.member).collect();
            list.sort_unstable();
            list == truth
        })
}
