//! A network, clocks, storage and hosts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, Time};
use selvedge_replica::{
    Body, Command, Config, Configuration, Entry, Event, Fact, Message, Proposal, Reject, Replica,
    Stored,
};

use crate::oracle::{End, Log, Op, Oracle};

pub(crate) type Machine = Replica<Log>;

/// Microseconds of real time.
pub(crate) type Real = u64;

enum Item {
    Effect(Effect<Machine>),
    /// What the host may show once all facts before it are stored.
    Observe {
        version: u64,
        state: Option<Log>,
        readable: Vec<(u64, u64)>,
        forgotten: Vec<(Member, u64)>,
    },
}

enum Write {
    Facts(Vec<Fact<Log>>),
    Base(Box<Stored<Log>>),
}

#[derive(Default)]
struct Disk {
    base: Option<Stored<Log>>,
    facts: Vec<Fact<Log>>,
}

impl Disk {
    fn take(&mut self, write: Write) {
        match write {
            Write::Facts(facts) => self.facts.extend(facts),
            Write::Base(base) => {
                self.base = Some(*base);
                self.facts.clear();
            }
        }
    }
}

/// A node while it is up.
pub(crate) struct Host {
    pub(crate) me: Member,
    pub(crate) driver: Driver<Machine>,
    barrier: Barrier<Item>,
    writes: VecDeque<(Mark, Write)>,
    inbox: VecDeque<Input<Machine>>,
    tick_at: Option<Real>,
    unavailable: bool,
    next_read: u64,
    shown: u64,
    told: BTreeMap<u64, Delta>,
}

pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) life: u32,
    pub(crate) stores: bool,
    pub(crate) newcomer: bool,
    /// It never comes up.
    pub(crate) never: bool,
    pub(crate) config: Config,
    pub(crate) host: Option<Host>,
    disk: Disk,
    asleep: bool,
    /// Where its clock stands still while it sleeps.
    paused_at: Option<Real>,
    paused: Real,
    offset: u64,
    slow_ppm: u64,
    limit: usize,
}

impl Node {
    fn local(&self, real: Real) -> Time {
        let running = self.paused_at.unwrap_or(real) - self.paused;
        Time(self.offset + running - running * self.slow_ppm / 1_000_000)
    }

    fn real(&self, local: Time, now: Real) -> Real {
        let missing = local.0.saturating_sub(self.local(now).0);
        now + missing * 1_000_000 / (1_000_000 - self.slow_ppm) + 1
    }

    /// As configurations name it.
    pub(crate) fn voter(&self) -> Member {
        let life = if self.stores { 0 } else { self.life };
        Member::new(self.id, life)
    }
}

enum What {
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
    seq: u64,
    queue: BinaryHeap<Reverse<(Real, u64)>>,
    events: BTreeMap<u64, What>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) cuts: BTreeSet<(u64, u64)>,
    pub(crate) weather: Weather,
    pub(crate) oracle: Oracle,
    pub(crate) first: Configuration,
    pub(crate) begin: Log,
    /// Every configuration that was ever on its way.
    pub(crate) configurations: BTreeMap<u64, BTreeSet<Configuration>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) next_op: u64,
    pub(crate) last_sent: Real,
    pub(crate) sent: u64,
    pub(crate) restarts: u64,
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
            weather,
            oracle: Oracle::default(),
            first,
            begin,
            configurations,
            clients: Vec::new(),
            next_op: 0,
            last_sent: 0,
            sent: 0,
            restarts: 0,
            size_max: 0,
            trace: std::env::var_os("TRACE").is_some(),
        }
    }

    pub(crate) fn node(
        rng: &mut ChaCha8Rng,
        id: u64,
        stores: bool,
        newcomer: bool,
        config: Config,
        slow_ppm: u64,
    ) -> Node {
        Node {
            id,
            life: 0,
            stores,
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

    fn at(&mut self, when: Real, what: What) {
        self.seq += 1;
        self.queue.push(Reverse((when, self.seq)));
        self.events.insert(self.seq, what);
    }

    fn say(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>10} {}", self.now, text());
        }
    }

    /// Begins the node's next life.
    pub(crate) fn start(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        if node.host.is_some() || node.never {
            return;
        }
        let me = Member::new(id, node.life);
        let config = node.config;
        let restored = node.stores.then(|| node.disk.base.clone()).flatten();
        let machine = match restored {
            Some(base) => {
                let mut machine = Machine::restore(me, config, base).unwrap();
                for fact in &node.disk.facts {
                    machine.fold(fact).unwrap();
                }
                machine
            }
            None if node.newcomer => Machine::newcomer(me, config).unwrap(),
            None => Machine::new(me, config, self.first.clone(), self.begin.clone()).unwrap(),
        };
        if node.stores && node.disk.base.is_none() {
            node.disk.base = Some(machine.stored());
        }
        assert_eq!(machine.voter(), node.voter());
        node.host = Some(Host {
            me,
            driver: Driver::new(machine),
            barrier: Barrier::new(node.limit),
            writes: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
            unavailable: false,
            next_read: 1,
            shown: 0,
            told: BTreeMap::new(),
        });
        node.asleep = false;
        self.restarts += u64::from(me.incarnation.0 > 0);
        self.say(|| format!("{me:?} begins"));
        let others: Vec<u64> = self.nodes.keys().copied().filter(|&it| it != id).collect();
        for other in others {
            if self.percent(70) {
                self.tell(other, Delta::Joined(me));
            }
            let host = &self.nodes[&other].host;
            if let Some(host) = host {
                let delta = Delta::Joined(host.me);
                if self.percent(70) {
                    self.tell(id, delta);
                }
            }
        }
    }

    /// Tells a node of a change, now or later.
    pub(crate) fn tell(&mut self, to: u64, delta: Delta) {
        if self.percent(self.weather.deltas_lost) {
            return;
        }
        let after = self.below(300_000);
        let after = if self.percent(10) { after * 20 } else { after };
        let when = self.now + after;
        self.at(when, What::Told(to, delta));
    }

    pub(crate) fn input(&mut self, to: u64, input: Input<Machine>) {
        if let Some(host) = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut()) {
            host.inbox.push_back(input);
            self.run(to);
        }
    }

    /// Whether nothing keeps the host from running.
    fn is_running(&self, id: u64) -> bool {
        let node = &self.nodes[&id];
        let ready = |host: &Host| host.barrier.ready().is_ok();
        !node.asleep && node.host.as_ref().is_some_and(ready)
    }

    /// Takes what waits, as far as storage allows.
    fn run(&mut self, id: u64) {
        let timers_first = !self.weather.burst_first;
        if timers_first {
            self.expire(id);
        }
        while self.is_running(id) {
            let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
            let Some(input) = host.inbox.pop_front() else {
                break;
            };
            self.step(id, Some(input)).ok();
        }
        self.expire(id);
    }

    fn expire(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let node = &self.nodes[&id];
        let now = node.local(self.now);
        let due = node.host.as_ref().unwrap().driver.deadline();
        if due.is_some_and(|it| it <= now) {
            self.step(id, None).ok();
        }
        self.schedule(id);
    }

    fn schedule(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_ref() else {
            return;
        };
        let Some(due) = host.driver.deadline() else {
            return;
        };
        if node.paused_at.is_some() {
            return;
        }
        let when = node.real(due, now);
        let scheduled = host.tick_at;
        if scheduled.is_none_or(|it| when < it) {
            node.host.as_mut().unwrap().tick_at = Some(when);
            self.at(when, What::Tick(id));
        }
    }

    /// One step of a machine: an input, or what is due.
    pub(crate) fn step(&mut self, id: u64, input: Option<Input<Machine>>) -> Result<(), Reject> {
        let real = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let now = node.local(real);
        let stores = node.stores;
        let host = node.host.as_mut().unwrap();
        let me = host.me;
        let budget = host.driver.machine().configuration().frame_budget;
        if self.trace {
            match &input {
                Some(input) => eprintln!("{real:>10} {me:?} <- {input:?}"),
                None => eprintln!(
                    "{real:>10} {me:?} <- due {:?}",
                    host.driver
                        .timers()
                        .filter(|it| it.1 <= now)
                        .collect::<Vec<_>>()
                ),
            }
        }
        let mut effects = Vec::new();
        let outcome = match input {
            Some(input) => host
                .driver
                .step(now, &mut self.rng, input, |it| effects.push(it)),
            None => {
                host.driver
                    .expire(now, &mut self.rng, |it| effects.push(it));
                Ok(())
            }
        };
        assert_eq!(host.driver.refused_ticks(), 0);
        if let Err(reject) = &outcome {
            if self.trace {
                eprintln!("{real:>10} {me:?} refused: {reject}");
            }
            assert!(effects.is_empty());
        }
        let machine = host.driver.machine();
        let budget = budget.max(machine.configuration().frame_budget);
        let (mut readable, mut forgotten) = (Vec::new(), Vec::new());
        for effect in &effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = message.frame_len(me);
                    assert!(len <= budget.into(), "{len} of {budget}: {message:?}");
                }
                Effect::Event(Event::Readable { read, version }) => {
                    readable.push((*read, *version));
                }
                Effect::Event(Event::Forgotten { by, number }) => forgotten.push((*by, *number)),
                _ => {}
            }
        }
        let version = machine.version();
        let mut items: Vec<Item> = effects.into_iter().map(Item::Effect).collect();
        if version != host.shown || !readable.is_empty() || !forgotten.is_empty() {
            host.shown = version;
            items.push(Item::Observe {
                version,
                state: machine.state().cloned(),
                readable,
                forgotten,
            });
        }
        let mut out = Vec::new();
        for item in items {
            match &item {
                Item::Effect(Effect::Event(Event::Fact(_))) if stores => {
                    host.barrier.push_fact(item);
                }
                _ => host.barrier.push(item, |it| out.push(it)),
            }
        }
        for item in out {
            self.carry_out(me, item);
        }
        self.write(id);
        self.schedule(id);
        outcome
    }

    /// Hands storage what is new, if it is idle, or else sometimes.
    fn write(&mut self, id: u64) {
        let more = self.percent(30);
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        if !host.writes.is_empty() && !more {
            return;
        }
        let mut facts = Vec::new();
        let mark = host.barrier.write(|item| {
            if let Item::Effect(Effect::Event(Event::Fact(fact))) = item {
                facts.push(fact.clone());
            }
        });
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
    }

    fn queue_write(&mut self, id: u64, mark: Mark, write: Write) {
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        host.writes.push_back((mark, write));
        let me = host.me;
        if host.writes.len() == 1 {
            let took = self.rng.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(me));
        }
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
        self.queue_write(id, mark, Write::Base(Box::new(base)));
    }

    fn written(&mut self, who: Member) {
        let node = self.nodes.get_mut(&who.id.0).unwrap();
        let Some(host) = node.host.as_mut().filter(|it| it.me == who) else {
            return;
        };
        let (mark, write) = host.writes.pop_front().unwrap();
        node.disk.take(write);
        let mut out = Vec::new();
        host.barrier.stored(mark, |it| out.push(it));
        let more = !host.writes.is_empty();
        for item in out {
            self.carry_out(who, item);
        }
        if more {
            let took = self.rng.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(who));
        }
        self.write(who.id.0);
        self.run(who.id.0);
    }

    fn carry_out(&mut self, me: Member, item: Item) {
        match item {
            Item::Effect(Effect::Send { to, message }) => self.send(me, to.id.0, message),
            Item::Effect(Effect::Multicast { .. }) => panic!("nothing is multicast"),
            Item::Effect(Effect::Event(event)) => self.event(me, event),
            Item::Observe {
                version,
                state,
                readable,
                forgotten,
            } => {
                if let Some(state) = state {
                    self.oracle.state(me, version, &state);
                    for (by, number) in forgotten {
                        self.oracle.forgotten(by, number, &state);
                    }
                }
                for (read, least) in readable {
                    self.oracle.readable(me, read, least, version);
                }
            }
        }
    }

    fn event(&mut self, me: Member, event: Event<Log>) {
        if !matches!(event, Event::Fact(_)) {
            self.say(|| format!("{me:?} {event:?}"));
        }
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
                assert_ne!(host.unavailable, is, "{me:?}: {event:?} twice");
                host.unavailable = is;
            }
            _ => {}
        }
    }

    fn client_ends(&mut self, by: Member, number: u64, well: bool) {
        let seen = self.oracle.seen();
        for client in &mut self.clients {
            if client.me == by && client.number == number && client.op.is_some() {
                client.op = None;
                if !well {
                    // A new life, which knows what this one has seen.
                    client.me = Member::new(by.id.0, by.incarnation.0 + 1);
                    client.number = 0;
                    client.since = seen;
                }
            }
        }
    }

    fn send(&mut self, from: Member, to: u64, message: Message<Op>) {
        self.last_sent = self.now;
        self.sent += 1;
        assert!(self.sent < 300_000, "a storm");
        self.note(&message);
        if self.cuts.contains(&(from.id.0, to)) || self.percent(self.weather.lost) {
            return;
        }
        let copies = 1 + u64::from(self.percent(self.weather.doubled));
        for _ in 0..copies {
            let mut delay = 500 + self.rng.below(self.weather.delay);
            if self.percent(self.weather.far) {
                delay += self.rng.below(20_000_000);
            }
            let what = What::Deliver {
                to,
                from,
                message: message.clone(),
            };
            self.at(self.now + delay, what);
        }
    }

    /// Keeps each configuration that is on its way.
    fn note(&mut self, message: &Message<Op>) {
        let mut found = Vec::new();
        match &message.body {
            Body::Accept { entries, .. } | Body::Learn { entries, .. } => {
                found.extend(entries.iter().filter_map(|it| match it {
                    Entry::Configure(next) => Some((**next).clone()),
                    _ => None,
                }));
            }
            Body::Promise { tail, .. } => {
                found.extend(tail.iter().filter_map(|it| match it {
                    Entry::Configure(next) => Some((**next).clone()),
                    _ => None,
                }));
            }
            Body::Current { configuration, .. } => found.push((**configuration).clone()),
            _ => {}
        }
        for it in found {
            self.configurations.entry(it.number).or_default().insert(it);
        }
    }

    /// Whether a node, as a configuration names it, has its memory or would have it.
    fn keeps(&self, voter: Member, without: Option<u64>, up: bool) -> bool {
        let node = &self.nodes[&voter.id.0];
        let named = node.voter() == voter && !node.never;
        named && (node.stores || without != Some(node.id)) && (!up || node.host.is_some())
    }

    /// Whether each configuration that may count has a quorum that keeps its memory.
    pub(crate) fn keeps_quorums(&self, without: Option<u64>, up: bool) -> bool {
        let active = self.active();
        self.configurations
            .range(active..)
            .flat_map(|it| it.1)
            .all(|it| {
                let enough = |voters: &[selvedge_replica::Voter]| {
                    let keep = voters
                        .iter()
                        .filter(|voter| self.keeps(voter.member, without, up))
                        .count();
                    let least = match it.quorum {
                        selvedge_replica::QuorumRule::AtLeast(least) => usize::from(least),
                        selvedge_replica::QuorumRule::Majority => voters.len() / 2 + 1,
                    };
                    voters.is_empty() || keep >= least
                };
                // What only a witness and one more accepted is lost with that one.
                let witness = it.members().any(|it| it.is_witness);
                let lost = it
                    .members()
                    .any(|it| !self.keeps(it.member, without, up) && !it.is_witness);
                enough(&it.voters) && enough(&it.also) && !(witness && lost)
            })
    }

    /// The latest configuration of which a quorum has installed the state: all before are over.
    fn active(&self) -> u64 {
        let mut active = 1;
        for (&number, all) in &self.configurations {
            let installed = all.iter().any(|it| {
                let there = |voters: &[selvedge_replica::Voter]| {
                    let have = voters.iter().filter(|voter| {
                        let host = self.nodes[&voter.member.id.0].host.as_ref();
                        host.is_some_and(|host| {
                            let machine = host.driver.machine();
                            machine.configuration().number >= number && machine.votes()
                        })
                    });
                    have.count() == voters.len()
                };
                there(&it.voters) && there(&it.also)
            });
            if installed {
                active = number;
            }
        }
        active
    }

    /// Stops a node. What is not stored is lost, with all that waits for it; storage may have kept
    /// a part of what it was handed.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real, is_told: bool) {
        let node = &self.nodes[&id];
        if node.host.is_none() || (!node.stores && !self.keeps_quorums(Some(id), false)) {
            return;
        }
        let node = self.nodes.get_mut(&id).unwrap();
        let host = node.host.take().unwrap();
        let me = host.me;
        if let Some((_, Write::Facts(mut facts))) = host.writes.into_iter().next() {
            let kept = self.rng.below(facts.len() as u64 + 1);
            facts.truncate(kept as usize);
            node.disk.take(Write::Facts(facts));
        }
        node.life += 1;
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += self.now - since;
        }
        self.say(|| format!("{me:?} stops"));
        self.at(self.now + restart_after, What::Restart(id));
        if is_told {
            let others: Vec<u64> = self.nodes.keys().copied().filter(|&it| it != id).collect();
            for other in others {
                let delta = match self.below(4) {
                    0 => Delta::Confirmed(me),
                    1 => Delta::Left(me),
                    _ => Delta::Failed(me),
                };
                self.tell(other, delta);
            }
        }
    }

    pub(crate) fn sleep(&mut self, id: u64, long: Real) {
        let stop = self.weather.clocks_stop;
        let node = self.nodes.get_mut(&id).unwrap();
        if node.asleep || node.host.is_none() {
            return;
        }
        node.asleep = true;
        if stop {
            node.paused_at = Some(self.now);
        }
        self.say(|| format!("{id} sleeps for {long}"));
        self.at(self.now + long, What::Wake(id));
    }

    fn wake(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.asleep {
            return;
        }
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += now - since;
        }
        if let Some(host) = node.host.as_mut() {
            host.tick_at = None;
        }
        self.say(|| format!("{id} wakes"));
        self.run(id);
    }

    /// Whether a command can be given now.
    pub(crate) fn can_take(&self, id: u64) -> bool {
        self.is_running(id)
    }

    pub(crate) fn machine(&self, id: u64) -> Option<&Machine> {
        self.nodes[&id].host.as_ref().map(|it| it.driver.machine())
    }

    pub(crate) fn op(&mut self) -> Op {
        self.next_op += 1;
        let pad = if self.percent(10) { 40 } else { self.below(3) };
        Op {
            id: self.next_op,
            pad: vec![1; pad as usize],
        }
    }

    pub(crate) fn propose(&mut self, id: u64) -> bool {
        if !self.can_take(id) {
            return false;
        }
        let op = self.op();
        let machine = self.machine(id).unwrap();
        let (me, number) = (machine.me(), machine.next_number());
        // The effects come within the step: the proposal is asked before it.
        let floor = op.id;
        let input = Input::Command(Command::Propose(op));
        self.oracle.ask(me, number, floor);
        let outcome = self.step(id, Some(input));
        if outcome.is_err() {
            self.oracle.unask(me, number);
        }
        outcome.is_ok()
    }

    pub(crate) fn read(&mut self, id: u64) {
        if !self.can_take(id) {
            return;
        }
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        let (me, number) = (host.me, host.next_read);
        host.next_read += 1;
        self.oracle.read(me, number);
        let input = Input::Command(Command::Read(number));
        if self.step(id, Some(input)).is_err() {
            self.oracle.unreadable(me, number);
        }
    }

    pub(crate) fn command(&mut self, id: u64, command: Command<Op>) -> bool {
        self.can_take(id) && self.step(id, Some(Input::Command(command))).is_ok()
    }

    /// An outside proposer tries on, or begins.
    pub(crate) fn relay(&mut self, nth: usize) {
        if self.clients[nth].op.is_none() {
            let op = self.op();
            let client = &mut self.clients[nth];
            client.op = Some(op);
            client.number += 1;
            client.tries = 8;
        }
        let client = &mut self.clients[nth];
        if client.tries == 0 {
            return;
        }
        client.tries -= 1;
        let proposal = Proposal {
            by: client.me,
            number: client.number,
            first: 1,
            since: client.since,
            update: client.op.clone().unwrap(),
        };
        let (by, number, op) = (proposal.by, proposal.number, proposal.update.id);
        self.oracle.ask(by, number, op);
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        let to = ids[self.below(ids.len() as u64) as usize];
        self.command(to, Command::Relay(proposal));
        let after = 20_000 + self.below(400_000);
        self.at(self.now + after, What::Relay(nth));
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

    fn happens(&mut self, what: What) {
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
