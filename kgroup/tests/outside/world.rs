//! Nodes, their disks, the network, membership's reports and the devices. Time is virtual.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use chacha20::{ChaCha8Rng, rand_core::Rng, rand_core::SeedableRng};
use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Time, wire};
use selvedge_groups::store::StoreEvent;
use selvedge_groups::{self as groups, Fact, Misbehaviour, Start};
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::{
    Command, Config, Event, GroupState, Kgroup, LeaderEvent, Message, Outcome, Reject, Site,
};
use selvedge_routine::State;

use crate::oracle::{Given, Glimpse, Oracle};
use crate::story::Break;

pub(crate) const MS: u64 = 1_000;

/// A source of random numbers, replayed by its seed.
pub(crate) struct Dice(pub(crate) ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound.max(1)
    }
    pub(crate) fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len() as u64) as usize].clone())
    }
}

/// The faults of the network and of hosts, in microseconds and percent.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) double: u64,
    pub(crate) delay: u64,
    /// Of 100 messages, the number that take up to `longest`.
    pub(crate) slow: u64,
    pub(crate) longest: u64,
    /// The longest time of a message without an item of a cluster.
    pub(crate) ages: u64,
    pub(crate) storage: u64,
    /// Of 100 commands, the number that a host carries out late, fails or does not report.
    pub(crate) act: u64,
    /// The longest time until membership reports.
    pub(crate) detection: u64,
}

pub(crate) enum Ev {
    Deliver {
        from: Member,
        to: NodeId,
        sent: u64,
        message: Message,
    },
    Wake {
        node: NodeId,
        life: u32,
    },
    Stored {
        node: NodeId,
        life: u32,
        mark: Mark,
    },
    Member {
        node: NodeId,
        life: u32,
        delta: Delta,
    },
    Execute {
        node: NodeId,
        life: u32,
        ticket: Ticket,
        value: State,
        until: u64,
    },
    Host {
        node: NodeId,
        life: u32,
        command: Command,
    },
    Step(usize),
    Start {
        node: NodeId,
        file: Option<Arc<Site>>,
    },
    Heal(BTreeSet<(NodeId, NodeId)>),
    Epoch,
    Poll,
}

/// An effect that waits in a barrier, or the state of a node as others see it: a crash takes back everything that
/// is not stored.
enum Out {
    Effect(Box<Effect<Kgroup>>),
    Given(Box<Given>),
    Seen(Box<Glimpse>),
}

struct Due {
    at: u64,
    order: u64,
    ev: Ev,
}
impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

pub(crate) struct Node {
    pub(crate) driver: Option<Driver<Kgroup>>,
    pub(crate) life: u32,
    pub(crate) has_disk: bool,
    pub(crate) has_begun: bool,
    pub(crate) has_lost: bool,
    pub(crate) file: Arc<Site>,
    pub(crate) offset: u64,
    pub(crate) asleep_until: u64,
    pub(crate) disk: Vec<Fact<GroupState>>,
    barrier: Barrier<Out>,
    writing: Option<Vec<Fact<GroupState>>>,
    wake_at: u64,
}

impl Node {
    pub(crate) fn machine(&self) -> Option<&Kgroup> {
        self.driver.as_ref().map(Driver::machine)
    }
}

/// The world of one history.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) dice: Dice,
    machine_dice: ChaCha8Rng,
    queue: BinaryHeap<Reverse<Due>>,
    order: u64,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) blocked: BTreeSet<(NodeId, NodeId)>,
    pub(crate) faults: Faults,
    pub(crate) config: Config,
    pub(crate) budget: u16,
    pub(crate) device_states: BTreeMap<NodeId, State>,
    pub(crate) epoch: u64,
    pub(crate) epoch_length: u64,
    pub(crate) oracle: Oracle,
    pub(crate) steps: u64,
    /// Messages that are lost.
    pub(crate) loses: fn(&Message) -> bool,
    pub(crate) trace: bool,
    pub(crate) broken: Option<Break>,
    traced_group: Option<u64>,
    /// The limit of groups is below the number that a node founds.
    pub(crate) is_unusable: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults, config: Config, budget: u16) -> Self {
        Self {
            now: 0,
            dice: Dice::new(seed ^ 0x5eed),
            machine_dice: ChaCha8Rng::seed_from_u64(seed),
            queue: BinaryHeap::new(),
            order: 0,
            nodes: BTreeMap::new(),
            blocked: BTreeSet::new(),
            faults,
            config,
            budget,
            device_states: BTreeMap::new(),
            epoch: 1,
            epoch_length: 5_000 * MS,
            oracle: Oracle::default(),
            steps: 0,
            loses: |_| false,
            broken: None,
            is_unusable: false,
            traced_group: std::env::var("OUTSIDE_GROUP")
                .ok()
                .and_then(|it| it.parse().ok()),
            trace: std::env::var("OUTSIDE_TRACE").is_ok(),
        }
    }

    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>9.3} s  {}", self.now as f64 / 1e6, text());
        }
    }

    pub(crate) fn at(&mut self, at: u64, ev: Ev) {
        self.order += 1;
        self.queue.push(Reverse(Due {
            at,
            order: self.order,
            ev,
        }));
    }

    pub(crate) fn after(&mut self, after: u64, ev: Ev) {
        self.at(self.now + after, ev);
    }

    pub(crate) fn next(&mut self, until: u64) -> Option<Ev> {
        if self.queue.peek()?.0.at > until {
            self.now = until;
            return None;
        }
        let Reverse(due) = self.queue.pop()?;
        self.now = self.now.max(due.at);
        Some(due.ev)
    }

    pub(crate) fn alive(&self) -> Vec<NodeId> {
        let running = self.nodes.iter().filter(|it| it.1.driver.is_some());
        running.map(|it| *it.0).collect()
    }

    pub(crate) fn machine(&self, node: NodeId) -> Option<&Kgroup> {
        self.nodes.get(&node)?.machine()
    }

    /// Carries out an event of the world. Events of the story are returned.
    pub(crate) fn run(&mut self, ev: Ev) -> Option<Ev> {
        match ev {
            Ev::Deliver {
                from,
                to,
                sent,
                message,
            } => self.deliver(from, to, sent, message),
            Ev::Wake { node, life } => self.wake(node, life),
            Ev::Stored { node, life, mark } => self.stored(node, life, mark),
            Ev::Member { node, life, delta } => {
                if self.is_in(node, life) {
                    self.input(node, Input::Membership(delta));
                }
            }
            Ev::Execute {
                node,
                life,
                ticket,
                value,
                until,
            } => {
                self.execute(node, life, ticket, value, until);
            }
            Ev::Host {
                node,
                life,
                command,
            } => {
                if self.is_in(node, life) {
                    self.command(node, command);
                }
            }
            Ev::Start { node, file } => self.start(node, file),
            Ev::Heal(pairs) => self.heal(&pairs),
            Ev::Epoch => {
                self.epoch += 1;
                for node in self.alive() {
                    let after = self.dice.below(100 * MS);
                    let life = self.nodes[&node].life;
                    let command = Command::SetEpoch(self.epoch);
                    self.after(
                        after,
                        Ev::Host {
                            node,
                            life,
                            command,
                        },
                    );
                }
                self.after(self.epoch_length, Ev::Epoch);
            }
            Ev::Step(_) | Ev::Poll => return Some(ev),
        }
        None
    }

    fn is_in(&self, node: NodeId, life: u32) -> bool {
        let found = self.nodes.get(&node);
        found.is_some_and(|it| it.driver.is_some() && it.life == life)
    }

    /// Gives a node a command of its application. The refusal is returned.
    pub(crate) fn command(&mut self, node: NodeId, command: Command) -> Option<Reject> {
        self.input(node, Input::Command(command))
    }

    fn input(&mut self, node: NodeId, input: Input<Kgroup>) -> Option<Reject> {
        let (now, mut effects) = (self.now, Vec::new());
        let found = self.nodes.get_mut(&node)?;
        let driver = found.driver.as_mut()?;
        let time = Time(now + found.offset);
        self.steps += 1;
        let refused = driver
            .step_into(time, &mut self.machine_dice, input, &mut effects)
            .err();
        self.oracle.refused(now, node, refused);
        self.emitted(node, effects);
        refused
    }

    fn wake(&mut self, node: NodeId, life: u32) {
        if !self.is_in(node, life) {
            return;
        }
        let now = self.now;
        let asleep = self.nodes[&node].asleep_until;
        if asleep > now {
            let at = asleep + self.dice.below(5);
            self.at(at, Ev::Wake { node, life });
            return;
        }
        let mut effects = Vec::new();
        let found = self.nodes.get_mut(&node).unwrap();
        found.wake_at = u64::MAX;
        let time = Time(now + found.offset);
        let driver = found.driver.as_mut().unwrap();
        self.steps += 1;
        driver.expire_into(time, &mut self.machine_dice, &mut effects);
        let refused = driver.refused_ticks();
        self.oracle
            .expect(now, refused == 0, || format!("node {node} refused a tick"));
        self.emitted(node, effects);
    }

    /// The effects of a step: through the barrier where the node has a disk.
    fn emitted(&mut self, node: NodeId, effects: Vec<Effect<Kgroup>>) {
        let now = self.now;
        let found = self.nodes.get_mut(&node).unwrap();
        let machine = found.driver.as_ref().unwrap().machine();
        let seen = self.oracle.glimpse(node, machine);
        let last_fact = effects.iter().rposition(|it| fact_of(it).is_some());
        let mut items = Vec::new();
        for (index, effect) in effects.into_iter().enumerate() {
            if let Effect::Event(event) = &effect {
                match Given::of(machine, event) {
                    Ok(Some(given)) => items.push(Out::Given(Box::new(given))),
                    Ok(None) => {}
                    Err(what) => self.oracle.fail(now, format!("{node}: {what}")),
                }
            }
            items.push(Out::Effect(Box::new(effect)));
            if Some(index) == last_fact {
                items.push(Out::Seen(Box::new(seen.clone())));
            }
        }
        if last_fact.is_none() {
            items.insert(0, Out::Seen(Box::new(seen)));
        }
        let mut out = Vec::new();
        let found = self.nodes.get_mut(&node).unwrap();
        for item in items {
            if !found.has_disk {
                out.push(item);
            } else if matches!(&item, Out::Effect(effect) if fact_of(effect).is_some()) {
                found.barrier.push_fact(item);
            } else {
                found.barrier.push(item, |it| out.push(it));
            }
        }
        for item in out {
            self.carry_out(node, item);
        }
        self.write(node);
        self.set_alarm(node);
    }

    fn set_alarm(&mut self, node: NodeId) {
        let found = self.nodes.get_mut(&node).unwrap();
        let Some(deadline) = found.driver.as_ref().and_then(Driver::deadline) else {
            return;
        };
        let at = deadline.0.saturating_sub(found.offset).max(self.now);
        if at < found.wake_at {
            found.wake_at = at;
            let life = found.life;
            self.at(at, Ev::Wake { node, life });
        }
    }

    fn write(&mut self, node: NodeId) {
        let storage = self.faults.storage;
        let found = self.nodes.get_mut(&node).unwrap();
        if found.writing.is_some() || found.driver.is_none() {
            return;
        }
        let mut facts = Vec::new();
        let store = |it: &Out| match it {
            Out::Effect(effect) => facts.extend(fact_of(effect).cloned()),
            Out::Given(_) | Out::Seen(_) => {}
        };
        let Some(mark) = found.barrier.write(store) else {
            return;
        };
        found.writing = Some(facts);
        let life = found.life;
        if storage == 0 {
            self.stored(node, life, mark);
        } else {
            let after = self.dice.below(storage);
            self.after(after, Ev::Stored { node, life, mark });
        }
    }

    fn stored(&mut self, node: NodeId, life: u32, mark: Mark) {
        if !self.is_in(node, life) {
            return;
        }
        let found = self.nodes.get_mut(&node).unwrap();
        found
            .disk
            .extend(found.writing.take().into_iter().flatten());
        let mut out = Vec::new();
        found.barrier.stored(mark, |it| out.push(it));
        for effect in out {
            self.carry_out(node, effect);
        }
        self.write(node);
        self.compact(node);
    }

    /// Replaces stored facts by fewer ones, in each of the ways that the pages allow.
    fn compact(&mut self, node: NodeId) {
        if self.nodes[&node].disk.len() < 40 || !self.dice.percent(20) {
            return;
        }
        let found = self.nodes.get_mut(&node).unwrap();
        let machine = found.driver.as_ref().unwrap().machine();
        if found.barrier.unstored() == 0 && found.writing.is_none() {
            found.disk = machine.groups().stored().collect();
        } else {
            let mut kept: Vec<Fact<GroupState>> = Vec::new();
            for fact in found.disk.drain(..) {
                if fact.is_base() {
                    kept.retain(|it| it.group() != fact.group());
                }
                kept.push(fact);
            }
            found.disk = kept;
        }
    }

    fn carry_out(&mut self, node: NodeId, item: Out) {
        let effect = match item {
            Out::Effect(effect) => *effect,
            Out::Given(given) => return self.oracle.commanded(self.now, *given),
            Out::Seen(seen) => return self.oracle.look(self.now, node, *seen),
        };
        let found = &self.nodes[&node];
        let (life, from) = (found.life, Member::new(node.0, found.life));
        match effect {
            Effect::Send { to, message } => self.send(from, to.id, message),
            Effect::Multicast { message } => {
                let to: Vec<NodeId> = self
                    .nodes
                    .keys()
                    .copied()
                    .filter(|it| *it != node)
                    .collect();
                for to in to {
                    self.send(from, to, message.clone());
                }
            }
            Effect::Event(event) => self.event(node, life, event),
        }
    }

    fn send(&mut self, from: Member, to: NodeId, message: Message) {
        let length = wire::frame_len(from, &message);
        let (now, mut budget) = (self.now, self.budget);
        if self.broken == Some(Break::ShortFrames) {
            budget -= budget / 4;
        }
        self.oracle.expect(now, length <= usize::from(budget), || {
            format!("a frame of {length} bytes with a budget of {budget}: {message:?}")
        });
        let copies = 1 + usize::from(self.dice.percent(self.faults.double));
        for _ in 0..copies {
            let is_lost = self.dice.percent(self.faults.loss) || (self.loses)(&message);
            if is_lost || self.blocked.contains(&(from.id, to)) {
                continue;
            }
            let mut after = 100 + self.dice.below(self.faults.delay);
            if self.dice.percent(self.faults.slow) {
                let ages = self.faults.ages.max(self.faults.longest);
                let longest = if is_of_cluster(&message) {
                    self.faults.longest
                } else {
                    ages
                };
                after += self.dice.below(longest.saturating_sub(after).max(1));
            }
            let message = message.clone();
            self.after(
                after,
                Ev::Deliver {
                    from,
                    to,
                    sent: now,
                    message,
                },
            );
        }
    }

    fn deliver(&mut self, from: Member, to: NodeId, sent: u64, message: Message) {
        let Some(found) = self.nodes.get(&to) else {
            return;
        };
        if found.driver.is_none() || self.blocked.contains(&(from.id, to)) {
            return;
        }
        let asleep = found.asleep_until;
        if asleep > self.now {
            // A message in a socket is under way: none is for longer than a command may act.
            if asleep + 10 < sent + self.faults.longest {
                let at = asleep + self.dice.below(10);
                self.at(
                    at,
                    Ev::Deliver {
                        from,
                        to,
                        sent,
                        message,
                    },
                );
            }
            return;
        }
        self.trace_items(from, to, &message);
        let refused = self.input(to, Input::Message { from, message });
        if let Some(refused) = refused {
            self.note(|| format!("{to} refuses a message of {from}: {refused}"));
        }
    }

    /// Prints the items about the group of `OUTSIDE_GROUP`.
    fn trace_items(&self, from: Member, to: NodeId, message: &Message) {
        let Some(group) = self.traced_group.filter(|_| self.trace) else {
            return;
        };
        for item in message.items.iter() {
            let text = format!("{item:?}");
            if text.contains(&format!("GroupId({group})")) {
                self.note(|| format!("{from} -> {to}: {text}"));
            }
        }
    }

    fn event(&mut self, node: NodeId, life: u32, event: Event) {
        self.note(|| match &event {
            Event::Groups(
                groups::Event::Entered(_) | groups::Event::Left(_) | groups::Event::Proposed { .. },
            ) => {
                format!("{node}: {event:?}")
            }
            Event::Groups(_)
            | Event::Leader {
                event: LeaderEvent::Devices(_),
                ..
            } => String::new(),
            other => format!("{node}: {other:?}"),
        });
        match &event {
            Event::Leader {
                group,
                event: LeaderEvent::Devices(devices::Event::Ping { device }),
            } => {
                let _ = group;
                let value = self.device_states.get(device).cloned();
                if value.is_some() && !self.dice.percent(self.faults.act / 4) {
                    let command = Command::Reported {
                        device: *device,
                        value,
                    };
                    let after = self.dice.below(100 * MS);
                    self.after(
                        after,
                        Ev::Host {
                            node,
                            life,
                            command,
                        },
                    );
                }
            }
            Event::Leader {
                event: LeaderEvent::Devices(devices::Event::Act { ticket, value }),
                ..
            } => {
                self.oracle.given(self.now, node, *ticket);
                let limit = self.config.devices.act_timeout.0 - self.faults.storage;
                let is_free = self.broken == Some(Break::LateHosts);
                let limit = if is_free { 40 * limit } else { limit };
                let late = self.dice.percent(self.faults.act) || is_free;
                let after = self.dice.below(if late { limit } else { 20 * MS });
                let (ticket, value, until) = (*ticket, value.clone(), self.now + limit);
                self.note(|| format!("{node}: given {ticket:?} {value:?}, in {after} us"));
                self.after(
                    after,
                    Ev::Execute {
                        node,
                        life,
                        ticket,
                        value,
                        until,
                    },
                );
            }
            _ => {}
        }
        let heard = self.heard(event);
        self.oracle.event(self.now, node, life, &heard);
    }

    /// The event, or another one where answers are turned around.
    fn heard(&self, mut event: Event) -> Event {
        if self.broken == Some(Break::Answers) {
            match &mut event {
                Event::Groups(groups::Event::Proposed { is_decided, .. }) => *is_decided ^= true,
                Event::Map {
                    event: StoreEvent::Found { entry, .. },
                    ..
                } => *entry = None,
                _ => {}
            }
        }
        event
    }

    fn execute(&mut self, node: NodeId, life: u32, ticket: Ticket, value: State, until: u64) {
        let asleep = self.nodes[&node].asleep_until;
        if asleep > self.now && self.is_in(node, life) {
            if asleep < until {
                self.at(
                    asleep,
                    Ev::Execute {
                        node,
                        life,
                        ticket,
                        value,
                        until,
                    },
                );
            }
            return;
        }
        let act = self.faults.act;
        if self.dice.percent(act / 3) {
            return; // The device does not answer.
        }
        let fails = self.dice.percent(act / 3);
        if !fails && self.broken != Some(Break::LyingHosts) {
            self.note(|| format!("{node}: carries out {ticket:?} {value:?}"));
            self.oracle.carried_out(self.now, node, ticket, &value);
            self.device_states.insert(ticket.device, value);
        }
        if !self.dice.percent(act / 3) {
            let outcome = if fails {
                Outcome::Failed
            } else {
                Outcome::Done
            };
            let after = self.dice.below(10 * MS);
            let command = Command::Acted { ticket, outcome };
            self.after(
                after,
                Ev::Host {
                    node,
                    life,
                    command,
                },
            );
        }
    }

    /// Adds a node that has never run.
    pub(crate) fn add(&mut self, node: NodeId, has_disk: bool, file: Arc<Site>, life: u32) {
        let offset = self.dice.below(1 << 40);
        self.nodes.entry(node).or_insert(Node {
            driver: None,
            life,
            has_disk,
            has_begun: false,
            has_lost: false,
            file,
            offset,
            asleep_until: 0,
            disk: Vec::new(),
            barrier: Barrier::new(usize::MAX),
            writing: None,
            wake_at: u64::MAX,
        });
    }

    /// Starts a node that is stopped: with its disk, or without memory.
    pub(crate) fn start(&mut self, node: NodeId, file: Option<Arc<Site>>) {
        let config = self.config;
        let now = self.now;
        let Some(found) = self.nodes.get_mut(&node) else {
            return;
        };
        if found.driver.is_some() {
            return;
        }
        if let Some(file) = file {
            found.file = file;
        }
        let mut former = None;
        if found.has_begun {
            former = Some(Member::new(node.0, found.life));
            found.life += 1;
        }
        // A disk that began without memory stays so: each life with it begins as the first one did.
        let mut is_fresh = !found.has_begun || found.has_disk && !found.has_lost;
        if self.broken == Some(Break::Memory) {
            is_fresh = true;
            found.disk.clear();
        }
        let start = if is_fresh {
            Start::Fresh
        } else {
            Start::Restarted
        };
        found.has_begun = true;
        found.asleep_until = 0;
        found.barrier = Barrier::new(usize::MAX);
        found.writing = None;
        found.wake_at = u64::MAX;
        let me = Member::new(node.0, found.life);
        let (own, life) = (found.file.generation(), found.life);
        let mut machine = match Kgroup::new(me, config, Arc::clone(&found.file), start) {
            Ok(machine) => machine,
            Err(error) => {
                self.is_unusable |= matches!(error, Reject::Groups(groups::Reject::Room { .. }));
                self.oracle
                    .fail(now, format!("node {node} cannot begin: {error}"));
                return;
            }
        };
        let facts = found.disk.clone();
        for fact in &facts {
            if let Err(damage) = machine.fold(fact) {
                self.oracle
                    .fail(now, format!("node {node} refuses its facts: {damage}"));
                return;
            }
        }
        if former.is_some() && facts.is_empty() {
            self.oracle.lost.insert(node);
        }
        self.oracle.started(now, node, &machine, !facts.is_empty());
        found.driver = Some(Driver::new(machine));
        self.note(|| format!("{me} starts: {start:?}, file {own}, {} facts", facts.len()));
        self.input(node, Input::Command(Command::SetEpoch(self.epoch)));
        for other in self.alive() {
            if other == node {
                continue;
            }
            let there = Member::new(other.0, self.nodes[&other].life);
            self.report(node, life, Delta::Joined(there), 200 * MS);
            let their_life = self.nodes[&other].life;
            let soon = 500 * MS;
            if let Some(former) = former.filter(|_| self.dice.percent(60)) {
                self.report(other, their_life, Delta::Confirmed(former), soon);
            }
            self.report(other, their_life, Delta::Joined(me), soon);
        }
    }

    fn report(&mut self, node: NodeId, life: u32, delta: Delta, within: u64) {
        let after = self.dice.below(within);
        self.after(after, Ev::Member { node, life, delta });
    }

    /// Stops a node at once: without a disk its memory is gone, with one a part of the last write.
    pub(crate) fn stop(&mut self, node: NodeId) {
        let found = self.nodes.get_mut(&node).unwrap();
        if found.driver.take().is_none() {
            return;
        }
        let life = found.life;
        let writing = found.writing.take().unwrap_or_default();
        let kept = self.dice.below(writing.len() as u64 + 1) as usize;
        if found.has_disk {
            found.disk.extend(writing.into_iter().take(kept));
        }
        self.note(|| format!("{node} stops"));
        let now = self.now;
        self.oracle.stopped(now, node, life);
        self.suspect(node, life);
    }

    /// Membership reports a node as failed, to all nodes that can hear of it.
    pub(crate) fn suspect(&mut self, node: NodeId, life: u32) {
        let subject = Member::new(node.0, life);
        for other in self.alive() {
            if other != node && !self.dice.percent(10) {
                let their_life = self.nodes[&other].life;
                let within = self.faults.detection;
                self.report(other, their_life, Delta::Failed(subject), within);
            }
        }
    }

    /// Blocks messages between the nodes, one way each; they fail for each other.
    pub(crate) fn cut(&mut self, pairs: BTreeSet<(NodeId, NodeId)>, for_time: u64) {
        for (from, to) in &pairs {
            self.blocked.insert((*from, *to));
            if let (Some(a), Some(b)) = (self.nodes.get(from), self.nodes.get(to)) {
                let (subject, life) = (Member::new(from.0, a.life), b.life);
                if self.dice.percent(80) {
                    let within = self.faults.detection;
                    self.report(*to, life, Delta::Failed(subject), within);
                }
            }
        }
        self.after(for_time, Ev::Heal(pairs));
    }

    fn heal(&mut self, pairs: &BTreeSet<(NodeId, NodeId)>) {
        for (from, to) in pairs {
            self.blocked.remove(&(*from, *to));
            self.refute(*from, *to);
        }
    }

    pub(crate) fn refute(&mut self, about: NodeId, to: NodeId) {
        let (Some(a), Some(b)) = (self.nodes.get(&about), self.nodes.get(&to)) else {
            return;
        };
        let (subject, life) = (Member::new(about.0, a.life), b.life);
        let delta = match a.driver.is_some() {
            true => Delta::Refuted(subject),
            false => Delta::Failed(subject),
        };
        self.report(to, life, delta, 500 * MS);
    }

    /// Ends all faults: what runs reaches all others, and lists become exact.
    pub(crate) fn calm(&mut self) {
        self.blocked.clear();
        if self.broken == Some(Break::Cut) {
            let others = self.nodes.keys().copied().filter(|it| it.0 != 1);
            self.blocked = others
                .flat_map(|it| [(it, NodeId(1)), (NodeId(1), it)])
                .collect();
        }
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for about in &ids {
            for to in ids.iter().filter(|it| *it != about) {
                if !self.nodes[about].has_begun || self.nodes[to].driver.is_none() {
                    continue;
                }
                let life = self.nodes[to].life;
                if self.nodes[about].driver.is_some() {
                    let subject = Member::new(about.0, self.nodes[about].life);
                    self.report(*to, life, Delta::Joined(subject), 200 * MS);
                }
                self.refute(*about, *to);
            }
        }
    }
}

fn fact_of(effect: &Effect<Kgroup>) -> Option<&Fact<GroupState>> {
    match effect {
        Effect::Event(event) => Kgroup::fact(event),
        Effect::Send { .. } | Effect::Multicast { .. } => None,
    }
}

/// Returns true if an item is of a cluster's group: it may be a message of a command.
fn is_of_cluster(message: &Message) -> bool {
    use selvedge_groups::Item;
    message.items.iter().any(|item| match item {
        Item::Replica { group, .. } | Item::Ask { group, .. } | Item::Answer { group, .. } => {
            crate::is_cluster(*group)
        }
        Item::Where { .. }
        | Item::Inquire { .. }
        | Item::Here { .. }
        | Item::Find { .. }
        | Item::Born { .. }
        | Item::WantSite { .. }
        | Item::Site { .. }
        | Item::Register { .. }
        | Item::Registered { .. } => false,
        _ => true,
    })
}

/// Returns true for a refusal that no correct peer causes.
pub(crate) fn is_misbehaviour(reject: &Reject) -> bool {
    use selvedge_groups::Reject as R;
    matches!(
        reject,
        Reject::Groups(R::Misbehaviour(
            Misbehaviour::OwnId(_) | Misbehaviour::Plan { .. } | Misbehaviour::Empty
        ))
    )
}
