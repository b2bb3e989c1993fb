//! P3: units of three, five and seven.

use selvedge_core::Span;

use super::setting::{Case, Figures, System};
use crate::claims::plot::{over, spread};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

const SIZES: [u16; 3] = [3, 5, 7];
/// From three to five and from five to seven, in percent.
const GAIN: [f64; 2] = [15.0, 5.0];
const OVERHEAD: [f64; 2] = [17.0, 20.0];
/// Figures up to this many points below the paper's gain, and above its overhead, still hold.
const BAND: f64 = 5.0;
/// The percentage of followers that return a wrong result in the second setting.
const WRONG: u64 = 20;
/// A short function, in the third.
const SHORT: Span = Span::secs(3);

fn cases() -> [Case; 3] {
    SIZES.map(|unit| Case::new(System::Pcm { unit }))
}

fn with_wrong() -> [Case; 3] {
    cases().map(|it| Case { wrong: WRONG, ..it })
}

fn short() -> [Case; 3] {
    let length = SHORT;
    cases().map(|it| Case { length, ..it })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "P3",
        claim: "from a unit of three to one of five, and from five to seven: a function takes less time | more energy, by",
        source: "PCM, section 5a, figure 7",
        unit: "%",
        experiments: [cases(), with_wrong(), short()]
            .into_iter()
            .flatten()
            .map(Case::experiment)
            .collect(),
        judge,
    }
}

fn figures(cases: [Case; 3], samples: &Samples) -> Option<[Figures; 3]> {
    let all: Option<Vec<Figures>> = cases.iter().map(|it| it.figures(samples)).collect();
    all?.try_into().ok()
}

/// From each size to the next, in percent.
fn growth(sizes: &[Figures; 3], figure: fn(&Figures) -> f64) -> [f64; 2] {
    let [three, five, seven] = sizes;
    [(three, five), (five, seven)].map(|(one, next)| (figure(next) / figure(one) - 1.0) * 100.0)
}

fn gain(sizes: &[Figures; 3], figure: fn(&Figures) -> f64) -> [f64; 2] {
    growth(sizes, figure).map(|it| 0.0 - it)
}

fn words([first, second]: [f64; 2]) -> String {
    format!("{first:.0} / {second:.0}")
}

fn verdict(gains: [f64; 2], overheads: [f64; 2]) -> Verdict {
    let all = |slack: f64| {
        let gains = gains
            .iter()
            .zip(GAIN)
            .all(|(it, paper)| *it >= paper - slack);
        let mut overheads = overheads.iter().zip(OVERHEAD);
        gains && overheads.all(|(it, paper)| *it <= paper + slack)
    };
    match (all(0.0), all(BAND)) {
        (true, _) => Verdict::Better,
        (false, true) => Verdict::Holds,
        (false, false) => Verdict::Differs,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found = figures(cases(), samples)?;
    let wrong = figures(with_wrong(), samples)?;
    let short = figures(short(), samples)?;
    let (gains, overheads) = (
        gain(&found, |it| it.completion),
        growth(&found, |it| it.energy),
    );
    let right = |it: &Figures| format!("{:.1}", (1.0 - it.wrong) * 100.0);
    let seconds = |it: &Figures| format!("{:.1}", it.completion);
    let names = SIZES.map(|it| it.to_string());
    Some(Judgement {
        paper: format!("{} | {}", words(GAIN), words(OVERHEAD)),
        ours: format!("{} | {}", words(gains), words(overheads)),
        verdict: verdict(gains, overheads),
        reason: format!(
            "{} s in units of three / five / seven. All followers have the same duty cycle, as in section 5b. The \
             orchestrator has run the function before enough others have in 1/3, 2/5 and 3/7 of the cases, and mostly sleeps \
             once more before it reads their votes: so a larger unit is not faster. The paper's gains are those of a unit that \
             answers with its first result: the first of three / five / seven functions ends {} s after the request, or, \
             with functions of {} s, {} s, which is {}% less. So it is in the authors' program, which counts active nodes in \
             a variable of its own that stays 1, and the first vote decides. Where a function is as long as here, less \
             is gained so: {}%. Each follower more takes as much as the one \
             before, so the overhead falls with the size where time does not change; in the paper it rises, for time \
             falls less from five to seven than from three to five. Where {WRONG}% of the followers return something \
             wrong, {} s, and the answer is right in {}% of the units: that is what a larger unit is for. Better when \
             no gain is smaller and no overhead larger than the paper's, holds within {BAND} points.",
            found.map(|it| seconds(&it)).join(" / "),
            found.map(|it| format!("{:.1}", it.first)).join(" / "),
            super::energy::seconds(SHORT),
            short.map(|it| format!("{:.2}", it.first)).join(" / "),
            words(gain(&short, |it| it.first)),
            words(gain(&found, |it| it.first)),
            wrong.map(|it| seconds(&it)).join(" / "),
            wrong.map(|it| right(&it)).join(" / "),
        ),
        trials: found.iter().map(|it| it.trials).min()?,
        plots: vec![
            spread(
                "Completion of a function",
                ("followers in a unit", &names),
                "s",
                [
                    (
                        "all right",
                        cases().map(|it| it.completions(samples)).to_vec(),
                    ),
                    (
                        "20% wrong",
                        with_wrong().map(|it| it.completions(samples)).to_vec(),
                    ),
                ],
                Paper::reports("15% less from three to five, 5% less from five to seven"),
            ),
            over(
                "Energy of a function, the gateway's included",
                ("followers in a unit", &names),
                "J",
                [("", found.iter().map(|it| it.energy).collect())],
                Paper::reports("17% more from three to five, 20% more from five to seven"),
            ),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_within_the_band_of_each_figure() {
        assert_eq!(verdict(GAIN, OVERHEAD), Verdict::Better);
        assert_eq!(verdict([10.0, 0.0], [22.0, 25.0]), Verdict::Holds);
        assert_eq!(verdict([9.9, 5.0], OVERHEAD), Verdict::Differs);
        assert_eq!(verdict(GAIN, [17.0, 25.1]), Verdict::Differs);
    }
}
