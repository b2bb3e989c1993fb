//! Operations of groups: replies of quorums, elections, and moves to other members.

use core::fmt::Write;
use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_core::{Choose, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_kgroup::Site;

use super::house::{DETECTION, House, PAPER, PING, Setting, UNIT};
use super::k2::victims;
use super::spot::Notified;
use crate::claims::stats::mean;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The number of replies and elections in a trial.
const REPLIES: usize = 10;
const ELECTIONS: u32 = 3;
/// The time over which nodes stop.
const CHURN: Span = Span::secs(40);
/// Until all that moves has arrived.
const REST: Span = Span::secs(10);

/// Groups of this size, of whose nodes `churn` percent have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operations {
    pub(super) failures: u8,
    pub(super) churn: u64,
    pub(super) replace_after: u8,
    pub(super) is_near: bool,
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            failures: PAPER.failures,
            churn: 0,
            replace_after: PAPER.replace_after,
            is_near: PAPER.is_near,
        }
    }
}

/// Means in units of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// From a report to the decision of the cluster's group.
    pub(super) quorum: f64,
    /// From the news that the leader stopped to the next leader.
    pub(super) election: f64,
    /// From the begin of an epoch until a new member has the state.
    pub(super) transfer: f64,
    /// From the last moment of the former leader to the first one of the next.
    pub(super) gap: f64,
    /// The number of groups without a leader in the end, a trial.
    pub(super) lost: f64,
    pub(super) trials: usize,
    /// The four times of each trial, in the order above.
    pub(super) each: [Vec<f64>; 4],
}

impl Operations {
    fn name(self) -> String {
        let Self {
            failures, churn, ..
        } = self;
        let size = 2 * failures + 1;
        let mut name = format!("kgroup: operations, k = {size}, {churn}% stopped");
        if self.replace_after != PAPER.replace_after {
            let _written = write!(name, ", replaced after {}", self.replace_after).is_ok();
        }
        if !self.is_near {
            name.push_str(", anywhere");
        }
        name
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: 10,
            run: Arc::new(move |seed| self.measure(seed)),
        }
    }

    fn measure(self, seed: u64) -> Result<Sample, Fault> {
        let setting = Setting {
            failures: self.failures,
            replace_after: self.replace_after,
            is_near: self.is_near,
            ..PAPER
        };
        let mut house = setting.house(seed)?;
        for victim in victims(&mut house, self.churn) {
            let after = Span(house.rng.below(CHURN.0));
            house.stop_later(victim, after)?;
        }
        if self.churn > 0 {
            house.net.run_for(CHURN + DETECTION + REST);
        }
        let mut sums = Sums::default();
        replies(&mut house, &mut sums)?;
        moves(&mut house, &mut sums)?;
        elections(&mut house, &mut sums)?;
        let groups: Vec<GroupId> = house.site.groups().collect();
        let lost = groups.iter().filter(|it| house.leader(**it).is_none());
        let lost = lost.count() as u64;
        let all = [sums.quorum, sums.election, sums.transfer, sums.gap];
        let all = all.into_iter().flat_map(|(sum, count)| [sum, count]);
        Ok(Sample(all.chain([lost]).map(Some).collect()))
    }

    pub(super) fn seen(self, samples: &Samples) -> Option<Seen> {
        let name = self.name();
        let all: Vec<&Sample> = samples.of(&name).map(|it| it.1).collect();
        let figure = |it: &Sample, at: usize| it.0.get(at).copied().flatten();
        let each = [0, 1, 2, 3].map(|at: usize| {
            let each = all.iter().filter_map(|it| {
                let count = figure(it, 2 * at + 1).filter(|it| *it > 0)?;
                Some(figure(it, 2 * at)? as f64 / count as f64 / UNIT.0 as f64)
            });
            each.collect::<Vec<f64>>()
        });
        let of = |at: usize| mean(each.get(at)?);
        let lost = all.iter().filter_map(|it| figure(it, 8));
        let lost = lost.map(|it| it as f64).collect::<Vec<f64>>();
        Some(Seen {
            quorum: of(0)?,
            election: of(1)?,
            transfer: of(2)?,
            gap: of(3)?,
            lost: mean(&lost)?,
            trials: all.len(),
            each,
        })
    }
}

/// A sum of microseconds, and of how many.
type Sum = (u64, u64);

#[derive(Default)]
struct Sums {
    quorum: Sum,
    election: Sum,
    transfer: Sum,
    gap: Sum,
}

const fn add(sum: &mut Sum, span: Span) {
    *sum = (sum.0 + span.0, sum.1 + 1);
}

/// Changes a device: its cluster's group decides on the report.
fn replies(house: &mut House, sums: &mut Sums) -> Result<(), Fault> {
    for _ in 0..REPLIES {
        let places = house.building.places.len() as u64;
        let device = NodeId(house.rng.below(places));
        if !house.net.is_up(device.0 as usize) {
            continue;
        }
        house.turn(device, "turned")?;
        let limit = house.net.now() + PING * 2;
        let received = house.until(limit, |_, it| *it == Notified::Received(device));
        let Some(received) = received else {
            continue; // Nobody leads its group, or it was turned before.
        };
        let observed = house.until(received + REST, |_, it| *it == Notified::Observed(device));
        if let Some(observed) = observed {
            add(&mut sums.quorum, observed.since(received));
        }
    }
    Ok(())
}

/// An epoch begins: all groups move at once.
fn moves(house: &mut House, sums: &mut Sums) -> Result<(), Fault> {
    house.net.drain_events();
    let begun = house.net.now();
    house.epoch(2)?;
    house.net.run_for(REST);
    let mut deposed = BTreeMap::new();
    for (at, _, event) in house.net.drain_events() {
        match event {
            Notified::Installed(_) => add(&mut sums.transfer, at.since(begun)),
            Notified::Deposed(group) => {
                deposed.insert(group, at);
            }
            Notified::Leads(group) => {
                if let Some(from) = deposed.remove(&group) {
                    add(&mut sums.gap, at.since(from));
                }
            }
            Notified::Received(_)
            | Notified::Observed(_)
            | Notified::Triggered(_)
            | Notified::Reports(_)
            | Notified::Commanded => {}
        }
    }
    Ok(())
}

/// The leaders of clusters stop, one after another, and it is known at once.
fn elections(house: &mut House, sums: &mut Sums) -> Result<(), Fault> {
    for number in 0..ELECTIONS {
        let group = Site::cluster(number);
        let Some(leader) = house.leader(group) else {
            continue;
        };
        let begun = house.net.now();
        house.stop(leader)?;
        house.ended(leader)?;
        let elected = house.until(begun + REST, |_, it| *it == Notified::Leads(group));
        if let Some(elected) = elected {
            add(&mut sums.election, elected.since(begun));
        }
        house.net.run_for(REST);
    }
    Ok(())
}
