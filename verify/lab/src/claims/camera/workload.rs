//! Requests that come one by one, as in section 5.2: which node asks, and when.

use std::collections::VecDeque;
use std::sync::Arc;

use selvedge_camera::{Camera, Command, Event};
use selvedge_core::{Choose, Span, Time};
use selvedge_sim::network::{Action, Network, Point, Topology};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;

use super::lab::{THESIS, mesh, settings};
use crate::claims::stats::mean;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The time that a node stays inside: long against a round trip, so that requests as frequent as
/// they can be served find a queue that does not grow for that reason alone.
pub(super) const INSIDE: Span = Span::secs(1);
/// The number of requests in a trial.
const REQUESTS: usize = 50;
/// A run that has not served all by then has failed.
const PATIENCE: Span = Span::secs(36_000);

/// The nodes that ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requesters {
    /// Any node, all equally likely.
    Uniform,
    /// The n-th node in proportion to 1 / n.
    Zipf,
    /// The n-th node in proportion to 1 / n².
    Steep,
    /// The n-th node in proportion to 1 / n, where the first is in a corner and nodes are numbered
    /// by their distance from it.
    Corner,
}

/// The distribution of the times between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    /// A Poisson process.
    Exponential,
    /// Weibull with exponent 1/2: in bursts.
    Weibull,
}

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    pub(super) requesters: Requesters,
    pub(super) arrivals: Arrivals,
    /// The mean time between two requests, in hundredths of the time inside.
    pub(super) ratio: u64,
    /// True if permissions are kept.
    pub(super) keep: bool,
    pub(super) nodes: usize,
    /// Percent lost on a hop.
    pub(super) loss: u32,
}

/// The thesis' defaults.
pub(super) const DEFAULT: Workload = Workload {
    requesters: Requesters::Uniform,
    arrivals: Arrivals::Exponential,
    ratio: 100,
    keep: false,
    nodes: THESIS.nodes,
    loss: THESIS.loss,
};

/// The lines of the thesis' figures: one for each kind of requesters and arrivals.
pub(super) const LINES: [(Requesters, Arrivals); 4] = [
    (Requesters::Uniform, Arrivals::Exponential),
    (Requesters::Uniform, Arrivals::Weibull),
    (Requesters::Zipf, Arrivals::Exponential),
    (Requesters::Zipf, Arrivals::Weibull),
];
/// Their names.
pub(super) const LINE_NAMES: [&str; 4] =
    ["uniform", "uniform, in bursts", "Zipf", "Zipf, in bursts"];

/// Figures of a setting, as means of all trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// From Enter to Entered, in ms.
    pub(super) wait: f64,
    /// From the moment at which the request came, in ms.
    pub(super) with_queue: f64,
    /// Messages an entry, end to end.
    pub(super) messages: f64,
    pub(super) trials: usize,
}

/// A request that has come and was not served.
#[derive(Clone, Copy, Debug)]
struct GateCommand {
    came: Time,
    /// The time at which its node could ask.
    asked: Option<Time>,
}

impl Workload {
    fn name(&self) -> String {
        let Self {
            requesters,
            arrivals,
            ratio,
            keep,
            nodes,
            loss,
        } = self;
        let kept = if *keep { ", permissions kept" } else { "" };
        format!(
            "camera: {requesters:?} requesters of {nodes} nodes, {arrivals:?} arrivals at {ratio}%, \
             {loss}% lost a hop{kept}"
        )
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: 100,
            run: Arc::new(move |seed| self.run(seed)),
        }
    }

    fn run(&self, seed: u64) -> Result<Sample, Fault> {
        let config = settings(self.nodes).with_keep(self.keep);
        let mesh = mesh(self.nodes, self.loss, config, seed)?;
        let requests = self.requests(mesh.topology(), seed);
        let mut run = Run {
            queues: vec![VecDeque::new(); self.nodes],
            mesh,
            served: 0,
            waited: 0,
            with_queue: 0,
        };
        for (at, node) in requests {
            run.until(at)?;
            run.wants(node)?;
        }
        while run.served < REQUESTS {
            run.step()?;
        }
        run.mesh.run_for(INSIDE + Span::secs(1));
        Ok(Sample(vec![
            Some(run.waited),
            Some(run.with_queue),
            Some(run.mesh.counters().sent),
        ]))
    }

    /// The time and the node of each request. Whole numbers only, so that it is the same on every
    /// platform.
    fn requests(&self, places: &Topology, seed: u64) -> Vec<(Time, usize)> {
        /// The mean number of steps of a drawn time.
        const STEPS: u64 = 1_000;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mean = INSIDE.0 * self.ratio / 100;
        let weight = |nth: u64| match self.requesters {
            Requesters::Uniform => 1,
            Requesters::Zipf | Requesters::Corner => 1_000_000 / nth,
            Requesters::Steep => 1_000_000 / (nth * nth),
        };
        let weights: Vec<u64> = (1..=self.nodes as u64).map(weight).collect();
        let total: u64 = weights.iter().sum();
        let mut order: Vec<usize> = (0..self.nodes).collect();
        if self.requesters == Requesters::Corner {
            let corner = Point { x: 0, y: 0 };
            order.sort_by_key(|&node| places.point(node).map(|it| it.distance(corner)));
        }
        let mut at = Time::ZERO;
        let requests = (0..REQUESTS).map(|_| {
            // The number of steps until an event of probability 1 in 1,000.
            let steps = (1..).find(|_| rng.below(STEPS) == 0).unwrap_or(STEPS);
            at = at
                + match self.arrivals {
                    Arrivals::Exponential => Span(mean * steps / STEPS),
                    // The square of an exponential time, of which the mean is 2.
                    Arrivals::Weibull => Span(mean / 2 * steps / STEPS * steps / STEPS),
                };
            let mut point = rng.below(total);
            let is_in = |&weight: &u64| {
                let before = point;
                point = point.saturating_sub(weight);
                before < weight
            };
            let rank = weights.iter().position(is_in).unwrap_or_default();
            (at, order.get(rank).copied().unwrap_or_default())
        });
        requests.collect()
    }

    pub(super) fn seen(&self, samples: &Samples) -> Option<Seen> {
        let name = self.name();
        let column = |nth: usize| -> Vec<f64> {
            let all = samples.of(&name);
            all.filter_map(|(_, sample)| sample.0.get(nth).copied().flatten())
                .map(|it| it as f64 / REQUESTS as f64)
                .collect()
        };
        let waits = column(0);
        Some(Seen {
            wait: mean(&waits)? / 1_000.0,
            with_queue: mean(&column(1))? / 1_000.0,
            messages: mean(&column(2))?,
            trials: waits.len(),
        })
    }
}

/// A trial, while it runs.
struct Run {
    mesh: Network<Camera>,
    /// The requests of each node's application, in order; the first one was made.
    queues: Vec<VecDeque<GateCommand>>,
    served: usize,
    waited: u64,
    with_queue: u64,
}

impl Run {
    fn until(&mut self, at: Time) -> Result<(), Fault> {
        while self.mesh.next_at().is_some_and(|next| next <= at) {
            self.step()?;
        }
        self.mesh.run_until(at);
        Ok(())
    }

    fn wants(&mut self, node: usize) -> Result<(), Fault> {
        let came = self.mesh.now();
        if let Some(queue) = self.queues.get_mut(node) {
            queue.push_back(GateCommand { came, asked: None });
        }
        self.ask(node)
    }

    /// The first wish of `node` becomes a request, if none is.
    fn ask(&mut self, node: usize) -> Result<(), Fault> {
        let now = self.mesh.now();
        let is_busy = |it: &Camera| it.is_waiting() || it.token().is_some();
        if self.mesh.machine(node).is_none_or(is_busy) {
            return Ok(());
        }
        if let Some(request) = self.queues.get_mut(node).and_then(VecDeque::front_mut) {
            request.asked = Some(now);
            self.mesh
                .command(node, Command::Enter)
                .map_err(Fault::network)?;
        }
        self.look()
    }

    fn step(&mut self) -> Result<(), Fault> {
        if self.mesh.step().is_none() || self.mesh.now() > Time::ZERO + PATIENCE {
            let served = self.served;
            return Err(Fault::Outcome(format!("{served} of {REQUESTS} got in")));
        }
        self.look()
    }

    /// Reads the events that the applications got.
    fn look(&mut self) -> Result<(), Fault> {
        let events: Vec<_> = self.mesh.drain_events().collect();
        for (at, node, event) in events {
            match event {
                Event::Entered(_) => self.entered(at, node)?,
                Event::Released(_) => self.ask(node)?,
                Event::Refused(why) => return Err(Fault::Outcome(why.to_string())),
                Event::Waiting(_)
                | Event::SlowPathTaken
                | Event::Cancelled
                | Event::Fenced(_)
                | Event::PassedOver(_) => {}
                other => return Err(Fault::Outcome(format!("{other:?} is not expected"))),
            }
        }
        Ok(())
    }

    fn entered(&mut self, at: Time, node: usize) -> Result<(), Fault> {
        let inside = |(_, machine): &(usize, &Camera)| machine.token().is_some();
        if self.mesh.machines().filter(inside).take(2).count() > 1 {
            return Err(Fault::Outcome("two were inside".to_owned()));
        }
        let request = self.queues.get_mut(node).and_then(VecDeque::pop_front);
        let Some(GateCommand {
            came,
            asked: Some(asked),
        }) = request
        else {
            return Err(Fault::Outcome("an entry without a request".to_owned()));
        };
        self.served += 1;
        self.waited += at.since(asked).0;
        self.with_queue += at.since(came).0;
        let command = Command::Exit;
        self.mesh
            .schedule(at + INSIDE, Action::Command { node, command })
            .map_err(Fault::network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requesters_in_a_corner_are_the_nearer_the_more_often_they_ask() {
        let places = Topology::random_geometric(40, 13_000, 4_000, 1).unwrap();
        let setting = |requesters| Workload {
            requesters,
            nodes: 40,
            ..DEFAULT
        };
        let anywhere = setting(Requesters::Zipf).requests(&places, 7);
        let corner = setting(Requesters::Corner).requests(&places, 7);
        let distance = |node: usize| places.point(node).unwrap().distance(Point::new(0, 0));
        // The same draws: the rank in one is the node of the other.
        let mut by_rank: Vec<(usize, u64)> = anywhere
            .iter()
            .zip(&corner)
            .map(|(&(at, rank), &(other, node))| {
                assert_eq!(at, other);
                (rank, distance(node))
            })
            .collect();
        by_rank.sort_unstable();
        assert!(by_rank.is_sorted_by_key(|it| it.1));
        assert!(by_rank.first() < by_rank.last());
    }
}
