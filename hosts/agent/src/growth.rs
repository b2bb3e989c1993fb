//! The nodes that hold maps: founders by settings, and each agent that joins later.
//!
//! The leader of the mesh has the members that run an agent and are not among them added, by a decided change.
//! Agents that fail stay among them until a program removes them: they may come back with what they hold.

use core::convert::Infallible;
use core::time::Duration;

use selvedge_udp::selvedge::groups::{Node, Place, Selection};
use selvedge_udp::selvedge::kgroup::{ConfigError, Site};
use selvedge_udp::{Handle, MemberInfo, NodeId, Tags};
use tokio::time::{sleep, timeout};

/// The tag of a member that runs an agent.
const TAG: &str = "agent";
/// The time between two looks at the members.
const LOOKS: Duration = Duration::from_secs(1);
/// The longest time for a change.
const PATIENCE: Duration = Duration::from_secs(30);

/// Adds the tag of an agent.
pub(crate) fn mark(tags: &mut Tags) {
    tags.set(TAG, env!("CARGO_PKG_VERSION"));
}

/// The first site, with this node if it is no founder.
pub(crate) fn first_site(me: NodeId, founders: &[u64], failures: u8) -> Result<Site, ConfigError> {
    let node = |id: u64| Node::new(id, Place::default());
    let selection = Selection::new().with_failures(failures);
    let nodes = founders.iter().map(|id| node(*id));
    let site = Site::new(selection, nodes, [], 1)?;
    if founders.contains(&me.0) {
        return Ok(site);
    }
    // It waits until a leader has added it.
    site.with_generation(1).with_node(node(me.0))
}

/// Has agents that join hold maps, while this node leads the mesh.
pub(crate) async fn grow(node: &Handle) -> Infallible {
    loop {
        sleep(LOOKS).await;
        let state = node.state();
        if state.leader.is_none_or(|it| it.0 != state.me) {
            continue;
        }
        let Some(site) = &state.site else { continue };
        let is_new = |it: &&MemberInfo| {
            let is_known = site.nodes().iter().any(|node| node.id == it.member.id);
            it.status.is_live() && !is_known && it.tags.get(TAG).is_some()
        };
        let mut new = state.members.iter().filter(is_new).peekable();
        if new.peek().is_none() {
            continue;
        }
        let added = new.map(|it| Node::new(it.member.id.0, Place::default()));
        let present = site.as_ref().clone();
        if let Ok(later) = added.into_iter().try_fold(present, Site::with_node) {
            // Another change may be decided first, or too few nodes are here: it looks again.
            let _decided = timeout(PATIENCE, node.change_site(later)).await;
        }
    }
}
