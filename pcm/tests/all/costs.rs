//! The cost of a task, of a follower and of a quiet second, in messages and in bytes of frames.
//!
//! A frame is a header of two bytes, the sender and the message. A message that crosses links between two
//! gateways is counted on each of them; a message that a follower or client sends or gets, on its own link.
//! A vote for an orchestrator at another gateway crosses three links. Nothing takes time, and nothing is
//! lost.

use std::collections::VecDeque;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::wire::{Envelope, HEADER_LEN};
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{
    Attachment, DutyCycle, Function, Libraries, Limits, Message, Returned, Tables, Update,
};
use selvedge_replica::{Configuration, Replica, State as _};

use super::world::bytes;

/// The offsets of the ids of gateways, and of other nodes. An id takes one byte or ten.
#[derive(Clone, Copy, Debug)]
struct Ids {
    gateways: u64,
    others: u64,
}

impl Ids {
    /// Given by hand.
    const SHORT: Self = Self {
        gateways: 0,
        others: 0,
    };
    /// Gateways' by hand, and EUI-64 of a vendor.
    const MIXED: Self = Self {
        gateways: 0,
        others: 0xD0CF_5EFF_FE00_0000,
    };
    /// All EUI-64.
    const LONG: Self = Self {
        gateways: Self::MIXED.others,
        others: Self::MIXED.others,
    };

    const fn gateway(self, nth: u64) -> NodeId {
        NodeId(self.gateways + nth)
    }

    const fn other(self, nth: u64) -> Member {
        Member::new(self.others + nth, 0)
    }

    /// The number of this gateway, from 1.
    fn nth_gateway(self, id: NodeId) -> Option<u64> {
        let nth = id.0.checked_sub(self.gateways);
        nth.filter(|it| (1..=GATEWAYS).contains(it))
    }
}

const GATEWAYS: u64 = 3;
const FOLLOWERS: u64 = 10;
const CLIENT: u64 = 100;

/// Longer than each measured span.
const PERIOD: DutyCycle = DutyCycle {
    active_ms: 120_000,
    busy_ms: 0,
    asleep_ms: 0,
};

/// Messages and bytes of their frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    messages: u64,
    bytes: u64,
}

const fn count(messages: u64, bytes: u64) -> Count {
    Count { messages, bytes }
}

/// The messages sent since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// On the links between gateways.
    between: Count,
    /// On the links of followers and clients.
    access: Count,
}

struct Net {
    ids: Ids,
    gateways: Vec<Driver<Gateway>>,
    followers: Vec<Driver<Follower>>,
    client: Driver<Client>,
    rng: ChaCha8Rng,
    now: Time,
    queue: VecDeque<(Member, NodeId, Message)>,
    returned: VecDeque<(usize, follower::Command)>,
    answered: u64,
    counts: Counts,
}

/// A gateway without periodic work: it acts only when a test asks.
fn quiet() -> gateway::Config {
    gateway::Config::new()
        .with_heartbeat(Span::ZERO)
        .with_review(Span::secs(1_000_000))
}

impl Net {
    /// Gateways that hold these tables. The client is at the first one.
    fn new(ids: Ids, config: gateway::Config, tables: &Tables) -> Self {
        let members: Vec<Member> = (1..=GATEWAYS)
            .map(|nth| Member::new(ids.gateway(nth).0, 0))
            .collect();
        let first = Configuration::of(members.clone());
        let make = |&me: &Member| {
            let replica = Replica::new(me, config.replica, first.clone(), tables.clone()).unwrap();
            let gateway = Gateway::restore(me, config, replica.stored(), []).unwrap();
            Driver::new(gateway)
        };
        let client = ids.other(CLIENT);
        let client = Client::new(client, client::Config::new(), [ids.gateway(1)]).unwrap();
        let mut net = Self {
            ids,
            gateways: members.iter().map(make).collect(),
            followers: Vec::new(),
            client: Driver::new(client),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            queue: VecDeque::new(),
            returned: VecDeque::new(),
            answered: 0,
            counts: Counts::default(),
        };
        for at in 0..net.gateways.len() {
            net.gateway(at, Input::Command(gateway::Command::Start));
        }
        net
    }

    /// The first gateway leads.
    fn elect(&mut self) {
        let to = self.ids.gateway(2);
        self.gateway(0, Input::Command(gateway::Command::SetHops { to, hops: 2 }));
        self.run(Span::secs(2));
        assert!(self.gateways[0].machine().manages());
    }

    /// A unit of five, the orchestrator at the first gateway, which manages; the others there as well, or
    /// at the gateways in turn.
    fn with_unit(ids: Ids, is_spread: bool) -> Self {
        let gateway = |nth| ids.gateway(if is_spread { 1 + nth % GATEWAYS } else { 1 });
        let me = |nth| ids.other(FOLLOWERS + nth);
        let unit = (0..5).map(|nth| (me(nth), gateway(nth)));
        let mut net = Self::new(ids, quiet(), &formed(unit));
        for nth in 0..5 {
            let config = follower::Config::new(PERIOD);
            let follower = Follower::new(me(nth), config, [gateway(nth)]).unwrap();
            net.followers.push(Driver::new(follower));
            net.follower(nth as usize, Input::Command(follower::Command::Start));
        }
        net.elect();
        net.taken();
        net
    }

    fn taken(&mut self) -> Counts {
        core::mem::take(&mut self.counts)
    }

    /// At which gateway a node is: itself, where it is one.
    fn gateway_of(&self, id: NodeId) -> NodeId {
        let is_it = |it: &&Driver<Follower>| it.machine().me().id == id;
        let found = self.followers.iter().find(is_it);
        match (self.ids.nth_gateway(id), found) {
            (Some(_), _) => id,
            (None, Some(follower)) => follower.machine().attached_to(),
            (None, None) => self.ids.gateway(1),
        }
    }

    fn send(&mut self, from: Member, to: NodeId, message: Message) {
        let envelope = Envelope { from, message };
        let encoded = postcard::to_allocvec(&envelope).unwrap();
        let Envelope { message, .. } = envelope;
        let length = (HEADER_LEN + encoded.len()) as u64;
        let ends = [from.id, to].map(|it| u64::from(self.ids.nth_gateway(it).is_none()));
        let ends: u64 = ends.into_iter().sum();
        self.counts.access.messages += ends;
        self.counts.access.bytes += ends * length;
        if self.gateway_of(from.id) != self.gateway_of(to) {
            self.counts.between.messages += 1;
            self.counts.between.bytes += length;
        }
        self.queue.push_back((from, to, message));
    }

    fn gateway(&mut self, at: usize, input: Input<Gateway>) {
        let (now, mut effects) = (self.now, Vec::new());
        let node = &mut self.gateways[at];
        node.step_into(now, &mut self.rng, input, &mut effects)
            .unwrap();
        self.carry_out_gateway(at, effects);
    }

    fn carry_out_gateway(&mut self, at: usize, effects: Vec<Effect<Gateway>>) {
        let me = self.gateways[at].machine().me();
        for effect in effects {
            if let Effect::Send { to, message } = effect {
                self.send(me, to.id, message);
            }
        }
    }

    fn follower(&mut self, at: usize, input: Input<Follower>) {
        let (now, mut effects) = (self.now, Vec::new());
        let node = &mut self.followers[at];
        node.step_into(now, &mut self.rng, input, &mut effects)
            .unwrap();
        let me = node.machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.send(me, to.id, message),
                Effect::Event(follower::Event::Run { task, .. }) => {
                    let returned = Returned::Value(bytes(b"21.5"));
                    let command = follower::Command::Returned { task, returned };
                    self.returned.push_back((at, command));
                }
                _ => {}
            }
        }
    }

    fn client(&mut self, input: Input<Client>) {
        let (now, mut effects) = (self.now, Vec::new());
        self.client
            .step_into(now, &mut self.rng, input, &mut effects)
            .unwrap();
        let me = self.client.machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.send(me, to.id, message),
                Effect::Event(client::Event::Answered { .. }) => self.answered += 1,
                _ => {}
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.queue.pop_front() {
            if let Some(nth) = self.ids.nth_gateway(to) {
                self.gateway(nth as usize - 1, Input::Message { from, message });
                continue;
            }
            let is_it = |it: &Driver<Follower>| it.machine().me().id == to;
            if to == self.client.machine().me().id {
                self.client(Input::Message { from, message });
            } else if let Some(at) = self.followers.iter().position(is_it) {
                self.follower(at, Input::Message { from, message });
            } // Or a test speaks for it.
        }
    }

    /// All that happens in this time, but of the followers' own.
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        self.deliver();
        loop {
            let due = self.gateways.iter().filter_map(Driver::deadline).min();
            let Some(due) = due.filter(|it| *it <= end) else {
                break;
            };
            self.now = self.now.max(due);
            for at in 0..self.gateways.len() {
                let mut effects = Vec::new();
                self.gateways[at].expire_into(due, &mut self.rng, &mut effects);
                self.carry_out_gateway(at, effects);
            }
            self.deliver();
        }
        self.now = end;
    }

    /// The cost of `count` tasks at once, until they are answered and all gateways know the answers. A
    /// function takes a second, and all five followers vote.
    fn tasks(&mut self, count: u8) -> Counts {
        for nth in 0..count {
            let function = Function::new(&[b"average(light, 60", &[b'0' + nth][..]].concat());
            self.client(Input::Command(client::Command::Submit(function)));
        }
        for _ in 0..count {
            self.run(Span::secs(1));
            assert_eq!(self.returned.len(), 5);
            for (at, command) in core::mem::take(&mut self.returned) {
                self.follower(at, Input::Command(command));
            }
        }
        self.run(Span::secs(1));
        assert_eq!(self.answered, u64::from(count));
        self.taken()
    }

    /// The cost of a follower that attaches to this gateway, and of its failure.
    fn joins_and_leaves(&mut self, at: u64) -> [Count; 2] {
        let from = self.ids.other(FOLLOWERS);
        let message = Message::KeepAlive {
            number: 1,
            duty: DutyCycle::always(),
            libraries: Libraries::new(),
        };
        self.send(from, self.ids.gateway(at), message);
        self.counts = Counts::default();
        self.run(Span::secs(2));
        let is_there = |net: &Self| {
            let mut tables = net.gateways.iter().map(|it| it.machine().tables().unwrap());
            let known = tables.next().unwrap().follower(from.id).is_some();
            assert!(tables.all(|it| it.follower(from.id).is_some() == known));
            known
        };
        assert!(is_there(self));
        let joins = self.taken().between;
        self.run(Span::secs(3));
        assert!(!is_there(self));
        [joins, self.taken().between]
    }
}

/// Tables of these followers, and the gateways that they are at.
fn formed(followers: impl Iterator<Item = (Member, NodeId)>) -> Tables {
    let mut tables = Tables::new(Limits::new().with_followers(20_000));
    for (member, gateway) in followers {
        tables.apply(&Update::Attach(Attachment {
            member,
            number: 1,
            gateway,
            duty: PERIOD,
            libraries: Libraries::new(),
        }));
    }
    tables.apply(&Update::Cluster { after: 0 });
    tables
}

/// The second gateway with `followers` followers that are quiet for long. The first one manages.
fn with_followers(ids: Ids, followers: u64) -> Net {
    let followers = (0..followers).map(|nth| (ids.other(1_000 + nth), ids.gateway(2)));
    let config = quiet();
    let replica = config.replica.with_state_limit(64 << 20);
    let mut net = Net::new(ids, config.with_replica(replica), &formed(followers));
    net.elect();
    net.taken();
    net
}

/// A function of 18 bytes, a result of 4. Each update takes eight messages: two gateways accept it, and both
/// are then notified that it is committed. In a unit that is spread, the votes of three followers cross.
#[test]
fn a_task_costs_two_updates_between_gateways_and_the_votes_that_cross() {
    let between = |ids, is_spread| Net::with_unit(ids, is_spread).tasks(1).between;
    assert_eq!(between(Ids::SHORT, false), count(16, 304));
    assert_eq!(between(Ids::SHORT, true), count(22, 376));
    assert_eq!(between(Ids::MIXED, false), count(16, 394));
    assert_eq!(between(Ids::MIXED, true), count(22, 574));
    assert_eq!(between(Ids::LONG, false), count(16, 718));
    assert_eq!(between(Ids::LONG, true), count(22, 898));
}

/// The client's request and its answer; for each follower the request and the notice of the end, and a vote
/// and its acknowledgement for each but the orchestrator, on both their links; the verdict.
#[test]
fn a_task_costs_as_much_on_the_links_of_followers_wherever_they_are() {
    for is_spread in [false, true] {
        let access = |ids| Net::with_unit(ids, is_spread).tasks(1).access;
        assert_eq!(access(Ids::SHORT), count(29, 511));
        assert_eq!(access(Ids::MIXED), count(29, 1_204));
        assert_eq!(access(Ids::LONG), count(29, 1_303));
    }
}

/// The message of one update also commits the update before. The unit runs one task after another.
#[test]
fn tasks_that_are_asked_for_together_cost_less() {
    let between = |ids, is_spread| Net::with_unit(ids, is_spread).tasks(8).between;
    assert_eq!(between(Ids::SHORT, false), count(100, 2_082));
    assert_eq!(between(Ids::LONG, false), count(100, 4_890));
    assert_eq!(between(Ids::LONG, true), count(148, 6_330));
}

#[test]
fn a_follower_that_comes_or_goes_costs_bytes_that_do_not_grow_with_the_table() {
    for followers in [10, 10_000] {
        let costs = |ids, at| with_followers(ids, followers).joins_and_leaves(at);
        // At the resource manager.
        assert_eq!(costs(Ids::SHORT, 1), [count(8, 132); 2], "of {followers}");
        assert_eq!(costs(Ids::LONG, 1), [count(8, 330); 2], "of {followers}");
        assert_eq!(costs(Ids::MIXED, 1), [count(8, 150); 2], "of {followers}");
        // At another gateway, which proposes it to the resource manager.
        assert_eq!(costs(Ids::SHORT, 3), [count(9, 155); 2], "of {followers}");
        assert_eq!(costs(Ids::LONG, 3), [count(9, 389); 2], "of {followers}");
    }
}

#[test]
fn a_quiet_second_costs_a_heartbeat_and_an_answer_for_each_other_gateway() {
    for (ids, bytes) in [(Ids::SHORT, 22), (Ids::MIXED, 22), (Ids::LONG, 58)] {
        let mut net = Net::new(ids, gateway::Config::new(), &Tables::new(Limits::new()));
        net.run(Span::secs(20));
        net.taken();
        net.run(Span::secs(100));
        let between = count(100 * 4, 100 * bytes);
        let access = Count::default();
        assert_eq!(net.taken(), Counts { between, access });
    }
}
