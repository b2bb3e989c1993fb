//! Groups by hand: the test controls messages, time and storage.

mod candidates;
mod catch_up;
mod costs;
mod cut_off;
mod leaders;
mod leases;
mod lies;
mod lives;
mod members;
mod proposers;
mod reads;
mod updates;
mod witnesses;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Effect, Incarnation, Input, Member, NodeId, Span, Time};
use selvedge_replica::check::Journal;
use selvedge_replica::{
    Ballot, Body, Command, Config, Configuration, Entry, Event, Lease, Message, Misbehaviour,
    Proposal, Reject, Replica, Timer, Voter,
};

type Node = Replica<Journal>;

/// A few nodes, the messages between them, and their events.
struct Group {
    now: Time,
    nodes: Vec<Driver<Node>>,
    wire: Vec<(Member, Member, Message<u16>)>,
    events: Vec<(u64, Event<Journal>)>,
    sent: usize,
    rng: ChaCha8Rng,
}

fn ballot(number: u64, by: u64) -> Ballot {
    let by = NodeId(by);
    Ballot { number, by }
}

fn member(id: u64) -> Member {
    Member::new(id, 1)
}

impl Group {
    fn new(first: &Configuration, ids: &[u64]) -> Self {
        Self::set(first, ids, Config::new())
    }

    fn set(first: &Configuration, ids: &[u64], config: Config) -> Self {
        let node = |&id: &u64| {
            let node = match first.voter(NodeId(id)) {
                Some(_) => Replica::new(member(id), config, first.clone(), Journal::default()),
                None => Ok(Replica::newcomer(member(id), config).unwrap()),
            };
            Driver::new(node.unwrap())
        };
        Self {
            now: Time::ZERO,
            nodes: ids.iter().map(node).collect(),
            wire: Vec::new(),
            events: Vec::new(),
            sent: 0,
            rng: ChaCha8Rng::seed_from_u64(5),
        }
    }

    fn of(ids: &[u64]) -> Self {
        Self::new(&Configuration::of(ids.iter().map(|&id| member(id))), ids)
    }

    fn at(&self, id: u64) -> usize {
        let found = self
            .nodes
            .iter()
            .position(|it| it.machine().me().id == NodeId(id));
        found.unwrap()
    }

    fn node(&self, id: u64) -> &Node {
        self.nodes[self.at(id)].machine()
    }

    fn step(&mut self, id: u64, input: Input<Node>) -> Result<(), Reject> {
        let at = self.at(id);
        let mut effects = Vec::new();
        let taken = self.nodes[at].step_into(self.now, &mut self.rng, input, &mut effects);
        self.take(at, effects);
        taken
    }

    fn take(&mut self, at: usize, effects: Vec<Effect<Node>>) {
        let me = self.nodes[at].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    self.wire.push((me, to, message));
                }
                Effect::Event(event) => self.events.push((me.id.0, event)),
                Effect::Multicast { .. } => panic!("nothing is sent to all"),
            }
        }
    }

    fn command(&mut self, id: u64, command: Command<u16>) {
        self.step(id, Input::Command(command)).unwrap();
    }

    fn notify(&mut self, id: u64, delta: Delta) {
        self.step(id, Input::Membership(delta)).unwrap();
    }

    /// Delivers this body. Returns the node's messages, taken from the wire, which holds no others.
    fn say(&mut self, to: u64, from: Member, body: Body<u16>) -> Vec<(u64, Body<u16>)> {
        let configuration = self.node(to).configuration().number;
        self.judged(to, from, configuration, body).unwrap();
        self.taken()
    }

    fn judged(
        &mut self,
        to: u64,
        from: Member,
        configuration: u64,
        body: Body<u16>,
    ) -> Result<(), Reject> {
        self.wire.clear();
        let message = Message {
            configuration,
            body,
        };
        self.step(to, Input::Message { from, message })
    }

    /// Takes the messages in flight; they arrive nowhere.
    fn taken(&mut self) -> Vec<(u64, Body<u16>)> {
        let wire = core::mem::take(&mut self.wire);
        wire.into_iter()
            .map(|(_, to, message)| (to.id.0, message.body))
            .collect()
    }

    /// Lets time pass at one node alone; its messages arrive nowhere.
    fn pass(&mut self, id: u64, span: Span) -> Vec<(u64, Body<u16>)> {
        self.now = self.now + span;
        let (at, now) = (self.at(id), self.now);
        let mut effects = Vec::new();
        self.nodes[at].expire_into(now, &mut self.rng, &mut effects);
        self.wire.clear();
        self.take(at, effects);
        self.taken()
    }

    /// Delivers all messages, and the messages that they cause. None reaches a node in `down`.
    fn deliver_without(&mut self, down: &[u64]) {
        while !self.wire.is_empty() {
            self.round_without(down);
        }
    }

    /// Delivers the messages in flight.
    fn round_without(&mut self, down: &[u64]) {
        for (from, to, message) in core::mem::take(&mut self.wire) {
            let is_there = self.nodes.iter().any(|it| it.machine().me().id == to.id);
            if is_there && !down.contains(&to.id.0) && !down.contains(&from.id.0) {
                self.step(to.id.0, Input::Message { from, message })
                    .unwrap();
            }
        }
    }

    /// Delivers the messages in flight after this time; then timers that are due run.
    fn slow_round(&mut self, span: Span) {
        self.round_without(&[]);
        self.now = self.now + span;
        for at in 0..self.nodes.len() {
            let mut effects = Vec::new();
            self.nodes[at].expire_into(self.now, &mut self.rng, &mut effects);
            self.take(at, effects);
        }
    }

    fn deliver(&mut self) {
        self.deliver_without(&[]);
    }

    /// Lets time pass with all due timers; messages arrive at once.
    fn wait_without(&mut self, span: Span, down: &[u64]) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::millis(10);
            for at in 0..self.nodes.len() {
                let id = self.nodes[at].machine().me().id.0;
                if down.contains(&id) {
                    continue;
                }
                let mut effects = Vec::new();
                self.nodes[at].expire_into(self.now, &mut self.rng, &mut effects);
                self.take(at, effects);
            }
            self.deliver_without(down);
        }
    }

    fn wait(&mut self, span: Span) {
        self.wait_without(span, &[]);
    }

    fn state(&self, id: u64) -> &[u16] {
        self.node(id).state().map_or(&[], |it| &it.0)
    }

    fn leader(&self, id: u64) -> Option<u64> {
        self.node(id).leader().map(|it| it.0.0)
    }

    fn notified(&self, id: u64, is_it: impl Fn(&Event<Journal>) -> bool) -> usize {
        self.events
            .iter()
            .filter(|(at, event)| *at == id && is_it(event))
            .count()
    }

    /// The node stops, and begins its next life with its stored memory.
    fn restart_with_storage(&mut self, id: u64, first: &Configuration) {
        let at = self.at(id);
        let before = self.node(id).me();
        let me = Member {
            incarnation: before.incarnation.next(),
            ..before
        };
        let base = Replica::new(member(id), Config::new(), first.clone(), Journal::default());
        let mut node = Replica::restore(me, Config::new(), base.unwrap().stored()).unwrap();
        for (by, event) in &self.events {
            if *by == id
                && let Some(fact) = Node::fact(event)
            {
                node.fold(fact).unwrap();
            }
        }
        self.nodes[at] = Driver::new(node);
    }
}
