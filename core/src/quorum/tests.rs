use alloc::collections::BTreeSet;

use proptest::collection::btree_set;
use proptest::prelude::*;

use super::*;

type Ids = BTreeSet<u8>;

fn electorate(quorum: Quorum, present: &Ids, next: Option<&Ids>) -> Electorate<u8> {
    let mut all = Electorate::new(quorum, present.iter().copied());
    if let Some(next) = next {
        all.begin_change(next.iter().copied());
    }
    all
}

fn is_quorum(all: &Electorate<u8>, voters: &Ids) -> bool {
    all.tally(|it| Some(voters.contains(it))) == Tally::Won
}

/// Up to seven of the ten nodes 0 to 9.
fn ids() -> impl Strategy<Value = Ids> {
    btree_set(0..10_u8, 0..8)
}

fn quorum() -> impl Strategy<Value = Quorum> {
    prop_oneof![
        Just(Quorum::Majority),
        (0..9_usize).prop_map(Quorum::AtLeast)
    ]
}

#[test]
fn a_quorum_has_to_be_there() {
    assert_eq!(Quorum::Majority.needed(0), None);
    assert_eq!(Quorum::Majority.needed(4), Some(3));
    assert_eq!(Quorum::Majority.needed(5), Some(3));
    assert_eq!(Quorum::AtLeast(0).needed(3), None);
    assert_eq!(Quorum::AtLeast(4).needed(3), None);
    assert_eq!(Quorum::AtLeast(2).needed(3), Some(2));
    assert!(Quorum::Majority.intersects(usize::MAX));
    let none = Electorate::<u8>::new(Quorum::Majority, []);
    assert_eq!(none.tally(|_| Some(true)), Tally::Lost);
}

#[test]
fn the_first_vote_counts_and_strangers_have_none() {
    let all = Electorate::new(Quorum::Majority, [3, 1, 2, 1]);
    assert_eq!(all.present(), [1, 2, 3]);
    let mut votes = Votes::new();
    assert_eq!(votes.cast(&all, 1, 'a'), Ok(true));
    assert_eq!(votes.cast(&all, 1, 'b'), Ok(false));
    assert_eq!(votes.cast(&all, 4, 'a'), Err(NoElector));
    assert_eq!(votes.get(&1), Some(&'a'));
    assert_eq!(votes.tally(&all, |&it| it == 'a'), Tally::Pending);
    assert_eq!(votes.cast(&all, 3, 'b'), Ok(true));
    assert_eq!(votes.cast(&all, 2, 'c'), Ok(true));
    assert_eq!(votes.tally(&all, |&it| it == 'a'), Tally::Lost);
}

#[test]
fn the_highest_vote_counts_where_votes_are_raised() {
    let mut all = Electorate::new(Quorum::Majority, [1, 2, 3]);
    let mut votes = Votes::new();
    for (voter, vote, counts) in [
        (1, 4, true),
        (1, 3, false),
        (1, 4, false),
        (2, 9, true),
        (1, 5, true),
    ] {
        assert_eq!(votes.raise(&all, voter, vote), Ok(counts));
    }
    assert_eq!(votes.agreed(&all), Some(&5));
    all.begin_change([3]);
    assert_eq!(votes.agreed(&all), None);
    all.give_up_change();
    assert_eq!(votes.agreed(&all), Some(&5));
    all.begin_change([1]);
    all.finish_change();
    assert_eq!(votes.raise(&all, 2, 10), Err(NoElector));
    votes.retain_electors(&all);
    assert!(votes.iter().eq([(&1, &5)]));
}

proptest! {
    #[test]
    fn two_quorums_of_one_electorate_share_an_elector(
        present in ids(),
        next in proptest::option::of(ids()),
        a in ids(),
        b in ids(),
    ) {
        let all = electorate(Quorum::Majority, &present, next.as_ref());
        prop_assert_eq!(all.is_joint(), next.is_some());
        if is_quorum(&all, &a) && is_quorum(&all, &b) {
            prop_assert!(a.intersection(&b).any(|it| all.contains(it)));
        }
    }

    /// A joint quorum shares an elector with each quorum before the change, and with each after.
    #[test]
    fn a_joint_quorum_shares_an_elector_with_both(
        quorum in quorum(),
        present in ids(),
        next in ids(),
        joint in ids(),
        other in ids(),
    ) {
        let mut all = electorate(quorum, &present, Some(&next));
        prop_assert!(all.next().is_some_and(|it| it.iter().eq(&next)));
        let is_joint_quorum = is_quorum(&all, &joint);
        all.give_up_change();
        let is_before = is_quorum(&all, &other) && quorum.intersects(present.len());
        all.begin_change(next.iter().copied());
        all.finish_change();
        prop_assert!(all.present().iter().eq(&next) && !all.is_joint() && all.next().is_none());
        let is_after = is_quorum(&all, &other) && quorum.intersects(next.len());
        for (is_quorum, electors) in [(is_before, &present), (is_after, &next)] {
            if is_joint_quorum && is_quorum {
                prop_assert!(joint.intersection(&other).any(|it| electors.contains(it)));
            }
        }
    }

    /// Two quorums that are as far apart as possible: the first and the last of the electors.
    #[test]
    fn quorums_that_need_not_intersect_are_told(least in 0..9_usize, count in 0..9_u8) {
        let quorum = Quorum::AtLeast(least);
        let all: Ids = (0..count).collect();
        let [first, last]: [Ids; 2] = [
            all.iter().copied().take(least).collect(),
            all.iter().rev().copied().take(least).collect(),
        ];
        let electorate = electorate(quorum, &all, None);
        let are_quorums = is_quorum(&electorate, &first) && is_quorum(&electorate, &last);
        let are_apart = are_quorums && first.is_disjoint(&last);
        prop_assert_eq!(quorum.intersects(all.len()), !are_apart);
    }

    /// Goes through every way in which the missing votes can be cast.
    #[test]
    fn a_tally_says_what_can_still_come(
        quorum in quorum(),
        present in ids(),
        next in proptest::option::of(ids()),
        yes in ids(),
        no in ids(),
    ) {
        let all = electorate(quorum, &present, next.as_ref());
        let mut votes = Votes::new();
        for (voters, vote) in [(&yes, true), (&no, false)] {
            for &voter in voters {
                prop_assert_eq!(votes.cast(&all, voter, vote).is_ok(), all.contains(&voter));
            }
        }
        let is_missing = |it: &u8| all.contains(it) && votes.get(it).is_none();
        let missing: Vec<u8> = (0..10).filter(is_missing).collect();
        let wins = |bits: u32| {
            let mut voters = yes.clone();
            voters.extend(missing.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|it| *it.1));
            let of = |electors: &Ids| {
                let votes = electors.intersection(&voters).count();
                match quorum {
                    Quorum::Majority => votes * 2 > electors.len(),
                    Quorum::AtLeast(least) => votes >= least && least > 0,
                }
            };
            of(&present) && next.as_ref().is_none_or(of)
        };
        let ways = 0..1_u32 << missing.len();
        let expected = if ways.clone().all(wins) {
            Tally::Won
        } else if ways.clone().any(wins) {
            Tally::Pending
        } else {
            Tally::Lost
        };
        prop_assert_eq!(votes.tally(&all, |&vote| vote), expected);
    }

    /// Computed as in etcd's raft: the values in order, and of these the one at the quorum's place.
    #[test]
    fn what_is_agreed_stands_at_the_place_of_the_quorum(
        present in ids(),
        next in proptest::option::of(ids()),
        raised in proptest::collection::vec((0..10_u8, 1..6_u8), 0..20),
    ) {
        let all = electorate(Quorum::Majority, &present, next.as_ref());
        let mut votes = Votes::new();
        for &(voter, vote) in &raised {
            prop_assert_eq!(votes.raise(&all, voter, vote).is_ok(), all.contains(&voter));
        }
        let of = |electors: &Ids| {
            let highest = |it: &u8| {
                let theirs = raised.iter().filter(|(voter, _)| voter == it);
                theirs.map(|(_, vote)| *vote).max().unwrap_or(0)
            };
            let mut values: Vec<u8> = electors.iter().map(highest).collect();
            values.sort_unstable();
            let place = values.len().checked_sub(values.len() / 2 + 1);
            place.and_then(|at| values.get(at).copied()).unwrap_or(0)
        };
        let agreed = next.as_ref().map_or(of(&present), |next| of(&present).min(of(next)));
        prop_assert_eq!(votes.agreed(&all).copied().unwrap_or(0), agreed);
    }
}
