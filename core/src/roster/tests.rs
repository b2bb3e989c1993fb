use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Delta::{Confirmed, Failed, Joined, Left, Refuted, Suspected};

const ME: Member = Member::new(0, 7);

#[test]
fn a_node_that_was_only_met_goes_before_one_that_failed() {
    let mut roster = Roster::<()>::shared(ME, 3);
    roster.set(Member::new(1, 0), Standing::Failed).unwrap();
    roster.meet(Member::new(2, 0)).unwrap();
    roster.meet(Member::new(3, 0)).unwrap();
    for (newcomer, gone) in [(4, 2), (5, 3), (6, 1)] {
        let newcomer = Joined(Member::new(newcomer, 0));
        let forgotten = roster.learn(newcomer, |_| false);
        assert_eq!(forgotten, Ok(Some(Member::new(gone, 0))));
    }
}

/// A node that returns in a later life is not over any more, and the other ended lives stay in
/// order.
#[test]
fn the_node_that_ended_first_and_is_still_over_goes_first() {
    let mut roster = Roster::<()>::shared(ME, 3);
    for id in 1..=3 {
        roster.learn(Left(Member::new(id, 0)), |_| false).unwrap();
    }
    assert_eq!(roster.meet(Member::new(1, 1)), Ok(None));
    roster.set(Member::new(1, 1), Standing::Listed).unwrap();
    for gone in [2, 3] {
        let forgotten = roster.learn(Joined(Member::new(gone + 10, 0)), |_| false);
        assert_eq!(forgotten, Ok(Some(Member::new(gone, 0))));
    }
    let full = roster.make_room_for(Member::new(4, 0), |_| false);
    assert_eq!(full, Err(Full { limit: 3 }));
    assert_eq!(roster.listed_len(), 3);
}

#[test]
fn only_what_ends_the_present_life_takes_it_off_the_list() {
    let [old, new] = [Member::new(5, 1), Member::new(5, 2)];
    for (deltas, expected) in [
        (&[Joined(old), Suspected(old)][..], &[old][..]),
        (&[Joined(old), Failed(old)], &[]),
        (&[Joined(old), Failed(old), Refuted(old)], &[old]),
        (&[Joined(old), Left(old)], &[]),
        (&[Joined(old), Confirmed(new)], &[]),
        (&[Joined(new), Confirmed(old)], &[new]),
        (&[Joined(new), Joined(old)], &[new]),
        (&[Joined(old), Joined(new)], &[new]),
        (&[Failed(old)], &[]),
    ] {
        // Without room beside the list as well as with it.
        for mut roster in [Roster::<()>::split(ME, 3, 0), Roster::shared(ME, 3)] {
            for &delta in deltas {
                roster.learn(delta, |_| false).unwrap();
            }
            assert!(roster.listed().eq(expected.iter().copied()), "{deltas:?}");
        }
    }
}

#[test]
fn a_full_list_refuses_strangers_and_still_learns() {
    let mut roster = Roster::<()>::split(ME, 2, 0);
    let learn = |roster: &mut Roster<()>, delta| roster.learn(delta, |_| false).is_ok();
    for id in [9, 4] {
        assert!(learn(&mut roster, Joined(Member::new(id, 0))));
    }
    assert!(!learn(&mut roster, Joined(Member::new(5, 0))));
    assert!(learn(&mut roster, Joined(Member::new(9, 1))));
    assert!(learn(&mut roster, Left(Member::new(4, 0))));
    assert!(learn(&mut roster, Joined(Member::new(5, 0))));
    assert!(roster.listed().eq([Member::new(5, 0), Member::new(9, 1)]));
}

/// A peer may send under the id and the life of this node.
#[test]
fn no_node_is_forgotten_for_a_life_of_this_node() {
    for mut roster in [Roster::<()>::shared(ME, 1), Roster::split(ME, 0, 1)] {
        let known = Member::new(1, 0);
        roster.meet(known).unwrap();
        for own in [ME, Member::new(0, 6), Member::new(0, 8)] {
            assert_eq!(roster.make_room_for(own, |_| false), Ok(None));
            assert_eq!(roster.make_room_for(own, |_| true), Ok(None));
        }
        assert!(roster.iter().eq([(known, Standing::Met)]));
    }
}

#[test]
fn a_later_life_of_a_listed_node_needs_room_beside_a_list_with_its_own() {
    let [former, later] = [Member::new(1, 0), Member::new(1, 1)];
    let mut roster = Roster::<()>::split(ME, 1, 1);
    roster.learn(Joined(former), |_| false).unwrap();
    roster.meet(Member::new(2, 0)).unwrap();
    assert_eq!(roster.meet(later), Err(Full { limit: 1 }));
    assert!(roster.is_listed(former));
    let forgotten = roster.make_room_for(later, |_| false);
    assert_eq!(forgotten, Ok(Some(Member::new(2, 0))));
    assert_eq!(roster.meet(later), Ok(Some(former)));
    assert!(roster.is_over(former));
}

#[test]
fn the_end_of_the_present_life_alone_is_refused() {
    let roster = Roster::<()>::shared(ME, 3);
    let [former, later] = [Member::new(0, 6), Member::new(0, 8)];
    for end in [Left, Confirmed] {
        assert_eq!(roster.about_others(end(ME)), Err(OwnEnd(end(ME))));
        for other in [former, later] {
            assert_eq!(roster.about_others(end(other)), Ok(None));
            assert!(roster.is_over(other));
        }
        let stranger = end(Member::new(1, 0));
        assert_eq!(roster.about_others(stranger), Ok(Some(stranger)));
    }
    for reported in [Joined, Suspected, Refuted, Failed] {
        assert_eq!(roster.about_others(reported(ME)), Ok(None));
    }
    assert!(!roster.is_over(ME));
}

/// A model: each node with its life, its standing and a number, ordered by the last news, latest at
/// the end. Every operation goes through the whole list.
struct Model {
    known: Vec<(Member, Standing, u16)>,
    is_split: bool,
    places: usize,
    apart: usize,
}

impl Model {
    fn get(&self, id: NodeId) -> Option<(Member, Standing, u16)> {
        self.known.iter().copied().find(|(it, ..)| it.id == id)
    }

    fn is_past(&self, member: Member) -> bool {
        member.id == ME.id
            || self.get(member.id).is_some_and(|(known, standing, _)| {
                known.supersedes(member) || known == member && standing == Standing::Over
            })
    }

    fn has_room(&self, member: Member, standing: Standing) -> bool {
        let is_listed = standing == Standing::Listed;
        let is_of_room = |it: Standing| !self.is_split || (it == Standing::Listed) == is_listed;
        let same = |it: &&(Member, Standing, u16)| is_of_room(it.1) && it.0.id != member.id;
        let limit = if self.is_split && !is_listed {
            self.apart
        } else {
            self.places
        };
        self.known.iter().filter(same).count() < limit
    }

    fn set(&mut self, member: Member, standing: Standing) -> bool {
        let before = self.get(member.id);
        let same = before.filter(|(known, ..)| *known == member);
        if self.is_past(member) || same.is_some_and(|it| it.1 == standing) {
            return true;
        }
        let has_room = self.has_room(member, standing);
        if has_room {
            self.known.retain(|it| it.0.id != member.id);
            let number = same.map_or(0, |it| it.2);
            self.known.push((member, standing, number));
        }
        has_room
    }

    /// All, in the order in which they are forgotten; the list comes first, and is not.
    fn in_order(&self) -> Vec<(Member, Standing)> {
        let numbered = self.known.iter().enumerate();
        let mut all: Vec<_> = numbered
            .map(|(news, &(member, standing, _))| {
                let id = usize::try_from(member.id.0).unwrap();
                let key = match (standing, self.is_split) {
                    (Standing::Listed, _) => (0, id),
                    (Standing::Over, _) | (Standing::Failed, true) => (1, news),
                    (Standing::Met, true) => (2, news),
                    (Standing::Met, false) => (2, id),
                    (Standing::Failed, false) => (3, id),
                };
                (key, (member, standing))
            })
            .collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, it)| it).collect()
    }

    /// Returns the forgotten life; `Err` when the roster is full.
    fn make_room(&mut self, member: Member, needed: NodeId) -> Result<Option<Member>, ()> {
        if self.is_past(member) || self.has_room(member, Standing::Met) {
            return Ok(None);
        }
        let all = self.in_order().into_iter();
        let may_go = |it: &(Member, Standing)| it.1 != Standing::Listed && it.0.id != needed;
        let (leaves, _) = all.filter(may_go).map(Some).next().flatten().ok_or(())?;
        self.known.retain(|it| it.0 != leaves);
        Ok(Some(leaves))
    }

    fn learn(&mut self, delta: Delta, needed: NodeId) -> Result<Option<Member>, ()> {
        let member = delta.member();
        let Some(standing) = Standing::after(delta).filter(|_| !self.is_past(member)) else {
            return Ok(None);
        };
        if self.is_split && self.apart == 0 && standing != Standing::Listed {
            self.known.retain(|it| it.0.id != member.id);
            return Ok(None);
        }
        if self.is_split && standing == Standing::Listed {
            return self.set(member, standing).then_some(None).ok_or(());
        }
        let forgotten = self.make_room(member, needed)?;
        assert!(self.set(member, standing));
        Ok(forgotten)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Learn(fn(Member) -> Delta),
    Meet,
    Set(Standing),
    MakeRoom,
    Count,
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Learn(Joined)),
        1 => Just(Step::Learn(Suspected)),
        2 => Just(Step::Learn(Refuted)),
        3 => Just(Step::Learn(Failed)),
        1 => Just(Step::Learn(Left)),
        1 => Just(Step::Learn(Confirmed)),
        4 => Just(Step::Meet),
        1 => Just(Step::Set(Standing::Met)),
        1 => Just(Step::Set(Standing::Listed)),
        3 => Just(Step::MakeRoom),
        2 => Just(Step::Count),
        1 => Just(Step::Forget),
    ]
}

proptest! {
    /// Lives 0 to 3 of nodes 1 to 12, and former lives and the present one of this node. Node 1 is
    /// needed.
    #[test]
    fn a_roster_does_as_a_list_that_is_gone_through(
        is_split: bool,
        places in 0..7_usize,
        apart in 0..5_usize,
        steps in proptest::collection::vec((step(), 0..13_u64, 0..4_u32), 0..120),
    ) {
        let needed = NodeId(1);
        let mut roster: Roster<u16> = if is_split {
            Roster::split(ME, places, apart)
        } else {
            Roster::shared(ME, places)
        };
        let mut model = Model { known: Vec::new(), is_split, places, apart };
        for (step, id, life) in steps {
            let is_me = (id, life) == (ME.id.0, 3);
            let member = if is_me { ME } else { Member::new(id, life) };
            let before = roster.clone();
            let is_needed = |it: Member| it.id == needed;
            let is_refused = match step {
                Step::Learn(delta) => {
                    let learned = roster.learn(delta(member), is_needed);
                    prop_assert_eq!(learned.ok(), model.learn(delta(member), needed).ok());
                    learned.is_err()
                }
                Step::Meet => {
                    let former = model.get(member.id);
                    let met = roster.meet(member);
                    let is_new = former.is_none_or(|(known, ..)| member.supersedes(known));
                    let is_taken = !is_new || model.set(member, Standing::Met);
                    let ended = |it: &(Member, Standing, u16)| is_new && it.1 != Standing::Over;
                    let ended = former.filter(ended).map(|it| it.0);
                    prop_assert_eq!(met.ok(), is_taken.then_some(ended));
                    met.is_err()
                }
                Step::Set(standing) => {
                    let set = roster.set(member, standing);
                    prop_assert_eq!(set.is_ok(), model.set(member, standing));
                    set.is_err()
                }
                Step::MakeRoom => {
                    let forgotten = roster.make_room_for(member, is_needed);
                    prop_assert_eq!(forgotten.ok(), model.make_room(member, needed).ok());
                    forgotten.is_err()
                }
                Step::Count => {
                    let kept = roster.get_mut(member).map(|it| { *it += 1; *it });
                    let known = model.known.iter_mut().find(|it| it.0 == member);
                    prop_assert_eq!(kept, known.map(|it| { it.2 += 1; it.2 }));
                    false
                }
                Step::Forget => {
                    roster.forget(member.id);
                    model.known.retain(|it| it.0.id != member.id);
                    false
                }
            };
            prop_assert!(!is_refused || roster == before);
            let all = model.in_order();
            prop_assert!(roster.iter().eq(all.iter().copied()));
            let listed = all.iter().filter(|it| it.1 == Standing::Listed).map(|it| it.0);
            let listed: Vec<Member> = listed.collect();
            prop_assert!(roster.listed().eq(listed.iter().copied()));
            prop_assert_eq!(roster.nth_listed(life as usize), listed.get(life as usize).copied());
            prop_assert_eq!((roster.listed_len(), roster.len()), (listed.len(), all.len()));
            prop_assert_eq!(roster.is_empty(), all.is_empty());
            let known = model.get(member.id);
            prop_assert_eq!(roster.latest(member.id), known.map(|it| (it.0, it.1)));
            let same = known.filter(|it| it.0 == member);
            prop_assert_eq!(roster.standing(member), same.map(|it| it.1));
            prop_assert_eq!(roster.get(member).copied(), same.map(|it| it.2));
            let is_over = model.is_past(member) && member != ME;
            prop_assert_eq!(roster.is_over(member), is_over);
            let is = |it: Standing| same.is_some_and(|known| known.1 == it);
            prop_assert_eq!(roster.is_listed(member), is(Standing::Listed));
            prop_assert_eq!(roster.is_failed(member), is(Standing::Failed));
            prop_assert_eq!(roster.has_ended(member), is_over || is(Standing::Failed));
            let has_place = is_over || model.has_room(member, Standing::Listed);
            prop_assert_eq!(roster.has_place_for(member), has_place);
            let first_met = all.iter().find(|it| it.1 == Standing::Met && is_split);
            let has_place = listed.len() < places;
            let next = first_met.filter(|_| has_place).map(|it| it.0);
            prop_assert_eq!(roster.next_in_turn(), next);
            // A roster that begins later knows the same, where it has the room.
            let mut later: Roster<u16> = Roster::shared(ME, 12);
            for delta in roster.as_deltas() {
                prop_assert_eq!(later.learn(delta, |_| false), Ok(None));
            }
            for &(member, standing) in &all {
                let notified = (standing != Standing::Met).then_some(standing);
                prop_assert_eq!(later.standing(member), notified);
            }
        }
    }
}
