//! C2: how long an entry takes, in round trips.

use std::sync::Arc;

use selvedge_camera::{Camera, Command, Config, Event};
use selvedge_core::Span;
use selvedge_sim::network::{Link, Network, Topology};

use super::lab::{member, notify};
use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};

const NAME: &str = "camera: delays of an entry, in hundredths of a round trip";
const ONE_WAY: Span = Span::millis(50);
/// In hundredths of a round trip.
const PAPER: [u64; 3] = [100, 50, 200];

pub(super) fn claim() -> Claim {
    Claim {
        id: "C2",
        claim: "client delay / synchronization delay behind a known holder / behind an unknown one",
        source: "Camera, section 4.3",
        unit: "round trips",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(|_| delays()),
        }],
        judge,
    }
}

/// Nodes 0 and 1 want to enter; both know 2, and each other if `known`.
fn mesh(known: bool) -> Result<Network<Camera>, Fault> {
    let link = Link {
        min_delay: ONE_WAY,
        max_delay: ONE_WAY,
        ..Link::default()
    };
    let topology = Topology::full_mesh(3).map_err(Fault::network)?;
    let mut mesh = Network::new(1, topology, link).map_err(Fault::network)?;
    for node in 0..3 {
        let machine = Camera::new(member(node), Config::new(3)).map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    notify(&mut mesh, 2, [0, 1])?;
    for node in [0, 1] {
        let others = if known { 0..3 } else { 2..3 };
        notify(&mut mesh, node, others)?;
    }
    Ok(mesh)
}

/// From now until `node` is inside.
fn until_inside(mesh: &mut Network<Camera>, node: usize) -> Option<u64> {
    let start = mesh.now();
    mesh.drain_events().for_each(drop);
    mesh.run_for(ONE_WAY * 20);
    let entered =
        |(_, who, event): &(_, usize, Event)| *who == node && matches!(event, Event::Entered(_));
    let (at, ..) = mesh.drain_events().find(entered)?;
    Some(at.since(start).0 * 100 / (2 * ONE_WAY.0))
}

fn delays() -> Result<Sample, Fault> {
    let command = |mesh: &mut Network<Camera>, node, command| {
        mesh.command(node, command).map_err(Fault::network)
    };
    let mut known = mesh(true)?;
    command(&mut known, 0, Command::Enter)?;
    let client = until_inside(&mut known, 0);
    command(&mut known, 1, Command::Enter)?;
    known.run_for(ONE_WAY * 20);
    command(&mut known, 0, Command::Exit)?;
    let behind_known = until_inside(&mut known, 1);
    let mut unknown = mesh(false)?;
    command(&mut unknown, 0, Command::Enter)?;
    unknown.run_for(ONE_WAY * 20);
    // At the same moment, and in this order.
    command(&mut unknown, 1, Command::Enter)?;
    command(&mut unknown, 0, Command::Exit)?;
    let behind_unknown = until_inside(&mut unknown, 1);
    Ok(Sample(vec![client, behind_known, behind_unknown]))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let ours = sample.0.iter().copied().collect::<Option<Vec<u64>>>()?;
    let words = |figures: &[u64]| {
        let words = figures.iter().map(|&it| format!("{}", it as f64 / 100.0));
        words.collect::<Vec<_>>().join(" / ")
    };
    Some(Judgement {
        paper: words(&PAPER),
        ours: words(&ours),
        verdict: if ours == PAPER {
            Verdict::Holds
        } else if ours.iter().zip(PAPER).all(|(&ours, paper)| ours <= paper) {
            Verdict::Better
        } else {
            Verdict::Differs
        },
        reason: "One entry alone; one that asked long before the exit; and one that asks at the \
                 moment of the exit of a holder that it does not know, through a common friend. Holds \
                 when equal."
            .to_owned(),
        trials: 1,
        plots: Vec::new(),
    })
}
