//! The life and the status of other nodes.

use selvedge_core::{BoundedMap, Delta, Incarnation, Member, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    incarnation: Incarnation,
    has_ended: bool,
}

/// The lives and failures of other nodes, members or not, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    known: BoundedMap<NodeId, Peer>,
}

/// A membership delta's news of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// The node is present, in this life or in a new one.
    Here {
        /// True if a former life has ended.
        is_new: bool,
    },
    /// It failed, or left.
    Ended,
    /// Nothing new.
    Nothing,
    /// About a life that has ended.
    Former,
}

/// The life from which a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A life that has ended.
    Former,
    /// The known life, or the first one.
    Known,
    /// A life that began after the known one.
    New,
}

impl Peers {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            known: BoundedMap::new(limit),
        }
    }

    /// The node in its latest life, as far as it is known.
    pub(crate) fn latest(&self, member: Member) -> Member {
        let known = self.known.get(&member.id).map(|it| it.incarnation);
        let incarnation = known.unwrap_or(member.incarnation);
        Member {
            incarnation,
            ..member
        }
    }

    /// Returns true if the membership service reported that the node failed or left.
    pub(crate) fn has_ended(&self, id: NodeId) -> bool {
        self.known.get(&id).is_some_and(|it| it.has_ended)
    }

    /// The nodes that are not known to have failed or left.
    pub(crate) fn here(&self) -> impl Iterator<Item = Member> + '_ {
        let here = self.known.iter().filter(|(_, peer)| !peer.has_ended);
        here.map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// The next node behind this id that is not known to have failed or left; the first one again
    /// behind the last.
    pub(crate) fn next_here(
        &self,
        behind: Option<NodeId>,
        is_wanted: impl Fn(NodeId) -> bool,
    ) -> Option<Member> {
        let is_behind = |it: &Member| behind.is_none_or(|behind| it.id > behind);
        let here = || self.here().filter(|it| is_wanted(it.id));
        here().find(is_behind).or_else(|| here().next())
    }

    /// Notes the life of a message's sender.
    pub(crate) fn receive(&mut self, from: Member, is_member: impl Fn(NodeId) -> bool) -> Received {
        match self.known.get(&from.id) {
            Some(peer) if peer.incarnation.newer_than(from.incarnation) => Received::Former,
            Some(peer) if peer.incarnation == from.incarnation => Received::Known,
            Some(_) => {
                self.note(from, false, is_member);
                Received::New
            }
            None => {
                self.note(from, false, is_member);
                Received::Known
            }
        }
    }

    pub(crate) fn learn(&mut self, delta: Delta, is_member: impl Fn(NodeId) -> bool) -> Learned {
        let member = delta.member();
        let known = self.known.get(&member.id).copied();
        let is_old = known.is_some_and(|it| it.incarnation.newer_than(member.incarnation));
        if is_old {
            return Learned::Former;
        }
        let is_new = known.is_some_and(|it| it.incarnation != member.incarnation);
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => {
                self.note(member, false, is_member);
                let had_ended = known.is_some_and(|it| it.has_ended);
                if known.is_some() && !is_new && !had_ended {
                    return Learned::Nothing;
                }
                Learned::Here { is_new }
            }
            Delta::Suspected(_) => Learned::Nothing,
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                self.note(member, true, is_member);
                Learned::Ended
            }
        }
    }

    /// Notes a node's life and status. Where there is no room, the node counts as present, in the
    /// life in which it sends. A member has room: another node is forgotten for it. A node that
    /// failed or left is forgotten for any other.
    fn note(&mut self, member: Member, has_ended: bool, is_member: impl Fn(NodeId) -> bool) {
        let peer = Peer {
            incarnation: member.incarnation,
            has_ended,
        };
        if self.known.insert(member.id, peer).is_ok() {
            return;
        }
        let others = || self.known.iter().filter(|(id, _)| !is_member(**id));
        let ended = others().find(|(_, peer)| peer.has_ended);
        let least = match is_member(member.id) {
            true => ended.or_else(|| others().next_back()),
            false => ended.filter(|_| !has_ended),
        };
        if let Some(id) = least.map(|it| *it.0) {
            self.known.remove(&id);
            let _has_room = self.known.insert(member.id, peer).is_ok();
        }
    }
}
