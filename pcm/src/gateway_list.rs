//! The gateways that a follower or a client goes to, one after another.

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};

/// The gateways of a node's list, and the present one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GatewayList {
    /// Each in its latest known life; at least one.
    gateways: Vec<Member>,
    at: usize,
}

impl GatewayList {
    /// A list at its first gateway; `None` if no gateway is named.
    pub(crate) fn new(gateways: impl IntoIterator<Item = NodeId>) -> Option<Self> {
        let gateways = gateways.into_iter().map(|id| Member::new(id.0, 0));
        let gateways: Vec<Member> = gateways.collect();
        (!gateways.is_empty()).then_some(Self { gateways, at: 0 })
    }

    /// Goes to the next gateway, after the last one to the first.
    pub(crate) fn go_on(&mut self) {
        self.at = (self.at + 1) % self.gateways.len().max(1);
    }

    /// Notes the life of a node that sent a gateway's message. Returns true if it is on the list. O(n) for n
    /// gateways.
    pub(crate) fn meet(&mut self, from: Member) -> bool {
        let known = self.gateways.iter_mut().find(|it| it.id == from.id);
        let Some(known) = known else {
            return false;
        };
        if from.supersedes(*known) {
            *known = from;
        }
        true
    }

    /// Returns true if a node is on the list. O(n) for n gateways.
    pub(crate) fn contains(&self, id: NodeId) -> bool {
        self.gateways.iter().any(|it| it.id == id)
    }

    /// The gateway that the node is at.
    pub(crate) fn present(&self) -> Member {
        self.gateways.get(self.at).copied().unwrap_or_default()
    }

    /// The number of gateways.
    pub(crate) const fn len(&self) -> usize {
        self.gateways.len()
    }
}
