//! The members whose site differs from this node's: their k-groups and this node's never mix.

use std::collections::BTreeMap;

use selvedge::{Node, Reject};
use selvedge_core::{Member, NodeId};
use selvedge_groups as groups;
use selvedge_kgroup as kgroup;

use crate::event::OtherSite;

/// The members with another site.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    others: BTreeMap<NodeId, OtherSite>,
    /// The first one, while so many have another site that no group of this node can answer.
    alone: Option<OtherSite>,
}

impl Sites {
    /// Notes the site that a message of a member shows. Returns true if it is news.
    pub(crate) fn note(&mut self, other: OtherSite, node: &Node) -> bool {
        let from = other.member;
        let membership = node.membership();
        let is_listed = |member: Member| {
            let listed = membership.member(member.id);
            listed.is_some_and(|it| it.member == member)
        };
        // Of others there may be any number.
        if !is_listed(from) || self.others.get(&from.id) == Some(&other) {
            return false;
        }
        self.others.retain(|_, it| is_listed(it.member));
        self.others.insert(from.id, other);
        self.look(node);
        true
    }

    /// Notes that a member's message was taken.
    pub(crate) fn on_taken(&mut self, from: Member, node: &Node) {
        if self.others.remove(&from.id).is_some() {
            self.look(node);
        }
    }

    /// A member with another site, if so many have one that no group of this node can answer.
    pub(crate) const fn alone(&self) -> Option<OtherSite> {
        self.alone
    }

    /// The site of the sender, if its message was refused for it.
    pub(crate) const fn of_refused(member: Member, reject: &Reject) -> Option<OtherSite> {
        let Reject::Groups(kgroup::Reject::Groups(groups::Reject::Misbehaviour(
            groups::Misbehaviour::Plan { found, own },
        ))) = *reject
        else {
            return None;
        };
        Some(OtherSite { member, found, own })
    }

    fn look(&mut self, node: &Node) {
        self.alone = None;
        let Some(kgroup) = node.kgroup() else {
            return;
        };
        let plan = kgroup.groups().plan();
        let quorum = usize::from(plan.selection().failures) + 1;
        let alike = plan.nodes().iter();
        let alike = alike.filter(|it| !self.others.contains_key(&it.id)).count();
        if alike < quorum {
            self.alone = self.others.values().next().copied();
        }
    }
}
