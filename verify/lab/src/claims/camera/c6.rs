//! C6: the cost of loss.

use super::lab::{BOTH, Contention, THESIS, both, experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

/// Percent lost on a hop.
const LOSS: [u32; 4] = [5, 10, 15, 20];
const PAPER: f64 = 10.0;

fn settings() -> Vec<Contention> {
    let setting = |loss| Contention {
        loss,
        requesters: 64,
        ..THESIS
    };
    LOSS.map(setting).into()
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "C6",
        claim: "from 5% to 20% lost on a hop, 64 requesters: wait and traffic grow by at most",
        source: "Camera, section 5.1, figures 5.5 and 5.6",
        unit: "times, wait and messages",
        experiments: experiments(settings().into_iter()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = both(settings, samples)?;
    let [waits, eager_waits] = seen
        .each_ref()
        .map(|seen| seen.iter().map(|it| it.wait).collect::<Vec<f64>>());
    let [messages, eager_messages] = seen
        .each_ref()
        .map(|seen| seen.iter().map(|it| it.messages).collect::<Vec<f64>>());
    let times = |figures: &[f64]| Some(figures.last()? / figures.first()?);
    let (wait, traffic) = (times(&waits)?, times(&messages)?);
    let most = wait.max(traffic);
    let (least_wait, least_traffic) = (*waits.first()?, *messages.first()?);
    let most_at_20 = |at_5: f64| {
        let name = format!("thesis: below {PAPER:.0} times that at 5%");
        Paper::Figures(vec![Reference::at(3, name, at_5 * PAPER)])
    };
    let names: Vec<String> = LOSS.iter().map(|it| format!("{it}%")).collect();
    Some(Judgement {
        paper: format!("{PAPER:.0}"),
        ours: format!("{wait:.1}, {traffic:.1}"),
        verdict: if most < PAPER {
            Verdict::Better
        } else if most <= PAPER * 1.1 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "At 5, 10, 15 and 20%: wait / requesters {} ms, messages a requester {}. In the thesis the \
             sender of a message finds out that it was lost, and sends it again. Ours learns that from an \
             answer that does not come: question and answer must get through both, over some 6 hops \
             each, which at 20% happens once in 15 times and at 5% every second time. So what was lost \
             comes again in more copies (Config::copies). Where a quorum and all rivals are enough \
             (Config::eager): {} ms, {}. Better below 10 times, holds up to 11.",
            words(waits.iter().copied()),
            words(messages.iter().copied()),
            words(eager_waits.iter().copied()),
            words(eager_messages.iter().copied())
        ),
        trials: fewest(&seen)?,
        plots: vec![
            plot(
                "Wait by loss",
                ("lost on a hop", &names),
                "wait / requesters, ms",
                BOTH.into_iter().zip([waits, eager_waits]),
                most_at_20(least_wait),
            ),
            plot(
                "Messages by loss",
                ("lost on a hop", &names),
                "messages / requesters",
                BOTH.into_iter().zip([messages, eager_messages]),
                most_at_20(least_traffic),
            ),
        ],
    })
}
