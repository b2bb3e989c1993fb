//! One trial: a mesh is placed, settles, loses members, and is watched until all nodes know.

use std::collections::BTreeMap;
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Machine, Ratio, Span, Time};
use selvedge_membership::{
    ActiveFeedback, Command, Config, Event, Membership, PassiveFeedback, Selection,
};
use selvedge_sim::network::{Link, Network, PAPER_CLUSTERS, Relays, Topology, TopologyError};

use super::by_hops::{ByHops, Count};
use super::mobility::Mobility;
use super::nodes::{id, member, pick, set_distances};
use crate::claims::{Experiment, Fault as Broken, Sample, Samples};

/// The protocol period in the thesis' units, of which one is a millisecond here.
pub(in crate::claims) const PERIOD: u64 = 20;
/// The sum of probe period and suspicion time: no failure is detected earlier.
pub(super) const FLOOR: u64 = 180;

/// The placement of nodes: 49 in a square of 15 m by default; nodes within 4 m are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::claims) enum Placement {
    /// At random, with the density of 49 nodes in 225 square metres for any number.
    Random,
    /// The thesis' five clusters.
    Cluster,
    /// Seven by seven.
    Grid,
}

/// The rules of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// Medley without feedback; with exponent 0 it is SWIM.
    Plain,
    /// With active feedback.
    Active,
    /// With passive feedback.
    Passive,
    /// With both.
    Both,
    /// With both, and one probe in 8 in turn: a bound on the time between two probes.
    Bounded,
    /// With active feedback, one probe in 32 in turn instead of passive feedback, no probe of
    /// a member from which a message just arrived, and suspicions sent after a second question.
    Lean,
}

impl Variant {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Active => "active",
            Self::Passive => "passive",
            Self::Both => "active and passive",
            Self::Bounded => "ours: both, 1 in 8 in turn",
            Self::Lean => "ours: active, 1 in 32 in turn, no needless probes",
        }
    }

    /// The number of probes of which one is in turn; `None` without a bound.
    pub(super) const fn every(self) -> Option<u16> {
        match self {
            Self::Plain | Self::Active | Self::Passive | Self::Both => None,
            Self::Bounded => Some(8),
            Self::Lean => Some(32),
        }
    }
}

/// The nodes that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A single node.
    One,
    /// 24 of 49, at once.
    Half,
    /// A whole cluster, at once.
    Domain,
}

/// Everything but chance that a trial depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) placement: Placement,
    pub(super) nodes: usize,
    pub(super) exponent: u8,
    pub(super) variant: Variant,
    pub(super) fault: Fault,
    pub(super) mobility: Option<Mobility>,
}

/// The loss of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::claims) struct Losses {
    /// On each hop.
    pub(in crate::claims) hop: Ratio,
    /// The loss at each node, in order, of messages that it sends and receives; nothing at nodes
    /// beyond the list.
    pub(in crate::claims) nodes: Vec<Ratio>,
}

impl From<Ratio> for Losses {
    fn from(hop: Ratio) -> Self {
        let nodes = Vec::new();
        Self { hop, nodes }
    }
}

impl Losses {
    /// From now on these losses hold, over links that are like `link` but for their loss.
    pub(in crate::claims) fn begin<M: Machine>(
        &self,
        mesh: &mut Network<M>,
        link: Link,
    ) -> Result<(), Broken> {
        let loss = self.hop;
        mesh.set_link(Link { loss, ..link })
            .map_err(Broken::network)?;
        for (node, &loss) in self.nodes.iter().enumerate() {
            mesh.set_node_loss(node, loss).map_err(Broken::network)?;
        }
        Ok(())
    }
}

/// The number of periods in which a mesh settles before it is watched: the averages of active
/// feedback need some 50, and after 200 neither detection nor traffic drifts any more.
const SETTLING: u64 = 200;
/// The number of periods in which traffic is counted.
const COUNTING: u64 = 50;
/// The number of periods after which the wait for a failure to be known to all ends.
pub(super) const PATIENCE: u64 = 4_000;
/// The range of nodes, in mm.
const RANGE: u32 = 4_000;
/// The distance below which all members weigh the same, in mm.
const UNIT_DISTANCE: u32 = 100;

/// The figures of a trial. Times in microseconds, of which 1,000 are a unit of the thesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// From the failure to its first detection; the mean over all failed nodes.
    pub(super) first: Option<u64>,
    /// The shortest of these times.
    pub(super) earliest: Option<u64>,
    /// The longest of these times.
    pub(super) latest: Option<u64>,
    /// From the first detection until all live nodes know; the mean over all failed nodes.
    pub(super) spread: Option<u64>,
    /// From the first detection until half of the live nodes know; the mean over all failed nodes.
    pub(super) half_spread: Option<u64>,
    /// The number of nodes that had not learned of a failure after [`PATIENCE`]; their times count
    /// as that.
    pub(super) unaware: u64,
    /// Transmissions of messages, hop by hop, in the time of counting.
    pub(super) hops: u64,
    /// Messages in the time of counting.
    pub(super) messages: u64,
    /// Nodes times periods in the time of counting.
    pub(super) node_periods: u64,
    /// The messages in the time of counting, by the hops to their receivers.
    pub(super) by_hops: ByHops,
}

impl From<Seen> for Sample {
    fn from(seen: Seen) -> Self {
        let mut columns = vec![
            seen.first,
            seen.earliest,
            seen.latest,
            seen.spread,
            seen.half_spread,
            Some(seen.unaware),
            Some(seen.hops),
            Some(seen.messages),
            Some(seen.node_periods),
        ];
        columns.extend(seen.by_hops.map(Some));
        Self(columns)
    }
}

impl From<&Sample> for Seen {
    fn from(sample: &Sample) -> Self {
        let column = |nth: usize| sample.0.get(nth).copied().flatten();
        let count = |nth| column(nth).unwrap_or_default();
        Self {
            first: column(0),
            earliest: column(1),
            latest: column(2),
            spread: column(3),
            half_spread: column(4),
            unaware: count(5),
            hops: count(6),
            messages: count(7),
            node_periods: count(8),
            by_hops: core::array::from_fn(|nth| count(9 + nth)),
        }
    }
}

impl Setting {
    /// A failure of one node of 49 placed at random.
    pub(super) const fn new(variant: Variant, exponent: u8) -> Self {
        Self {
            placement: Placement::Random,
            nodes: 49,
            exponent,
            variant,
            fault: Fault::One,
            mobility: None,
        }
    }

    /// The name of the setting among all experiments.
    pub(super) fn name(&self) -> String {
        let Self {
            placement,
            nodes,
            exponent,
            variant,
            fault,
            mobility,
        } = self;
        let moved = mobility.map(|it| format!(", {it}")).unwrap_or_default();
        format!(
            "membership: {nodes} nodes {placement:?}, m = {exponent}, {}, fault {fault:?}{moved}",
            variant.name()
        )
    }

    /// The setting as an experiment; `trials` is the number in the thesis.
    pub(super) fn experiment(self, trials: u32) -> Experiment {
        Experiment {
            name: self.name(),
            trials,
            run: Arc::new(move |seed| self.run(seed).map(Seen::into)),
        }
    }

    /// The figures, by number of trial.
    pub(super) fn seen(&self, samples: &Samples) -> BTreeMap<u32, Seen> {
        samples
            .of(&self.name())
            .map(|(trial, sample)| (trial, Seen::from(sample)))
            .collect()
    }

    pub(super) fn config(&self) -> Config {
        let (active, passive) = (ActiveFeedback::default(), PassiveFeedback::default());
        let (active, passive) = match self.variant {
            Variant::Plain => (None, None),
            Variant::Active | Variant::Lean => (Some(active), None),
            Variant::Passive => (None, Some(passive)),
            Variant::Both | Variant::Bounded => (Some(active), Some(passive)),
        };
        let every = self.variant.every();
        let is_lean = self.variant == Variant::Lean;
        let ours = Config::default();
        Config::thesis()
            .with_exponent(self.exponent)
            .with_unit_distance(UNIT_DISTANCE)
            .with_neighbour_distance(RANGE)
            .with_selection(every.map_or(Selection::Plain, |every| Selection::BoundedMix { every }))
            .with_suppress_probes(is_lean)
            .with_publish_after(if is_lean { ours.publish_after } else { 1 })
            .with_stretch_limit(if is_lean { ours.stretch_limit } else { 0 })
            .with_active(active)
            .with_passive(passive)
            .with_member_limit(
                u32::try_from(self.nodes)
                    .unwrap_or(u32::MAX)
                    .max(ours.member_limit),
            )
            // The list of a large mesh fits one frame: fetching it is not measured.
            .with_frame_budget(u16::MAX)
    }

    pub(super) fn topology(&self, seed: u64) -> Result<Topology, TopologyError> {
        match self.placement {
            Placement::Random => {
                // 15 m for 49 nodes; the same density for others.
                let side = (225_000_000 * self.nodes as u64 / 49).isqrt();
                let side = u32::try_from(side).unwrap_or(u32::MAX);
                Topology::random_geometric(self.nodes, side, RANGE, seed)
            }
            Placement::Cluster => Topology::clusters(&PAPER_CLUSTERS, RANGE, seed),
            // 15 m from the first to the last: 2.5 m between neighbours.
            Placement::Grid => Topology::grid(7, 7, 2_500, RANGE),
        }
    }

    /// Runs one trial.
    pub(super) fn run(&self, seed: u64) -> Result<Seen, Broken> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut mesh = self.settled(seed, Ratio::NEVER)?;
        if let Some(mobility) = self.mobility {
            mobility.carry_out(&mut mesh, &mut rng)?;
        }
        let counted = mesh.counters();
        let count = Count::begin(&mut mesh);
        mesh.run_for(Span::millis(PERIOD * COUNTING));
        let by_hops = count.end(&mut mesh);
        let now = mesh.counters();
        let mut seen = Seen {
            hops: now.hop_bytes - counted.hop_bytes,
            messages: now.bytes - counted.bytes,
            node_periods: mesh.len() as u64 * COUNTING,
            by_hops,
            ..Seen::default()
        };
        // Anywhere within a period.
        mesh.run_for(Span(rng.below(PERIOD * 1_000)));
        fail(&mut mesh, &self.victims(&mut rng), &mut seen)?;
        Ok(seen)
    }

    /// A mesh in which each node knows all others and their distances, and feedback has settled.
    pub(super) fn settled(
        &self,
        seed: u64,
        loss: impl Into<Losses>,
    ) -> Result<Network<Membership>, Broken> {
        let topology = self.topology(seed).map_err(Broken::network)?;
        self.settled_at(topology, seed, loss)
    }

    /// The same, at these places.
    pub(super) fn settled_at(
        &self,
        topology: Topology,
        seed: u64,
        loss: impl Into<Losses>,
    ) -> Result<Network<Membership>, Broken> {
        // No round trip takes longer than the thesis' two units, over any distance.
        let link = Link {
            min_delay: Span::micros(5),
            max_delay: Span::micros(25),
            ..Link::default()
        };
        let loss = loss.into();
        let mut mesh = Network::new(seed, topology, link).map_err(Broken::network)?;
        mesh.set_identity(Membership::me);
        mesh.set_size(|_| 1);
        mesh.set_relays(Relays::All);
        for node in 0..self.nodes {
            let me = member(node);
            // Few copies of updates while all join: they need not be quick, and are many.
            let config = self.config().with_retransmit_factor(1);
            let machine = Membership::new(me, config).map_err(Broken::network)?;
            mesh.add(me, machine).map_err(Broken::network)?;
        }
        for node in 0..self.nodes {
            // One after the other, each through a node that has joined.
            let seeds = (node > 0).then(|| member(node / 2).id);
            let seeds = seeds.into_iter().collect();
            mesh.command(node, Command::Join { seeds })
                .map_err(Broken::network)?;
            mesh.run_for(Span::micros(1_500));
        }
        let complete =
            |mesh: &Network<Membership>| mesh.machines().all(|(_, it)| it.live() == self.nodes);
        while !complete(&mesh) {
            mesh.run_for(Span::millis(PERIOD));
            if mesh.now() > Time::ZERO + Span::millis(PERIOD * PATIENCE) {
                return Err(Broken::NotSettled(PATIENCE));
            }
        }
        for node in 0..self.nodes {
            set_distances(&mut mesh, node, 0..self.nodes)?;
            let config = Box::new(self.config());
            mesh.command(node, Command::SetConfig(config))
                .map_err(Broken::network)?;
        }
        loss.begin(&mut mesh, link)?;
        mesh.run_for(Span::millis(PERIOD * SETTLING));
        mesh.drain_events().for_each(drop);
        Ok(mesh)
    }

    fn victims(&self, rng: &mut ChaCha8Rng) -> Vec<usize> {
        match self.fault {
            Fault::One => pick(rng, self.nodes, 1),
            Fault::Half => pick(rng, self.nodes, self.nodes / 2),
            Fault::Domain => {
                let chosen = rng.below(PAPER_CLUSTERS.len() as u64) as usize;
                let before: usize = PAPER_CLUSTERS.iter().take(chosen).map(|it| it.nodes).sum();
                let size = PAPER_CLUSTERS.get(chosen).map_or(0, |it| it.nodes);
                (before..before + size).collect()
            }
        }
    }
}

/// Lets `victims` fail and watches until all live nodes know of all of them.
fn fail(mesh: &mut Network<Membership>, victims: &[usize], seen: &mut Seen) -> Result<(), Broken> {
    let at = mesh.now();
    for &victim in victims {
        mesh.crash(victim).map_err(Broken::network)?;
    }
    let alive = mesh.len() - victims.len();
    // The time at which each survivor learned of each failure.
    let mut learned: Vec<Vec<u64>> = victims.iter().map(|_| Vec::with_capacity(alive)).collect();
    let end = at + Span::millis(PERIOD * PATIENCE);
    while mesh.now() < end && learned.iter().any(|times| times.len() < alive) {
        mesh.run_for(Span::millis(PERIOD));
        for (when, _, event) in mesh.drain_events() {
            if let Event::Changed(Delta::Failed(member)) = event
                && let Some(nth) = victims.iter().position(|&it| id(it) == member.id)
                && let Some(times) = learned.get_mut(nth)
            {
                times.push(when.since(at).0);
            }
        }
    }
    seen.unaware = learned
        .iter()
        .map(|times| (alive - times.len()) as u64)
        .sum();
    // A node that has not learned of a failure by the end counts as if it learned then: less than
    // the truth.
    for times in &mut learned {
        times.resize(alive, mesh.now().since(at).0);
    }
    let at_rank = |rank: usize| -> Option<Vec<u64>> {
        learned
            .iter()
            .map(|times| times.get(rank).copied())
            .collect()
    };
    let since_first = |rank: usize| -> Option<u64> {
        let times: Option<Vec<u64>> = learned
            .iter()
            .map(|times| Some(times.get(rank)? - times.first()?))
            .collect();
        mean(&times?)
    };
    let firsts = at_rank(0).unwrap_or_default();
    seen.first = mean(&firsts);
    seen.earliest = firsts.iter().min().copied();
    seen.latest = firsts.iter().max().copied();
    seen.spread = since_first(alive - 1);
    seen.half_spread = since_first((alive - 1) / 2);
    Ok(())
}

fn mean(times: &[u64]) -> Option<u64> {
    let sum: u64 = times.iter().sum();
    sum.checked_div(times.len() as u64)
}
