//! S2: eventual and global strict visibility in the morning.

use super::lab::{EV, Figure, GSV, Load, PSV, Setting, WV};
use super::notify::{experiments, fewest, plot, ratio};
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const PAPER: [f64; 2] = [3.0, 16.0];
const MODELS: [super::lab::Model; 4] = [GSV, PSV, EV, WV];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S2",
        claim: "EV against GSV in the morning: parallelism is higher / median latency is shorter",
        source: "SafeHome, section 7.2",
        unit: "times",
        experiments: experiments(settings()),
        judge,
    }
}

fn settings() -> [Setting; 4] {
    MODELS.map(|model| Setting::new(Load::Morning, model))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [gsv, _, ev, _] = &settings();
    let ours = [
        ratio(ev, gsv, Figure::Parallelism, samples)?,
        ratio(gsv, ev, Figure::Median, samples)?,
    ];
    let all =
        |is: fn(f64, f64) -> bool| ours.iter().zip(PAPER).all(|(&ours, paper)| is(ours, paper));
    let ratio_by_time = ratio(ev, gsv, Figure::ParallelismByTime, samples)?;
    let [of_gsv, latency_of_gsv] =
        [Figure::Parallelism, Figure::Median].map(|figure| gsv.mean(figure, samples));
    let seconds = |it: &Setting| it.mean(Figure::Mean, samples).unwrap_or_default();
    let [g, p, e, w] = settings().map(|it| seconds(&it));
    let shares = |figure| {
        let shares = [ev, &settings()[3]].map(|it| it.mean(figure, samples).unwrap_or_default());
        shares.map(|it| it * 100.0)
    };
    let [by_text, by_text_weak] = shares(Figure::Incongruent);
    let [by_time, by_time_weak] = shares(Figure::IncongruentTime);
    let over_models = |title: &str, (unit, figure): (&str, Figure), paper: Paper| {
        let names = MODELS.map(|it| it.name);
        let lines = [("", settings().to_vec())];
        plot(
            title,
            ("", &names),
            (unit, figure, 1.0),
            lines,
            samples,
            paper,
        )
    };
    Some(Judgement {
        paper: "3 / 16".to_owned(),
        ours: format!("{:.1} / {:.1}", ours[0], ours[1]),
        verdict: if all(|ours, paper| ours >= paper) {
            Verdict::Better
        } else if all(|ours, paper| ours >= paper * 0.8) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "How many run, at moments at which one starts or ends, as the paper counts, and medians of each \
             run, in the mean of all. Better from the paper's figures on, holds from 80% of them. The verdict \
             leaves out how long each number ran: a burst of short routines has many such moments. By time, \
             while any runs, EV's parallelism is {ratio_by_time:.1} times GSV's. Mean latencies in s: \
             GSV {g:.0}, PSV {p:.0}, EV {e:.0}, WV {w:.0}; the authors' own program gives 3223, 439, 302, \
             258. Temporary incongruence, EV and WV: {by_text:.1} and {by_text_weak:.1}% of routines (the \
             paper's text), {by_time:.1} and {by_time_weak:.1}% of their time (the authors' program).",
        ),
        trials: fewest(settings(), samples),
        plots: vec![
            over_models(
                "S2: parallelism in the morning, at starts and ends",
                ("routines", Figure::Parallelism),
                Paper::Figures(vec![Reference::at(
                    2,
                    format!("paper: {} times GSV's", PAPER[0]),
                    of_gsv? * PAPER[0],
                )]),
            ),
            over_models(
                "S2: parallelism in the morning, by time",
                ("routines", Figure::ParallelismByTime),
                Paper::reports("it counts at starts and ends alone"),
            ),
            over_models(
                "S2: median latency in the morning",
                ("s", Figure::Median),
                Paper::Figures(vec![Reference::at(
                    2,
                    format!("paper: GSV's / {}", PAPER[1]),
                    latency_of_gsv? / PAPER[1],
                )]),
            ),
        ],
    })
}
