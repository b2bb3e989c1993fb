//! The nodes' knowledge of each other before an election.

use std::collections::BTreeMap;

use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_sim::network::MembershipTrace;

use crate::claims::membership::traces::{PERIOD, id};

/// A node's knowledge of another node: the relevant part of the deltas and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    known: bool,
    pub(super) listed: bool,
    /// The number of suspicions since the node was known.
    pub(super) suspicions: u32,
}

impl Received {
    pub(super) fn receive(&mut self, delta: Delta) {
        match delta {
            Delta::Suspected(_) => self.suspicions += u32::from(self.known),
            Delta::Joined(_) | Delta::Refuted(_) => {
                self.known = true;
                self.listed = true;
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                self.known = true;
                self.listed = false;
            }
        }
    }

    /// The deltas that give a node this knowledge.
    pub(super) fn deltas(self, of: Member) -> impl Iterator<Item = Delta> {
        let joined = self.known.then_some(Delta::Joined(of));
        let suspected = (0..self.suspicions).map(move |_| Delta::Suspected(of));
        let failed = (self.known && !self.listed).then_some(Delta::Failed(of));
        joined.into_iter().chain(suspected).chain(failed)
    }
}

/// The node of this id.
pub(super) fn node_of(of: NodeId) -> usize {
    (of.0 - id(0).0) as usize
}

/// The trace without suspicions that a node learned from others: those that came while a suspicion
/// of the same member was still new.
pub(super) fn without_hearsay(trace: &MembershipTrace) -> MembershipTrace {
    /// The time for which the news of a suspicion spreads.
    const NEW: Span = Span::millis(PERIOD * 8);
    let mut begun: BTreeMap<Member, Time> = BTreeMap::new();
    let mut own = MembershipTrace::default();
    for entry in trace.entries() {
        if let Delta::Suspected(suspect) = entry.delta {
            let former = begun.get(&suspect).copied();
            if former.is_some_and(|former| entry.at < former + NEW) {
                continue;
            }
            begun.insert(suspect, entry.at);
        }
        own.push(entry.at, entry.observer, entry.delta);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::membership::traces::member;

    #[test]
    fn hearsay_is_left_out() {
        let mut trace = MembershipTrace::default();
        let suspected = Delta::Suspected(member(3));
        for (at, observer) in [(0, 1), (20, 2), (159, 4), (160, 5), (170, 1)] {
            trace.push(Time::ZERO + Span::millis(at), id(observer), suspected);
        }
        let refuted = Delta::Refuted(member(3));
        trace.push(Time::ZERO + Span::millis(171), id(2), refuted);
        let own = without_hearsay(&trace);
        let notified: Vec<_> = own
            .entries()
            .iter()
            .map(|it| (it.observer, it.delta))
            .collect();
        let expected = [(id(1), suspected), (id(5), suspected), (id(2), refuted)];
        assert_eq!(notified, expected);
    }

    #[test]
    fn what_was_heard_can_be_told_again() {
        let it = member(3);
        let mut received = Received::default();
        assert_eq!(received.deltas(it).count(), 0);
        // A suspicion of an unknown node does not count.
        received.receive(Delta::Suspected(it));
        received.receive(Delta::Joined(it));
        received.receive(Delta::Suspected(it));
        received.receive(Delta::Refuted(it));
        let notified: Vec<Delta> = received.deltas(it).collect();
        assert_eq!(notified, [Delta::Joined(it), Delta::Suspected(it)]);
        received.receive(Delta::Failed(it));
        assert_eq!(received.deltas(it).last(), Some(Delta::Failed(it)));
        let mut again = Received::default();
        received.deltas(it).for_each(|delta| again.receive(delta));
        assert_eq!(again, received);
    }
}
