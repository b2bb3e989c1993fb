//! The script of a demo, and the limits of the times that everything may take.
//!
//! The bounds follow from the settings alone. Where chance decides (which member is probed next,
//! which packet is lost) a bound ignores cases that are rarer than one in a million.

use core::time::Duration;

use rand_core::Rng;
use selvedge_camera::sections;
use selvedge_celect as celect;
use selvedge_core::{Choose, NodeId, Ratio, Sha256Sortition, Sortition, Span, Time};
use selvedge_membership::{Config, SuspicionLength};

use super::desk::WRITING;
use selvedge::Election;

/// The share of packets that are lost, from start to end.
pub const LOSS: Ratio = Ratio::new(5, 100);
/// The probability below which a case counts as impossible.
const RISK: f64 = 1e-6;
/// The number of periods within which news reaches every node: it rides on 3 ceil(ln(N + 1))
/// messages of every node that has it, and a node that it misses finds another digest on its
/// probes.
const SPREAD_PERIODS: u64 = 15;

/// The longest scheduling delay that the settings allow for: after it a live node has not answered a
/// probe in time.
#[must_use]
pub const fn tolerated(period: Span) -> Span {
    Span(period.0 * 3 / 10)
}

/// The whole course of a demo.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of nodes; they are numbered from 1, and 1 and 2 are the seeds.
    pub nodes: u64,
    /// The settings of every node.
    pub config: Config,
    /// The settings of every node for the section in which the file is written.
    pub sections: sections::Config,
    /// The settings of every node for elections.
    pub election: Election,
    /// The nodes that crash, both at once. The first one is first in the draw, and so leads.
    pub crashing: [u64; 2],
    /// The node that leaves.
    pub leaving: u64,
    /// The node that restarts without its memory.
    pub restarting: u64,
    /// The nodes that are cut off.
    pub cut_off: Vec<u64>,
    /// The times of the script.
    pub times: Times,
    /// The limits.
    pub bounds: Bounds,
}

/// The times of the script.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Between two nodes' starts.
    pub start_gap: Span,
    /// Two nodes crash.
    pub crash: Time,
    /// A node leaves.
    pub leave: Time,
    /// A node goes down and loses its memory.
    pub down: Time,
    /// It comes back.
    pub back: Time,
    /// Some nodes are cut off.
    pub cut: Time,
    /// They are connected again.
    pub heal: Time,
    /// The time from which suspicions of the cut have ended.
    pub settled: Time,
    /// The earliest end.
    pub end: Time,
    /// The end, if a promise has not come true by then.
    pub deadline: Time,
}

/// Limits of times, with their derivations.
///
/// They count periods with their full jitter. A node that missed an answer has longer periods for a
/// while (`stretch_limit`); that is not counted: no node has them before a crash, and afterwards
/// there are many other nodes.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// From the first start until every node sees all.
    pub join: Bound,
    /// From a crash until a node declares the failure.
    pub detect: Bound,
    /// From there, or from a leave, until all know.
    pub spread: Bound,
    /// From a restart until all know the new life.
    pub back: Bound,
    /// From healing until all lists are right.
    pub heal: Bound,
    /// From the first start until all follow one leader.
    pub elect: Bound,
    /// From the first node's declaration that the leader has failed until all others follow
    /// another.
    pub reelect: Bound,
    /// From healing until all follow one leader.
    pub one_leader: Bound,
    /// From asking for a turn until the turn, including all faults.
    pub wait: Bound,
}

/// A bound with its derivation.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The longest time allowed.
    pub span: Span,
    /// The derivation from the settings.
    pub why: String,
}

impl Plan {
    /// The least number of nodes for which the script has enough parts.
    pub const MIN_NODES: u64 = 8;
    /// The largest number of nodes that one process runs.
    pub const MAX_NODES: u64 = 128;

    /// Draws the parts with `rng` and computes times and bounds.
    pub fn new(nodes: u64, period: Span, rng: &mut impl Rng) -> Self {
        let nodes = nodes.clamp(Self::MIN_NODES, Self::MAX_NODES);
        let config = settings(period);
        let mut cast: Vec<u64> = (3..=nodes).collect();
        let mut draw = || {
            let at = rng.below(cast.len() as u64);
            cast.swap_remove(usize::try_from(at).unwrap_or_default())
        };
        let crashing = [draw(), draw()];
        let leaving = draw();
        let restarting = draw();
        // 5 of 16.
        let mut cut_off: Vec<u64> = (0..nodes * 5 / 16).map(|_| draw()).collect();
        cut_off.sort_unstable();
        let sections = turns(nodes, period);
        let election = election(nodes, period, crashing[0]);
        let bounds = Bounds::new(nodes, cut_off.len() as u64, &config, &sections, &election);
        Self {
            times: Times::new(nodes, &config, &bounds),
            nodes,
            config,
            sections,
            election,
            crashing,
            leaving,
            restarting,
            cut_off,
            bounds,
        }
    }

    /// Returns true if a node is up from start to end, in one life.
    #[must_use]
    pub fn stays(&self, node: u64) -> bool {
        !self.crashing.contains(&node) && node != self.leaving && node != self.restarting
    }

    /// Returns true if a node is cut off for a while.
    #[must_use]
    pub fn is_cut_off(&self, node: u64) -> bool {
        self.cut_off.contains(&node)
    }
}

/// The defaults, except for times. A period of 200 ms makes 15 seconds some 75 periods long. Round
/// trips on loopback take well below a millisecond, but a busy machine may let a process wait for
/// tens of milliseconds: hence 60 ms before relays are asked, which leaves 140 ms for their way.
/// Suspicions last 2 instead of 3 ceil(ln(N + 1)) periods, so that detecting, cutting and healing
/// fit, and dead nodes are asked every other period, so that healing can be watched.
fn settings(period: Span) -> Config {
    Config::default()
        .with_period(period)
        .with_jitter(Span(period.0 / 10))
        .with_probe_timeout(tolerated(period))
        .with_suspicion(SuspicionLength::PerLog(2))
        .with_reconnect_every(2)
}

/// Settings of the section. Answers take well below a millisecond, or as long as a busy machine
/// lets a process wait; one answer in ten gets lost on its way there or back. A request stays open
/// over a restart, hence one life more than there are nodes. No node is passed over: a crashed node
/// is certainly dead when an operator confirms it, and a node that is cut off comes back.
const fn turns(nodes: u64, period: Span) -> sections::Config {
    sections::Config::with(
        selvedge_camera::Config::new(nodes as u32 + 1)
            .with_resend(Span(period.0 / 4))
            .with_resend_limit(period)
            .with_refresh(Span(period.0 * 5)),
    )
}

/// Settings of elections. Round trips are as short as for turns; each of six attempts is lost once
/// in ten times. A live node is on all lists but two at most. The draw puts `first` first, so that
/// the leader is among the nodes that crash.
fn election(nodes: u64, period: Span, first: u64) -> Election {
    let short = Span(period.0 / 4);
    Election {
        config: celect::Config::new(2, 1)
            .with_timeout(short)
            .with_attempts(6)
            .with_resend(short)
            .with_spread(short)
            .with_patience(period * 10)
            .with_keep_leader(true),
        label: (0_u32..)
            .map(|draw| format!("leader {draw}"))
            .find(|label| {
                let rank = |node: u64| Sha256Sortition.rank(label.as_bytes(), NodeId(node));
                (1..=nodes).all(|other| other == first || rank(first) < rank(other))
            })
            .unwrap_or_default()
            .into_bytes()
            .into(),
        patience: period * 7,
    }
}

/// The length of the cut, in periods.
const CUT_PERIODS: u64 = 15;

impl Times {
    fn new(nodes: u64, config: &Config, bounds: &Bounds) -> Self {
        let period = config.period;
        let longest = period + config.jitter;
        let all_is_well = bounds.join.span.max(bounds.elect.span);
        let crash = (Time::ZERO + period * 25).max(Time::ZERO + all_is_well);
        let cut = crash + period * 15;
        let heal = cut + period * CUT_PERIODS;
        // A probe that fails at the last moment, its suspicion, and the spread of the news.
        let suspicion = u64::from(2 * log(nodes));
        let settled = heal + longest * (1 + suspicion + SPREAD_PERIODS);
        Self {
            start_gap: start_gap(nodes, period),
            crash,
            leave: crash + period * 5,
            down: crash + period * 8,
            back: crash + period * 9,
            cut,
            heal,
            settled,
            end: settled + period * 2,
            deadline: (heal + bounds.one_leader.span).max(settled + period * 2),
        }
    }
}

/// All nodes start within a period and a half.
const fn start_gap(nodes: u64, period: Span) -> Span {
    Span(period.0 * 3 / 2 / nodes)
}

impl Bounds {
    fn new(
        nodes: u64,
        cut_off: u64,
        config: &Config,
        sections: &sections::Config,
        election: &Election,
    ) -> Self {
        let longest = config.period + config.jitter;
        let log = log(nodes);
        let suspicion = u64::from(2 * log);
        let there_and_back = (1.0 - ratio(LOSS)).powi(2);
        let bound = |periods: u64, why: String| Bound {
            span: longest * periods,
            why: format!("{why} = {periods} periods of at most {longest:?}"),
        };

        let asks = attempts(1.0 - there_and_back);
        let starts = start_gap(nodes, config.period) * nodes;
        let mut join = bound(
            asks + SPREAD_PERIODS,
            format!(
                "{starts:?} of starts, then {asks} asks until one and its answer arrive + {SPREAD_PERIODS} to spread"
            ),
        );
        join.span = join.span + starts;

        // Every period each prober passes the dead node by with probability 1 - 1/(N - 1).
        let missed = (1.0 - 1.0 / count(nodes - 1)).powf(count(nodes - 2));
        let first_probe = attempts(missed);
        let detect = bound(
            first_probe + 1 + suspicion,
            format!(
                "{first_probe} until a node probes it + 1 until the probe ends + {suspicion} of suspicion (2 ceil(ln {}))",
                nodes + 1
            ),
        );
        let spread = bound(SPREAD_PERIODS, format!("{SPREAD_PERIODS} to spread"));
        let back = bound(
            2 * asks + SPREAD_PERIODS,
            format!(
                "{asks} asks until it learns that its number is taken + {asks} until it is let in + {SPREAD_PERIODS} to spread"
            ),
        );

        // Three members and a seed's two stand-ins are on the list of the dead, too.
        let others = nodes - 3 - cut_off;
        let crossing = count(others) / count(others + 3 + 2) * there_and_back;
        let every = u64::from(config.reconnect_every);
        let first_crossing = attempts((1.0 - crossing).powf(count(cut_off))) * every;
        let meeting = attempts(1.0 - count(cut_off) / count(nodes - 4) * there_and_back);
        let heal = bound(
            first_crossing + SPREAD_PERIODS + meeting + SPREAD_PERIODS,
            format!(
                "{first_crossing} until one side asks the other + {SPREAD_PERIODS} to spread + {meeting} until every node met the other side, and denied its death + {SPREAD_PERIODS} to spread"
            ),
        );
        let noticed = detect.span + spread.span;
        let wait = wait(nodes, config, sections, noticed, heal.span);
        let [elect, reelect, one_leader] = leading(election, asks, &join, &heal);
        Self {
            elect,
            reelect,
            one_leader,
            join,
            detect,
            spread,
            back,
            heal,
            wait,
        }
    }
}

/// Bounds of elections. An election asks, appoints and notifies, each repeated until an answer
/// arrives; a dead node that no other node knows to be dead is appointed in vain before all are
/// asked again.
fn leading(election: &Election, asks: u64, join: &Bound, heal: &Bound) -> [Bound; 3] {
    let celect::Config {
        timeout,
        attempts,
        spread,
        ..
    } = election.config;
    let run = |dead: u64| spread + timeout * (3 * asks + dead * (u64::from(attempts) + asks));
    let steps = format!(
        "{spread:?} until one begins + 3 steps of {asks} attempts of {timeout:?} (ask, appoint, notify)"
    );
    let begun = join.span.max(election.patience * 2);
    let elect = Bound {
        span: begun + run(0),
        why: format!(
            "{:?} without a leader, twice that for the last to begin, or {:?} until all see all + {steps}",
            election.patience, join.span
        ),
    };
    let reelect = Bound {
        span: run(2),
        why: format!(
            "{steps} + 2 dead nodes that may be appointed, {attempts} times each, before all are asked again"
        ),
    };
    let one_leader = Bound {
        span: heal.span + run(2),
        why: format!(
            "{:?} until all lists are right + {:?} of an election",
            heal.span,
            run(2)
        ),
    };
    [elect, reelect, one_leader]
}

/// The bound of a wait. The longest wait begins with the crash of the node that had the file: until
/// all know of it and an operator has confirmed it, and then, if the cut began meanwhile, until it
/// heals, all lists are right, and all others had a turn, each with a message lost.
fn wait(
    nodes: u64,
    config: &Config,
    sections: &sections::Config,
    noticed: Span,
    heal: Span,
) -> Bound {
    let cut = config.period * CUT_PERIODS;
    let turn = WRITING + sections.section.resend_limit;
    Bound {
        span: noticed + cut + heal + turn * nodes,
        why: format!(
            "{noticed:?} until all know of a crash + {cut:?} of the cut + {heal:?} until its lists are right again + {nodes} turns of {WRITING:?} each, with an answer that is asked for again after {:?}",
            sections.section.resend_limit
        ),
    }
}

/// The number of attempts of which all fail with less than the accepted risk.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number"
)]
fn attempts(failure: f64) -> u64 {
    (RISK.ln() / failure.ln()).ceil() as u64
}

/// ceil(ln(N + 1)), as the protocol computes it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number"
)]
fn log(nodes: u64) -> u32 {
    (count(nodes) + 1.0).ln().ceil() as u32
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn ratio(ratio: Ratio) -> f64 {
    f64::from(ratio.numerator) / f64::from(ratio.denominator)
}

/// Seconds from the start, for people.
#[must_use]
pub(crate) fn seconds(time: Time) -> f64 {
    Duration::from(time.since(Time::ZERO)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha12Rng;
    use rand_core::SeedableRng;

    #[test]
    fn every_part_is_cast_once_and_seeds_have_none() {
        for nodes in [Plan::MIN_NODES, 16, 33, Plan::MAX_NODES] {
            for seed in 0..20 {
                let mut rng = ChaCha12Rng::seed_from_u64(seed);
                let plan = Plan::new(nodes, Span::millis(200), &mut rng);
                let mut cast = plan.cut_off.clone();
                cast.extend(plan.crashing);
                cast.extend([plan.leaving, plan.restarting]);
                cast.sort_unstable();
                cast.dedup();
                assert_eq!(cast.len() as u64, 4 + nodes * 5 / 16, "seed {seed}");
                assert!(cast.iter().all(|node| (3..=nodes).contains(node)));
            }
        }
    }

    #[test]
    fn the_usual_demo_takes_about_a_quarter_of_a_minute() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let plan = Plan::new(16, Span::millis(200), &mut rng);
        let end = seconds(plan.times.end);
        assert!((14.0..20.0).contains(&end), "{end}");
        assert!(plan.times.crash >= Time::ZERO + plan.bounds.join.span);
        assert!(plan.times.crash >= Time::ZERO + plan.bounds.elect.span);
        assert_eq!((log(16), log(20)), (3, 4));
        assert_eq!(attempts(0.1), 6);
    }
}
