//! A member that was left behind looks for its group.
//!
//! A node that slept, or was cut off, may hold a configuration that has ended. As a leader it
//! learns that when it acts, and an idle leader does not act: so a leader confirms that it leads
//! before it chooses, in each epoch. A member confirms a leader that was reported as failed, and one
//! that sent nothing since the last epoch. A member without a leader asks the nodes that may know: the nodes that others named to it, and the
//! group's founders.

use alloc::vec::Vec;

use selvedge_core::{Context, Input, Member};
use selvedge_replica as replica;
use selvedge_replica::{Body, Wants};

use crate::GroupId;
use crate::state::Carried;
use crate::{Begins, Groups, Item};

/// The number of the read that asks for nothing but the leader. No application uses it.
const CONFIRMS: u64 = u64::MAX;

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Asks if the leader that this member knows, perhaps itself, still leads: an answer follows,
    /// or the news that it does not. It costs a round among the members.
    pub(crate) fn confirm(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        if core::mem::replace(&mut part.confirms, true) {
            return; // Without an answer questions would take the room of the application's.
        }
        let read = Input::Command(replica::Command::Read(CONFIRMS));
        // Refused where too much waits: then other questions reach the leader already.
        if self.step(group, read, cx).is_err()
            && let Some(part) = self.parts.get_mut(&group)
        {
            part.confirms = false;
        }
    }

    /// Handles the answer to that question.
    pub(crate) fn on_answer(
        &mut self,
        group: GroupId,
        is_confirmed: bool,
        cx: &mut Context<'_, Self>,
    ) {
        if let Some(part) = self.parts.get_mut(&group) {
            part.confirms = false;
        }
        if is_confirmed && self.leads(group) {
            self.on_confirmed(group, cx);
        }
    }

    /// Looks for the group, at a member that has waited in vain for a leader.
    pub(crate) fn find_leader(&mut self, group: GroupId) {
        let hinted = self.leader_hints.get(group);
        let hinted = hinted.into_iter().flat_map(|it| &it.members);
        let mut asked: Vec<_> = hinted.map(|it| it.id).collect();
        asked.extend(self.founders(group));
        asked.sort_unstable();
        asked.dedup();
        let Some(replica) = self.replica(group) else {
            return; // It was left.
        };
        let configuration = replica.configuration();
        // Members were asked for their votes.
        asked.retain(|it| *it != self.me.id && configuration.voter(*it).is_none());
        let to: Vec<Member> = asked.into_iter().map(|it| self.latest(it)).collect();
        let number = configuration.number;
        let missing = replica::Message {
            configuration: number,
            body: Body::Missing {
                committed: replica.version(),
                wants: Wants::Entries,
            },
        };
        let item = |to| {
            let message = missing.clone();
            (to, Item::Replica { group, message })
        };
        self.posted.0.extend(to.into_iter().map(item));
    }

    /// Handles a configuration later than this node knows.
    pub(crate) fn on_later(&mut self, group: GroupId, number: u64) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        let own = part.replica.configuration().number;
        if own > 0 && number > own.max(part.sought) {
            part.sought = number;
            self.find_leader(group);
        }
    }
}

/// The answer to that read in an event, if any: true if a quorum answered.
pub(crate) fn confirms<S: replica::State>(event: &replica::Event<S>) -> Option<bool> {
    let is_confirmed = matches!(event, replica::Event::Readable { read: CONFIRMS, .. });
    let is_answered = is_confirmed || matches!(event, replica::Event::Unreadable(CONFIRMS));
    is_answered.then_some(is_confirmed)
}
