//! Repeated messages allocate nothing: keep-alives, heartbeats, votes and the periods of followers. A
//! further test measures the memory of a follower at the limits of its settings.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

extern crate alloc;

use alloc::collections::VecDeque;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Effect, Input, Machine, Member, NodeId};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{
    DutyCycle, Function, Libraries, Library, Limits, Message, Returned, Run, TaskId, Update,
};
use selvedge_replica::{Configuration, Replica, State as _};

use counting::{ByHand, Host, allocations, held, peak};

const fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// A node by hand, and the messages of its last step. There is room for them.
struct Node<M: Machine> {
    host: ByHand<M>,
    rng: ChaCha8Rng,
    sent: VecDeque<(Member, M::Message)>,
}

impl<M: Machine> Node<M>
where
    M::Reject: core::fmt::Debug,
{
    fn new(machine: M) -> Self {
        Self {
            host: ByHand::new(machine),
            rng: ChaCha8Rng::seed_from_u64(1),
            sent: VecDeque::with_capacity(4_096),
        }
    }

    /// Makes a step, and returns the number of its allocations. Earlier messages are dropped.
    fn step(&mut self, input: Input<M>) -> u64 {
        let Self { host, rng, sent } = self;
        sent.clear();
        allocations(|| {
            host.step(rng, input, &mut |effect| {
                if let Effect::Send { to, message } = effect {
                    sent.push_back((to, message));
                }
            });
        })
    }

    fn receive(&mut self, from: Member, message: M::Message) -> u64 {
        self.step(Input::Message { from, message })
    }
}

const FOLLOWERS: u64 = 100;

fn keep_alive(libraries: u64) -> Message {
    let libraries: Libraries = (0..libraries).map(Library).collect();
    Message::KeepAlive {
        number: 1,
        duty: DutyCycle::always(),
        libraries,
    }
}

/// Three gateways, of which the first one manages, and followers at each.
fn gateways() -> Vec<Node<Gateway>> {
    let members = [1, 2, 3].map(member);
    let first = Configuration::of(members);
    let config = gateway::Config::new();
    let mut tables = selvedge_pcm::Tables::new(Limits::new());
    for nth in 0..FOLLOWERS {
        tables.apply(&Update::Attach(selvedge_pcm::Attachment {
            member: member(1_000 + nth),
            number: 1,
            gateway: NodeId(1 + nth % 3),
            duty: DutyCycle::always(),
            libraries: Libraries::new(),
        }));
    }
    tables.apply(&Update::Cluster { after: 0 });
    let node = |me| {
        let replica = Replica::new(me, config.replica, first.clone(), tables.clone());
        let stored = replica.unwrap().stored();
        Node::new(Gateway::restore(me, config, stored, []).unwrap())
    };
    let mut nodes: Vec<Node<Gateway>> = members.map(node).into();
    for node in &mut nodes {
        node.step(Input::Command(gateway::Command::Start));
    }
    let to = NodeId(2);
    nodes[0].step(Input::Command(gateway::Command::SetHops { to, hops: 2 }));
    carry(&mut nodes, 0);
    assert!(nodes[0].host.machine().manages());
    nodes
}

/// Delivers the last messages of this gateway and all that follow. Returns the number of allocations.
fn carry(nodes: &mut [Node<Gateway>], at: usize) -> u64 {
    let mut allocated = 0;
    let mut wire: VecDeque<_> = nodes[at].sent.drain(..).map(|it| (at, it)).collect();
    while let Some((from, (to, message))) = wire.pop_front() {
        let from = nodes[from].host.machine().me();
        let Some(at) = (1..=3).position(|id| id == to.id.0) else {
            continue;
        };
        allocated += nodes[at].receive(from, message);
        wire.extend(nodes[at].sent.drain(..).map(|it| (at, it)));
    }
    allocated
}

#[test]
fn a_heartbeat_costs_no_allocation() {
    let mut nodes = gateways();
    let beat = |nodes: &mut [Node<Gateway>]| {
        let tick = Input::Tick(gateway::Timer::Heartbeat);
        let allocated = nodes[0].step(tick);
        assert_eq!(nodes[0].sent.len(), 2);
        allocated + carry(nodes, 0)
    };
    beat(&mut nodes);
    assert_eq!(beat(&mut nodes), 0);
}

/// The resource manager, and another gateway, of which it is one of the followers.
#[test]
fn a_keep_alive_that_says_nothing_new_costs_no_allocation() {
    let mut nodes = gateways();
    for round in 0..2 {
        for nth in 0..FOLLOWERS {
            let node = &mut nodes[nth as usize % 3];
            let allocated = node.receive(member(1_000 + nth), keep_alive(0));
            assert!(round == 0 || allocated == 0, "{allocated}");
            assert!(node.sent.is_empty());
        }
    }
}

const GATEWAY: Member = member(1);

fn follower(me: u64, config: follower::Config) -> Node<Follower> {
    let follower = Follower::new(member(me), config, [GATEWAY.id]).unwrap();
    let mut node = Node::new(follower);
    node.step(Input::Command(follower::Command::Start));
    node
}

fn always() -> follower::Config {
    follower::Config::new(DutyCycle::always())
}

const fn task(number: u64) -> TaskId {
    TaskId {
        client: member(9),
        number,
    }
}

fn run(number: u64, code: usize) -> Message {
    let run = Run {
        task: task(number),
        attempt: 1,
        term: 0,
        electors: (11..16).map(member).collect(),
        to_gateway: false,
        function: Function::new(&vec![7; code]),
    };
    Message::Run(Box::new(run))
}

fn vote(number: u64, result: usize) -> Message {
    Message::Vote {
        task: task(number),
        attempt: 1,
        returned: returned(result),
    }
}

fn returned(result: usize) -> Returned {
    Returned::Value(core::iter::repeat_n(7, result).collect())
}

/// It has nothing to do, or must send its vote again: of 24 bytes, the longest result inside a message.
#[test]
fn a_period_of_a_follower_costs_no_allocation() {
    let tick = || Input::Tick(follower::Timer::Phase);
    for has_voted in [false, true] {
        let mut node = follower(12, always());
        if has_voted {
            node.receive(GATEWAY, run(1, 20));
            let task = task(1);
            let returned = returned(24);
            let returned = follower::Command::Returned { task, returned };
            node.step(Input::Command(returned));
        }
        node.step(tick());
        assert_eq!(node.step(tick()), 0);
        assert_eq!(node.sent.len(), 1 + usize::from(has_voted));
    }
}

/// The first vote makes room for all. Incoming messages are allocated before.
#[test]
fn a_vote_costs_the_orchestrator_no_allocation() {
    let mut node = follower(11, always());
    node.receive(GATEWAY, run(1, 20));
    assert_eq!(node.receive(member(12), vote(1, 24)), 1);
    for by in [13, 14, 15, 14] {
        let vote = vote(1, 24);
        assert_eq!(node.receive(member(by), vote), 0, "of {by}");
    }
    // A longer answer is copied once for the verdict, and once for the message.
    node.receive(GATEWAY, run(2, 20));
    for (by, copies) in [(12, 1), (13, 0), (14, 2), (15, 0)] {
        let vote = vote(2, 25);
        assert_eq!(node.receive(member(by), vote), copies, "of {by}");
    }
}

/// The memory of a follower, in bytes on a host with pointers of 64 bits.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    machine: usize,
    /// With all jobs, and no votes.
    jobs: usize,
    /// As the orchestrator of each job, with the votes of all others before it could run one.
    votes: usize,
    /// The highest value meanwhile, with incoming and outgoing messages.
    peak: usize,
}

/// Measures a follower that receives, one by one, all frames that its limits allow.
fn memory(config: follower::Config) -> Memory {
    let frame = |message: &Message| postcard::to_allocvec(message).unwrap();
    let jobs = u64::from(config.jobs);
    let (code, result) = (usize::from(config.code), usize::from(config.result));
    let runs: Vec<_> = (0..jobs).map(|it| frame(&run(it, code))).collect();
    let votes: Vec<_> = (0..jobs).map(|it| frame(&vote(it, result))).collect();
    // All requests wait: a follower that is busy begins no function.
    let duty = DutyCycle {
        active_ms: 0,
        busy_ms: 1_000,
        asleep_ms: 1_000,
    };
    let config = config.with_duty(duty);
    let mut node = follower(11, config);
    node.step(Input::Tick(follower::Timer::Phase));
    node.sent = VecDeque::new();
    let decode = |it: &Vec<u8>| postcard::from_bytes(it).unwrap();
    let before = held();
    let (jobs, most) = peak(|| {
        for run in &runs {
            node.receive(GATEWAY, decode(run));
        }
        let jobs = held() - before;
        for vote in &votes {
            for by in 12..16 {
                node.receive(member(by), decode(vote));
                node.sent.clear();
            }
        }
        jobs
    });
    node.sent = VecDeque::new();
    Memory {
        machine: size_of::<Follower>(),
        jobs: jobs as usize,
        votes: (held() - before) as usize,
        peak: most,
    }
}

/// The table in the documentation of `follower`. Layouts may shrink with another compiler.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_follower_takes_the_memory_that_is_documented() {
    let small = always().with_code(256).with_result(32);
    let documented = [
        (always(), [256, 10_304, 22_784, 23_392]),
        (small.with_jobs(1), [256, 1_072, 1_512, 2_056]),
        (small.with_jobs(2), [256, 1_408, 2_288, 2_832]),
        (small.with_jobs(4), [256, 2_080, 3_840, 4_384]),
    ];
    for (config, documented) in documented {
        let Memory {
            machine,
            jobs,
            votes,
            peak,
        } = memory(config);
        let measured = [machine, jobs, votes, peak];
        let pairs = measured.into_iter().zip(documented);
        let is_near = |(it, reported): (usize, usize)| it <= reported && 10 * it >= 9 * reported;
        assert!(pairs.into_iter().all(is_near), "{config:?}: {measured:?}");
    }
}

/// A gateway, or another follower, may send more.
#[test]
fn what_is_longer_than_a_follower_takes_is_not_kept() {
    let config = always().with_code(256).with_result(32);
    let held_after = |code, result| {
        let mut node = follower(11, config);
        let before = held();
        node.receive(GATEWAY, run(1, code));
        node.receive(member(12), vote(1, result));
        node.sent.clear();
        let beyond = node.host.machine().counters().beyond_limits;
        (beyond, held() - before)
    };
    let (beyond, most) = held_after(256, 32);
    assert_eq!(beyond, 0);
    let (beyond, held) = held_after(257, 33);
    assert_eq!(beyond, 2);
    // A task that it failed gets its own vote.
    assert!(held <= most, "{held} and {most} bytes");
    let (_, many) = held_after(1_200, 1_200);
    assert_eq!(many, held);
}
