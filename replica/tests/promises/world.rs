//! The group: its nodes, and their commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Effect, Input, Member};
use selvedge_replica::{Config, Configuration, Event, Fact, Message, Reject, Replica, Stored};
use selvedge_sim::histories::{Choices, History, Hosts, Life, Node, Real, Step, Weather};

use crate::oracle::{End, Log, Op, Oracle};

pub(crate) type Machine = Replica<Log>;

/// The test's view of a node.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) config: Config,
    pub(crate) newcomer: bool,
}

/// The knowledge of a host in one life.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) unavailable: bool,
    pub(crate) last_read: u64,
    pub(crate) shown: u64,
    /// The frame budget before the last step.
    budget: u16,
}

/// The effects that the host may show once all facts before them are stored.
#[derive(Debug)]
pub(crate) struct Observed {
    version: u64,
    state: Option<Log>,
    readable: Vec<(u64, u64)>,
    forgotten: Vec<(Member, u64)>,
}

/// A proposer outside tries again.
#[derive(Debug)]
pub(crate) struct Relay(pub(crate) usize);

/// A proposer that is no member.
pub(crate) struct Client {
    pub(crate) me: Member,
    pub(crate) number: u64,
    pub(crate) since: u64,
    pub(crate) op: Option<Op>,
    pub(crate) tries: u64,
}

pub(crate) struct World {
    hosts: Hosts<Self>,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    /// Peers lie: no agreement is checked then, but nothing panics, and memory is bounded.
    pub(crate) liars: bool,
    /// The number of nodes in the mesh that have no part in the group.
    pub(crate) strangers: u64,
    /// No state reaches this node.
    pub(crate) stateless: Option<u64>,
    pub(crate) oracle: Oracle,
    pub(crate) first: Configuration,
    pub(crate) begin: Log,
    /// Every configuration that was ever in flight.
    pub(crate) configurations: BTreeMap<u64, BTreeSet<Configuration>>,
    /// True if some node receives no state but a small one.
    pub(crate) narrow: bool,
    pub(crate) clients: Vec<Client>,
    pub(crate) next_op: u64,
    /// The number of moments of a second at which each question was sent, with the last; the most
    /// in any.
    pub(crate) asked: BTreeMap<(u64, u64, u64), (u64, Real)>,
    pub(crate) most_asked: u64,
    /// Memories that were dropped within a life.
    pub(crate) dropped: u64,
}

impl Deref for World {
    type Target = Hosts<Self>;

    fn deref(&self) -> &Hosts<Self> {
        &self.hosts
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Hosts<Self> {
        &mut self.hosts
    }
}

impl History for World {
    type Machine = Machine;
    type Fact = Fact<Log>;
    type Base = Stored<Log>;
    type Note = Observed;
    type Happening = Relay;
    type Node = Own;
    type Life = Known;

    fn fact(event: &Event<Log>) -> Option<&Fact<Log>> {
        Machine::fact(event)
    }

    fn make(&mut self, Life { me, is_first }: Life) -> Machine {
        let (first, begin) = (self.first.clone(), self.begin.clone());
        let node = self.hosts.nodes.get_mut(&me.id.0).unwrap();
        let config = node.own.config;
        let machine = match node.disk.base.clone() {
            Some(base) => {
                let mut machine = Machine::restore(me, config, base).unwrap();
                for fact in &node.disk.facts {
                    machine.fold(fact).unwrap();
                }
                machine
            }
            None if node.own.newcomer => Machine::newcomer(me, config).unwrap(),
            None if is_first => Machine::founder(me, config, first, begin).unwrap(),
            None => Machine::new(me, config, first, begin).unwrap(),
        };
        if node.stores && node.disk.base.is_none() {
            node.disk.base = Some(machine.stored());
        }
        assert_eq!(machine.voter(), Member::new(me.id.0, node.born));
        machine
    }

    fn began(&mut self, me: Member) {
        let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
        host.own.budget = host.driver.machine().configuration().frame_budget;
        self.meet(me);
    }

    fn send(&mut self, from: Member, to: Member, message: Message<Op>) {
        self.dispatch(from, to.id.0, &message);
    }

    fn stepped(&mut self, step: &Step<'_, Self>) -> Vec<Observed> {
        let me = step.me;
        if let Some(reject) = step.refusal {
            let accuses = matches!(reject, Reject::Misbehaviour(_)) && !self.liars;
            assert!(!accuses, "{me:?} accuses a correct peer: {reject}");
        }
        self.check_invariant();
        let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
        let machine = host.driver.machine();
        let budget = machine.configuration().frame_budget;
        let most = budget.max(std::mem::replace(&mut host.own.budget, budget));
        let (mut readable, mut forgotten) = (Vec::new(), Vec::new());
        for effect in step.effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = message.frame_len(me);
                    assert!(len <= most.into(), "{len} of {most}: {message:?}");
                }
                Effect::Event(Event::Readable { read, version }) => {
                    readable.push((*read, *version));
                }
                Effect::Event(Event::Forgotten { by, number }) => forgotten.push((*by, *number)),
                Effect::Event(_) => {}
                Effect::Multicast { .. } => panic!("nothing is multicast"),
            }
        }
        let version = machine.version();
        if version == host.own.shown && readable.is_empty() && forgotten.is_empty() {
            return Vec::new();
        }
        host.own.shown = version;
        let state = machine.state().cloned();
        vec![Observed {
            version,
            state,
            readable,
            forgotten,
        }]
    }

    fn note(&mut self, me: Member, note: Observed) {
        let version = note.version;
        if let Some(state) = note.state {
            self.oracle.state(me, version, &state);
            for (by, number) in note.forgotten {
                self.oracle.forgotten(by, number, &state);
            }
        }
        for (read, least) in note.readable {
            self.oracle.readable(me, read, least, version);
        }
    }

    fn event(&mut self, me: Member, _: Real, event: Event<Log>) {
        match event {
            Event::Applied {
                version,
                by,
                number,
                outcome,
            } => {
                self.oracle.applied(me, version, by, number, outcome);
                self.client_ends(by, number, true);
            }
            Event::Overtaken { by, number } => {
                self.oracle.end(me, by, number, End::Overtaken);
                self.client_ends(by, number, true);
            }
            Event::Forgotten { by, number } => {
                self.oracle.end(me, by, number, End::Forgotten);
                self.client_ends(by, number, false);
            }
            Event::Abandoned { by, number } => self.oracle.end(me, by, number, End::Abandoned),
            Event::Unreadable(read) => self.oracle.unreadable(me, read),
            Event::Configured { number, version } => self.oracle.configured(number, version),
            Event::Unavailable { .. } | Event::Available => {
                let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
                let is = matches!(event, Event::Unavailable { .. });
                assert_ne!(host.own.unavailable, is, "{me:?}: {event:?} twice");
                host.own.unavailable = is;
            }
            _ => {}
        }
    }

    fn happens(&mut self, Relay(nth): Relay) {
        if self.clients[nth].op.is_some() {
            self.relay(nth);
        }
    }
}

impl World {
    pub(crate) fn new(
        choices: Choices,
        first: Configuration,
        begin: Log,
        weather: Weather,
        nodes: Vec<Node<Self>>,
    ) -> Self {
        let narrow = nodes.iter().any(|it| it.own.config.state_limit < 10_000);
        let mut configurations = BTreeMap::new();
        configurations.insert(1, [first.clone()].into());
        Self {
            hosts: Hosts::new(choices, weather, nodes),
            echoes: false,
            liars: false,
            strangers: 0,
            stateless: None,
            oracle: Oracle::default(),
            first,
            begin,
            configurations,
            narrow,
            clients: Vec::new(),
            next_op: 0,
            asked: BTreeMap::new(),
            most_asked: 0,
            dropped: 0,
        }
    }

    /// Checks the invariant behind the promises on the machines in memory.
    fn check_invariant(&self) {
        if self.liars {
            return;
        }
        let machines: Vec<&Machine> = self.machines().collect();
        let broken = selvedge_replica::check::broken(&machines, []);
        assert_eq!(broken, None);
    }

    /// Stores a base in place of all facts so far.
    pub(crate) fn snapshot(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| node.stores) else {
            return;
        };
        let base = host.driver.machine().stored();
        host.barrier.write(|_| {});
        let mark = host.barrier.last();
        self.queue_write(
            id,
            mark,
            selvedge_sim::histories::Write::Base(Box::new(base)),
        );
    }

    /// Stops a node, and notifies the others or not.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real, is_notified: bool) {
        let node = &self.nodes[&id];
        if !node.stores && !self.keeps_quorums(Some(id), false) {
            return;
        }
        if let Some(me) = self.stop(id, restart_after).filter(|_| is_notified) {
            self.has_ended(me);
        }
    }

    fn has_ended(&mut self, me: Member) {
        for other in self.ids().into_iter().filter(|&it| it != me.id.0) {
            let delta = match self.below(4) {
                0 => Delta::Confirmed(me),
                1 => Delta::Left(me),
                _ => Delta::Failed(me),
            };
            self.notify(other, delta);
        }
    }

    /// Stops a node that stores facts. It loses them all.
    pub(crate) fn lose_storage(&mut self, id: u64, restart_after: Real) {
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.stores || node.host.is_none() {
            return;
        }
        node.stores = false;
        let may = self.keeps_quorums(Some(id), false);
        self.nodes.get_mut(&id).unwrap().stores = true;
        if may && let Some(me) = self.stop(id, restart_after) {
            self.nodes.get_mut(&id).unwrap().lose_storage();
            self.has_ended(me);
        }
    }

    /// A node that has no part in the group any more drops its memory, and keeps its mark.
    pub(crate) fn drop_memory(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| !node.stores) else {
            return;
        };
        let machine = host.driver.machine();
        if !machine.is_over() {
            return;
        }
        let mark = machine.mark();
        let machine = Machine::newcomer_behind(host.me, node.own.config, mark).unwrap();
        assert!(machine.next_number() > host.driver.machine().next_number());
        host.driver = Driver::new(machine);
        host.tick_at = None;
        host.own.shown = 0;
        host.own.unavailable = false;
        let notified: Vec<Delta> = host.notified.values().copied().collect();
        self.dropped += 1;
        self.say(|| format!("{id} drops its memory, behind {mark}"));
        for delta in notified {
            self.input(id, Input::Membership(delta));
        }
    }

    /// Ends all faults: each node that will ever be up is up, and all know it.
    pub(crate) fn heal(&mut self) {
        self.calm();
        self.wake_all();
        // Late messages have arrived.
        self.run_for(30_000_000);
        self.notify_all();
    }

    /// Membership reports all other nodes to each node.
    pub(crate) fn notify_all(&mut self) {
        for id in self.ids() {
            for other in self.ids() {
                if id == other || self.me(id).is_none() {
                    continue;
                }
                let deltas = match self.me(other) {
                    Some(me) => vec![Delta::Joined(me), Delta::Refuted(me)],
                    None => vec![Delta::Failed(self.nodes[&other].member())],
                };
                for delta in deltas {
                    self.input(id, Input::Membership(delta));
                }
            }
        }
    }

    pub(crate) fn is_unavailable(&self, id: u64) -> bool {
        let host = self.nodes[&id].host.as_ref();
        host.is_some_and(|it| it.own.unavailable)
    }
}
