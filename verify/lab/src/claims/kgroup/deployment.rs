//! The deployment of section 7: eleven Raspberry Pis, each a node and a device.
//!
//! Processor time is left out, which is most of the paper's second for a quorum: a hop takes
//! [`UNIT`](super::house::UNIT). A ratio of two delays compares with the paper's seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, NodeId, Span};
use selvedge_groups::{Locality, Place, Policy, Selection};
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{Command, Site, TriggerId};
use selvedge_routine::{Routine, Step};
use selvedge_sim::network::What;

use super::house::{House, PAPER, ROUTINE, Setting, draw, middle};
use super::k8::spread;
use super::lab::{Building, SPACING};
use super::spot::{Ask, Message};
use super::waits::Waits;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The number of Raspberry Pis.
pub(super) const PIS: usize = 11;
/// A Pi is in reach of its next ones to four sides.
const REACH: i32 = SPACING * 12 / 10;
/// The places to each side of the grid.
const SIDE: u64 = 4;
/// The places of the line up to its corner, with it.
const CORNER: i32 = 6;
/// A device has a group of its own (section 4.1): with 25 a group one node would ping all.
const CLUSTER: usize = 1;
/// An epoch, in seconds.
pub(super) const EPOCH: u64 = 60;
/// The counted time, in seconds.
pub(super) const COUNTED: u64 = 2 * EPOCH;
/// The time from one trigger of a routine to the next but one; the next is at least half as far, the
/// paper's 10 s.
const ROUND: Span = Span::secs(20);
/// The paper has at least five.
pub(super) const TRIALS: u32 = 10;
pub(super) const ROUTINES: [usize; 4] = [5, 10, 20, 40];

/// The layout of the Pis (figure 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floor {
    /// Any of the places of a grid of four by four.
    Grid,
    /// A line around a corner.
    Line,
}

/// The nodes that look after a device or a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Five, mostly near.
    Near,
    /// Five, by hash.
    Hash,
    /// A single node in the middle, for all of them.
    Centre,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deployment {
    pub(super) floor: Floor,
    pub(super) rule: Rule,
    pub(super) routines: usize,
    /// Routines are triggered.
    pub(super) is_busy: bool,
}

pub(super) const FLOORS: [(Floor, &str); 2] = [(Floor::Grid, "grid"), (Floor::Line, "line")];

impl Floor {
    fn places(self, rng: &mut ChaCha8Rng) -> Vec<Place> {
        match self {
            Self::Grid => {
                let picked = draw(rng, (SIDE * SIDE) as usize, PIS).into_iter();
                let place = |it: u64| [it % SIDE, it / SIDE].map(|it| it as i32 * SPACING);
                let places = picked.map(|it| place(it.0));
                places.map(|[x, y]| Place([x, y, 0])).collect()
            }
            Self::Line => (0..PIS as i32)
                .map(|at| [at.min(CORNER - 1), (at - CORNER + 1).max(0)])
                .map(|[x, y]| Place([x * SPACING, y * SPACING, 0]))
                .collect(),
        }
    }
}

impl Deployment {
    pub(super) fn name(&self) -> String {
        let floor = FLOORS.iter().find(|it| it.0 == self.floor);
        let floor = floor.map_or("", |it| it.1);
        let rule = match self.rule {
            Rule::Near => "k = 5, near",
            Rule::Hash => "k = 5, by hash",
            Rule::Centre => "one centre",
        };
        let busy = if self.is_busy { "" } else { ", idle" };
        let routines = self.routines;
        format!("kgroup: deployment, {floor}, {rule}, {routines} routines{busy}")
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: TRIALS,
            run: Arc::new(move |seed| self.measure(seed)),
        }
    }

    /// Builds the deployment; all groups have leaders. Epochs begin at once where they have a length.
    pub(super) fn house(&self, seed: u64, epoch: Option<Span>) -> Result<House, Fault> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut building = Building::of_nodes(self.floor.places(&mut rng), REACH);
        let has_centre = self.rule == Rule::Centre;
        if has_centre {
            let centre = middle(&building.places).unwrap_or_default() as u64;
            building.smart.retain(|it| it.id == NodeId(centre));
        }
        let setting = Setting {
            devices: PIS,
            failures: if has_centre { 0 } else { PAPER.failures },
            routines: self.routines,
            has_centre,
            is_near: self.rule == Rule::Near,
            epoch,
            ..PAPER
        };
        let policy = match self.rule {
            Rule::Near => Policy::Near(Locality::for_spacing(SPACING as u32)),
            Rule::Hash | Rule::Centre => Policy::Uniform,
        };
        let selection = Selection::new()
            .with_failures(setting.failures)
            .with_policy(policy);
        let devices = (0..).map(NodeId).zip(building.places.iter().copied());
        let smart = building.smart.iter().copied();
        let mut site = Site::new(selection, smart, devices, CLUSTER).map_err(Fault::network)?;
        for nth in 0..self.routines {
            // Neighbours differ in what they set, so that a device changes with most commands.
            let value = if nth % 2 == 0 { "on" } else { "off" };
            let devices = draw(&mut rng, PIS, ROUTINE).into_iter();
            let steps = devices.map(|it| Step::new(it, value.into())).collect();
            let definition = Definition::new(Routine { steps }).with_locking(setting.locking);
            site = site.with_routine(definition).map_err(Fault::network)?;
        }
        House::new(setting, seed, rng, building, site, Vec::new())
    }

    /// See [`Load`] and [`Waits`].
    fn measure(&self, seed: u64) -> Result<Sample, Fault> {
        let mut house = self.house(seed, Some(Span::secs(EPOCH)))?;
        let traffic = trace(&mut house);
        let mut waits = Waits::default();
        let begun = house.net.now();
        let mut triggers = match self.is_busy {
            true => triggers(&mut house),
            false => Vec::new(),
        };
        while let Some((at, routine, id)) = triggers.pop() {
            waits.run_until(&mut house, begun + at);
            let node = house.rng.below(house.nodes.len() as u64) as usize;
            let node = house.nodes.get(node).copied().unwrap_or_default();
            let (routine, id) = (Site::routine(routine), TriggerId(id));
            let command = Ask::Node(Command::Trigger { routine, id });
            house.net.command(node, command).map_err(Fault::network)?;
        }
        waits.run_until(&mut house, begun + Span::secs(COUNTED));
        let traffic = traffic.lock().unwrap_or_else(PoisonError::into_inner);
        let load = Load::of(&house.building, &traffic);
        let figures = load.0.into_iter().chain([waits.runs]);
        let lists = [waits.locks, waits.syncs];
        let lists = lists.iter().flat_map(|it| pack(it));
        Ok(Sample(figures.chain(lists).map(Some).collect()))
    }
}

/// Each routine is triggered once in each round, in its first half: the moments, the last one first.
fn triggers(house: &mut House) -> Vec<(Span, u32, u64)> {
    let mut all = Vec::new();
    for routine in 0..house.setting.routines as u32 {
        for (id, begin) in (1..).zip((0..COUNTED * 1_000_000).step_by(ROUND.0 as usize)) {
            let at = begin + house.rng.below(ROUND.0 / 2);
            all.push((Span(at), routine, id));
        }
    }
    all.sort_unstable_by_key(|it| core::cmp::Reverse(*it));
    all
}

/// Bytes from a node to another one: of pings and their answers, and of all else.
type Traffic = [BTreeMap<(usize, usize), u64>; 2];

fn trace(house: &mut House) -> Arc<Mutex<Traffic>> {
    let traffic = Arc::<Mutex<Traffic>>::default();
    let sink = Arc::clone(&traffic);
    house.net.trace_to(move |line| {
        if let (
            Some(from),
            What::Sent {
                to: Some(to),
                message,
            },
        ) = (line.node, &line.what)
        {
            let [pings, others] = &mut *sink.lock().unwrap_or_else(PoisonError::into_inner);
            let flows = match message {
                Message::Ping | Message::Reports(_) => pings,
                Message::Groups(_) | Message::Act(..) | Message::Acted(_) => others,
            };
            *flows.entry((from, to.id.0 as usize)).or_default() += message.bytes() as u64;
        }
    });
    traffic
}

/// Bytes that all nodes sent, and the busiest one: see [`Figure`].
struct Load([u64; FIGURES]);

/// A figure of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Of the mean node, end to end.
    Ends,
    /// Of the busiest node, end to end.
    MostEnds,
    /// Of the mean node, hop by hop.
    Hops,
    /// Of the busiest node, hop by hop.
    MostHops,
    /// Pings and their answers, of the mean node, end to end.
    PingEnds,
    /// The same hop by hop.
    PingHops,
    /// The same of the node that is busiest with them.
    MostPingHops,
}

/// The number of figures of a load.
const FIGURES: usize = 7;

impl Load {
    fn of(building: &Building, [pings, others]: &Traffic) -> Self {
        let [ping_ends, ping_hops] = spread(building, pings);
        let [ends, hops] = spread(building, others);
        let both = |one: &[u64], other: &[u64]| -> Vec<u64> {
            one.iter().zip(other).map(|(a, b)| a + b).collect()
        };
        let (ends, hops) = (both(&ends, &ping_ends), both(&hops, &ping_hops));
        let most = |all: &[u64]| all.iter().copied().max().unwrap_or_default();
        Self([
            ends.iter().sum(),
            most(&ends),
            hops.iter().sum(),
            most(&hops),
            ping_ends.iter().sum(),
            ping_hops.iter().sum(),
            most(&ping_hops),
        ])
    }
}

impl Figure {
    /// Divides a sum of all nodes and the counted time.
    const fn per(self) -> f64 {
        let second = COUNTED as f64;
        match self {
            Self::Ends | Self::Hops | Self::PingEnds | Self::PingHops => second * PIS as f64,
            Self::MostEnds | Self::MostHops | Self::MostPingHops => second,
        }
    }
}

/// All trials of a deployment.
pub(super) struct Seen {
    all: Vec<Sample>,
}

impl Seen {
    pub(super) fn of(samples: &Samples, deployment: Deployment) -> Option<Self> {
        let name = deployment.name();
        let all: Vec<Sample> = samples.of(&name).map(|it| it.1.clone()).collect();
        (!all.is_empty()).then_some(Self { all })
    }

    fn figures(&self, at: usize) -> impl Iterator<Item = f64> {
        let figures = self.all.iter();
        figures.filter_map(move |it| Some(it.0.get(at).copied().flatten()? as f64))
    }

    /// Bytes a second, in each trial.
    pub(super) fn load(&self, figure: Figure) -> Vec<f64> {
        let figures = self.figures(figure as usize);
        figures.map(|it| it / figure.per()).collect()
    }

    /// Runs that began, in each trial.
    pub(super) fn runs(&self) -> Vec<f64> {
        self.figures(FIGURES).collect()
    }

    fn waits(&self, nth: usize) -> Vec<f64> {
        let lists = self.all.iter();
        let lists = lists.filter_map(|it| unpack(it.0.get(FIGURES + 1..)?, nth));
        lists.flatten().collect()
    }

    /// The waits for locks, in microseconds.
    pub(super) fn locks(&self) -> Vec<f64> {
        self.waits(0)
    }

    /// The synchronization delays, in microseconds.
    pub(super) fn syncs(&self) -> Vec<f64> {
        self.waits(1)
    }

    pub(super) const fn trials(&self) -> usize {
        self.all.len()
    }
}

/// A list of spans in a sample: its length, and the spans in microseconds.
pub(super) fn pack(list: &[Span]) -> impl Iterator<Item = u64> {
    [list.len() as u64]
        .into_iter()
        .chain(list.iter().map(|it| it.0))
}

/// A list of several that were packed one after another.
pub(super) fn unpack(mut lists: &[Option<u64>], nth: usize) -> Option<Vec<f64>> {
    let mut list = None;
    for _ in 0..=nth {
        let (length, rest) = lists.split_first()?;
        let (values, others) = rest.split_at_checked((*length)? as usize)?;
        list = Some(values);
        lists = others;
    }
    let values = list?.iter().copied().flatten();
    Some(values.map(|it| it as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Deployment = Deployment {
        floor: Floor::Line,
        rule: Rule::Near,
        routines: 5,
        is_busy: true,
    };

    fn seen(deployment: Deployment) -> Seen {
        let sample = deployment.measure(3).unwrap();
        Seen { all: vec![sample] }
    }

    #[test]
    fn runs_wait_for_each_other_and_depend_on_the_seed_alone() {
        let seen = seen(LINE);
        assert_eq!(LINE.measure(3).unwrap(), seen.all[0]);
        let (locks, syncs) = (seen.locks(), seen.syncs());
        assert!(!syncs.is_empty() && syncs.len() <= locks.len(), "seed 3");
        // A run asks for further devices after the last one is free, or its group decides.
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean(&syncs) > mean(&locks), "seed 3");
        assert!(seen.runs()[0] >= syncs.len() as f64, "seed 3");
    }

    #[test]
    fn nothing_waits_where_nothing_runs() {
        let seen = seen(Deployment {
            is_busy: false,
            ..LINE
        });
        assert_eq!(seen.runs(), [0.0]);
        assert!(seen.locks().is_empty() && seen.syncs().is_empty());
    }

    /// The line's middle is four to six hops from its ends: 10 pings a second, and as many answers.
    #[test]
    fn a_centre_pings_ten_others_each_second() {
        let seen = seen(Deployment {
            rule: Rule::Centre,
            is_busy: false,
            ..LINE
        });
        let [ends, pings] = [Figure::Ends, Figure::PingEnds].map(|it| seen.load(it)[0]);
        let wanted = 20.0 * super::super::spot::DEVICE_BYTES as f64 / PIS as f64;
        assert!((pings - wanted).abs() < 0.01 * wanted, "{pings}, {wanted}");
        // A group of one sends nothing.
        assert!((ends - pings).abs() < 1e-9, "{ends}");
    }

    #[test]
    fn lists_are_found_again() {
        let lists = [vec![Span(1), Span(2)], vec![], vec![Span(3)]];
        let packed: Vec<Option<u64>> = lists.iter().flat_map(|it| pack(it)).map(Some).collect();
        assert_eq!(unpack(&packed, 0), Some(vec![1.0, 2.0]));
        assert_eq!(unpack(&packed, 1), Some(vec![]));
        assert_eq!(unpack(&packed, 2), Some(vec![3.0]));
        assert_eq!(unpack(&packed, 3), None);
    }
}
