//! The settings of a run.

use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Sha256Sortition, Span};
use selvedge_groups as groups;
use selvedge_groups::{GroupId, Leader, Node, Place, Selection, Start, store::StoreConfig};
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Priority, Routine, State, Step};
use selvedge_sim::Bytes;

use crate::routines::{Definition, Locking, Retrigger, RoutineConfig};
use crate::{Config, ConfigError, Delivery, Kgroup, Site, devices};

/// The time by which a command may act late.
pub(super) const ACT_TIMEOUT: Span = Span::secs(3);

/// The number of groups of a node that receives forged messages: all groups of the site, and one
/// more.
const FEW_GROUPS: u16 = 8;

/// The states of devices.
const STATES: [&str; 3] = ["on", "off", "dim"];

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) nodes: usize,
    pub(super) site: Arc<Site>,
    pub(super) map: GroupId,
    /// True if messages come that no node sent: then only limits are promised.
    pub(super) is_hostile: bool,
    /// True if nodes lose their memory while too few others have theirs: then groups may stand
    /// still.
    pub(super) is_careless: bool,
    /// True if hosts store facts: then all nodes may stop.
    pub(super) is_durable: bool,
    /// True if hosts carry out the commands of leaders at once.
    pub(super) is_prompt: bool,
    /// All other differences from run to run, and from node to node.
    variant: usize,
}

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let shape = bytes.take();
        let nodes = 3 + usize::from(shape % 3);
        let failures = match shape >> 2 & 7 {
            0 => 0,
            1 if nodes == 5 => 2,
            _ => 1,
        };
        let more = bytes.take();
        let variant = bytes.take().into();
        let mut selection = Selection::new().with_failures(failures);
        if shape & 32 == 32 {
            selection = selection.with_leader(Leader::Nearest);
        }
        let budget = if shape & 192 == 192 { 200 } else { 1_400 };
        let devices = 2 + u64::from(more % 3);
        let cluster = 1 + usize::from(more >> 2 & 3);
        let routines = 1 + usize::from(more >> 4 & 1);
        let definitions: Vec<_> = (0..routines).map(|_| definition(devices, bytes)).collect();
        let made = site(selection, nodes, (devices, cluster), budget, definitions);
        let Ok(site) = made else {
            unreachable_settings()
        };
        Self {
            nodes,
            site: Arc::new(site),
            map: GroupId::map("doors", &Sha256Sortition),
            is_prompt: more & 32 == 32,
            is_careless: more & 192 == 64,
            is_hostile: more & 192 == 128,
            is_durable: more & 192 == 192,
            variant,
        }
    }

    fn config(&self, node: usize) -> Config {
        // Settings differ from node to node.
        let pick = |of: &[u64], shift: u32| {
            let at = (self.variant >> shift).wrapping_add(node);
            let at = at.checked_rem(of.len()).unwrap_or_default();
            of.get(at).copied().unwrap_or_default()
        };
        // A node has room for all groups that it asks, with any value.
        let leader_hints = match (self.is_hostile, self.variant & 64) {
            (true, _) => 2,
            (false, 64) => 8,
            (false, _) => 256,
        };
        let groups = groups::Config::new()
            .with_patience(Span::millis(pick(&[500, 1_000], 0)))
            .with_change_delay(Span::ZERO)
            .with_stagger(Span::millis(pick(&[0, 1_000, 4_000], 1)))
            .with_replace_after(if self.variant & 128 == 128 { 2 } else { 1 })
            .with_groups(if self.is_hostile { FEW_GROUPS } else { 1_024 })
            .with_leader_hints(leader_hints)
            .with_replica(
                selvedge_replica::Config::new()
                    .with_resend(Span::millis(pick(&[150, 200, 500], 2)))
                    .with_window(pick(&[0, 3, 64], 3) as u32),
            );
        let devices = devices::Config::new()
            .with_misses(pick(&[1, 2], 4) as u8)
            .with_act_timeout(ACT_TIMEOUT)
            .with_resend(Span::millis(pick(&[300, 500], 1)));
        let resend = Span::millis(pick(&[300, 400, 1_000], 2));
        Config::new()
            .with_groups(groups)
            .with_devices(devices)
            .with_routines(RoutineConfig::new().with_resend(resend))
            .with_maps(StoreConfig::new().with_resend(resend))
    }

    pub(super) fn machine(&self, node: usize, me: Member, start: Start) -> Kgroup {
        let made = Kgroup::new(me, self.config(node), Arc::clone(&self.site), start);
        let Ok(machine) = made else {
            unreachable_settings()
        };
        machine
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = NodeId> {
        let clusters = self.site.clusters();
        clusters.flat_map(|(_, it)| it.devices.iter().copied())
    }

    /// All groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.site.groups().chain([self.map])
    }

    pub(super) fn routines(&self) -> impl Iterator<Item = GroupId> {
        self.site.routines().map(|it| Site::routine(it.0))
    }
}

pub(super) fn state(byte: u8) -> State {
    let at = usize::from(byte) % STATES.len();
    STATES.get(at).copied().unwrap_or_default().into()
}

fn device(number: u64) -> NodeId {
    NodeId(1_000 + number)
}

fn site(
    selection: Selection,
    nodes: usize,
    (devices, cluster): (u64, usize),
    budget: u16,
    definitions: Vec<Definition>,
) -> Result<Site, ConfigError> {
    let place = |at: u64| Place([i32::try_from(at * 100).unwrap_or_default(), 0, 0]);
    let nodes = (1..=nodes as u64).map(|id| Node::new(id, place(id)));
    let simple = (0..devices).map(|it| (device(it), place(it)));
    let mut site = Site::new(selection, nodes, simple, cluster)?.with_frame_budget(budget)?;
    for definition in definitions {
        site = site.with_routine(definition)?;
    }
    Ok(site)
}

/// A routine of one to three steps.
fn definition(devices: u64, bytes: &mut Bytes<'_>) -> Definition {
    let byte = bytes.take();
    let mut steps = Vec::new();
    let mut deliveries = Vec::new();
    for _ in 0..=(byte & 3).min(2) {
        let like = bytes.take();
        // No routine commands the first device: a clause that a run makes true, and false, has no
        // end.
        let commanded = device(1 + u64::from(like) % (devices - 1).max(1));
        let mut step = Step::new(commanded, state(like >> 2));
        if like & 16 == 16 {
            step.priority = Priority::BestEffort;
        }
        if like & 96 == 96 {
            step.condition = Some(condition(u64::from(like >> 3) % devices, like).into());
        }
        if byte & 4 == 4 {
            step.hold = Span::millis(100 * u64::from(like & 15));
        }
        steps.push(step);
        deliveries.push(match like & 128 {
            0 => Delivery::AtLeastOnce,
            _ => Delivery::AtMostOnce,
        });
    }
    let policy = match byte >> 3 & 3 {
        0 => Retrigger::Ignore,
        1 => Retrigger::Restart,
        _ => Retrigger::QueueOnce,
    };
    let mut definition = Definition::new(Routine { steps })
        .with_deliveries(deliveries)
        .with_retrigger(policy)
        .with_command_timeout(ACT_TIMEOUT * 3);
    if byte & 32 == 32 {
        definition = definition.with_locking(Locking::Optimistic);
    }
    if byte & 192 == 192 {
        definition = definition.with_clause(Clause::Is(condition(0, byte)));
    }
    definition
}

fn condition(number: u64, like: u8) -> Condition<State> {
    Condition {
        device: device(number),
        comparison: match like & 8 {
            0 => Comparison::Equal,
            _ => Comparison::NotEqual,
        },
        value: state(like),
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
fn unreachable_settings() -> ! {
    panic!("the settings of a run can work")
}
