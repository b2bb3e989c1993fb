//! E6: the messages of an election without faults, exactly.

use std::sync::Arc;

use selvedge_celect::{Celect, Command, Config, Lowest, Message, Protocol};
use selvedge_core::{Delta, Span};
use selvedge_sim::network::{Link, Multicasts, Network, Topology};

use crate::claims::membership::traces::member;
use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};

const NAME: &str = "celect: one election of 49 nodes, nothing lost";
const NODES: usize = 49;
/// c and f: table 5.1's for 5% and 20% lost, without and with failures.
const TOLERATED: [(u16, u16); 4] = [(4, 0), (4, 2), (13, 0), (13, 5)];
const PROTOCOLS: [Protocol; 2] = [Protocol::Base, Protocol::Lean];

pub(super) fn claim() -> Claim {
    Claim {
        id: "E6",
        claim: "without faults, Base sends 2(c + f + 1) + 1 unicasts and one multicast; our Lean two unicasts fewer",
        source: "Election, lemma 1 of section 5.3",
        unit: "unicasts, with c and f 4 and 0, 4 and 2, 13 and 0, 13 and 5; Lean's",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 100,
            run: Arc::new(|seed| {
                let mut sample = Vec::new();
                for protocol in PROTOCOLS {
                    for (c, f) in TOLERATED {
                        sample.extend(election(protocol, c, f, seed)?.map(Some));
                    }
                }
                Ok(Sample(sample))
            }),
        }],
        judge,
    }
}

/// Unicasts and multicasts.
fn election(protocol: Protocol, c: u16, f: u16, seed: u64) -> Result<[u64; 2], Fault> {
    let topology = Topology::grid(7, 7, 2_500, 4_000).map_err(Fault::network)?;
    let mut mesh = Network::new(seed, topology, Link::default()).map_err(Fault::network)?;
    mesh.set_multicasts(Multicasts::Reliable);
    mesh.set_size(Message::encoded_len);
    let config = Config::new(c, f).with_protocol(protocol).with_retries(0);
    let attribute = Lowest::new(selvedge_core::Sha256Sortition, &seed.to_le_bytes());
    for node in 0..NODES {
        let machine = Celect::new(member(node), config, attribute.clone());
        let machine = machine.map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    for node in 0..NODES {
        for other in (0..NODES).filter(|&other| other != node) {
            mesh.membership(node, Delta::Joined(member(other)))
                .map_err(Fault::network)?;
        }
    }
    let ranks = |node: &usize| {
        use selvedge_celect::Attribute as _;
        attribute.rank(member(*node))
    };
    // An initiator that is the lowest itself needs no APPOINT.
    let lowest = (0..NODES).min_by_key(ranks).unwrap_or_default();
    let initiator = (seed % (NODES as u64 - 1)) as usize;
    let initiator = initiator + usize::from(initiator >= lowest);
    mesh.command(initiator, Command::Elect)
        .map_err(Fault::network)?;
    mesh.run_for(Span::secs(10));
    let follows = |(_, it): (usize, &Celect)| it.leader().map(|it| it.0) == Some(member(lowest));
    if !mesh.machines().all(follows) {
        return Err(Fault::Outcome("not all follow the lowest".to_owned()));
    }
    let counters = mesh.counters();
    let copies = counters.multicasts * (NODES as u64 - 1);
    Ok([counters.sent - copies, counters.multicasts])
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let expected = |protocol: Protocol| {
        let fewer = u64::from(protocol == Protocol::Lean);
        TOLERATED.map(|(c, f)| 2 * (u64::from(c) + u64::from(f) + 1 - fewer) + 1)
    };
    let paper = PROTOCOLS.map(expected);
    let is_exact = |(_, sample): (u32, &Sample)| {
        let expected = paper.as_flattened().iter();
        let expected = expected.flat_map(|&unicasts| [Some(unicasts), Some(1)]);
        expected.eq(sample.0.iter().copied())
    };
    let all: Vec<bool> = samples.of(NAME).map(is_exact).collect();
    let (_, first) = samples.of(NAME).next()?;
    // The figures that differ, if any do.
    let shown = samples.of(NAME).find(|it| !is_exact(*it));
    let shown = shown.map_or(first, |(_, sample)| sample);
    let unicasts: Vec<u64> = shown.0.iter().step_by(2).copied().collect::<Option<_>>()?;
    let words = |figures: &[u64]| {
        let words: Vec<String> = figures.iter().map(ToString::to_string).collect();
        words.join(", ")
    };
    let (base, lean) = unicasts.split_at_checked(TOLERATED.len())?;
    let exact = all.iter().filter(|it| **it).count();
    Some(Judgement {
        paper: format!("{}; Lean {}", words(&paper[0]), words(&paper[1])),
        ours: format!("{}; Lean {}", words(base), words(lean)),
        verdict: if exact == all.len() {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "49 nodes in a grid that know each other; a multicast is counted as one, and there was one, in \
             {exact} of {} elections. Begun by any but the lowest node, which would not have to notify \
             itself. Holds when all are equal.",
            all.len()
        ),
        trials: all.len(),
        plots: Vec::new(),
    })
}
