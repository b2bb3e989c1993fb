//! A random history: its events, and the conditions that must hold.

mod ledger;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use ledger::Ledger;
use selvedge_core::{Choose, Incarnation, Member, NodeId, Ratio, Span, Time};
use selvedge_membership::{Command, Config, Membership, Metadata, Phase, Selection, Status};
use selvedge_sim::network::{Link, Network, Topology};

const PERIOD: Span = Span::secs(1);

pub(crate) struct History {
    seed: u64,
    rng: ChaCha8Rng,
    network: Network<Membership>,
    config: Config,
    ledger: Ledger,
    /// The incarnation that each node would find in its storage.
    stored: Vec<Incarnation>,
    steps: u64,
    /// In every other history the network keeps its shape, so that dissemination can be judged.
    may_part: bool,
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = 3 + rng.below(14) as usize;
        Self::with(seed, rng, nodes, 12)
    }

    pub(crate) fn large(seed: u64) -> Self {
        Self::with(seed, ChaCha8Rng::seed_from_u64(seed), 49, 25)
    }

    fn with(seed: u64, mut rng: ChaCha8Rng, nodes: usize, steps: u64) -> Self {
        let selection = match rng.below(4) {
            0 => Selection::Plain,
            1 => Selection::TimeBounded,
            _ => Selection::BoundedMix { every: 8 },
        };
        let base = if rng.below(2) == 0 {
            Config::radio()
        } else {
            Config::default()
        };
        let config = base
            .with_period(PERIOD)
            .with_selection(selection)
            .with_exponent(rng.below(4) as u8)
            .with_publish_after(1 + rng.below(2) as u8);
        let link = Link {
            min_delay: Span::millis(1),
            max_delay: Span::millis(50),
            loss: Ratio::new(rng.below(11) as u32, 100),
            duplicate: Ratio::new(rng.below(6) as u32, 100),
            slow: Ratio::new(rng.below(3) as u32, 100),
            slow_by: Span::millis(1_500),
            ..Link::default()
        };
        let mut network = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        network.set_identity(Membership::me);
        let stored: Vec<_> = (0..nodes)
            .map(|_| Incarnation(rng.below(1 << 32) as u32))
            .collect();
        for (node, &incarnation) in stored.iter().enumerate() {
            let me = Member {
                id: NodeId(node as u64 + 1),
                incarnation,
            };
            let machine = Membership::new(me, config.clone()).unwrap();
            network.add(me, machine).unwrap();
        }
        Self {
            seed,
            rng,
            network,
            config,
            ledger: Ledger::new(nodes, PERIOD),
            stored,
            steps,
            may_part: seed.is_multiple_of(2),
        }
    }

    /// Runs to the end and checks on the way. Returns the number of failures that were judged.
    pub(crate) fn run(mut self) -> u64 {
        for node in 0..self.network.len() {
            self.join(node);
            self.pass(Span::millis(200));
        }
        for _ in 0..self.steps {
            let millis = 500 + self.rng.below(12_000);
            self.pass(Span::millis(millis));
            self.disturb();
        }
        self.settle();
        self.ledger.check_dissemination()
    }

    fn pass(&mut self, span: Span) {
        self.network.run_for(span);
        self.take_events();
    }

    fn take_events(&mut self) {
        for (at, node, event) in self.network.drain_events() {
            self.ledger.event(at, node, &event);
        }
        for (node, machine) in self.network.machines() {
            self.stored[node] = machine.me().incarnation;
        }
    }

    fn join(&mut self, node: usize) {
        // The first two nodes are the seeds of all nodes, and of each other.
        self.begin(node, vec![NodeId(1), NodeId(2)]);
    }

    /// Every life has its own metadata, from its first message on.
    fn begin(&mut self, node: usize, seeds: Vec<NodeId>) {
        self.change_metadata(node);
        self.network.command(node, Command::Join { seeds }).unwrap();
    }

    fn change_metadata(&mut self, node: usize) {
        let bytes = [self.rng.below(256) as u8; 8];
        let metadata = Metadata(bytes.into());
        self.network
            .command(node, Command::SetMetadata(metadata))
            .unwrap();
    }

    fn disturb(&mut self) {
        let node = self.rng.below(self.network.len() as u64) as usize;
        let is_up = self.network.is_up(node);
        let phase = self.network.machine(node).unwrap().phase();
        match self.rng.below(10) {
            0..=2 if is_up => self.crash(node),
            0..=3 if !is_up => self.restart(node),
            4 if phase == Phase::Joined && is_up => {
                self.ledger.departed(node);
                self.network.command(node, Command::Leave).unwrap();
            }
            5 if phase == Phase::Idle && is_up => {
                self.ledger.arrived(node);
                self.join(node);
            }
            6 if self.may_part => self.partition(),
            7 if self.may_part => {
                self.ledger.disturbed(self.network.now());
                self.network.heal();
            }
            8 if is_up => self.change_metadata(node),
            9 if phase == Phase::Joined && is_up => {
                let bytes = [self.rng.below(256) as u8; 8];
                self.network
                    .command(node, Command::Broadcast(bytes.into()))
                    .ok();
            }
            _ => {}
        }
    }

    fn crash(&mut self, node: usize) {
        let machine = self.network.machine(node).unwrap();
        let victim = (machine.phase() == Phase::Joined).then(|| machine.me());
        let lists_victim = |machine: &Membership| {
            let view = machine.member(NodeId(node as u64 + 1));
            view.is_some_and(|view| view.status.is_live() && Some(view.member) == victim)
        };
        let witnesses = self
            .network
            .machines()
            .filter(|&(other, machine)| {
                other != node && self.network.is_up(other) && lists_victim(machine)
            })
            .map(|(other, _)| other)
            .collect();
        self.ledger
            .crashed(self.network.now(), node, victim, witnesses);
        self.network.crash(node).unwrap();
    }

    fn restart(&mut self, node: usize) {
        let incarnation = match self.rng.below(4) {
            // With memory.
            0 => self.stored[node].next(),
            // By a clock that is coarser than the restart.
            3 => return self.restart_unnoticed(node),
            // Without memory, clock or generator: a number anywhere, before or after.
            1 => Incarnation(self.rng.below(1 << 32) as u32),
            // Without memory, and just behind its former life.
            _ => Incarnation(
                self.stored[node]
                    .0
                    .wrapping_sub(1 + self.rng.below(3) as u32),
            ),
        };
        self.restart_as(node, incarnation);
        self.join(node);
    }

    fn restart_as(&mut self, node: usize, incarnation: Incarnation) {
        let id = NodeId(node as u64 + 1);
        let me = Member { id, incarnation };
        let machine = Membership::new(me, self.config.clone()).unwrap();
        self.network.restart(node, me, machine).unwrap();
        self.ledger.arrived(node);
    }

    /// Restarts under the number of its former life, and where other nodes are sure to find it
    /// without seeds: no node notices then that it is another life.
    fn restart_unnoticed(&mut self, node: usize) {
        let incarnation = self.stored[node];
        let id = NodeId(node as u64 + 1);
        let me = Member { id, incarnation };
        let is_remembered = |(other, machine): (usize, &Membership)| {
            let view = machine.member(id);
            other != node
                && self.network.is_up(other)
                && machine.phase() == Phase::Joined
                && view.is_some_and(|view| view.member == me && view.status != Status::Left)
        };
        let is_found = !self.may_part && self.network.machines().any(is_remembered);
        self.restart_as(node, incarnation);
        self.ledger.goes_on(me);
        if is_found {
            self.begin(node, vec![]);
            // Until another node has found it.
            self.pass(PERIOD * 10);
        } else {
            self.join(node);
        }
    }

    fn partition(&mut self) {
        self.ledger.disturbed(self.network.now());
        let sides: Vec<bool> = (0..self.network.len())
            .map(|_| self.rng.below(2) == 0)
            .collect();
        let side = |wanted| {
            let is_there = |node: &usize| sides[*node] == wanted;
            (0..sides.len()).filter(is_there).collect::<Vec<_>>()
        };
        self.network.partition(&[side(false), side(true)]).unwrap();
    }

    /// Faults have ended, except for 5% loss. In time all lists equal the truth, metadata included.
    fn settle(&mut self) {
        self.ledger.disturbed(self.network.now());
        self.network.heal();
        // Leaving nodes must have left.
        self.pass(PERIOD * 20);
        for node in 0..self.network.len() {
            // A seed must be up, so that nodes that know no other node find it.
            if !self.network.is_up(node) {
                if node < 2 {
                    self.restart(node);
                }
            } else if self.network.machine(node).unwrap().phase() == Phase::Idle && node < 2 {
                self.ledger.arrived(node);
                self.join(node);
            }
        }
        let link = Link {
            min_delay: Span::millis(1),
            max_delay: Span::millis(50),
            loss: Ratio::new(5, 100),
            ..Link::default()
        };
        self.network.set_link(link).unwrap();
        let limit = self.network.now() + PERIOD * 400;
        while self.differences().is_some() {
            assert!(
                self.network.now() < limit,
                "seed {}: after 400 quiet periods {}",
                self.seed,
                self.differences().unwrap_or_default(),
            );
            self.pass(PERIOD * 5);
        }
        // And it stays so.
        self.pass(PERIOD * 30);
        self.ledger.end(self.network.now());
        assert_eq!(
            self.differences(),
            None,
            "seed {}: after it was settled",
            self.seed
        );
    }

    /// The differences between the lists and the truth, in words.
    fn differences(&self) -> Option<String> {
        let mut truth: Vec<(Member, &[u8])> = self
            .network
            .machines()
            .filter(|&(node, machine)| {
                self.network.is_up(node) && matches!(machine.phase(), Phase::Joined)
            })
            .map(|(_, machine)| {
                let me = machine.me();
                (me, machine.metadata(me.id).unwrap_or_default())
            })
            .collect();
        truth.sort_unstable();
        for (node, machine) in self.network.machines() {
            if !self.network.is_up(node) || machine.phase() == Phase::Idle {
                continue;
            }
            if machine.phase() != Phase::Joined {
                return Some(format!("node {node} is {:?}", machine.phase()));
            }
            let mut list: Vec<(Member, &[u8])> = machine
                .members()
                .filter(|view| view.status.is_live())
                .map(|view| (view.member, view.metadata))
                .collect();
            list.sort_unstable();
            if list != truth {
                return Some(format!(
                    "node {node} lists {list:?}, and there are {truth:?}"
                ));
            }
        }
        None
    }
}

/// The length in periods, for the ledger's messages.
pub(crate) fn periods(span: Span) -> f64 {
    span.0 as f64 / PERIOD.0 as f64
}

pub(crate) const LATEST: u64 = 15;

pub(crate) fn after(at: Time, periods: u64) -> Time {
    at + PERIOD * periods
}
