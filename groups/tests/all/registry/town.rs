//! Nodes with a registry, and a network between them.

use selvedge_groups::registry::{Registration, Registry};
use selvedge_groups::{Published, SiteError};

use crate::mesh::*;

/// The data of all nodes: the nodes, and the groups that a site has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Land {
    pub(super) generation: u32,
    pub(super) nodes: Vec<u64>,
    pub(super) former: Vec<u64>,
    pub(super) groups: Vec<u64>,
    /// The groups of generation 0.
    pub(super) first: Vec<u64>,
}

impl Land {
    pub(super) fn first(nodes: u64, groups: &[u64]) -> Self {
        Self {
            generation: 0,
            nodes: (1..=nodes).collect(),
            former: vec![],
            groups: groups.to_vec(),
            first: groups.to_vec(),
        }
    }

    pub(super) fn next(&self) -> Self {
        let generation = self.generation + 1;
        Self {
            generation,
            ..self.clone()
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let nodes = self.nodes.iter().map(|it| Node::without_place(NodeId(*it)));
        let plan = Plan::new(Selection::new().with_failures(1), nodes).unwrap();
        let plan = plan.with_generation(self.generation);
        let plan = self.groups.iter().fold(plan, |plan, it| plan.with(*it));
        plan.with_former(self.former.iter().map(|it| NodeId(*it)))
    }
}

/// A set of small numbers, or the registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Held {
    Set(u64),
    Registry(Registry),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Change {
    Add(u64),
    Register(Registration),
}

impl State for Held {
    type Update = Change;
    type Outcome = u64;

    fn apply(&mut self, update: &Change) -> u64 {
        match (self, update) {
            (Self::Set(set), Change::Add(number)) => {
                *set |= 1 << number; // A question may come twice.
                *set
            }
            (Self::Registry(registry), Change::Register(registration)) => {
                registry.apply(registration);
                0
            }
            _ => 0,
        }
    }
}

impl Begins for Held {
    type Site = Land;
    const HAS_REGISTRY: bool = true;

    fn groups(land: &Land) -> Vec<GroupId> {
        land.groups.iter().map(|it| GroupId(*it)).collect()
    }

    fn begin(land: &Land, group: GroupId) -> Option<Self> {
        if group == GroupId::REGISTRY {
            return Some(Self::Registry(Registry::default()));
        }
        (group.is_map() || land.groups.contains(&group.0)).then_some(Self::Set(0))
    }

    fn is_founding(land: &Land, group: GroupId) -> bool {
        land.first.contains(&group.0)
    }

    fn begins_anew(_: &Land, group: GroupId) -> bool {
        !group.is_map()
    }

    fn registry(&self) -> Option<&Registry> {
        match self {
            Self::Registry(registry) => Some(registry),
            Self::Set(_) => None,
        }
    }

    fn register(registration: Registration) -> Option<Change> {
        Some(Change::Register(registration))
    }

    fn encode(land: &Land) -> Vec<u8> {
        postcard::to_allocvec(land).unwrap()
    }

    fn decode(bytes: &[u8]) -> Option<(Land, Plan)> {
        let land: Land = postcard::from_bytes(bytes).ok()?;
        let plan = land.plan();
        Some((land, plan))
    }
}

pub(super) type Machine = Groups<Held, u64>;

/// Nodes with a network between them: a message takes 10 ms, or is lost.
pub(super) struct Town {
    pub(super) nodes: BTreeMap<u64, Driver<Machine>>,
    pub(super) facts: BTreeMap<u64, Vec<Fact<Held>>>,
    pub(super) rng: ChaCha8Rng,
    pub(super) now: Time,
    pub(super) wire: VecDeque<(Time, u64, Member, Message<Change, u64>)>,
    pub(super) cut: BTreeSet<u64>,
    /// One of this number of messages is lost.
    pub(super) loss: u64,
    pub(super) count: u64,
    /// The number of decisions about beginnings that nodes sent.
    pub(super) births: usize,
    pub(super) events: Vec<(u64, Event<Held, u64>)>,
    /// Votes in the groups of the site, with the configuration of the voter.
    pub(super) accepted: Vec<(u64, (Configuration, Fact<Held>))>,
    rules: &'static [Published],
    config: Config,
}

impl Town {
    pub(super) fn new(land: &Land) -> Self {
        Self::with(land, config(), &[])
    }

    /// Nodes with other settings, or under rules that break a promise.
    pub(super) fn with(land: &Land, config: Config, rules: &'static [Published]) -> Self {
        let mut town = Self {
            nodes: BTreeMap::new(),
            facts: BTreeMap::new(),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            wire: VecDeque::new(),
            cut: BTreeSet::new(),
            loss: u64::MAX,
            count: 0,
            births: 0,
            events: vec![],
            accepted: vec![],
            rules,
            config,
        };
        for &id in &land.nodes {
            town.start(life(id, 1), land, Start::Fresh);
        }
        town
    }

    /// Starts a node; the others learn of it. One that was up before is replaced.
    pub(super) fn start(&mut self, me: Member, land: &Land, start: Start) {
        let plan = Arc::new(land.plan());
        let mut machine: Machine =
            Groups::new(me, self.config, plan, Arc::new(land.clone()), start).unwrap();
        machine = machine.published(self.rules);
        for fact in self.facts.get(&me.id.0).into_iter().flatten() {
            machine.fold(fact).unwrap();
        }
        self.nodes.insert(me.id.0, Driver::new(machine));
        self.input(me.id.0, Input::Command(Command::SetEpoch(1)));
        let others: Vec<Member> = self.nodes.values().map(|it| it.machine().me()).collect();
        for other in others.into_iter().filter(|it| *it != me) {
            self.input(me.id.0, Input::Membership(Delta::Joined(other)));
            self.input(other.id.0, Input::Membership(Delta::Joined(me)));
        }
    }

    pub(super) fn stop(&mut self, id: u64) {
        let member = self.nodes.remove(&id).unwrap().machine().me();
        let others: Vec<u64> = self.nodes.keys().copied().collect();
        for other in others {
            self.input(other, Input::Membership(Delta::Failed(member)));
        }
    }

    pub(super) fn input(&mut self, id: u64, input: Input<Machine>) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let mut effects = vec![];
        let taken = node.step(self.now, &mut self.rng, input, |it| effects.push(it));
        self.take(id, effects);
        // A message of another site is refused, and a site while the one before is proposed; all else is right.
        if let Err(reject) = taken {
            let is_busy = matches!(reject, Reject::Site(SiteError::Proposing));
            let is_right = is_busy || matches!(reject, Reject::Misbehaviour(_));
            assert!(is_right, "{reject}");
        }
    }

    /// A node receives an item from another one, of the first site.
    pub(super) fn receive(&mut self, to: u64, from: Member, item: Item<Change, u64>) {
        let message = Message {
            plan: self.nodes[&to].machine().plan().digest(),
            generation: 0,
            items: [item].into_iter().collect(),
        };
        self.input(to, Input::Message { from, message });
    }

    fn take(&mut self, id: u64, effects: Vec<Effect<Machine>>) {
        let me = self.nodes[&id].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.count += 1;
                    let mut items = message.items.iter();
                    self.births += usize::from(items.any(|it| matches!(it, Item::Born { .. })));
                    let is_lost = self.count.is_multiple_of(self.loss);
                    let is_cut = self.cut.contains(&id) || self.cut.contains(&to.id.0);
                    let bytes = postcard::to_allocvec(&message).unwrap();
                    assert!(bytes.len() < 1_400, "a frame of {} bytes", bytes.len());
                    if !is_lost && !is_cut {
                        let at = self.now + Span::millis(10);
                        self.wire.push_back((at, to.id.0, me, message));
                    }
                }
                Effect::Event(Event::Asked {
                    group,
                    from,
                    payload,
                }) => {
                    let update = Change::Add(payload);
                    let propose = Command::Propose { group, update };
                    self.input(id, Input::Command(propose));
                    let to = from;
                    let answer = Command::Answer { to, group, payload };
                    self.input(id, Input::Command(answer));
                }
                Effect::Event(Event::Fact(fact)) => {
                    let group = fact.group().filter(|it| it.0 % 4 == 0);
                    let replica = group.and_then(|it| self.nodes[&id].machine().replica(it));
                    if let Some(replica) = replica {
                        let configuration = replica.configuration().clone();
                        self.accepted.push((id, (configuration, fact.clone())));
                    }
                    self.facts.entry(id).or_default().push(fact);
                }
                Effect::Event(event) => self.events.push((id, event)),
                Effect::Multicast { .. } => panic!("groups send to nodes"),
            }
        }
    }

    pub(super) fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            self.now = self.next_tick(until);
            let ids: Vec<u64> = self.nodes.keys().copied().collect();
            for id in ids {
                let mut effects = vec![];
                let node = self.nodes.get_mut(&id).unwrap();
                node.expire(self.now, &mut self.rng, |it| effects.push(it));
                self.take(id, effects);
            }
            while self.wire.front().is_some_and(|it| it.0 <= self.now) {
                let Some((_, to, from, message)) = self.wire.pop_front() else {
                    break;
                };
                self.input(to, Input::Message { from, message });
            }
        }
    }

    /// The next moment, in steps of 10 ms, at which a timer is due or a message arrives.
    fn next_tick(&self, until: Time) -> Time {
        let step = Span::millis(10);
        let timers = self.nodes.values().filter_map(Driver::deadline);
        let message = self.wire.front().map(|it| it.0);
        let next = timers.chain(message).min().unwrap_or(until).min(until);
        let steps = next.since(self.now).0.div_ceil(step.0).max(1);
        self.now + step * steps
    }

    pub(super) fn ask(&mut self, id: u64, group: GroupId, payload: u64) {
        for _ in 0..10 {
            let before = self.answers(id, group);
            self.input(id, Input::Command(Command::Ask { group, payload }));
            self.run(Span::secs(1));
            if self.answers(id, group) > before {
                return;
            }
        }
        panic!("no answer of {group:?} to node {id}");
    }

    fn answers(&self, id: u64, group: GroupId) -> usize {
        let is_answer = |event: &Event<Held, u64>| matches!(event, Event::Answered { group: of, .. } if *of == group);
        let own = self.events.iter().filter(|it| it.0 == id);
        own.filter(|it| is_answer(&it.1)).count()
    }

    pub(super) fn change(&mut self, id: u64, land: &Land) {
        let site = Held::encode(land);
        let generation = land.generation;
        let change = Command::ChangeSite { site, generation };
        self.input(id, Input::Command(change));
    }

    pub(super) fn generations(&self) -> Vec<u32> {
        let nodes = self.nodes.values();
        nodes.map(|it| it.machine().generation()).collect()
    }

    pub(super) fn leaders(&self, group: GroupId) -> Vec<u64> {
        let leads = self.nodes.iter().filter(|it| it.1.machine().leads(group));
        leads.map(|it| *it.0).collect()
    }

    pub(super) fn set(&self, group: GroupId) -> u64 {
        let leaders = self.leaders(group);
        let [leader] = leaders[..] else {
            panic!("{leaders:?} lead {group:?}");
        };
        match self.nodes[&leader].machine().state(group).unwrap() {
            Held::Set(set) => *set,
            Held::Registry(_) => panic!("a registry"),
        }
    }
}
