//! Nodes that are spared: one that runs low on power or memory asks for it while it runs.
//!
//! The [`Weight`] of a node is in the plan, so all nodes have the same one. That a node is spared is
//! its own report, which each other node keeps for the sender's life. The report has a part in the
//! choice of members alone, and a choice is a proposal: nodes that differ in it propose different
//! members, and groups are as safe as before.
//!
//! A report has the number of changes in the sender's life, and the highest number counts. So copies
//! and late messages change nothing. Messages are lost, so a node reports again when another one
//! joins and when an epoch begins. It does so for the rest of its life after it has asked once: the
//! report that it takes its share again may be lost, too.

use selvedge_core::{Context, Member, NodeId};

use crate::leader_hints::OLD;
use crate::state::Carried;
use crate::{Begins, GroupId, Groups, Item, Node, Weight};

/// The report of a node in one life, at first that it takes its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Spared {
    /// The number of changes before, in this life.
    number: u32,
    is_spared: bool,
}

impl Spared {
    /// Returns true if this is a change.
    const fn set(&mut self, is_spared: bool) -> bool {
        let is_change = self.is_spared != is_spared;
        if is_change {
            self.number = self.number.saturating_add(1);
            self.is_spared = is_spared;
        }
        is_change
    }
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Asks the other nodes to spare this one, or to give it its share again.
    pub(crate) fn set_spared(&mut self, is_spared: bool) {
        if self.spared.set(is_spared) {
            self.report_spared_to_all();
        }
    }

    /// Reports to all nodes that are here, if this node has ever asked in this life.
    pub(crate) fn report_spared_to_all(&mut self) {
        for node in self.others_here() {
            self.report_spared(node);
        }
    }

    pub(crate) fn report_spared(&mut self, to: Member) {
        let Spared { number, is_spared } = self.spared;
        if number > 0 {
            let item = Item::Spared { number, is_spared };
            self.posted.0.push((to, item));
        }
    }

    /// Asks if the leader that a spared member knows still leads, or one that sent nothing since an epoch began. A
    /// member may miss the decision by which it is one no more, and keeps the state until it learns of that: a
    /// spared one may be short of memory, and the group may have begun anew.
    pub(crate) fn look_whether_left(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let part = self.parts.get_mut(&group);
        let is_old = self.registrar.epochs >= OLD;
        let was_led = part.is_none_or(|it| !is_old || core::mem::replace(&mut it.is_led, false));
        if (self.spared.is_spared || !was_led) && !self.leads(group) {
            self.confirm(group, cx);
        }
    }

    /// Handles the report of another node.
    pub(crate) fn on_spared(&mut self, from: Member, number: u32, is_spared: bool) {
        let at = self.plan.place(from.id);
        let peer = at.and_then(|at| self.peers.get_mut(at)?.as_mut());
        // A message of a former life may be late.
        let present = peer.filter(|it| it.incarnation == from.incarnation);
        if let Some(peer) = present.filter(|it| it.spared.number < number) {
            peer.spared = Spared { number, is_spared };
        }
    }
}

impl<S: Begins, P> Groups<S, P> {
    /// Returns true if a node is spared, as far as this node knows: it has asked for it in its latest
    /// life ([`Command::SetSpared`](crate::Command::SetSpared)).
    #[must_use]
    pub fn is_spared(&self, id: NodeId) -> bool {
        let spared = match id == self.me.id {
            true => Some(self.spared),
            false => self.peer(id).map(|it| it.spared),
        };
        spared.is_some_and(|it| it.is_spared)
    }

    /// A node as members are chosen: a spared one has no weight.
    pub(crate) fn candidate(&self, node: &Node) -> Node {
        match self.is_spared(node.id) {
            true => node.with_weight(Weight(0)),
            false => *node,
        }
    }
}
