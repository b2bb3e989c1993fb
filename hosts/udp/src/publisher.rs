//! The host's end of the connection to the application: requests, events and published state.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge::Node;
use selvedge_core::shared::{Port, Request};
use selvedge_core::{Incarnation, Member, NodeId, Time};
use selvedge_kgroup::Site;
use selvedge_membership::Phase;

use crate::directory::Directory;
use crate::event::{MemberInfo, NodeEvent, NodeState, Observed};
use crate::service::NodeService;
use crate::tags::Tags;

/// Collects the events of a step, and publishes them with the state after it.
#[derive(Debug)]
pub(crate) struct Publisher {
    port: Port<NodeService, NodeState>,
    published: NodeState,
    /// The directory's version when the list was made, and the number of changes of distances.
    version: (u64, u64),
    /// True if the list has to be rebuilt.
    is_stale: bool,
    /// The tags of lives on the list, where they have any.
    tags: BTreeMap<NodeId, (Incarnation, Tags)>,
    events: Vec<Observed>,
}

impl Publisher {
    pub(crate) const fn new(port: Port<NodeService, NodeState>, published: NodeState) -> Self {
        Self {
            port,
            published,
            version: (0, 0),
            is_stale: true,
            tags: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The next command. `None` when no handle is left.
    pub(crate) async fn next(&mut self) -> Option<Request<NodeService>> {
        self.port.recv().await.ok()
    }

    /// An event of this step.
    pub(crate) fn push(&mut self, at: Time, node: NodeId, event: NodeEvent) {
        self.is_stale |= matches!(event, NodeEvent::Membership(_));
        self.events.push(Observed { at, node, event });
    }

    /// A member on the list has these tags. Returns true if its node had others. O(log members).
    pub(crate) fn set_tags(&mut self, member: Member, tags: &Tags) -> bool {
        let Member { id, incarnation } = member;
        let former = if tags.is_empty() {
            self.tags.remove(&id)
        } else {
            self.tags.insert(id, (incarnation, tags.clone()))
        };
        self.is_stale = true;
        former.map(|it| it.1).unwrap_or_default() != *tags
    }

    /// The site of the k-groups is another one.
    pub(crate) fn set_site(&mut self, site: Option<Arc<Site>>) {
        self.published.site = site;
        self.is_stale = true;
    }

    /// Publishes, if anything has changed. O(members) if the list, an address or a distance in it has, else
    /// O(1).
    pub(crate) fn publish(&mut self, node: &Node, directory: &Directory, is_mute: bool) {
        let membership = node.membership();
        let version = (directory.version(), membership.counters().distances);
        let is_stale = self.is_stale || self.version != version;
        let mut state = NodeState {
            me: membership.me(),
            is_in: matches!(membership.phase(), Phase::Joined | Phase::Leaving),
            members: Arc::clone(&self.published.members),
            leader: node.leader(),
            leads_until: node.leads_until(),
            site: self.published.site.clone(),
            is_mute,
        };
        if is_stale {
            self.tags.retain(|&id, _| membership.member(id).is_some());
            let members = membership.members().map(|view| MemberInfo {
                member: view.member,
                status: view.status,
                address: directory.get(view.member.id),
                round_trip: view.round_trip,
                tags: self.tags_of(view.member),
            });
            state.members = members.collect();
            (self.version, self.is_stale) = (version, false);
        }
        let standing = |it: &NodeState| (it.me, it.is_in, it.leader, it.leads_until, it.is_mute);
        let has_changed = is_stale || standing(&state) != standing(&self.published);
        if has_changed || !self.events.is_empty() {
            self.published = state.clone();
            self.port.publish(state, self.events.drain(..));
        }
    }

    fn tags_of(&self, member: Member) -> Tags {
        let tags = self.tags.get(&member.id);
        let tags = tags.filter(|it| it.0 == member.incarnation);
        tags.map(|it| it.1.clone()).unwrap_or_default()
    }
}

impl Drop for Publisher {
    /// A reader must not believe that a stopped node leads.
    fn drop(&mut self) {
        let mut last = self.published.clone();
        (last.is_in, last.leader, last.leads_until) = (false, None, None);
        self.port.publish(last, self.events.drain(..));
    }
}
