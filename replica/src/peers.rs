//! Other nodes: in which life they are, and whether they are gone.

use selvedge_core::{BoundedMap, Delta, Incarnation, Member, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    incarnation: Incarnation,
    is_gone: bool,
}

/// What is known of other nodes, members or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    known: BoundedMap<NodeId, Peer>,
}

/// What a delta says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It is here, in this life or in a new one.
    Here {
        /// Whether a former life is over.
        is_new: bool,
    },
    /// It failed, or left.
    Gone,
    /// Nothing new.
    Nothing,
}

/// Which life a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// One that is over.
    Former,
    /// The one that is known, or the first one.
    Known,
    /// One that began after the one that was known.
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

    /// Whether the node failed or left, as the membership service says.
    pub(crate) fn is_gone(&self, id: NodeId) -> bool {
        self.known.get(&id).is_some_and(|it| it.is_gone)
    }

    /// The nodes that are not known to be gone.
    pub(crate) fn here(&self) -> impl Iterator<Item = Member> + '_ {
        let here = self.known.iter().filter(|(_, peer)| !peer.is_gone);
        here.map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// A message came from this life.
    pub(crate) fn hear(&mut self, from: Member) -> Heard {
        match self.known.get(&from.id) {
            Some(peer) if peer.incarnation.newer_than(from.incarnation) => Heard::Former,
            Some(peer) if peer.incarnation == from.incarnation => Heard::Known,
            Some(_) => {
                self.note(from, false);
                Heard::New
            }
            None => {
                self.note(from, false);
                Heard::Known
            }
        }
    }

    pub(crate) fn learn(&mut self, delta: Delta) -> Learned {
        let member = delta.member();
        let known = self.known.get(&member.id).copied();
        let is_old = known.is_some_and(|it| it.incarnation.newer_than(member.incarnation));
        if is_old {
            return Learned::Nothing;
        }
        let is_new = known.is_some_and(|it| it.incarnation != member.incarnation);
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => {
                self.note(member, false);
                let was_gone = known.is_some_and(|it| it.is_gone);
                if known.is_some() && !is_new && !was_gone {
                    return Learned::Nothing;
                }
                Learned::Here { is_new }
            }
            Delta::Suspected(_) => Learned::Nothing,
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                self.note(member, true);
                Learned::Gone
            }
        }
    }

    /// Where there is no room, the node counts as here, in whichever life it speaks.
    fn note(&mut self, member: Member, is_gone: bool) {
        let peer = Peer {
            incarnation: member.incarnation,
            is_gone,
        };
        let _no_room = self.known.insert(member.id, peer).is_err();
    }
}
