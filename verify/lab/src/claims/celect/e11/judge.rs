//! Our figures beside the thesis' and those of other systems.

use super::live::Report;
use super::simulated::Simulated;
use super::{Setting, Takeover};
use crate::claims::stats::{deviation, mean, quantile};
use crate::claims::{
    Axis, Claim, Finding, Judgement, Line, Paper, Plot, Point, Reference, Verdict,
};

/// The thesis: election on 16 Raspberry Pis, and ZooKeeper on the same, in kbit/s.
const THESIS: (f64, f64) = (20.0, 117.0);
/// The standard deviations of both, in kbit/s.
const DEVIATION: (f64, f64) = (2.1, 25.1);
/// ZooKeeper 3.8 with 16 nodes on a flat network, on a machine as the one on which E11 was run
/// first: kbit/s, percent of a processor a node, MiB a node, seconds until a new leader shows.
const ZOOKEEPER: (f64, f64, f64, f64) = (28.5, 0.31, 84.0, 2.1);
/// etcd 3.4 on that machine, in kbit/s.
const ETCD: f64 = 1_522.0;
/// The goal: kbit/s of all nodes together, detection and election in seconds.
const GOAL: (f64, f64, f64) = (4.9, 10.0, 1.0);
const SOURCE: &str = "thesis, section 6.2.2, figures 6.13 to 6.15";

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Real processes; the first setting is judged.
    pub live: Vec<Report>,
    /// Simulated on a flat network.
    pub flat: Vec<(Setting, Simulated)>,
    /// Simulated on a grid, of which nodes know how far the others are.
    pub grid: Vec<(Setting, Simulated)>,
    /// Simulated on a grid of which nodes know nothing.
    pub unknown: Vec<(Setting, Simulated)>,
}

/// A row for each thing that was measured.
#[must_use]
pub fn judged(measured: &Measured) -> Vec<Finding> {
    let rows = [
        (
            "E11-traffic",
            "traffic of 16 nodes while nothing happens, sealed, with IP and UDP headers",
            "kbit/s",
            traffic(measured),
        ),
        (
            "E11-deviation",
            "standard deviation of the traffic from second to second",
            "kbit/s",
            spread(measured),
        ),
        (
            "E11-processor",
            "processor time of a node, less than ZooKeeper's by",
            "%",
            processor(measured),
        ),
        (
            "E11-memory",
            "memory of a node, less than ZooKeeper's by",
            "%",
            memory(measured),
        ),
        (
            "E11-goal",
            "our goal: traffic of 16 nodes while nothing happens, with headers, where a crash is detected within 10 s in the mean",
            "kbit/s",
            goal(measured),
        ),
        (
            "E11-leader",
            "our goal: from the detection until all follow a new leader, at worst",
            "s",
            leader(measured),
        ),
    ];
    rows.into_iter()
        .map(|(id, claim, unit, judgement)| Finding {
            claim: Claim {
                id,
                claim,
                source: if claim.starts_with("our goal") {
                    "ours"
                } else {
                    SOURCE
                },
                unit,
                experiments: Vec::new(),
                judge: |_| None,
            },
            judgement,
        })
        .collect()
}

fn better(ours: f64, paper: f64) -> Verdict {
    if ours <= paper {
        Verdict::Better
    } else {
        Verdict::Differs
    }
}

fn average(values: &[f64]) -> f64 {
    mean(values).unwrap_or(f64::NAN)
}

fn largest(values: &[f64]) -> f64 {
    quantile(values, 1.0).unwrap_or(f64::NAN)
}

/// "1.23" or "12.3" or "123": no more than three digits are significant. "none" where nothing was
/// measured.
fn short(value: f64) -> String {
    if value.is_nan() {
        return "none".to_owned();
    }
    let digits = match value.abs() {
        it if it < 10.0 => 2,
        it if it < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

fn each(live: &[Report], words: impl Fn(&Report) -> String) -> String {
    let rows = live.iter();
    let rows: Vec<String> = rows
        .map(|it| format!("{}: {}", it.setting, words(it)))
        .collect();
    rows.join("; ")
}

fn traffic(measured: &Measured) -> Option<Judgement> {
    let first = measured.live.first()?;
    let wire = mean(&first.wire)?;
    let hops = |all: &[(Setting, Simulated)]| {
        let found = all.iter().find(|it| it.0 == first.setting);
        found.map_or_else(
            || "not run".to_owned(),
            |(_, it)| {
                format!(
                    "{} kbit/s over {} hops a byte",
                    short(it.hops),
                    short(it.mean_hops)
                )
            },
        )
    };
    let reason = format!(
        "The thesis' 117 kbit/s are ZooKeeper's. ZooKeeper 3.8 on a flat network takes {} here, etcd 3.4 {}. \
         On the wire, and of that UDP payload: {}. Each datagram is counted once, as on a flat network. In a grid of \
         4 by 4, simulated, each byte counts as often as it hops: {} where nodes know how far the others are \
         and prefer the near ones, {} where they do not. Better from the thesis' figure down.",
        ZOOKEEPER.0,
        ETCD,
        each(&measured.live, |it| format!(
            "{} ({}), {:.1} datagrams a second",
            short(average(&it.wire)),
            short(average(&it.payload)),
            it.datagrams
        )),
        hops(&measured.grid),
        hops(&measured.unknown),
    );
    Some(Judgement {
        paper: format!("{} (ZooKeeper {})", THESIS.0, THESIS.1),
        ours: short(wire),
        verdict: better(wire, THESIS.0),
        reason,
        trials: first.wire.len(),
        plots: vec![curve(measured)],
    })
}

fn spread(measured: &Measured) -> Option<Judgement> {
    let first = measured.live.first()?;
    let ours = deviation(&first.wire)?;
    Some(Judgement {
        paper: format!("{} (ZooKeeper {})", DEVIATION.0, DEVIATION.1),
        ours: short(ours),
        verdict: better(ours, DEVIATION.0),
        reason: format!(
            "Between seconds of all nodes together. {}.",
            each(&measured.live, |it| {
                let ours = deviation(&it.wire).unwrap_or(f64::NAN);
                format!("{} around {}", short(ours), short(average(&it.wire)))
            })
        ),
        trials: first.wire.len(),
        plots: Vec::new(),
    })
}

/// The percentage by which it is less than ZooKeeper's.
fn less(ours: f64, zookeeper: f64) -> f64 {
    100.0 * (1.0 - ours / zookeeper)
}

fn processor(measured: &Measured) -> Option<Judgement> {
    let first = measured.live.first()?;
    let ours = less(mean(&first.cpu)?, ZOOKEEPER.1);
    let exact = |it: &Report| {
        format!(
            "{:.3}% of a processor, {:.3}% at most",
            average(&it.cpu),
            largest(&it.cpu)
        )
    };
    Some(Judgement {
        paper: "26.9".to_owned(),
        ours: short(ours),
        verdict: better(26.9, ours),
        reason: format!(
            "A node takes {}, what it writes every second for us included; ZooKeeper {}%, on a machine as that of \
             the first run. The thesis' are of a Raspberry Pi, and in Java both.",
            each(&measured.live, exact),
            ZOOKEEPER.1
        ),
        trials: first.cpu.len(),
        plots: Vec::new(),
    })
}

fn memory(measured: &Measured) -> Option<Judgement> {
    let first = measured.live.first()?;
    let ours = less(mean(&first.resident)?, ZOOKEEPER.2);
    Some(Judgement {
        paper: "5.9".to_owned(),
        ours: short(ours),
        verdict: better(5.9, ours),
        reason: format!(
            "A node holds {}; ZooKeeper {} MiB.",
            each(&measured.live, |it| format!(
                "{:.1} MiB, of which {:.1} are its own and no program text",
                average(&it.resident),
                average(&it.own)
            )),
            ZOOKEEPER.2
        ),
        trials: first.resident.len(),
        plots: Vec::new(),
    })
}

/// From each crash until the first node knows, in seconds.
fn detections(takeovers: &[Takeover]) -> Vec<f64> {
    takeovers.iter().map(|it| it.detected).collect()
}

fn goal(measured: &Measured) -> Option<Judgement> {
    let quick = measured
        .live
        .iter()
        .filter(|it| average(&detections(&it.takeovers)) <= GOAL.1);
    let best = quick
        .clone()
        .min_by(|one, other| average(&one.wire).total_cmp(&average(&other.wire)));
    let ours = best.map(|it| average(&it.wire));
    let words = |it: &Report| {
        let detected = detections(&it.takeovers);
        format!(
            "{} kbit/s ({} without headers), detected after {} s, at worst {}, {} live nodes declared failed",
            short(average(&it.wire)),
            short(average(&it.payload)),
            short(average(&detected)),
            short(largest(&detected)),
            it.false_failures
        )
    };
    Some(Judgement {
        paper: format!("{}", GOAL.0),
        ours: ours.map_or_else(|| "none".to_owned(), short),
        verdict: ours.map_or(Verdict::Differs, |it| better(it, GOAL.0)),
        reason: format!(
            "The least of those live runs that detect within {} s in the mean. {}. Detection takes until the next probe, a \
             period for the probe, and the suspicion, so it is some periods whatever is sent; the curve shows which.",
            GOAL.1,
            each(&measured.live, words)
        ),
        trials: best.map_or(0, |it| it.takeovers.len()),
        plots: Vec::new(),
    })
}

fn leader(measured: &Measured) -> Option<Judgement> {
    let first = measured.live.first()?;
    let after = |it: &Report| -> Vec<f64> {
        it.takeovers
            .iter()
            .map(|it| it.elected + it.received)
            .collect()
    };
    let ours = quantile(&after(first), 1.0)?;
    let words = |it: &Report| {
        let total: Vec<f64> = it.takeovers.iter().map(Takeover::total).collect();
        let elected: Vec<f64> = it.takeovers.iter().map(|it| it.elected).collect();
        format!(
            "{} s in the mean until all follow, {} until the first does, {} kills; without a leader for {} s in all",
            short(average(&after(it))),
            short(average(&elected)),
            it.takeovers.len(),
            short(average(&total))
        )
    };
    Some(Judgement {
        paper: format!("{}", GOAL.2),
        ours: short(ours),
        verdict: better(ours, GOAL.2),
        reason: format!(
            "{}. ZooKeeper shows a new leader {} s after a kill: the system closes the connections of a process that is \
             killed, which tells its peers. Datagrams have none, and so nothing is told, as when a machine loses power.",
            each(&measured.live, words),
            ZOOKEEPER.3
        ),
        trials: first.takeovers.len(),
        plots: Vec::new(),
    })
}

/// Traffic over detection time, a point a setting.
fn curve(measured: &Measured) -> Plot {
    let point = |traffic: f64, takeovers: &[Takeover]| {
        let detected = detections(takeovers);
        // The spread is the spread of the detection, so traffic is to the right.
        Point {
            x: traffic,
            y: average(&detected),
            low: quantile(&detected, 0.1).unwrap_or(0.0),
            high: quantile(&detected, 0.9).unwrap_or(0.0),
        }
    };
    let mut lines = Vec::new();
    let mut kinds: Vec<(Option<u16>, bool)> = Vec::new();
    for (setting, _) in &measured.flat {
        let kind = (setting.suspicion, setting.lease.is_some());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for (suspicion, is_leased) in kinds {
        let same = |it: &&(Setting, Simulated)| {
            (it.0.suspicion, it.0.lease.is_some()) == (suspicion, is_leased)
        };
        let points = measured.flat.iter().filter(same);
        let suspicion = suspicion.map_or_else(|| "3 ln n".to_owned(), |it| it.to_string());
        let lease = if is_leased { ", with a lease" } else { "" };
        lines.push(Line {
            name: format!("simulated, suspicion {suspicion} periods{lease}"),
            points: points
                .map(|(_, it)| point(it.wire, &it.takeovers))
                .collect(),
        });
    }
    lines.push(Line {
        name: "live".to_owned(),
        points: measured
            .live
            .iter()
            .map(|it| point(average(&it.wire), &it.takeovers))
            .collect(),
    });
    Plot {
        title: "Until the crash of the leader is detected, over the traffic of all nodes; bars: a tenth to nine tenths"
            .to_owned(),
        x: Axis::Plain("kbit/s of all nodes together, with IP and UDP headers".to_owned()),
        y: Axis::Plain("seconds".to_owned()),
        lines,
        paper: Paper::Figures(vec![Reference {
            name: format!("goal: {} s at {} kbit/s", GOAL.1, GOAL.0),
            y: GOAL.1,
            x: Some((0.0, GOAL.0)),
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was too short for a second of quiet and a kill: rows without a measurement have
    /// no judgement, and no figure anywhere is NaN.
    #[test]
    fn what_was_not_measured_is_not_judged() {
        let report = Report {
            setting: "200:1".parse().unwrap(),
            nodes: 3,
            payload: Vec::new(),
            wire: Vec::new(),
            datagrams: 0.0,
            cpu: vec![0.1; 3],
            resident: vec![6.0; 3],
            own: vec![0.5; 3],
            takeovers: Vec::new(),
            false_failures: 0,
        };
        let other = Report {
            payload: vec![5.0],
            wire: vec![8.0],
            ..report.clone()
        };
        for live in [
            vec![report.clone()],
            vec![other.clone(), report.clone()],
            vec![report, other],
        ] {
            let wire = !live[0].wire.is_empty();
            let findings = judged(&Measured {
                live,
                ..Measured::default()
            });
            let judged = |id: &str| {
                let row = findings.iter().find(|it| it.claim.id == id).unwrap();
                row.judgement.is_some()
            };
            assert_eq!(judged("E11-traffic"), wire);
            assert_eq!(judged("E11-deviation"), wire);
            assert!(judged("E11-processor") && judged("E11-memory"));
            assert!(!judged("E11-leader"));
            for judgement in findings.iter().filter_map(|it| it.judgement.as_ref()) {
                let words = format!("{} {}", judgement.ours, judgement.reason);
                assert!(!words.contains("NaN"), "{words}");
                for plot in &judgement.plots {
                    let _drawn = plot.svg();
                }
            }
        }
    }
}
