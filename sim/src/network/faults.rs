//! Faults that a test injects.

use selvedge_core::{Machine, Member, Ratio, Time};

use super::{DutyCycle, Network, NetworkError, Point, What};

impl<M: Machine> Network<M> {
    /// Cuts the network into these groups; nodes that no group names are a group of their own. No
    /// message passes from one group to another, not even a message in flight. An earlier partition
    /// is replaced.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`], or [`NetworkError::TwoGroups`] for a node in two groups.
    pub fn partition<G: AsRef<[usize]>>(&mut self, groups: &[G]) -> Result<(), NetworkError> {
        self.radio.side = self.sides(groups)?;
        self.routes.invalidate();
        self.tracer
            .line(self.now, None, What::Partitioned(groups.len()));
        Ok(())
    }

    /// Removes all partitions.
    pub fn heal(&mut self) {
        self.radio.side.fill(0);
        self.routes.invalidate();
        self.tracer.line(self.now, None, What::Healed);
    }

    /// Stops the node at once; it loses its timers. It receives nothing and, unless
    /// [`Relays::All`](super::Relays) was chosen, relays nothing. Its machine can still be read
    /// with [`machine`](Self::machine), so that a restart can take from it the state that was in
    /// stable storage; in a network with [storage](Self::set_storage) it then has its stored state
    /// alone. Returns true if it was up.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`].
    pub fn crash(&mut self, node: usize) -> Result<bool, NetworkError> {
        self.checked(node)?;
        if !self.radio.is_up(node) {
            return Ok(false);
        }
        self.set_up(node, false);
        self.alarms.set(node, None);
        let kept = self.kept_by_crash(node);
        let facts = self.storage.map(|(_, facts)| facts);
        if let Some(slot) = self.nodes.get_mut(node) {
            slot.crash(facts, kept);
        }
        self.tracer.line(self.now, Some(node), What::Crashed);
        Ok(true)
    }

    /// Begins the node's next life as `member`, running `machine`, with no timer armed. A node that
    /// is up crashes first. Its generator continues, so no life repeats another's draws.
    ///
    /// With stable storage, build `machine` from the old one, which [`machine`](Self::machine)
    /// still shows; without, build it from nothing, and give `member` the next incarnation.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`], or [`NetworkError::OtherId`] when `member` has another id than
    /// the node.
    pub fn restart(&mut self, node: usize, member: Member, machine: M) -> Result<(), NetworkError> {
        self.check_restart(node, member)?;
        self.crash(node)?;
        if let Some(slot) = self.nodes.get_mut(node) {
            slot.restart(member, machine);
        }
        self.set_up(node, true);
        self.tracer
            .line(self.now, Some(node), What::Started(member));
        Ok(())
    }

    /// Lets the node sleep through a part of every period, or (`None`) never.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`], or [`NetworkError::NeverAwake`] for a cycle without length or
    /// without a moment awake.
    pub fn set_duty_cycle(
        &mut self,
        node: usize,
        cycle: Option<DutyCycle>,
    ) -> Result<(), NetworkError> {
        self.checked(node)?;
        if let Some(cycle) = cycle {
            cycle.check()?;
        }
        if let Some(slot) = self.nodes.get_mut(node) {
            slot.duty = cycle;
            self.alarms.set(node, slot.alarm(self.now));
        }
        Ok(())
    }

    /// Lets the node itself lose messages that it sends, on the first hop, and messages to it, on
    /// the last: each copy with this chance, in addition to losses of hops. It models a bad
    /// antenna, say, or a loss that depends on the sender and not on the distance. Messages that it
    /// relays for others are spared. A node keeps it through restarts; [`Ratio::NEVER`] ends it.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`].
    pub fn set_node_loss(&mut self, node: usize, loss: Ratio) -> Result<(), NetworkError> {
        self.checked(node)?;
        if let Some(slot) = self.nodes.get_mut(node) {
            slot.loss = loss;
        }
        self.tracer.line(self.now, Some(node), What::Relinked);
        Ok(())
    }

    /// Moves the node, and gives it the neighbours of its new place. Takes O(nodes), and makes
    /// all routes void.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchNode`], or [`NetworkError::Topology`] when the topology has no places.
    pub fn move_to(&mut self, node: usize, place: Point) -> Result<(), NetworkError> {
        self.checked(node)?;
        self.topology.move_to(node, place)?;
        self.routes.invalidate();
        self.tracer.line(self.now, Some(node), What::Moved);
        Ok(())
    }

    /// Sets the start of time to `now`: for tests that shift the epoch. Only possible before the
    /// first node is added; returns true if it was.
    pub fn start_at(&mut self, now: Time) -> bool {
        if self.nodes.is_empty() {
            self.now = now;
        }
        self.nodes.is_empty()
    }

    pub(super) fn check_restart(&self, node: usize, member: Member) -> Result<(), NetworkError> {
        self.checked(node)?;
        match self.nodes.get(node) {
            Some(slot) if slot.member.id != member.id => Err(NetworkError::OtherId {
                node,
                expected: slot.member.id,
                found: member.id,
            }),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn check_place(&self, node: usize) -> Result<(), NetworkError> {
        self.checked(node)?;
        if self.topology.point(node).is_none() {
            let nodes = self.topology.len();
            return Err(super::TopologyError::NoPlace { node, nodes }.into());
        }
        Ok(())
    }

    /// The side of each node: 0 for nodes that no group names.
    pub(super) fn sides<G: AsRef<[usize]>>(&self, groups: &[G]) -> Result<Vec<u32>, NetworkError> {
        let mut sides = vec![0; self.topology.len()];
        for (group, side) in groups.iter().zip(1..) {
            for &node in group.as_ref() {
                self.checked(node)?;
                match sides.get_mut(node) {
                    Some(unnamed @ &mut 0) => *unnamed = side,
                    Some(_) | None => return Err(NetworkError::TwoGroups { node }),
                }
            }
        }
        Ok(sides)
    }
}
