//! C1: messages for one uncontended entry, exactly.

use std::sync::Arc;

use selvedge_camera::{Camera, Command, Config};
use selvedge_core::Span;
use selvedge_sim::network::{Link, Network, Topology};

use super::lab::{member, notify};
use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};

const NAME: &str = "camera: one entry, nobody else, nothing lost";
const NODES: [usize; 4] = [2, 16, 64, 256];

pub(super) fn claim() -> Claim {
    Claim {
        id: "C1",
        claim: "messages for one uncontended entry are 2 (members - 1)",
        source: "Camera, section 4.3",
        unit: "messages, at 2, 16, 64 and 256 members",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(|seed| {
                let counts = NODES.iter().map(|&nodes| entry(nodes, seed));
                Ok(Sample(counts.collect::<Result<_, _>>()?))
            }),
        }],
        judge,
    }
}

fn entry(nodes: usize, seed: u64) -> Result<Option<u64>, Fault> {
    let topology = Topology::full_mesh(nodes).map_err(Fault::network)?;
    let mut mesh = Network::new(seed, topology, Link::default()).map_err(Fault::network)?;
    let config = Config::new(u32::try_from(nodes).unwrap_or(u32::MAX));
    for node in 0..nodes {
        let machine = Camera::new(member(node), config).map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    for node in 0..nodes {
        notify(&mut mesh, node, 0..nodes)?;
    }
    mesh.command(0, Command::Enter).map_err(Fault::network)?;
    mesh.run_for(Span::millis(100));
    let is_inside = mesh.machine(0).is_some_and(|it| it.token().is_some());
    Ok(is_inside.then_some(mesh.counters().sent))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let ours = sample.0.iter().copied().collect::<Option<Vec<u64>>>()?;
    let paper = NODES.map(|nodes| 2 * (nodes as u64 - 1));
    let words = |figures: &[u64]| {
        let words = figures.iter().map(ToString::to_string);
        words.collect::<Vec<_>>().join(", ")
    };
    Some(Judgement {
        paper: words(&paper),
        ours: words(&ours),
        verdict: if ours == paper {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: "Counted from Enter until all is quiet, with the node inside. Holds when equal."
            .to_owned(),
        trials: 1,
        plots: Vec::new(),
    })
}
