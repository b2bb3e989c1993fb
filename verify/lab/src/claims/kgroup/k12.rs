//! K12: the cost of having no centre, in the paper's deployment.

use super::deployment::{
    COUNTED, Deployment, EPOCH, FLOORS, Figure, Floor, PIS, ROUTINES, Rule, Seen,
};
use crate::claims::plot::spread;
use crate::claims::stats::mean;
use crate::claims::{Claim, Judgement, Paper, Plot, Samples, Verdict};

/// The paper's factor: this many times lower.
const LOWER: f64 = 10.0;
/// From the fewest routines to the most.
const FLAT: f64 = 1.25;
/// The most traffic beside pings, in pings.
const FEW: f64 = 1.0;
const RULES: [Rule; 3] = [Rule::Near, Rule::Hash, Rule::Centre];

const fn deployment(floor: Floor, rule: Rule, routines: usize, is_busy: bool) -> Deployment {
    Deployment {
        floor,
        rule,
        routines,
        is_busy,
    }
}

pub(super) fn claim() -> Claim {
    let floors = FLOORS.into_iter().map(|it| it.0);
    let all = floors.flat_map(|floor| {
        let busy = RULES
            .into_iter()
            .flat_map(move |rule| ROUTINES.map(|routines| deployment(floor, rule, routines, true)));
        let idle = ROUTINES.map(|routines| deployment(floor, Rule::Near, routines, false));
        busy.chain(idle)
    });
    Claim {
        id: "K12",
        claim: "11 nodes, groups of 5 against one centre: bytes a node over 10 times lower, flat in the routines, and few beside pings",
        source: "CoMesh, section 7, figure 11",
        unit: "times lower at the mean node than at the centre, hop by hop, with 5 / 10 / 20 / 40 routines, grid | line",
        experiments: all.map(Deployment::experiment).collect(),
        judge,
    }
}

/// A rule on a floor, with each number of routines.
struct Found(Vec<Seen>);

impl Found {
    fn of(samples: &Samples, floor: Floor, rule: Rule, is_busy: bool) -> Option<Self> {
        let all = ROUTINES.map(|it| Seen::of(samples, deployment(floor, rule, it, is_busy)));
        all.into_iter().collect::<Option<_>>().map(Self)
    }

    /// Bytes a second.
    fn line(&self, figure: Figure) -> Vec<f64> {
        let all = self.0.iter().filter_map(|it| mean(&it.load(figure)));
        all.collect()
    }

    /// Runs that began in a minute.
    fn runs(&self) -> Vec<f64> {
        let all = self.0.iter().filter_map(|it| mean(&it.runs()));
        all.map(|it| it * 60.0 / COUNTED as f64).collect()
    }

    fn words(&self, figure: Figure) -> String {
        words(&self.line(figure), 0)
    }
}

fn words(all: &[f64], digits: usize) -> String {
    let all: Vec<String> = all.iter().map(|it| format!("{it:.digits$}")).collect();
    all.join(" / ")
}

/// Divides each figure of a line by that of another line.
fn over(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(a, b)| a / b).collect()
}

/// The figures of a floor.
struct Compared {
    near: Found,
    hash: Found,
    centre: Found,
    idle: Found,
}

impl Compared {
    fn of(samples: &Samples, floor: Floor) -> Option<Self> {
        let of = |rule, is_busy| Found::of(samples, floor, rule, is_busy);
        Some(Self {
            near: of(Rule::Near, true)?,
            hash: of(Rule::Hash, true)?,
            centre: of(Rule::Centre, true)?,
            idle: of(Rule::Near, false)?,
        })
    }

    /// Bytes at the centre over those at a node of groups, with each number of routines.
    fn lower(&self, figure: Figure) -> Vec<f64> {
        over(&self.centre.line(Figure::MostHops), &self.near.line(figure))
    }

    fn holds(&self) -> Option<bool> {
        let hops = self.near.line(Figure::Hops);
        let pings = over(&hops, &self.near.line(Figure::PingHops));
        let is_lower = self.lower(Figure::Hops).iter().all(|it| *it > LOWER);
        let is_few = pings.iter().all(|it| *it <= 1.0 + FEW);
        Some(is_lower && is_few && hops.last()? / hops.first()? <= FLAT)
    }

    /// Bytes end to end that a group sends in all as an epoch begins, and that a run costs with the
    /// fewest routines.
    fn costs(&self) -> Option<[f64; 2]> {
        let nodes = PIS as f64;
        let idle = self.idle.line(Figure::Ends);
        let moved = idle.last()? - self.idle.line(Figure::PingEnds).last()?;
        let groups = (PIS + ROUTINES.last()?) as f64;
        let busy = self.near.line(Figure::Ends);
        let run = (busy.first()? - idle.first()?) * nodes * 60.0 / self.near.runs().first()?;
        Some([moved * nodes * EPOCH as f64 / groups, run])
    }

    fn reason(&self, floor: &str) -> Option<String> {
        let [moved, run] = self.costs()?;
        let pings = mean(&self.near.line(Figure::PingHops))?;
        let most_pings = mean(&self.near.line(Figure::MostPingHops))?;
        let centre = mean(&self.centre.line(Figure::MostPingHops))?;
        let times = centre / pings;
        Some(format!(
            "{floor}: {} at the mean node, {} at the busiest ({} times lower), {} at the centre; end to end {}, {} and {}; \
             while no routine runs {} at the mean node. Pings and their answers alone are {pings:.0} at the mean node, {most_pings:.0} at the \
             busiest, {centre:.0} at the centre: {times:.1} times lower. An epoch costs {moved:.0} bytes end to end a group, a run {run:.0}. By \
             hash {} and {}. {} runs a minute begin, {} at the centre",
            self.near.words(Figure::Hops),
            self.near.words(Figure::MostHops),
            words(&self.lower(Figure::MostHops), 1),
            self.centre.words(Figure::MostHops),
            self.near.words(Figure::Ends),
            self.near.words(Figure::MostEnds),
            self.centre.words(Figure::MostEnds),
            self.idle.words(Figure::Hops),
            self.hash.words(Figure::Hops),
            self.hash.words(Figure::MostHops),
            words(&self.near.runs(), 0),
            words(&self.centre.runs(), 0),
        ))
    }

    fn plot(&self, floor: &str) -> Plot {
        let names = ROUTINES.map(|it| it.to_string());
        let line = |it: &Found, figure: Figure| -> Vec<Vec<f64>> {
            it.0.iter().map(|it| it.load(figure)).collect()
        };
        let lines = [
            ("one centre", line(&self.centre, Figure::MostHops)),
            ("k = 5, near, busiest", line(&self.near, Figure::MostHops)),
            ("k = 5, near, mean", line(&self.near, Figure::Hops)),
            ("k = 5, by hash, mean", line(&self.hash, Figure::Hops)),
            ("nothing runs, mean", line(&self.idle, Figure::Hops)),
            ("pings, mean", line(&self.near, Figure::PingHops)),
        ];
        spread(
            &format!("Bytes a second, hop by hop, {floor}"),
            ("routines", &names),
            "bytes a second",
            lines,
            Paper::reports("over 10 times lower, flat, few beside pings (figure 11, bars)"),
        )
    }

    fn trials(&self) -> Option<usize> {
        let all = [&self.near, &self.hash, &self.centre, &self.idle];
        all.iter().flat_map(|it| &it.0).map(Seen::trials).min()
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let floors = FLOORS.map(|(floor, name)| Some((Compared::of(samples, floor)?, name)));
    let floors = floors
        .into_iter()
        .collect::<Option<Vec<(Compared, &str)>>>()?;
    let all = floors.iter();
    let ours: Vec<String> = all
        .clone()
        .map(|it| words(&it.0.lower(Figure::Hops), 1))
        .collect();
    let reasons = all.clone().map(|(it, name)| it.reason(name));
    let reasons = reasons.collect::<Option<Vec<String>>>()?;
    let holds = all.clone().map(|it| it.0.holds());
    let holds = holds.collect::<Option<Vec<bool>>>()?.iter().all(|it| *it);
    Some(Judgement {
        paper: format!("over {LOWER}, flat, few beside pings"),
        ours: ours.join(" | "),
        verdict: if holds {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Bytes a second hop by hop, with 5 / 10 / 20 / 40 routines. {}. Each Pi is a node, and a device that is pinged once a second and has a group of its own; \
             a routine has five devices, is triggered three times a minute at any node, at least 10 s apart, and ignores triggers while it \
             runs. Counted are {COUNTED} s, with an epoch each {EPOCH} s; without membership and routing. The paper gives neither the number of routines nor \
             how often they run, nor the node that it compares. Pings alone are few where \
             leaders are near their devices; groups also pay for epochs, and for the copies of each run. Holds when the mean node has over \
             {LOWER} times less than the centre, at most {FLAT} times as much with the most routines as with the fewest, and no more than as much again as \
             pings take.",
            reasons.join(". "),
        ),
        trials: all.clone().filter_map(|it| it.0.trials()).min()?,
        plots: all.map(|(it, name)| it.plot(name)).collect(),
    })
}
