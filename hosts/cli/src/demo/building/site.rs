//! The description of the building, equal at all nodes, and their settings.

use core::fmt;

use selvedge_core::{NodeId, Span};
use selvedge_groups as groups;
use selvedge_groups::{GroupId, Node, Place, Selection, store::StoreConfig};
use selvedge_kgroup::routines::{Definition, Locking, Retrigger, RoutineConfig};
use selvedge_kgroup::{Config, ConfigError, Delivery, Site, devices};
use selvedge_replica as replica;
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Routine, State, Step};

/// The number of nodes; they are numbered from 1, and two in a row share a power domain.
pub(crate) const NODES: u64 = 10;
/// The number of nodes in a power domain: as many as may fail at once.
pub(crate) const DOMAIN: u64 = 2;
/// The number of devices in a group.
const CLUSTER: usize = 2;
/// The length of an epoch, in periods.
pub(crate) const EPOCH: u64 = 30;
/// The number of periods over which the groups' changes at the beginning of an epoch are spread.
pub(crate) const STAGGER: u64 = 5;
/// The number of periods that a member waits for a leader before it becomes a candidate.
pub(crate) const PATIENCE: u64 = 5;
/// The time that a device has for a command, in periods.
const ACT: u64 = 5;
/// The map whose entry of the same name counts runs.
pub(crate) const RUNS: &str = "runs";

pub(crate) const DOOR: NodeId = NodeId(101);
const HALL: NodeId = NodeId(102);
const BELL: NodeId = NodeId(103);
const HEATING: NodeId = NodeId(104);
const BLINDS: NodeId = NodeId(105);
const FAN: NodeId = NodeId(106);
/// The device that is added while the building runs.
pub(crate) const LAMP: NodeId = NodeId(107);

/// The devices, with their names and first states.
pub(crate) const DEVICES: [(NodeId, &str, &str); 7] = [
    (DOOR, "door", "shut"),
    (HALL, "hall light", "off"),
    (BELL, "bell", "silent"),
    (HEATING, "heating", "low"),
    (BLINDS, "blinds", "up"),
    (FAN, "fan", "off"),
    (LAMP, "lamp", "off"),
];

/// The number of groups after the addition: clusters, routines and the map.
pub(crate) const GROUPS: usize = 9;

/// The state of an open door.
pub(crate) const OPEN: &str = "open";

/// A routine of the building.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// A routine that begins when the door is open.
    Visitor,
    /// A routine that begins by hand, and locks its devices one after another.
    Evening,
    /// A routine that begins by hand, and locks its devices all at once.
    Airing,
    /// A routine that is added with its lamp, and begins by hand.
    Reading,
}

impl Which {
    /// All routines, in the order of their groups.
    pub const ALL: [Self; 4] = [Self::Visitor, Self::Evening, Self::Airing, Self::Reading];
    /// The routines with which the building begins.
    pub const FOUNDING: [Self; 3] = [Self::Visitor, Self::Evening, Self::Airing];

    /// The group that runs it.
    #[must_use]
    pub const fn group(self) -> GroupId {
        Site::routine(self as u32)
    }

    /// The routine that this group runs.
    #[must_use]
    pub fn of(group: GroupId) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.group() == group)
    }

    /// Its commands, each a device and its new state. No two commands are equal, so a command
    /// identifies its routine and step.
    #[must_use]
    pub const fn commands(self) -> [(NodeId, &'static str); 4] {
        match self {
            Self::Visitor => [
                (HALL, "bright"),
                (DOOR, "shut"),
                (HALL, "off"),
                (BELL, "rings"),
            ],
            Self::Evening => [
                (BLINDS, "half"),
                (HEATING, "high"),
                (HALL, "dim"),
                (BLINDS, "down"),
            ],
            Self::Airing => [(HEATING, "low"), (FAN, "on"), (BLINDS, "up"), (FAN, "off")],
            Self::Reading => [
                (LAMP, "bright"),
                (HALL, "soft"),
                (LAMP, "dim"),
                (LAMP, "off"),
            ],
        }
    }

    /// The routine and the step of a command.
    #[must_use]
    pub fn command(device: NodeId, value: &State) -> Option<(Self, usize)> {
        Self::ALL.into_iter().find_map(|it| {
            let mut commands = it.commands().into_iter();
            let step = commands.position(|(of, word)| of == device && *value == word.into())?;
            Some((it, step))
        })
    }

    /// The delivery of a command. A bell must not ring twice. Its command is the last, because no
    /// node may know whether it rang.
    #[must_use]
    pub fn delivery(self, step: usize) -> Delivery {
        let is_bell = self.commands().get(step).is_some_and(|it| it.0 == BELL);
        if is_bell {
            Delivery::AtMostOnce
        } else {
            Delivery::AtLeastOnce
        }
    }

    /// Returns true if runs of the two must not be active at once.
    #[must_use]
    pub fn shares_with(self, other: Self) -> bool {
        let mut own = self.commands().into_iter();
        self != other && own.any(|(device, _)| other.commands().iter().any(|it| it.0 == device))
    }

    fn definition(self) -> Definition {
        let commands = self.commands();
        let steps = commands.map(|(device, word)| Step::new(device, word.into()));
        let deliveries: Vec<_> = (0..commands.len()).map(|it| self.delivery(it)).collect();
        let definition = Definition::new(Routine {
            steps: steps.into(),
        });
        // A trigger during a run begins another run, which can be counted.
        let definition = definition
            .with_deliveries(deliveries)
            .with_retrigger(Retrigger::QueueOnce);
        match self {
            Self::Visitor => definition.with_clause(Clause::Is(Condition {
                device: DOOR,
                comparison: Comparison::Equal,
                value: OPEN.into(),
            })),
            Self::Evening | Self::Reading => definition,
            Self::Airing => definition.with_locking(Locking::Optimistic),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Visitor => "visitor",
            Self::Evening => "evening",
            Self::Airing => "airing",
            Self::Reading => "reading",
        })
    }
}

/// The nodes of the power domain of this node.
#[must_use]
pub fn domain(node: NodeId) -> [NodeId; 2] {
    let first = NodeId(node.0 - (node.0 + DOMAIN - 1) % DOMAIN);
    [first, NodeId(first.0 + 1)]
}

/// The place at this distance from the entrance, in metres.
fn place(metres: u64) -> Place {
    Place([i32::try_from(metres).unwrap_or_default() * 100, 0, 0])
}

/// The place of a device: a metre from each to the next.
pub(crate) fn place_of(device: NodeId) -> Place {
    place(device.0 - DOOR.0)
}

/// The site with which the building begins: ten nodes in a row of rooms, and all devices but the lamp.
pub(crate) fn site() -> Result<Site, ConfigError> {
    let nodes = (1..=NODES).map(|id| Node::new(id, place(id)));
    let devices = DEVICES.into_iter().map(|it| it.0);
    let devices = devices.filter(|it| *it != LAMP);
    let devices = devices.map(|it| (it, place_of(it)));
    let failures = u8::try_from(DOMAIN).unwrap_or(u8::MAX);
    let selection = Selection::new().with_failures(failures);
    let site = Site::new(selection, nodes, devices, CLUSTER)?;
    let mut routines = Which::FOUNDING.into_iter();
    routines.try_fold(site, |site, it| site.with_routine(it.definition()))
}

/// The site with the lamp and its routine.
pub(crate) fn with_lamp(site: Site) -> Result<Site, ConfigError> {
    let site = site.with_device(LAMP, place_of(LAMP))?;
    site.with_routine(Which::Reading.definition())
}

/// The defaults, except for times. Answers take well below a millisecond on loopback, or as long as
/// a busy machine lets a process wait: a question without an answer is asked again after a period.
pub(crate) fn settings(period: Span) -> Config {
    Config::new()
        .with_groups(
            groups::Config::new()
                .with_replica(
                    replica::Config::new()
                        .with_resend(Span(period.0 / 2))
                        .with_commit_delay(Span(period.0 / 10)),
                )
                .with_patience(period * PATIENCE)
                .with_change_delay(period)
                .with_stagger(period * STAGGER),
        )
        .with_devices(
            devices::Config::new()
                .with_ping(period * 3)
                .with_ping_timeout(period * 2)
                .with_misses(5)
                .with_resend(period)
                .with_resend_most(period * 4)
                .with_act_timeout(period * ACT),
        )
        .with_routines(
            RoutineConfig::new()
                .with_resend(period)
                .with_backoff(Span(period.0 / 2))
                .with_backoff_most(period * 4),
        )
        .with_maps(StoreConfig::new().with_resend(period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_command_says_which_one_it_is() {
        let all = Which::ALL.map(Which::commands).concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for routine in Which::ALL {
            for (step, (device, word)) in routine.commands().into_iter().enumerate() {
                let found = Which::command(device, &word.into());
                assert_eq!(found, Some((routine, step)));
            }
        }
        assert_eq!(Which::command(DOOR, &OPEN.into()), None);
    }

    #[test]
    fn routines_share_devices_with_some_others() {
        let shares = |one: Which| {
            let with = Which::ALL.map(|it| one.shares_with(it));
            (0..)
                .zip(with)
                .filter(|it| it.1)
                .map(|it| it.0)
                .collect::<Vec<usize>>()
        };
        assert_eq!(
            Which::ALL.map(shares),
            [vec![1, 3], vec![0, 2, 3], vec![1], vec![0, 1]]
        );
    }

    #[test]
    fn two_nodes_in_a_row_share_a_power_domain() {
        let pairs = [[1, 2], [1, 2], [3, 4], [3, 4], [5, 6]];
        for (node, pair) in (1..).zip(pairs) {
            assert_eq!(domain(NodeId(node)), pair.map(NodeId));
        }
    }

    #[test]
    fn the_site_and_its_settings_can_work() {
        let site = site().unwrap();
        assert_eq!((site.clusters().len(), site.routines().len()), (3, 3));
        assert_eq!(site.plan().map(|_| ()), Ok(()));
        let with_lamp = site.changed_to(&with_lamp(site.clone()).unwrap()).unwrap();
        assert_eq!(with_lamp.groups().count() + 1, GROUPS);
        assert!(with_lamp.definition(Which::Reading.group()).is_some());
        for millis in [50, 200, 5_000] {
            assert_eq!(settings(Span::millis(millis)).check(), Ok(()));
        }
    }

    #[test]
    fn every_time_of_the_settings_is_in_proportion_to_the_period() {
        let times = |period: Span| {
            let all = settings(period);
            let (groups, devices, routines) = (all.groups, all.devices, all.routines);
            [
                groups.replica.resend,
                groups.replica.commit_delay,
                groups.patience,
                groups.stagger,
                devices.ping,
                devices.ping_timeout,
                devices.resend,
                devices.resend_most,
                devices.act_timeout,
                routines.resend,
                routines.backoff,
                routines.backoff_most,
                all.maps.resend,
            ]
        };
        let (short, long) = (times(Span::millis(50)), times(Span::millis(5_000)));
        assert_eq!(short.map(|it| it * 100), long);
    }
}
