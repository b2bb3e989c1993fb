//! One trial: Medley-F's lists are recorded, and each protocol elects once on them.

mod answers;

use core::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_celect::{Attribute, Celect, Command, Config, Event, Lowest, Message, Protocol};
use selvedge_core::{Choose, Delta, Member, Ratio, Sha256Sortition, Span, Time};
use selvedge_sim::network::{Link, MembershipTrace, Multicasts, Network, Relays, Topology};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;

pub(super) use answers::Agreement;

use super::received::{Received, node_of, without_hearsay};
use crate::claims::membership::traces::{Losses, PERIOD, Placement, Recording, member, recorded};
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The protocols of the thesis, in its order, and ours.
pub(super) const PROTOCOLS: [Protocol; 5] = [
    Protocol::Base,
    Protocol::Optimistic,
    Protocol::Preferred,
    Protocol::Hybrid,
    Protocol::Lean,
];

/// The number of periods of Medley-F in which suspicions are counted before the election.
pub(super) const HISTORY: u64 = 1_000;
/// The number of further periods in which lists are recorded: as long as [`PATIENCE`].
const TAIL: u64 = 500;
/// An election that is not over by then counts as over then, which is less than the truth.
const PATIENCE: Span = Span::millis(PERIOD * TAIL);
/// The time between two tests for quiet.
const LOOK: Span = Span::millis(100);

/// The nodes that lose more. The thesis names nodes of lower hash, but not how much more they lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bias {
    /// None.
    Even,
    /// From twice the rate at the lowest down to nothing at the highest.
    Linear,
    /// The rate, and as much again at the lowest, half as much at the next, a third at the third.
    Harmonic,
}

impl Bias {
    /// The share that is lost between nodes that lose as this one does.
    fn rate(self, rank: usize, nodes: usize, rate: f64) -> f64 {
        let (rank, last) = (rank as f64, nodes as f64 - 1.0);
        match self {
            Self::Even => rate,
            Self::Linear => 2.0 * rate * (1.0 - rank / last),
            Self::Harmonic => rate + rate / (1.0 + rank),
        }
    }
}

/// The way in which nodes learn of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// By a reliable multicast, as the thesis assumes. An appointed node is notified again until it
    /// answers.
    Reliable,
    /// By our defaults: each node acknowledges, and is notified again if it does not.
    Acknowledged,
}

const ANNOUNCEMENTS: [Announcement; 2] = [Announcement::Reliable, Announcement::Acknowledged];

/// Everything but chance that a trial depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) placement: Placement,
    pub(super) nodes: usize,
    /// Percent of messages that are lost.
    pub(super) loss: u32,
    pub(super) c: u16,
    pub(super) f: u16,
    pub(super) bias: Bias,
    /// True if every hop loses this share, instead of the whole way.
    pub(super) every_hop: bool,
    /// True if nodes count the suspicions that they begin, and not the ones they receive.
    pub(super) own_suspicions: bool,
    /// The number of periods in which suspicions are counted: [`HISTORY`], except in E12.
    pub(super) history: u64,
}

/// The figures of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// From Elect until the last node knew the final leader, in µs.
    pub(super) completion: u64,
    /// Bytes of messages, hop by hop.
    pub(super) hop_bytes: u64,
    /// The number of announcements of leaders.
    pub(super) leaders: u64,
    /// Twice the number of nodes that were suspected more often than the leader, plus the number of
    /// nodes that were suspected as often. `None` where no node leads.
    pub(super) health: Option<u64>,
    /// The number of nodes with a lower hash than the leader.
    pub(super) hash: Option<u64>,
    /// The number of nodes that do not follow the leader in the end.
    pub(super) unaware: u64,
}

/// The number of figures that are kept of each election.
const FIGURES: usize = 6;

impl From<Seen> for [Option<u64>; FIGURES] {
    fn from(seen: Seen) -> Self {
        [
            Some(seen.completion),
            Some(seen.hop_bytes),
            Some(seen.leaders),
            seen.health,
            seen.hash,
            Some(seen.unaware),
        ]
    }
}

impl Setting {
    pub(super) fn name(&self) -> String {
        let Self {
            placement,
            nodes,
            loss,
            c,
            f,
            bias,
            every_hop,
            own_suspicions,
            history,
        } = self;
        let way = if *every_hop { "a hop" } else { "a message" };
        let own = if *own_suspicions {
            ", own suspicions"
        } else {
            ""
        };
        let long = if *history == HISTORY {
            String::new()
        } else {
            format!(", {history} periods")
        };
        format!(
            "celect: {nodes} nodes {placement:?}, {loss}% lost {way}, {bias:?}, c {c}, f {f}{own}{long}"
        )
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: 100,
            run: Arc::new(move |seed| self.run(seed)),
        }
    }

    fn run(&self, seed: u64) -> Result<Sample, Fault> {
        let trial = Trial::new(self, seed)?;
        // The most lists that a node was missing in when the election began.
        let mut sample = vec![Some(trial.missing())];
        for announcement in ANNOUNCEMENTS {
            for protocol in PROTOCOLS {
                let seen = trial.elect(protocol, announcement, seed)?;
                sample.extend(<[Option<u64>; FIGURES]>::from(seen));
            }
        }
        Ok(Sample(sample))
    }

    fn losses(&self, order: &[usize]) -> Losses {
        const PARTS: f64 = 1e6;
        let rate = f64::from(self.loss) / 100.0;
        let mut nodes = vec![Ratio::NEVER; self.nodes];
        for (rank, &node) in order.iter().enumerate() {
            let all = self.bias.rate(rank, self.nodes, rate);
            let lost = if self.every_hop { all - rate } else { all };
            // A message passes both ends, so each loses less.
            let at_end = 1.0 - (1.0 - lost.clamp(0.0, 1.0)).sqrt();
            if let Some(loss) = nodes.get_mut(node) {
                *loss = Ratio::new((at_end * PARTS) as u32, PARTS as u32);
            }
        }
        let hop = if self.every_hop { self.loss } else { 0 };
        let hop = Ratio::new(hop, 100);
        Losses { hop, nodes }
    }

    /// The figures of this protocol, in the order of trials.
    pub(super) fn seen(
        &self,
        samples: &Samples,
        protocol: Protocol,
        announcement: Announcement,
    ) -> Vec<Seen> {
        let of = |all: &[Protocol]| all.iter().position(|&it| it == protocol);
        let row = announcement as usize * PROTOCOLS.len() + of(&PROTOCOLS).unwrap_or_default();
        let name = self.name();
        let seen = |(_, sample): (u32, &Sample)| {
            let figure = |nth: usize| sample.0.get(1 + row * FIGURES + nth).copied().flatten();
            Some(Seen {
                completion: figure(0)?,
                hop_bytes: figure(1)?,
                leaders: figure(2)?,
                health: figure(3),
                hash: figure(4),
                unaware: figure(5)?,
            })
        };
        samples.of(&name).filter_map(seen).collect()
    }

    /// The most lists that a node was missing in when the election began, by trial.
    pub(super) fn missing(&self, samples: &Samples) -> Vec<u64> {
        let name = self.name();
        let first = |(_, sample): (u32, &Sample)| sample.0.first().copied().flatten();
        samples.of(&name).filter_map(first).collect()
    }
}

/// The part of a trial that is the same for all protocols.
struct Trial<'a> {
    setting: &'a Setting,
    attribute: Lowest,
    /// All nodes, the lowest hash first.
    order: Vec<usize>,
    losses: Losses,
    topology: Topology,
    /// Each node's knowledge of each node until the election.
    received: Vec<Vec<Received>>,
    /// The changes that they learn after that.
    tail: MembershipTrace,
    /// The number of times that each node was suspected until the election, by all.
    suspicions: Vec<u64>,
    begin: Time,
    initiator: usize,
}

impl<'a> Trial<'a> {
    fn new(setting: &'a Setting, seed: u64) -> Result<Self, Fault> {
        let nodes = setting.nodes;
        // A different order in each trial, so that ranks do not depend on places.
        let attribute = Lowest::new(Sha256Sortition, &seed.to_le_bytes());
        let mut order: Vec<usize> = (0..nodes).collect();
        order.sort_by_key(|&node| attribute.rank(member(node)));
        let losses = setting.losses(&order);
        let periods = setting.history + TAIL;
        let Recording {
            topology,
            begin,
            lists,
            trace,
        } = recorded(setting.placement, nodes, &losses, periods, seed)?;
        let begin = begin + Span::millis(PERIOD * setting.history);
        let mut suspicions = vec![0; nodes];
        for entry in trace.entries() {
            if let Delta::Suspected(suspect) = entry.delta
                && entry.at <= begin
                && let Some(count) = suspicions.get_mut(node_of(suspect.id))
            {
                *count += 1;
            }
        }
        let trace = if setting.own_suspicions {
            without_hearsay(&trace)
        } else {
            trace
        };
        let mut received = vec![vec![Received::default(); nodes]; nodes];
        let mut tail = MembershipTrace::default();
        let mut receive = |observer: usize, delta: Delta| {
            let about = node_of(delta.member().id);
            if let Some(received) = received.get_mut(observer).and_then(|it| it.get_mut(about)) {
                received.receive(delta);
            }
        };
        for (observer, list) in lists.iter().enumerate() {
            list.iter()
                .for_each(|&it| receive(observer, Delta::Joined(it)));
        }
        for entry in trace.entries() {
            if entry.at <= begin {
                receive(node_of(entry.observer), entry.delta);
            } else {
                tail.push(entry.at, entry.observer, entry.delta);
            }
        }
        Ok(Self {
            setting,
            attribute,
            order,
            losses,
            topology,
            received,
            tail,
            suspicions,
            begin,
            initiator: ChaCha8Rng::seed_from_u64(seed).below(nodes as u64) as usize,
        })
    }

    /// The most lists that one node is missing in when the election begins.
    fn missing(&self) -> u64 {
        let missing = |about: usize| {
            let lacks = |(observer, received): &(usize, &Vec<Received>)| {
                *observer != about && received.get(about).is_some_and(|it| !it.listed)
            };
            self.received.iter().enumerate().filter(lacks).count() as u64
        };
        let all = (0..self.setting.nodes).map(missing);
        all.max().unwrap_or_default()
    }

    /// A mesh in which all nodes have their recorded knowledge, and lists continue to change.
    fn mesh(
        &self,
        protocol: Protocol,
        announcement: Announcement,
        seed: u64,
    ) -> Result<Network<Celect>, Fault> {
        let link = Link {
            min_delay: Span::micros(1),
            max_delay: Span::millis(50),
            ..Link::default()
        };
        let topology = self.topology.clone();
        let mut mesh = Network::new(seed, topology, link).map_err(Fault::network)?;
        mesh.start_at(self.begin);
        mesh.set_relays(Relays::All);
        mesh.set_multicasts(Multicasts::Reliable);
        mesh.set_size(Message::encoded_len);
        let defaults = Config::new(self.setting.c, self.setting.f)
            .with_protocol(protocol)
            // One election is measured, and no node fails.
            .with_reelect(false);
        let config = match announcement {
            Announcement::Acknowledged => defaults,
            Announcement::Reliable => defaults.with_retries(0).with_attempts(u8::MAX),
        };
        for node in 0..self.setting.nodes {
            let machine = Celect::new(member(node), config, self.attribute.clone());
            let machine = machine.map_err(Fault::network)?;
            mesh.add(member(node), machine).map_err(Fault::network)?;
        }
        self.losses.begin(&mut mesh, link)?;
        for (node, received) in self.received.iter().enumerate() {
            for (about, received) in received.iter().enumerate() {
                for delta in received.deltas(member(about)) {
                    mesh.membership(node, delta).map_err(Fault::network)?;
                }
            }
        }
        mesh.replay(&self.tail).map_err(Fault::network)?;
        Ok(mesh)
    }

    fn elect(
        &self,
        protocol: Protocol,
        announcement: Announcement,
        seed: u64,
    ) -> Result<Seen, Fault> {
        let mut mesh = self.mesh(protocol, announcement, seed)?;
        mesh.command(self.initiator, Command::Elect)
            .map_err(Fault::network)?;
        let is_over = |mesh: &Network<Celect>| {
            let knows = |(_, it): (usize, &Celect)| it.leader().is_some() && !it.is_electing();
            let waits = |node: usize| mesh.timers(node).next().is_some();
            mesh.in_flight() == 0 && mesh.machines().all(knows) && !(0..mesh.len()).any(waits)
        };
        while mesh.now() < self.begin + PATIENCE && !is_over(&mesh) {
            mesh.run_for(LOOK);
        }
        Ok(self.seen(&mesh))
    }

    /// The figures of an election that is over.
    fn seen(&self, mesh: &Network<Celect>) -> Seen {
        let mut leaders = 0;
        let mut last = None;
        // The leader that each node follows, and since when.
        let mut follows: BTreeMap<usize, (Member, Time)> = BTreeMap::new();
        for &(at, node, event) in mesh.events() {
            let Event::Elected { leader, ballot } = event else {
                continue;
            };
            leaders += u64::from(leader == member(node));
            last = last.max(Some((ballot, leader)));
            let followed = follows.entry(node).or_insert((leader, at));
            if followed.0 != leader {
                *followed = (leader, at);
            }
        }
        let leader = last.map(|(_, leader)| leader);
        let knows = |it: &&(Member, Time)| Some(it.0) == leader;
        let aware = follows.values().filter(knows).count();
        let times = follows.values().filter(knows).map(|(_, at)| *at);
        let unaware = (self.setting.nodes - aware) as u64;
        let completion = match times.max() {
            Some(at) if unaware == 0 => at.since(self.begin),
            Some(_) | None => PATIENCE,
        };
        let rank = |leader: Member| self.order.iter().position(|&it| member(it) == leader);
        Seen {
            completion: completion.0,
            hop_bytes: mesh.counters().hop_bytes,
            leaders,
            health: leader.map(|leader| self.health(node_of(leader.id))),
            hash: leader.and_then(rank).map(|rank| rank as u64),
            unaware,
        }
    }

    fn health(&self, leader: usize) -> u64 {
        let own = self.suspicions.get(leader).copied().unwrap_or_default();
        let counts = self.suspicions.iter().enumerate();
        let others = counts.filter(|(node, _)| *node != leader);
        let worse = others.map(|(_, count)| match count.cmp(&own) {
            Ordering::Greater => 2,
            Ordering::Equal => 1,
            Ordering::Less => 0,
        });
        worse.sum()
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may fail")]
mod tests {
    use super::*;

    fn setting(bias: Bias, every_hop: bool) -> Setting {
        Setting {
            placement: Placement::Random,
            nodes: 11,
            loss: 20,
            c: 1,
            f: 0,
            bias,
            every_hop,
            own_suspicions: false,
            history: HISTORY,
        }
    }

    #[test]
    fn both_ends_together_lose_the_rate() {
        let order: Vec<usize> = (0..11).rev().collect();
        for (bias, lowest, highest) in [
            (Bias::Even, 0.2, 0.2),
            (Bias::Linear, 0.4, 0.0),
            (Bias::Harmonic, 0.4, 0.2 + 0.2 / 11.0),
        ] {
            let losses = setting(bias, false).losses(&order);
            // Between two nodes that lose as this one does.
            let lost = |node: usize| {
                let it = losses.nodes[node];
                1.0 - (1.0 - f64::from(it.numerator) / f64::from(it.denominator)).powi(2)
            };
            assert!((lost(10) - lowest).abs() < 1e-5, "{bias:?}");
            assert!((lost(0) - highest).abs() < 1e-5, "{bias:?}");
            assert_eq!(losses.hop, Ratio::new(0, 100));
        }
        // The loss common to all nodes is on hops, and the rest at the ends.
        let losses = setting(Bias::Even, true).losses(&order);
        assert_eq!(losses.hop, Ratio::new(20, 100));
        assert!(losses.nodes.iter().all(|it| it.numerator == 0));
    }
}
