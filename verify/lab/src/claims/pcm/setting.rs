//! One function on one unit, or on as many servers: the measurements of P1, P2, P3 and P8.
//!
//! # Gaps of the paper
//!
//! *Duty cycle.* One sentence of section 5 defines it as the share of time in which a node can
//! *not* be used. All else reads it as the share in which it can: performance rises from 1% over
//! 10% and 50% to "no duty-cycle" (5b), and the follower's tuple begins with its active time
//! (figure 2). So 10% is a node that is active for one second in ten here. A period is at most two
//! minutes, so 1% is one second in 100.
//!
//! *Length.* The paper's functions "of high complexity" have no length. In section 5a, a unit is
//! less than 30% slower than one node that is always on. [`length`] is where ours is 30% slower,
//! for a unit of five: all gains depend on that, so each claim is also given over the length.
//!
//! *Energy* is the energy of the gateway and of the unit's nodes, from the request until the client
//! has its answer.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Span;
use selvedge_pcm::{DutyCycle, Limits, gateway};

use super::energy;
use super::servers::awake::Cycle;
use super::servers::broker::Broker;
use super::servers::raft::{Raft, Rule};
use super::servers::voters::Voters;
use super::world::{BEGINS, Seen, Setting, World, is_right};
use crate::claims::{Fault, Sample, Samples};

/// The number of trials in place of the paper's, which it does not give.
pub(super) const TRIALS: u32 = 1_000;
/// The number of functions in a trial, each on new nodes.
pub(super) const FUNCTIONS: u64 = 10;
/// The time for which a node can be used in its period.
const ACTIVE: u32 = 1_000;
/// The unit of the paper's comparison.
pub(super) const UNIT: u16 = 5;
/// The share of time in which nodes can be used there, in percent.
pub(super) const SHARE: u64 = 10;
/// The percentage by which a function of high complexity takes longer than at one node, at most
/// (section 5a).
pub(super) const SLOWER: f64 = 30.0;

/// A node that is active for a time, which is a share of its period in percent.
fn duty(active_ms: u32, share: u64) -> DutyCycle {
    let period = u64::from(active_ms) * 100 / share.max(1);
    DutyCycle {
        active_ms,
        busy_ms: 0,
        asleep_ms: period as u32 - active_ms,
    }
}

/// The time that a function takes at one node, if a unit of five whose nodes can be used for this
/// share of their time takes [`SLOWER`] percent longer: measured, and held by a test of P1.
pub(super) const fn length(share: u64) -> Span {
    match share {
        1 => Span::secs(270),
        _ => Span::secs(23),
    }
}

/// A system that runs functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Pcm { unit: u16 },
    Raft(Rule),
    Pirogue(Rule),
}

/// A function on a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) system: System,
    /// In percent.
    pub(super) share: u64,
    pub(super) length: Span,
    /// The percentage of the followers that return a wrong result.
    pub(super) wrong: u64,
    /// The time for which a node can be used in a period, in ms.
    pub(super) active: u32,
}

/// All functions of all trials.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Seconds until the client has its answer.
    pub(super) completion: f64,
    /// Joules.
    pub(super) energy: f64,
    /// The same if no node ever slept.
    pub(super) awake_energy: f64,
    /// Seconds until the first function ended.
    pub(super) first: f64,
    pub(super) messages: f64,
    /// The share of functions without a right answer.
    pub(super) wrong: f64,
    pub(super) trials: usize,
}

impl Case {
    pub(super) const fn new(system: System) -> Self {
        Self {
            system,
            share: SHARE,
            length: length(SHARE),
            wrong: 0,
            active: ACTIVE,
        }
    }

    pub(super) fn name(&self) -> String {
        let Self {
            system,
            share,
            length,
            wrong,
            active,
        } = self;
        let seconds = energy::seconds(*length);
        format!("pcm: {system:?}, active {active} ms, {share}%, {seconds} s, {wrong}% wrong")
    }

    pub(super) fn experiment(self) -> crate::claims::Experiment {
        crate::claims::Experiment {
            name: self.name(),
            trials: TRIALS,
            run: std::sync::Arc::new(move |seed| self.measure(seed)),
        }
    }

    /// Sums over the functions: time, time awake, messages, time until the first one returned; and
    /// the number without a right answer.
    fn measure(self, seed: u64) -> Result<Sample, Fault> {
        let mut sums = [0; 5];
        for nth in 0..FUNCTIONS {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(nth);
            let seen = match self.system {
                System::Pcm { unit } => self.on_unit(unit, rng)?,
                System::Raft(rule) => self.on_servers(&Voters::all(UNIT.into()), rule, rng)?,
                System::Pirogue(rule) => {
                    let voters = Voters::with_witness(usize::from(UNIT) - 1);
                    self.on_servers(&voters, rule, rng)?
                }
            };
            for (sum, it) in sums.iter_mut().zip(seen) {
                *sum += it;
            }
        }
        Ok(Sample(sums.map(Some).to_vec()))
    }

    fn on_unit(self, unit: u16, rng: ChaCha8Rng) -> Result<[u64; 5], Fault> {
        let duty = duty(self.active, self.share);
        let period = duty.period();
        let setting = Setting {
            gateways: 1,
            config: gateway::Config::new().with_function_time(self.length + Span::secs(1)),
            limits: Limits::new().with_unit(unit),
            length: self.length,
            lost: 0,
        };
        let mut world = World::new(&setting, rng)?;
        for _ in 0..unit {
            let at = world.add(duty, 0)?;
            if world.below(Span(100)).0 < self.wrong {
                world.corrupt(at);
            }
        }
        world.run_for(Span(period.0 * (BEGINS + 3)) + Span::secs(30))?;
        if !world.has_all(1) {
            return Err(Fault::Outcome("the followers are not one unit".to_owned()));
        }
        let wait = world.below(period);
        world.run_for(wait)?;
        let (start, awake, sent) = (world.now(), world.awake(), world.sent());
        world.submit(b"a long function")?;
        let most = Span(10 * (self.length.0 + 10 * period.0));
        let is_answer = |_: &World, it: &Seen| matches!(it, Seen::Answered(_));
        let end = world.run_until(most, is_answer)?;
        let end = end.ok_or_else(|| Fault::Outcome("no answer came".to_owned()))?;
        let first = world.seen().iter().find_map(|it| match it {
            (at, Seen::Returned(_)) => Some(at.since(start).0),
            (_, Seen::Answered(_) | Seen::Gateway(..)) => None,
        });
        let right = world.seen().iter().any(|it| match &it.1 {
            Seen::Answered(answer) => is_right(answer),
            Seen::Returned(_) | Seen::Gateway(..) => false,
        });
        Ok([
            end.since(start).0,
            world.awake().0 - awake.0,
            world.sent() - sent,
            first.unwrap_or_default(),
            u64::from(!right),
        ])
    }

    fn on_servers(self, voters: &Voters, rule: Rule, rng: ChaCha8Rng) -> Result<[u64; 5], Fault> {
        let duty = duty(self.active, self.share);
        let period = duty.period();
        let active = Span::millis(duty.active_ms.into());
        let asleep = Span::millis(duty.asleep_ms.into());
        let cycle = Cycle { active, asleep };
        let servers = Raft::cluster(voters, rule);
        let mut broker = Broker::new(servers, cycle, self.length, rng);
        broker.run_for(Span(period.0 * 3) + Span::secs(15));
        let wait = Span(broker.below(period.0));
        broker.run_for(wait);
        if !broker.servers().next().is_some_and(Raft::leads) {
            return Err(Fault::Outcome("the first server does not lead".to_owned()));
        }
        let (start, awake, sent) = (broker.now(), broker.awake(), broker.sent());
        let task = 1;
        broker.submit(0, task);
        let most = Span(10 * (self.length.0 + 10 * period.0));
        if !broker.run_until_answered(task, most) {
            return Err(Fault::Outcome("no answer came".to_owned()));
        }
        Ok([
            broker.now().since(start).0,
            broker.awake().0 - awake.0,
            broker.sent() - sent,
            0,
            0,
        ])
    }

    /// The number of nodes besides the gateway.
    fn nodes(self) -> u64 {
        match self.system {
            System::Pcm { unit } => unit.into(),
            System::Raft(_) | System::Pirogue(_) => UNIT.into(),
        }
    }

    /// Each trial's mean seconds of a function.
    pub(super) fn completions(self, samples: &Samples) -> Vec<f64> {
        let name = self.name();
        let sums = samples.of(&name);
        let sums = sums.filter_map(|it| it.1.0.first().copied().flatten());
        sums.map(|it| energy::seconds(Span(it)) / FUNCTIONS as f64)
            .collect()
    }

    /// The means.
    pub(super) fn figures(self, samples: &Samples) -> Option<Figures> {
        let all: Vec<&Sample> = samples.of(&self.name()).map(|it| it.1).collect();
        let count = all.len() as u64 * FUNCTIONS;
        let sum = |at: usize| -> u64 {
            let figures = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            figures.sum()
        };
        let [time, awake, first] = [sum(0), sum(1), sum(3)].map(Span);
        let present = Span(time.0 * self.nodes());
        let mean = |it: f64| it / count as f64;
        (count > 0).then(|| Figures {
            completion: mean(energy::seconds(time)),
            energy: mean(energy::gateways(time) + energy::nodes(awake, present)),
            awake_energy: mean(energy::gateways(time) + energy::nodes(present, present)),
            first: mean(energy::seconds(first)),
            messages: mean(sum(2) as f64),
            wrong: sum(4) as f64 / count as f64,
            trials: all.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMS: [System; 3] = [
        System::Pcm { unit: UNIT },
        System::Raft(Rule::Acknowledge),
        System::Pirogue(Rule::Acknowledge),
    ];

    #[test]
    fn a_share_is_that_of_the_time_in_which_a_node_can_be_used() {
        for (share, asleep_ms) in [(1, 99_000), (10, 9_000), (50, 1_000), (100, 0)] {
            let duty = duty(ACTIVE, share);
            assert_eq!((duty.asleep_ms, duty.busy_ms), (asleep_ms, 0));
            assert_eq!(u64::from(duty.availability()), share * 10_000);
        }
    }

    #[test]
    fn a_trial_depends_on_its_seed_alone() {
        for system in SYSTEMS {
            let run = Case::new(system).experiment().run;
            assert_eq!(run(1).unwrap(), run(1).unwrap());
            assert_ne!(run(1).unwrap(), run(2).unwrap());
        }
    }

    /// No node sleeps: a function takes its time and a few messages', and each of five nodes is
    /// awake for the whole time.
    #[test]
    fn nodes_that_are_always_on_answer_when_the_function_ends() {
        for system in SYSTEMS {
            let share = 100;
            let case = Case {
                share,
                ..Case::new(system)
            };
            let mut samples = Samples::new(1, 1, Vec::new());
            samples.add(&case.name(), 0, (case.experiment().run)(1).unwrap());
            let found = case.figures(&samples).unwrap();
            let more = found.completion - energy::seconds(case.length);
            assert!((0.01..0.1).contains(&more), "{system:?}: {more} s");
            assert!(
                (found.energy - found.awake_energy).abs() < 1e-6,
                "{found:?}"
            );
            assert!(found.wrong == 0.0, "{found:?}");
        }
    }
}
