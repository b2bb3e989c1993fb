//! A narrator of the demo: writes few lines, as things happen.

use std::io::Write;

use selvedge_celect::Ballot;
use selvedge_core::{Delta, NodeId, Time};
use selvedge_membership::Event;

use super::leaders::Leaders;
use super::plan::{Plan, seconds};
use super::trace::{Belief, Fact, Mark, Views};
use selvedge_home::term::Colour;
use selvedge_udp::NodeEvent;

/// Writes a line for every change that a reader cares about, not for every event.
pub struct Narrator<W> {
    out: W,
    colour: Colour,
    /// Changes that are announced once they are true for all nodes.
    awaited: Vec<Awaited>,
    progress: Option<(usize, usize)>,
    phase: Phase,
    /// The announced leader of all nodes, or of each side of a cut.
    led: [Option<Ballot>; 2],
    leaderless: Option<Leaderless>,
}

/// A mesh that has lost its leader.
#[derive(Clone, Copy, Debug)]
struct Leaderless {
    node: NodeId,
    since: Time,
    detected: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    what: What,
    node: NodeId,
    since: Time,
    first: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Failure,
    Farewell,
    Return,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Joining,
    Quiet,
    Cut,
    Healing,
}

impl<W: Write> Narrator<W> {
    /// A narrator that writes to `out`.
    pub const fn new(out: W, colour: Colour) -> Self {
        Self {
            out,
            colour,
            awaited: Vec::new(),
            progress: None,
            phase: Phase::Joining,
            led: [None; 2],
            leaderless: None,
        }
    }

    /// Writes one line. A closed terminal is no reason to stop.
    pub fn say(&mut self, at: Time, line: &str) {
        let time = self.colour.dim(&format!("+{:05.2}s", seconds(at)));
        let _written = writeln!(self.out, "{time}  {line}").is_ok();
    }

    /// Takes note of an entry of the trace, with the lists as they are after it.
    pub fn note(&mut self, plan: &Plan, views: &Views, leaders: &Leaders, mark: &Mark) {
        match mark {
            Mark::Fact(at, fact) => self.happened(plan, views, *at, *fact),
            Mark::Observed(seen) => {
                if let NodeEvent::Membership(Event::Changed(delta)) = seen.event {
                    self.notified(plan, views, seen.at, seen.node, delta);
                }
                self.settle(plan, views, seen.at);
                if let NodeEvent::Election(_) = seen.event {
                    self.follow(plan, views, leaders, seen.at);
                }
            }
        }
    }

    /// Announces the leader that all nodes follow, or each side of a cut, when it has changed.
    fn follow(&mut self, plan: &Plan, views: &Views, leaders: &Leaders, at: Time) {
        let is_cut = self.phase == Phase::Cut;
        let everybody = views.up().count() as u64 == plan.nodes;
        if self.led == [None; 2] && !everybody {
            return;
        }
        let sides: &[(usize, &str)] = if is_cut {
            &[(0, "all others"), (1, "all that are cut off")]
        } else {
            &[(0, "all")]
        };
        for &(side, name) in sides {
            let is_there = |node: NodeId| plan.is_cut_off(node.0) == (side == 1);
            let followed = leaders.agreed(views, |node| !is_cut || is_there(node));
            let Some((leader, ballot)) = followed else {
                continue;
            };
            let notified = self.led.get_mut(side);
            let Some(notified) = notified.filter(|notified| **notified < Some(ballot)) else {
                continue;
            };
            *notified = Some(ballot);
            let mut line = format!("{name} follow node {}", leader.id);
            if let Some(lost) = self.leaderless.take() {
                let between = |from: Time, to: Time| seconds(Time::ZERO + to.since(from));
                let detected = lost.detected.unwrap_or(at);
                line = format!(
                    "{line}: {:.2} s without a leader, {:.2} s to detect that and {:.2} s to elect",
                    between(lost.since, at),
                    between(lost.since, detected),
                    between(detected, at)
                );
            }
            let line = self.colour.good(&line);
            self.say(at, &line);
        }
    }

    /// Announces progress, if there is some. Called periodically.
    pub fn progress(&mut self, plan: &Plan, views: &Views, at: Time) {
        let (right, up) = views.right();
        match self.phase {
            Phase::Quiet => {}
            Phase::Cut => {
                let (ended, pairs) = across(plan, views);
                if self.progress.replace((ended, pairs)) != Some((ended, pairs)) {
                    let line = format!("across the cut {ended} of {pairs} links are declared dead");
                    self.say(at, &line);
                }
            }
            Phase::Joining | Phase::Healing => {
                if self.progress.replace((right, up)) != Some((right, up)) && right < up {
                    self.say(
                        at,
                        &format!("{up} nodes are up, {right} of them list them all"),
                    );
                }
            }
        }
    }

    fn happened(&mut self, plan: &Plan, views: &Views, at: Time, fact: Fact) {
        match fact {
            Fact::Started(node) if node.0 == plan.restarting && self.phase != Phase::Joining => {
                self.say(at, &format!("node {node} restarts without its memory"));
                self.wait(What::Return, node, at);
            }
            Fact::Started(_) => {}
            Fact::Crashed(node) if node.0 == plan.restarting => {
                let line = self.colour.bad(&format!("node {node} goes down"));
                self.say(at, &line);
            }
            Fact::Crashed(node) => {
                let led = if node.0 == plan.crashing[0] {
                    self.leaderless = Some(Leaderless {
                        node,
                        since: at,
                        detected: None,
                    });
                    ", which leads,"
                } else {
                    ""
                };
                let line = self.colour.bad(&format!("node {node}{led} crashes"));
                self.say(at, &line);
                self.wait(What::Failure, node, at);
            }
            Fact::Leaving(node) => {
                self.say(at, &format!("node {node} leaves"));
                self.wait(What::Farewell, node, at);
            }
            Fact::Cut => {
                let line = format!("{} are cut off", list(&plan.cut_off));
                let line = self.colour.bad(&line);
                self.say(at, &line);
                self.turn_to(Phase::Cut);
                // At the beginning of a cut, both sides follow the leader of all.
                self.led = [self.led[0]; 2];
            }
            Fact::Healed => {
                let (right, up) = views.right();
                let line = format!("the cut heals: {right} of {up} lists equal the truth");
                self.say(at, &line);
                self.turn_to(Phase::Healing);
            }
        }
    }

    fn turn_to(&mut self, phase: Phase) {
        self.phase = phase;
        self.progress = None;
    }

    fn wait(&mut self, what: What, node: NodeId, since: Time) {
        self.awaited.push(Awaited {
            what,
            node,
            since,
            first: None,
        });
    }

    fn notified(&mut self, plan: &Plan, views: &Views, at: Time, observer: NodeId, delta: Delta) {
        let Delta::Failed(member) = delta else {
            return;
        };
        if views.life(member.id) == Some(member) {
            let apart = plan.is_cut_off(observer.0) != plan.is_cut_off(member.id.0);
            if !apart && self.phase != Phase::Healing {
                let line = format!("node {observer} wrongly declares node {} failed", member.id);
                let line = self.colour.bad(&line);
                self.say(at, &line);
            }
            return;
        }
        let node = member.id;
        if let Some(lost) = self.leaderless.as_mut().filter(|lost| lost.node == node) {
            lost.detected = lost.detected.or(Some(at));
        }
        let awaited =
            (self.awaited.iter_mut()).find(|it| it.node == node && it.what == What::Failure);
        if let Some(it) = awaited
            && it.first.is_none()
        {
            it.first = Some(at);
            let took = seconds(Time::ZERO + at.since(it.since));
            let line = format!(
                "node {observer} is the first to detect the crash of node {node}, after {took:.2} s"
            );
            self.say(at, &line);
        }
    }

    /// Announces changes that have become true for all nodes.
    fn settle(&mut self, plan: &Plan, views: &Views, at: Time) {
        let (done, waiting): (Vec<_>, Vec<_>) = self
            .awaited
            .drain(..)
            .partition(|it| it.is_known_to_all(views));
        self.awaited = waiting;
        for it in done {
            let others = others(views, it.node).count();
            let took = seconds(Time::ZERO + at.since(it.first.unwrap_or(it.since)));
            let node = it.node;
            let line = match it.what {
                What::Failure => format!(
                    "all {others} others know that node {node} has failed, {took:.2} s after the first"
                ),
                What::Farewell => {
                    format!("all {others} others know that node {node} has left, after {took:.2} s")
                }
                What::Return => format!(
                    "all {others} others know the new life of node {node}, after {took:.2} s"
                ),
            };
            let line = self.colour.good(&line);
            self.say(at, &line);
        }
        let (right, up) = views.right();
        let is_awaited = match self.phase {
            Phase::Joining => up as u64 == plan.nodes,
            Phase::Healing => true,
            Phase::Quiet | Phase::Cut => false,
        };
        if right < up || !is_awaited {
            return;
        }
        let line = match self.phase {
            Phase::Joining => format!("all {up} nodes see all {up}"),
            Phase::Healing | Phase::Quiet | Phase::Cut => {
                format!("all {up} lists equal the truth again")
            }
        };
        let line = self.colour.good(&line);
        self.say(at, &line);
        self.turn_to(Phase::Quiet);
    }
}

impl Awaited {
    fn is_known_to_all(&self, views: &Views) -> bool {
        others(views, self.node).all(|observer| {
            let belief = views.belief(observer, self.node);
            match self.what {
                What::Failure => belief.is_none_or(|(_, belief)| belief == Belief::Failed),
                What::Farewell => belief.is_none_or(|(_, belief)| belief == Belief::Left),
                What::Return => {
                    let life = views.life(self.node);
                    life.is_some() && belief.map(|(member, _)| member) == life
                }
            }
        })
    }
}

/// The nodes that are in the mesh, `node` excepted.
fn others(views: &Views, node: NodeId) -> impl Iterator<Item = NodeId> {
    views
        .up()
        .filter(move |&(other, _)| other != node && views.life(other).is_some())
        .map(|(other, _)| other)
}

/// The number of ordered pairs of nodes across the cut in which the first lists the second as dead,
/// and the number of all pairs.
fn across(plan: &Plan, views: &Views) -> (usize, usize) {
    let (mut ended, mut pairs) = (0, 0);
    for (observer, _) in views.up() {
        for (subject, life) in views.up() {
            if plan.is_cut_off(observer.0) != plan.is_cut_off(subject.0) && life.is_some() {
                pairs += 1;
                let belief = views.belief(observer, subject);
                ended += usize::from(belief.is_none_or(|(_, belief)| belief == Belief::Failed));
            }
        }
    }
    (ended, pairs)
}

/// Text such as "nodes 3, 5 and 7", or their number if that would be long.
pub(crate) fn list(nodes: &[u64]) -> String {
    if nodes.len() > 8 {
        return format!("{} nodes", nodes.len());
    }
    let words: Vec<String> = nodes.iter().map(u64::to_string).collect();
    match words.split_last() {
        None => "no nodes".to_owned(),
        Some((last, [])) => format!("node {last}"),
        Some((last, most)) => format!("nodes {} and {last}", most.join(", ")),
    }
}
