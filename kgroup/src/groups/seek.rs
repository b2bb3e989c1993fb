//! A member that was left behind looks for its group.
//!
//! A node that slept, or was cut off, may hold a configuration that is over. As a leader it hears of
//! that when it does something, and an idle one does nothing: so a leader confirms that it leads when
//! an epoch begins. A member confirms a leader that it was told is gone. A member without a leader
//! asks the nodes that may know: those that it was told of, and the group's founders.

use alloc::vec::Vec;

use selvedge_core::{Context, Input, Member};
use selvedge_replica as replica;
use selvedge_replica::{Body, Wants};

use super::state::Carried;
use super::{Begins, Groups, Item};
use crate::GroupId;

/// The number of the read that asks for nothing but the leader. It is nobody else's.
const CONFIRMS: u64 = u64::MAX;

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Asks whether the leader leads that this member knows, perhaps itself: an answer, or the news that
    /// it does not. It costs a round among the members.
    pub(super) fn confirm(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let read = Input::Command(replica::Command::Read(CONFIRMS));
        // Refused where too much waits: then it is asked for something already.
        let _refused = self.step(group, read, cx).is_err();
    }

    /// A member has waited in vain for a leader.
    pub(super) fn seek(&mut self, group: GroupId) {
        let hinted = self.hints.get(group);
        let mut asked: Vec<_> = hinted.map_or_else(Vec::new, |it| it.members.clone());
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
        let lacking = replica::Message {
            configuration: number,
            body: Body::Lacking {
                committed: replica.version(),
                wants: Wants::Entries,
            },
        };
        let item = |to| {
            let message = lacking.clone();
            (to, Item::Replica { group, message })
        };
        self.posted.0.extend(to.into_iter().map(item));
    }

    /// Another node told of later members than this one knows.
    pub(super) fn on_later(&mut self, group: GroupId, number: u64) {
        let own = self.replica(group).map(|it| it.configuration().number);
        if own.is_some_and(|it| it > 0 && it < number) {
            self.seek(group);
        }
    }
}

/// Whether an event answers that read.
pub(super) const fn confirms<S: replica::State>(event: &replica::Event<S>) -> bool {
    matches!(
        event,
        replica::Event::Readable { read: CONFIRMS, .. } | replica::Event::Unreadable(CONFIRMS)
    )
}
