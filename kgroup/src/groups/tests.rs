//! A node by hand, and a mesh without faults.

mod believing;
mod changing;
mod finding;
mod frames;
mod inquiring;
mod leading;
mod lives;
mod plans;
mod seeking;
mod storing;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_replica as replica;
use selvedge_replica::State;
use serde::{Deserialize, Serialize};

use super::{Begin, Begins, Command, Config, Event, Groups, Item, Message, Plan, Reject, Timer};
use crate::{GroupId, Node, Selection, Target};

/// The state of a group: a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Sum(u64);

impl State for Sum {
    type Update = u64;
    type Outcome = u64;

    fn apply(&mut self, update: &u64) -> u64 {
        self.0 = self.0.wrapping_add(*update);
        self.0
    }
}

/// Groups below 100 begin when they are asked for.
impl Begins for Sum {
    type Site = Vec<GroupId>;

    fn groups(site: &Vec<GroupId>) -> Vec<GroupId> {
        site.clone()
    }

    fn target(_: &Vec<GroupId>, group: GroupId) -> Target<'static> {
        Target {
            id: group,
            place: None,
            neighbours: &[],
        }
    }

    fn begin(_: &Vec<GroupId>, group: GroupId) -> Option<Self> {
        (group.0 < 100).then_some(Self(0))
    }
}

type Parcel = Vec<u8>;
type Machine = Groups<Sum, Parcel>;
type Sent = (Member, Message<u64, Parcel>);
type Told = Event<Sum, Parcel>;

/// A group that begins with the site, and one that begins when it is asked for.
const GROUP: GroupId = GroupId(1);
const LATER: GroupId = GroupId(2);
const PATIENCE: Span = Span::secs(1);

const fn life(id: u64, incarnation: u32) -> Member {
    Member::new(id, incarnation)
}

fn plan(nodes: u64) -> Plan {
    plan_for(1, nodes)
}

fn plan_for(failures: u8, nodes: u64) -> Plan {
    let nodes = (1..=nodes).map(|id| Node {
        id: NodeId(id),
        place: None,
    });
    Plan::new(Selection::new().with_failures(failures), nodes).unwrap()
}

fn config() -> Config {
    Config::new().with_patience(PATIENCE)
}

fn machine(me: Member, nodes: u64, config: Config, begin: Begin) -> Machine {
    machine_of(me, plan(nodes), config, begin)
}

fn machine_of(me: Member, plan: Plan, config: Config, begin: Begin) -> Machine {
    Groups::new(me, config, Arc::new(plan), Arc::new(vec![GROUP]), begin).unwrap()
}

fn founders(nodes: u64, group: GroupId) -> Vec<u64> {
    let any = machine(life(1, 0), nodes, config(), Begin::Again);
    any.founders(group).into_iter().map(|it| it.0).collect()
}

/// One node by hand, and what it did since it was asked last.
struct One {
    driver: Driver<Machine>,
    rng: ChaCha8Rng,
    now: Time,
    sent: Vec<Sent>,
    told: Vec<Told>,
}

impl One {
    fn of(machine: Machine) -> Self {
        Self {
            driver: Driver::new(machine),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            sent: vec![],
            told: vec![],
        }
    }

    fn new(id: u64, nodes: u64, begin: Begin) -> Self {
        Self::of(machine(life(id, 0), nodes, config(), begin))
    }

    fn machine(&self) -> &Machine {
        self.driver.machine()
    }

    fn input(&mut self, input: Input<Machine>) -> Result<(), Reject> {
        let (sent, told) = (&mut self.sent, &mut self.told);
        let take = |effect| match effect {
            Effect::Send { to, message } => sent.push((to, message)),
            Effect::Multicast { .. } => panic!("{effect:?}"),
            Effect::Event(Event::Fact(_)) => {}
            Effect::Event(event) => told.push(event),
        };
        self.driver.step(self.now, &mut self.rng, input, take)
    }

    fn command(&mut self, command: Command<u64, Parcel>) {
        self.input(Input::Command(command)).unwrap();
    }

    fn learn(&mut self, delta: Delta) {
        self.input(Input::Membership(delta)).unwrap();
    }

    fn hear(&mut self, from: Member, items: impl IntoIterator<Item = Item<u64, Parcel>>) {
        let plan = self.machine().plan().digest();
        let items = items.into_iter().collect();
        let message = Message { plan, items };
        self.input(Input::Message { from, message }).unwrap();
    }

    fn expire(&mut self) {
        let (sent, told) = (&mut self.sent, &mut self.told);
        self.driver
            .expire(self.now, &mut self.rng, |effect| match effect {
                Effect::Send { to, message } => sent.push((to, message)),
                Effect::Multicast { .. } => panic!("{effect:?}"),
                Effect::Event(Event::Fact(_)) => {}
                Effect::Event(event) => told.push(event),
            });
    }

    /// What it sent since this was asked last.
    fn sent(&mut self) -> Vec<(Member, Item<u64, Parcel>)> {
        let sent = core::mem::take(&mut self.sent).into_iter();
        sent.flat_map(|(to, message)| message.items.into_iter().map(move |it| (to, it)))
            .collect()
    }

    fn told(&mut self) -> Vec<Told> {
        core::mem::take(&mut self.told)
    }

    fn timers(&self) -> BTreeMap<Timer, Time> {
        self.driver.timers().collect()
    }

    fn is_in(&self, group: GroupId) -> bool {
        self.machine().groups().any(|it| it == group)
    }
}

/// All nodes of a plan. What is sent arrives at once, where the node is up.
struct Mesh {
    nodes: BTreeMap<u64, One>,
    down: BTreeSet<u64>,
    now: Time,
    /// What the nodes told.
    told: Vec<(u64, Told)>,
    /// How often a node was told where a group is.
    said: usize,
}

impl Mesh {
    fn new(nodes: u64, config: Config) -> Self {
        Self::without(None, &plan(nodes), config)
    }

    fn of(plan: &Plan, config: Config) -> Self {
        Self::without(None, plan, config)
    }

    /// One of the nodes never begins, and the others believe that it is here.
    fn without(down: Option<u64>, plan: &Plan, config: Config) -> Self {
        let all = 1..=plan.nodes().len() as u64;
        let one = |id| One::of(machine_of(life(id, 0), plan.clone(), config, Begin::First));
        let mut mesh = Self {
            nodes: all.clone().map(|id| (id, one(id))).collect(),
            down: down.into_iter().collect(),
            now: Time::ZERO,
            told: vec![],
            said: 0,
        };
        for id in all.clone().filter(|it| Some(*it) != down) {
            mesh.node(id).command(Command::Epoch(1));
            for other in all.clone().filter(|it| *it != id) {
                mesh.node(id).learn(Delta::Joined(life(other, 0)));
            }
        }
        mesh.settle();
        mesh
    }

    fn node(&mut self, id: u64) -> &mut One {
        self.nodes.get_mut(&id).unwrap()
    }

    /// Carries over all that was sent.
    fn settle(&mut self) {
        let mut under_way: VecDeque<(Member, Sent)> = VecDeque::new();
        loop {
            for (id, node) in &mut self.nodes {
                let from = node.machine().me();
                under_way.extend(node.sent.drain(..).map(|it| (from, it)));
                self.told.extend(node.told.drain(..).map(|it| (*id, it)));
            }
            let Some((from, (to, message))) = under_way.pop_front() else {
                return self.look_at_timers();
            };
            let down = &self.down;
            let node = self.nodes.get_mut(&to.id.0);
            if let Some(node) =
                node.filter(|it| it.machine().me() == to && !down.contains(&to.id.0))
            {
                let says = |it: &&Item<u64, Parcel>| matches!(it, Item::Where { .. });
                self.said += message.items.iter().filter(says).count();
                node.input(Input::Message { from, message }).unwrap();
            }
        }
    }

    /// A group that was left has no timer.
    fn look_at_timers(&self) {
        for node in self.nodes.values() {
            for timer in node.timers().into_keys() {
                let (Timer::Replica(group, _) | Timer::Lead(group) | Timer::Change(group)) = timer;
                assert!(node.is_in(group), "{timer:?}");
            }
        }
    }

    fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            self.settle();
            let up = self.nodes.iter().filter(|(id, _)| !self.down.contains(id));
            let next = up.filter_map(|(_, it)| it.driver.deadline()).min();
            self.now = next.filter(|it| *it <= until).unwrap_or(until);
            for (id, node) in &mut self.nodes {
                node.now = self.now;
                if !self.down.contains(id) {
                    node.expire();
                }
            }
            if next.is_none_or(|it| it > until) {
                return self.settle();
            }
        }
    }

    fn epoch(&mut self, epoch: u64) {
        for node in self.nodes.values_mut() {
            node.command(Command::Epoch(epoch));
        }
        self.settle();
    }

    fn kill(&mut self, id: u64) {
        self.down.insert(id);
        for (_, node) in self.nodes.iter_mut().filter(|it| *it.0 != id) {
            node.learn(Delta::Failed(life(id, 0)));
        }
        self.settle();
    }

    fn leader(&self, group: GroupId) -> u64 {
        let up = self.nodes.iter().filter(|(id, _)| !self.down.contains(id));
        let leads: Vec<u64> = up
            .filter(|(_, it)| it.machine().leads(group))
            .map(|it| *it.0)
            .collect();
        assert_eq!(leads.len(), 1, "{leads:?}");
        leads[0]
    }

    /// The members of a group as its leader knows, and the number of the link.
    fn members(&self, group: GroupId) -> (u64, Vec<u64>) {
        let leader = self.nodes.get(&self.leader(group)).unwrap();
        let configuration = leader.machine().replica(group).unwrap().configuration();
        let members = configuration.members().map(|it| it.member.id.0).collect();
        (configuration.number, members)
    }

    /// How often a node told this of itself.
    fn count(&self, id: u64, event: &Told) -> usize {
        self.told
            .iter()
            .filter(|it| **it == (id, event.clone()))
            .count()
    }
}

const fn timer(group: GroupId) -> Timer {
    Timer::Lead(group)
}

const fn replica_item(configuration: u64, body: replica::Body<u64>) -> Item<u64, Parcel> {
    let message = replica::Message {
        configuration,
        body,
    };
    Item::Replica {
        group: GROUP,
        message,
    }
}
