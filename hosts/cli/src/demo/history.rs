//! The statuses that other nodes gave each node, over time.

use selvedge_core::{NodeId, Time};

use super::trace::{Belief, Mark, Trace, Views};

/// The numbers of other nodes that give one node each status, in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    /// Nodes that list it as alive.
    pub alive: usize,
    /// Nodes that suspect it.
    pub suspect: usize,
    /// Nodes that list it as failed.
    pub failed: usize,
    /// Nodes that list it as left.
    pub left: usize,
    /// Nodes that list no life of it, or one that has ended.
    pub unaware: usize,
}

impl Opinion {
    /// The number of other nodes.
    #[must_use]
    pub const fn others(&self) -> usize {
        self.alive + self.suspect + self.failed + self.left + self.unaware
    }

    /// The parts that are drawn, each with a name.
    #[must_use]
    pub const fn parts(&self) -> [(&'static str, usize); 4] {
        [
            ("alive", self.alive),
            ("suspect", self.suspect),
            ("failed", self.failed),
            ("left", self.left),
        ]
    }
}

/// A stretch of time in which nothing changed for one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The beginning.
    pub from: Time,
    /// The end.
    pub until: Time,
    /// The statuses that the other nodes gave it.
    pub opinion: Opinion,
    /// True if the node was up.
    pub up: bool,
}

/// The history of each node from the start to `end`, in `steps` steps.
#[must_use]
pub fn histories(trace: &Trace, nodes: u64, end: Time, steps: u64) -> Vec<Vec<Stretch>> {
    let mut histories: Vec<Vec<Stretch>> = (0..nodes).map(|_| Vec::new()).collect();
    let mut views = Views::default();
    let mut marks = trace.iter().peekable();
    for step in 0..steps {
        let from = Time(end.0 / steps * step);
        let until = Time(end.0 / steps * (step + 1));
        while let Some(mark) = marks.next_if(|mark: &&Mark| mark.at() < until) {
            views.apply(mark);
        }
        let up: Vec<NodeId> = views.up().map(|(node, _)| node).collect();
        for (history, node) in histories.iter_mut().zip((1..).map(NodeId)) {
            let now = Stretch {
                from,
                until,
                opinion: opinion(&views, &up, node),
                up: up.contains(&node),
            };
            match history.last_mut() {
                Some(last) if (last.opinion, last.up) == (now.opinion, now.up) => {
                    last.until = until;
                }
                Some(_) | None => history.push(now),
            }
        }
    }
    histories
}

fn opinion(views: &Views, up: &[NodeId], subject: NodeId) -> Opinion {
    let mut opinion = Opinion::default();
    for &observer in up.iter().filter(|&&observer| observer != subject) {
        *match views.belief(observer, subject).map(|(_, belief)| belief) {
            Some(Belief::Alive) => &mut opinion.alive,
            Some(Belief::Suspect) => &mut opinion.suspect,
            Some(Belief::Failed) => &mut opinion.failed,
            Some(Belief::Left) => &mut opinion.left,
            None => &mut opinion.unaware,
        } += 1;
    }
    opinion
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::Fact;
    use selvedge_core::{Delta, Member};
    use selvedge_membership::Event;
    use selvedge_udp::{NodeEvent, Observed};

    #[test]
    fn a_node_is_unknown_then_alive_then_failed() {
        let (one, two) = (Member::new(1, 0), Member::new(2, 0));
        let notified = |at, delta| {
            Mark::from(Observed {
                at: Time(at),
                node: one.id,
                event: NodeEvent::Membership(Event::Changed(delta)),
            })
        };
        let mut trace = Trace::default();
        trace.push(Mark::Fact(Time(0), Fact::Started(one.id)));
        trace.push(Mark::Fact(Time(0), Fact::Started(two.id)));
        trace.push(notified(15, Delta::Joined(two)));
        trace.push(Mark::Fact(Time(35), Fact::Crashed(two.id)));
        trace.push(notified(52, Delta::Failed(two)));
        let of_two: Vec<_> = histories(&trace, 2, Time(100), 10)[1]
            .iter()
            .map(|it| {
                (
                    it.from.0,
                    it.until.0,
                    it.opinion.alive,
                    it.opinion.failed,
                    it.up,
                )
            })
            .collect();
        assert_eq!(
            of_two,
            [
                (0, 10, 0, 0, true),
                (10, 30, 1, 0, true),
                (30, 50, 1, 0, false),
                (50, 100, 0, 1, false),
            ]
        );
    }
}
