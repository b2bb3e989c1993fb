//! The choices of a history: its nodes, and their settings.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Choose, Member, Span};
use selvedge_pcm::gateway::Voting;
use selvedge_pcm::{DutyCycle, Limits, client, follower, gateway};
use selvedge_replica::Configuration;
use selvedge_sim::histories::{Choices, Hosts, Weather};

use crate::node::{Node, Own, Role};
use crate::oracle::{Able, Oracle};
use crate::world::{Habits, World};

fn limits(rng: &mut Choices, able: bool) -> Limits {
    let small = rng.below(2) == 0 && !able;
    let mut draw = |low: &[u64], all: u64| if small { rng.pick(low) } else { all };
    let it = Limits::new()
        .with_followers(draw(&[3, 6, 64], 64) as u32)
        .with_tombstones(draw(&[0, 1, 256], 256) as u32)
        .with_open(draw(&[1, 2, 64], 256) as u32)
        .with_done(draw(&[1, 2, 256], 256) as u32)
        .with_cache(draw(&[0, 1, 64], 64) as u32)
        .with_clients(draw(&[1, 2, 256], 256) as u32)
        .with_attempts(draw(&[1, 2, 5], 5) as u16)
        .with_result(draw(&[1, 24, 256], 256) as u16)
        .with_gateways(draw(&[1, 2, 16], 16) as u16)
        .with_libraries(draw(&[0, 1, 4], 4) as u16);
    it.with_unit(rng.pick(&[3, 5, 5, 5, 7]) as u16)
        .with_margin(rng.pick(&[0, 20_000, 1_000_000]) as u32)
        .with_counts_votes(rng.below(3) == 0)
}

/// The settings that are equal at all gateways.
struct Alike {
    voting: u64,
    heartbeat: u64,
    timeout: u64,
    resend: u64,
    /// Nothing keeps fresh tasks from the right value once faults end.
    able: bool,
    patient: bool,
    review: u64,
    differs: bool,
}

fn gateway(rng: &mut Choices, alike: &Alike) -> gateway::Config {
    let voting = match alike.voting {
        0 => Voting::Static,
        1 => Voting::Dynamic,
        _ => Voting::Dynamic,
    };
    let replica = gateway::Config::new()
        .replica
        .with_resend(Span::millis(alike.resend))
        .with_window(rng.pick(&[0, 1, 4, 256]) as u32);
    let purge = if alike.patient {
        35
    } else {
        rng.pick(&[11, 15, 35, 60])
    };
    let offload = if alike.patient {
        40
    } else {
        rng.pick(&[10, 20, 40, 80])
    };
    let factor = if alike.differs {
        rng.pick(&[1, 2, 10])
    } else {
        1
    };
    let heartbeat = alike.heartbeat * factor;
    // Above twice the longest heartbeat of any.
    let longest = if alike.differs { 10 } else { 1 };
    let timeout = alike.timeout * longest;
    gateway::Config::new()
        .with_replica(replica)
        .with_voting(voting)
        .with_heartbeat(Span::millis(heartbeat))
        .with_timeout(Span::millis(timeout))
        .with_purge_after(purge as u16)
        .with_offload_after(offload as u16)
        .with_settle(Span::millis(rng.pick(&[1, 100, 1_000, 3_000])))
        .with_review(Span::millis(rng.pick(&[alike.review, 10_000])))
        .with_clients(rng.pick(&[1, 2, 256]) as u16)
}

fn duty(rng: &mut Choices, long: bool, able: bool) -> DutyCycle {
    let (active_ms, busy_ms, asleep_ms) = match rng.below(8) {
        0..3 => (1_000, 0, 0),
        3 => (1_000, 500, 3_500),
        4 => (3_000, 0, 3_000),
        5 => (1_500, 1_500, 0),
        6 if !able => (rng.pick(&[0, 1, 20, 200]) as u32, 20, 980),
        _ if long => (20_000, 10_000, 90_000),
        _ => (2_000, 0, 10_000),
    };
    DutyCycle {
        active_ms,
        busy_ms,
        asleep_ms,
    }
}

fn follower(
    rng: &mut Choices,
    limits: &Limits,
    (long, small, able): (bool, bool, bool),
) -> follower::Config {
    let result = u64::from(limits.result);
    let mut draw = |low: &[u64], all: u64| if small { rng.pick(low) } else { all };
    let it = follower::Config::new(DutyCycle::always())
        .with_jobs(draw(&[1, 2, 8], 8) as u16)
        .with_code(draw(&[1, 30, 1_024], 1_024) as u16)
        .with_result(draw(&[1, result / 2 + 1, result], result).min(result) as u16)
        .with_libraries(draw(&[0, 1, 4], 4) as u16)
        .with_repeats(draw(&[1, 3, 16], 16) as u8);
    it.with_duty(duty(rng, long, able))
        .with_time(Span::millis(rng.pick(&[500, 5_000])))
}

/// The order in which a node goes to gateways; sometimes it knows one only.
fn list(rng: &mut Choices, all: &[u64], one: bool) -> Vec<u64> {
    let mut left = all.to_vec();
    let mut list = Vec::new();
    while !left.is_empty() {
        list.push(left.remove(rng.below(left.len() as u64) as usize));
    }
    if one {
        // The first gateway stays for good.
        list = vec![all[0]];
    }
    list
}

fn node(rng: &mut Choices, id: u64, role: Role, begins: u32, is_founder: bool) -> Node {
    let own = Own {
        role,
        is_founder,
        mailboxes: BTreeMap::new(),
    };
    let mut node = Node::new(id, begins, own);
    node.offset = rng.below(1_000_000_000);
    node.limit = rng.pick(&[0, 3, 100]);
    node
}

fn weather(rng: &mut Choices, delay: u64, alike: &Alike) -> (Weather, Habits) {
    let calm = rng.below(4) == 0;
    let mut weather = Weather {
        lost: if calm { 0 } else { rng.pick(&[0, 5, 30]) },
        doubled: rng.pick(&[0, 10, 30]),
        least: 100,
        delay,
        far: if calm { 0 } else { rng.pick(&[0, 0, 2]) },
        farthest: 40_000_000,
        write: rng.pick(&[0, 1_000, 50_000]),
        ..Weather::default()
    };
    let habits = Habits {
        torn: if calm { 0 } else { rng.pick(&[0, 5, 30]) },
        pushes: rng.below(2) == 0,
        drops_unknown: rng.below(3) == 0,
        drops_asleep: rng.below(3) == 0,
        echoes: rng.below(3) == 0,
        hostile: rng.below(3) == 0 && !alike.able,
        membership: alike.heartbeat == 0,
        late: 5,
    };
    weather.burst_first = rng.below(2) == 0;
    (weather, habits)
}

fn nodes(rng: &mut Choices, limits: &Limits, alike: &Alike, founders: u64) -> Vec<Node> {
    let newcomers = rng.pick(&[0, 0, 1, 2]);
    let storing = rng.below(3);
    let all: Vec<u64> = (1..=founders + newcomers).collect();
    let mut nodes = Vec::new();
    for &id in &all {
        // Where voters follow the gateways that are here, a gateway that lost its storage may be named in
        // its former life.
        let stores = alike.voting != 0 || storing == 0 || (storing == 1 && rng.below(2) == 0);
        let config = gateway(rng, alike);
        let begins = if id > founders {
            rng.pick(&[0, 7]) as u32
        } else {
            0
        };
        let role = Role::Gateway { config };
        let mut node = node(rng, id, role, begins, id <= founders);
        node.stores = stores;
        nodes.push(node);
    }
    let (long, able) = (rng.below(6) == 0, alike.able);
    let (small, lie) = (rng.below(3) == 0 && !able, rng.below(3) == 0 && !able);
    let lives = [0, 0, 5, u32::MAX, (1 << 31) - 1].map(u64::from);
    for id in 11..11 + rng.pick(&[1, 2, 3, 5, 6, 9, 13]) {
        let one = rng.below(8) == 0;
        let role = Role::Follower {
            config: follower(rng, limits, (long, small, able)),
            gateways: list(rng, &all, one),
            liar: lie && rng.below(5) == 0,
        };
        let begins = rng.pick(&lives) as u32;
        nodes.push(node(rng, id, role, begins, false));
    }
    for id in 31..31 + rng.pick(&[1, 2, 3]) {
        let one = rng.below(8) == 0;
        let config = client::Config::new()
            .with_resend(Span::millis(rng.pick(&[300, 2_000])))
            .with_repeats(rng.pick(&[1, 2, 5]) as u8)
            .with_tasks(rng.pick(&[1, 2, 64]) as u16);
        let role = Role::Client {
            config,
            gateways: list(rng, &all, one),
        };
        let begins = rng.pick(&lives) as u32;
        nodes.push(node(rng, id, role, begins, false));
    }
    nodes
}

fn oracle(nodes: &[Node], limits: Limits, weather: &Weather, habits: &Habits) -> Oracle {
    let mut oracle = Oracle::default();
    for node in nodes {
        if let Role::Follower { config, liar, .. } = &node.own.role {
            let able = Able {
                jobs: config.jobs.into(),
                code: config.code.into(),
                result: config.result.into(),
                libraries: config.libraries.into(),
                liar: *liar,
            };
            oracle.able.insert(node.id, able);
        }
    }
    let waiting = nodes.iter().map(|it| match &it.own.role {
        Role::Client { config, .. } => u32::from(config.tasks),
        _ => 0,
    });
    let clients = nodes.iter().filter_map(|it| match &it.own.role {
        Role::Gateway { config, .. } => Some(u32::from(config.clients)),
        _ => None,
    });
    oracle.clients = clients.min().unwrap();
    oracle.limits = Some(limits);
    oracle.is_torn = habits.echoes || habits.torn > 0 || weather.doubled > 0;
    oracle.remembers = limits.clients > 100;
    oracle.keeps = waiting.sum::<u32>() <= limits.done && !habits.hostile;
    oracle.buries = limits.tombstones > 100;
    oracle
}

pub(crate) fn begin(mut choices: Choices) -> World {
    let rng = &mut choices;
    let able = rng.below(4) == 0;
    let limits = limits(rng, able);
    let delay = rng.pick(&[500, 20_000, 60_000, 3_000_000]);
    let heartbeat = rng.pick(&[200, 1_000, 1_000, 0]);
    let alike = Alike {
        voting: rng.below(2),
        heartbeat,
        timeout: (heartbeat * rng.pick(&[3, 5])).max(1_000),
        resend: rng.pick(&[200, 400]),
        able,
        patient: rng.below(2) == 0 || able,
        review: rng.pick(&[500, 3_000, 10_000]),
        differs: heartbeat > 0 && rng.below(6) == 0,
    };
    let founders = rng.pick(&[1, 2, 3, 3, 3, 4, 5]);
    let nodes = nodes(rng, &limits, &alike, founders);
    let first = Configuration::of((1..=founders).map(|id| Member::new(id, 0)));
    let (weather, habits) = weather(rng, delay, &alike);
    let oracle = oracle(&nodes, limits, &weather, &habits);
    let mut hops = BTreeMap::new();
    if rng.below(2) == 0 {
        for one in 1..=5 {
            for other in one + 1..=5 {
                let far = rng.pick(&[1, 2, 7, 255]) as u8;
                hops.insert((one, other), far);
                hops.insert((other, one), far);
            }
        }
    }
    World {
        hosts: Hosts::new(choices, weather, nodes),
        habits,
        oracle,
        first,
        limits,
        specs: BTreeMap::new(),
        missing: BTreeSet::new(),
        next_function: 0,
        next_run: 0,
        asked_last: 0,
        former_period: 0,
        apart: None,
        highest: 1,
        hops,
        sent_tables: BTreeMap::new(),
        sent_by_kind: BTreeMap::new(),
        longest: BTreeMap::new(),
        forged: 0,
    }
}
