//! Buildings: nodes, devices, routines, and the settings of each node.

use selvedge_core::{Choose, NodeId, Span};
use selvedge_groups::{Leader, Locality, Node, Place, Policy, Selection, Weight};
use selvedge_kgroup::routines::{Definition, Locking, Retrigger};
use selvedge_kgroup::{Config, Delivery, Site, devices};
use selvedge_routine::{Comparison, Condition, Priority, Routine, Step, trigger::Clause};
use selvedge_sim::histories::Choices;

use crate::devices::ACT_TIMEOUT;
use crate::story::Kind;
use crate::times::a_trigger;

const COMPARISONS: [Option<Comparison>; 2] = [Some(Comparison::Equal), Some(Comparison::NotEqual)];

pub(crate) fn place(rng: &mut Choices) -> Place {
    Place([rng.below(20) as i32, rng.below(20) as i32, 0])
}

pub(crate) fn selection(rng: &mut Choices, nodes: u64) -> Selection {
    let most = (nodes - 1) / 2;
    let failures = rng.below(most.min(2) + 1).max(most.min(1) * rng.below(2)) as u8;
    let mut it = Selection::new().with_failures(failures);
    if rng.below(2) == 0 {
        it = it.with_policy(Policy::Near(Locality::for_spacing(5)));
    }
    if rng.below(3) == 0 {
        it.leader = Leader::Nearest;
    }
    it
}

pub(crate) fn site(rng: &mut Choices, kind: Kind, nodes: u64) -> Site {
    let selection = selection(rng, nodes);
    let devices = match kind {
        Kind::Maps => 0,
        _ => 1 + rng.below(5),
    };
    let places: Vec<(NodeId, Place)> = (1..=devices)
        .map(|it| (NodeId(100 + it), place(rng)))
        .collect();
    let ids: Vec<NodeId> = places.iter().map(|it| it.0).collect();
    let has_weights = kind.has_unequal_nodes() && rng.below(3) == 0;
    let all: Vec<Node> = (1..=nodes)
        .map(|it| {
            let mut node = Node::new(it, place(rng));
            if has_weights {
                node.weight = weight(rng);
            }
            if rng.below(10) == 0 && selection.policy == Policy::Uniform {
                node.place = None;
            }
            node
        })
        .collect();
    let cluster = 1 + rng.below(3) as usize;
    let mut site = Site::new(selection, all, places, cluster).unwrap();
    let many = if devices == 0 { 0 } else { 1 + rng.below(4) };
    for _ in 0..many {
        let definition = match kind.is_timed() {
            true => timed_definition(rng, &ids),
            false => definition(rng, &ids),
        };
        site = site.with_routine(definition).unwrap();
    }
    // The room that a map needs for an entry's name and value comes on top of the least.
    let frame = match kind {
        Kind::Limits => rng.pick(&[150, 165]),
        // Else no definition fits that comes later.
        Kind::Sites | Kind::TimedSites => rng.pick(&[500, 1_400]),
        _ => rng.pick(&[190, 190, 300, 1_400, 1_400]),
    };
    site = site.with_frame_budget(frame).unwrap();
    if kind == Kind::Limits && devices > 0 {
        let mut limits = devices::Limits::new();
        limits.queue = rng.below(2) as u16;
        limits.routines = 1 + rng.below(3) as u16;
        limits.watchers = rng.below(2) as u16;
        limits.word = 1 + rng.below(2) as u16;
        site = site.with_limits(limits);
    }
    site
}

/// The share of the groups that a node takes.
pub(crate) fn weight(rng: &mut Choices) -> Weight {
    Weight(rng.pick(&[0, 1, 16, 16, 64, 255]))
}

/// The same with triggers of time.
pub(crate) fn timed_definition(rng: &mut Choices, devices: &[NodeId]) -> Definition {
    let mut it = definition(rng, devices);
    for _ in 0..1 + rng.below(2) {
        it = it.with_trigger(a_trigger(rng));
    }
    // Else the number of runs has no bound.
    it.clause = None;
    it.with_lateness(Span::secs(rng.pick(&[10, 60])))
}

/// A routine that uses some of these devices.
pub(crate) fn definition(rng: &mut Choices, devices: &[NodeId]) -> Definition {
    let some: Vec<NodeId> = (0..5).map(|_| rng.pick(devices)).collect();
    let steps: Vec<Step<_>> = (0..1 + rng.below(4) as usize)
        .map(|nth| {
            let word = ["1", "2", "3"][rng.below(3) as usize];
            let mut step = Step::new(some[nth], word.into());
            if rng.below(3) == 0 {
                step.priority = Priority::BestEffort;
            }
            if rng.below(4) == 0 {
                step.hold = Span::millis(rng.below(1_500));
            }
            if rng.below(4) == 0 {
                step.condition = Some(
                    Condition {
                        device: some[4],
                        comparison: rng.pick(&COMPARISONS).unwrap(),
                        value: "2".into(),
                    }
                    .into(),
                );
            }
            step
        })
        .collect();
    let deliveries: Vec<Delivery> = steps
        .iter()
        .map(|_| match rng.below(2) {
            0 => Delivery::AtLeastOnce,
            _ => Delivery::AtMostOnce,
        })
        .collect();
    let mut it = Definition::new(Routine { steps }).with_deliveries(deliveries);
    if rng.below(3) == 0 {
        it = it.with_locking(Locking::Optimistic);
    }
    it = it.with_retrigger(match rng.below(3) {
        0 => Retrigger::Ignore,
        1 => Retrigger::QueueOnce,
        _ => Retrigger::Restart,
    });
    it = it.with_command_timeout(Span::millis(rng.pick(&[500, 10_000, 60_000])));
    if rng.below(3) == 0 {
        // Nothing commands this state: only a hand makes it, and ends it.
        it = it.with_clause(Clause::Is(Condition {
            device: rng.pick(devices),
            comparison: rng.pick(&COMPARISONS).unwrap(),
            value: "9".into(),
        }));
    }
    it
}

/// The settings of a node. A round trip takes this number of microseconds.
pub(crate) fn config(rng: &mut Choices, kind: Kind, round_trip: u64) -> Config {
    let least = round_trip * 11 / 10_000;
    let mut it = Config::new();
    let resend = |rng: &mut Choices| Span::millis(rng.pick(&[20, 100, 400]).max(least));
    it.groups.replica = selvedge_replica::Config::new()
        .with_resend(resend(rng))
        .with_commit_delay(Span::millis(rng.pick(&[1, 50, 300])))
        .with_attempts(rng.pick(&[1, 2, 5]))
        .with_window(rng.pick(&[1, 4, 256]));
    it.groups.patience = Span::millis(rng.pick(&[500, 1_000, 3_000]).max(4 * least));
    it.groups.stagger = Span::millis(rng.pick(&[0, 500, 10_000]));
    it.groups.replace_after = rng.pick(&[1, 2, 2, 200]);
    it.groups.leader_hints = rng.pick(&[256, 256, 8]);
    it.maps.resend = resend(rng);
    it.routines.resend = resend(rng);
    it.routines.backoff = Span::millis(rng.pick(&[50, 200]));
    it.devices.ping = Span::millis(rng.pick(&[300, 1_000]));
    it.devices.misses = rng.pick(&[1, 3]);
    it.devices.resend = resend(rng);
    it.devices.act_timeout = Span::micros(ACT_TIMEOUT);
    if kind == Kind::Limits {
        it.groups.replica = it
            .groups
            .replica
            .with_pending(rng.pick(&[1, 2]))
            .with_peers(64);
        it.groups.leader_hints = rng.pick(&[1, 2]);
        it.maps.pending = rng.pick(&[1, 2]);
        it.devices.resend_most = it.devices.resend;
        it.routines.backoff_most = it.routines.backoff;
        it.devices.misses = 1;
    }
    it.check().unwrap();
    it
}
