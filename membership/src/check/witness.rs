//! A record of the past, for promises about it.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Incarnation, Member, NodeId};
use selvedge_sim::check::Observer;

use crate::{Event, Membership};

/// The identities that each node used, and the deltas that each node's application got.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Witness {
    /// By node: the identities under which its lives took part, the present one last.
    identities: Vec<Vec<Member>>,
    /// By observer and node: the last life in a delta, and whether it has left.
    notified: Vec<Vec<(NodeId, Incarnation, bool)>>,
    pub(super) reused: bool,
    pub(super) went_back: bool,
    pub(super) came_back: bool,
}

impl Witness {
    /// A witness of `nodes` nodes, of which `meshed` know each other from the start.
    #[must_use]
    pub fn new(nodes: usize, meshed: &[Member]) -> Self {
        let mut witness = Self {
            identities: vec![Vec::new(); nodes],
            notified: vec![Vec::new(); nodes],
            reused: false,
            went_back: false,
            came_back: false,
        };
        for (node, &me) in meshed.iter().enumerate() {
            witness.identity(node, me);
            for &other in meshed.iter().filter(|&&other| other != me) {
                witness.joined(node, other);
            }
        }
        witness
    }

    fn identity(&mut self, node: usize, me: Member) {
        let Some(used) = self.identities.get_mut(node) else {
            return;
        };
        self.reused |= used.contains(&me);
        self.went_back |= used.iter().any(|former| former.supersedes(me));
        used.push(me);
    }

    fn joined(&mut self, node: usize, member: Member) {
        let Some(notified) = self.notified.get_mut(node) else {
            return;
        };
        let known = notified.iter_mut().find(|(id, ..)| *id == member.id);
        let Some((_, incarnation, has_left)) = known else {
            notified.push((member.id, member.incarnation, false));
            notified.sort_unstable_by_key(|&(id, ..)| id);
            return;
        };
        self.went_back |= incarnation.newer_than(member.incarnation);
        self.came_back |= *has_left && *incarnation == member.incarnation;
        *incarnation = member.incarnation;
        *has_left = false;
    }

    fn left(&mut self, node: usize, member: Member) {
        self.joined(node, member);
        let notified = self.notified.get_mut(node).into_iter().flatten();
        for (_, _, has_left) in notified.filter(|(id, ..)| *id == member.id) {
            *has_left = true;
        }
    }
}

impl Observer<Membership> for Witness {
    fn event(&mut self, node: usize, event: &Event) {
        match event {
            Event::Identified(me) => self.identity(node, *me),
            Event::Changed(Delta::Joined(member) | Delta::Refuted(member)) => {
                self.joined(node, *member);
            }
            Event::Changed(Delta::Left(member)) => self.left(node, *member),
            Event::Changed(Delta::Suspected(_) | Delta::Failed(_) | Delta::Confirmed(_))
            | Event::MetadataChanged(_)
            | Event::BroadcastReceived { .. }
            | Event::Left => {}
        }
    }

    fn crashed(&mut self, node: usize) {
        if let Some(notified) = self.notified.get_mut(node) {
            notified.clear();
        }
    }
}
