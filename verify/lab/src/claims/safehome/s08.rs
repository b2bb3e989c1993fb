//! S8: commands rolled back when devices fail.

use super::lab::{EV, Figure, GSV, Load, Model, PSV, S_GSV, Setting};
use super::notify::{experiments, fewest, plot, words};
use super::scenario::TABLE_3;
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const MODELS: [Model; 4] = [GSV, S_GSV, PSV, EV];
/// Percent of the commands that must succeed.
const MUST: [u64; 5] = [20, 40, 60, 80, 100];
/// Percent of the devices that fail.
const FAILING: [u64; 4] = [5, 10, 25, 50];
const PAPER: [f64; 2] = [50.0, 40.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S8",
        claim: "when 25% of the devices fail, the least is rolled back under EV; under GSV / S-GSV of an aborted routine's commands",
        source: "SafeHome, section 7.4, figure 13",
        unit: "%",
        experiments: experiments(settings()),
        judge,
    }
}

fn setting(model: Model, must: u64, failing: u64) -> Setting {
    Setting {
        must,
        failing,
        ..Setting::new(Load::Micro(TABLE_3), model)
    }
}

fn by_must(model: Model) -> Vec<Setting> {
    MUST.map(|must| setting(model, must, 25)).to_vec()
}

fn by_failing(model: Model) -> Vec<Setting> {
    FAILING.map(|failing| setting(model, 100, failing)).to_vec()
}

fn settings() -> impl Iterator<Item = Setting> {
    let of = |model| by_must(model).into_iter().chain(by_failing(model));
    MODELS.into_iter().flat_map(of)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let at = |figure| -> Option<Vec<f64>> {
        let all = MODELS.map(|model| setting(model, 100, 25).mean(figure, samples));
        all.into_iter().map(|it| Some(it? * 100.0)).collect()
    };
    let (rolled, restored) = (at(Figure::RolledBack)?, at(Figure::Restored)?);
    let (aborted, hit) = (at(Figure::Aborted)?, at(Figure::RolledBackHit)?);
    let [gsv, strong, psv, ev] = *restored.as_slice() else {
        return None;
    };
    let is_least = ev < gsv.min(strong).min(psv);
    let is_near = |(ours, paper): (f64, f64)| (ours - paper).abs() <= 10.0;
    let are_near = [gsv, strong].into_iter().zip(PAPER).all(is_near);
    let lines = |of: fn(Model) -> Vec<Setting>| MODELS.map(|model| (model.name, of(model)));
    let names = |all: &[u64]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (must, failing) = (names(&MUST), names(&FAILING));
    let must: Vec<&str> = must.iter().map(String::as_str).collect();
    let failing: Vec<&str> = failing.iter().map(String::as_str).collect();
    let plateaus = || {
        Paper::Figures(vec![
            Reference::everywhere("paper: GSV levels off", PAPER[0]),
            Reference::everywhere("paper: S-GSV levels off", PAPER[1]),
        ])
    };
    let by_must = plot(
        "S8: commands rolled back, 25% of devices fail",
        ("% of commands that must succeed", &must),
        ("%", Figure::Restored, 100.0),
        lines(by_must),
        samples,
        plateaus(),
    );
    Some(Judgement {
        paper: "EV least; 50 / 40".to_owned(),
        ours: format!("EV {ev:.1}, PSV {psv:.1}; {gsv:.1} / {strong:.1}"),
        verdict: if is_least && are_near {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Commands whose device an aborted routine left to be restored, all commands being must. Holds \
             when EV's is least and the others are within 10 points. Under EV what a later routine has \
             changed is not restored. Most are aborted because a device of theirs had failed before they \
             came to it, which is alike in all models. GSV, S-GSV, PSV, EV: commands done before the abort, \
             {}%; of those alone that had started when a device of theirs failed, {}%; routines that were \
             aborted, {}%.",
            words(rolled, 1),
            words(hit, 1),
            words(aborted, 1),
        ),
        trials: fewest(settings(), samples),
        plots: vec![
            by_must,
            plot(
                "S8: commands rolled back, all commands must succeed",
                ("% of devices that fail", &failing),
                ("%", Figure::Restored, 100.0),
                lines(by_failing),
                samples,
                plateaus(),
            ),
            plot(
                "S8: aborted routines, all commands must succeed",
                ("% of devices that fail", &failing),
                ("%", Figure::Aborted, 100.0),
                lines(by_failing),
                samples,
                Paper::reports("curves (figures 13a and 13b)"),
            ),
        ],
    })
}
