//! One random history.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Member, NodeId, Sha256Sortition};
use selvedge_groups::{Begin, GroupId};
use selvedge_kgroup::{Kgroup, Reject};

use crate::node::{Disk, Node};
use crate::site::{config, pick, site};
use crate::world::{Weather, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Maps,
    Buildings,
    Limits,
    Liars,
}

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) changed: u64,
    pub(crate) read: u64,
    pub(crate) watched: u64,
    pub(crate) commands: u64,
    pub(crate) reports: u64,
    pub(crate) triggers: u64,
    pub(crate) restarts: u64,
    /// Phases after which all had to be well.
    pub(crate) alive: u64,
    pub(crate) sent: u64,
    pub(crate) lies: u64,
    pub(crate) refused: u64,
    pub(crate) size_max: usize,
}

fn weather(rng: &mut ChaCha8Rng, kind: Kind) -> Weather {
    let calm = rng.below(4) == 0;
    let late = kind == Kind::Maps && rng.below(2) == 0;
    Weather {
        lost: if calm { 0 } else { pick(rng, &[0, 5, 30]) },
        doubled: pick(rng, &[0, 10]),
        delay: pick(rng, &[1_000, 20_000, 300_000]),
        far: if calm { 0 } else { pick(rng, &[0, 0, 2]) },
        latest: if late { 30_000_000 } else { 2_500_000 },
        // A device counts as down at a host that is behind with its storage.
        write: match kind {
            Kind::Maps => pick(rng, &[0, 5_000, 100_000]),
            _ => pick(rng, &[0, 1_000, 10_000]),
        },
        clocks_stop: rng.below(2) == 0,
        burst_first: rng.below(2) == 0,
        deltas_lost: pick(rng, &[0, 10, 50]),
        echoes: late && rng.below(2) == 0,
        liars: kind == Kind::Liars,
    }
}

fn begin(kind: Kind, seed: u64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rng = &mut rng;
    let many = 1 + rng.below(8);
    let site = site(rng, kind, many);
    let weather = weather(rng, kind);
    let round_trip = 2 * (weather.delay + weather.write);
    // All store, none does, or some do.
    let storing = rng.below(3);
    let drift = pick(rng, &[0, 1_000, 30_000]);
    let nodes = (1..=many).map(|id| Node {
        id,
        life: pick(rng, &[0, 0, 7, 3_000_000_000]) as u32,
        was_up: false,
        stores: storing == 0 || (storing == 1 && rng.below(2) == 0),
        config: config(rng, kind, round_trip),
        host: None,
        disk: Disk::default(),
        asleep: false,
        paused_at: None,
        paused: 0,
        offset: rng.below(1_000_000),
        slow_ppm: rng.below(drift + 1),
        limit: pick(rng, &[0, 3, 100]) as usize,
    });
    let nodes: Vec<Node> = nodes.collect();
    let maps = (0..1 + rng.below(2))
        .map(|it| GroupId::map(["lights", "doors"][it as usize], &Sha256Sortition))
        .collect();
    let seed = rng.below(u64::MAX);
    let mut world = World::new(ChaCha8Rng::seed_from_u64(seed), site, maps, weather, nodes);
    if kind == Kind::Limits {
        least_room(&mut world);
    }
    if kind == Kind::Liars {
        world.oracle.is_off = true;
        world.runs.is_off = true;
    }
    if world.percent(15) && world.failures() > 0 {
        world.never.insert(many);
        world.spent.insert(many);
    }
    for id in 1..=many {
        match world.below(5) {
            0 => {
                let after = world.below(10_000_000);
                world.at(after, crate::world::What::Restart(id));
            }
            _ => world.start(id),
        }
    }
    world.devices.slow = [0, 20][world.below(2) as usize];
    world.devices.fails = [0, 0, 20][world.below(3) as usize];
    world.devices.late = [0, 10, 40][world.below(3) as usize];
    world.devices.twice = [0, 30][world.below(2) as usize];
    world.devices.silent = [0, 10][world.below(2) as usize];
    world
}

/// Some nodes have room for no group but those that they found.
fn least_room(world: &mut World) {
    for id in world.ids() {
        if world.percent(50) {
            continue;
        }
        let node = world.nodes.get_mut(&id).unwrap();
        let mut config = node.config;
        for groups in 1..=200 {
            config.groups.groups = groups;
            let site = std::sync::Arc::clone(&world.site);
            let made = Kgroup::new(node.member(), config, site, Begin::First);
            match made {
                Ok(_) => break,
                Err(Reject::Groups(selvedge_groups::Reject::Room { needed, limit })) => {
                    assert!(usize::from(limit) < needed);
                }
                Err(other) => panic!("{other}"),
            }
        }
        node.config = config;
    }
}

fn a_device(world: &mut World) -> Option<NodeId> {
    let ids: Vec<NodeId> = world.devices.all.keys().copied().collect();
    let many = ids.len() as u64;
    (many > 0).then(|| ids[world.below(many) as usize])
}

/// Something that a host or its user does.
fn ask(world: &mut World) {
    let id = world.a_node();
    match world.below(10) {
        0..4 => world.change(id),
        4..6 => {
            // Some change one entry at once.
            let map = world.a_map();
            let last = world.oracle.last(map, "a").unwrap_or(0);
            for id in world.ids() {
                let expected = match last {
                    0 => selvedge_groups::store::Expected::Absent,
                    it => selvedge_groups::store::Expected::Version(it),
                };
                world.change_to(id, map, "a".into(), expected);
            }
        }
        6..8 => world.read(id),
        8 => world.watch(id, true),
        _ => world.watch(id, false),
    }
    if !world.devices.all.is_empty() {
        for _ in 0..world.below(3) {
            let id = world.a_node();
            world.trigger(id);
        }
    }
}

fn fault(world: &mut World) {
    let id = world.a_node();
    let other = world.a_node();
    match world.below(30) {
        0..5 => {
            let after = world.below(4_000_000);
            let told = world.percent(70);
            world.crash(id, after, told);
        }
        5 => world.blackout(),
        6..9 => {
            let long = world.below(2_000_000);
            let long = if world.percent(20) { long * 10 } else { long };
            world.sleep(id, long);
        }
        9 => {
            world.cuts.insert((id, other));
        }
        10 => world.cut_off(id),
        11 => world.part(),
        12..15 => world.cuts.clear(),
        15..17 => {
            // The leader of some group.
            let groups = world.groups();
            let group = groups[world.below(groups.len() as u64) as usize];
            if let Some(&id) = world.leaders(group).first() {
                match world.below(3) {
                    0 => world.cut_off(id),
                    1 => world.crash(id, 2_000_000, true),
                    _ => world.sleep(id, 6_000_000),
                }
            }
        }
        17..20 => {
            // A false suspicion, and sometimes a refutation.
            if let Some(me) = world.nodes[&other].host.as_ref().map(|it| it.me) {
                world.spread(Delta::Failed(me));
                if world.percent(70) {
                    world.spread(Delta::Refuted(me));
                }
            }
        }
        20..23 => {
            world.epoch += 1;
            let epoch = world.epoch;
            world.begin_epoch(epoch, 5_000_000);
        }
        23 => world.jump(id),
        24 => world.snapshot(id),
        25 => {
            let after = world.below(3_000_000);
            world.lose_storage(id, after);
        }
        26 => world.start(id),
        27 if world.weather.echoes => world.echo(),
        28 => world.stray(),
        _ => {
            let life = world.nodes[&other].life;
            let life = life.wrapping_sub(world.below(2) as u32);
            let member = Member::new(other, life);
            let delta = match world.below(4) {
                0 => Delta::Suspected(member),
                1 => Delta::Joined(member),
                2 => Delta::Left(member),
                _ => Delta::Refuted(member),
            };
            world.tell(id, delta);
        }
    }
}

fn device_fault(world: &mut World) {
    let Some(device) = a_device(world) else {
        return;
    };
    match world.below(6) {
        0 => {
            let id = world.a_node();
            world.devices.unreachable.insert((id, device));
        }
        1 => world.devices.unreachable.clear(),
        2 => {
            let it = world.devices.all.get_mut(&device).unwrap();
            it.is_up = !it.is_up;
        }
        _ => {
            let value = ["0", "9", "9", "2"][world.below(4) as usize];
            world.turn(device, value.into());
        }
    }
}

fn phase(world: &mut World, kind: Kind) {
    let steps = 10 + world.below(60);
    let pace = [10_000, 300_000, 2_000_000][world.below(3) as usize];
    for _ in 0..steps {
        match world.below(10) {
            0..5 => ask(world),
            5..8 => fault(world),
            _ => device_fault(world),
        }
        if kind == Kind::Liars {
            let id = world.a_node();
            world.slander(id);
        }
        let gap = world.below(pace);
        world.run_until(world.now + gap);
    }
    world.measure();
}

/// Runs one history.
pub(crate) fn tell(kind: Kind, seed: u64, all: &mut Totals) {
    let mut world = begin(kind, seed);
    let phases = 1 + world.below(3);
    for _ in 0..phases {
        let (lost, far, deltas) = (
            world.weather.lost,
            world.weather.far,
            world.weather.deltas_lost,
        );
        let delay = world.weather.delay;
        phase(&mut world, kind);
        if kind == Kind::Liars {
            break; // Nothing is promised of what comes after.
        }
        world.heal();
        match kind {
            Kind::Maps | Kind::Buildings => {
                world.ends_well();
                all.alive += 1;
            }
            Kind::Limits | Kind::Liars => world.run_until(world.now + 60_000_000),
        }
        world.weather.lost = lost;
        world.weather.far = far;
        world.weather.deltas_lost = deltas;
        world.weather.delay = delay;
    }
    for map in world.maps.clone() {
        world.oracle.check(map, None);
    }
    world.runs.check(&world.site.clone());
    all.changed += world.oracle.changed;
    all.read += world.oracle.read;
    all.watched += world.oracle.shown_count();
    all.commands += world.runs.commands();
    all.reports += world.runs.reports();
    all.triggers += world.runs.ids.values().sum::<u64>();
    all.restarts += world.restarts;
    all.sent += world.sent;
    all.lies += world.lies;
    all.refused += world.refused;
    all.size_max = all.size_max.max(world.size_max);
}
