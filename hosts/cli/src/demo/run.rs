//! Runs the script against real nodes and real time.

use std::collections::BTreeSet;
use std::io::Write;

use core::time::Duration;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{NodeId, Span, Time};
use tokio::sync::mpsc;
use tokio::time::{interval, sleep, sleep_until};

use super::ground::{Ground, Loopback};
use super::leaders::Leaders;
use super::narrator::Narrator;
use super::plan::Plan;
use super::promises::{Evidence, Promise, judge};
use super::stage::Stage;
use super::trace::{Fact, Mark, Trace, Views};
use selvedge_udp::faults::FaultCounts;
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::{HostError, Observed};

/// The interval at which progress is checked.
const GLANCE: Duration = Duration::from_millis(400);
/// The longest delay of a node's event, on a machine that is not busy.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Options of a demo.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of nodes.
    pub nodes: u64,
    /// The seed of parts, losses and the nodes' choices. Two runs with one seed are similar but not
    /// the same: sockets and time are real.
    pub seed: u64,
    /// The protocol period; all other times are in proportion.
    pub period: Span,
}

/// The outcome of a demo.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The script.
    pub plan: Plan,
    /// The events.
    pub trace: Trace,
    /// The promises with the measured values.
    pub table: Vec<Promise>,
    /// The traffic of all hosts.
    pub traffic: TrafficReport,
    /// The number of datagrams that a fault hit on purpose.
    pub met: FaultCounts,
    /// The end.
    pub end: Time,
}

impl Outcome {
    /// The traffic, in a line.
    #[must_use]
    pub fn cost(&self) -> String {
        format!(
            "{} frames in {:.1} s, {:.0} bytes a node and second",
            self.frames(),
            super::plan::seconds(self.end),
            self.bytes_a_node_and_second()
        )
    }

    /// The number of frames that got into the network: frames that the cut stopped did not.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.traffic.sent.saturating_sub(self.met.held_back)
    }

    /// Bytes that one node sent in one second, without UDP and IP headers.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^53 bytes")]
    pub fn bytes_a_node_and_second(&self) -> f64 {
        let nodes = self.plan.nodes as f64;
        let sent = (self.traffic.sent_bytes).saturating_sub(self.met.held_back_bytes);
        sent as f64 / nodes / super::plan::seconds(self.end).max(0.001)
    }
}

/// Runs a demo and narrates it.
///
/// # Errors
/// If a node cannot be started.
pub async fn run<W: Write>(options: Options, narrator: Narrator<W>) -> Result<Outcome, HostError> {
    run_on(Box::new(Loopback), options, narrator).await
}

/// Runs a demo on some network and narrates it.
///
/// # Errors
/// If a node cannot be started.
pub async fn run_on<W: Write>(
    ground: Box<dyn Ground>,
    options: Options,
    narrator: Narrator<W>,
) -> Result<Outcome, HostError> {
    let mut rng = ChaCha12Rng::seed_from_u64(options.seed);
    let plan = Plan::new(options.nodes, options.period, &mut rng);
    let (stage, events) = Stage::new(options.seed.wrapping_mul(1_000), ground).await?;
    let play = Play {
        plan,
        stage,
        events,
        narrator,
        trace: Trace::default(),
        views: Views::default(),
        leaders: Leaders::default(),
        confirmed: BTreeSet::new(),
    };
    play.run().await
}

/// A line of the script.
#[derive(Clone, Copy, Debug)]
enum Scene {
    Start(u64),
    Crash(u64),
    Leave(u64),
    Cut,
    Heal,
}

struct Play<W> {
    plan: Plan,
    stage: Stage,
    events: mpsc::Receiver<Observed>,
    narrator: Narrator<W>,
    trace: Trace,
    views: Views,
    leaders: Leaders,
    /// The crashed nodes whose death an operator has confirmed.
    confirmed: BTreeSet<NodeId>,
}

impl<W: Write> Play<W> {
    async fn run(mut self) -> Result<Outcome, HostError> {
        let line = format!(
            "{} nodes start on {}, elect a leader and take turns at one file; 5 of 100 packets get lost from start to end",
            self.plan.nodes,
            self.stage.ground().name(),
        );
        self.narrator.say(Time::ZERO, &line);
        for (at, scene) in script(&self.plan) {
            self.watch_until(at).await;
            self.play(scene).await?;
        }
        self.watch_until(self.plan.times.end).await;
        while self.stage.now() < self.plan.times.deadline && !self.is_right() {
            self.watch_until(self.stage.now() + self.plan.config.period)
                .await;
        }
        let end = self.stage.now();
        let odd_lists = self.compare_lists().await;
        let turns = self.stage.turns().await;
        let (traffic, met) = (self.stage.traffic(), self.stage.met());
        let table = judge(&Evidence {
            plan: &self.plan,
            trace: &self.trace,
            traffic,
            met,
            missed: self.stage.missed(),
            odd_lists,
            turns: &turns,
        });
        Ok(Outcome {
            plan: self.plan,
            trace: self.trace,
            table,
            traffic,
            met,
            end,
        })
    }

    async fn play(&mut self, scene: Scene) -> Result<(), HostError> {
        let fact = match scene {
            Scene::Start(node) => {
                self.happened(Fact::Started(NodeId(node)));
                return self.stage.start(&self.plan, NodeId(node)).await;
            }
            Scene::Crash(node) => {
                self.stage.crash(NodeId(node)).await;
                Fact::Crashed(NodeId(node))
            }
            Scene::Leave(node) => {
                self.happened(Fact::Leaving(NodeId(node)));
                self.stage.leave(NodeId(node));
                return Ok(());
            }
            Scene::Cut => {
                self.stage.cut_off(&self.plan.cut_off);
                Fact::Cut
            }
            Scene::Heal => {
                self.stage.cut_off(&[]);
                Fact::Healed
            }
        };
        self.happened(fact);
        Ok(())
    }

    /// Collects the nodes' events until `time`.
    async fn watch_until(&mut self, time: Time) {
        let end = sleep_until(self.stage.clock().instant(time));
        tokio::pin!(end);
        let mut glance = interval(GLANCE);
        glance.reset();
        loop {
            tokio::select! {
                () = &mut end => return,
                Some(seen) = self.events.recv() => {
                    self.take(Mark::from(seen));
                    self.confirm_the_dead().await;
                }
                _ = glance.tick() => {
                    let now = self.stage.now();
                    self.narrator.progress(&self.plan, &self.views, now);
                }
            }
        }
    }

    /// Confirms as an operator that a node is dead, once all nodes know of its failure: the section
    /// that it held or waited for becomes free.
    async fn confirm_the_dead(&mut self) {
        for node in self.plan.crashing.map(NodeId) {
            if self.confirmed.contains(&node) {
                continue;
            }
            if let Some(member) = self.views.known_dead(node)
                && self.stage.confirm(member).await
            {
                self.confirmed.insert(node);
                let line = format!("an operator confirms that node {node} is dead");
                self.narrator.say(self.stage.now(), &line);
            }
        }
    }

    /// The number of nodes whose list differs from their events. Lists may change while they are
    /// read, so only a difference that stays counts.
    async fn compare_lists(&mut self) -> usize {
        let mut odd = 0;
        for _ in 0..5 {
            let lists = self.stage.lists();
            // Events that the nodes emitted before are still under way.
            sleep(ON_ITS_WAY).await;
            while let Ok(seen) = self.events.try_recv() {
                self.take(Mark::from(seen));
            }
            odd = lists
                .into_iter()
                .filter(|(node, list)| *list != self.views.live_list(*node))
                .count();
            if odd == 0 {
                break;
            }
            self.watch_until(self.stage.now() + self.plan.config.period)
                .await;
        }
        odd
    }

    fn happened(&mut self, fact: Fact) {
        self.take(Mark::Fact(self.stage.now(), fact));
    }

    fn take(&mut self, mark: Mark) {
        self.views.apply(&mark);
        self.leaders.apply(&mark);
        let (views, leaders) = (&self.views, &self.leaders);
        self.narrator.note(&self.plan, views, leaders, &mark);
        self.trace.push(mark);
    }

    fn is_right(&self) -> bool {
        let (right, up) = self.views.right();
        right == up && self.leaders.agreed(&self.views, |_| true).is_some()
    }
}

fn script(plan: &Plan) -> Vec<(Time, Scene)> {
    let times = &plan.times;
    let mut script: Vec<_> = (1..=plan.nodes)
        .map(|node| {
            (
                Time::ZERO + times.start_gap * (node - 1),
                Scene::Start(node),
            )
        })
        .collect();
    script.extend(plan.crashing.map(|node| (times.crash, Scene::Crash(node))));
    script.push((times.leave, Scene::Leave(plan.leaving)));
    script.push((times.down, Scene::Crash(plan.restarting)));
    script.push((times.back, Scene::Start(plan.restarting)));
    script.push((times.cut, Scene::Cut));
    script.push((times.heal, Scene::Heal));
    script
}
