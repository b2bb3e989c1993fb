//! The nodes that are one hop away on the overlay: the members on this node's list.

use alloc::vec::Vec;

use selvedge_core::{Delta, Member, NodeId};

/// The neighbours by id, one life each. Look-up takes O(log n); a change moves those behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Neighbours {
    members: Vec<Member>,
    limit: usize,
}

impl Neighbours {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            members: Vec::new(),
            limit,
        }
    }

    /// Takes in what membership learned; returns whether there was room. A suspect stays: walks
    /// that it loses are started again, and one that is dropped wrongly is drawn too seldom.
    pub(super) fn learn(&mut self, delta: Delta) -> bool {
        match delta {
            Delta::Joined(member) | Delta::Refuted(member) => self.add(member),
            Delta::Failed(member) | Delta::Left(member) | Delta::Confirmed(member) => {
                self.remove(member);
                true
            }
            Delta::Suspected(_) => true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn get(&self, nth: usize) -> Option<Member> {
        self.members.get(nth).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().copied()
    }

    fn add(&mut self, member: Member) -> bool {
        match self.position(member.id) {
            Ok(at) => {
                if let Some(known) = self.members.get_mut(at)
                    && member.supersedes(*known)
                {
                    *known = member;
                }
                true
            }
            Err(_) if self.members.len() >= self.limit => false,
            Err(at) => {
                self.members.insert(at, member);
                true
            }
        }
    }

    /// Deltas may come in any order: the end of a former life says nothing about a later one.
    fn remove(&mut self, member: Member) {
        if let Ok(at) = self.position(member.id)
            && self.get(at).is_some_and(|known| !known.supersedes(member))
        {
            self.members.remove(at);
        }
    }

    fn position(&self, id: NodeId) -> Result<usize, usize> {
        self.members.binary_search_by_key(&id, |member| member.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(deltas: &[Delta]) -> Vec<Member> {
        let mut neighbours = Neighbours::new(3);
        for &delta in deltas {
            neighbours.learn(delta);
        }
        neighbours.members
    }

    #[test]
    fn only_what_ends_the_present_life_removes_a_neighbour() {
        use Delta::{Confirmed, Failed, Joined, Left, Refuted, Suspected};
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
            assert_eq!(learned(deltas), expected, "{deltas:?}");
        }
    }

    #[test]
    fn a_full_list_refuses_strangers_and_still_learns() {
        let mut neighbours = Neighbours::new(2);
        for id in [9, 4] {
            assert!(neighbours.learn(Delta::Joined(Member::new(id, 0))));
        }
        assert!(!neighbours.learn(Delta::Joined(Member::new(5, 0))));
        assert!(neighbours.learn(Delta::Joined(Member::new(9, 1))));
        assert!(neighbours.learn(Delta::Left(Member::new(4, 0))));
        assert!(neighbours.learn(Delta::Joined(Member::new(5, 0))));
        assert_eq!(neighbours.members, [Member::new(5, 0), Member::new(9, 1)]);
    }
}
