//! Gateways, followers and clients in virtual time: a network that delays, mailboxes, hosts that stop, and
//! functions with known results.

mod hosts;

use std::collections::{BTreeMap, VecDeque};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Choose as _, Delta, Driver, Input, Member, NodeId, Span, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower, Phase};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Answer, Bytes, DutyCycle, Function, Limits, Message, Refusal, TaskId};
use selvedge_replica::Configuration;

pub(crate) fn bytes(of: &[u8]) -> Bytes {
    of.iter().copied().collect()
}

/// The result of a function where no node lies.
pub(crate) fn value(function: &Function) -> Bytes {
    bytes(&[&b"f:"[..], &function.code].concat())
}

#[derive(Debug)]
enum What {
    /// At a node, if it is in this life still.
    Message {
        to: NodeId,
        from: Member,
        message: Message,
    },
    Delta(Member, Delta),
    /// A function ends at a follower in this life.
    Ends(Member, TaskId),
    Loaded(Member, selvedge_pcm::Library),
}

#[derive(Debug)]
pub(crate) struct FollowerHost {
    pub(crate) me: Member,
    config: follower::Config,
    pub(crate) driver: Option<Driver<Follower>>,
    pub(crate) lies: bool,
    runs: BTreeMap<TaskId, Function>,
    /// The number of functions it has begun.
    pub(crate) begun: u64,
}

#[derive(Debug)]
pub(crate) struct GatewayHost {
    pub(crate) me: Member,
    config: gateway::Config,
    pub(crate) driver: Option<Driver<Gateway>>,
    /// The mailboxes of its followers.
    mailboxes: BTreeMap<NodeId, VecDeque<(Member, Message)>>,
    stored: Vec<selvedge_replica::Fact<selvedge_pcm::Tables>>,
    base: Option<selvedge_replica::Stored<selvedge_pcm::Tables>>,
    /// The number of followers it reported as purged.
    pub(crate) purged: usize,
}

#[derive(Debug)]
pub(crate) struct ClientHost {
    pub(crate) me: Member,
    pub(crate) driver: Driver<Client>,
    pub(crate) asked: BTreeMap<u64, Function>,
    pub(crate) answered: BTreeMap<u64, Answer>,
    pub(crate) refused: BTreeMap<u64, Refusal>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Time,
    pub(crate) limits: Limits,
    first: Configuration,
    pub(crate) gateways: Vec<GatewayHost>,
    pub(crate) followers: Vec<FollowerHost>,
    pub(crate) clients: Vec<ClientHost>,
    /// The answer to each task, from the first gateway that knew it.
    pub(crate) ended: BTreeMap<TaskId, Answer>,
    /// The longest time that a function runs.
    pub(crate) run_time: Span,
    queue: BTreeMap<(Time, u64), What>,
    entered: u64,
}

/// The first id of followers, and of clients.
const FOLLOWERS: u64 = 100;
const CLIENTS: u64 = 10_000;

impl World {
    pub(crate) fn new(seed: u64, gateways: u64, config: gateway::Config, limits: Limits) -> Self {
        let first = Configuration::of((1..=gateways).map(|id| Member::new(id, 0)));
        let mut world = Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: Time::ZERO,
            limits,
            first: first.clone(),
            gateways: Vec::new(),
            followers: Vec::new(),
            clients: Vec::new(),
            ended: BTreeMap::new(),
            run_time: Span::millis(55),
            queue: BTreeMap::new(),
            entered: 0,
        };
        for id in 1..=gateways {
            let me = Member::new(id, 0);
            let machine = Gateway::new(me, config, first.clone(), limits).unwrap();
            world.gateways.push(GatewayHost {
                me,
                config,
                driver: Some(Driver::new(machine)),
                mailboxes: BTreeMap::new(),
                stored: Vec::new(),
                base: None,
                purged: 0,
            });
        }
        for at in 0..world.gateways.len() {
            world.command_gateway(at, gateway::Command::Start);
        }
        world
    }

    fn gateway_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (1..=self.gateways.len() as u64).map(NodeId)
    }

    /// The list of gateways of a node, which begins at this one.
    fn list_from(&self, first: usize) -> Vec<NodeId> {
        let all: Vec<NodeId> = self.gateway_ids().collect();
        let (before, from) = all.split_at(first % all.len());
        [from, before].concat()
    }

    pub(crate) fn add_follower(&mut self, duty: DutyCycle, gateway: usize) -> usize {
        let at = self.followers.len();
        let me = Member::new(FOLLOWERS + at as u64, 0);
        let config = follower::Config::new(duty);
        self.followers.push(FollowerHost {
            me,
            config,
            driver: None,
            lies: false,
            runs: BTreeMap::new(),
            begun: 0,
        });
        self.start_follower(at, gateway);
        at
    }

    pub(crate) fn start_follower(&mut self, at: usize, gateway: usize) {
        let list = self.list_from(gateway);
        let host = &mut self.followers[at];
        let machine = Follower::new(host.me, host.config, list).unwrap();
        host.driver = Some(Driver::new(machine));
        host.runs.clear();
        self.command_follower(at, follower::Command::Start);
    }

    /// A follower stops and loses its memory. It begins again in its next life.
    pub(crate) fn stop_follower(&mut self, at: usize) {
        let host = &mut self.followers[at];
        host.driver = None;
        let Member { id, incarnation } = host.me;
        host.me = Member::new(id.0, incarnation.0 + 1);
    }

    pub(crate) fn add_client(&mut self, gateway: usize) -> usize {
        let at = self.clients.len();
        let me = Member::new(CLIENTS + at as u64, 0);
        let list = self.list_from(gateway);
        let machine = Client::new(me, client::Config::new(), list).unwrap();
        self.clients.push(ClientHost {
            me,
            driver: Driver::new(machine),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            refused: BTreeMap::new(),
        });
        at
    }

    pub(crate) fn submit(&mut self, at: usize, code: &[u8]) -> TaskId {
        self.submit_function(at, Function::new(code))
    }

    pub(crate) fn submit_function(&mut self, at: usize, function: Function) -> TaskId {
        let host = &mut self.clients[at];
        let number = host.driver.machine().next_number();
        host.asked.insert(number, function.clone());
        let client = host.me;
        self.command_client(at, client::Command::Submit(function));
        TaskId { client, number }
    }

    /// A gateway stops. Its stored facts remain.
    pub(crate) fn stop_gateway(&mut self, at: usize) {
        let host = &mut self.gateways[at];
        host.driver = None;
        host.mailboxes.clear();
        let Member { id, incarnation } = host.me;
        host.me = Member::new(id.0, incarnation.0 + 1);
    }

    pub(crate) fn start_gateway(&mut self, at: usize) {
        let first = self.first.clone();
        let limits = self.limits;
        let host = &mut self.gateways[at];
        let begun = Member::new(host.me.id.0, 0);
        let others = self.first.members().map(|it| it.member.id);
        let mut machine = match host.base.clone() {
            Some(stored) => Gateway::restore(host.me, host.config, stored, others).unwrap(),
            None => {
                let replica = Gateway::new(begun, host.config, first, limits).unwrap();
                let stored = replica.replica().stored();
                Gateway::restore(host.me, host.config, stored, others).unwrap()
            }
        };
        for fact in &host.stored {
            selvedge_core::durable::Durable::fold(&mut machine, fact).unwrap();
        }
        host.driver = Some(Driver::new(machine));
        self.command_gateway(at, gateway::Command::Start);
    }

    /// Notifies all other gateways of this change, at random times within this span.
    pub(crate) fn spread(&mut self, delta: Delta, within: Span) {
        for at in 0..self.gateways.len() {
            let me = self.gateways[at].me;
            if me.id != delta.member().id {
                let after = Span(self.rng.below(within.0 + 1));
                self.enter(after, What::Delta(me, delta));
            }
        }
    }

    pub(crate) fn set_hops(&mut self, at: usize, to: usize, hops: u8) {
        let to = self.gateways[to].me.id;
        self.command_gateway(at, gateway::Command::SetHops { to, hops });
    }

    /// The manager is asked to have these gateways decide from now on.
    pub(crate) fn configure(&mut self, gateways: &[usize]) {
        let members = gateways.iter().map(|at| self.gateways[*at].me);
        let next = Configuration::of(members);
        let manager = self.manager().expect("a gateway manages");
        self.command_gateway(manager, gateway::Command::Configure(next));
    }

    fn enter(&mut self, after: Span, what: What) {
        self.entered += 1;
        assert!(self.queue.len() < 20_000, "a storm at {:?}", self.now);
        self.queue.insert((self.now + after, self.entered), what);
    }

    pub(crate) fn machine(&self, at: usize) -> Option<&Gateway> {
        self.gateways[at].driver.as_ref().map(Driver::machine)
    }

    pub(crate) fn manager(&self) -> Option<usize> {
        (0..self.gateways.len()).find(|&at| self.machine(at).is_some_and(Gateway::manages))
    }

    fn post(&mut self, from: Member, to: NodeId, message: Message) {
        let encoded = postcard::to_allocvec(&message).unwrap();
        assert_eq!(postcard::from_bytes::<Message>(&encoded).unwrap(), message);
        assert!(
            encoded.len() <= 1_400,
            "a message of {} bytes",
            encoded.len()
        );
        let after = Span::millis(1) + Span(self.rng.below(Span::millis(10).0));
        self.enter(after, What::Message { to, from, message });
    }

    /// The gateway with the mailbox for this sender's messages to a follower.
    fn mailbox_for(&self, from: Member, to: NodeId) -> Option<usize> {
        let gateway = match from.id.0 {
            id if id < FOLLOWERS => id as usize - 1,
            id => {
                let sender = &self.followers[(id - FOLLOWERS) as usize];
                let at = sender.driver.as_ref()?.machine().attached_to();
                let relay = self.machine(at.0 as usize - 1)?;
                let known = relay.tables()?.follower(to)?;
                known.gateway.0 as usize - 1
            }
        };
        self.machine(gateway).map(|_| gateway)
    }

    fn deliver(&mut self, to: NodeId, from: Member, message: Message) {
        match to.0 {
            id if id < FOLLOWERS => {
                let input = Input::Message { from, message };
                self.step_gateway(id as usize - 1, input);
            }
            id if id < CLIENTS => {
                let Some(gateway) = self.mailbox_for(from, to) else {
                    return;
                };
                let mailbox = self.gateways[gateway].mailboxes.entry(to).or_default();
                mailbox.push_back((from, message));
                let at = (id - FOLLOWERS) as usize;
                let follower = self.followers[at].driver.as_ref().map(Driver::machine);
                let is_awake = follower.is_some_and(|it| {
                    let is_here = it.attached_to().0 as usize - 1 == gateway;
                    is_here && it.phase() != Some(Phase::Asleep)
                });
                if is_awake {
                    self.fetch(at, gateway);
                }
            }
            id => {
                let input = Input::Message { from, message };
                self.step_client((id - CLIENTS) as usize, input);
            }
        }
    }

    fn fetch(&mut self, at: usize, gateway: usize) {
        if self.machine(gateway).is_none() {
            self.command_follower(at, follower::Command::Unreachable);
            return;
        }
        let id = self.followers[at].me.id;
        while let Some((from, message)) = self.gateways[gateway]
            .mailboxes
            .get_mut(&id)
            .and_then(VecDeque::pop_front)
        {
            self.step_follower(at, Input::Message { from, message });
        }
    }

    fn command_gateway(&mut self, at: usize, command: gateway::Command) {
        self.step_gateway(at, Input::Command(command));
    }

    fn command_follower(&mut self, at: usize, command: follower::Command) {
        self.step_follower(at, Input::Command(command));
    }

    pub(crate) fn command_client(&mut self, at: usize, command: client::Command) {
        self.step_client(at, Input::Command(command));
    }

    fn next_timer(&self) -> Option<Time> {
        let gateways = self
            .gateways
            .iter()
            .filter_map(|it| it.driver.as_ref()?.deadline());
        let followers = self
            .followers
            .iter()
            .filter_map(|it| it.driver.as_ref()?.deadline());
        let clients = self.clients.iter().filter_map(|it| it.driver.deadline());
        gateways.chain(followers).chain(clients).min()
    }

    fn expire(&mut self) {
        let now = self.now;
        for at in 0..self.gateways.len() {
            let mut effects = Vec::new();
            if let Some(driver) = &mut self.gateways[at].driver {
                driver.expire_into(now, &mut self.rng, &mut effects);
            }
            if !effects.is_empty() {
                self.carry_out_gateway(at, effects);
            }
        }
        for at in 0..self.followers.len() {
            let mut effects = Vec::new();
            if let Some(driver) = &mut self.followers[at].driver {
                driver.expire_into(now, &mut self.rng, &mut effects);
            }
            self.carry_out_follower(at, effects);
        }
        for at in 0..self.clients.len() {
            let mut effects = Vec::new();
            let driver = &mut self.clients[at].driver;
            driver.expire_into(now, &mut self.rng, &mut effects);
            self.carry_out_client(at, effects);
        }
    }

    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let message = self.queue.first_key_value().map(|it| it.0.0);
            let next = message.into_iter().chain(self.next_timer()).min();
            let Some(next) = next.filter(|it| *it <= end) else {
                break;
            };
            self.now = next.max(self.now);
            if message.is_some_and(|it| it <= self.now)
                && let Some((_, what)) = self.queue.pop_first()
            {
                self.happen(what);
            } else {
                self.expire();
            }
        }
        self.now = end;
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Message { to, from, message } => self.deliver(to, from, message),
            What::Delta(to, delta) => {
                let at = to.id.0 as usize - 1;
                if self.gateways[at].me == to {
                    self.step_gateway(at, Input::Membership(delta));
                }
            }
            What::Ends(me, task) => self.end_run(me, task),
            What::Loaded(me, library) => {
                let at = (me.id.0 - FOLLOWERS) as usize;
                if self.followers[at].me == me {
                    self.command_follower(at, follower::Command::Loaded(library));
                }
            }
        }
    }

    /// The tasks of all clients that are not answered and not refused.
    pub(crate) fn unanswered(&self) -> Vec<TaskId> {
        let of = |host: &ClientHost| {
            let client = host.me;
            let open = host.driver.machine().waiting();
            open.map(|number| TaskId { client, number })
                .collect::<Vec<_>>()
        };
        self.clients.iter().flat_map(of).collect()
    }
}
