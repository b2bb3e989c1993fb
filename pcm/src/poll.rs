//! An orchestrator's count of the votes of its unit (PCM, section 4.4).

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::task::{Answer, Returned, Voters, wins};

/// The attempt, and the followers' results, in order of arrival.
#[cfg(feature = "check")]
pub(crate) type Votes = (u16, Vec<(Member, Returned)>);

/// The votes on one attempt of a task.
///
/// A vote counts once, for the first value that its follower returned, and only from an elector
/// (erratum Q7). Nothing is taken back (Figure 2, CO append-only). A late vote counts as much as an early
/// one: the value that more than half of the electors returned, or half of them and the orchestrator, is
/// the same in any order of votes (erratum Q5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Poll {
    /// The result of each follower, in order of arrival. Votes of former electors stay: a follower that is
    /// taken off the list may be put back on it.
    votes: Vec<(Member, Returned)>,
}

impl Poll {
    /// The greatest number of votes that are kept: enough for two units.
    const MOST: usize = 2 * Limits::UNIT_MOST as usize;

    /// Casts an elector's vote. Returns true if it is the elector's first.
    pub(crate) fn cast(&mut self, electors: &[Member], by: Member, value: Returned) -> bool {
        let is_new = electors.contains(&by) && self.votes.iter().all(|it| it.0 != by);
        if is_new {
            if self.votes.len() >= Self::MOST {
                // Only a gateway that lies names more followers than two units have.
                self.votes.retain(|it| electors.contains(&it.0));
            }
            if self.votes.is_empty() {
                self.votes.reserve_exact(electors.len()); // Later votes allocate nothing.
            }
            self.votes.push((by, value));
        }
        is_new
    }

    /// All votes.
    #[cfg(feature = "check")]
    pub(crate) fn votes(&self) -> Vec<(Member, Returned)> {
        self.votes.clone()
    }

    /// Casts the vote of any follower. Under a published rule only.
    pub(crate) fn cast_by_any(&mut self, by: Member, value: Returned) {
        if self.votes.iter().all(|it| it.0 != by) {
            self.votes.push((by, value));
        }
    }

    /// All that voted, the electors first. Under a published rule only.
    pub(crate) fn with_all(&self, electors: &[Member]) -> Vec<Member> {
        let others = self.votes.iter().map(|it| it.0);
        let others = others.filter(|it| !electors.contains(it));
        electors.iter().copied().chain(others).collect()
    }

    /// The result of the votes by the paper (section 4.4): the first value that half of the electors
    /// returned, without waiting for the others. If all have voted, no value has half of the votes, and
    /// several have the most: the orchestrator's own among these, or the first one that had this number. If a
    /// single value has the most, and less than half, there is no result. Under a published rule only.
    pub(crate) fn first_half(&self, electors: &[Member], orchestrator: Member) -> Option<Answer> {
        let cast = self.votes.iter().filter(|it| electors.contains(&it.0));
        // The number of votes of a value after each vote, in order of arrival.
        let mut counted: Vec<(usize, &Returned)> = Vec::new();
        for (_, value) in cast {
            let before = counted.iter().filter(|it| it.1 == value).count();
            counted.push((before + 1, value));
            if 2 * (before + 1) >= electors.len() {
                return Some(value.clone().into());
            }
        }
        let most = counted.iter().map(|it| it.0).max()?;
        let tied = || counted.iter().filter(|it| it.0 == most).map(|it| it.1);
        if counted.len() < electors.len() || tied().count() < 2 {
            return None;
        }
        let own = self.vote(orchestrator);
        let chosen = tied().find(|it| Some(*it) == own).or_else(|| tied().next());
        chosen.map(|it| it.clone().into())
    }

    /// The number of votes that it keeps.
    #[cfg(feature = "check")]
    pub(crate) const fn len(&self) -> usize {
        self.votes.len()
    }

    /// The result of an elector.
    pub(crate) fn vote(&self, of: Member) -> Option<&Returned> {
        self.votes.iter().find(|it| it.0 == of).map(|it| &it.1)
    }

    /// The result of the votes, if more votes cannot change it. O(m^2) comparisons of values for m electors.
    pub(crate) fn verdict(&self, electors: &[Member], orchestrator: Member) -> Option<Answer> {
        let cast = self.votes.iter().filter(|it| electors.contains(&it.0));
        let all = electors.len();
        let open = all.saturating_sub(cast.clone().count());
        let own = cast.clone().find(|it| it.0 == orchestrator);
        let own = own.map(|it| &it.1);
        let count = |value: &Returned| cast.clone().filter(|it| it.1 == *value).count();
        // Without a vote any value may win. Later the values with votes are enough to look at, because a
        // new value can get fewer votes than each of them can.
        let mut is_open = open == all;
        for (_, value) in cast.clone() {
            let votes = count(value);
            if wins(votes, all, own == Some(value)) {
                return Some(value.clone().into());
            }
            // The votes that are missing, the orchestrator's perhaps among them, may all be for it.
            let may_be_own = own.is_none_or(|it| it == value);
            is_open |= wins(votes + open, all, may_be_own);
        }
        (!is_open).then_some(Answer::NoMajority)
    }

    /// The electors that have returned the answer, by id, including electors that returned it after it was
    /// certain. O(m^2) comparisons of ids for m electors: a sort would take more of a device's flash than all
    /// the rest of a poll.
    pub(crate) fn voters(&self, electors: &[Member], answer: &Answer) -> Voters {
        let cast = self.votes.iter().filter(|it| electors.contains(&it.0));
        let equal = cast.filter(|it| it.1.comes_to(answer));
        let ids = equal.map(|it| it.0.id);
        let after = |last: &NodeId| ids.clone().filter(|it| it > last).min();
        core::iter::successors(ids.clone().min(), after).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Failure;

    fn members(count: u64) -> Vec<Member> {
        (1..=count).map(|id| Member::new(id, 0)).collect()
    }

    fn returned(value: u8) -> Returned {
        match value {
            0 => Returned::Failed(Failure::Trapped),
            _ => Returned::Value(core::iter::once(value).collect()),
        }
    }

    /// The verdict on these votes, of electors that have ids from 1; the first is the orchestrator.
    fn verdict(count: u64, votes: &[(u64, u8)]) -> Option<Answer> {
        let electors = members(count);
        let mut poll = Poll::default();
        for &(by, value) in votes {
            poll.cast(&electors, Member::new(by, 0), returned(value));
        }
        poll.verdict(&electors, electors.first().copied().unwrap_or_default())
    }

    fn value(value: u8) -> Option<Answer> {
        Some(returned(value).into())
    }

    #[test]
    fn more_than_half_decide_or_half_with_the_orchestrator() {
        assert_eq!(verdict(5, &[(1, 7), (2, 7)]), None);
        assert_eq!(verdict(5, &[(1, 7), (2, 7), (3, 7)]), value(7));
        assert_eq!(
            verdict(4, &[(2, 7), (3, 7)]),
            None,
            "the orchestrator may differ"
        );
        assert_eq!(verdict(4, &[(1, 7), (3, 7)]), value(7));
        assert_eq!(verdict(4, &[(1, 7), (2, 7), (3, 8), (4, 8)]), value(7));
        assert_eq!(verdict(1, &[(1, 7)]), value(7));
        assert_eq!(verdict(2, &[(1, 7)]), value(7));
        assert_eq!(verdict(2, &[(2, 7)]), None);
        assert_eq!(verdict(0, &[]), None);
    }

    #[test]
    fn no_majority_is_said_as_soon_as_none_can_be() {
        assert_eq!(
            verdict(5, &[(1, 1), (2, 2), (3, 3)]),
            None,
            "two may join one"
        );
        assert_eq!(verdict(5, &[(1, 1), (2, 1), (3, 2), (4, 2)]), None);
        assert_eq!(
            verdict(5, &[(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)]),
            Some(Answer::NoMajority)
        );
        assert_eq!(
            verdict(5, &[(1, 1), (2, 2), (3, 3), (4, 4)]),
            Some(Answer::NoMajority)
        );
        assert_eq!(verdict(3, &[(1, 1), (2, 2)]), None);
        assert_eq!(
            verdict(3, &[(1, 1), (2, 2), (3, 3)]),
            Some(Answer::NoMajority)
        );
    }

    #[test]
    fn a_follower_votes_once_and_others_do_not_vote() {
        assert_eq!(verdict(3, &[(2, 7), (2, 7), (9, 7), (8, 7)]), None);
        assert_eq!(verdict(3, &[(2, 7), (2, 8), (3, 7)]), value(7));
        let electors = members(3);
        let mut poll = Poll::default();
        assert!(
            !poll.cast(&electors, Member::new(2, 1), returned(7)),
            "another life"
        );
        assert!(poll.cast(&electors, Member::new(2, 0), returned(7)));
        assert!(!poll.cast(&electors, Member::new(2, 0), returned(7)));
        // Two electors have left: the vote of the third decides.
        assert_eq!(poll.verdict(&[electors[1]], electors[1]), value(7));
    }

    /// A follower that is taken off the list may be put back on it.
    #[test]
    fn a_vote_of_a_former_elector_is_kept() {
        let electors = members(3);
        let mut poll = Poll::default();
        poll.cast(&electors, electors[1], returned(7));
        let fewer = [electors[0], electors[2]];
        poll.cast(&fewer, electors[2], returned(7));
        assert_eq!(poll.verdict(&fewer, electors[0]), None);
        assert_eq!(poll.verdict(&electors, electors[0]), value(7));
    }

    #[test]
    fn votes_of_two_units_are_kept_and_no_more() {
        let all = members(3 * u64::from(Limits::UNIT_MOST));
        let units: Vec<&[Member]> = all.chunks(Limits::UNIT_MOST.into()).collect();
        let mut poll = Poll::default();
        for unit in &units[..2] {
            for &by in *unit {
                assert_eq!(poll.verdict(units[0], all[0]).is_some(), by.id.0 > 9);
                poll.cast(unit, by, returned(7));
            }
        }
        assert_eq!(poll.verdict(units[0], all[0]), value(7));
        poll.cast(units[2], units[2][0], returned(7));
        assert_eq!(poll.votes.len(), 1);
    }

    proptest! {
        #[test]
        fn a_verdict_stands_whatever_comes_in_whatever_order(
            (votes, order) in (1..8_usize).prop_flat_map(|count| {
                let votes = proptest::collection::vec(0..3_u8, count);
                (votes, Just((0..count as u64).collect::<Vec<_>>()).prop_shuffle())
            }),
        ) {
            let count = votes.len() as u64;
            let cast: Vec<(u64, u8)> = order.iter().map(|&it| (it + 1, votes[it as usize])).collect();
            let end = verdict(count, &cast);
            prop_assert!(end.is_some(), "all have voted");
            let mut reported = None;
            for so_far in 0..=cast.len() {
                let now = verdict(count, &cast[..so_far]);
                if reported.is_some() {
                    prop_assert_eq!(&now, &reported);
                }
                reported = now;
            }
            prop_assert_eq!(reported, end);
        }

        /// The verdict on incomplete votes: the verdict to which all possible missing votes lead.
        #[test]
        fn a_verdict_is_said_as_soon_as_it_is_certain(
            votes in proptest::collection::vec(proptest::option::of(0..3_u8), 1..6),
        ) {
            let count = votes.len() as u64;
            let cast: Vec<(u64, u8)> =
                (1..).zip(&votes).filter_map(|(id, it)| Some((id, (*it)?))).collect();
            let missing: Vec<u64> =
                (1..).zip(&votes).filter_map(|(id, it)| it.is_none().then_some(id)).collect();
            // Four values are enough: the returned ones, and a value that no follower returned.
            let ends: alloc::collections::BTreeSet<_> = (0..4_u32.pow(missing.len() as u32))
                .map(|fill| {
                    let mut all = cast.clone();
                    for (nth, &id) in missing.iter().enumerate() {
                        all.push((id, (fill / 4_u32.pow(nth as u32) % 4) as u8));
                    }
                    verdict(count, &all)
                })
                .collect();
            let certain = match ends.len() {
                1 => ends.into_iter().next().flatten(),
                _ => None,
            };
            prop_assert_eq!(verdict(count, &cast), certain);
        }
    }
}
