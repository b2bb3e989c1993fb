//! C5: the cost of a larger mesh.

use super::lab::{BOTH, Contention, Seen, THESIS, both, experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

const NODES: [usize; 5] = [16, 32, 64, 128, 256];

fn settings() -> Vec<Contention> {
    NODES.map(|nodes| Contention { nodes, ..THESIS }).into()
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "C5",
        claim: "with 10 requesters the wait grows with the nodes and levels off by 256; messages a node grow less than the nodes",
        source: "Camera, section 5.1, figures 5.3 and 5.4",
        unit: "ms of wait / requesters, at 16, 32, 64, 128 and 256 nodes; messages a node",
        experiments: experiments(settings().into_iter()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = both(settings, samples)?;
    let requesters = THESIS.requesters as f64;
    let [waits, eager_waits] = seen
        .each_ref()
        .map(|seen| seen.iter().map(|it| it.wait).collect::<Vec<f64>>());
    let by_node = |seen: &Vec<Seen>| -> Vec<f64> {
        seen.iter()
            .zip(NODES)
            .map(|(it, nodes)| it.messages * requesters / nodes as f64)
            .collect()
    };
    let [a_node, eager_a_node] = seen.each_ref().map(by_node);
    let grows = waits.is_sorted();
    let [first, second, .., before, last] = waits.as_slice() else {
        return None;
    };
    // For each doubling, the growth relative to the value before.
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
        reason: format!(
            "A wait ends with the slowest of all answers; the more nodes, the more hops it takes and the \
             more answers there are, of which the slowest is lost more often. Where a quorum and all \
             rivals are enough (Config::eager): {}; {}. Holds when no wait is below the one before it, \
             the last doubling of the nodes raises it by no larger part than the first, and messages a \
             node grow less than 16 times.",
            words(eager_waits.iter().copied()),
            words(eager_a_node.iter().copied())
        ),
        trials: fewest(&seen)?,
        plots: vec![
            plot(
                "Wait by nodes",
                ("nodes", &names),
                "wait / requesters, ms",
                BOTH.into_iter().zip([waits, eager_waits]),
                Paper::reports("it grows, and levels off by 256 nodes (curves)"),
            ),
            plot(
                "Messages a node",
                ("nodes", &names),
                "messages / nodes",
                BOTH.into_iter().zip([a_node, eager_a_node]),
                Paper::reports("it grows less than the nodes (curves)"),
            ),
        ],
    })
}
