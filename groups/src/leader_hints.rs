//! Hints: a node's knowledge of groups that it asked or learned of.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};

use crate::GroupId;

/// The most questions to one group that are kept until the leader is known.
const QUESTIONS: usize = 16;

/// After this number of rounds of questions without an answer all likely members are asked, and after
/// twice as many the founders.
pub(crate) const UNANSWERED: u8 = 2;

/// The place of a group, as other nodes sent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hint<P> {
    /// The number of the configuration that others sent.
    number: u64,
    pub(crate) leader: Option<NodeId>,
    pub(crate) members: Vec<Member>,
    /// The latest configuration of all that others sent, also if later hints are guesses. It does not age.
    latest: (u64, Vec<Member>),
    /// The number of epochs that began since it arrived, up to [`OLD`].
    epochs: u8,
    /// The number of rounds of questions since an answer from the group, up to [`LOST`].
    unanswered: u8,
    /// The last questions that were not answered.
    asked: VecDeque<P>,
}

/// The most epochs that are counted since a hint arrived.
pub(crate) const OLD: u8 = 2;

/// After this number of rounds without an answer a hint leads nowhere.
const LOST: u8 = 2 * UNANSWERED + 1;

impl<P> Hint<P> {
    const fn new() -> Self {
        Self {
            number: 0,
            leader: None,
            members: Vec::new(),
            latest: (0, Vec::new()),
            epochs: 0,
            unanswered: 0,
            asked: VecDeque::new(),
        }
    }

    /// Keeps a question that is asked now, perhaps as the first one of a round.
    pub(crate) fn ask(&mut self, payload: P, is_new_round: bool) {
        self.unanswered = (self.unanswered + u8::from(is_new_round)).min(LOST);
        if self.asked.len() >= QUESTIONS {
            self.asked.pop_front();
        }
        self.asked.push_back(payload);
    }

    /// Counts a round of questions that are not kept.
    pub(crate) fn count(&mut self) {
        self.unanswered = (self.unanswered + 1).min(LOST);
    }

    /// Takes the place of a group from another node. If it is news, returns the questions for the
    /// leader.
    pub(crate) fn notify(
        &mut self,
        number: u64,
        leader: Option<NodeId>,
        members: &[Member],
    ) -> VecDeque<P> {
        if number < self.number() {
            return VecDeque::new(); // From a node that knows less.
        }
        if number != self.number {
            self.leader = None;
        }
        let is_news = leader.is_some() && self.leader != leader;
        self.number = number;
        self.epochs = 0;
        self.members = members.to_vec();
        if number > self.latest.0 {
            self.latest = (number, self.members.clone());
        }
        self.leader = leader.or(self.leader);
        match is_news {
            // The questions go on at once, and not when they are asked again.
            true => core::mem::take(&mut self.asked),
            false => VecDeque::new(),
        }
    }

    /// Notes the group's leader, of which this node learned.
    pub(crate) fn receive(&mut self, leader: NodeId) {
        self.unanswered = 0;
        self.leader = Some(leader);
        self.asked.clear();
    }

    /// The questions that wait for the leader.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &P> {
        self.asked.iter()
    }

    /// The least number that a place from others needs. A hint that led nowhere, or is of a former
    /// epoch, gives way to any: questions follow a number that is too high no longer than that.
    /// [`last_number`](Self::last_number) keeps it.
    pub(crate) const fn number(&self) -> u64 {
        match self.epochs > 0 || self.unanswered >= LOST {
            true => 0,
            false => self.number,
        }
    }

    /// The highest number that others sent, also if no questions follow it any more. Reports of losses go by
    /// it, so a number that is too high counts there until the hint is forgotten.
    pub(crate) const fn last_number(&self) -> u64 {
        self.latest.0
    }

    /// The members of the configuration with that number.
    pub(crate) fn last_members(&self) -> &[Member] {
        &self.latest.1
    }

    /// Returns true if its configuration is later than this one, as the sender claimed.
    pub(crate) const fn is_behind(&self, number: u64) -> bool {
        self.number > number
    }

    /// The number of epochs that began since it arrived, up to [`OLD`].
    pub(crate) const fn epochs(&self) -> u8 {
        self.epochs
    }

    /// The number of rounds of questions since an answer from the group.
    pub(crate) const fn unanswered(&self) -> u8 {
        self.unanswered
    }
}

/// Hints, up to a limit: then the one that was used least recently is forgotten.
///
/// The order is a list through the entries, so that no number counts for ever. Every operation takes
/// O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeaderHints<P> {
    entries: BTreeMap<GroupId, Entry<P>>,
    /// The least and the most recently used.
    ends: Option<(GroupId, GroupId)>,
    limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry<P> {
    hint: Hint<P>,
    before: Option<GroupId>,
    after: Option<GroupId>,
}

impl<P> LeaderHints<P> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            ends: None,
            limit,
        }
    }

    /// The most hints.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Makes room for more hints.
    pub(crate) fn raise(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// The number of hints.
    #[cfg(feature = "check")]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The hint of a group, which is used now.
    pub(crate) fn used(&mut self, group: GroupId) -> &mut Hint<P> {
        let hint = self.take(group).unwrap_or_else(Hint::new);
        if let Some((oldest, _)) = self.ends
            && self.entries.len() >= self.limit
        {
            self.take(oldest);
        }
        self.push(group, hint)
    }

    /// Marks the hint of a group as used now, if there is one.
    pub(crate) fn renew(&mut self, group: GroupId) {
        if let Some(hint) = self.take(group) {
            self.push(group, hint);
        }
    }

    pub(crate) fn get_mut(&mut self, group: GroupId) -> Option<&mut Hint<P>> {
        self.entries.get_mut(&group).map(|it| &mut it.hint)
    }

    pub(crate) fn get(&self, group: GroupId) -> Option<&Hint<P>> {
        self.entries.get(&group).map(|it| &it.hint)
    }

    /// The members of groups, as other nodes sent them in this epoch, that were asked in vain since.
    pub(crate) fn in_vain(&self) -> impl Iterator<Item = (GroupId, &[Member])> {
        let is_it = |it: &Hint<P>| it.epochs == 0 && it.unanswered > UNANSWERED;
        let entries = self.entries.iter().filter(move |it| is_it(&it.1.hint));
        entries.map(|(group, it)| (*group, it.hint.members.as_slice()))
    }

    /// Ages all hints at the beginning of an epoch: they count less.
    pub(crate) fn grow_old(&mut self) {
        for entry in self.entries.values_mut() {
            entry.hint.epochs = (entry.hint.epochs + 1).min(OLD);
        }
    }

    /// Returns true if no part has grown beyond its limit.
    #[cfg(feature = "check")]
    pub(crate) fn is_bounded(&self, members: usize) -> bool {
        let is_bounded = |it: &Hint<P>| {
            it.asked.len() <= QUESTIONS && it.members.len().max(it.latest.1.len()) <= members
        };
        self.entries.len() <= self.limit && self.entries.values().all(|it| is_bounded(&it.hint))
    }

    fn take(&mut self, group: GroupId) -> Option<Hint<P>> {
        let entry = self.entries.remove(&group)?;
        let (before, after) = (entry.before, entry.after);
        if let Some(before) = before.and_then(|it| self.entries.get_mut(&it)) {
            before.after = after;
        }
        if let Some(after) = after.and_then(|it| self.entries.get_mut(&it)) {
            after.before = before;
        }
        self.ends = self.ends.and_then(|(oldest, newest)| {
            let oldest = if oldest == group { after } else { Some(oldest) };
            let newest = if newest == group {
                before
            } else {
                Some(newest)
            };
            oldest.zip(newest)
        });
        Some(entry.hint)
    }

    /// Adds a hint, as the one that was used last.
    fn push(&mut self, group: GroupId, hint: Hint<P>) -> &mut Hint<P> {
        let before = self.ends.map(|it| it.1);
        if let Some(before) = before.and_then(|it| self.entries.get_mut(&it)) {
            before.after = Some(group);
        }
        let oldest = self.ends.map_or(group, |it| it.0);
        self.ends = Some((oldest, group));
        let entry = Entry {
            hint,
            before,
            after: None,
        };
        &mut self.entries.entry(group).or_insert(entry).hint
    }
}

#[cfg(test)]
impl<P> LeaderHints<P> {
    /// The groups, the least recently used first.
    fn in_order(&self) -> Vec<GroupId> {
        let mut order = Vec::new();
        let mut next = self.ends.map(|it| it.0);
        while let Some(group) = next {
            order.push(group);
            next = self.entries.get(&group).and_then(|it| it.after);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hints_are_a_list_in_the_order_of_their_use(
            limit in 1..5_usize,
            operations in proptest::collection::vec((0..3_u8, 0..7_u64), 0..60),
        ) {
            let mut leader_hints: LeaderHints<u8> = LeaderHints::new(limit);
            let mut model: Vec<GroupId> = Vec::new();
            for (operation, group) in operations {
                let group = GroupId(group);
                let was_there = model.contains(&group);
                match operation {
                    0 => leader_hints.renew(group),
                    1 => {
                        leader_hints.used(group).ask(1, true);
                    }
                    _ => prop_assert_eq!(leader_hints.get_mut(group).is_some(), was_there),
                }
                if operation == 1 || operation == 0 && was_there {
                    model.retain(|it| *it != group);
                    model.push(group);
                }
                if model.len() > limit {
                    model.remove(0);
                }
                prop_assert_eq!(&leader_hints.in_order(), &model);
                prop_assert_eq!(leader_hints.entries.len(), model.len());
                let mut back = model.clone();
                back.reverse();
                let mut next = leader_hints.ends.map(|it| it.1);
                for group in back {
                    prop_assert_eq!(next, Some(group));
                    next = leader_hints.entries.get(&group).and_then(|it| it.before);
                }
                prop_assert_eq!(next, None);
            }
        }
    }
}
