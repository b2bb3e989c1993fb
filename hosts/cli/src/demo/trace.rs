//! The events of a demo, and the nodes' lists that follow from them.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Delta, Member, NodeId, Time};
use selvedge_membership::Event;

use selvedge_udp::{NodeEvent, Observed};

/// An event of the script that nodes do not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A node started, for the first time or after a crash.
    Started(NodeId),
    /// A node crashed.
    Crashed(NodeId),
    /// A node began to leave.
    Leaving(NodeId),
    /// Some nodes were cut off.
    Cut,
    /// They were connected again.
    Healed,
}

/// An entry of a [`Trace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// An event of the script.
    Fact(Time, Fact),
    /// An event that a node reported.
    Observed(Box<Observed>),
}

impl Mark {
    /// The time of the entry.
    #[must_use]
    pub const fn at(&self) -> Time {
        match self {
            Self::Fact(at, _) => *at,
            Self::Observed(seen) => seen.at,
        }
    }
}

impl From<Observed> for Mark {
    fn from(seen: Observed) -> Self {
        Self::Observed(Box::new(seen))
    }
}

/// All events, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    marks: Vec<Mark>,
}

impl Trace {
    /// Adds an entry. Nodes report in turn, so an entry may be a little older than the last.
    pub fn push(&mut self, mark: Mark) {
        let at = mark.at();
        let behind = self.marks.iter().rev().take_while(|old| old.at() > at);
        let place = self.marks.len() - behind.count();
        self.marks.insert(place, mark);
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter()
    }
}

/// The status that one node gives another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Belief {
    /// It is listed as alive.
    Alive,
    /// It is suspected.
    Suspect,
    /// It is listed as failed.
    Failed,
    /// It is listed as left.
    Left,
}

/// The lists of all nodes and the truth, at one moment of a trace.
#[derive(Clone, Debug, Default)]
pub struct Views {
    up: BTreeMap<NodeId, Option<Member>>,
    lists: BTreeMap<NodeId, BTreeMap<NodeId, (Member, Belief)>>,
    departing: BTreeSet<NodeId>,
    /// The nodes with a right list: cached, because it is needed after every event.
    right: BTreeSet<NodeId>,
}

impl Views {
    /// Goes on to the next entry of the trace.
    pub fn apply(&mut self, mark: &Mark) {
        match mark {
            Mark::Fact(_, Fact::Started(node)) => {
                self.up.insert(*node, None);
                self.lists.insert(*node, BTreeMap::new());
            }
            Mark::Fact(_, Fact::Crashed(node)) => {
                self.up.remove(node);
                self.lists.remove(node);
            }
            Mark::Fact(_, Fact::Leaving(node)) => {
                self.departing.insert(*node);
            }
            Mark::Fact(_, Fact::Cut | Fact::Healed) => {}
            Mark::Observed(seen) => self.see(seen),
        }
        let observer = match mark {
            Mark::Observed(seen)
                if matches!(seen.event, NodeEvent::Membership(Event::Changed(_))) =>
            {
                Some(seen.node)
            }
            // Elections change no lists.
            Mark::Observed(seen) if matches!(seen.event, NodeEvent::Election(_)) => return,
            Mark::Observed(_) | Mark::Fact(..) => None,
        };
        match observer {
            Some(observer) => self.compare(observer),
            // The truth may have changed.
            None => {
                self.right.clear();
                let staying: Vec<NodeId> = self.staying().map(|(node, _)| node).collect();
                staying.into_iter().for_each(|node| self.compare(node));
            }
        }
    }

    fn compare(&mut self, observer: NodeId) {
        if self.is_right(observer) {
            self.right.insert(observer);
        } else {
            self.right.remove(&observer);
        }
    }

    fn see(&mut self, seen: &Observed) {
        let node = seen.node;
        let NodeEvent::Membership(event) = &seen.event else {
            return;
        };
        match event {
            // The last events of a crashed node may come late.
            Event::Identified(me) if self.up.contains_key(&node) => {
                self.up.insert(node, Some(*me));
            }
            Event::Left => {
                self.up.remove(&node);
                self.lists.remove(&node);
            }
            Event::Changed(delta) => {
                if let Some(list) = self.lists.get_mut(&node) {
                    note(list, *delta);
                }
            }
            // Nothing else changes which nodes are up, or a list.
            Event::Identified(_) | Event::MetadataChanged(_) | Event::BroadcastReceived { .. } => {}
            _ => {}
        }
    }

    /// The nodes that are up, with their present life if they are in the mesh. A node that leaves
    /// is up until it has left.
    pub fn up(&self) -> impl Iterator<Item = (NodeId, Option<Member>)> {
        self.up.iter().map(|(&node, &life)| (node, life))
    }

    /// The present life of a node that is up and in the mesh and does not leave.
    #[must_use]
    pub fn life(&self, node: NodeId) -> Option<Member> {
        if self.departing.contains(&node) {
            return None;
        }
        *self.up.get(&node)?
    }

    /// Returns true if a node is up and does not leave.
    #[must_use]
    pub fn is_staying(&self, node: NodeId) -> bool {
        self.up.contains_key(&node) && !self.departing.contains(&node)
    }

    /// The life of a node that is down, if all others in the mesh list it as failed.
    #[must_use]
    pub fn known_dead(&self, node: NodeId) -> Option<Member> {
        if self.up.contains_key(&node) {
            return None;
        }
        let mut dead = None;
        for (observer, _) in self.up().filter(|(_, life)| life.is_some()) {
            match self.belief(observer, node) {
                Some((member, Belief::Failed)) => dead = Some(member),
                Some(_) => return None,
                // It joined later, and never learned of that life.
                None => {}
            }
        }
        dead
    }

    /// The status that `observer` gives `subject`, with the life that it knows.
    #[must_use]
    pub fn belief(&self, observer: NodeId, subject: NodeId) -> Option<(Member, Belief)> {
        self.lists.get(&observer)?.get(&subject).copied()
    }

    /// The nodes that `observer` lists as alive or suspect, except itself.
    #[must_use]
    pub fn live_list(&self, observer: NodeId) -> BTreeMap<NodeId, Member> {
        let list = self.lists.get(&observer);
        list.map(|list| live(list).collect()).unwrap_or_default()
    }

    /// The number of nodes that are up (and stay) with a right list, and the number of all of them.
    #[must_use]
    pub fn right(&self) -> (usize, usize) {
        (self.right.len(), self.staying().count())
    }

    /// Returns true if `observer` stays and lists exactly the nodes that are up, each in its
    /// present life.
    fn is_right(&self, observer: NodeId) -> bool {
        let Some(list) = self.lists.get(&observer) else {
            return false;
        };
        if self.departing.contains(&observer) {
            return false;
        }
        let truth = self.staying().filter(|&(node, _)| node != observer);
        truth
            .map(|(_, life)| life)
            .eq(live(list).map(|(_, member)| Some(member)))
    }

    fn staying(&self) -> impl Iterator<Item = (NodeId, Option<Member>)> {
        self.up().filter(|&(node, _)| self.is_staying(node))
    }
}

fn live(list: &BTreeMap<NodeId, (Member, Belief)>) -> impl Iterator<Item = (NodeId, Member)> + '_ {
    list.iter()
        .filter(|(_, (_, belief))| matches!(belief, Belief::Alive | Belief::Suspect))
        .map(|(&node, &(member, _))| (node, member))
}

fn note(list: &mut BTreeMap<NodeId, (Member, Belief)>, delta: Delta) {
    let member = delta.member();
    let belief = match delta {
        Delta::Joined(_) | Delta::Refuted(_) => Belief::Alive,
        Delta::Suspected(_) => Belief::Suspect,
        Delta::Failed(_) => Belief::Failed,
        Delta::Left(_) => Belief::Left,
        Delta::Confirmed(_) => {
            if list
                .get(&member.id)
                .is_some_and(|&(known, _)| known == member)
            {
                list.remove(&member.id);
            }
            return;
        }
    };
    list.insert(member.id, (member, belief));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(at: u64, fact: Fact) -> Mark {
        Mark::Fact(Time(at), fact)
    }

    fn seen(at: u64, node: u64, event: Event) -> Mark {
        Mark::from(Observed {
            at: Time(at),
            node: NodeId(node),
            event: NodeEvent::Membership(event),
        })
    }

    fn notified(at: u64, node: u64, delta: Delta) -> Mark {
        seen(at, node, Event::Changed(delta))
    }

    #[test]
    fn lists_follow_what_nodes_are_told() {
        let (one, two, heir) = (Member::new(1, 0), Member::new(2, 0), Member::new(2, 1));
        let mut trace = Trace::default();
        trace.push(fact(0, Fact::Started(one.id)));
        trace.push(fact(1, Fact::Started(two.id)));
        trace.push(seen(4, 2, Event::Identified(two)));
        trace.push(seen(2, 1, Event::Identified(one)));
        trace.push(notified(5, 1, Delta::Joined(two)));
        trace.push(notified(6, 2, Delta::Joined(one)));
        assert!(trace.iter().map(Mark::at).is_sorted());

        let mut views = Views::default();
        for mark in trace.iter() {
            views.apply(mark);
        }
        assert_eq!(views.right(), (2, 2));
        views.apply(&fact(7, Fact::Crashed(two.id)));
        assert_eq!(views.right(), (0, 1));
        views.apply(&notified(8, 1, Delta::Suspected(two)));
        assert_eq!(views.belief(one.id, two.id), Some((two, Belief::Suspect)));
        views.apply(&notified(9, 1, Delta::Failed(two)));
        assert_eq!(views.right(), (1, 1));
        views.apply(&fact(10, Fact::Started(two.id)));
        views.apply(&seen(11, 2, Event::Identified(heir)));
        views.apply(&notified(11, 1, Delta::Confirmed(two)));
        views.apply(&notified(11, 1, Delta::Joined(heir)));
        assert!(views.is_right(one.id) && !views.is_right(two.id));
    }

    #[test]
    fn who_says_good_bye_is_expected_to_be_gone() {
        let (one, two) = (Member::new(1, 0), Member::new(2, 0));
        let mut views = Views::default();
        for mark in [
            fact(0, Fact::Started(one.id)),
            fact(0, Fact::Started(two.id)),
            seen(1, 1, Event::Identified(one)),
            seen(1, 2, Event::Identified(two)),
            notified(2, 1, Delta::Joined(two)),
            fact(3, Fact::Leaving(two.id)),
        ] {
            views.apply(&mark);
        }
        assert_eq!((views.right(), views.life(two.id)), ((0, 1), None));
        views.apply(&notified(4, 1, Delta::Left(two)));
        assert_eq!(views.right(), (1, 1));
    }
}
