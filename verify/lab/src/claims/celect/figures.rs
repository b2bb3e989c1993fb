//! From trials to figures, for the claims of this family.

use selvedge_celect::Protocol;

use super::lab::{Announcement, Bias, HISTORY, PROTOCOLS, Seen, Setting};
use crate::claims::membership::traces::{PERIOD, Placement};
use crate::claims::stats::{Estimate, cut, mean};
use crate::claims::{Axis, Experiment, Line, Paper, Plot, Point, Samples};

/// The default where the thesis is silent: no node fails, so f is 0.
const DEFAULT: Setting = Setting {
    placement: Placement::Random,
    nodes: 49,
    loss: 5,
    c: 4,
    f: 0,
    bias: Bias::Harmonic,
    every_hop: false,
    own_suspicions: false,
    history: HISTORY,
};

/// Percent lost, and the thesis' c for 49 nodes.
const LOSSES: [(u32, u16); 4] = [(5, 4), (10, 7), (15, 10), (20, 13)];

/// Nodes, and the thesis' c for 5% lost.
const SIZES: [(usize, u16); 5] = [(32, 2), (49, 4), (64, 5), (128, 9), (256, 17)];

/// In the thesis' order.
const PLACEMENTS: [Placement; 3] = [Placement::Grid, Placement::Random, Placement::Cluster];

/// A series of settings for a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// 49 nodes, 5% lost.
    Placements,
    /// 49 nodes placed at random.
    Losses,
    /// Placed at random, 5% lost.
    Sizes,
}

pub(super) const OVER: [Over; 3] = [Over::Placements, Over::Losses, Over::Sizes];

impl Over {
    pub(super) fn settings(self) -> Vec<Setting> {
        match self {
            Self::Placements => {
                let placed = |placement| Setting {
                    placement,
                    ..DEFAULT
                };
                PLACEMENTS.map(placed).into()
            }
            Self::Losses => LOSSES
                .map(|(loss, c)| Setting { loss, c, ..DEFAULT })
                .into(),
            Self::Sizes => SIZES
                .map(|(nodes, c)| Setting {
                    nodes,
                    c,
                    ..DEFAULT
                })
                .into(),
        }
    }

    fn axis(self) -> Axis {
        let names = |names: Vec<String>, axis: &str| Axis::Names(axis.to_owned(), names);
        match self {
            Self::Placements => {
                let all = PLACEMENTS.map(|it| format!("{it:?}"));
                names(all.into(), "49 nodes, 5% lost")
            }
            Self::Losses => {
                let all = LOSSES.map(|(loss, _)| format!("{loss}%"));
                names(all.into(), "lost, 49 nodes placed at random")
            }
            Self::Sizes => {
                let all = SIZES.map(|(nodes, _)| nodes.to_string());
                names(all.into(), "nodes placed at random, 5% lost")
            }
        }
    }
}

/// All settings of figures 6.1 to 6.9, each once.
pub(super) fn settings() -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for setting in OVER.into_iter().flat_map(Over::settings) {
        if !all.contains(&setting) {
            all.push(setting);
        }
    }
    all
}

/// The drop rates between which most figures of the thesis are given.
pub(super) fn lowest_and_highest(change: impl Fn(Setting) -> Setting) -> [Setting; 2] {
    let [first, .., last] = LOSSES;
    [first, last].map(|(loss, c)| change(Setting { loss, c, ..DEFAULT }))
}

/// Other readings of the thesis, by name.
pub(super) fn otherwise() -> Vec<(&'static str, [Setting; 2])> {
    let with = |name, change: fn(Setting) -> Setting| (name, lowest_and_highest(change));
    vec![
        with("all nodes losing the same", |it| Setting {
            bias: Bias::Even,
            ..it
        }),
        with("losses from twice the rate down to 0", |it| Setting {
            bias: Bias::Linear,
            ..it
        }),
        with("f = 2", |it| Setting { f: 2, ..it }),
        with("own suspicions only", |it| Setting {
            own_suspicions: true,
            ..it
        }),
    ]
}

/// The loss is on each hop, which the thesis' c was not measured for: only at 5%, because more loss
/// leaves few lists complete.
pub(super) fn by_hop() -> Setting {
    Setting {
        every_hop: true,
        ..DEFAULT
    }
}

pub(super) fn experiments(settings: impl IntoIterator<Item = Setting>) -> Vec<Experiment> {
    settings.into_iter().map(Setting::experiment).collect()
}

/// A figure of all trials in which it exists.
pub(super) fn column(
    samples: &Samples,
    setting: &Setting,
    protocol: Protocol,
    figure: fn(&Seen) -> Option<f64>,
) -> Vec<f64> {
    let seen = setting.seen(samples, protocol, Announcement::Reliable);
    seen.iter().filter_map(figure).collect()
}

/// The mean of a figure.
pub(super) fn mean_of(
    samples: &Samples,
    setting: &Setting,
    protocol: Protocol,
    figure: fn(&Seen) -> Option<f64>,
) -> Option<f64> {
    mean(&column(samples, setting, protocol, figure))
}

/// In the thesis' units, which are ms.
pub(super) fn completion(seen: &Seen) -> Option<f64> {
    Some(seen.completion as f64 / 1_000.0)
}

pub(super) fn hop_bytes(seen: &Seen) -> Option<f64> {
    Some(seen.hop_bytes as f64)
}

pub(super) fn leaders(seen: &Seen) -> Option<f64> {
    Some(seen.leaders as f64)
}

/// The number of nodes that are less healthy than the leader; nodes that are as healthy count half.
pub(super) fn health(seen: &Seen) -> Option<f64> {
    Some(seen.health? as f64 / 2.0)
}

pub(super) fn hash(seen: &Seen) -> Option<f64> {
    Some(seen.hash? as f64)
}

/// The percentage by which one protocol's completion time is below another's.
pub(super) fn cut_of(
    samples: &Samples,
    setting: &Setting,
    (base, other): (Protocol, Protocol),
    announcement: Announcement,
) -> Option<Estimate> {
    let times = |protocol| -> Vec<f64> {
        let seen = setting.seen(samples, protocol, announcement);
        seen.iter().filter_map(completion).collect()
    };
    cut(&times(base), &times(other))
}

/// A figure of all protocols in these settings, as the thesis draws it.
pub(super) fn plot(
    samples: &Samples,
    over: Over,
    (title, unit): (&str, &str),
    figure: fn(&Seen) -> Option<f64>,
    paper: Paper,
) -> Plot {
    let line = |protocol: Protocol| {
        let settings = over.settings().into_iter().zip(0..);
        let point = |(setting, nth): (Setting, u32)| {
            let values = column(samples, &setting, protocol, figure);
            Point::of(f64::from(nth), &values)
        };
        Line {
            name: format!("{protocol:?}"),
            points: settings.filter_map(point).collect(),
        }
    };
    Plot {
        title: title.to_owned(),
        x: over.axis(),
        y: Axis::Plain(unit.to_owned()),
        lines: PROTOCOLS.map(line).into(),
        paper,
    }
}

/// The same, over all three.
pub(super) fn plots(
    samples: &Samples,
    title: &str,
    unit: &str,
    figure: fn(&Seen) -> Option<f64>,
    words: &str,
) -> Vec<Plot> {
    let plot = |over| plot(samples, over, (title, unit), figure, Paper::reports(words));
    OVER.map(plot).into()
}

/// The fewest trials of any setting.
pub(super) fn fewest(samples: &Samples, settings: &[Setting]) -> Option<usize> {
    let trials = |it: &Setting| samples.of(&it.name()).count();
    settings.iter().map(trials).min()
}

/// The note about the settings, once for all claims.
pub(super) fn notes() -> String {
    format!(
        "Lists are those of Medley-F under the thesis' rules in the same mesh, with suspicions of the last \
         {} units. Loss is that of a whole way, for which table 5.1's c was measured; nodes lose more \
         the lower their hash is (the rate, and as much again at the lowest, half as much at the next): \
         of three ways that were tried the one that comes near figure 6.8; nobody fails, f is 0, anybody \
         begins. The \
         multicast is reliable.",
        PERIOD * HISTORY
    )
}

/// The result of a claim on completion times.
pub(super) struct Cuts {
    /// The mean over all settings.
    pub(super) mean: f64,
    pub(super) words: String,
    pub(super) trials: usize,
}

/// The settings that [`Cuts::of`] needs.
pub(super) fn settings_of_cuts() -> Vec<Setting> {
    let mut all = settings();
    all.extend(otherwise().into_iter().flat_map(|(_, both)| both));
    all.push(by_hop());
    all
}

impl Cuts {
    pub(super) fn of(samples: &Samples, pair: (Protocol, Protocol)) -> Option<Self> {
        let all = settings();
        let cut = |setting: &Setting, announcement| cut_of(samples, setting, pair, announcement);
        let mean_cut = |announcement| -> Option<f64> {
            let cuts = all.iter().map(|it| Some(cut(it, announcement)?.value));
            mean(&cuts.collect::<Option<Vec<f64>>>()?)
        };
        let words = |settings: &[Setting]| -> Option<String> {
            let word = |it: &Setting| {
                let cut = cut(it, Announcement::Reliable)?;
                Some(format!("{:.1} (+-{:.1})", cut.value, cut.error))
            };
            let words: Option<Vec<String>> = settings.iter().map(word).collect();
            Some(words?.join(", "))
        };
        let [placements, losses, sizes] = OVER.map(|over| words(&over.settings()));
        let others = otherwise().into_iter().map(|(name, settings)| {
            let [low, high] = settings.map(|it| cut(&it, Announcement::Reliable));
            Some(format!("{:.1}, {:.1} with {name}", low?.value, high?.value))
        });
        let others: Option<Vec<String>> = others.collect();
        let by_hop = cut(&by_hop(), Announcement::Reliable)?;
        let acknowledged = mean_cut(Announcement::Acknowledged)?;
        let unaware: usize = all.iter().map(|it| unaware(samples, it)).sum();
        let elections: usize = all.iter().map(|it| runs(samples, it)).sum();
        Some(Self {
            mean: mean_cut(Announcement::Reliable)?,
            words: format!(
                "Over grid, random and cluster: {}; over 5, 10, 15, 20% lost: {}; over 32 to 256 nodes: {}. \
                 At 5 and 20%: {}; at 5% lost a hop: {:.1}. With acknowledged announcements over lossy \
                 links, our default, {acknowledged:.1} in the mean: announcing takes as long \
                 in both; {unaware} of these {elections} elections had a node that never heard.",
                placements?,
                losses?,
                sizes?,
                others?.join("; "),
                by_hop.value,
            ),
            trials: fewest(samples, &settings_of_cuts())?,
        })
    }
}

/// The number of elections with acknowledged announcements that ended with a node that follows no
/// leader or another one.
fn unaware(samples: &Samples, setting: &Setting) -> usize {
    let of = |protocol| setting.seen(samples, protocol, Announcement::Acknowledged);
    let seen = PROTOCOLS.into_iter().flat_map(of);
    seen.filter(|it| it.unaware > 0).count()
}

fn runs(samples: &Samples, setting: &Setting) -> usize {
    samples.of(&setting.name()).count() * PROTOCOLS.len()
}
