//! A test's view of the network.

use alloc::vec::Drain;
use core::fmt;

use selvedge_core::{Delta, Machine, Member, NodeId, Time};

use super::trace::Fnv;
use super::{Counters, MembershipTrace, Network, NodeCounters, Topology, TraceLine};

impl<M: Machine> Network<M> {
    /// The time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The number of nodes added, including nodes that are down.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if no node was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The machine of `node`, also when it is down: as it was when it crashed.
    #[must_use]
    pub fn machine(&self, node: usize) -> Option<&M> {
        Some(self.nodes.get(node)?.driver.machine())
    }

    /// All machines with their nodes, including nodes that are down.
    pub fn machines(&self) -> impl Iterator<Item = (usize, &M)> + '_ {
        self.nodes
            .iter()
            .map(|slot| slot.driver.machine())
            .enumerate()
    }

    /// The identity of `node` in its present life, or in its last one.
    #[must_use]
    pub fn member(&self, node: usize) -> Option<Member> {
        Some(self.nodes.get(node)?.member)
    }

    /// The node with this id. Takes O(log nodes).
    #[must_use]
    pub fn find(&self, id: NodeId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Returns true if `node` exists and is up.
    #[must_use]
    pub fn is_up(&self, node: usize) -> bool {
        self.radio.is_up(node)
    }

    /// Returns true if `node` exists, is up and is not asleep.
    #[must_use]
    pub fn is_awake(&self, node: usize) -> bool {
        self.is_up(node)
            && self
                .nodes
                .get(node)
                .is_some_and(|slot| slot.is_awake(self.now))
    }

    /// The number of lives that `node` has begun: 1 until its first restart, 0 if it does not
    /// exist.
    #[must_use]
    pub fn lives(&self, node: usize) -> u32 {
        self.nodes.get(node).map_or(0, |slot| slot.lives)
    }

    /// The armed timers of `node` with their due times, by tag.
    pub fn timers(&self, node: usize) -> impl Iterator<Item = (M::Timer, Time)> + '_ {
        self.nodes
            .get(node)
            .into_iter()
            .flat_map(|slot| slot.driver.timers())
    }

    /// The topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The hops that a message from `a` to `b` would take now; `None` without a path. The first
    /// question about `a` since the routes changed takes O(nodes + edges), further ones O(1).
    pub fn hops(&mut self, a: usize, b: usize) -> Option<u16> {
        let route = self.routes.route(&self.topology, &self.radio, a, b)?;
        Some(route.hops)
    }

    /// Counts of the network's traffic.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts of `node`; all 0 if it does not exist.
    #[must_use]
    pub fn node_counters(&self, node: usize) -> NodeCounters {
        self.nodes
            .get(node)
            .map_or_else(NodeCounters::default, super::node::Node::counters)
    }

    /// The last message, command or membership change that the machine of `node` rejected, and
    /// why. Rejected ticks and calls are only counted.
    #[must_use]
    pub fn last_reject(&self, node: usize) -> Option<&M::Reject> {
        self.nodes.get(node)?.last_reject.as_ref()
    }

    /// The number of copies in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The length of all queues: copies in flight, scheduled actions, and at most one alarm and,
    /// until it is done, each write of a node.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len() + self.alarms.len()
    }

    /// Sets whether events are kept for [`events`](Self::events), as they are by default. A long
    /// run that neither drains nor reads them should not keep them.
    pub const fn keep_events(&mut self, keep: bool) {
        self.keep_events = keep;
    }

    /// The events of machines for their applications, with time and node, in order, since the last
    /// drain.
    #[must_use]
    pub fn events(&self) -> &[(Time, usize, M::Event)] {
        &self.events
    }

    /// Takes the events out.
    pub fn drain_events(&mut self) -> Drain<'_, (Time, usize, M::Event)> {
        self.events.drain(..)
    }

    /// Records a membership trace from now on, of the events that `learned` converts to deltas.
    pub const fn record_membership(&mut self, learned: fn(&M::Event) -> Option<Delta>) {
        self.learned = Some(learned);
    }

    /// Takes out the membership trace recorded since the last call. Recording continues.
    pub fn take_membership(&mut self) -> MembershipTrace {
        core::mem::take(&mut self.membership)
    }

    /// Hands every line of the trace to `sink` from now on. An earlier sink is replaced.
    pub fn trace_to(&mut self, sink: impl FnMut(&TraceLine<'_, M>) + Send + 'static) {
        self.tracer.sink = Some(Box::new(sink));
    }

    /// Digests all lines of the trace from now on: for a test that a run is the same as before,
    /// byte for byte. Formatting every line takes longer than most steps do.
    pub const fn digest_trace(&mut self) {
        self.tracer.digest = Some(Fnv::EMPTY);
    }

    /// FNV-1a with 64 bits over the lines since [`digest_trace`](Self::digest_trace), each with a
    /// newline; `None` before that.
    #[must_use]
    pub fn trace_digest(&self) -> Option<u64> {
        self.tracer.digest.map(|digest| digest.0)
    }
}

impl<M: Machine> fmt::Debug for Network<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("seed", &self.seed)
            .field("now", &self.now)
            .field("nodes", &self.nodes.len())
            .field("in_flight", &self.in_flight)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
