//! A node by hand, and a mesh without faults.

pub(crate) use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub(crate) use std::sync::Arc;

pub(crate) use chacha20::ChaCha8Rng;
pub(crate) use chacha20::rand_core::SeedableRng;
pub(crate) use selvedge_core::durable::Durable;
pub(crate) use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
pub(crate) use selvedge_groups::{
    Begins, Command, Config, Event, Fact, GroupId, Groups, Item, Message, Node, Plan, Reject,
    Selection, Start, Timer,
};
pub(crate) use selvedge_replica as replica;
pub(crate) use selvedge_replica::{Configuration, State};
pub(crate) use serde::{Deserialize, Serialize};

/// The state of a group: a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sum(pub(crate) u64);

impl State for Sum {
    type Update = u64;
    type Outcome = u64;

    fn apply(&mut self, update: &u64) -> u64 {
        self.0 = self.0.wrapping_add(*update);
        self.0
    }
}

/// Groups below 100 begin with the first question.
impl Begins for Sum {
    type Site = Vec<GroupId>;

    fn groups(site: &Vec<GroupId>) -> Vec<GroupId> {
        site.clone()
    }

    fn begin(_: &Vec<GroupId>, group: GroupId) -> Option<Self> {
        (group.0 < 100).then_some(Self(0))
    }
}

pub(crate) type Payload = Vec<u8>;
pub(crate) type Machine = Groups<Sum, Payload>;
pub(crate) type Sent = (Member, Message<u64, Payload>);
pub(crate) type Notified = Event<Sum, Payload>;

/// A group that begins with the site, and one that begins with the first question.
pub(crate) const GROUP: GroupId = GroupId(1);
pub(crate) const LATER: GroupId = GroupId(2);
pub(crate) const PATIENCE: Span = Span::secs(1);

pub(crate) const fn life(id: u64, incarnation: u32) -> Member {
    Member::new(id, incarnation)
}

pub(crate) fn plan(nodes: u64) -> Plan {
    plan_for(1, nodes)
}

pub(crate) fn plan_for(failures: u8, nodes: u64) -> Plan {
    let nodes = (1..=nodes).map(|id| Node::without_place(NodeId(id)));
    Plan::new(Selection::new().with_failures(failures), nodes).unwrap()
}

pub(crate) fn config() -> Config {
    Config::new().with_patience(PATIENCE)
}

pub(crate) fn machine(me: Member, nodes: u64, config: Config, start: Start) -> Machine {
    machine_of(me, plan(nodes), config, start)
}

pub(crate) fn machine_of(me: Member, plan: Plan, config: Config, start: Start) -> Machine {
    Groups::new(me, config, Arc::new(plan), Arc::new(vec![GROUP]), start).unwrap()
}

pub(crate) fn founders(nodes: u64, group: GroupId) -> Vec<u64> {
    let any = machine(life(1, 0), nodes, config(), Start::Restarted);
    any.founders(group).into_iter().map(|it| it.0).collect()
}

/// Has a node stored that it left a group, behind this configuration.
pub(crate) fn leave(machine: &mut Machine, group: GroupId, last: Configuration) {
    let plan = machine.plan().digest();
    let configuration = Box::new(last);
    let left = Fact::Left {
        group,
        plan,
        configuration,
    };
    machine.fold(&left).unwrap();
}

/// The length of a value in postcard's encoding.
pub(crate) fn encoded_len(value: &impl Serialize) -> usize {
    postcard::to_allocvec(value).unwrap().len()
}

/// One node by hand, and its effects since the last call.
pub(crate) struct One {
    pub(crate) driver: Driver<Machine>,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Time,
    pub(crate) sent: Vec<Sent>,
    pub(crate) notified: Vec<Notified>,
}

impl One {
    pub(crate) fn of(machine: Machine) -> Self {
        Self {
            driver: Driver::new(machine),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            sent: vec![],
            notified: vec![],
        }
    }

    pub(crate) fn new(id: u64, nodes: u64, start: Start) -> Self {
        Self::of(machine(life(id, 0), nodes, config(), start))
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.driver.machine()
    }

    pub(crate) fn input(&mut self, input: Input<Machine>) -> Result<(), Reject> {
        let (sent, notified) = (&mut self.sent, &mut self.notified);
        let take = |effect| match effect {
            Effect::Send { to, message } => sent.push((to, message)),
            Effect::Multicast { .. } => panic!("{effect:?}"),
            Effect::Event(Event::Fact(_)) => {}
            Effect::Event(event) => notified.push(event),
        };
        self.driver.step(self.now, &mut self.rng, input, take)
    }

    pub(crate) fn command(&mut self, command: Command<u64, Payload>) {
        self.input(Input::Command(command)).unwrap();
    }

    pub(crate) fn learn(&mut self, delta: Delta) {
        self.input(Input::Membership(delta)).unwrap();
    }

    pub(crate) fn receive(
        &mut self,
        from: Member,
        items: impl IntoIterator<Item = Item<u64, Payload>>,
    ) {
        let plan = self.machine().plan().digest();
        let items = items.into_iter().collect();
        let message = Message {
            plan,
            generation: 0,
            items,
        };
        self.input(Input::Message { from, message }).unwrap();
    }

    pub(crate) fn expire(&mut self) {
        let (sent, notified) = (&mut self.sent, &mut self.notified);
        self.driver
            .expire(self.now, &mut self.rng, |effect| match effect {
                Effect::Send { to, message } => sent.push((to, message)),
                Effect::Multicast { .. } => panic!("{effect:?}"),
                Effect::Event(Event::Fact(_)) => {}
                Effect::Event(event) => notified.push(event),
            });
    }

    /// The messages that it sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<(Member, Item<u64, Payload>)> {
        let sent = core::mem::take(&mut self.sent).into_iter();
        sent.flat_map(|(to, message)| message.items.into_iter().map(move |it| (to, it)))
            .collect()
    }

    pub(crate) fn notified(&mut self) -> Vec<Notified> {
        core::mem::take(&mut self.notified)
    }

    pub(crate) fn timers(&self) -> BTreeMap<Timer, Time> {
        self.driver.timers().collect()
    }

    pub(crate) fn is_in(&self, group: GroupId) -> bool {
        self.machine().groups().any(|it| it == group)
    }
}

/// All nodes of a plan. Messages arrive at once, where the node is up.
pub(crate) struct Mesh {
    pub(crate) nodes: BTreeMap<u64, One>,
    pub(crate) down: BTreeSet<u64>,
    pub(crate) now: Time,
    /// The events of the nodes.
    pub(crate) notified: Vec<(u64, Notified)>,
    /// The number of times that a node received the place of a group.
    pub(crate) reported: usize,
}

impl Mesh {
    pub(crate) fn new(nodes: u64, config: Config) -> Self {
        Self::without(None, &plan(nodes), config)
    }

    pub(crate) fn of(plan: &Plan, config: Config) -> Self {
        Self::without(None, plan, config)
    }

    /// One of the nodes never begins, and the others believe that it is present.
    pub(crate) fn without(down: Option<u64>, plan: &Plan, config: Config) -> Self {
        let all = 1..=plan.nodes().len() as u64;
        let one = |id| One::of(machine_of(life(id, 0), plan.clone(), config, Start::Fresh));
        let mut mesh = Self {
            nodes: all.clone().map(|id| (id, one(id))).collect(),
            down: down.into_iter().collect(),
            now: Time::ZERO,
            notified: vec![],
            reported: 0,
        };
        for id in all.clone().filter(|it| Some(*it) != down) {
            mesh.node(id).command(Command::SetEpoch(1));
            for other in all.clone().filter(|it| *it != id) {
                mesh.node(id).learn(Delta::Joined(life(other, 0)));
            }
        }
        mesh.settle();
        mesh
    }

    pub(crate) fn node(&mut self, id: u64) -> &mut One {
        self.nodes.get_mut(&id).unwrap()
    }

    /// Delivers all messages.
    pub(crate) fn settle(&mut self) {
        let mut under_way: VecDeque<(Member, Sent)> = VecDeque::new();
        loop {
            for (id, node) in &mut self.nodes {
                let from = node.machine().me();
                under_way.extend(node.sent.drain(..).map(|it| (from, it)));
                self.notified
                    .extend(node.notified.drain(..).map(|it| (*id, it)));
            }
            let Some((from, (to, message))) = under_way.pop_front() else {
                return self.look_at_timers();
            };
            let down = &self.down;
            let node = self.nodes.get_mut(&to.id.0);
            if let Some(node) =
                node.filter(|it| it.machine().me() == to && !down.contains(&to.id.0))
            {
                let reports = |it: &&Item<u64, Payload>| matches!(it, Item::Where { .. });
                self.reported += message.items.iter().filter(reports).count();
                node.input(Input::Message { from, message }).unwrap();
            }
        }
    }

    /// A group that was left has no timer.
    pub(crate) fn look_at_timers(&self) {
        for node in self.nodes.values() {
            for timer in node.timers().into_keys() {
                let group = match timer {
                    Timer::Replica(group, _) | Timer::Lead(group) | Timer::Change(group) => group,
                    Timer::Site | Timer::Registry | Timer::Ending => {
                        panic!("no site changes here: {timer:?}")
                    }
                };
                assert!(node.is_in(group), "{timer:?}");
            }
        }
    }

    pub(crate) fn run(&mut self, span: Span) {
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

    pub(crate) fn epoch(&mut self, epoch: u64) {
        for node in self.nodes.values_mut() {
            node.command(Command::SetEpoch(epoch));
        }
        self.settle();
    }

    pub(crate) fn kill(&mut self, id: u64) {
        self.down.insert(id);
        for (_, node) in self.nodes.iter_mut().filter(|it| *it.0 != id) {
            node.learn(Delta::Failed(life(id, 0)));
        }
        self.settle();
    }

    pub(crate) fn leader(&self, group: GroupId) -> u64 {
        let up = self.nodes.iter().filter(|(id, _)| !self.down.contains(id));
        let leads: Vec<u64> = up
            .filter(|(_, it)| it.machine().leads(group))
            .map(|it| *it.0)
            .collect();
        assert_eq!(leads.len(), 1, "{leads:?}");
        leads[0]
    }

    /// The members of a group, as its leader knows them, and the number of the link.
    pub(crate) fn members(&self, group: GroupId) -> (u64, Vec<u64>) {
        let leader = self.nodes.get(&self.leader(group)).unwrap();
        let configuration = leader.machine().replica(group).unwrap().configuration();
        let members = configuration.members().map(|it| it.member.id.0).collect();
        (configuration.number, members)
    }

    /// The number of times that a node reported this event.
    pub(crate) fn count(&self, id: u64, event: &Notified) -> usize {
        self.notified
            .iter()
            .filter(|it| **it == (id, event.clone()))
            .count()
    }
}

pub(crate) const fn timer(group: GroupId) -> Timer {
    Timer::Lead(group)
}

pub(crate) const fn replica_item(
    configuration: u64,
    body: replica::Body<u64>,
) -> Item<u64, Payload> {
    let message = replica::Message {
        configuration,
        body,
    };
    Item::Replica {
        group: GROUP,
        message,
    }
}
