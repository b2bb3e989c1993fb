//! One random history.

use selvedge_core::{Choose, Delta, Member, NodeId, Span};
use selvedge_replica::{Command, Config, Configuration, Lease, QuorumRule, Voter};

use selvedge_sim::histories::{Choices, History, Node, Weather};

use crate::oracle::Log;
use crate::world::{Client, Own, World};

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) applied: u64,
    pub(crate) read: u64,
    pub(crate) configured: u64,
    pub(crate) restarts: u64,
    pub(crate) dropped: u64,
    /// Histories in which peers lied, or a member could not receive the state.
    pub(crate) hopeless: u64,
    /// Histories after which every command had to be answered.
    pub(crate) alive: u64,
    /// Histories after which no message was sent any more.
    pub(crate) idle: u64,
    pub(crate) sent: u64,
    pub(crate) busiest: u64,
    pub(crate) most_asked: u64,
    pub(crate) ends: [u64; 4],
    pub(crate) size_max: usize,
}

fn config(rng: &mut Choices, round_trip: u64) -> Config {
    let resend = rng.pick(&[20, 100, 500]).max(round_trip * 11 / 10_000);
    Config::new()
        .with_resend(Span::millis(resend))
        .with_commit_delay(Span::millis(rng.pick(&[1, 50, 300])))
        .with_attempts(rng.pick(&[1, 2, 5]) as u8)
        .with_window(rng.pick(&[0, 0, 1, 4, 256]) as u32)
        .with_pending(rng.pick(&[1, 2, 256]) as u32)
        .with_peers(64)
        .with_state_limit(if rng.below(50) == 0 { 100 } else { 1 << 20 })
}

fn begin(mut choices: Choices) -> World {
    let rng = &mut choices;
    let members = 1 + rng.below(5);
    let newcomers = rng.below(4);
    // All store, none does, or some do.
    let storing = rng.below(3);
    let drift = rng.pick(&[0, 1_000, 300_000]);
    let delay = rng.pick(&[1_000, 20_000, 400_000]);
    let write = rng.pick(&[0, 5_000, 200_000]);
    let round_trip = 2 * (delay + write);
    let mut nodes = Vec::new();
    for id in 1..=members + newcomers {
        let stores = storing == 0 || (storing == 1 && rng.below(2) == 0);
        let config = config(rng, round_trip);
        let slow = if rng.below(2) == 0 {
            0
        } else {
            drift * 99 / 100
        };
        // Counted, or from a clock: half of those do not compare as newer than 0.
        let begins = rng.pick::<u32>(&[0, 0, 7, (1 << 31) - 1, 3_000_000_000]);
        let newcomer = id > members;
        let mut node = Node::new(id, begins, Own { config, newcomer });
        node.stores = stores;
        node.slow_ppm = slow;
        node.offset = rng.below(1_000_000);
        node.limit = rng.pick(&[0, 3, 100]);
        nodes.push(node);
    }
    if newcomers > 0 && rng.below(5) == 0 {
        nodes.last_mut().unwrap().never = true;
    }
    let mut first = Configuration::of((1..=members).map(|id| Member::new(id, 0)));
    if members > 2 && rng.below(3) == 0 {
        let at = rng.below(members) as usize;
        first.voters[at].is_witness = true;
    }
    first.frame_budget = rng.pick(&[127, 200, 1_400]) as u16;
    first.proposers = rng.pick(&[1, 2, 64]) as u16;
    let leased = rng.below(3) == 0;
    if leased {
        first.lease = Some(Lease {
            span: Span::millis(rng.pick(&[1, 300, 3_000])),
            drift: drift as u32,
        });
    }
    if first.check().is_err() {
        first.frame_budget = 1_400;
    }
    let stop = !leased && rng.below(2) == 0;
    let calm = rng.below(4) == 0;
    let weather = Weather {
        lost: if calm { 0 } else { rng.pick(&[0, 5, 30]) },
        doubled: rng.pick(&[0, 10]),
        delay,
        far: if calm { 0 } else { rng.pick(&[0, 0, 2]) },
        write,
        clocks_stop: stop,
        burst_first: rng.below(2) == 0,
        deltas_lost: rng.pick(&[0, 10, 50]),
        ..Weather::default()
    };
    let echoes = rng.below(3) == 0;
    let liars = rng.below(5) == 0;
    let strangers = rng.pick(&[0, 0, 0, 20, 80, 200]);
    let pad = rng.pick(&[0, 0, 50, 3_000]);
    let log = Log {
        ids: Vec::new(),
        pad: vec![0; pad as usize],
    };
    let mut world = World::new(choices, first, log, weather, nodes);
    (world.echoes, world.liars, world.strangers) = (echoes, liars, strangers);
    world.oracle.is_off = liars;
    for nth in 0..2 {
        world.clients.push(Client {
            me: Member::new(100 + nth, 0),
            number: 0,
            since: 0,
            op: None,
            tries: 0,
        });
    }
    for id in 1..=members + newcomers {
        if id <= members || world.percent(60) {
            world.start(id);
        }
    }
    world
}

/// An application's proposal of the next configuration.
pub(crate) fn next(world: &mut World) -> Configuration {
    let ids: Vec<u64> = world.nodes.keys().copied().collect();
    let witnesses = world.percent(30);
    let draw = |world: &mut World, most: u64| -> Vec<Voter> {
        let mut ids = ids.clone();
        let many = 1 + world.below(most.min(ids.len() as u64));
        (0..many)
            .map(|_| {
                let id = ids.remove(world.below(ids.len() as u64) as usize);
                let node = &world.nodes[&id];
                let (born, life) = (node.born, node.life);
                // A leader knows the present lives.
                let life = if world.percent(50) { life } else { born };
                let member = Member::new(id, life);
                if witnesses && world.percent(30) {
                    Voter::witness(member)
                } else {
                    Voter::new(member)
                }
            })
            .collect()
    };
    let voters = draw(world, 5);
    let mut it = Configuration::new(voters);
    if world.percent(15) {
        it.also = draw(world, 3);
    }
    it.frame_budget = world.first.frame_budget;
    if world.percent(10) {
        it.frame_budget = 127 + world.below(300) as u16;
    }
    it.proposers = world.first.proposers;
    it.lease = world.first.lease;
    if it.lease.is_some() && world.percent(30) {
        it.lease = None;
    }
    if world.percent(10) {
        it.quorum = QuorumRule::AtLeast(it.voters.len() as u8);
    }
    it
}

fn action(world: &mut World) {
    let ids: Vec<u64> = world.nodes.keys().copied().collect();
    let (id, other) = (world.a_node(), world.a_node());
    match world.below(58) {
        0..9 => {
            world.propose(id);
        }
        9..15 => world.read(id),
        15..18 => {
            let nth = world.below(2) as usize;
            world.relay(nth);
        }
        18..21 => {
            let after = world.below(3_000_000);
            let after = if world.percent(20) { after * 10 } else { after };
            let notified = world.percent(80);
            world.crash(id, after, notified);
        }
        21..23 => {
            let long = world.below(2_000_000);
            let long = if world.percent(20) { long * 10 } else { long };
            world.sleep(id, long);
        }
        23 => {
            world.cuts.insert((id, other));
        }
        24 => {
            world.cuts.insert((id, other));
            world.cuts.insert((other, id));
        }
        25 => world.cuts.clear(),
        26 => {
            // A leader that is cut off one-way.
            if let Some(&id) = ids
                .iter()
                .find(|&&it| world.machine(it).is_some_and(|it| it.leads()))
            {
                let out = world.percent(50);
                for &other in &ids {
                    world
                        .cuts
                        .insert(if out { (id, other) } else { (other, id) });
                }
            }
        }
        27..29 => {
            // A false suspicion, and sometimes a refutation.
            if let Some(member) = world.me(other) {
                let to: Vec<u64> = if world.percent(50) {
                    ids.clone()
                } else {
                    vec![id]
                };
                for to in to {
                    world.notify(to, Delta::Failed(member));
                    if world.percent(70) {
                        world.notify(to, Delta::Refuted(member));
                    }
                }
            }
        }
        29..34 => {
            let next = next(world);
            let leaders = ids
                .iter()
                .filter(|&&it| world.machine(it).is_some_and(|it| it.leads()));
            let mut asked: Vec<u64> = leaders.copied().collect();
            asked.push(id);
            for id in asked {
                world.command(id, Command::Configure(next.clone()));
            }
        }
        34 => {
            world.command(id, Command::Campaign);
        }
        35..37 => {
            for &it in &ids {
                world.command(it, Command::TransferLeadership(NodeId(other)));
            }
        }
        37 => world.snapshot(id),
        38 => world.start(id),
        39 if world.echoes => world.echoes(),
        40..43 if world.liars => world.slander(id),
        43 => {
            let after = world.below(3_000_000);
            world.lose_storage(id, after);
        }
        44 => world.meet_strangers(id),
        45..52 => ids.iter().for_each(|&id| world.drop_memory(id)),
        52..55 => world.part(),
        55 => world.lose_holders(),
        56 | 57 => world.leave_behind(),
        _ => {
            let member = Member::new(other, world.nodes[&other].life);
            let delta = match world.below(3) {
                0 => Delta::Suspected(member),
                1 => Delta::Joined(member),
                _ => Delta::Refuted(member),
            };
            world.notify(id, delta);
        }
    }
}

/// Runs one history.
pub(crate) fn describe(choices: Choices, all: &mut Totals) {
    let mut world = begin(choices);
    let steps = 10 + world.below(60);
    let pace = world.pick(&[1_000, 30_000, 500_000]);
    for _ in 0..steps {
        action(&mut world);
        let gap = world.below(pace);
        world.run_for(gap);
    }
    world.measure();
    world.heal();
    // A member that can receive no state may never have one.
    let hopeless = world.liars || world.narrow;
    all.hopeless += u64::from(hopeless);
    let can = !hopeless && world.keeps_quorums(None, true);
    // Each waiting command may take some round trips if a frame has room for one update alone.
    let waits = |world: &World, id| world.machine(id).map_or(0, |it| it.waiting() as u64);
    let many: u64 = world.nodes.keys().map(|&id| waits(&world, id)).sum();
    let long = if world.narrow { 5_000_000 } else { 80_000_000 } + many * 4_000_000;
    world.run_for(long);
    if world.strangers > 64 {
        // Of more nodes than `Config::peers` a later member that is gone counts as here until then.
        world.notify_all();
    }
    let ids: Vec<u64> = world.nodes.keys().copied().collect();
    for &id in &ids {
        world.propose(id);
        world.read(id);
    }
    world.run_for(long);
    world.measure();
    let is_idle = ids.iter().all(|&id| waits(&world, id) == 0);
    if !hopeless && is_idle && world.newest_can_decide() {
        // The longest time between two messages that no input causes is 64 times `resend`.
        world.run_for(100_000_000);
        let sent = world.sent;
        world.run_for(100_000_000);
        assert_eq!(world.sent - sent, 0, "messages of an idle group");
        all.idle += 1;
    }
    if can {
        for &id in &ids {
            let Some(machine) = world.machine(id) else {
                continue;
            };
            let open = world.oracle.open(machine.me());
            assert!(open.is_empty(), "not answered: {open:?}");
            assert!(!world.is_unavailable(id), "{id} said Unavailable last");
            assert_eq!(machine.waiting(), 0);
        }
        let before = world.oracle.ends[0];
        let answered = world.oracle.reads_done;
        for &id in &ids {
            world.read(id);
        }
        world.run_for(40_000_000);
        for &id in &ids {
            let took = world.propose(id);
            world.run_for(40_000_000);
            if took && world.oracle.ends[0] > before {
                break;
            }
        }
        let is_any = ids
            .iter()
            .any(|&id| world.machine(id).is_some_and(|it| it.state().is_some()));
        if is_any {
            let read = world.oracle.reads_done > answered;
            assert!(world.oracle.ends[0] > before, "nothing is applied");
            assert!(read, "nothing is read");
        }
        all.alive += 1;
    }
    if can {
        world.oracle.nothing_lost();
    }
    all.applied += world.oracle.log_len() as u64;
    all.read += world.oracle.reads_done;
    all.restarts += world.restarts;
    all.dropped += world.dropped;
    all.configured += world.configurations.len() as u64 - 1;
    all.sent += world.sent;
    all.busiest = all.busiest.max(world.busiest);
    all.most_asked = all.most_asked.max(world.most_asked);
    for (sum, it) in all.ends.iter_mut().zip(world.oracle.ends) {
        *sum += it;
    }
    all.size_max = all.size_max.max(world.size_max);
}
