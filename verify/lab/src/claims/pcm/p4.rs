//! P4: another resource manager after one has failed.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Span;
use selvedge_pcm::{Limits, gateway};

use super::world::{Seen, Setting, World};
use crate::claims::plot::{Axis, Line, Plot, Point, Reference};
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Mean, fastest and slowest, in thresholds.
const PAPER: [f64; 3] = [1.06, 0.92, 2.27];
const TRIALS: u32 = 1_000;
/// The resource manager's disconnection threshold.
const THRESHOLD: Span = Span::secs(5);
/// Figures up to this many times the paper's still hold.
const BAND: f64 = 1.1;
/// The intervals of the resource manager's heartbeats, in percent of the threshold; the paper does
/// not give one.
const HEARTBEATS: [u64; 3] = [8, 20, 40];
const GATEWAYS: [u64; 4] = [3, 5, 9, 15];
/// The percentage of messages between gateways that are lost in the worse setting.
const LOST: u64 = 20;

#[derive(Clone, Copy)]
struct Failover {
    gateways: u64,
    heartbeat: u64,
    lost: u64,
}

const MAIN: Failover = Failover {
    gateways: 5,
    heartbeat: 20,
    lost: 0,
};

fn with_heartbeats() -> [Failover; 3] {
    HEARTBEATS.map(|heartbeat| Failover { heartbeat, ..MAIN })
}

fn with_gateways() -> [Failover; 4] {
    GATEWAYS.map(|gateways| Failover { gateways, ..MAIN })
}

fn with_loss() -> Failover {
    let lost = LOST;
    Failover { lost, ..MAIN }
}

pub(super) fn claim() -> Claim {
    let all = with_heartbeats().into_iter().chain(with_gateways());
    Claim {
        id: "P4",
        claim: "after the resource manager has failed another one manages: mean, fastest, slowest",
        source: "PCM, section 5c",
        unit: "disconnection thresholds",
        experiments: all.chain([with_loss()]).map(Failover::experiment).collect(),
        judge,
    }
}

impl Failover {
    fn name(self) -> String {
        let Self {
            gateways,
            heartbeat,
            lost,
        } = self;
        format!("pcm: failover of {gateways}, heartbeat {heartbeat}%, {lost}% lost")
    }

    fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: TRIALS,
            run: Arc::new(move |seed| self.measure(seed)),
        }
    }

    /// From the failure until another gateway manages.
    fn measure(self, seed: u64) -> Result<Sample, Fault> {
        let heartbeat = Span(THRESHOLD.0 * self.heartbeat / 100);
        let setting = Setting {
            gateways: self.gateways,
            config: gateway::Config::new()
                .with_heartbeat(heartbeat)
                .with_timeout(THRESHOLD),
            limits: Limits::new(),
            length: Span::ZERO,
            lost: self.lost,
        };
        let mut world = World::new(&setting, ChaCha8Rng::seed_from_u64(seed))?;
        world.run_for(THRESHOLD * 12)?;
        let wait = world.below(heartbeat);
        world.run_for(wait)?;
        let manages =
            |_: &World, it: &Seen| matches!(it, Seen::Gateway(_, gateway::Event::Leading));
        if world.manager().is_none() {
            world.run_until(THRESHOLD * 12, manages)?;
        }
        let former = world.manager().ok_or_else(|| none("at first"))?;
        world.stop_gateway(former);
        let start = world.now();
        let end = world.run_until(THRESHOLD * 100, manages)?;
        let took = end.ok_or_else(|| none("after the failure"))?.since(start);
        Ok(Sample(vec![Some(took.0)]))
    }

    /// In thresholds.
    fn all(self, samples: &Samples) -> Vec<f64> {
        let name = self.name();
        let all = samples.of(&name);
        all.filter_map(|(_, it)| it.0.first().copied().flatten())
            .map(|it| it as f64 / THRESHOLD.0 as f64)
            .collect()
    }

    /// Mean, fastest, slowest.
    fn figures(self, samples: &Samples) -> Option<[f64; 3]> {
        let all = self.all(samples);
        let fastest = all.iter().copied().min_by(f64::total_cmp)?;
        let slowest = all.iter().copied().max_by(f64::total_cmp)?;
        Some([mean(&all)?, fastest, slowest])
    }
}

fn none(when: &str) -> Fault {
    Fault::Outcome(format!("no gateway manages {when}"))
}

fn words(figures: [f64; 3]) -> String {
    figures.map(|it| format!("{it:.2}")).join(", ")
}

fn line(name: &str, settings: &[Failover], samples: &Samples) -> Line {
    let points = settings.iter().zip(0..).filter_map(|(it, nth)| {
        let [y, low, high] = it.figures(samples)?;
        let x = f64::from(nth);
        Some(Point { x, y, low, high })
    });
    Line {
        name: name.to_owned(),
        points: points.collect(),
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let ours = MAIN.figures(samples)?;
    let [often, _, seldom] = with_heartbeats().map(|it| it.figures(samples));
    let (often, seldom, lossy) = (often?, seldom?, with_loss().figures(samples)?);
    let by_gateways: Option<Vec<String>> = with_gateways()
        .iter()
        .map(|it| Some(words(it.figures(samples)?)))
        .collect();
    let within = |band: f64| {
        let [mean, _, slowest] = ours;
        let [paper, _, longest] = PAPER;
        mean <= paper * band && slowest <= longest * band
    };
    let plot = |title: &str, x: &str, names: Vec<String>, settings: &[Failover]| Plot {
        title: title.to_owned(),
        x: Axis::Names(x.to_owned(), names),
        y: Axis::Plain("thresholds: mean, fastest and slowest".to_owned()),
        lines: vec![line("", settings, samples)],
        paper: Paper::Figures(vec![
            Reference::everywhere("paper: mean", PAPER[0]),
            Reference::everywhere("paper: fastest", PAPER[1]),
            Reference::everywhere("paper: slowest", PAPER[2]),
        ]),
    };
    Some(Judgement {
        paper: words(PAPER),
        ours: words(ours),
        verdict: match (within(1.0), within(BAND)) {
            (true, _) => Verdict::Better,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Differs,
        },
        reason: format!(
            "Five gateways; the threshold is {} s (Config::timeout), and the resource manager says that it is here five times \
             in it. From its failure until another gateway manages; messages take 5 to 15 ms. The others count from \
             the last word, so the failure is noticed before a threshold is over, by as much as that word is old; the \
             election takes a round trip. The paper's fastest, 0.92, fits a word that is 0.08 thresholds old: with heartbeats of \
             0.08 thresholds {}, with 0.4 thresholds {}. Where {LOST}% of the messages are lost: {}. With 3, 5, 9 and \
             15 gateways: {}. Better when mean and slowest are no longer than the paper's, holds up to {BAND} times \
             as long.",
            super::energy::seconds(THRESHOLD),
            words(often),
            words(seldom),
            words(lossy),
            by_gateways?.join("; "),
        ),
        trials: MAIN.all(samples).len(),
        plots: vec![
            plot(
                "Until another gateway manages, over the heartbeat",
                "% of the threshold between heartbeats",
                HEARTBEATS.map(|it| it.to_string()).to_vec(),
                &with_heartbeats(),
            ),
            plot(
                "The same, over the number of gateways",
                "gateways",
                GATEWAYS.map(|it| it.to_string()).to_vec(),
                &with_gateways(),
            ),
        ],
    })
}
