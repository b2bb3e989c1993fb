//! The nodes that hold maps: founders by settings, and each agent that joins later.
//!
//! The leader of the mesh, or a member in its place while it holds no maps itself, has the members added that run an agent with the same founders and are not among these
//! nodes, by a decided change. Agents that fail stay among them until a program removes them: they may come back
//! with what they hold. A node that was removed stays so until a program adds it.

use core::convert::Infallible;
use core::time::Duration;

use selvedge_udp::selvedge::groups::{Node, Place, Selection};
use selvedge_udp::selvedge::kgroup::{ConfigError, Site};
use selvedge_udp::{Handle, MemberInfo, NodeId, NodeState, Tags};
use tokio::time::{sleep, timeout};

use crate::log::{Level, Log};

/// The tag of a member that runs an agent: its founders and failures.
const TAG: &str = "founders";
/// The time between two looks at the members.
const LOOKS: Duration = Duration::from_secs(1);
/// The longest time for a change.
const PATIENCE: Duration = Duration::from_secs(30);

/// The nodes with which a mesh begins, and how many of those of a map may fail.
#[derive(Clone, Debug)]
pub struct Founders {
    ids: Vec<u64>,
    failures: u8,
}

impl Founders {
    /// These ids, in any order.
    #[must_use]
    pub fn new(ids: &[u64], failures: u8) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        Self { ids, failures }
    }

    /// The first site; for another node a later one with that node, which waits until a leader has added it.
    pub(crate) fn site(&self, me: NodeId) -> Result<Site, ConfigError> {
        let selection = Selection::new().with_failures(self.failures);
        let nodes = self.ids.iter().map(|id| node(NodeId(*id)));
        let first = Site::new(selection, nodes, [], 1)?;
        match self.ids.contains(&me.0) {
            true => Ok(first),
            false => first.with_generation(1).with_node(node(me)),
        }
    }

    fn text(&self) -> String {
        let ids: Vec<String> = self.ids.iter().map(u64::to_string).collect();
        format!("{}/{}", ids.join(","), self.failures)
    }

    /// Adds the tag of an agent.
    pub(crate) fn mark(&self, tags: &mut Tags) {
        tags.set(TAG, self.text());
    }

    fn are_of(&self, member: &MemberInfo) -> bool {
        member.tags.get(TAG).is_some_and(|it| it == self.text())
    }

    /// The live agents with other founders, if there are as many as with these or more: they are another mesh,
    /// in which the same lock may be held.
    pub(crate) fn others(&self, state: &NodeState) -> Option<Vec<u64>> {
        let agents = state.members.iter();
        let agents = agents.filter(|it| it.status.is_live() && it.tags.get(TAG).is_some());
        let (own, others): (Vec<_>, Vec<_>) = agents.partition(|it| self.are_of(it));
        let is_minority = !others.is_empty() && others.len() >= own.len();
        is_minority.then(|| others.iter().map(|it| it.member.id.0).collect())
    }
}

/// A node that holds maps.
pub(crate) fn node(id: NodeId) -> Node {
    Node::new(id.0, Place::default())
}

/// Returns true if this node is among the nodes that hold maps.
pub(crate) fn is_in(state: &NodeState) -> bool {
    let site = state.site.as_ref();
    site.is_some_and(|it| it.nodes().iter().any(|node| node.id == state.me.id))
}

/// The node that has others added: the leader of the mesh; while that holds no maps, and so can propose nothing, the
/// first live node that does.
fn proposer(leader: NodeId, live: impl Iterator<Item = NodeId>, site: &Site) -> Option<NodeId> {
    let holds = |id: &NodeId| site.nodes().iter().any(|it| it.id == *id);
    match holds(&leader) {
        true => Some(leader),
        false => live.filter(holds).min(),
    }
}

/// Has agents that join hold maps, while this node is the one that adds them.
pub(crate) async fn grow(node: &Handle, founders: &Founders, log: &Log) -> Infallible {
    loop {
        sleep(LOOKS).await;
        let state = node.state();
        let (Some(leader), Some(site)) = (&state.leader, &state.site) else {
            continue;
        };
        let live = state.members.iter().filter(|it| it.status.is_live());
        let live = live.map(|it| it.member.id);
        if proposer(leader.0.id, live, site) != Some(state.me.id) {
            continue;
        }
        let is_new = |it: &&MemberInfo| {
            let id = it.member.id;
            let is_known = site.nodes().iter().any(|node| node.id == id);
            let was_removed = site.former_nodes().contains(&id);
            it.status.is_live() && !is_known && !was_removed && founders.are_of(it)
        };
        let new = state.members.iter().filter(is_new);
        let mut new: Vec<NodeId> = new.map(|it| it.member.id).collect();
        if site.generation() == 0 {
            // Each of them began with a site of generation 1 that has itself alone: with a later one it follows.
            new.truncate(1);
        }
        if new.is_empty() {
            continue;
        }
        let present = site.as_ref().clone();
        let later = new
            .iter()
            .map(|id| self::node(*id))
            .try_fold(present, Site::with_node);
        let outcome = match later {
            Ok(later) => match timeout(PATIENCE, node.change_site(later)).await {
                Ok(Ok(_)) => continue,
                // Another change may have been decided first: it looks again.
                Ok(Err(error)) => error.to_string(),
                Err(_) => "too few of the nodes that hold maps answer".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        let why = format!("the nodes {new:?} are not added yet: {outcome}");
        log.at(Level::Warning, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_the_leader_holds_no_maps_another_node_has_it_added() {
        let site = Founders::new(&[3, 4, 5], 1).site(NodeId(3));
        let site = site.expect("three founders suffice for one failure");
        let proposes = |leader, live: &[u64]| {
            let live = live.iter().map(|id| NodeId(*id));
            proposer(NodeId(leader), live, &site).map(|it| it.0)
        };
        assert_eq!(proposes(5, &[3, 4, 5]), Some(5));
        assert_eq!(proposes(1, &[1, 5, 4, 7]), Some(4));
        assert_eq!(proposes(1, &[1, 7]), None);
    }
}
