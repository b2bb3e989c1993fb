//! Nodes that were cut off, elected one of themselves, and come back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge::{Command, Election, Event, Node};
use selvedge_celect::{self as celect, Ballot};
use selvedge_core::{Choose, Member, NodeId, Ratio, Span, Time};
use selvedge_membership as membership;
use selvedge_sim::histories;
use selvedge_sim::network::{Link, Network, Topology};

const PATIENCE: Span = Span::secs(300);

struct Mesh {
    network: Network<Node>,
    rng: ChaCha8Rng,
    all: Vec<usize>,
    /// Events of elections since the last return.
    events: Vec<(Time, usize, celect::Event)>,
    /// The number of elections that returning nodes began.
    elections: usize,
}

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

impl Mesh {
    fn new(seed: u64, nodes: usize, keep_leader: bool) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let link = Link {
            loss: Ratio::new([0, 0, 1, 3][rng.below(4) as usize], 100),
            ..Link::default()
        };
        let lease = (rng.below(3) == 0).then(|| Span::secs(20));
        // The number of acknowledgements that a lease needs.
        let c = rng.below(nodes.div_ceil(2) as u64) as u16;
        let config = celect::Config::new(c, 1)
            .with_keep_leader(keep_leader)
            .with_lease(lease);
        let election = Election {
            config,
            label: seed.to_le_bytes().into(),
            patience: Span::secs(8),
        };
        let mut network = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        network.set_identity(|it: &Node| it.membership().me());
        for node in 0..nodes {
            let config = membership::Config::default();
            let machine = Node::builder(member(node))
                .membership(config)
                .election(election.clone())
                .build()
                .unwrap();
            network.add(member(node), machine).unwrap();
            let seeds = (node > 0).then_some(NodeId(1)).into_iter().collect();
            let join = membership::Command::Join { seeds };
            network.command(node, Command::Membership(join)).unwrap();
        }
        Self {
            network,
            rng,
            all: (0..nodes).collect(),
            events: Vec::new(),
            elections: 0,
        }
    }

    fn leaders(&self, nodes: &[usize]) -> Vec<Option<(Member, Ballot)>> {
        let machine = |&node| self.network.machine(node).unwrap();
        nodes.iter().map(|node| machine(node).leader()).collect()
    }

    /// Runs until these nodes follow one of them, and know no others.
    fn settle(&mut self, nodes: &[usize]) -> (Member, Ballot) {
        let live = nodes.len();
        let is_settled = |mesh: &Network<Node>| {
            let machine = |node: usize| mesh.machine(node).unwrap();
            let first = machine(nodes[0]).leader();
            let is_like_first = |&node: &usize| {
                machine(node).leader() == first && machine(node).membership().live() == live
            };
            let me = |&node: &usize| machine(node).membership().me();
            first.is_some_and(|(leader, _)| nodes.iter().any(|it| me(it) == leader))
                && nodes.iter().all(is_like_first)
        };
        let limit = self.network.now() + PATIENCE;
        let in_time = self.network.run_until_met(limit, is_settled);
        assert!(in_time, "{:?}", self.leaders(nodes));
        self.leaders(nodes)[0].unwrap()
    }

    /// Cuts off one node, not the leader, for longer than it takes to elect itself. Returns true if
    /// the leader of the rest stayed, at each node of the rest and at each moment.
    fn cut_off(&mut self) -> bool {
        let (leader, _) = self.settle(&self.all.clone());
        // Until all that was begun has ended.
        self.network.run_for(Span::secs(30));
        let (leader, _) = if self.leaders(&self.all)[0].map(|it| it.0) == Some(leader) {
            self.settle(&self.all.clone())
        } else {
            return self.cut_off();
        };
        let id = |node: &usize| self.network.machine(*node).unwrap().membership().me();
        let mut side: Vec<usize> = self
            .all
            .iter()
            .copied()
            .filter(|it| id(it) != leader)
            .collect();
        while side.len() > 1 {
            side.remove(self.rng.below(side.len() as u64) as usize);
        }
        let rest: Vec<usize> = (self.all.iter().copied())
            .filter(|it| !side.contains(it))
            .collect();
        self.network
            .partition(&[side.clone(), rest.clone()])
            .unwrap();
        let (before, ballot) = self.settle(&rest);
        let (_, alone) = self.settle(&side);
        assert!(alone > ballot, "the other ballot would lead");
        // Where its lease ends, until then, and perhaps until it elects again.
        let has_ended = |mesh: &Network<Node>| mesh.machine(side[0]).unwrap().leader().is_none();
        let limit = self.network.now() + Span::secs(self.rng.below(25));
        self.network.run_until_met(limit, has_ended);
        let more = self.rng.below(6_000);
        self.network.run_for(Span::millis(more));
        self.network.drain_events().for_each(drop);
        self.network.heal();
        let (after, _) = self.settle(&self.all.clone());
        let events = self.network.drain_events();
        self.events = events
            .filter_map(|(at, node, event)| match event {
                Event::Election(event) => Some((at, node, event)),
                _ => None,
            })
            .collect();
        let is_election = |(_, node, event): &&(Time, usize, celect::Event)| {
            side.contains(node) && matches!(event, celect::Event::Electing(_))
        };
        self.elections += self.events.iter().filter(is_election).count();
        let is_other = |(_, node, event): &(Time, usize, celect::Event)| {
            let other = |leader| leader != before && rest.contains(node);
            matches!(event, celect::Event::Elected { leader, .. } if other(*leader))
        };
        // Not even for a moment.
        after == before && !self.events.iter().any(is_other)
    }
}

/// Also where the returning node runs an election at that moment, as a node with an expired lease
/// does.
#[test]
fn a_leader_with_a_majority_stays_when_a_node_that_led_itself_comes_back() {
    let mut electing = 0;
    let histories_run = histories(0..300, |seed| {
        let nodes = 3 + seed as usize % 6;
        let mut mesh = Mesh::new(seed, nodes, true);
        for turn in 0..4 {
            assert!(mesh.cut_off(), "return {turn}: {:?}", mesh.events);
        }
        electing += mesh.elections;
    });
    assert!(
        histories_run < 300 || electing > 10,
        "{electing} nodes elected when they came back"
    );
}

/// Shows that the test above can fail; and an operator may want this setting.
#[test]
fn without_keep_leader_the_later_ballot_leads() {
    let mut kept = 0;
    histories(0..10, |seed| {
        let mut mesh = Mesh::new(seed, 5, false);
        kept += usize::from(mesh.cut_off());
    });
    assert_eq!(kept, 0);
}
