//! Small meshes to begin with.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Context, Incarnation, Member, NodeId, Span};
use selvedge_sim::check::{Bounds, Model, Node, State};

use super::Witness;
use crate::message::Metadata;
use crate::{Config, Membership, Phase, Published, Reject, Selection, SuspicionLength};

/// Settings under which a mesh has finitely many states.
#[must_use]
pub fn tight() -> Config {
    Config {
        period: Span::secs(1),
        jitter: Span::ZERO,
        probe_timeout: Span::millis(500),
        relays: 1,
        selection: Selection::Plain,
        suppress_probes: false,
        exponent: 0,
        suspicion: SuspicionLength::Fixed(2),
        publish_after: 1,
        retransmit_factor: 1,
        active: None,
        passive: None,
        stretch_limit: 0,
        sync_after: 0,
        reconnect_every: 1,
        farewell_periods: 1,
        tombstone_periods: 0,
        health_limit: 0,
        hearsay_limit: 0,
        ..Config::default()
    }
}

/// The start of a mesh, and the next life of a node after a crash.
#[derive(Clone, Debug)]
pub struct Start {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of them that know each other from the start; the others join through the first
    /// one.
    pub meshed: usize,
    /// The settings of all nodes.
    pub config: Config,
    /// The rule to break, if any.
    pub rule: Option<Published>,
    /// The incarnation under which a node returns, counted from its last one: 1 is with memory, 0
    /// and below without.
    pub comeback: i32,
    /// True if a node that returns asks a seed to let it in; if not, it begins a mesh of its own.
    pub seeded: bool,
    /// The metadata of each node's first life, and of the lives after it.
    pub reported: [&'static [u8]; 2],
    /// The bounds on faults.
    pub bounds: Bounds,
}

impl Start {
    /// A start with `nodes` nodes that know each other, under [`tight`] settings and our rules.
    #[must_use]
    pub fn meshed(nodes: usize, bounds: Bounds) -> Self {
        Self {
            nodes,
            meshed: nodes,
            config: tight(),
            rule: None,
            comeback: 1,
            seeded: true,
            reported: [&[], &[]],
            bounds,
        }
    }

    /// Two nodes. A node that returns has the number of its former life, asks no node to let it in,
    /// and has metadata that loses where both are compared.
    pub(super) fn unnoticed(bounds: Bounds) -> Self {
        Self {
            comeback: 0,
            seeded: false,
            reported: [b"b", b"a"],
            ..Self::meshed(2, bounds)
        }
    }

    fn member(node: usize) -> Member {
        Member::new(node as u64, 5)
    }

    fn machine(&self, member: Member, reported: &[u8]) -> Option<Membership> {
        let made = match self.rule {
            Some(rule) => Membership::published(member, self.config.clone(), &[rule]),
            None => Membership::new(member, self.config.clone()),
        };
        let mut machine = made.ok()?;
        machine.replace_own_metadata(Metadata(reported.into()));
        Some(machine)
    }

    fn first_life(&self, node: usize) -> Option<Membership> {
        let [reported, _] = self.reported;
        let mut machine = self.machine(Self::member(node), reported)?;
        if node < self.meshed {
            let others = (0..self.meshed).filter(|&other| other != node);
            machine.begin_meshed(others.map(Self::member), reported);
        }
        Some(machine)
    }
}

impl Membership {
    /// Puts this node into a mesh with `others`, as if they had always known each other.
    fn begin_meshed(&mut self, others: impl Iterator<Item = Member>, reported: &[u8]) {
        self.presence.enter();
        for other in others {
            let weight = self.default_weight();
            let metadata = Metadata(reported.into());
            match self.list.insert(other, 0, metadata, weight, 0) {
                Ok(slot) => self.list.note(slot, |entry| entry.set_reported()),
                Err(_) => self.counters.list_full += 1,
            }
        }
    }

    fn begin_life(&mut self, seeded: bool, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.phase() == Phase::Joined {
            self.arm_period(cx);
            return Ok(());
        }
        // The seed of all nodes is the first one; its own is the second.
        let seed = NodeId(u64::from(self.own.id() == NodeId(0)));
        self.join(Vec::from_iter(seeded.then_some(seed)), cx)
    }
}

/// A model of a mesh, without properties yet.
#[must_use]
pub fn mesh(start: &Start) -> Model<Membership, Witness> {
    let machines: Vec<_> = (0..start.nodes)
        .filter_map(|node| start.first_life(node))
        .collect();
    let meshed: Vec<_> = (0..start.meshed).map(Start::member).collect();
    let comeback = start.comeback;
    let seeded = start.seeded;
    let again = start.clone();
    Model::observed(machines, Membership::me, Witness::new(start.nodes, &meshed))
        .bounds(start.bounds)
        .start(move |_, _, machine, cx| machine.begin_life(seeded, cx))
        .restart(move |_, _, remains: &Membership| {
            let step = again.comeback.cast_unsigned();
            let member = Member {
                id: remains.me().id,
                incarnation: Incarnation(remains.me().incarnation.0.wrapping_add(step)),
            };
            let [_, reported] = again.reported;
            again
                .machine(member, reported)
                .unwrap_or_else(|| remains.clone())
        })
        .show(show)
        // A number is not used twice, and not gone back behind, while a node remembers it.
        .crash_when(move |mesh, node| comeback > 0 || is_remembered(mesh, node))
        // A crashed node's list is of no use to any node.
        .remains({
            let blank = start.clone();
            move |machine| {
                blank
                    .machine(machine.me(), &[])
                    .unwrap_or_else(|| machine.clone())
            }
        })
}

/// One line: the node, and its members with standing and revision.
fn show(machine: &Membership) -> String {
    let mut line = format!("{:?} {:?}:", machine.me(), machine.phase());
    for slot in machine.list.all() {
        if let Some(entry) = machine.list.entry(slot) {
            let (member, standing) = (entry.member(), entry.standing());
            line += &format!(" {member:?} {standing:?} r{}", entry.revision());
            if let Some(Metadata(reported)) = machine.list.metadata(slot)
                && !reported.is_empty()
            {
                line += &format!(" {reported:?}");
            }
            line += ",";
        }
    }
    if let Some(probe) = machine.probing.probe() {
        let state = if probe.is_answered {
            "answered"
        } else {
            "waiting"
        };
        line += &format!(" probe of {:?} {state}", probe.target.id);
    }
    line
}

/// Returns true if another node that is up knows this life.
fn is_remembered(mesh: &State<Membership, Witness>, node: usize) -> bool {
    let Some(victim) = mesh.node(node).map(Node::member) else {
        return false;
    };
    mesh.machines().any(|other| {
        let view = other.member(victim.id);
        other.me().id != victim.id && view.is_some_and(|view| view.member == victim)
    })
}
