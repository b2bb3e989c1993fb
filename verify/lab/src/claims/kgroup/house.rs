//! A building with running nodes: groups, devices and routines over a network (table 3).

use core::num::NonZeroU64;
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Member, NodeId, Span, Time};
use selvedge_groups as groups;
use selvedge_groups::{GroupId, Place, Policy, Selection, Start};
use selvedge_kgroup::routines::{Definition, Locking, RoutineConfig};
use selvedge_kgroup::{Command, Config, Kgroup, Site, devices};
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Routine, Step};
use selvedge_sim::network::{Action, Link, Network, Relays, Topology};

use super::lab::{Building, Layout, SPACING};
use super::spot::{Ask, Message, Notified, Spot};
use crate::claims::Fault;

/// The time that a hop takes: the paper's unit of time.
pub(super) const UNIT: Span = Span::millis(10);
/// Each node has 18 neighbours in a grid, as in K5.
const REACH: i32 = SPACING * 145 / 100;
/// 625 KB/s, shared by neighbours.
const BANDWIDTH: Option<NonZeroU64> = NonZeroU64::new(5_000_000);
/// Devices that share a group.
pub(super) const CLUSTER: usize = 25;
/// Devices of a routine, which one more triggers.
pub(super) const ROUTINE: usize = 5;
/// Every device is pinged as often.
pub(super) const PING: Span = Span::secs(1);
/// Longer than any round trip.
const ANSWER: Span = Span::millis(500);
/// The time until others learn that a node has stopped.
pub(super) const DETECTION: Span = Span::millis(500);
/// Before anything is measured.
const WARM_UP: Span = Span::secs(10);
/// The most epochs that a trial can have.
const EPOCHS: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) layout: Layout,
    pub(super) devices: usize,
    /// A group has twice as many members and one.
    pub(super) failures: u8,
    pub(super) locking: Locking,
    pub(super) routines: usize,
    /// True if a node in the middle looks after all devices.
    pub(super) has_centre: bool,
    /// The number of failed members after which others are chosen.
    pub(super) replace_after: u8,
    /// Members are mostly near, and not any.
    pub(super) is_near: bool,
    /// The number of routines for each sensor, with the same devices.
    pub(super) alike: usize,
    /// The length of an epoch, after the first one.
    pub(super) epoch: Option<Span>,
    /// The life in which nodes begin. Life 0 names a founder in any life: not for nodes that restart.
    pub(super) life: u32,
}

/// Table 3.
pub(super) const PAPER: Setting = Setting {
    layout: Layout::Grid,
    devices: 250,
    failures: 2,
    locking: Locking::Sequential,
    routines: 5,
    has_centre: false,
    replace_after: groups::Config::new().replace_after,
    is_near: true,
    alike: 1,
    epoch: None,
    life: 0,
};

pub(super) struct House {
    pub(super) setting: Setting,
    pub(super) net: Network<Spot>,
    pub(super) site: Arc<Site>,
    pub(super) building: Building,
    pub(super) rng: ChaCha8Rng,
    /// The sensor of each routine, or of each set of equal routines.
    pub(super) sensors: Vec<NodeId>,
    /// The places with nodes that have not stopped.
    pub(super) nodes: Vec<usize>,
}

fn config(replace_after: u8) -> Config {
    let replica = groups::Config::new().replica.with_resend(ANSWER);
    let devices = devices::Config::new()
        .with_ping(PING)
        .with_ping_timeout(ANSWER)
        .with_resend(PING);
    let groups = groups::Config::new()
        .with_replica(replica)
        .with_replace_after(replace_after)
        // All groups change as soon as an epoch begins.
        .with_change_delay(Span::ZERO)
        .with_stagger(Span::ZERO);
    Config::new()
        .with_groups(groups)
        .with_devices(devices)
        .with_routines(RoutineConfig::new().with_resend(PING))
}

/// Different devices at random, `count` of them.
pub(super) fn draw(rng: &mut ChaCha8Rng, devices: usize, count: usize) -> Vec<NodeId> {
    let mut all: Vec<u64> = (0..devices as u64).collect();
    let picked = (0..count.min(devices)).map(|_| {
        let at = rng.below(all.len() as u64) as usize;
        NodeId(all.swap_remove(at))
    });
    picked.collect()
}

/// Turns all devices on when the sensor is set.
pub(super) fn routine(sensor: NodeId, devices: &[NodeId], locking: Locking) -> Definition {
    let steps = devices.iter().map(|it| Step::new(*it, "on".into()));
    let definition = Definition::new(Routine {
        steps: steps.collect(),
    });
    let clause = Clause::Is(Condition {
        device: sensor,
        comparison: Comparison::Equal,
        value: "set".into(),
    });
    definition.with_clause(clause).with_locking(locking)
}

/// The place that is nearest to the middle of all.
pub(super) fn middle(places: &[Place]) -> Option<usize> {
    let count = places.len().max(1) as i64;
    let centre = [0, 1, 2].map(|axis: usize| {
        let axes = places.iter().filter_map(|it| it.0.get(axis));
        (axes.map(|it| i64::from(*it)).sum::<i64>() / count) as i32
    });
    let all = places.iter().enumerate();
    all.min_by_key(|(_, it)| it.distance_squared(Place(centre)))
        .map(|it| it.0)
}

impl Setting {
    /// A house whose groups all have leaders.
    pub(super) fn house(&self, seed: u64) -> Result<House, Fault> {
        let mut building = Building::new(seed, self.layout, self.devices, REACH);
        if self.has_centre {
            let centre = middle(&building.places);
            let place = centre.and_then(|it| building.places.get(it));
            let node = centre.zip(place);
            let node = node.map(|(at, place)| selvedge_groups::Node::new(at as u64, *place));
            building.smart = node.into_iter().collect();
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ ROUTINES);
        let policy = match self.is_near {
            true => Policy::ByPlaces,
            false => Policy::Uniform,
        };
        let selection = Selection::new()
            .with_failures(self.failures)
            .with_policy(policy);
        let simple = (0..).map(NodeId).zip(building.places.iter().copied());
        let smart = building.smart.iter().copied();
        let mut site = Site::new(selection, smart, simple, CLUSTER).map_err(Fault::network)?;
        let sensors = draw(&mut rng, self.devices, self.routines);
        for &sensor in &sensors {
            let devices = draw(&mut rng, self.devices, ROUTINE);
            for _ in 0..self.alike {
                let definition = routine(sensor, &devices, self.locking);
                site = site.with_routine(definition).map_err(Fault::network)?;
            }
        }
        House::new(*self, seed, rng, building, site, sensors)
    }
}

/// Sets routines apart from places.
const ROUTINES: u64 = 0x7275_6e73;

fn network(seed: u64, building: &Building) -> Result<Network<Spot>, Fault> {
    let edges = building.edges();
    let topology = Topology::from_edges(building.places.len(), &edges).map_err(Fault::network)?;
    let link = Link {
        min_delay: UNIT,
        max_delay: UNIT,
        bandwidth: BANDWIDTH,
        ..Link::default()
    };
    let mut net = Network::new(seed, topology, link).map_err(Fault::network)?;
    net.set_relays(Relays::All);
    net.set_size(Message::bytes);
    Ok(net)
}

impl House {
    /// A house of these nodes and routines, whose groups all have leaders.
    pub(super) fn new(
        setting: Setting,
        seed: u64,
        rng: ChaCha8Rng,
        building: Building,
        site: Site,
        sensors: Vec<NodeId>,
    ) -> Result<Self, Fault> {
        let net = network(seed, &building)?;
        let mut nodes: Vec<usize> = building.smart.iter().map(|it| it.id.0 as usize).collect();
        nodes.sort_unstable();
        let mut house = Self {
            setting,
            net,
            site: Arc::new(site),
            building,
            rng,
            sensors,
            nodes,
        };
        house.settle()?;
        Ok(house)
    }

    /// A place in its first life.
    pub(super) fn member(&self, at: usize) -> Member {
        Member::new(at as u64, self.setting.life)
    }

    /// A node's part as its life begins.
    pub(super) fn node(&self, me: Member, start: Start) -> Result<Kgroup, Fault> {
        let config = config(self.setting.replace_after);
        Kgroup::new(me, config, Arc::clone(&self.site), start).map_err(Fault::network)
    }

    fn settle(&mut self) -> Result<(), Fault> {
        for at in 0..self.building.places.len() {
            let me = self.member(at);
            let node = match self.nodes.binary_search(&at) {
                Ok(_) => Some(self.node(me, Start::Fresh)?),
                Err(_) => None,
            };
            self.net
                .add(me, Spot::new(me, node))
                .map_err(Fault::network)?;
        }
        for at in self.nodes.clone() {
            for other in self.nodes.clone() {
                if other != at {
                    self.notify(at, Delta::Joined(self.member(other)))?;
                }
            }
        }
        self.epoch(1)?;
        self.net.run_for(WARM_UP);
        for group in self.site.groups().collect::<Vec<GroupId>>() {
            if self.leader(group).is_none() {
                return Err(Fault::Outcome(format!("nobody leads {group:?}")));
            }
        }
        self.net.drain_events();
        self.setting.epoch.map_or(Ok(()), |it| self.go_on(it))
    }

    /// Epochs of this length begin, one after another.
    fn go_on(&mut self, length: Span) -> Result<(), Fault> {
        let now = self.net.now();
        for number in 0..EPOCHS {
            for node in self.nodes.clone() {
                let command = Ask::Node(Command::SetEpoch(number + 2));
                let action = Action::Command { node, command };
                let when = now + length * number;
                self.net.schedule(when, action).map_err(Fault::network)?;
            }
        }
        Ok(())
    }

    pub(super) fn notify(&mut self, at: usize, delta: Delta) -> Result<(), Fault> {
        self.net.membership(at, delta).map_err(Fault::network)
    }

    /// An epoch begins at all nodes at once.
    pub(super) fn epoch(&mut self, number: u64) -> Result<(), Fault> {
        for at in self.nodes.clone() {
            let command = Ask::Node(Command::SetEpoch(number));
            self.net.command(at, command).map_err(Fault::network)?;
        }
        Ok(())
    }

    /// Stops a node. Others learn of it later, see [`ended`](Self::ended).
    pub(super) fn stop(&mut self, at: usize) -> Result<(), Fault> {
        self.nodes.retain(|it| *it != at);
        self.net.crash(at).map_err(Fault::network)?;
        Ok(())
    }

    /// All nodes learn that one has stopped.
    pub(super) fn ended(&mut self, at: usize) -> Result<(), Fault> {
        for other in self.nodes.clone() {
            self.notify(other, Delta::Failed(self.member(at)))?;
        }
        Ok(())
    }

    /// Stops a node later; all others learn of it [`DETECTION`] after that, including nodes that
    /// stop in between.
    pub(super) fn stop_later(&mut self, at: usize, after: Span) -> Result<(), Fault> {
        self.nodes.retain(|it| *it != at);
        let when = self.net.now() + after;
        let delta = Delta::Failed(self.member(at));
        let crash = [(when, Action::Crash { node: at })];
        let smart = self.building.smart.iter().map(|it| it.id.0 as usize);
        // The notice to a node that has stopped by then is lost.
        let notified = smart
            .filter(|node| *node != at)
            .map(|node| (when + DETECTION, Action::Membership { node, delta }));
        for (when, action) in crash.into_iter().chain(notified) {
            self.net.schedule(when, action).map_err(Fault::network)?;
        }
        Ok(())
    }

    /// The node that leads a group; of several the latest.
    pub(super) fn leader(&self, group: GroupId) -> Option<usize> {
        let leads = self.nodes.iter().copied().filter(|at| {
            let node = self.net.machine(*at).and_then(Spot::node);
            node.is_some_and(|it| it.leads().any(|it| it == group))
        });
        leads.max_by_key(|at| {
            let node = self.net.machine(*at).and_then(Spot::node);
            let replica = node.and_then(|it| it.groups().replica(group));
            replica.map(|it| it.configuration().number)
        })
    }

    pub(super) fn turn(&mut self, device: NodeId, value: &str) -> Result<(), Fault> {
        let turn = Ask::Turn(value.into());
        self.net
            .command(device.0 as usize, turn)
            .map_err(Fault::network)
    }

    /// Runs until then, or until an event that is looked for; when that was.
    pub(super) fn until(
        &mut self,
        limit: Time,
        mut is_it: impl FnMut(usize, &Notified) -> bool,
    ) -> Option<Time> {
        loop {
            let found = self.net.drain_events().find(|(_, at, it)| is_it(*at, it));
            if let Some((at, ..)) = found {
                return Some(at);
            }
            if self.net.next_at().is_none_or(|at| at > limit) {
                self.net.run_until(limit);
                return None;
            }
            self.net.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use selvedge_sim::network::What;

    use super::*;

    #[test]
    fn a_node_that_stops_later_learns_of_those_that_stopped_before() {
        let setting = Setting {
            devices: 50,
            routines: 1,
            ..PAPER
        };
        let mut house = setting.house(1).unwrap();
        let [late, early] = [house.nodes[0], house.nodes[1]];
        let notified = Arc::new(Mutex::new(false));
        let sink = Arc::clone(&notified);
        house.net.trace_to(move |line| {
            if let (Some(node), What::Membership(Delta::Failed(ended))) = (line.node, &line.what)
                && (node, ended.id) == (late, NodeId(early as u64))
            {
                *sink.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
        });
        house.stop_later(late, DETECTION * 3).unwrap();
        house.stop_later(early, Span::ZERO).unwrap();
        house.net.run_for(DETECTION * 2);
        assert!(house.net.is_up(late));
        assert!(*notified.lock().unwrap(), "seed 1: {late} was not told");
    }
}
