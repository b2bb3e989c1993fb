//! The judge of the demo: promises, and the measured values.

use std::collections::BTreeMap;

use selvedge_celect::Ballot;
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_membership::Event;
use serde::Serialize;

use super::leaders::Leaders;
use super::plan::{Bound, Plan, seconds};
use super::trace::{Fact, Mark, Trace, Views};
use super::turns::Turns;
use selvedge_udp::NodeEvent;
use selvedge_udp::faults::FaultCounts;
use selvedge_udp::traffic::TrafficReport;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// A short name for programs.
    pub id: String,
    /// The promise, in words.
    pub promise: String,
    /// The unit of the limit and the measured value.
    pub unit: &'static str,
    /// The largest value allowed.
    pub limit: f64,
    /// The measured value; `None` if it never came true.
    pub seen: Option<f64>,
    /// True if it came true within the limit.
    pub held: bool,
    /// True if it depends on the speed of the machine: it has a time limit.
    pub timed: bool,
    /// False if it did not hold and the machine was too slow for it.
    pub judged: bool,
    /// The derivation of the limit, and remarks on the measured value.
    pub why: String,
}

impl Promise {
    /// Returns true if it did not hold and was judged.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        !self.held && self.judged
    }

    /// The same promise with `timed` set.
    pub(crate) fn timed(self) -> Self {
        Self {
            timed: true,
            ..self
        }
    }
}

/// The material for the judge.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The script.
    pub plan: &'a Plan,
    /// The events.
    pub trace: &'a Trace,
    /// The traffic of all hosts.
    pub traffic: TrafficReport,
    /// The number of datagrams that a fault hit on purpose.
    pub met: FaultCounts,
    /// The number of events lost between the nodes and this judge.
    pub missed: u64,
    /// The number of nodes, up at the end, whose list differs from their events.
    pub odd_lists: usize,
    /// The turns that the file records.
    pub turns: &'a Turns,
}

/// Judges all promises.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Vec<Promise> {
    let plan = evidence.plan;
    let facts = Facts::gather(plan, evidence.trace);
    let mut table = vec![facts.joined(plan), facts.elected(plan)];
    for node in plan.crashing {
        table.extend(facts.crash(plan, NodeId(node)));
    }
    table.extend(facts.reelected(plan));
    table.push(facts.removals(plan));
    table.push(facts.leave(plan));
    table.push(facts.restart(plan));
    table.push(facts.healed(plan, evidence.odd_lists));
    table.push(facts.one_leader(plan));
    table.extend(facts.ballots());
    table.extend(facts.turns(plan, evidence.turns));
    table.extend(wire(evidence));
    table
}

/// The times at which nodes learned of each event.
#[derive(Debug, Default)]
struct Facts {
    complete: Option<Time>,
    down: BTreeMap<NodeId, Time>,
    /// The former life of the node that restarts.
    former: Option<Member>,
    left: Option<Time>,
    back: Option<Time>,
    healed: Option<Time>,
    right_since: Option<Time>,
    /// The time at which each node learned that a life crashed, left or began (restart).
    ends: BTreeMap<NodeId, BTreeMap<NodeId, Time>>,
    farewells: BTreeMap<NodeId, Time>,
    returns: BTreeMap<NodeId, Time>,
    leaver_failed: usize,
    leaders: Leaders,
    /// The time when all nodes first followed one leader.
    led: Option<Time>,
    /// The leader that all nodes followed when the leader was about to crash.
    before_crash: Option<(Member, Ballot)>,
    /// The time when all nodes followed another leader, after the failure was declared.
    led_again: Option<Time>,
    /// The time from which all nodes follow one leader, after healing.
    one_leader_since: Option<Time>,
    false_removals: usize,
    excused_removals: usize,
}

impl Facts {
    fn gather(plan: &Plan, trace: &Trace) -> Self {
        let mut facts = Self::default();
        let mut views = Views::default();
        let mut lives = BTreeMap::new();
        for mark in trace.iter() {
            match mark {
                Mark::Fact(at, fact) => facts.happened(plan, *at, *fact),
                Mark::Observed(seen) => {
                    if let NodeEvent::Membership(Event::Changed(delta)) = seen.event {
                        facts.notified(plan, &views, &lives, seen.at, seen.node, delta);
                    }
                }
            }
            if let Mark::Fact(_, Fact::Crashed(node)) = mark {
                if node.0 == plan.crashing[0] {
                    facts.before_crash = facts.leaders.agreed(&views, |_| true);
                }
                if node.0 == plan.restarting {
                    facts.former = lives.get(node).copied();
                }
            }
            views.apply(mark);
            facts.leaders.apply(mark);
            for (node, life) in views.up() {
                lives.extend(life.map(|life| (node, life)));
            }
            facts.look(plan, &views, mark.at());
        }
        facts
    }

    fn happened(&mut self, plan: &Plan, at: Time, fact: Fact) {
        match fact {
            Fact::Started(node) if self.down.contains_key(&node) => self.back = Some(at),
            Fact::Crashed(node) => {
                self.down.insert(node, at);
            }
            Fact::Leaving(node) if node.0 == plan.leaving => self.left = Some(at),
            Fact::Healed => self.healed = Some(at),
            Fact::Started(_) | Fact::Leaving(_) | Fact::Cut => {}
        }
    }

    /// `lives` are the last known lives, including those of nodes that are down.
    fn notified(
        &mut self,
        plan: &Plan,
        views: &Views,
        lives: &BTreeMap<NodeId, Member>,
        at: Time,
        observer: NodeId,
        delta: Delta,
    ) {
        let member = delta.member();
        let ends = matches!(delta, Delta::Failed(_) | Delta::Confirmed(_));
        if ends && views.life(member.id) == Some(member) {
            let apart = plan.is_cut_off(observer.0) != plan.is_cut_off(member.id.0);
            let excused = (at >= plan.times.cut && at < plan.times.heal && apart)
                || (at >= plan.times.heal && at < plan.times.settled);
            self.excused_removals += usize::from(excused);
            self.false_removals += usize::from(!excused);
        }
        if ends && self.down.contains_key(&member.id) && lives.get(&member.id) == Some(&member) {
            let learned = self.ends.entry(member.id).or_default();
            learned.entry(observer).or_insert(at);
        }
        if member.id.0 == plan.leaving && self.left.is_some() {
            self.leaver_failed += usize::from(ends);
            if matches!(delta, Delta::Left(_)) {
                self.farewells.entry(observer).or_insert(at);
            }
        }
        if member.id.0 == plan.restarting
            && self.back.is_some()
            && matches!(delta, Delta::Joined(_))
            && self.former.is_some_and(|former| member.supersedes(former))
        {
            self.returns.entry(observer).or_insert(at);
        }
    }

    fn look(&mut self, plan: &Plan, views: &Views, at: Time) {
        let (right, up) = views.right();
        let all = right == up;
        if all && up as u64 == plan.nodes && self.complete.is_none() {
            self.complete = Some(at);
        }
        if self.healed.is_some() {
            self.right_since = all.then(|| self.right_since.unwrap_or(at));
        }
        self.look_at_leaders(plan, views, at);
    }

    fn look_at_leaders(&mut self, plan: &Plan, views: &Views, at: Time) {
        let followed = self.leaders.agreed(views, |_| true);
        if followed.is_some() && views.up().count() as u64 == plan.nodes && self.led.is_none() {
            self.led = Some(at);
        }
        if self.healed.is_some() {
            let is_led = followed.is_some();
            self.one_leader_since = is_led.then(|| self.one_leader_since.unwrap_or(at));
        }
        if self.led_again.is_some() || self.detected(plan).is_none() {
            return;
        }
        let is_cut = at >= plan.times.cut && at < plan.times.settled;
        let among = |node: NodeId| !(is_cut && plan.is_cut_off(node.0));
        let again = self.leaders.agreed(views, among);
        if again.map(|it| it.1) > self.before_crash.map(|it| it.1) {
            self.led_again = Some(at);
        }
    }

    /// The time when a node first declared the leader failed.
    fn detected(&self, plan: &Plan) -> Option<Time> {
        let ends = self.ends.get(&NodeId(plan.crashing[0]))?;
        ends.values().min().copied()
    }

    fn joined(&self, plan: &Plan) -> Promise {
        let promise = format!("all {0} nodes see all {0}", plan.nodes);
        let bound = &plan.bounds.join;
        timed("join", promise, bound, Some(Time::ZERO), self.complete)
    }

    fn crash(&self, plan: &Plan, node: NodeId) -> [Promise; 2] {
        let none = BTreeMap::new();
        let learned = self.ends.get(&node).unwrap_or(&none);
        let down = self.down.get(&node).copied();
        let first = learned.values().min().copied();
        let role = if node.0 == plan.crashing[0] {
            ", the leader,"
        } else {
            ""
        };
        let promise = format!("the crash of node {node}{role} is detected");
        let id = format!("detect-{node}");
        let detect = timed(&id, promise, &plan.bounds.detect, down, first);
        let promise = format!("then all others learn of the crash of node {node}");
        let id = format!("spread-{node}");
        [
            detect,
            spread(&id, promise, plan, &plan.bounds.spread, first, learned),
        ]
    }

    fn elected(&self, plan: &Plan) -> Promise {
        let promise = "all follow one leader, and no node asked for it".to_owned();
        let bound = &plan.bounds.elect;
        timed("elect", promise, bound, Some(Time::ZERO), self.led)
    }

    fn reelected(&self, plan: &Plan) -> [Promise; 2] {
        let dead = plan.crashing[0];
        let down = self.down.get(&NodeId(dead)).copied();
        let (detected, again) = (self.detected(plan), self.led_again);
        let bound = &plan.bounds.reelect;
        let promise = "then all others follow a new leader".to_owned();
        let mut elect = timed("reelect", promise, bound, detected, again);
        if self.before_crash.map(|it| it.0.id) != Some(NodeId(dead)) {
            elect.held = false;
            elect.why = format!(
                "not all followed node {dead} when it crashed; {}",
                elect.why
            );
        }
        let both = Bound {
            span: plan.bounds.detect.span + bound.span,
            why: match (elect.seen, down.zip(detected)) {
                (Some(elect), Some((down, detected))) => format!(
                    "seen: {:.2} s of detection and {elect:.2} s of election",
                    span(detected.since(down))
                ),
                _ => "detection and election".to_owned(),
            },
        };
        let promise = "the mesh was without a leader for".to_owned();
        [elect, timed("leaderless", promise, &both, down, again)]
    }

    fn one_leader(&self, plan: &Plan) -> Promise {
        let promise = "after healing all follow one leader again".to_owned();
        let bound = &plan.bounds.one_leader;
        let since = self.one_leader_since;
        timed("one-leader", promise, bound, self.healed, since)
    }

    fn ballots(&self) -> [Promise; 2] {
        let (all, clashing) = self.leaders.ballots();
        let falls = self.leaders.falls();
        [
            none(
                "ballot",
                "ballots under which two nodes led",
                "ballots",
                clashing,
                format!(
                    "from the events of every node, dead and cut-off nodes included: {all} ballots"
                ),
            ),
            none(
                "fencing",
                "nodes notified of a ballot that is not above the one before",
                "times",
                falls,
                "a resource that refuses smaller ballots is safe from former leaders".to_owned(),
            ),
        ]
    }

    fn removals(&self, plan: &Plan) -> Promise {
        Promise {
            id: "false-removals".into(),
            promise: "live nodes declared failed by nodes that can reach them".into(),
            unit: "removals",
            limit: 0.0,
            seen: Some(float(self.false_removals)),
            held: self.false_removals == 0,
            timed: true,
            judged: true,
            why: format!(
                "not counted: {} across the cut, or after it before {:.1} s, when its suspicions have ended",
                self.excused_removals,
                seconds(plan.times.settled)
            ),
        }
    }

    fn leave(&self, plan: &Plan) -> Promise {
        let promise = format!(
            "all learn that node {} left, none that it failed",
            plan.leaving
        );
        let learned = &self.farewells;
        let bound = &plan.bounds.spread;
        let mut row = spread("leave", promise, plan, bound, self.left, learned);
        if self.leaver_failed > 0 {
            row.held = false;
            row.why = format!("declared failed {} times; {}", self.leaver_failed, row.why);
        }
        row
    }

    fn restart(&self, plan: &Plan) -> Promise {
        let promise = format!(
            "node {}, restarted without memory, is back in a new life",
            plan.restarting
        );
        let bound = &plan.bounds.back;
        spread("restart", promise, plan, bound, self.back, &self.returns)
    }

    fn turns(&self, plan: &Plan, turns: &Turns) -> [Promise; 4] {
        let writes = turns.writes.len();
        let waiting = turns.waiting();
        let longest = waiting.map(|waiting| span(waiting.max));
        let bound = &plan.bounds.wait;
        [
            none(
                "overlap",
                "writes to the file while another one was under way",
                "writes",
                turns.overlaps(&self.down),
                format!(
                    "from the lines of the file: {writes} writes, each with node, token, start and end; {} had a token that was too low, and were refused",
                    turns.stale
                ),
            ),
            none(
                "tokens",
                "writes with a token not above the one before",
                "writes",
                turns.falls(),
                "from the order of the lines".to_owned(),
            ),
            none(
                "turns",
                "nodes that stay and had no turn after the cut healed",
                "nodes",
                turns.missing(
                    (1..=plan.nodes).filter(|&node| plan.stays(node)),
                    self.healed.unwrap_or_default(),
                ),
                "from the lines of the file: every node gets in again, after all faults".to_owned(),
            )
            .timed(),
            Promise {
                id: "wait".into(),
                promise: "the longest wait for a turn".into(),
                unit: "s",
                limit: span(bound.span),
                seen: longest,
                held: waiting.is_some_and(|waiting| waiting.max <= bound.span),
                timed: true,
                judged: true,
                why: format!(
                    "{}; seen: {}, and {} times too few nodes could be reached",
                    bound.why,
                    waiting.map_or("none".to_owned(), |waiting| waiting.to_string()),
                    turns.refused
                ),
            },
        ]
    }

    fn healed(&self, plan: &Plan, odd_lists: usize) -> Promise {
        let promise = "after healing all lists equal the truth again".to_owned();
        let bound = &plan.bounds.heal;
        let mut row = timed("heal", promise, bound, self.healed, self.right_since);
        if odd_lists > 0 {
            row.held = false;
            row.why = format!(
                "{odd_lists} nodes have a list that differs from their events; {}",
                row.why
            );
        }
        row
    }
}

fn wire(evidence: &Evidence<'_>) -> [Promise; 2] {
    let (traffic, met) = (evidence.traffic, evidence.met);
    let budget = evidence.plan.config.frame_budget;
    let lost = [("events_lost", evidence.missed)];
    let faults = traffic.faults().into_iter().chain(lost);
    let faults: Vec<_> = faults.filter(|&(_, count)| count > 0).collect();
    let faulty = faults.iter().map(|(_, count)| count).sum();
    let named = faults.iter().fold(String::new(), |named, (name, count)| {
        format!("{named}{name} {count}; ")
    });
    [
        Promise {
            id: "frame".into(),
            promise: "the longest frame is within its budget".into(),
            unit: "bytes",
            limit: f64::from(budget),
            seen: Some(big(traffic.longest)),
            held: traffic.longest <= u64::from(budget),
            timed: false,
            judged: true,
            why: format!(
                "frame_budget of the settings; {} frames were sent",
                traffic.sent.saturating_sub(met.held_back)
            ),
        },
        Promise {
            id: "faulty".into(),
            promise: "frames malformed or refused, events lost".into(),
            unit: "frames",
            limit: 0.0,
            seen: Some(big(faulty)),
            held: faulty == 0,
            timed: false,
            judged: true,
            why: format!(
                "{named}not counted: {} got lost on purpose, {} met the cut, {} came before their receiver was in or after it left, {} had a receiver whose address was not known yet",
                met.lost, met.held_back, traffic.untimely, traffic.unknown_destination
            ),
        },
    ]
}

/// A promise about an event that must never happen.
pub(crate) fn none(
    id: &str,
    promise: &str,
    unit: &'static str,
    seen: usize,
    why: String,
) -> Promise {
    Promise {
        id: id.to_owned(),
        promise: promise.to_owned(),
        unit,
        limit: 0.0,
        seen: Some(float(seen)),
        held: seen == 0,
        timed: false,
        judged: true,
        why,
    }
}

fn timed(
    id: &str,
    promise: String,
    bound: &Bound,
    from: Option<Time>,
    seen: Option<Time>,
) -> Promise {
    let took = from.zip(seen).map(|(from, seen)| seen.since(from));
    Promise {
        id: id.to_owned(),
        promise,
        unit: "s",
        limit: span(bound.span),
        seen: took.map(span),
        held: took.is_some_and(|took| took <= bound.span),
        timed: true,
        judged: true,
        why: bound.why.clone(),
    }
}

/// A promise about the time until all nodes that stay up have learned something. A node that is cut
/// off meanwhile has time until the lists are right again, and does not count for the figure.
fn spread(
    id: &str,
    promise: String,
    plan: &Plan,
    bound: &Bound,
    from: Option<Time>,
    learned: &BTreeMap<NodeId, Time>,
) -> Promise {
    let mut row = timed(id, promise, bound, from, from);
    let Some(from) = from else {
        return row;
    };
    let mut last = Some(from);
    for node in (1..=plan.nodes).filter(|&node| plan.stays(node)) {
        let when = learned.get(&NodeId(node)).copied();
        let is_excused = plan.is_cut_off(node)
            && from + bound.span > plan.times.cut
            && when.is_none_or(|when| when >= plan.times.cut);
        let until = if is_excused {
            plan.times.heal + plan.bounds.heal.span
        } else {
            from + bound.span
        };
        row.held &= when.is_some_and(|when| when <= until);
        if !is_excused {
            last = last.zip(when).map(|(last, when)| last.max(when));
        }
    }
    row.seen = last.map(|last| span(last.since(from)));
    row
}

pub(crate) fn span(span: Span) -> f64 {
    core::time::Duration::from(span).as_secs_f64()
}

pub(crate) fn float(count: usize) -> f64 {
    big(count as u64)
}

fn big(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
