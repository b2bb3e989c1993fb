//! K2: a client's wait while nodes stop.

use std::sync::Arc;

use selvedge_core::{Choose, Delta, Member, Span};

use super::house::{DETECTION, House, PAPER, Setting, UNIT};
use super::k1::{REST, TRIALS, one};
use super::spot::Spot;
use crate::claims::plot::{Reference, spread};
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Others take the place of each failed member, by default.
const EACH: u8 = PAPER.replace_after;
/// They take it when as many have failed as may (section 3.5).
const TOGETHER: u8 = PAPER.failures;
/// Of the smart nodes, in percent, how many failed members are replaced together, and the name of the
/// setting.
const CHURN: [(u64, u8, &str); 3] = [
    (0, EACH, "kgroup: client delay, nothing stops"),
    (40, EACH, "kgroup: client delay, 40% stop"),
    (
        40,
        TOGETHER,
        "kgroup: client delay, 40% stop, replaced together",
    ),
];
/// How many failed members are replaced together, and the name of the setting.
const FALSE: [(u8, &str); 2] = [
    (EACH, "kgroup: false report of a failure"),
    (
        TOGETHER,
        "kgroup: false report of a failure, replaced together",
    ),
];
/// A false report is taken back after that time, and its cost is counted for longer.
const MISTAKEN: Span = Span::secs(3);
const COUNTED: Span = Span::secs(10);
/// The paper's limit: this many percent longer.
const LONGER: f64 = 25.0;

pub(super) fn claim() -> Claim {
    Claim {
        id: "K2",
        claim: "client delay while 40% of the smart nodes are churned, in a grid, SLA",
        source: "CoMesh, section 6.2, figure 5",
        unit: "% longer, from the change of the device",
        experiments: CHURN
            .into_iter()
            .map(|(churn, replace_after, name)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(churn, replace_after, seed)),
            })
            .chain(FALSE.into_iter().map(|(replace_after, name)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| mistake(replace_after, seed)),
            }))
            .collect(),
        judge,
    }
}

/// The sum of all delays, how many routines began and ended, and how many did not.
fn measure(churn: u64, replace_after: u8, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        replace_after,
        ..PAPER
    };
    let mut house = setting.house(seed)?;
    let mut victims = victims(&mut house, churn);
    let count = house.sensors.len();
    let (mut sum, mut begun, mut lost) = (0, 0, 0);
    for nth in 0..count {
        let share = victims.len() / (count - nth);
        for _ in 0..share {
            let Some(victim) = victims.pop() else {
                break;
            };
            let after = house.rng.below(REST.0);
            house.stop_later(victim, Span(after))?;
        }
        match one(&mut house, nth)? {
            Some(delay) => {
                sum += delay.all.0;
                begun += 1;
            }
            None => lost += 1,
        }
        house.net.run_for(REST);
    }
    Ok(Sample([sum, begun, lost].map(Some).to_vec()))
}

/// All others take a node for failed that is not, and learn better. The messages and bytes, hop by
/// hop, that this costs in comparison with as long a time before, and the number of the node's
/// groups.
fn mistake(replace_after: u8, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        replace_after,
        ..PAPER
    };
    let mut house = setting.house(seed)?;
    let at = house.rng.below(house.nodes.len() as u64) as usize;
    let node = house.nodes.get(at).copied().unwrap_or_default();
    let count = |house: &mut House, is_mistaken: bool| -> Result<[u64; 2], Fault> {
        let before = house.net.counters();
        let me = Member::new(node as u64, 0);
        for (delta, after) in [
            (Delta::Failed(me), MISTAKEN),
            (Delta::Joined(me), COUNTED - MISTAKEN),
        ] {
            for other in house.nodes.clone() {
                if is_mistaken && other != node {
                    house.notify(other, delta)?;
                }
            }
            house.net.run_for(after);
        }
        let now = house.net.counters();
        Ok([now.sent - before.sent, now.hop_bytes - before.hop_bytes])
    };
    let still = count(&mut house, false)?;
    let mistaken = count(&mut house, true)?;
    let machine = house.net.machine(node).and_then(Spot::node);
    let groups = machine.map(|it| it.groups().groups().count() as u64);
    let [messages, bytes] = [0, 1].map(|at: usize| {
        let pair = mistaken.get(at).zip(still.get(at));
        pair.map(|(mistaken, still)| mistaken.saturating_sub(*still))
    });
    Ok(Sample(vec![messages, bytes, groups]))
}

/// A share of the smart nodes, without nodes whose devices routines need.
pub(super) fn victims(house: &mut House, percent: u64) -> Vec<usize> {
    let routines = house.site.routines();
    let mut needed: Vec<usize> = routines
        .flat_map(|it| it.1.devices())
        .map(|it| it.0 as usize)
        .collect();
    needed.sort_unstable();
    let count = house.nodes.len() as u64 * percent / 100;
    let mut all = house.nodes.clone();
    all.retain(|it| needed.binary_search(it).is_err());
    let picked = (0..count).map_while(|_| {
        let left = all.len() as u64;
        (left > 0).then(|| all.swap_remove(house.rng.below(left) as usize))
    });
    picked.collect()
}

/// A setting in all trials: the mean delay, and how many routines began and ended, or did not.
struct Churned {
    delay: f64,
    delays: Vec<f64>,
    begun: u64,
    lost: u64,
    trials: usize,
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut found = Vec::new();
    for (_, _, name) in CHURN {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        let of = |at: usize| -> u64 {
            let figures = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            figures.sum()
        };
        let delays = all.iter().filter_map(|it| {
            let sum = it.0.first().copied().flatten()?;
            let begun = it.0.get(1).copied().flatten()?;
            (begun > 0).then(|| sum as f64 / begun as f64 / UNIT.0 as f64)
        });
        let delays: Vec<f64> = delays.collect();
        found.push(Churned {
            delay: mean(&delays)?,
            delays,
            begun: of(1),
            lost: of(2),
            trials: all.len(),
        });
    }
    let mistakes = FALSE.map(|(_, name)| {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        let of = |at: usize| {
            let figures = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            mean(&figures.map(|it| it as f64).collect::<Vec<f64>>())
        };
        let [messages, bytes] = [of(0)?, of(1)?];
        Some(format!("{messages:.0} messages and {bytes:.0} bytes"))
    });
    let mistakes = mistakes.into_iter().collect::<Option<Vec<String>>>()?;
    let [still, each, together] = <[Churned; 3]>::try_from(found).ok()?;
    let longer = |it: &Churned| (it.delay / still.delay - 1.0) * 100.0;
    let names = ["0", "40", "40, replaced together"].map(ToOwned::to_owned);
    let all = [&still, &each, &together];
    Some(Judgement {
        paper: format!("{LONGER} at most"),
        ours: format!("{:.0}", longer(&each)),
        verdict: if longer(&each) <= LONGER && each.lost == 0 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From the change of the sensor to the first command at a device, with the wait for a ping: {:.0} units \
             of time without churn and {:.0} with it, of 250 devices. 8% of the smart nodes stop for good at random moments of the \
             5 s around each of five routines; others learn of it {} units later. Devices that routines need do not \
             stop, and what stopped still relays. {} of {} routines did not begin or did not end within 60 s: others take the place of each \
             member that is gone, and a group is lost if f = {} more stop before they did. \
             Where they take it when f members are gone (section 3.5; Config::replace_after) the delay is {:.0}% longer, and {} of {} do \
             not begin or end. A false report that a node has failed, taken back after {} s, costs {} by hop of the \
             network in {} s, and where members are replaced together {}. Holds when the delay is at most {LONGER}% longer and all begin and end.",
            still.delay,
            each.delay,
            DETECTION.0 / UNIT.0,
            each.lost,
            each.begun + each.lost,
            PAPER.failures,
            longer(&together),
            together.lost,
            together.begun + together.lost,
            MISTAKEN.0 / 1_000_000,
            mistakes.first()?,
            COUNTED.0 / 1_000_000,
            mistakes.get(1)?,
        ),
        trials: all.iter().map(|it| it.trials).min()?,
        plots: vec![spread(
            "Client delay under churn",
            ("% of smart nodes that stop", &names),
            "units of time",
            [("SLA, grid", all.map(|it| it.delays.clone()).to_vec())],
            Paper::Figures(vec![Reference::everywhere(
                "paper: 25% longer at most",
                still.delay * (1.0 + LONGER / 100.0),
            )]),
        )],
    })
}
