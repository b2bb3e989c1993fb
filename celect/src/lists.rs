//! The node's own list, part by part, for nodes that measure c.

use selvedge_core::wire::member_len;
use selvedge_core::{Context, Member, NodeId};

use crate::message::{Members, Message, PART_MAX_LEN};
use crate::{Attribute, Celect};

impl<A: Attribute> Celect<A> {
    /// Sends a part of our list to a node that asks. O(n).
    pub(crate) fn on_sample_query(
        &self,
        to: Member,
        run: u32,
        from: NodeId,
        cx: &mut Context<'_, Self>,
    ) {
        let mut room = self.config.list_room(PART_MAX_LEN);
        let rest = self.peers.iter().filter(|it| it.id >= from);
        let (members, next): (Members, _) = room.fill(rest, |it| member_len(*it));
        let more = next.is_some();
        cx.send(
            to,
            Message::SampleResponse {
                run,
                life: to.incarnation.0,
                from,
                members,
                more,
            },
        );
    }
}

/// Returns true if a part of a list is in order, and the members that it promises behind it can be
/// asked for.
pub(crate) fn is_in_order(from: NodeId, members: &[Member], more: bool) -> bool {
    let ids = || members.iter().map(|it| it.id);
    ids().is_sorted_by(|a, b| a < b)
        && ids().next().is_none_or(|first| first >= from)
        && !(more && ids().next_back().is_none_or(|last| last.0 == u64::MAX))
}
