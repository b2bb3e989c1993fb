//! Sites that differ from the present one of this node, and a change of it that is under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge::Node;
use selvedge_core::shared::Reply;
use selvedge_core::{Member, NodeId};
use selvedge_groups as groups;
use selvedge_kgroup::{self as kgroup, ConfigError, Site};

use crate::event::OtherSite;
use crate::service::{Answer, Reject};

/// The sites of other members, and conflicts with this node's.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// The members with another first site: their k-groups and this node's never mix.
    others: BTreeMap<NodeId, (Member, OtherSite)>,
    /// Why the site with which this node was started is not the present one.
    own: Option<OtherSite>,
    /// True if the present site has triggers of time.
    pub(crate) has_times: bool,
    /// The caller that waits for the outcome of a change, by the number of the proposal.
    changing: Option<(u64, Reply<Answer, Reject>)>,
}

impl Sites {
    /// Notes the site that a message of a member shows. Returns true if it is news.
    pub(crate) fn note(&mut self, from: Member, other: OtherSite, node: &Node) -> bool {
        // Of others there may be any number.
        if !is_listed(from, node) || self.others.get(&from.id) == Some(&(from, other)) {
            return false;
        }
        self.others.retain(|_, it| is_listed(it.0, node));
        self.others.insert(from.id, (from, other));
        true
    }

    /// Notes that the site with which this node was started cannot follow on the present one.
    pub(crate) const fn note_own(&mut self, other: OtherSite) {
        self.own = Some(other);
    }

    /// Notes another site of this node.
    pub(crate) fn follow(&mut self, site: &Site) {
        self.own = None;
        let mut routines = site.routines();
        self.has_times = routines.any(|it| !it.1.triggers.is_empty());
    }

    /// Adds the caller of a change. One at a time: the machine refuses a second proposal.
    pub(crate) fn wait(&mut self, number: u64, reply: Reply<Answer, Reject>) {
        self.changing = Some((number, reply));
    }

    /// Answers the caller of a change, if this is its outcome. Returns false if there is none.
    pub(crate) fn on_proposed(&mut self, number: u64, outcome: Result<u32, Reject>) -> bool {
        let reply = self.changing.take_if(|it| it.0 == number);
        let is_asked = reply.is_some();
        if let Some((_, reply)) = reply {
            reply.send(outcome.map(Answer::Generation));
        }
        is_asked
    }

    /// Refuses the change that is under way.
    pub(crate) fn refuse_change(&mut self, why: Reject) {
        if let Some((_, reply)) = self.changing.take() {
            reply.send(Err(why));
        }
    }

    /// The reason for which no group answers this node's requests, if there is one.
    pub(crate) fn refusal(&self, node: &Node) -> Option<OtherSite> {
        self.own.or_else(|| self.alone(node))
    }

    /// The reason for which this node can change no site. A site that differs can be the remedy.
    pub(crate) fn refusal_of_change(&self, node: &Node) -> Option<OtherSite> {
        let is_stranger = |it: &OtherSite| {
            let OtherSite::Own { why, .. } = it else {
                return false;
            };
            matches!(why, ConfigError::NoNode(_))
        };
        self.own.filter(is_stranger).or_else(|| self.alone(node))
    }

    /// Notes that a member's message was taken.
    pub(crate) fn on_taken(&mut self, from: Member) {
        self.others.remove(&from.id);
    }

    /// A member with another site, if so many have one in their present lives that no group of this
    /// node can answer.
    fn alone(&self, node: &Node) -> Option<OtherSite> {
        let plan = node.kgroup()?.groups().plan();
        let quorum = usize::from(plan.selection().failures) + 1;
        let other = |id: &NodeId| {
            let (member, other) = *self.others.get(id)?;
            is_listed(member, node).then_some(other)
        };
        let others = plan.nodes().iter().filter_map(|it| other(&it.id));
        let alike = plan.nodes().len() - others.clone().count();
        others.take(usize::from(alike < quorum)).next()
    }

    /// The site of the sender, if its message was refused for it.
    pub(crate) const fn of_refused(member: Member, reject: &selvedge::Reject) -> Option<OtherSite> {
        let selvedge::Reject::Groups(kgroup::Reject::Groups(groups::Reject::Misbehaviour(
            groups::Misbehaviour::Plan { found, own },
        ))) = *reject
        else {
            return None;
        };
        Some(OtherSite::Member { member, found, own })
    }
}

/// The site with frames no longer than those of membership.
pub(crate) fn held_to(site: &Arc<Site>, frame_budget: u16) -> Result<Arc<Site>, kgroup::Reject> {
    if site.frame_budget() <= frame_budget {
        return Ok(Arc::clone(site));
    }
    let site = Site::clone(site).with_frame_budget(frame_budget)?;
    Ok(Arc::new(site))
}

/// Returns true if this life of a member is its present one.
fn is_listed(member: Member, node: &Node) -> bool {
    let listed = node.membership().member(member.id);
    listed.is_some_and(|it| it.member == member)
}
