//! M13: how far messages travel (figure 4.4).

use super::by_hops::LONGEST;
use super::figures::{EXPONENTS, TRIALS, column, hops, sweep};
use super::lab::{Setting, Variant};
use crate::claims::stats::mean;
use crate::claims::{Axis, Claim, Judgement, Line, Paper, Plot, Point, Samples, Verdict};

const SWIM: Setting = Setting::new(Variant::Plain, 0);

/// The exponent at which strategies are compared, which the thesis recommends.
const RECOMMENDED: u8 = 3;

/// The thesis' strategies.
const THESIS: [Variant; 4] = [
    Variant::Plain,
    Variant::Active,
    Variant::Passive,
    Variant::Both,
];

/// "Active feedback does not affect traffic much": at no number of hops does the share of messages
/// that travel at most so far differ by more than this from that without it, in points.
const MUCH: f64 = 5.0;

/// A higher m may have a share that is this much smaller by chance, in points.
const NOISE: f64 = 1.0;

/// The number of hops on the plot.
const DRAWN: usize = 10;

pub(super) fn claim() -> Claim {
    let swim = [SWIM.experiment(TRIALS)];
    let rest = sweep(&[&THESIS[..], &[Variant::Lean]].concat());
    Claim {
        id: "M13",
        claim: "a message travels fewer hops the higher m is; active feedback changes that little, passive feedback raises it",
        source: "Medley-F, section 4.1.1, figure 4.4, Random",
        unit: "hops in the mean, SWIM and m = 1 to 5; plain, active, passive and both at m = 3",
        experiments: swim.into_iter().chain(rest).collect(),
        judge,
    }
}

/// The number of hops of the messages of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Travel {
    /// The mean.
    mean: f64,
    /// The percentage of messages that travel at most so many hops, from one.
    within: [f64; LONGEST],
}

impl Travel {
    fn of(samples: &Samples, setting: &Setting) -> Option<Self> {
        let mut by_hops = [0_u64; LONGEST];
        for seen in setting.seen(samples).values() {
            for (sum, counted) in by_hops.iter_mut().zip(seen.by_hops) {
                *sum += counted;
            }
        }
        let messages: u64 = by_hops.iter().sum();
        let all: u64 = by_hops.iter().zip(1..).map(|(it, hops)| it * hops).sum();
        let mut so_far = 0;
        let within = by_hops.map(|counted| {
            so_far += counted;
            100.0 * so_far as f64 / messages as f64
        });
        (messages > 0).then(|| Self {
            mean: all as f64 / messages as f64,
            within,
        })
    }

    /// The largest difference between two shares, in points.
    fn gap(&self, other: &Self) -> f64 {
        let pairs = self.within.iter().zip(&other.within);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    /// Returns true if messages travel fewer hops in the mean, and no fewer are within any number of
    /// hops.
    fn is_nearer_than(&self, other: &Self) -> bool {
        let mut pairs = self.within.iter().zip(&other.within);
        self.mean < other.mean && pairs.all(|(near, far)| *near >= far - NOISE)
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let row = |variant: Variant| -> Option<Vec<Travel>> {
        let settings = EXPONENTS.map(|exponent| Setting::new(variant, exponent));
        settings.iter().map(|it| Travel::of(samples, it)).collect()
    };
    let swim = Travel::of(samples, &SWIM)?;
    let rows = THESIS.map(row).into_iter().collect::<Option<Vec<_>>>()?;
    let [plain, active, passive, both] = rows.as_slice() else {
        return None;
    };
    let by_exponent: Vec<Travel> = [swim].into_iter().chain(plain.iter().copied()).collect();
    let mut steps = by_exponent.iter().zip(plain);
    let localizes = steps.all(|(far, near)| near.is_nearer_than(far));
    let moved = |row: &[Travel]| {
        let pairs = row.iter().zip(plain);
        pairs.map(|(it, plain)| it.gap(plain)).fold(0.0, f64::max)
    };
    let of_active = moved(active);
    let mut pairs = passive.iter().zip(plain);
    let raises = pairs.all(|(passive, plain)| passive.mean > plain.mean);
    let at = |row: &Vec<Travel>| row.get(usize::from(RECOMMENDED) - 1).copied();
    let recommended = rows.iter().map(at).collect::<Option<Vec<_>>>()?;
    let traffic = THESIS.map(|it| mean(&column(samples, &Setting::new(it, RECOMMENDED), hops)));
    let traffic = traffic.into_iter().collect::<Option<Vec<f64>>>()?;
    Some(Judgement {
        paper: "falls; little, more".to_owned(),
        ours: format!("{}; {}", means(&by_exponent), means(&recommended)),
        verdict: if localizes && raises && of_active <= MUCH {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Within 1, 2, 3 and 4 hops are {}% of SWIM's messages, and at m = {RECOMMENDED} {}%. Over all m, \
             the share within some number of hops differs from that without feedback by at most \
             {of_active:.1} points with active feedback, {:.1} with passive and {:.1} with both. \
             Transmissions a node and period at m = {RECOMMENDED}: {}. Our leanest rules, m = 1 to 5: {} \
             hops. The thesis draws curves; its text has no figure, and does not name the m of the \
             curves. Holds when at each higher m the mean is smaller and no share within a number of hops \
             is more than {NOISE} point smaller, active feedback changes no share by more than {MUCH} \
             points, and passive feedback raises the mean at every m.",
            shares(&[swim]),
            shares(&recommended),
            moved(passive),
            moved(both),
            words(traffic),
            means(&row(Variant::Lean)?),
        ),
        trials: column(samples, &SWIM, hops).len(),
        plots: vec![plot(swim, &recommended)],
    })
}

fn words(figures: impl IntoIterator<Item = f64>) -> String {
    let words = figures.into_iter().map(|it| format!("{it:.2}"));
    words.collect::<Vec<_>>().join(", ")
}

fn means(all: &[Travel]) -> String {
    words(all.iter().map(|it| it.mean))
}

fn shares(all: &[Travel]) -> String {
    let of = |it: &Travel| {
        let shares = it.within.iter().take(4).map(|it| format!("{it:.0}"));
        shares.collect::<Vec<_>>().join(", ")
    };
    all.iter().map(of).collect::<Vec<_>>().join(" / ")
}

fn plot(swim: Travel, recommended: &[Travel]) -> Plot {
    let names = ["SWIM".to_owned()].into_iter();
    let names = names.chain(THESIS.map(|it| format!("m = {RECOMMENDED}, {}", it.name())));
    let travels = [swim].into_iter().chain(recommended.iter().copied());
    let line = |(name, travel): (String, Travel)| Line {
        name,
        points: (1..=DRAWN)
            .zip(travel.within)
            .map(|(hops, share)| Point {
                x: hops as f64,
                y: share,
                low: share,
                high: share,
            })
            .collect(),
    };
    Plot {
        title: "Messages that travel at most so many hops".to_owned(),
        x: Axis::Plain("hops".to_owned()),
        y: Axis::Plain("share of all messages [%]".to_owned()),
        lines: names.zip(travels).map(line).collect(),
        paper: Paper::reports(
            "SWIM has far more hops; active feedback changes little, passive feedback raises them (figure \
             4.4, curves)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travel(within: &[f64], mean: f64) -> Travel {
        let all = within.iter().copied().chain(core::iter::repeat(100.0));
        let mut shares = [0.0; LONGEST];
        shares.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Travel {
            mean,
            within: shares,
        }
    }

    #[test]
    fn messages_are_nearer_when_no_share_is_smaller() {
        let far = travel(&[20.0, 50.0, 80.0], 2.5);
        let near = travel(&[40.0, 60.0, 80.0], 2.2);
        assert!(near.is_nearer_than(&far) && !far.is_nearer_than(&near));
        assert!((near.gap(&far) - 20.0).abs() < 1e-9);
        // Nearer in the mean, but with some messages that travel farther.
        let crossing = travel(&[60.0, 65.0, 70.0], 2.05);
        assert!(!crossing.is_nearer_than(&far));
    }
}
