//! The events of a history, and the promises about them.

use std::collections::BTreeMap;

use selvedge_core::{Delta, Incarnation, Member, NodeId, Span, Time};
use selvedge_membership::Event;

use super::{LATEST, after, periods};

/// A crash, and the times at which the nodes learned of it.
struct Crash {
    at: Time,
    victim: Member,
    /// The nodes that listed it as live then.
    witnesses: Vec<usize>,
    learned: BTreeMap<usize, Time>,
}

pub(super) struct Ledger {
    crashes: Vec<Crash>,
    /// The time since which each node is up and has taken part, without a break.
    present_since: Vec<Option<Time>>,
    /// Ends of presence: node, from, to.
    presences: Vec<(usize, Time, Time)>,
    /// Changes of the network's shape.
    disturbances: Vec<Time>,
    identity: Vec<Option<Incarnation>>,
    left: Vec<Vec<Member>>,
    /// The last life of each node that each node learned of.
    lives: Vec<BTreeMap<NodeId, Incarnation>>,
    now: Time,
}

impl Ledger {
    pub(super) fn new(nodes: usize, _period: Span) -> Self {
        Self {
            crashes: Vec::new(),
            present_since: vec![None; nodes],
            presences: Vec::new(),
            disturbances: Vec::new(),
            identity: vec![None; nodes],
            left: vec![Vec::new(); nodes],
            lives: vec![BTreeMap::new(); nodes],
            now: Time::ZERO,
        }
    }

    pub(super) fn event(&mut self, at: Time, node: usize, event: &Event) {
        self.now = at;
        match event {
            Event::Identified(me) => {
                if let Some(before) = self.identity[node] {
                    assert!(
                        me.incarnation.newer_than(before),
                        "node {node} went from incarnation {before:?} back to {:?}",
                        me.incarnation
                    );
                }
                self.identity[node] = Some(me.incarnation);
                self.present_since[node].get_or_insert(at);
            }
            Event::Changed(delta) => self.delta(at, node, *delta),
            _ => {}
        }
    }

    fn delta(&mut self, at: Time, node: usize, delta: Delta) {
        match delta {
            Delta::Left(member) => self.left[node].push(member),
            Delta::Joined(member) | Delta::Refuted(member) => assert!(
                !self.left[node].contains(&member),
                "{member:?} left and came back at node {node}"
            ),
            Delta::Suspected(_) | Delta::Failed(_) | Delta::Confirmed(_) => {}
        }
        if let Delta::Joined(Member { id, incarnation }) = delta
            && let Some(before) = self.lives[node].insert(id, incarnation)
        {
            assert!(
                !before.newer_than(incarnation),
                "node {node} learned of {before:?} of node {id}, and then of {incarnation:?}"
            );
        }
        if matches!(
            delta,
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_)
        ) {
            for crash in &mut self.crashes {
                if crash.victim == delta.member() && crash.at <= at {
                    crash.learned.entry(node).or_insert(at);
                }
            }
        }
    }

    pub(super) fn crashed(
        &mut self,
        at: Time,
        node: usize,
        victim: Option<Member>,
        witnesses: Vec<usize>,
    ) {
        self.now = at;
        self.departed(node);
        if let Some(victim) = victim {
            self.crashes.push(Crash {
                at,
                victim,
                witnesses,
                learned: BTreeMap::new(),
            });
        }
    }

    pub(super) fn departed(&mut self, node: usize) {
        if let Some(since) = self.present_since[node].take() {
            self.presences.push((node, since, self.now));
        }
    }

    /// Notes that the node starts with no memory.
    pub(super) fn arrived(&mut self, node: usize) {
        self.identity[node] = None;
        self.left[node].clear();
        self.lives[node].clear();
    }

    /// Notes that another life has the number, so for all others this one is not over.
    pub(super) fn goes_on(&mut self, member: Member) {
        self.crashes.retain(|crash| crash.victim != member);
    }

    pub(super) fn disturbed(&mut self, at: Time) {
        self.disturbances.push(at);
    }

    pub(super) fn end(&mut self, at: Time) {
        self.now = at;
        for node in 0..self.present_since.len() {
            self.departed(node);
        }
    }

    /// Checks that every node that was present from before the crash until the deadline has learned
    /// of it by then. The network must have kept its shape meanwhile: a node that is cut off cannot
    /// learn of it.
    pub(super) fn check_dissemination(&self) -> u64 {
        let mut judged = 0;
        for crash in &self.crashes {
            let Some(first) = crash.learned.values().min().copied() else {
                continue;
            };
            let deadline = after(first, LATEST);
            let is_undisturbed = !self
                .disturbances
                .iter()
                .any(|&at| crash.at <= after(at, 60) && at <= deadline);
            if !is_undisturbed {
                continue;
            }
            judged += 1;
            for &(node, from, to) in &self.presences {
                let was_there =
                    from <= crash.at && deadline <= to && crash.witnesses.contains(&node);
                if !was_there {
                    continue;
                }
                let learned = crash.learned.get(&node).copied();
                assert!(
                    learned.is_some_and(|at| at <= deadline),
                    "{:?} crashed at {:?}, was first detected at {first:?}, and node {node} \
                     learned of it {:?} periods later",
                    crash.victim,
                    crash.at,
                    learned.map(|at| periods(at.since(first))),
                );
            }
        }
        judged
    }
}
