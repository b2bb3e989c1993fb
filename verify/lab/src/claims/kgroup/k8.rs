//! K8: the cost of having no centre.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use selvedge_core::{Choose, Span};
use selvedge_sim::network::What;

use super::house::{House, PAPER, Setting};
use super::lab::Building;
use crate::claims::plot::over;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const ROUTINES: [usize; 4] = [5, 10, 20, 40];
/// The counted time in seconds; in the middle an epoch begins.
const MINUTE: u64 = 60;
/// The number of times that each routine is triggered in it.
const ROUNDS: u64 = 3;
/// The paper's factor: this many times lower.
const LOWER: f64 = 10.0;
/// From the fewest routines to the most.
const FLAT: f64 = 1.25;

fn name(routines: usize, has_centre: bool) -> String {
    let kind = if has_centre { "one centre" } else { "k = 5" };
    format!("kgroup: traffic, {kind}, {routines} routines")
}

pub(super) fn claim() -> Claim {
    let settings = [false, true].into_iter();
    let settings = settings.flat_map(|has_centre| ROUTINES.map(|it| (it, has_centre)));
    Claim {
        id: "K8",
        claim: "bytes a node with groups of 5 against one centre: over 10 times lower, and flat in the routines",
        source: "CoMesh, section 7, figure 11",
        unit: "times lower at the busiest node, hop by hop, with 5 / 10 / 20 / 40 routines",
        experiments: settings
            .map(|(routines, has_centre)| Experiment {
                name: name(routines, has_centre),
                trials: 10,
                run: Arc::new(move |seed| measure(routines, has_centre, seed)),
            })
            .collect(),
        judge,
    }
}

type Flows = Arc<Mutex<BTreeMap<(usize, usize), u64>>>;

/// Bytes end to end of all nodes and of the busiest one, and the same hop by hop.
fn measure(routines: usize, has_centre: bool, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        routines,
        has_centre,
        failures: if has_centre { 0 } else { PAPER.failures },
        ..PAPER
    };
    let mut house = setting.house(seed)?;
    let flows = Flows::default();
    let sink = Arc::clone(&flows);
    house.net.trace_to(move |line| {
        if let (
            Some(from),
            What::Sent {
                to: Some(to),
                message,
            },
        ) = (line.node, &line.what)
        {
            let mut flows = sink.lock().unwrap_or_else(PoisonError::into_inner);
            *flows.entry((from, to.id.0 as usize)).or_default() += message.bytes() as u64;
        }
    });
    run(&mut house)?;
    let flows = flows.lock().unwrap_or_else(PoisonError::into_inner);
    let [ends, hops] = spread(&house.building, &flows);
    let figures = |all: &[u64]| {
        [
            all.iter().sum(),
            all.iter().copied().max().unwrap_or_default(),
        ]
    };
    let all = [figures(&ends), figures(&hops)];
    Ok(Sample(all.into_iter().flatten().map(Some).collect()))
}

/// A minute in which each sensor is set a few times at random moments.
fn run(house: &mut House) -> Result<(), Fault> {
    let begun = house.net.now();
    let length = MINUTE / ROUNDS * 1_000;
    let mut turns = Vec::new();
    for sensor in house.sensors.clone() {
        for round in 0..ROUNDS {
            // It is set for some seconds, so that a ping sees it, and for some it is not.
            let at = round * length + house.rng.below(length / 2);
            turns.push((at, sensor, "set"));
            turns.push((at + length / 4, sensor, "off"));
        }
    }
    turns.sort_by_key(|it| it.0);
    let mut has_moved = false;
    for (at, sensor, value) in turns {
        if at > MINUTE * 500 && !has_moved {
            has_moved = true;
            house.epoch(2)?;
        }
        house.net.run_until(begun + Span::millis(at));
        house.net.drain_events();
        house.turn(sensor, value)?;
    }
    house.net.run_until(begun + Span::secs(MINUTE));
    Ok(())
}

/// The bytes that each node sent, and that it transmitted for itself and for others, over shortest
/// paths.
pub(super) fn spread(building: &Building, flows: &BTreeMap<(usize, usize), u64>) -> [Vec<u64>; 2] {
    let count = building.places.len();
    let (mut ends, mut hops) = (vec![0; count], vec![0; count]);
    let mut ways: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (&(from, to), &bytes) in flows {
        if let Some(sum) = ends.get_mut(from) {
            *sum += bytes;
        }
        let way = ways.entry(to).or_insert_with(|| building.hops(to));
        let mut at = from;
        while at != to {
            if let Some(sum) = hops.get_mut(at) {
                *sum += bytes;
            }
            let Some(next) = building.nearer(at, way) else {
                break;
            };
            at = next;
        }
    }
    [ends, hops]
}

/// A second and a node, of all trials: all figures of a sample.
fn seen(samples: &Samples, name: &str) -> Option<([f64; 4], usize)> {
    let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
    let of = |at: usize| {
        let figures = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
        mean(
            &figures
                .map(|it| it as f64 / MINUTE as f64)
                .collect::<Vec<f64>>(),
        )
    };
    let nodes = PAPER.devices as f64;
    let figures = [of(0)? / nodes, of(1)?, of(2)? / nodes, of(3)?];
    Some((figures, all.len()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let line = |has_centre: bool| {
        let all = ROUTINES
            .iter()
            .map(|it| seen(samples, &name(*it, has_centre)));
        all.collect::<Option<Vec<([f64; 4], usize)>>>()
    };
    let (groups, centre) = (line(false)?, line(true)?);
    let of = |all: &[([f64; 4], usize)], at: usize| -> Vec<f64> {
        all.iter().filter_map(|it| it.0.get(at).copied()).collect()
    };
    let times = |at: usize| -> Vec<f64> {
        let pairs = of(&centre, at).into_iter().zip(of(&groups, at));
        pairs.map(|(centre, groups)| centre / groups).collect()
    };
    let words = |all: &[f64], digits: usize| {
        let all: Vec<String> = all.iter().map(|it| format!("{it:.digits$}")).collect();
        all.join(" / ")
    };
    let busiest = of(&groups, 3);
    let growth = busiest.last()? / busiest.first()?;
    let is_lower = times(3).iter().all(|it| *it > LOWER);
    let names = ROUTINES.map(|it| it.to_string());
    // The figures of the busiest node, and of the mean.
    let plot = |title: &str, names: &[String], [busiest, mean]: [usize; 2]| {
        let lines = [
            ("k = 5, busiest", of(&groups, busiest)),
            ("one centre, busiest", of(&centre, busiest)),
            ("k = 5, mean", of(&groups, mean)),
            ("one centre, mean", of(&centre, mean)),
        ];
        let paper = Paper::reports("over 10 times lower, and flat (figure 11, bars)");
        over(title, ("routines", names), "bytes a second", lines, paper)
    };
    Some(Judgement {
        paper: format!("over {LOWER}, flat"),
        ours: words(&times(3), 1),
        verdict: if is_lower && growth <= FLAT {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "The paper does not say which node is compared. Bytes a second at the busiest node, hop by hop: k = 5 {}, one centre {}; \
             what it sends itself: {}, and {}. The mean of all 250 nodes, hop by hop: {}, and {}; end to end: {}, and {}: \
             groups pay for copies, a centre for ways. Each device is pinged once a second; a ping, a report, a \
             command and its answer take {} bytes each, between the leader's node and the device. The centre is the node in the middle, alone in \
             all groups, and replicates nothing. A minute, with each routine triggered three times and one epoch. With 40 routines the busiest node has \
             {growth:.2} times what it has with 5. Holds when the busiest node has over {LOWER} times less, and at most {FLAT} times as \
             much with 40 routines.",
            words(&busiest, 0),
            words(&of(&centre, 3), 0),
            words(&of(&groups, 1), 0),
            words(&of(&centre, 1), 0),
            words(&of(&groups, 2), 0),
            words(&of(&centre, 2), 0),
            words(&of(&groups, 0), 0),
            words(&of(&centre, 0), 0),
            super::spot::DEVICE_BYTES,
        ),
        trials: groups.iter().chain(&centre).map(|it| it.1).min()?,
        plots: vec![
            plot("Bytes a second, hop by hop", &names, [3, 2]),
            plot("Bytes a second, end to end", &names, [1, 0]),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::kgroup::lab::{Layout, SPACING};

    /// Eight places at the corners of a cube, where only neighbours along an edge are in reach.
    #[test]
    fn relays_count_what_they_transmit() {
        let cube = Building::new(1, Layout::Grid, 8, SPACING);
        let flows = BTreeMap::from([((0, 7), 10), ((0, 1), 1), ((7, 7), 5)]);
        let [ends, hops] = spread(&cube, &flows);
        assert_eq!(ends, [11, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(hops.iter().sum::<u64>(), 31);
        assert_eq!(hops[0], 11);
    }
}
