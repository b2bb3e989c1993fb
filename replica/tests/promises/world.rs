//! What happens when: nodes, the order of real time, and the weather.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Input, Member};
use selvedge_replica::{Config, Configuration, Message, Replica};

use crate::node::{Disk, Node};
use crate::oracle::{Log, Op, Oracle};

pub(crate) type Machine = Replica<Log>;

/// Microseconds of real time.
pub(crate) type Real = u64;

pub(crate) enum What {
    Deliver {
        to: u64,
        from: Member,
        message: Message<Op>,
    },
    Tick(u64),
    Written(Member),
    Wake(u64),
    Restart(u64),
    Told(u64, Delta),
    Relay(usize),
}

/// What differs from history to history.
pub(crate) struct Weather {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) delay: u64,
    pub(crate) far: u64,
    pub(crate) write: u64,
    pub(crate) clocks_stop: bool,
    pub(crate) burst_first: bool,
    pub(crate) deltas_lost: u64,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    /// Peers lie: nothing is agreed then, but nothing panics, and memory is bounded.
    pub(crate) liars: bool,
    /// So many nodes are in the mesh that are no part of this.
    pub(crate) strangers: u64,
}

/// A proposer that is no member.
pub(crate) struct Client {
    pub(crate) me: Member,
    pub(crate) number: u64,
    pub(crate) since: u64,
    pub(crate) op: Option<Op>,
    pub(crate) tries: u64,
}

pub(crate) struct World {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Real,
    pub(crate) seq: u64,
    pub(crate) queue: BinaryHeap<Reverse<(Real, u64)>>,
    pub(crate) events: BTreeMap<u64, What>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) cuts: BTreeSet<(u64, u64)>,
    /// No state reaches this node.
    pub(crate) stateless: Option<u64>,
    pub(crate) weather: Weather,
    pub(crate) oracle: Oracle,
    pub(crate) first: Configuration,
    pub(crate) begin: Log,
    /// Every configuration that was ever on its way.
    pub(crate) configurations: BTreeMap<u64, BTreeSet<Configuration>>,
    /// Whether some node receives no state but a small one.
    pub(crate) narrow: bool,
    pub(crate) clients: Vec<Client>,
    /// Messages that were sent, and may come again.
    pub(crate) old: Vec<(Member, u64, Message<Op>)>,
    pub(crate) next_op: u64,
    pub(crate) last_sent: Real,
    pub(crate) sent: u64,
    /// The present second, the messages sent in it, and the most in any second.
    pub(crate) second: u64,
    pub(crate) in_second: u64,
    pub(crate) busiest: u64,
    /// At how many moments of the present second each question was sent, and when last; the most in any.
    pub(crate) asked: BTreeMap<(u64, u64, u64), (u64, Real)>,
    pub(crate) most_asked: u64,
    pub(crate) restarts: u64,
    /// Memories that were dropped within a life.
    pub(crate) dropped: u64,
    pub(crate) size_max: usize,
    pub(crate) trace: bool,
}

impl World {
    pub(crate) fn new(
        mut rng: ChaCha8Rng,
        first: Configuration,
        begin: Log,
        weather: Weather,
        nodes: Vec<Node>,
    ) -> Self {
        let seed = rng.below(u64::MAX);
        let mut oracle = Oracle::default();
        oracle.is_off = weather.liars;
        let narrow = nodes.iter().any(|it| it.config.state_limit < 10_000);
        let mut configurations = BTreeMap::new();
        configurations.insert(1, [first.clone()].into());
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: 0,
            seq: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            nodes: nodes.into_iter().map(|it| (it.id, it)).collect(),
            cuts: BTreeSet::new(),
            stateless: None,
            weather,
            oracle,
            first,
            begin,
            configurations,
            narrow,
            clients: Vec::new(),
            old: Vec::new(),
            next_op: 0,
            last_sent: 0,
            sent: 0,
            second: 0,
            in_second: 0,
            busiest: 0,
            asked: BTreeMap::new(),
            most_asked: 0,
            restarts: 0,
            dropped: 0,
            size_max: 0,
            trace: std::env::var_os("TRACE").is_some(),
        }
    }

    pub(crate) fn node(
        rng: &mut ChaCha8Rng,
        id: u64,
        stores: bool,
        newcomer: bool,
        begins: u32,
        config: Config,
        slow_ppm: u64,
    ) -> Node {
        Node {
            id,
            life: begins,
            begins,
            stores,
            born: begins,
            newcomer,
            never: false,
            config,
            host: None,
            disk: Disk::default(),
            asleep: false,
            paused_at: None,
            paused: 0,
            offset: rng.below(1_000_000),
            slow_ppm,
            limit: [0, 3, 100][rng.below(3) as usize],
        }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub(crate) fn at(&mut self, when: Real, what: What) {
        self.seq += 1;
        self.queue.push(Reverse((when, self.seq)));
        self.events.insert(self.seq, what);
    }

    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>10} {}", self.now, text());
        }
    }

    pub(crate) fn machine(&self, id: u64) -> Option<&Machine> {
        self.nodes[&id].host.as_ref().map(|it| it.driver.machine())
    }

    /// Runs on until then.
    pub(crate) fn run_until(&mut self, end: Real) {
        while let Some(&Reverse((when, seq))) = self.queue.peek() {
            if when > end {
                break;
            }
            self.queue.pop();
            self.now = self.now.max(when);
            let what = self.events.remove(&seq).unwrap();
            self.happens(what);
        }
        self.now = self.now.max(end);
    }

    pub(crate) fn happens(&mut self, what: What) {
        match what {
            What::Deliver { to, from, message } => {
                self.input(to, Input::Message { from, message });
            }
            What::Tick(id) => {
                let now = self.now;
                let node = self.nodes.get_mut(&id).unwrap();
                let Some(host) = node.host.as_mut() else {
                    return;
                };
                if host.tick_at.is_none_or(|it| it > now) {
                    return; // Another one is scheduled.
                }
                host.tick_at = None;
                self.expire(id);
            }
            What::Written(who) => self.written(who),
            What::Wake(id) => self.wake(id),
            What::Restart(id) => self.start(id),
            What::Told(to, delta) => {
                let host = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut());
                if let Some(host) = host {
                    host.told.insert(delta.member().id.0, delta);
                    self.input(to, Input::Membership(delta));
                }
            }
            What::Relay(nth) => {
                if self.clients[nth].op.is_some() {
                    self.relay(nth);
                }
            }
        }
    }

    /// All faults end: all are up that ever will be, and know it.
    pub(crate) fn heal(&mut self) {
        self.cuts.clear();
        self.weather.lost = 0;
        self.weather.doubled = 0;
        self.weather.far = 0;
        self.weather.deltas_lost = 0;
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for &id in &ids {
            self.wake(id);
            self.start(id);
        }
        // What is late has come.
        self.run_until(self.now + 30_000_000);
        self.tell_all();
    }

    /// Membership tells each node of all others.
    pub(crate) fn tell_all(&mut self) {
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for &id in &ids {
            for &other in &ids {
                if id == other || self.nodes[&id].host.is_none() {
                    continue;
                }
                let node = &self.nodes[&other];
                let deltas = match &node.host {
                    Some(host) => vec![Delta::Joined(host.me), Delta::Refuted(host.me)],
                    None => vec![Delta::Failed(Member::new(other, node.life))],
                };
                for delta in deltas {
                    self.input(id, Input::Membership(delta));
                }
            }
        }
    }

    /// How much the largest machine holds, by its print.
    pub(crate) fn measure(&mut self) {
        for node in self.nodes.values() {
            if let Some(host) = &node.host {
                let size = format!("{:?}", host.driver.machine()).len();
                self.size_max = self.size_max.max(size);
            }
        }
    }

    pub(crate) fn is_unavailable(&self, id: u64) -> bool {
        self.nodes[&id]
            .host
            .as_ref()
            .is_some_and(|it| it.unavailable)
    }
}
