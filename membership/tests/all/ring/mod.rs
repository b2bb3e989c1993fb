//! A few driven machines and a wire between them, by hand: each test selects the messages that
//! arrive.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_membership::{Command, Config, Event, Membership, Message, Reject, Status};

pub(crate) struct Ring {
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Driver<Membership>>,
    /// Sender, receiver, message: in the order of sending.
    pub(crate) wire: Vec<(Member, NodeId, Message)>,
    pub(crate) events: Vec<(usize, Event)>,
    rng: ChaCha8Rng,
}

/// Settings without chance, and without behaviour that a test did not ask for.
pub(crate) fn plain() -> Config {
    Config::default()
        .with_jitter(Span::ZERO)
        .with_active(None)
        .with_passive(None)
        .with_suppress_probes(false)
        .with_stretch_limit(0)
        .with_sync_after(0)
        .with_reconnect_every(0)
        // The test's claims are all to be believed.
        .with_hearsay_limit(0)
        .with_publish_after(1)
        .with_selection(selvedge_membership::Selection::BoundedMix { every: 1 })
}

#[allow(dead_code, reason = "each test file uses a part")]
impl Ring {
    /// Nodes 0, 1 and so on in incarnation 7; none is in a mesh.
    pub(crate) fn new(nodes: u64, config: &Config) -> Self {
        let node = |id| Driver::new(Membership::new(Member::new(id, 7), config.clone()).unwrap());
        Self {
            now: Time::ZERO,
            nodes: (0..nodes).map(node).collect(),
            wire: Vec::new(),
            events: Vec::new(),
            rng: ChaCha8Rng::seed_from_u64(3),
        }
    }

    /// The same, joined through node 0.
    pub(crate) fn joined(nodes: u64, config: &Config) -> Self {
        let mut ring = Self::new(nodes, config);
        ring.command(0, Command::Join { seeds: vec![] }).unwrap();
        for node in 1..ring.nodes.len() {
            ring.command(
                node,
                Command::Join {
                    seeds: vec![NodeId(0)],
                },
            )
            .unwrap();
            ring.settle(|_, _, _| true);
        }
        // Until the news of the last join is old.
        ring.periods(8, |_, _, _| true);
        for node in &ring.nodes {
            assert_eq!(node.machine().live() as u64, nodes);
        }
        ring.events.clear();
        ring
    }

    pub(crate) fn command(&mut self, node: usize, command: Command) -> Result<(), Reject> {
        self.step(node, Input::Command(command))
    }

    pub(crate) fn step(&mut self, node: usize, input: Input<Membership>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let outcome = self.nodes[node].step(self.now, &mut self.rng, input, |effect| {
            effects.push(effect)
        });
        self.carry(node, effects);
        outcome
    }

    fn carry(&mut self, node: usize, effects: Vec<Effect<Membership>>) {
        let me = self.nodes[node].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.wire.push((me, to.id, message)),
                Effect::Event(event) => self.events.push((node, event)),
                Effect::Multicast { .. } => unreachable!("this protocol sends to one at a time"),
            }
        }
    }

    /// Delivers until the wire is empty; messages that `passes` refuses, or that have no receiver,
    /// are lost.
    pub(crate) fn settle(&mut self, passes: impl Fn(Member, NodeId, &Message) -> bool) {
        while !self.wire.is_empty() {
            let (from, to, message) = self.wire.remove(0);
            let to_node = to.0 as usize;
            if passes(from, to, &message) && to_node < self.nodes.len() {
                self.step(to_node, Input::Message { from, message }).ok();
            }
        }
    }

    /// Lets `periods` periods pass for all nodes; messages take no time.
    pub(crate) fn periods(
        &mut self,
        count: u64,
        passes: impl Fn(Member, NodeId, &Message) -> bool,
    ) {
        let until = self.now + self.nodes[0].machine().config().period * count;
        self.run_until(until, |_| true, passes);
    }

    pub(crate) fn run_until(
        &mut self,
        until: Time,
        is_up: impl Fn(usize) -> bool,
        passes: impl Fn(Member, NodeId, &Message) -> bool,
    ) {
        loop {
            let next = (0..self.nodes.len())
                .filter(|&node| is_up(node))
                .filter_map(|node| Some((self.nodes[node].deadline()?, node)))
                .min();
            let Some((at, node)) = next.filter(|&(at, _)| at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            let mut effects = Vec::new();
            let now = self.now;
            self.nodes[node].expire_into(now, &mut self.rng, &mut effects);
            self.carry(node, effects);
            self.settle(&passes);
        }
        self.now = until;
    }

    pub(crate) fn status(&self, observer: usize, of: u64) -> Option<Status> {
        Some(self.nodes[observer].machine().member(NodeId(of))?.status)
    }

    pub(crate) fn deltas(&self, observer: usize) -> Vec<Delta> {
        self.events
            .iter()
            .filter_map(|(node, event)| match event {
                Event::Changed(delta) if *node == observer => Some(*delta),
                _ => None,
            })
            .collect()
    }
}
