//! Many nodes that want to enter at once: their waits and their messages.

use std::sync::Arc;

use selvedge_camera::{Camera, Command, Config, Event};
use selvedge_core::{Choose, Delta, Member, Ratio, Span, Time};
use selvedge_sim::network::{Action, Link, Network, Relays, Topology};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;

pub(super) use crate::claims::plot::over as plot;
use crate::claims::stats::mean;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The time that a node stays inside.
const INSIDE: Span = Span::millis(100);
/// The timeout of a message, which the thesis does not give: half our default. Other settings are
/// our defaults. The farthest pair of a mesh has round trips of some 150 ms.
const RESEND: Span = Span::millis(250);
/// A run that has not served all by then has failed.
const PATIENCE: Span = Span::secs(36_000);

/// A mesh of `nodes` nodes, some of which ask at the same moment, with `loss` percent lost a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contention {
    pub(super) nodes: usize,
    pub(super) requesters: usize,
    pub(super) loss: u32,
    /// True if they enter with a quorum and all rivals, see [`Config::eager`]. The thesis waits for
    /// all.
    pub(super) eager: bool,
}

/// Figures of a setting, as means of all trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// The wait of a requester in ms, divided by the number of requesters.
    pub(super) wait: f64,
    /// Messages a requester, end to end, those sent again included.
    pub(super) messages: f64,
    /// Bytes a requester, hop by hop.
    pub(super) hop_bytes: f64,
    /// The number of trials.
    pub(super) trials: usize,
}

pub(super) const THESIS: Contention = Contention {
    nodes: 256,
    requesters: 10,
    loss: 5,
    eager: false,
};

pub(super) fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// Makes a node know these others.
pub(super) fn notify(
    mesh: &mut Network<Camera>,
    node: usize,
    others: impl IntoIterator<Item = usize>,
) -> Result<(), Fault> {
    for other in others {
        if other != node {
            mesh.membership(node, Delta::Joined(member(other)))
                .map_err(Fault::network)?;
        }
    }
    Ok(())
}

/// The settings of a node in a mesh of `nodes` nodes.
pub(super) fn settings(nodes: usize) -> Config {
    Config::new(u32::try_from(nodes).unwrap_or(u32::MAX))
        .with_resend(RESEND)
        .with_resend_limit(RESEND * 4)
        // A multicast would reach neighbours only.
        .with_multicast(false)
}

/// Nodes that know each other, placed at random, with a loss of `loss` percent a hop.
pub(super) fn mesh(
    nodes: usize,
    loss: u32,
    config: Config,
    seed: u64,
) -> Result<Network<Camera>, Fault> {
    // 15 m for 49 nodes; the same density for others.
    let side = (225_000_000 * nodes as u64 / 49).isqrt();
    let side = u32::try_from(side).unwrap_or(u32::MAX);
    let topology = Topology::random_geometric(nodes, side, 4_000, seed).map_err(Fault::network)?;
    let link = Link {
        loss: Ratio::new(loss, 100),
        ..Link::default()
    };
    let mut mesh = Network::new(seed, topology, link).map_err(Fault::network)?;
    mesh.set_relays(Relays::All);
    mesh.set_size(|message: &selvedge_camera::Message| message.encoded_len());
    for node in 0..nodes {
        let machine = Camera::new(member(node), config).map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    for node in 0..nodes {
        notify(&mut mesh, node, 0..nodes)?;
    }
    Ok(mesh)
}

impl Contention {
    fn name(&self) -> String {
        let Self {
            nodes,
            requesters,
            loss,
            eager,
        } = self;
        let rule = if *eager { "a quorum" } else { "all" };
        format!("camera: {requesters} of {nodes} nodes ask {rule} at once, {loss}% lost a hop")
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: 100,
            run: Arc::new(move |seed| self.run(seed)),
        }
    }

    fn run(&self, seed: u64) -> Result<Sample, Fault> {
        let config = settings(self.nodes).with_eager(self.eager);
        let mut mesh = mesh(self.nodes, self.loss, config, seed)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut nodes: Vec<usize> = (0..self.nodes).collect();
        for _ in 0..self.requesters {
            let node = nodes.swap_remove(rng.below(nodes.len() as u64) as usize);
            mesh.command(node, Command::Enter).map_err(Fault::network)?;
        }
        let (mut served, mut waited) = (0, 0);
        while served < self.requesters {
            if mesh.step().is_none() || mesh.now() > Time::ZERO + PATIENCE {
                return Err(Fault::Outcome(format!(
                    "{served} of {} got in",
                    self.requesters
                )));
            }
            let events: Vec<_> = mesh.drain_events().collect();
            for (at, node, event) in events {
                if let Event::Entered(_) = event {
                    let inside = |(_, machine): &(usize, &Camera)| machine.token().is_some();
                    if mesh.machines().filter(inside).take(2).count() > 1 {
                        return Err(Fault::Outcome("two were inside".to_owned()));
                    }
                    served += 1;
                    waited += at.since(Time::ZERO).0;
                    let command = Command::Exit;
                    mesh.schedule(at + INSIDE, Action::Command { node, command })
                        .map_err(Fault::network)?;
                }
                if let Event::Refused(why) = event {
                    return Err(Fault::Outcome(why.to_string()));
                }
            }
        }
        // The last exit and its consequences.
        mesh.run_for(INSIDE + Span::secs(1));
        let counters = mesh.counters();
        Ok(Sample(vec![
            Some(waited),
            Some(counters.sent),
            Some(counters.hop_bytes),
        ]))
    }

    pub(super) fn seen(&self, samples: &Samples) -> Option<Seen> {
        let name = self.name();
        let column = |nth: usize| {
            let column = samples
                .of(&name)
                .filter_map(|(_, sample)| sample.0.get(nth).copied().flatten());
            column.map(|it| it as f64).collect::<Vec<f64>>()
        };
        let requesters = self.requesters as f64;
        let waits = column(0);
        Some(Seen {
            // The mean of all requesters, divided by the number of requesters.
            wait: mean(&waits)? / 1_000.0 / requesters / requesters,
            messages: mean(&column(1))? / requesters,
            hop_bytes: mean(&column(2))? / requesters,
            trials: waits.len(),
        })
    }
}

/// The same settings, each as in the thesis and eager.
pub(super) fn experiments(settings: impl Iterator<Item = Contention>) -> Vec<Experiment> {
    settings
        .flat_map(|it| [false, true].map(|eager| Contention { eager, ..it }.experiment()))
        .collect()
}

/// The figures of these settings: as in the thesis, and eager.
pub(super) fn both(
    settings: impl Fn() -> Vec<Contention>,
    samples: &Samples,
) -> Option<[Vec<Seen>; 2]> {
    let seen = |eager| -> Option<Vec<Seen>> {
        let settings = settings().into_iter();
        let settings = settings.map(|it| Contention { eager, ..it });
        settings.map(|it| it.seen(samples)).collect()
    };
    Some([seen(false)?, seen(true)?])
}

/// The smallest number of trials of any of these.
pub(super) fn fewest(seen: &[Vec<Seen>; 2]) -> Option<usize> {
    seen.iter().flatten().map(|it| it.trials).min()
}

/// The names of the two parts of [`both`], for plots.
pub(super) const BOTH: [&str; 2] = ["the thesis' rule", "eager"];

/// A figure for each setting, as words.
pub(super) fn words(figures: impl IntoIterator<Item = f64>) -> String {
    let words = figures.into_iter().map(|it| format!("{it:.1}"));
    words.collect::<Vec<_>>().join(", ")
}
