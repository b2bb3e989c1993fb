//! One random history.

use selvedge_core::{Choose, Delta, Member, NodeId, Sha256Sortition};
use selvedge_groups::{GroupId, Start};
use selvedge_kgroup::{Kgroup, Reject};

use selvedge_sim::histories::{Choices, History, Node, Weather, What};

use crate::site::{config, site};
use crate::times::Times;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Maps,
    Buildings,
    Sites,
    Times,
    /// Triggers of time in sites that change.
    TimedSites,
    Limits,
    Liars,
}

impl Kind {
    pub(crate) fn is_timed(self) -> bool {
        matches!(self, Self::Times | Self::TimedSites)
    }

    /// Weights that differ, and nodes that ask to be spared. Triggers of time and changes of sites have them
    /// together: few histories are to show enough of either by itself.
    pub(crate) fn has_unequal_nodes(self) -> bool {
        !matches!(self, Self::Times | Self::Sites)
    }

    fn changes_sites(self) -> bool {
        matches!(self, Self::Sites | Self::TimedSites)
    }
}

selvedge_sim::counts! {
    pub(crate) struct Totals {
        changed,
        read,
        watched,
        commands,
        reports,
        triggers,
        /// Occurrences of triggers of time that came without faults, and that were left out.
        started,
        late,
        restarts,
        /// Requests of nodes to be spared, or to take their share again.
        spared,
        /// Phases after which all promises of progress had to be kept.
        alive,
        /// Phases with epochs that are shorter than timeouts.
        hurried,
        /// Generations of sites, and sites that came too late.
        sites,
        overtaken,
        /// Nodes that became members of groups, and that left them.
        added,
        removed,
        /// Nodes that began again with a later site.
        rolled,
        /// Runs of definitions that a later generation brought.
        renewed,
        /// Occurrences of triggers of time that such a definition brought.
        retimed,
        /// Changes of a group's members.
        moved,
        executing,
        busiest: max u64,
        /// Messages in 30 seconds of peace.
        idle: max u64,
        sent,
        lies,
        refused,
        size_max: max usize,
    }
}

fn weather(rng: &mut Choices, kind: Kind) -> (Weather, bool) {
    let calm = rng.below(4) == 0;
    let late = match kind {
        Kind::Maps => rng.below(2) == 0,
        Kind::Buildings | Kind::Sites => rng.below(4) == 0,
        Kind::Times | Kind::TimedSites | Kind::Limits | Kind::Liars => false,
    };
    let latest = if late { 30_000_000 } else { 2_500_000 };
    let weather = Weather {
        lost: if calm { 0 } else { rng.pick(&[0, 5, 30]) },
        doubled: rng.pick(&[0, 10]),
        delay: rng.pick(&[1_000, 20_000, 300_000]),
        far: match kind {
            _ if calm => 0,
            // Answers come that are of former runs.
            Kind::Buildings | Kind::Sites if late => rng.pick(&[2, 10, 30]),
            _ => rng.pick(&[0, 0, 2]),
        },
        farthest: latest,
        latest,
        // A device counts as down at a host that is behind with its storage.
        write: match kind {
            Kind::Maps => rng.pick(&[0, 5_000, 100_000]),
            _ => rng.pick(&[0, 1_000, 10_000]),
        },
        clocks_stop: rng.below(2) == 0,
        burst_first: rng.below(2) == 0,
        deltas_lost: rng.pick(&[0, 10, 50]),
        ..Weather::default()
    };
    let echoes = kind == Kind::Maps && late && rng.below(2) == 0;
    (weather, echoes)
}

fn begin(kind: Kind, mut choices: Choices) -> World {
    let rng = &mut choices;
    let many = 1 + rng.below(8);
    let site = site(rng, kind, many);
    let (weather, echoes) = weather(rng, kind);
    let round_trip = 2 * (weather.delay + weather.write);
    // All store, none does, or some do.
    let storing = rng.below(3);
    let drift = rng.pick(&[0, 1_000, 30_000]);
    let nodes = (1..=many).map(|id| {
        let life = rng.pick(&[0, 0, 7, 3_000_000_000]);
        let stores = storing == 0 || (storing == 1 && rng.below(2) == 0);
        let mut node = Node::new(id, life, config(rng, kind, round_trip));
        node.stores = stores;
        node.offset = rng.below(1_000_000);
        node.slow_ppm = rng.below(drift + 1);
        node.limit = rng.pick(&[0, 3, 100]);
        node
    });
    let nodes = nodes.collect();
    let maps = (0..1 + rng.below(2))
        .map(|it| GroupId::map(["lights", "doors"][it as usize], &Sha256Sortition))
        .collect();
    let mut world = World::new(choices, site, maps, weather, nodes);
    world.echoes = echoes;
    world.sites.is_on = kind.changes_sites();
    let stores = world.nodes.values().any(|it| it.stores);
    world.states.forgets_parts = stores && world.failures() == 0;
    world.runs.forgets = world.states.forgets_parts;
    world.runs.is_late = world.weather.latest > crate::devices::ACT_TIMEOUT;
    world.liars = kind == Kind::Liars;
    if kind == Kind::Limits {
        least_room(&mut world);
    }
    if kind == Kind::Liars {
        world.oracle.is_off = true;
        world.runs.is_off = true;
    }
    if world.percent(15) && world.failures() > 0 {
        world.nodes.get_mut(&many).unwrap().never = true;
        world.spent.insert(many);
    }
    if kind.is_timed() {
        // A clock that is wrong counts as a node that is away.
        let away = u8::from(world.nodes.values().any(|it| it.never));
        let wrong = world.failures() - away;
        world.times = Times::begin(&mut world.hosts.choices, many, wrong);
        world.times.definitions_change = kind.changes_sites();
        for id in 1..=many {
            world.reads_clock_again(id);
        }
    }
    for id in 1..=many {
        match world.below(5) {
            0 => {
                let after = world.below(10_000_000);
                world.after(after, What::Restart(id));
            }
            _ => world.start(id),
        }
    }
    world.devices.slow = world.pick(&[0, 20]);
    world.devices.fails = world.pick(&[0, 0, 20]);
    world.devices.late = world.pick(&[0, 10, 40]);
    world.devices.twice = world.pick(&[0, 30]);
    world.devices.silent = world.pick(&[0, 10]);
    world
}

/// Gives some nodes room for no group but the groups that they found.
fn least_room(world: &mut World) {
    for id in world.ids() {
        if world.percent(50) {
            continue;
        }
        let site = std::sync::Arc::clone(&world.site);
        let node = world.nodes.get_mut(&id).unwrap();
        let mut config = node.own;
        for groups in 1..=200 {
            config.groups.groups = groups;
            let made = Kgroup::new(node.member(), config, site.clone(), Start::Fresh);
            match made {
                Ok(_) => break,
                Err(Reject::Groups(selvedge_groups::Reject::Room { needed, limit })) => {
                    assert!(usize::from(limit) < needed);
                }
                Err(other) => panic!("{other}"),
            }
        }
        node.own = config;
    }
}

/// A node that a site adds: its host, whose clock and storage have settings of their own.
pub(crate) fn another_node(world: &mut World, id: u64) -> Node<World> {
    let round_trip = 2 * (world.weather.delay + world.weather.write);
    let config = config(&mut world.hosts.choices, Kind::Sites, round_trip);
    let mut node = Node::new(id, 0, config);
    node.stores = world.percent(50);
    node.offset = world.below(1_000_000);
    node.limit = world.pick(&[0, 3, 100]);
    node
}

fn a_device(world: &mut World) -> Option<NodeId> {
    let ids: Vec<_> = world.devices.all.keys().copied().map(Some).collect();
    world.pick(&ids)
}

/// An action of a host or its user.
fn ask(world: &mut World) {
    let id = world.a_node_of_the_site();
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
            let id = world.a_node_of_the_site();
            world.trigger(id);
        }
        if world.times.is_on && world.percent(20) {
            let id = world.a_node();
            world.clock_is_set(id);
        }
    }
}

fn fault(world: &mut World) {
    let id = world.a_node();
    let other = world.a_node();
    match world.below(30) {
        0..5 => {
            let after = world.below(4_000_000);
            let notified = world.percent(70);
            world.crash(id, after, notified);
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
            let group = world.a_group();
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
            if let Some(me) = world.me(other) {
                world.spread(Delta::Failed(me));
                if world.percent(70) {
                    world.spread(Delta::Refuted(me));
                }
            }
        }
        20..23 => {
            world.epoch += 1;
            let epoch = world.epoch;
            let missed = world.pick(&[0, 20]);
            world.begin_epoch(epoch, 5_000_000, missed);
        }
        23 => world.clock_is_wrong(id),
        24 => world.snapshot(id),
        25 => {
            let after = world.below(3_000_000);
            world.lose_storage(id, after);
        }
        26 => world.start(id),
        27 if world.echoes => {
            for _ in 0..1 + world.below(20) {
                world.echo();
            }
        }
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
            if id != other {
                world.notify(id, delta);
            }
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
            let value = world.pick(&["0", "9", "9", "2"]);
            world.turn(device, value.into());
        }
    }
}

fn phase(world: &mut World, kind: Kind) {
    let steps = 10 + world.below(60);
    let pace = world.pick(&[10_000, 300_000, 2_000_000]);
    for _ in 0..steps {
        if kind.changes_sites() && world.percent(20) {
            world.site_changes();
        }
        if kind.has_unequal_nodes() && world.percent(5) {
            let id = world.a_node_of_the_site();
            world.asks_to_be_spared(id);
        }
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
        world.run_for(gap);
    }
    world.measure();
}

/// Runs one history.
pub(crate) fn describe(kind: Kind, choices: Choices, all: &mut Totals) {
    let mut world = begin(kind, choices);
    let phases = 1 + world.below(3);
    for _ in 0..phases {
        let weather = world.weather.clone();
        phase(&mut world, kind);
        if kind == Kind::Liars {
            break; // No promise covers the events after this.
        }
        world.heal();
        if kind == Kind::Buildings && world.percent(40) {
            world.hurry();
            world.heal();
            all.hurried += 1;
        }
        match kind {
            Kind::Maps | Kind::Buildings | Kind::Sites => {
                world.ends_well();
                all.alive += 1;
            }
            Kind::Times | Kind::TimedSites => {
                world.times_are_kept();
                world.sites_are_equal();
                world.requests_led_to_runs();
                world.forget_what_was_spent();
                all.alive += 1;
            }
            Kind::Limits | Kind::Liars => world.run_for(60_000_000),
        }
        world.weather = weather;
    }
    for map in world.maps.clone() {
        world.oracle.check(map, None);
    }
    world.runs.check(&world.site);
    all.add(&Totals {
        changed: world.oracle.changed,
        read: world.oracle.read,
        watched: world.oracle.shown_count(),
        commands: world.runs.commands(),
        reports: world.runs.reports(),
        triggers: world.runs.ids.values().sum(),
        started: world.times.started,
        late: world.times.late(),
        restarts: world.restarts,
        spared: world.spared,
        alive: 0,
        hurried: 0,
        sites: world.sites.generations(),
        overtaken: world.sites.overtaken,
        added: world.sites.added,
        removed: world.sites.removed,
        rolled: world.sites.rolled,
        renewed: world.runs.renewed(),
        retimed: world.times.retimed,
        moved: world.moved(),
        executing: world.states.executing,
        busiest: world.busiest,
        idle: world.idle,
        sent: world.sent,
        lies: world.lies,
        refused: world.refused,
        size_max: world.size_max,
    });
}
