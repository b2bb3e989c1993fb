//! C5: what a larger mesh costs.

use super::lab::{Contention, THESIS, plot, words};
use crate::claims::{Claim, Judgement, Samples, Verdict};

const NODES: [usize; 5] = [16, 32, 64, 128, 256];

fn settings() -> impl Iterator<Item = Contention> {
    NODES
        .into_iter()
        .map(|nodes| Contention { nodes, ..THESIS })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "C5",
        claim: "with 10 requesters the wait grows with the nodes and levels off by 256; messages a node grow less than the nodes",
        source: "Camera, section 5.1, figures 5.3 and 5.4",
        unit: "ms of wait / requesters, at 16, 32, 64, 128 and 256 nodes; messages a node",
        experiments: settings().map(Contention::experiment).collect(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = settings()
        .map(|it| it.seen(samples))
        .collect::<Option<Vec<_>>>()?;
    let waits: Vec<f64> = seen.iter().map(|it| it.wait).collect();
    let requesters = THESIS.requesters as f64;
    let a_node: Vec<f64> = seen
        .iter()
        .zip(NODES)
        .map(|(it, nodes)| it.messages * requesters / nodes as f64)
        .collect();
    let grows = waits.is_sorted();
    let [first, second, .., before, last] = waits.as_slice() else {
        return None;
    };
    // By doubling, relative to what was there.
    let levels_off = last / before <= second / first;
    let sublinear = a_node.last()? / a_node.first()? < (NODES.len() as f64 - 1.0).exp2();
    let names: Vec<String> = NODES.iter().map(ToString::to_string).collect();
    Some(Judgement {
        paper: "grows, levels off; sublinear".to_owned(),
        ours: format!(
            "{}; {}",
            words(waits.iter().copied()),
            words(a_node.iter().copied())
        ),
        verdict: if grows && levels_off && sublinear {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason:
            "Holds when no wait is below the one before it, the last doubling of the nodes raises \
                 it by no larger part than the first, and messages a node grow less than 16 times."
                .to_owned(),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![
            plot(
                "Wait by nodes",
                ("nodes", &names),
                "wait / requesters, ms",
                waits,
            ),
            plot(
                "Messages a node",
                ("nodes", &names),
                "messages / nodes",
                a_node,
            ),
        ],
    })
}
