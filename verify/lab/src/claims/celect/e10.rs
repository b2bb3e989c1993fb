//! E10: the worked example of Hybrid.

use std::sync::Arc;

use selvedge_celect::check::ById;
use selvedge_celect::{Celect, Command, Config, Event, Protocol};
use selvedge_core::{Delta, Member, Span};
use selvedge_sim::network::{Link, Multicasts, Network, Topology};

use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};

const NAME: &str = "celect: the worked example of Hybrid";

/// The number of times that each node suspected each node. Hashes are ids.
const SUSPICIONS: [[u16; 5]; 5] = [
    [0, 2, 1, 4, 0],
    [5, 0, 0, 2, 1],
    [2, 2, 0, 3, 1],
    [3, 0, 2, 0, 1],
    [0, 1, 0, 2, 0],
];

const INITIATOR: usize = 4;
/// The nodes that do not answer.
const SILENT: [usize; 2] = [2, 3];
const PAPER: u64 = 2;
/// Answers come in an order that is drawn.
const TRIALS: u32 = 100;

pub(super) fn claim() -> Claim {
    Claim {
        id: "E10",
        claim: "of the five nodes of the example, where 0, 1 and 4 answer initiator 4, Hybrid ends with",
        source: "Election, section 5.2.4",
        unit: "",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: TRIALS,
            run: Arc::new(example),
        }],
        judge,
    }
}

fn member(node: usize) -> Member {
    Member::new(node as u64, 0)
}

/// The node that all follow in the end, and the first leader.
fn example(seed: u64) -> Result<Sample, Fault> {
    let nodes = SUSPICIONS.len();
    let topology = Topology::full_mesh(nodes).map_err(Fault::network)?;
    let mut mesh = Network::new(seed, topology, Link::default()).map_err(Fault::network)?;
    mesh.set_multicasts(Multicasts::Reliable);
    // All nodes are asked, the initiator itself too; silent nodes count as dead.
    let config = Config::new(2, 2)
        .with_protocol(Protocol::Hybrid)
        .with_lowest(2)
        .with_suspected(2)
        .with_retries(0);
    for node in 0..nodes {
        let machine = Celect::new(member(node), config, ById).map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    for (node, counts) in SUSPICIONS.iter().enumerate() {
        for (other, &count) in counts.iter().enumerate().filter(|(it, _)| *it != node) {
            let suspicions = (0..count).map(|_| Delta::Suspected(member(other)));
            for delta in [Delta::Joined(member(other))].into_iter().chain(suspicions) {
                mesh.membership(node, delta).map_err(Fault::network)?;
            }
        }
    }
    mesh.partition(&[SILENT]).map_err(Fault::network)?;
    mesh.command(INITIATOR, Command::Elect)
        .map_err(Fault::network)?;
    // Both answers come within this time, and no timeout does.
    mesh.run_for(Span::millis(100));
    mesh.heal();
    mesh.run_for(Span::secs(10));
    let leader = |it: &Celect<ById>| it.leader().map(|(leader, _)| leader.id.0);
    let leaders: Vec<_> = mesh.machines().map(|(_, it)| leader(it)).collect();
    let last = leaders.first().copied().flatten();
    let agreed = last.filter(|_| leaders.iter().all(|it| *it == last));
    let first = mesh.events().iter().find_map(|(_, _, event)| {
        let Event::Elected { leader, .. } = event else {
            return None;
        };
        Some(leader.id.0)
    });
    Ok(Sample(vec![agreed, first]))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let ends: Vec<_> = samples
        .of(NAME)
        .map(|(_, it)| it.0.first().copied().flatten())
        .collect();
    let firsts = samples
        .of(NAME)
        .map(|(_, it)| it.0.get(1).copied().flatten());
    let first_0 = firsts.filter(|it| *it == Some(0)).count();
    let other = ends.iter().find(|it| **it != Some(PAPER));
    let shown = other.or_else(|| ends.first())?;
    Some(Judgement {
        paper: format!("node {PAPER}"),
        ours: shown.map_or_else(|| "no common leader".to_owned(), |it| format!("node {it}")),
        verdict: if other.is_none() {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Node 4 counts its own list, the other two answers come in any order, 2 and 3 are not reached \
             until then. 0 leads first in {first_0} of {} elections, as in the example. Holds when all follow \
             node {PAPER} in the end of each.",
            ends.len()
        ),
        trials: ends.len(),
        plots: Vec::new(),
    })
}
