//! What a test can see.

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

    /// How many nodes were added, those that are down included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The machine of `node`, also when it is down: as it was when it crashed.
    #[must_use]
    pub fn machine(&self, node: usize) -> Option<&M> {
        Some(self.nodes.get(node)?.driver.machine())
    }

    /// All machines with their nodes, those that are down included.
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

    /// Whether `node` is there and up.
    #[must_use]
    pub fn is_up(&self, node: usize) -> bool {
        self.radio.is_up(node)
    }

    /// Whether `node` is there, up and not asleep.
    #[must_use]
    pub fn is_awake(&self, node: usize) -> bool {
        self.is_up(node)
            && self
                .nodes
                .get(node)
                .is_some_and(|slot| slot.is_awake(self.now))
    }

    /// How many lives `node` has begun: 1 until its first restart, 0 when there is no such node.
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

    /// The hops that a message from `a` to `b` would take now; `None` when there is no path. The
    /// first question about `a` since the routes changed takes O(nodes + edges), the others O(1).
    pub fn hops(&mut self, a: usize, b: usize) -> Option<u16> {
        let route = self.routes.route(&self.topology, &self.radio, a, b)?;
        Some(route.hops)
    }

    /// What the network has carried.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// What `node` has done; all 0 when there is no such node.
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

    /// How many copies are on their way.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How much waits in all queues: copies on their way, scheduled actions, and at most one alarm
    /// and, until it is done, each write of a node.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len() + self.alarms.len()
    }

    /// Whether events are kept for [`events`](Self::events): they are until told. A long run that
    /// neither drains them nor reads them should not keep them.
    pub const fn keep_events(&mut self, keep: bool) {
        self.keep_events = keep;
    }

    /// What machines told their applications, with the time and the node, in order, since the last
    /// drain.
    #[must_use]
    pub fn events(&self) -> &[(Time, usize, M::Event)] {
        &self.events
    }

    /// Takes these out.
    pub fn drain_events(&mut self) -> Drain<'_, (Time, usize, M::Event)> {
        self.events.drain(..)
    }

    /// Records a membership trace from now on: whatever `learned` makes of an event.
    pub const fn record_membership(&mut self, learned: fn(&M::Event) -> Option<Delta>) {
        self.learned = Some(learned);
    }

    /// Takes out what was recorded so far. Recording goes on.
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
