//! The leader that each node follows, at one moment of a trace.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_celect::{Ballot, Event as Election};
use selvedge_core::{Member, NodeId, Time};
use selvedge_membership::Event;

use super::trace::{Fact, Mark, Views};
use selvedge_udp::NodeEvent;

/// The leader of each node, and violations of the promises about leaders.
#[derive(Clone, Debug, Default)]
pub struct Leaders {
    follows: BTreeMap<NodeId, (Member, Ballot)>,
    /// The largest ballot that each life followed.
    largest: BTreeMap<NodeId, Ballot>,
    by_ballot: BTreeMap<Ballot, Member>,
    clashing: BTreeSet<Ballot>,
    falls: usize,
    reigns: Vec<Reign>,
}

/// The time in which a node led, according to its own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reign {
    /// The node.
    pub node: NodeId,
    /// The ballot by which it led.
    pub ballot: Ballot,
    /// The beginning.
    pub from: Time,
    /// The end; `None` if it leads still.
    pub until: Option<Time>,
}

impl Leaders {
    /// Goes on to the next entry of the trace.
    pub fn apply(&mut self, mark: &Mark) {
        match mark {
            Mark::Fact(at, Fact::Started(node) | Fact::Crashed(node)) => self.begin(*node, *at),
            Mark::Fact(_, Fact::Leaving(_) | Fact::Cut | Fact::Healed) => {}
            Mark::Observed(seen) => {
                if let NodeEvent::Election(event) = &seen.event {
                    self.on_election(seen.node, seen.at, *event);
                } else if matches!(
                    seen.event,
                    NodeEvent::Membership(Event::Identified(_) | Event::Left)
                ) {
                    self.begin(seen.node, seen.at);
                }
            }
        }
    }

    /// The leader that all of these nodes follow, if it is the same and is up in the life that they
    /// follow.
    pub fn agreed(
        &self,
        views: &Views,
        among: impl Fn(NodeId) -> bool,
    ) -> Option<(Member, Ballot)> {
        let staying = views.up().map(|(node, _)| node);
        let mut all = staying.filter(|&node| views.is_staying(node) && among(node));
        let first = *self.follows.get(&all.next()?)?;
        let is_first = |node: NodeId| self.follows.get(&node) == Some(&first);
        (all.all(is_first) && views.life(first.0.id) == Some(first.0)).then_some(first)
    }

    /// The number of ballots, and of ballots under which two nodes led.
    #[must_use]
    pub fn ballots(&self) -> (usize, usize) {
        (self.by_ballot.len(), self.clashing.len())
    }

    /// The number of times a life followed a smaller ballot than before, or another leader under
    /// the same ballot.
    #[must_use]
    pub const fn falls(&self) -> usize {
        self.falls
    }

    /// All reigns, in the order of their beginnings.
    #[must_use]
    pub fn reigns(&self) -> &[Reign] {
        &self.reigns
    }

    fn begin(&mut self, node: NodeId, at: Time) {
        self.follows.remove(&node);
        self.largest.remove(&node);
        self.end(node, at);
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "events may be added; each one of now is named"
    )]
    fn on_election(&mut self, node: NodeId, at: Time, event: Election) {
        match event {
            Election::Elected { leader, ballot } => {
                let first = *self.by_ballot.entry(ballot).or_insert(leader);
                if first != leader {
                    self.clashing.insert(ballot);
                }
                let former = self.largest.insert(node, ballot);
                self.falls += usize::from(former.is_some_and(|former| former >= ballot));
                self.follows.insert(node, (leader, ballot));
                self.end(node, at);
                if leader.id == node {
                    self.reigns.push(Reign {
                        node,
                        ballot,
                        from: at,
                        until: None,
                    });
                }
            }
            Election::Regained { leader, ballot } => {
                self.follows.insert(node, (leader, ballot));
            }
            Election::Lost { .. } | Election::LeaseExpired { .. } | Election::Ended(_) => {
                self.follows.remove(&node);
                self.end(node, at);
            }
            Election::Deposed { .. } => self.end(node, at),
            Election::Electing(_)
            | Election::Yielded { .. }
            | Election::Stalled { .. }
            | Election::Concluded { .. }
            | Election::BoundChanged { .. }
            | Election::Measured(_)
            | Election::Unmeasured(_) => {}
            other => debug_assert!(false, "the demo does not know {other:?}"),
        }
    }

    fn end(&mut self, node: NodeId, at: Time) {
        let own = |it: &&mut Reign| it.node == node && it.until.is_none();
        if let Some(reign) = self.reigns.iter_mut().rev().find(own) {
            reign.until = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::Delta;
    use selvedge_udp::Observed;

    fn notified(at: u64, node: u64, event: Election) -> Mark {
        Mark::from(Observed {
            at: Time(at),
            node: NodeId(node),
            event: NodeEvent::Election(event),
        })
    }

    fn ballot(epoch: u64) -> Ballot {
        Ballot {
            epoch,
            initiator: Member::new(1, 0),
            step: 1,
        }
    }

    #[test]
    fn reigns_follow_from_what_nodes_emit() {
        let (one, two) = (Member::new(1, 0), Member::new(2, 0));
        let mut views = Views::default();
        let mut leaders = Leaders::default();
        let mut go = |mark: Mark| {
            views.apply(&mark);
            leaders.apply(&mark);
            leaders.agreed(&views, |_| true)
        };
        for me in [one, two] {
            go(Mark::Fact(Time(0), Fact::Started(me.id)));
            go(Mark::from(Observed {
                at: Time(1),
                node: me.id,
                event: NodeEvent::Membership(Event::Identified(me)),
            }));
        }
        let elected = |epoch, leader| Election::Elected {
            leader,
            ballot: ballot(epoch),
        };
        assert_eq!(go(notified(2, 2, elected(1, two))), None);
        assert_eq!(go(notified(3, 1, elected(1, two))), Some((two, ballot(1))));
        let lost = Election::Lost {
            leader: two,
            ballot: ballot(1),
        };
        assert_eq!(go(notified(4, 1, lost)), None);
        let regained = Election::Regained {
            leader: two,
            ballot: ballot(1),
        };
        assert_eq!(go(notified(5, 1, regained)), Some((two, ballot(1))));
        // No node follows a failed one.
        assert_eq!(go(Mark::Fact(Time(6), Fact::Crashed(two.id))), None);
        assert_eq!(go(notified(7, 1, elected(2, one))), Some((one, ballot(2))));
        let joined = NodeEvent::Membership(Event::Changed(Delta::Joined(two)));
        let about_lists = Mark::from(Observed {
            at: Time(8),
            node: one.id,
            event: joined,
        });
        assert_eq!(go(about_lists), Some((one, ballot(2))));
        let reign = |node, epoch, from, until: Option<u64>| Reign {
            node,
            ballot: ballot(epoch),
            from: Time(from),
            until: until.map(Time),
        };
        assert_eq!(
            leaders.reigns(),
            [reign(two.id, 1, 2, Some(6)), reign(one.id, 2, 7, None)]
        );
        assert_eq!((leaders.ballots(), leaders.falls()), ((2, 0), 0));
        // Events that break the promises.
        leaders.apply(&notified(9, 1, elected(1, one)));
        assert_eq!((leaders.ballots(), leaders.falls()), ((2, 1), 1));
        leaders.apply(&notified(10, 1, elected(1, one)));
        assert_eq!(
            leaders.falls(),
            2,
            "the same one again is none that is above"
        );
    }
}
