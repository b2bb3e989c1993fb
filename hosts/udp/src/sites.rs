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
}

impl Sites {
    /// Notes the site that a message of a member shows. Returns true if it is news.
    pub(crate) fn note(&mut self, other: OtherSite, node: &Node) -> bool {
        let from = other.member;
        // Of others there may be any number.
        if !is_listed(from, node) || self.others.get(&from.id) == Some(&other) {
            return false;
        }
        self.others.retain(|_, it| is_listed(it.member, node));
        self.others.insert(from.id, other);
        true
    }

    /// Notes that a member's message was taken.
    pub(crate) fn on_taken(&mut self, from: Member) {
        self.others.remove(&from.id);
    }

    /// A member with another site, if so many have one in their present lives that no group of this
    /// node can answer.
    pub(crate) fn alone(&self, node: &Node) -> Option<OtherSite> {
        let plan = node.kgroup()?.groups().plan();
        let quorum = usize::from(plan.selection().failures) + 1;
        let other = |id: &NodeId| {
            let other = self.others.get(id)?;
            is_listed(other.member, node).then_some(*other)
        };
        let others = plan.nodes().iter().filter_map(|it| other(&it.id));
        let alike = plan.nodes().len() - others.clone().count();
        others.take(usize::from(alike < quorum)).next()
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
}

/// Returns true if this life of a member is its present one.
fn is_listed(member: Member, node: &Node) -> bool {
    let listed = node.membership().member(member.id);
    listed.is_some_and(|it| it.member == member)
}
