//! The accuracy of estimates, over a network with delays, losses, duplicates and churn; and the
//! handling of messages that a node should not get.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod accuracy;
mod lone;
mod overlays;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::estimate::{Command, Config, Estimator, Event};
use selvedge_core::{Choose, Delta, Member, Ratio, Span};
use selvedge_sim::histories;
use selvedge_sim::network::{Link, Network, Topology};

fn member(id: usize) -> Member {
    Member::new(id as u64, 1)
}

/// Nodes that can reach each other, and their lists.
fn mesh(
    seed: u64,
    nodes: usize,
    config: &Config,
    link: Link,
    mut knows: impl FnMut(usize, usize) -> bool,
) -> Network<Estimator> {
    let topology = Topology::full_mesh(nodes).unwrap();
    let mut network = Network::new(seed, topology, link).unwrap();
    for node in 0..nodes {
        let machine = Estimator::new(member(node), config.clone()).unwrap();
        network.add(member(node), machine).unwrap();
    }
    for node in 0..nodes {
        for other in (0..nodes).filter(|&other| other != node) {
            if knows(node, other) {
                let joined = Delta::Joined(member(other));
                network.membership(node, joined).unwrap();
            }
        }
    }
    network
}

/// Lists that lack others with this probability, each list for itself: edges go one way.
fn missing(
    seed: u64,
    nodes: usize,
    config: &Config,
    link: Link,
    lack: Ratio,
) -> Network<Estimator> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    mesh(seed, nodes, config, link, |_, _| !rng.chance(lack))
}

const NOBODY: Ratio = Ratio::NEVER;
const A_TENTH: Ratio = Ratio::new(1, 10);

fn lossy() -> Link {
    Link {
        loss: Ratio::new(5, 100),
        ..Link::default()
    }
}

/// Runs one estimate of `node` to its end.
fn run(network: &mut Network<Estimator>, node: usize) -> Event {
    network.command(node, Command::Estimate).unwrap();
    let limit = network.now() + Span::secs(3_600);
    assert!(network.run_until_met(limit, |network| !network.events().is_empty()));
    let notified: Vec<_> = network.drain_events().collect();
    assert_eq!(notified.len(), 1, "one event for one command");
    assert_eq!(notified[0].1, node);
    notified[0].2
}

/// The results of many estimates.
#[derive(Default)]
struct Sums {
    estimates: u32,
    missed: u32,
    /// The means of estimate and upper bound over N.
    ratio: f64,
    squared_error: f64,
    max_lives: f64,
    samples: f64,
    messages: f64,
    seconds: f64,
}

impl Sums {
    /// Runs one estimate and counts it.
    fn add(&mut self, network: &mut Network<Estimator>, node: usize, truth: usize) {
        let (sent, began) = (network.counters().sent, network.now());
        let event = run(network, node);
        let Event::Estimated {
            nodes,
            max_lives,
            samples,
            ..
        } = event
        else {
            panic!("no number: {event:?}");
        };
        assert!(max_lives >= nodes);
        let truth = truth as f64;
        let ratio = f64::from(nodes) / truth;
        self.estimates += 1;
        self.missed += u32::from(truth > f64::from(max_lives));
        self.ratio += ratio;
        self.squared_error += (ratio - 1.0) * (ratio - 1.0);
        self.max_lives += f64::from(max_lives) / truth;
        self.samples += f64::from(samples);
        self.messages += (network.counters().sent - sent) as f64;
        self.seconds += network.now().since(began).0 as f64 / 1e6;
    }

    /// Divides by the number of estimates, and prints.
    fn means(mut self, what: &str) -> Self {
        let estimates = f64::from(self.estimates);
        for sum in [
            &mut self.ratio,
            &mut self.squared_error,
            &mut self.max_lives,
            &mut self.samples,
            &mut self.messages,
            &mut self.seconds,
        ] {
            *sum /= estimates;
        }
        println!(
            "{what}: {} estimates, mean {:.3} N, relative error {:.3}, upper {:.3} N, \
             missed {}, samples {:.0}, messages {:.0}, {:.2} s",
            self.estimates,
            self.ratio,
            self.error(),
            self.max_lives,
            self.missed,
            self.samples,
            self.messages,
            self.seconds
        );
        self
    }

    fn error(&self) -> f64 {
        self.squared_error.sqrt()
    }
}

/// An estimate for each seed, in a mesh of its own.
fn over(
    what: &str,
    seeds: core::ops::Range<u64>,
    nodes: usize,
    config: &Config,
    link: Link,
    lack: Ratio,
) -> Sums {
    let mut sums = Sums::default();
    histories(seeds, |seed| {
        let mut network = missing(seed, nodes, config, link, lack);
        sums.add(&mut network, seed as usize % nodes, nodes);
    });
    sums.means(what)
}

/// A single seed does not show the frequency of an outcome.
fn is_single() -> bool {
    std::env::var_os("SELVEDGE_SEED").is_some()
}
