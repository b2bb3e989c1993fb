//! A random history: its events and the checks.

mod oracle;
mod plan;

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{Camera, Command, Config, Event, Token};
use selvedge_core::{Choose, Delta, Member, Span, Time};
use selvedge_sim::network::Network;

pub(crate) use oracle::Counts;
use oracle::Oracle;
use plan::{Fault, Plan, first};

/// The kind of history, on which the promises depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// No node is passed over before its death is certain.
    Certain,
    /// A node that was declared failed is passed over after a time.
    Takeover,
}

/// The longest time after the last fault until all must be served.
const LIMIT: Span = Span::secs(300);

/// An action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Down,
    Idle,
    /// It will ask again.
    Refused,
    Waiting,
    Inside(Token),
}

#[derive(Clone, Debug)]
enum Act {
    Fault(Fault),
    Enter,
    Cancel,
    Exit,
    Write,
}

struct History {
    rng: ChaCha8Rng,
    plan: Plan,
    configs: Vec<Config>,
    network: Network<Camera>,
    stages: Vec<Stage>,
    /// The number of changes of each node's stage: earlier plans are void.
    changes: Vec<u64>,
    agenda: BTreeMap<(Time, u64), (usize, u64, Act)>,
    planned: u64,
    /// The number of steps of the membership trace that were replayed.
    learned: usize,
    oracle: Oracle,
}

/// Runs the history to its end and checks on the way.
pub(crate) fn run(family: Family, seed: u64) -> Counts {
    let mut history = History::new(family, seed);
    history.live();
    history.finish()
}

pub(crate) fn between(rng: &mut ChaCha8Rng, low_ms: u64, high_ms: u64) -> Span {
    Span::millis(low_ms) + Span(rng.below((high_ms - low_ms) * 1_000))
}

fn draw_config(family: Family, plan: &Plan, rng: &mut ChaCha8Rng) -> Config {
    let takeover = between(rng, 100, 8_000);
    Config::new(plan.lives)
        .with_takeover((family == Family::Takeover).then_some(takeover))
        .with_slack(rng.below(6) as u32)
        .with_keep(rng.below(2) == 0)
        .with_refresh(between(rng, 5_000, 30_000))
        .with_multicast(plan.is_full_mesh && rng.below(3) > 0)
        .with_eager(rng.below(2) == 0)
        .with_frame_budget(if rng.below(2) == 0 { 127 } else { 1_400 })
}

impl History {
    fn new(family: Family, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let plan = Plan::new(seed, &mut rng, family == Family::Takeover);
        let nodes = plan.topology.len();
        let are_alike = rng.below(3) == 0;
        let mut configs = vec![draw_config(family, &plan, &mut rng)];
        while configs.len() < nodes {
            let alike = configs[0];
            configs.push(if are_alike {
                alike
            } else {
                draw_config(family, &plan, &mut rng)
            });
        }
        let mut network = Network::new(seed, plan.topology.clone(), plan.link).unwrap();
        network.set_relays(plan.relays);
        for (node, &config) in configs.iter().enumerate() {
            let me = first(node);
            network.add(me, Camera::new(me, config).unwrap()).unwrap();
            // Until it has joined.
            network.crash(node).unwrap();
        }
        network.replay(&plan.trace).unwrap();
        let mut history = Self {
            rng,
            configs,
            network,
            stages: vec![Stage::Down; nodes],
            changes: vec![0; nodes],
            agenda: BTreeMap::new(),
            planned: 0,
            learned: 0,
            oracle: Oracle::new(family),
            plan,
        };
        for (at, fault) in history.plan.faults.clone() {
            history.plan_at(at, 0, Act::Fault(fault));
        }
        history
    }

    fn plan_at(&mut self, at: Time, node: usize, act: Act) {
        self.planned += 1;
        let change = self.changes[node];
        self.agenda.insert((at, self.planned), (node, change, act));
    }

    fn plan_in(&mut self, node: usize, low_ms: u64, high_ms: u64, act: Act) {
        let at = self.network.now() + between(&mut self.rng, low_ms, high_ms);
        self.plan_at(at, node, act);
    }

    fn is_calm(&self) -> bool {
        self.network.now() >= self.plan.calm
    }

    fn member(&self, node: usize) -> Member {
        self.network.member(node).unwrap()
    }

    fn change(&mut self, node: usize, stage: Stage) {
        self.changes[node] += 1;
        self.stages[node] = stage;
    }

    /// Lets its application enter some time later, unless the history ends before.
    fn think(&mut self, node: usize) {
        self.change(node, Stage::Idle);
        self.plan_in(node, 0, 15_000, Act::Enter);
    }

    /// Runs until no event is left.
    fn live(&mut self) {
        let limit = self.plan.calm + LIMIT;
        loop {
            let next = self.agenda.keys().next().map_or(limit, |(at, _)| *at);
            let notified = |network: &Network<Camera>| !network.events().is_empty();
            if self.network.run_until_met(next.min(limit), notified) {
                self.take_events();
                continue;
            }
            self.count_false_failures();
            assert!(next < limit, "not all are served: {}", self.describe());
            if let Some((_, (node, change, act))) = self.agenda.pop_first() {
                self.act(node, change, act);
            }
            let is_still = |stage: &Stage| matches!(stage, Stage::Down | Stage::Idle);
            if self.is_calm() && self.agenda.is_empty() && self.stages.iter().all(is_still) {
                return;
            }
        }
    }

    fn act(&mut self, node: usize, change: u64, act: Act) {
        if let Act::Fault(fault) = act {
            self.fault(fault);
            return;
        }
        if change != self.changes[node] {
            return;
        }
        match (act, self.stages[node]) {
            (Act::Enter, Stage::Idle | Stage::Refused) => {
                // Requests stay as they were; no node makes a new one.
                if self.is_calm() && self.stages[node] == Stage::Idle {
                    return;
                }
                self.change(node, Stage::Waiting);
                self.network.command(node, Command::Enter).unwrap();
                if self.rng.below(6) == 0 {
                    self.plan_in(node, 10, 10_000, Act::Cancel);
                }
            }
            (Act::Cancel, Stage::Waiting) if !self.is_calm() => {
                self.network.command(node, Command::Cancel).unwrap();
                self.take_events();
            }
            (Act::Exit, Stage::Inside(_)) => {
                if self.is_calm() && self.oracle.is_unnotified(self.member(node)) {
                    // It can be reached again, so it must be notified.
                    self.plan_in(node, 500, 1_000, Act::Exit);
                    return;
                }
                self.network.command(node, Command::Exit).unwrap();
                self.take_events();
            }
            (Act::Write, Stage::Inside(token)) => {
                self.oracle.write(token);
                self.plan_in(node, 50, 2_000, Act::Write);
            }
            _ => {}
        }
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Crash(node) => self.crash(node),
            // It does not take part before it knows its own member.
            Fault::Restart(_) => self.oracle.counts.restarts += 1,
            Fault::Start(node, me, notified) => {
                if self.network.is_up(node) {
                    // It took part under another name, and its OKs under that name are forgotten.
                    self.oracle.counts.renamed += 1;
                    self.crash(node);
                }
                let machine = Camera::new(me, self.configs[node]).unwrap();
                self.network.restart(node, me, machine).unwrap();
                for delta in notified {
                    // It may refuse reports about its own former lives.
                    drop(self.network.membership(node, delta));
                }
                self.think(node);
            }
            Fault::Part(groups) => {
                self.oracle.counts.partitions += 1;
                self.network.partition(&groups).unwrap();
            }
            Fault::Heal => self.network.heal(),
            Fault::Confirm(dead) => {
                let dead = self.member(dead);
                for node in 0..self.network.len() {
                    if self.network.is_up(node) {
                        let confirmed = Delta::Confirmed(dead);
                        self.network.membership(node, confirmed).unwrap();
                    }
                }
            }
        }
        self.take_events();
    }

    fn crash(&mut self, node: usize) {
        let counts = &mut self.oracle.counts;
        counts.crashes_waiting += u64::from(self.stages[node] == Stage::Waiting);
        let machine = self.network.machine(node).unwrap();
        counts.issued_again += machine.counters().issued_again;
        self.network.crash(node).unwrap();
        let was_inside = self.oracle.out(self.member(node));
        self.oracle.counts.crashes_inside += u64::from(was_inside);
        self.change(node, Stage::Down);
    }

    fn take_events(&mut self) {
        self.count_false_failures();
        let events: Vec<_> = self.network.drain_events().collect();
        for (at, node, event) in events {
            let me = self.member(node);
            match event {
                Event::SlowPathTaken | Event::Waiting(_) => {}
                Event::Entered(token) => {
                    self.oracle.entered(me, token);
                    self.change(node, Stage::Inside(token));
                    let longest = if self.will_crash(node, at) {
                        25_000
                    } else {
                        [300, 4_000, 20_000][self.rng.below(3) as usize]
                    };
                    self.plan_in(node, 5, longest, Act::Exit);
                    if self.configs[node].takeover.is_some() {
                        self.plan_in(node, 0, 1_000, Act::Write);
                    }
                }
                Event::Released(token) => {
                    self.oracle.released(me, token);
                    self.think(node);
                }
                Event::Cancelled => {
                    self.oracle.counts.cancelled += 1;
                    self.think(node);
                }
                Event::Fenced(by) => {
                    self.oracle.fenced(me, by);
                }
                Event::PassedOver(whom) => self.oracle.passed_over(whom),
                Event::Refused(_) => {
                    self.oracle.counts.too_few += 1;
                    self.change(node, Stage::Refused);
                    self.plan_in(node, 500, 4_000, Act::Enter);
                }
                other => panic!("{me:?} was told {other:?}"),
            }
        }
    }

    /// Returns true if the node dies soon. Such a node stays inside longer, so that some die there.
    fn will_crash(&self, node: usize, now: Time) -> bool {
        self.plan.faults.iter().any(|(at, fault)| {
            matches!(fault, Fault::Crash(which) if *which == node)
                && *at > now
                && *at < now + Span::secs(20)
        })
    }

    /// Counts the false failures in the trace since the last call. No node's stage has changed
    /// meanwhile.
    fn count_false_failures(&mut self) {
        let now = self.network.now();
        while let Some(entry) = self.plan.trace.entries().get(self.learned)
            && entry.at <= now
        {
            self.learned += 1;
            let Delta::Failed(whom) = entry.delta else {
                continue;
            };
            let node = self.network.find(whom.id).unwrap();
            if self.member(node) != whom {
                continue;
            }
            let counts = &mut self.oracle.counts;
            match self.stages[node] {
                Stage::Waiting => counts.false_failures_of_waiting += 1,
                Stage::Inside(_) => counts.false_failures_of_holders += 1,
                Stage::Down | Stage::Idle | Stage::Refused => {}
            }
        }
    }

    fn finish(mut self) -> Counts {
        // Nothing is left that would happen later.
        let settled = self.network.now();
        let refreshes = self.configs.iter().map(|it| it.refresh);
        let longest = refreshes.max().unwrap_or_default();
        self.network.run_for(longest * 4);
        let late = self.network.events();
        assert!(late.is_empty(), "told when all was over: {late:?}");
        for (node, machine) in self.network.machines() {
            let is_idle = machine.token().is_none() && !machine.is_waiting();
            assert!(is_idle || !self.network.is_up(node), "node {node}");
            let refused = self.network.node_counters(node).rejected_ticks;
            assert_eq!(refused, 0, "ticks that node {node} rejected");
            if self.network.is_up(node) {
                self.oracle.counts.issued_again += machine.counters().issued_again;
            }
        }
        let counts = &mut self.oracle.counts;
        counts.lost = self.network.counters().lost();
        counts.longest_settling = settled.since(self.plan.calm);
        *counts
    }

    /// A description of the nodes that do not enter, and of the nodes for which they wait.
    fn describe(&self) -> String {
        let mut text = format!("{:?} after the last fault", LIMIT);
        for (node, machine) in self.network.machines() {
            let waits_for: Vec<Member> = machine.waits_for().collect();
            let stage = self.stages[node];
            if !matches!(stage, Stage::Down | Stage::Idle) {
                let me = machine.me();
                text += &format!("\n  {me:?} is {stage:?} and waits for {waits_for:?}");
            }
        }
        text
    }
}
