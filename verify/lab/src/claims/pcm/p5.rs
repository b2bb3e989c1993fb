//! P5: the time until the loss of a follower is noticed.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Member, Span};
use selvedge_pcm::{DutyCycle, Limits, gateway};

use super::world::{BEGINS, Seen, Setting, World};
use crate::claims::plot::{Reference, spread};
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// From, to, in thresholds: without and with units formed again.
const PAPER: [[f64; 2]; 2] = [[1.5, 2.0], [2.2, 2.7]];
const TRIALS: u32 = 1_000;
/// The paper's threshold and ours, in tenths of a follower's period.
const THRESHOLDS: [u16; 2] = [15, 35];
const FOLLOWERS: usize = 10;
const UNITS: usize = 2;
const DUTY: DutyCycle = DutyCycle {
    active_ms: 1_000,
    busy_ms: 0,
    asleep_ms: 9_000,
};
/// Nothing is reviewed in a trial: the measured losses are noticed without it.
const NEVER: Span = Span::secs(86_400);

pub(super) fn claim() -> Claim {
    Claim {
        id: "P5",
        claim: "a follower that is gone is noticed by the resource manager: without, and with units that are formed anew, after",
        source: "PCM, section 5d",
        unit: "disconnection thresholds",
        experiments: THRESHOLDS
            .map(|tenths| Experiment {
                name: name(tenths),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(tenths, seed)),
            })
            .to_vec(),
        judge,
    }
}

fn name(tenths: u16) -> String {
    format!("pcm: a follower is gone, noticed after {tenths} tenths")
}

fn threshold(tenths: u16) -> Span {
    Span(DUTY.period().0 * u64::from(tenths) / 10)
}

/// The time until the first performant follower of a unit, which the unit can do without, is
/// noticed as lost, and then the second one, without which the unit is broken.
fn measure(tenths: u16, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        gateways: 3,
        config: gateway::Config::new()
            .with_purge_after(tenths)
            .with_review(NEVER),
        limits: Limits::new(),
        length: Span::ZERO,
        lost: 0,
    };
    let period = DUTY.period();
    let mut world = World::new(&setting, ChaCha8Rng::seed_from_u64(seed))?;
    // Each is at a gateway, which need not be the resource manager.
    for at in 0..FOLLOWERS {
        world.add(DUTY, at)?;
    }
    world.run_for(period * (BEGINS + 4))?;
    if !world.has_all(UNITS) {
        let why = format!("{FOLLOWERS} followers are not {UNITS} units");
        return Err(Fault::Outcome(why));
    }
    let mut seen = Vec::new();
    for is_broken in [false, true] {
        let wait = world.below(period);
        world.run_for(wait)?;
        let (manager, member) = performant(&world).ok_or_else(ended)?;
        let at = world.place(member).ok_or_else(ended)?;
        world.stop_follower(at);
        let start = world.now();
        let is_noticed = |_: &World, it: &Seen| match it {
            Seen::Gateway(at, gateway::Event::Purged(id)) => {
                !is_broken && *at == manager && *id == member.id
            }
            Seen::Gateway(at, gateway::Event::Clustered(_)) => is_broken && *at == manager,
            Seen::Gateway(..) | Seen::Returned(_) | Seen::Answered(_) => false,
        };
        let end = world.run_until(threshold(tenths) * 10, is_noticed)?;
        seen.push(end.map(|it| it.since(start).0));
    }
    Ok(Sample(seen))
}

/// The manager, and the first performant follower of the first unit that it has left.
fn performant(world: &World) -> Option<(usize, Member)> {
    let manager = world.manager()?;
    let tables = world.gateway(manager)?.tables()?;
    let member = tables.members(0).nth(1)?;
    Some((manager, member))
}

fn ended() -> Fault {
    Fault::Outcome("the manager or the follower is not there".to_owned())
}

/// Each trial's time, in thresholds: without, and with.
fn all(tenths: u16, samples: &Samples) -> [Vec<f64>; 2] {
    let name = name(tenths);
    [0, 1].map(|at| {
        let all = samples.of(&name);
        all.filter_map(|(_, it)| it.0.get(at).copied().flatten())
            .map(|it| it as f64 / threshold(tenths).0 as f64)
            .collect()
    })
}

/// From, to, and the mean.
fn range(values: &[f64]) -> Option<[f64; 3]> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp)?;
    Some([least, most, mean(values)?])
}

fn words(ranges: [[f64; 3]; 2]) -> String {
    ranges
        .map(|[least, most, _]| format!("{least:.2} to {most:.2}"))
        .join(" / ")
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [paper, own] = THRESHOLDS.map(|it| all(it, samples));
    let ranges = |[without, with]: &[Vec<f64>; 2]| Some([range(without)?, range(with)?]);
    let (found, ours) = (ranges(&paper)?, ranges(&own)?);
    let trials = samples.of(&name(15)).count();
    let is_all = paper.iter().chain(&own).all(|it| it.len() == trials);
    let within = |at: usize| {
        let mut pairs = found.iter().zip(PAPER);
        is_all && pairs.all(|([_, most, _], paper)| paper.get(at).is_some_and(|it| most <= it))
    };
    let means = found.map(|it| format!("{:.2}", it[2])).join(" / ");
    let names = ["without", "with units formed anew"].map(ToOwned::to_owned);
    Some(Judgement {
        paper: PAPER
            .map(|[least, most]| format!("{least} to {most}"))
            .join(" / "),
        ours: words(found),
        verdict: match (within(0), within(1)) {
            (true, _) => Verdict::Better,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Differs,
        },
        reason: format!(
            "Ten followers at three gateways in two units, with a period of 10 s and the paper's threshold of 1.5 \
             periods; {means} in the mean. From the moment at which a performant follower is gone until the \
             resource manager has purged it; and from that of a second one of the same unit, which is broken then, \
             until units are formed anew. The threshold counts from the last keep-alive, which is up to a period \
             old. A gateway proposes what it notices at once, and units that are broken are formed anew after \
             Config::settle, 1 s: in the paper a gateway says what it noticed when the resource manager next asks. With our \
             default of 3.5 periods, which bears two keep-alives that are lost (erratum Q8): {} of 35 s. Better when \
             the latest are before the paper's earliest, holds when they are no later than the paper's latest.",
            words(ours),
        ),
        trials,
        plots: vec![spread(
            "Until a follower that is gone is noticed",
            ("", &names),
            "thresholds",
            [
                ("threshold of 1.5 periods", paper.to_vec()),
                ("threshold of 3.5 periods", own.to_vec()),
            ],
            Paper::Figures(vec![
                Reference::at(0, "paper: earliest", PAPER[0][0]),
                Reference::at(0, "latest", PAPER[0][1]),
                Reference::at(1, "paper: earliest", PAPER[1][0]),
                Reference::at(1, "latest", PAPER[1][1]),
            ]),
        )],
    })
}
