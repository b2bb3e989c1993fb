//! K14: operations of groups in the paper's deployment.

use std::sync::Arc;

use selvedge_core::{Choose, NodeId, Span};
use selvedge_kgroup::Site;

use super::deployment::{Deployment, FLOORS, Floor, PIS, Rule, TRIALS, pack, unpack};
use super::house::{House, PING, UNIT};
use super::spot::Notified;
use crate::claims::plot::{Reference, over};
use crate::claims::stats::{mean, median, quantile};
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Table 4 in seconds: median, mean and 90th percentile of quorum, election and transfer.
pub(super) const TABLE: [[f64; 3]; 3] = [
    [1.0805, 1.4021, 1.4962],
    [1.1675, 1.4913, 1.9249],
    [2.0750, 2.8468, 3.1390],
];
/// The number of operations in a trial.
const REPLIES: usize = 20;
const ELECTIONS: u32 = 3;
const EPOCHS: u64 = 3;
/// Until all that moves has arrived.
const REST: Span = Span::secs(10);
/// An operation may take this many times the paper's share of a quorum.
const BAND: f64 = 1.25;

const RULES: [Rule; 2] = [Rule::Near, Rule::Hash];

fn name(floor: Floor, rule: Rule) -> String {
    format!("{}, operations", deployment(floor, rule).name())
}

const fn deployment(floor: Floor, rule: Rule) -> Deployment {
    Deployment {
        floor,
        rule,
        routines: 5,
        is_busy: false,
    }
}

/// The experiments of a claim that counts in median replies of a quorum.
pub(super) fn experiments() -> impl Iterator<Item = Experiment> {
    FLOORS.into_iter().flat_map(|(floor, _)| {
        RULES.map(|rule| Experiment {
            name: name(floor, rule),
            trials: TRIALS,
            run: Arc::new(move |seed| measure(deployment(floor, rule), seed)),
        })
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K14",
        claim: "operations of groups of 5 among 11 nodes: election takes about as long as a quorum's reply, state transfer twice as long",
        source: "CoMesh, section 7, table 4",
        unit: "times the median reply of a quorum: medians of election, transfer, grid | line",
        experiments: experiments().collect(),
        judge,
    }
}

/// Lists: from a report to the decision of the device's group, from the news that a leader stopped to the
/// next one, and from the begin of an epoch until a new member has the state.
fn measure(deployment: Deployment, seed: u64) -> Result<Sample, Fault> {
    let mut house = deployment.house(seed, None)?;
    let replies = replies(&mut house)?;
    let transfers = transfers(&mut house)?;
    // Last, because the leaders that stop do not return.
    let lists = [replies, elections(&mut house)?, transfers];
    let lists = lists.iter().flat_map(|it| pack(it));
    Ok(Sample(lists.map(Some).collect()))
}

fn replies(house: &mut House) -> Result<Vec<Span>, Fault> {
    let mut all = Vec::new();
    for nth in 0..REPLIES {
        let device = NodeId(house.rng.below(PIS as u64));
        house.net.drain_events();
        house.turn(device, &format!("turned {nth}"))?;
        let limit = house.net.now() + PING * 2;
        let received = house.until(limit, |_, it| *it == Notified::Received(device));
        let observed = house.until(limit + REST, |_, it| *it == Notified::Observed(device));
        let (Some(received), Some(observed)) = (received, observed) else {
            return Err(Fault::Outcome(format!("{device:?} is not looked after")));
        };
        all.push(observed.since(received));
    }
    Ok(all)
}

/// Leaders of devices stop, one after another, and it is known at once.
fn elections(house: &mut House) -> Result<Vec<Span>, Fault> {
    let mut all = Vec::new();
    for number in 0..ELECTIONS {
        let group = Site::cluster(number);
        let leader = house.leader(group);
        let leader = leader.ok_or_else(|| Fault::Outcome(format!("nobody leads {group:?}")))?;
        house.net.drain_events();
        let begun = house.net.now();
        house.stop(leader)?;
        house.ended(leader)?;
        let elected = house.until(begun + REST, |_, it| *it == Notified::Leads(group));
        let elected = elected.ok_or_else(|| Fault::Outcome(format!("{group:?} elects nobody")))?;
        all.push(elected.since(begun));
        house.net.run_for(REST);
    }
    Ok(all)
}

fn transfers(house: &mut House) -> Result<Vec<Span>, Fault> {
    let mut all = Vec::new();
    for number in 0..EPOCHS {
        house.net.drain_events();
        let begun = house.net.now();
        house.epoch(2 + number)?;
        house.net.run_for(REST);
        let events = house.net.drain_events();
        let installed = events.filter(|it| matches!(it.2, Notified::Installed(_)));
        all.extend(installed.map(|it| it.0.since(begun)));
    }
    Ok(all)
}

/// The operations of a floor in all trials, in units of time.
pub(super) fn operations(samples: &Samples, floor: Floor, rule: Rule) -> Option<[Vec<f64>; 3]> {
    let name = name(floor, rule);
    let lists = [0, 1, 2].map(|nth: usize| -> Vec<f64> {
        let lists = samples.of(&name).filter_map(|it| unpack(&it.1.0, nth));
        lists.flatten().map(|it| it / UNIT.0 as f64).collect()
    });
    lists.iter().all(|it| !it.is_empty()).then_some(lists)
}

/// Median, mean and 90th percentile.
fn row(list: &[f64]) -> Option<[f64; 3]> {
    Some([median(list)?, mean(list)?, quantile(list, 0.9)?])
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [paper_quorum, paper_election, paper_transfer] = TABLE.map(|it| it[0]);
    let paper = [paper_election, paper_transfer].map(|it| it / paper_quorum);
    let mut ours = Vec::new();
    let mut reasons = Vec::new();
    let mut lines = Vec::new();
    let mut is_within = true;
    let mut trials = usize::MAX;
    for (floor, title) in FLOORS {
        for rule in RULES {
            let lists = operations(samples, floor, rule)?;
            let rows = [row(&lists[0])?, row(&lists[1])?, row(&lists[2])?];
            let quorum = rows[0][0];
            let medians = rows.map(|it| it[0] / quorum);
            let kind = match rule {
                Rule::Near => "near",
                Rule::Hash | Rule::Centre => "by hash",
            };
            if rule == Rule::Near {
                ours.push(format!("{:.2}, {:.2}", medians[1], medians[2]));
                let mut pairs = medians.iter().skip(1).zip(paper);
                is_within &= pairs.all(|(ours, paper)| *ours <= BAND * paper);
            }
            let figures = rows.map(|it| it.map(|it| format!("{it:.1}")).join(" / "));
            reasons.push(format!("{title}, {kind}: {}", figures.join(" | ")));
            lines.push((format!("{title}, {kind}"), medians.to_vec()));
            trials = trials.min(samples.of(&name(floor, rule)).count());
        }
    }
    let tails = TABLE.map(|it| format!("{:.1} and {:.1}", it[1] / it[0], it[2] / it[0]));
    let names = ["quorum", "election", "transfer"].map(ToOwned::to_owned);
    let lines = lines.iter().map(|it| (it.0.as_str(), it.1.clone()));
    let drawn = (0..).zip([1.0, paper[0], paper[1]]);
    let drawn = drawn.map(|(nth, it)| Reference::at(nth, format!("paper: {it:.2}"), it));
    Some(Judgement {
        paper: format!("{:.2}, {:.2}", paper[0], paper[1]),
        ours: ours.join(" | "),
        verdict: if is_within {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "The paper's 1.08 s for a quorum is processor time of Pis that run Java; here a hop takes {} ms and a processor nothing, so all is \
             compared with the median reply of a quorum. Units of time, median / mean / 90% of quorum | election | transfer: {}. The paper's mean \
             and 90% are {} times its medians. An election is a round that also reads; after it the leader of each \
             group has its state. A transfer is from the begin of an epoch until a new member has the state: the leader asks the chosen \
             nodes whether they are here, the group decides on the next members (erratum G4), and these get the \
             state; the paper's new leader asks the former one alone. Holds when election and transfer take at most {BAND} times the paper's \
             share of a quorum.",
            UNIT.0 / 1_000,
            reasons.join("; "),
            tails.join(", "),
        ),
        trials,
        plots: vec![over(
            "Operations of groups among 11 nodes, medians",
            ("", &names),
            "times the median reply of a quorum",
            lines,
            Paper::Figures(drawn.collect()),
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_take_rounds_and_depend_on_the_seed_alone() {
        let deployment = deployment(Floor::Line, Rule::Hash);
        let sample = measure(deployment, 3).unwrap();
        assert_eq!(measure(deployment, 3).unwrap(), sample);
        let list = |nth| unpack(&sample.0, nth).unwrap();
        assert_eq!(list(0).len(), REPLIES);
        assert_eq!(list(1).len(), ELECTIONS as usize);
        // A round trip over one hop at least.
        let is_round = |it: &f64| *it >= 2.0 * UNIT.0 as f64;
        let all = [0, 1, 2].map(list).concat();
        assert!(all.iter().all(is_round), "seed 3: {all:?}");
    }
}
